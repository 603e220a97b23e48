"""Offers: one change of the program that cures a heap that is too small, tried by replay before it is offered.

A size is considered if it dominates the requests that failed or the peak (`heapwright._traces.size_uses`). In this
order: TLS records with smaller fragments, static buffers, fewer connections at a time. The first change is offered
whose need, static buffers counted, is within the heap. If its size is not known, a change has to save `LEAST_GAIN`, and
fewer connections are not offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from heapwright._diagnose.model import Cure, number
from heapwright._support.errors import HeapwrightError
from heapwright._traces.size_uses import SizeUse, dominant_size
from heapwright._traces.validation import CALLOC
from heapwright._traces.what_if import map_sizes, with_connections, with_static

if TYPE_CHECKING:
    from heapwright._heaps.heaps import Heap
    from heapwright._traces.size_uses import SizeUse
    from heapwright._traces.trace import Trace
    from heapwright._traces.what_if import WhatIf

LEAST_GAIN = 0.2

TLS_RECORD = range(16_384, 17_409)
"""Bytes of a buffer for a whole TLS record: 16,384 of data, and headers (mbed TLS: 16,717)."""
TLS_LESS = 12_288
"""What a buffer for records of 4,096 bytes takes less."""

MOST_CONNECTIONS = 64
"""More objects of a size at once are no connections, each of which is tried."""


def offer(trace: Trace, heap: Heap, need: int, arena: int | None = None) -> Cure | None:
    """The change that cures a trace; None if no size dominates it, if it fits already, or if no change is enough.

    Args:
        trace: the calls, failed requests counted as served.
        heap: the allocator in use.
        need: bytes that it needs for the trace.
        arena: bytes that it has; None if not known.

    O(replays of a few changed traces).
    """
    use = dominant_size(trace)
    if use is None or (arena is not None and need <= arena):
        return None
    most = arena if arena is not None else int((1 - LEAST_GAIN) * need)
    for command, text, changed in _changes(trace, use, connections=arena is not None):
        outside = sum(-(-size // 8) * 8 * count for size, count in changed.static_buffers.items())
        after = heap.fit(changed.trace)
        if after is not None and after + outside <= most:
            return Cure(f"{text} (trace map {command})", need, after + outside, f"heapwright trace map {command}")
    return None


def _changes(trace: Trace, use: SizeUse, *, connections: bool) -> Iterator[tuple[str, str, WhatIf]]:
    """Options of `trace map`, what they mean, and the changed trace, the least change of the program first."""
    size = use.size
    if size in TLS_RECORD:
        smaller = size - TLS_LESS
        yield f"--size {size}:{smaller}", "TLS records of 4 KB", map_sizes(trace, {size: smaller})
    births = trace.op <= CALLOC
    if np.count_nonzero(births & (trace.size == size)) > use.most:  # used again: a buffer can be static
        try:
            plural = "s" * (use.most != 1)
            yield (
                f"--static {size}",
                f"{use.most:,} static buffer{plural} of {number(size)} B",
                with_static(trace, size),
            )
        except HeapwrightError:
            return  # there is nothing else on the heap
    if connections and 1 < use.most <= MOST_CONNECTIONS:
        for count in range(use.most - 1, 0, -1):
            text = f"at most {count} connection{'s' * (count != 1)} at a time"
            command = f"--only-connections {count} --connection {size}"
            yield command, text, with_connections(trace, count, size)
