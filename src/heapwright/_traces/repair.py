"""Repaired traces: the calls that are valid, and caveats that count the dropped ones."""

from __future__ import annotations

from collections.abc import Iterator

from heapwright._traces.streams import Stream
from heapwright._traces.validation import Columns


def repaired(source: Stream) -> Stream:
    """The stream of a trace that is read with repairs, each of which is a caveat of the new trace."""
    metadata = dict(source.metadata)

    def windows() -> Iterator[Columns]:
        yield from source.windows()
        caveats = [*source.metadata.get("caveats", "").splitlines(), *source.repairs]  # complete after the last window
        metadata.update(source.metadata, **({"caveats": "\n".join(caveats)} if caveats else {}))

    return Stream(
        source.name, windows, phases=source.phases, sites=source.sites, metadata=metadata, repairs=source.repairs
    )
