"""Origin of a trace: the program that was recorded, or the packets of a workload, if its metadata has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from heapwright._traces.trace import Trace

_NUMBERED = re.compile(r"(.+?)[-_.](?:[A-Za-z]|\d+(?:\.\d+)?)")
"""One of several files of a name: server_a and server_b, server-1 and server-2."""


def origin_of(trace: Trace) -> str | None:
    """The recorded program; else the workload and its packets; else the common name of numbered files; else None.

    A numbered name ends in a letter or a number behind a hyphen, an underscore or a dot: server_a, server-2.
    """
    metadata = trace.metadata
    if "program" in metadata:
        return Path(metadata["program"]).name
    if "workload" in metadata and "packets_from" in metadata:
        return f"{metadata['workload']} of {metadata['packets_from']}"
    numbered = _NUMBERED.fullmatch(trace.name.partition("~")[0])
    return numbered[1] if numbered else None


def common_origin(traces: Sequence[Trace]) -> str | None:
    """The common origin of all traces; None if they differ, or if one has none."""
    origins = {origin_of(trace) for trace in traces}
    return origins.pop() if len(origins) == 1 else None
