"""Repair of a trace that outgrows its arena because its log lacks frees: the likeliest of these are inserted."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE


def within_arena(trace: Trace, arena: int) -> tuple[Trace, int]:
    """Free objects that the log never frees when more bytes would be live than `arena` holds; return how many, too.

    Sizes with the highest share of freed objects come first, and of a size the oldest object. If no such object is
    live, none is freed, and the peak stays above `arena`. O(n log n) of n calls.
    """
    objects, count = trace.objects()
    op, size = trace.op.tolist(), trace.size.tolist()
    never = np.ones(count, bool)
    never[objects[trace.op == FREE]] = False
    first = np.zeros(count, np.int64)
    first[objects[::-1]] = trace.size[::-1]
    sizes, of_object = np.unique(first, return_inverse=True)
    freed_share = 1 - np.bincount(of_object, never, len(sizes)) / np.bincount(of_object, minlength=len(sizes))
    rank = (-freed_share[of_object]).tolist()
    live: dict[int, int] = {}
    ended: set[int] = set()
    waiting: list[tuple[float, int]] = []
    total = 0
    places: list[tuple[int, int]] = []
    for row, number in enumerate(objects.tolist()):
        if number in ended:
            continue
        before = live.pop(number, None)
        total -= before or 0
        if op[row] == FREE:
            continue
        while total + size[row] > arena and waiting:
            _, other = heapq.heappop(waiting)
            if other != number:
                ended.add(other)
                total -= live.pop(other)
                places.append((row, other))
        if before is None and never[number]:
            heapq.heappush(waiting, (rank[number], number))
        live[number] = size[row]
        total += size[row]
    return _with_frees(trace, np.array(places, np.int64).reshape(-1, 2), objects), len(places)


def _with_frees(trace: Trace, places: NDArray[np.int64], objects: NDArray[np.uint32]) -> Trace:
    """The trace with a free before each row, of each object, in `places`, and without later calls of these objects."""
    rows, ended = places[:, 0], places[:, 1]
    ends_at = np.full(int(objects.max()) + 1, len(trace))
    ends_at[ended] = rows
    keep = np.insert(np.arange(len(trace)) < ends_at[objects], rows, True)
    first = np.zeros(int(objects.max()) + 1, np.int64)
    first[objects[::-1]] = np.arange(len(trace))[::-1]
    put_in: dict[str, Any] = {"op": FREE, "id": trace.id[first[ended]], "size": 0, "align": 0, "site": 0}
    put_in |= {"ts_us": trace.ts_us[rows], "tid": trace.tid[rows]}
    columns: dict[str, Any] = {key: np.insert(getattr(trace, key), rows, value)[keep] for key, value in put_in.items()}
    changed = Trace.from_columns(**columns, sites=trace.sites, name=trace.name, metadata=trace.metadata)
    return replace(changed, repairs=trace.repairs)
