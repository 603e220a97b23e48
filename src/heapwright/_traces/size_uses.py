"""Uses of sizes: how many objects of a size are live at once, and the size that dominates a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heapwright._traces.validation import CALLOC, FREE, REALLOC

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

DOMINANT = 0.5
"""Share of the peak that the objects of a dominant size hold, or more."""


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
    number_of, count = trace.objects()
    births, frees = trace.op <= CALLOC, trace.op == FREE
    size = np.zeros(count, np.int64)
    size[number_of[births]] = trace.size[births]
    resized = np.zeros(count, bool)
    resized[number_of[trace.op == REALLOC]] = True
    births &= ~resized[number_of]
    frees &= ~resized[number_of]
    moves = births | frees
    of_call, change = size[number_of[moves]], np.where(frees[moves], -1, 1)
    order = np.argsort(of_call, kind="stable")
    of_call, change = of_call[order], change[order]
    starts = np.flatnonzero(np.r_[True, of_call[1:] != of_call[:-1]]) if len(of_call) else np.empty(0, np.int64)
    result = []
    for start, end in zip(starts, np.r_[starts[1:], len(of_call)], strict=True):
        live = np.cumsum(change[start:end])
        result.append(SizeUse(int(of_call[start]), int(live.max()), int((change[start:end] > 0).sum())))
    return sorted(result, key=lambda item: -item.bytes)


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
