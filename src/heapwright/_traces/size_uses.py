"""Sizes of a trace: how many objects of each live at once, and the trace without some of its objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

DOMINANT = 0.5
"""Share of the peak that the objects of a dominant size hold, or more."""
LARGE_SHARE = 0.02
"""A size is worth a place of its own if its objects take that share of the peak, or more."""
MOST_SIZES = 3


@dataclass(frozen=True)
class SizeUse:
    """Objects of one size: requested bytes of each, and how many live at once at most."""

    size: int
    most: int
    objects: int

    @property
    def bytes(self) -> int:
        """What they take at most."""
        return self.size * self.most


def size_uses(trace: Trace) -> list[SizeUse]:
    """Each size that is never changed by realloc, that of most bytes at once first. O(calls log calls)."""
    size, resized = sizes_of_objects(trace)
    number_of, _ = trace.objects()
    moves = ((trace.op <= CALLOC) | (trace.op == FREE)) & ~resized[number_of]
    of_call, change = size[number_of[moves]], np.where(trace.op[moves] == FREE, -1, 1)
    order = np.argsort(of_call, kind="stable")
    of_call, change = of_call[order], change[order]
    starts = np.flatnonzero(np.r_[True, of_call[1:] != of_call[:-1]]) if len(of_call) else np.empty(0, np.int64)
    result = []
    for start, end in zip(starts, np.r_[starts[1:], len(of_call)], strict=True):
        live = np.cumsum(change[start:end])
        result.append(SizeUse(int(of_call[start]), int(live.max()), int((change[start:end] > 0).sum())))
    return sorted(result, key=lambda item: -item.bytes)


def sizes_of_objects(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The size in bytes that each object is allocated with, and whether a realloc changes it; one entry an object."""
    number_of, count = trace.objects()
    births = trace.op <= CALLOC
    size, resized = np.zeros(count, np.int64), np.zeros(count, bool)
    size[number_of[births]] = trace.size[births]
    resized[number_of[trace.op == REALLOC]] = True
    return size, resized


def large_sizes(trace: Trace) -> list[SizeUse]:
    """The sizes that are worth a place of their own: used again and again, and a good part of the peak."""
    least = LARGE_SHARE * trace.peak_live_bytes
    uses = [item for item in size_uses(trace) if item.bytes >= least and item.objects > item.most and item.size]
    return uses[:MOST_SIZES]


def without(trace: Trace, size: int) -> Trace | None:
    """The trace without the objects of a size; None if there are no others."""
    sizes, resized = sizes_of_objects(trace)
    return without_objects(trace, (sizes == size) & ~resized)


def without_objects(trace: Trace, objects: NDArray[np.bool_]) -> Trace | None:
    """The trace without some objects (one entry an object); None if there are no others."""
    number_of, _ = trace.objects()
    kept = np.flatnonzero(~objects[number_of])
    return trace.select(kept) if len(kept) else None


def most_at_once(trace: Trace, objects: NDArray[np.bool_]) -> int:
    """How many of some objects (one entry an object) live at once at most."""
    number_of, _ = trace.objects()
    change = (trace.op <= CALLOC).astype(np.int64) - (trace.op == FREE)
    return int(np.cumsum(np.where(objects[number_of], change, 0)).max(initial=0))


def dominant_size(trace: Trace) -> SizeUse | None:
    """The size that most bytes of failed requests have, or `DOMINANT` of the peak; None if there is none."""
    uses = {use.size: use for use in size_uses(trace)}
    failed = trace.size[trace.failed > 0]
    if len(failed):
        sizes, counts = np.unique(failed, return_counts=True)
        largest = int(sizes[np.argmax(sizes.astype(np.int64) * counts)])
        if largest in uses and 2 * int(failed[failed == largest].sum()) > int(failed.sum()):
            return uses[largest]
    first = next(iter(uses.values()), None)
    return first if first is not None and first.bytes >= DOMINANT * trace.peak_live_bytes else None
