"""What an importer of a log is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source


class Format(NamedTuple):
    """A format of logs.

    `matches` tells it by the first bytes of a file, `read` reads it whole. `loses` says what the format cannot tell, in
    words that a report may carry. `allocator` is the reference allocator that such a log is written on, where there is
    but one.
    """

    name: str
    matches: Callable[[bytes], bool]
    read: Callable[[Source], LogHistory]
    loses: tuple[str, ...] = ()
    allocator: str = ""
