"""Leaks in a trace: objects of one size or call site whose live count rises in a straight line and never falls.

The rule, on the last two thirds of the calls (start-up is over by then), cut into `WINDOWS` windows of equal length;
calls that free everything at the end of the program are left out first:

1. the lowest live count of each window is above that of the window before;
2. it rises by at least `LEAST_OBJECTS` objects in all, and by at least `LEAST_SHARE` of the objects allocated there
   that are never freed;
3. over the last four windows it rises at least `LEAST_SLOPE` times as fast as over the first four.

A cache that is still filling at the end of the trace looks the same: no trace distinguishes the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.validation import CALLOC, FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

WINDOWS = 8
LEAST_OBJECTS = 8
LEAST_SHARE = 0.6
LEAST_SLOPE = 0.5
LEAST_CALLS = 200
"""A shorter trace shows how a program starts: what it allocates then rises in a straight line."""


@dataclass(frozen=True)
class Leak:
    """Objects that are allocated at a steady rate and never freed.

    Attributes:
        size: requested bytes of each object; None if a call site leaks objects of several sizes.
        site: the call site; empty if the trace names none, or if several sites leak objects of this size.
        objects: how many of them are never freed, in the whole trace.
        bytes: their requested bytes.
        objects_per_call: rate in the last two thirds, per heap call of the program.
        bytes_per_call: the same in requested bytes.
        bytes_per_hour: the same per hour; None if the trace has no times.
    """

    size: int | None
    site: str
    objects: int
    bytes: int
    objects_per_call: float
    bytes_per_call: float
    bytes_per_hour: float | None

    def calls_until(self, reserve: int) -> float:
        """Heap calls until the leak alone has used up `reserve` bytes."""
        return reserve / self.bytes_per_call

    def hours_until(self, reserve: int) -> float | None:
        """Hours until the leak alone has used up `reserve` bytes; None if the trace has no times."""
        return None if self.bytes_per_hour is None else reserve / self.bytes_per_hour


def find_leaks(trace: Trace) -> tuple[Leak, ...]:
    """Return the leaks of a trace, that of most bytes a call first; empty if there is none. O(calls log calls)."""
    end = _end(trace)
    start = end // 3
    if end < LEAST_CALLS:
        return ()
    lives = _Lifetimes(trace, end)
    kept = lives.kept_since(start)
    found: list[Leak] = []
    remaining = np.ones(len(lives.size), bool)
    if trace.sites != ("",):
        for site in _frequent(lives.site[kept]):
            group = np.flatnonzero(lives.site == site)
            if leak := _leak(trace, lives, group, start, trace.sites[site]):
                found.append(leak)
                remaining[group] = False
    for size in _frequent(lives.size[kept[remaining[kept]]]):
        group = np.flatnonzero((lives.size == size) & remaining)
        if leak := _leak(trace, lives, group, start, ""):
            found.append(leak)
    return tuple(sorted(found, key=lambda leak: -leak.bytes_per_call))


class _Lifetimes:
    """Birth, death (`end` if it is never freed), size and call site of each object, in order of birth."""

    def __init__(self, trace: Trace, end: int) -> None:
        number, count = trace.objects()
        number, op = number[:end], trace.op[:end]
        births, frees, sized = op <= CALLOC, op == FREE, op != FREE
        self.end = end
        self.birth = np.full(count, end, np.int64)
        self.birth[number[births]] = np.flatnonzero(births)
        self.death = np.full(count, end, np.int64)
        self.death[number[frees]] = np.flatnonzero(frees)
        self.size = np.zeros(count, np.int64)
        self.size[number[sized]] = trace.size[:end][sized]  # the last request of an object is the one that stays
        self.site = np.zeros(count, np.int64)
        self.site[number[births]] = trace.site[:end][births]
        later = trace.op[end:] == FREE
        self._at_exit = np.zeros(count, bool)
        self._at_exit[trace.objects()[0][end:][later]] = True

    def kept_since(self, start: int) -> NDArray[np.int64]:
        """Objects allocated from call `start` on that are not freed, not even at exit."""
        return np.flatnonzero((self.death == self.end) & (self.birth >= start) & (self.birth < self.end))

    def never_freed(self, group: NDArray[np.int64]) -> NDArray[np.int64]:
        """Objects of a group that are never freed before the program ends."""
        lost: NDArray[np.int64] = group[(self.death[group] == self.end) & ~self._at_exit[group]]
        return lost


def _end(trace: Trace) -> int:
    """The call at which the program begins to free everything and allocates no more."""
    others = np.flatnonzero(trace.op != FREE)
    return int(others[-1]) + 1 if len(others) else 0


def _frequent(keys: NDArray[np.int64]) -> list[int]:
    values, counts = np.unique(keys, return_counts=True)
    return [int(value) for value in values[counts >= LEAST_OBJECTS]]


def _leak(trace: Trace, lives: _Lifetimes, group: NDArray[np.int64], start: int, site: str) -> Leak | None:
    lowest = _lowest(lives, group, start)
    kept = group[(lives.death[group] == lives.end) & (lives.birth[group] >= start)]
    rise = int(lowest[-1] - lowest[0])
    half = WINDOWS // 2
    before, after = int(lowest[half - 1] - lowest[0]), int(lowest[-1] - lowest[half])
    if not (np.diff(lowest) > 0).all() or rise < max(LEAST_OBJECTS, LEAST_SHARE * len(kept)):
        return None
    if after < LEAST_SLOPE * before:
        return None
    lost = lives.never_freed(group)
    if len(lost) < LEAST_OBJECTS:
        return None  # the program frees them when it ends
    sizes = np.unique(lives.size[lost])
    calls, bytes_ = lives.end - start, int(lives.size[kept].sum())
    hours = _hours(trace, start, lives.end)
    return Leak(
        size=int(sizes[0]) if len(sizes) == 1 else None,
        site=site,
        objects=len(lost),
        bytes=int(lives.size[lost].sum()),
        objects_per_call=len(kept) / calls,
        bytes_per_call=bytes_ / calls,
        bytes_per_hour=bytes_ / hours if hours else None,
    )


def _lowest(lives: _Lifetimes, group: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """The lowest live count of a group in each window of the calls from `start` on."""
    moments = np.concatenate([lives.birth[group], lives.death[group]])
    change = np.concatenate([np.ones(len(group), np.int64), -np.ones(len(group), np.int64)])
    inside = moments < lives.end
    order = np.argsort(moments[inside], kind="stable")
    moments, live = moments[inside][order], np.cumsum(change[inside][order])
    bounds = np.linspace(start, lives.end, WINDOWS + 1).astype(np.int64)
    places = np.searchsorted(moments, bounds)
    lowest = []
    for first, last in pairwise(places):
        at_start = live[first - 1 : first] if first else np.zeros(1, np.int64)
        lowest.append(int(np.concatenate([at_start, live[first:last]]).min()))
    return np.array(lowest)


def _hours(trace: Trace, start: int, end: int) -> float | None:
    times = trace.ts_us[start:end]
    known = times[times >= 0]
    return float(known[-1] - known[0]) / 3.6e9 if len(known) > 1 and known[-1] > known[0] else None
