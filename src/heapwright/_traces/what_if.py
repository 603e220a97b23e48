"""What-if traces: the same calls with other buffer sizes, static buffers, fewer connections, or other lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.failures import LIFE, with_life
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MAX_SIZE


@dataclass(frozen=True)
class WhatIf:
    """A changed trace and what the change was.

    Attributes:
        trace: the calls after the change; its metadata says what was changed.
        changed: calls that have another size, or are gone.
        static_buffers: size in bytes -> buffers of it that must be static to replace the objects that are gone.
        peak_bytes_before, peak_bytes: peak of requested live bytes before and after; static buffers are not in it.
        says: one sentence for people.
    """

    trace: Trace
    changed: int
    static_buffers: Mapping[int, int]
    peak_bytes_before: int
    peak_bytes: int
    says: str


def map_sizes(trace: Trace, sizes: Mapping[int, int]) -> WhatIf:
    """The trace with requests of some sizes made with others, such as TLS buffers of 16,717 bytes with 4,429.

    Args:
        trace: any.
        sizes: requested size in bytes -> the size to request instead, 0 to 2^31.

    Raises:
        ParameterError: a size that no call requests, or a new size out of range. O(calls).
    """
    result, changed = trace.size.copy(), 0
    requests = trace.op != FREE
    for old, new in sizes.items():
        if not 0 <= new <= MAX_SIZE:
            raise ParameterError(f"size {new}: must be 0 to {MAX_SIZE} bytes", parameter="size")
        rows = requests & (trace.size == old)
        if not rows.any():
            raise ParameterError(
                f"{trace.name}: no call requests {old:,} bytes; {_nearest(trace, old)}", parameter="size"
            )
        result[rows] = new
        changed += int(np.count_nonzero(rows))
    words = ", ".join(f"{old:,} B -> {new:,} B" for old, new in sizes.items())
    return _changed(trace, np.arange(len(trace)), result, changed, {}, f"sizes mapped ({words})")


def with_static(trace: Trace, size: int) -> WhatIf:
    """The trace without the objects allocated with `size` bytes, for which static buffers are taken instead.

    Raises ParameterError if no object is allocated with that size, HeapwrightError if no call remains. O(calls).
    """
    objects, count = trace.objects()
    births = trace.op <= 1
    static = np.zeros(count, bool)
    static[objects[births & (trace.size == size)]] = True
    if not static.any():
        raise ParameterError(
            f"{trace.name}: no object is allocated with {size:,} bytes; {_nearest(trace, size)}", parameter="static"
        )
    gone = static[objects]
    live = np.where(gone & births, 1, 0) - np.where(gone & (trace.op == FREE), 1, 0)
    buffers = int(live.cumsum().max())
    if gone.all():
        raise HeapwrightError(f"{trace.name}: every call is of {size:,} bytes: {buffers} static buffers need no heap")
    kept = np.flatnonzero(~gone)
    says = f"{buffers} static buffers of {size:,} B ({buffers * size:,} B outside the heap)"
    return _changed(trace, kept, trace.size, int(np.count_nonzero(gone)), {size: buffers}, says)


def with_connections(trace: Trace, connections: int, size: int) -> WhatIf:
    """The trace with at most `connections` connections at a time.

    A connection is as long as the life of an object of `size` bytes, such as its receive buffer. An object belongs to
    the newest connection open at its allocation, if it is freed before the connection ends or within as many calls
    after its end as the connection has objects; other objects are permanent and stay. Connections beyond the limit are
    left out with their objects. This is an estimate: programs may serve a refused client later.

    Raises ParameterError if no object has that size, or for fewer than 1 connection. O(calls + connections).
    """
    if connections < 1:
        raise ParameterError(f"connections {connections}: must be 1 or more", parameter="only_connections")
    objects, count = trace.objects()
    rows = np.arange(len(trace))
    births = trace.op <= 1
    begin, end = np.zeros(count, np.int64), np.full(count, len(trace), np.int64)
    begin[objects[births]] = rows[births]
    end[objects[trace.op == FREE]] = rows[trace.op == FREE]
    is_marker = np.zeros(count, bool)
    is_marker[objects[births & (trace.size == size)]] = True
    if not is_marker.any():
        raise ParameterError(
            f"{trace.name}: no object is allocated with {size:,} bytes; {_nearest(trace, size)}", parameter="size"
        )
    owner = _owners(begin, end, np.flatnonzero(is_marker))
    kept, dropped = np.ones(count, bool), 0
    live: list[int] = []
    for marker in np.flatnonzero(is_marker)[np.argsort(begin[is_marker])].tolist():
        live = [other for other in live if end[other] > begin[marker]]
        if len(live) < connections:
            live.append(marker)
            continue
        kept[owner == marker] = False
        dropped += 1
    calls = np.flatnonzero(kept[objects])
    says = f"at most {connections} connections at a time, by objects of {size:,} B; {dropped:,} left out"
    return _changed(trace, calls, trace.size, len(trace) - len(calls), {}, says)


def with_failed_life(trace: Trace, life: int) -> WhatIf:
    """The trace with another life of the objects whose requests failed while it was recorded.

    Args:
        trace: any in which a request failed.
        life: calls from each failed request to the free of its object, 0 or more.

    Raises ParameterError if no request failed, or for a life below 0. O(calls log calls).
    """
    if not trace.failed.any():
        raise ParameterError(f"{trace.name}: no request failed in the recording", parameter="failed_life")
    result = with_life(trace, life)
    count, before, after = int(np.count_nonzero(trace.failed)), trace.peak_live_bytes, result.peak_live_bytes
    says = f"{count:,} failed request{'s' * (count != 1)}, {result.metadata[LIFE]}"
    return WhatIf(result, count, {}, before, after, f"{says}: peak {before:,} -> {after:,} B live")


def _owners(begin: NDArray[np.int64], end: NDArray[np.int64], markers: NDArray[np.intp]) -> NDArray[np.int64]:
    """Object -> the marker of the connection that it belongs to, -1 for permanent objects."""
    owner = np.full(len(begin), -1)
    order = np.argsort(begin, kind="stable")
    marked = set(markers.tolist())
    open_: list[int] = []
    counts: dict[int, int] = {}
    for item in order.tolist():
        while open_ and end[open_[-1]] < begin[item]:
            open_.pop()
        if item in marked:
            open_ = [other for other in open_ if end[other] > begin[item]]
            open_.append(item)
            owner[item], counts[item] = item, 0
        elif open_:
            marker = open_[-1]
            counts[marker] += 1
            owner[item] = marker
    for item in np.flatnonzero(owner >= 0).tolist():
        marker = int(owner[item])
        if item != marker and end[item] > end[marker] + counts[marker]:
            owner[item] = -1
    return owner


def _changed(
    trace: Trace,
    rows: NDArray[np.intp],
    size: NDArray[np.uint32],
    changed: int,
    static: Mapping[int, int],
    says: str,
) -> WhatIf:
    result = trace.select(rows, notes={"what_if": says}, size=size[rows])
    before, after = trace.peak_live_bytes, result.peak_live_bytes
    return WhatIf(result, changed, static, before, after, f"{says}: peak {before:,} -> {after:,} B live")


def _nearest(trace: Trace, size: int) -> str:
    """The requested sizes nearest to one, as a hint."""
    sizes = np.unique(trace.size[trace.op != FREE]).astype(np.int64)
    near = np.sort(sizes[np.argsort(np.abs(sizes - size), kind="stable")[:3]])
    return f"nearest sizes: {', '.join(f'{item:,}' for item in near.tolist())}"
