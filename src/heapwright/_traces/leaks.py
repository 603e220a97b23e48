"""Leaks in a trace: objects of one size or call site whose live count rises in a straight line and never falls.

The rule, on the last two thirds of the calls (start-up is over by then), cut into `WINDOWS` windows of equal length;
calls that free everything at the end of the program are left out first:

1. the lowest live count of each window is above that of the window before;
2. it rises by at least `LEAST_OBJECTS` objects in all, and by at least `LEAST_SHARE` of the objects allocated there
   that are never freed;
3. over the last four windows it rises at least `LEAST_SLOPE` times as fast as over the first four, and in no window it
   is further from the straight line through the first and the last than `BEND` of the rise. Of few objects it may be as
   far as random moments of allocation leave it in 19 of 20 leaks (Kolmogorov's test).

A cache that is still filling at the end of the trace looks the same: no trace distinguishes the two. If most of what
the program allocated meanwhile stays (`BUILDING`), it probably still builds up its data, and nothing can be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.calls import number_objects
from heapwright._traces.validation import CALLOC, FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

WINDOWS = 8
LEAST_OBJECTS = 8
LEAST_SHARE = 0.6
LEAST_SLOPE = 0.5
BEND = 0.15
BEND_BY_CHANCE = 1.36
"""Kolmogorov's bound at 5 %, for the square root of the number of objects."""
BUILDING = 0.5
_SLICE = 1 << 18
"""Calls that are taken at a time, so that what is computed on the way does not grow with the trace."""
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
        confidence: "likely", or "inconclusive" if more than `BUILDING` of all objects allocated meanwhile stay.
    """

    size: int | None
    site: str
    objects: int
    bytes: int
    objects_per_call: float
    bytes_per_call: float
    bytes_per_hour: float | None
    confidence: Literal["likely", "inconclusive"] = "likely"

    def calls_until(self, reserve: int) -> float:
        """Heap calls until the leak alone has used up `reserve` bytes."""
        return reserve / self.bytes_per_call

    def hours_until(self, reserve: int) -> float | None:
        """Hours until the leak alone has used up `reserve` bytes; None if the trace has no times."""
        return None if self.bytes_per_hour is None else reserve / self.bytes_per_hour

    @classmethod
    def of(cls, stored: Any) -> Leak:
        """The leak of a dictionary that `dataclasses.asdict` made, from a file. Raises ValueError for anything else."""
        if type(stored) is not dict or stored.keys() != cls.__dataclass_fields__.keys():
            raise ValueError("no leak")
        leak = cls(**stored)
        if stored["confidence"] == "possible":  # as version 0.2 wrote it
            leak = replace(leak, confidence="inconclusive")
        whole = (leak.objects, leak.bytes, leak.size or 0)
        rates = (leak.objects_per_call, leak.bytes_per_call, leak.bytes_per_hour or 0.0)
        if any(type(value) is not int for value in whole) or any(type(value) is not float for value in rates):
            raise ValueError("a leak with a value of another type")
        if type(leak.site) is not str or leak.confidence not in ("likely", "inconclusive") or leak.bytes_per_call <= 0:
            raise ValueError("a leak with a value of another type")
        return leak

    @property
    def what(self) -> str:
        """The objects in words, with their size and call site."""
        size = f" of {self.size:,} bytes" if self.size is not None else ""
        return f"{self.objects:,} objects{size}{f' from {self.site}' if self.site else ''}"


def leak_sentence(leaks: Sequence[Leak], name: str, reserve: int | None = None, need: int | None = None) -> str:
    """What leaks in a trace, how fast, and when it has used up what a reserve has to spare; "" for no leak.

    Args:
        leaks: as `find_leaks` returns them.
        name: of the trace.
        reserve, need: bytes that are reserved for the trace and that it needs; without both no time is stated.
    """
    if not leaks:
        return ""
    first = leaks[0]
    rate = sum(leak.bytes_per_call for leak in leaks)
    hourly = None if first.bytes_per_hour is None else sum(leak.bytes_per_hour or 0 for leak in leaks)
    more = (
        f", and {len(leaks) - 1} more {'sizes or sites' if len(leaks) > 2 else 'size or site'}"
        if len(leaks) > 1
        else ""
    )
    total = sum(leak.bytes for leak in leaks)
    speed = f"{rate:,.3g} bytes a call" if hourly is None else _speed(hourly)
    text = f"{first.what}{more} ({total:,} bytes) are never freed, and their number rises in a straight line, {speed}"
    if reserve is not None and need is not None:
        spare = max(reserve - need, 0)
        calls = f"{spare / rate:,.0f} calls"
        until = calls if hourly is None else f"{hours_in_words(spare / hourly)} ({calls})"
        text += f"; a reserve of {reserve:,} bytes is used up {until} after the recording"
    why = "or a cache that still fills"
    if all(leak.confidence == "inconclusive" for leak in leaks):
        why = "or the program still builds up its data: most of what it allocates stays"
    return f"A leak in {name} ({first.confidence}), {why}: {text}."


def _speed(hourly: float) -> str:
    second = hourly / 3600
    return f"{second:,.3g} bytes a second" if second >= 1 else f"{hourly:,.3g} bytes an hour"


def hours_in_words(hours: float) -> str:
    """A duration in the largest unit of which it has two or more, as "33 min"."""
    if hours < 1 / 60:
        return f"{hours * 3600:,.3g} s"
    if hours < 2:
        return f"{hours * 60:,.0f} min"
    return f"{hours:,.3g} h" if hours < 72 else f"{hours / 24:,.0f} days"


def find_leaks(trace: Trace) -> tuple[Leak, ...]:
    """Return the leaks of a trace, that of most bytes a call first; empty if there is none. O(calls log calls)."""
    end = _end(trace)
    start = end // 3
    if end < LEAST_CALLS:
        return ()
    lives = _Lifetimes(trace, end)
    kept = lives.kept_since(start)
    allocated = int(np.count_nonzero((lives.birth >= start) & (lives.birth < end)))
    confidence: Literal["likely", "inconclusive"] = "inconclusive" if len(kept) > BUILDING * allocated else "likely"
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
    return tuple(replace(leak, confidence=confidence) for leak in sorted(found, key=lambda leak: -leak.bytes_per_call))


class _Lifetimes:
    """Birth, death (`end` if it is never freed), size and call site of each object, in order of birth."""

    def __init__(self, trace: Trace, end: int) -> None:
        number, count = number_objects(trace.op, trace.id)  # the trace's own would stay in memory
        self.end = end
        self.birth = np.full(count, end, np.int32)
        self.death = np.full(count, end, np.int32)
        self.size = np.zeros(count, np.uint32)
        self.site = np.zeros(count, trace.site.dtype)
        self._at_exit = np.zeros(count, bool)
        for start in range(0, end, _SLICE):
            calls = slice(start, min(start + _SLICE, end))
            objects, op = number[calls], trace.op[calls]
            births, frees, sized = np.flatnonzero(op <= CALLOC), np.flatnonzero(op == FREE), op != FREE
            self.birth[objects[births]] = births + start
            self.death[objects[frees]] = frees + start
            self.size[objects[sized]] = trace.size[calls][sized]  # the last request of an object is the one that stays
            self.site[objects[births]] = trace.site[calls][births]
        self._at_exit[number[end:][trace.op[end:] == FREE]] = True

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


def _frequent(keys: NDArray[np.integer[Any]]) -> list[int]:
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
    if after < LEAST_SLOPE * before or not _is_straight(lowest):
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


def _is_straight(lowest: NDArray[np.int64]) -> bool:
    """Whether counts rise as a straight line does, but for what few random moments of allocation bend it."""
    rise = float(lowest[-1] - lowest[0])
    line = np.linspace(lowest[0], lowest[-1], len(lowest))
    return bool(np.abs(lowest - line).max() <= max(BEND * rise, BEND_BY_CHANCE * np.sqrt(rise)))


def _lowest(lives: _Lifetimes, group: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """The lowest live count of a group in each window of the calls from `start` on."""
    moments = np.concatenate([lives.birth[group], lives.death[group]]).astype(np.int64)
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
