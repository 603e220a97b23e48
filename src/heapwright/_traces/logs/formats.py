"""The interface of an importer: a format of logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source


class Format(NamedTuple):
    """A format of logs.

    `matches` recognises it by the first bytes of a file, `read` reads the whole file. `loses` lists what the format
    does not record, as phrases for a report. `allocators` are the reference allocators that write such logs, each
    with the largest arena in bytes for which it is that one; empty if others do, too.
    """

    name: str
    matches: Callable[[bytes], bool]
    read: Callable[[Source], LogHistory]
    loses: tuple[str, ...] = ()
    allocators: Sequence[tuple[int, str]] = ()
