"""Pieces of a long trace: a shorter trace with the same long-lived objects, for what need not see all calls.

The calls of some stretches stay, and every object that lives in one of them stays with all its calls, so the bytes
live there are the same as in the whole trace. Only objects allocated and freed between two stretches are left out.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE

LONG = 400_000
"""Calls above which a trace is long."""

CALLS = 96_000
"""Calls of all stretches together."""

STRETCHES = 16
"""Stretches: the beginning, the end, the peak of live bytes, and others at equal distances."""

WORTH = 0.75
"""Largest share of the calls that pieces may have: if more are left, the whole trace is taken."""

_PIECES = WeakKeyDictionary[Trace, Trace]()


def pieces(trace: Trace, calls: int | None = None, *, before: int | None = None) -> Trace:
    """The pieces of a trace: about ``calls`` calls, default `CALLS`, and all calls of objects that outlive a stretch.

    ``before``: the call from which on all calls are left; None for the end. The name is the trace's; the metadata has
    ``pieces_of``, its number of calls. Returns the trace itself if its pieces would save little. O(calls).
    """
    calls = CALLS if calls is None else calls
    cut = len(trace) if before is None else min(before, len(trace))
    if calls >= cut:
        return trace
    first, end = _stretches(trace.live_bytes[:cut], calls)
    if cut < len(trace):
        first, end = np.append(first, cut), np.append(end, len(trace))
    number, count = trace.objects()
    births, frees = np.flatnonzero(trace.op <= CALLOC), np.flatnonzero(trace.op == FREE)
    death = np.full(count, len(trace), np.int64)
    death[number[frees]] = frees
    next_stretch = np.searchsorted(end, births, side="right")  # the first that ends after the allocation
    lives = death >= np.append(first, len(trace) + 1)[next_stretch]
    rows = np.flatnonzero(lives[number])
    if len(rows) - (len(trace) - cut) > WORTH * cut:
        return trace
    return trace.select(rows, notes={"pieces_of": str(len(trace))})


def short(trace: Trace) -> Trace:
    """The trace, or its pieces if it is `LONG`; made once."""
    if len(trace) <= LONG:
        return trace
    if trace not in _PIECES:
        _PIECES[trace] = pieces(trace)
    return _PIECES[trace]


def _stretches(live_bytes: NDArray[np.int64], calls: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First call of each stretch, and the call behind its last, both ascending."""
    length, count = max(calls // STRETCHES, 1), len(live_bytes)
    peak = int(np.argmax(live_bytes)) - length // 2
    even = np.linspace(0, count - length, STRETCHES - 1).astype(np.int64)
    first = np.unique(np.clip(np.append(even, peak), 0, count - length))
    return first, first + length
