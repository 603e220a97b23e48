"""Live counts: how many blocks of a size are live at once, by which pools with counts are dimensioned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.calls import number_objects
from heapwright._traces.validation import FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

START_UP = 0.05
"""Share of the calls that is left out: a heap that fills is not yet what it will be."""


def live_counts(trace: Trace, sizes: Sequence[int], align: int, shares: Sequence[float]) -> NDArray[np.int64]:
    """Blocks of each size that are live at once during some shares of the calls, int64[sizes, shares].

    A request counts for its size rounded up to the alignment. Of a share of 0.9 the count is that which is not exceeded
    during 9 in 10 calls after start-up; of 1 it is the largest ever. O(calls log calls + sizes x calls).
    """
    if not len(trace):
        return np.zeros((len(sizes), len(shares)), np.int64)
    numbers, _ = number_objects(trace.op, trace.id)
    block = np.maximum(-(-trace.size.astype(np.int64) // align) * align, align)
    block[trace.op == FREE] = 0
    order = np.argsort(numbers, kind="stable")
    before = np.zeros(len(trace), np.int64)
    same = numbers[order][1:] == numbers[order][:-1]
    before[order[1:]] = np.where(same, block[order[:-1]], 0)
    skipped = int(START_UP * len(trace))
    result = np.zeros((len(sizes), len(shares)), np.int64)
    for at, size in enumerate(sizes):
        live = np.cumsum((block == size).astype(np.int64) - (before == size))
        result[at] = np.quantile(live[skipped:], shares, method="higher")
        result[at, np.asarray(shares) >= 1] = live.max(initial=0)
    return result
