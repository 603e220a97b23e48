"""Differences of two traces, such as of two builds: totals, lifetimes, sizes and call sites."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.live_objects import Totals
from heapwright._traces.streams import Stream
from heapwright._traces.validation import FREE

PERCENTILES = (10, 50, 90, 99)

_BITS = 5
"""Bits of a lifetime that the histogram keeps below the highest: precision 1 / 2 ^ _BITS, 3 %."""


def diff(before: Stream, after: Stream) -> dict[str, Any]:
    """Compare two traces, such as of two builds of a program that did the same.

    Returns plain Python values, ready for JSON; `[a, b]` stands for before and after:

    - `traces`: `[a, b]`, their names; `caveats`: limits of what they record, in words; `repairs`: what reading dropped;
    - `totals`: key -> `[a, b]`: `events`, `requests` (malloc, calloc, realloc), `requested_bytes`,
      `requested_peak_bytes`, `live_objects_peak`, `distinct_sizes`, `never_freed_objects`, `never_freed_bytes` (at
      their last size), `threads`, `seconds` (None without times);
    - `lifetimes`: `p10`, `p50`, `p90`, `p99`, `max` -> `[a, b]`: calls between birth and death of freed objects, within
      3 % below; None where nothing is freed;
    - `sizes`: `[{"size", "requests": [a, b], "peak_bytes": [a, b]}, ...]`: how often a size is requested, and the bytes
      of such objects at the peak of live bytes; first what changed most at the peak, then in bytes requested;
    - `sites`: the same by `site`, the name of a call site; of an object, that of its latest request. Empty if
      neither trace names any.

    O(calls), in memory for the live objects, and the distinct sizes and sites.
    """
    pair = [_Described(item) for item in (before, after)]
    totals = [item.totals_by_key() for item in pair]
    lifetimes = [item.lifetimes() for item in pair]
    caveats = [f"{s.name}: {caveat}" for s in (before, after) for caveat in s.metadata.get("caveats", "").splitlines()]
    return {
        "traces": [before.name, after.name],
        "caveats": list(dict.fromkeys(caveats)),
        "repairs": [*before.repairs, *after.repairs],
        "totals": {key: [total[key] for total in totals] for key in totals[0]},
        "lifetimes": {key: [lifetime[key] for lifetime in lifetimes] for key in lifetimes[0]},
        "sizes": _rows("size", [item.sizes for item in pair]),
        "sites": _rows("site", [item.sites for item in pair]),
    }


class _Described:
    """One trace: its totals, its lifetimes, and by size and by site requests, bytes requested and bytes at the peak."""

    def __init__(self, trace: Stream) -> None:
        self._totals, self._lives = Totals(), LifetimeHistogram()
        self._sums = {"requests": 0, "requested_bytes": 0}
        by_size: dict[int, list[int]] = {}
        by_site = np.zeros((3, len(trace.sites)), np.int64)
        for window in trace.windows():
            asks = window["op"] != FREE
            size, site = window["size"][asks].astype(np.int64), window["site"][asks]
            row = np.arange(self._totals.events, self._totals.events + len(asks))
            _, born = self._totals.add(window)
            self._lives.add((row - born)[~asks])
            self._sums["requests"] += len(size)
            self._sums["requested_bytes"] += int(size.sum())
            for item, count in zip(*np.unique(size, return_counts=True), strict=True):
                by_size.setdefault(int(item), [0, 0, 0])[0] += int(count)
            by_site[0] += np.bincount(site, minlength=len(trace.sites))
            by_site[1] += np.bincount(site, size, len(trace.sites)).astype(np.int64)
        if self._totals.peak_bytes:
            alive = trace.alive_after(self._totals.peak_event)
            for item, count in zip(*np.unique(alive["size"], return_counts=True), strict=True):
                by_size[int(item)][2] += int(item) * int(count)
            by_site[2] = np.bincount(alive["site"], alive["size"], len(trace.sites))
        for item, sums in by_size.items():
            sums[1] = item * sums[0]
        self.sizes = by_size
        named = trace.sites != ("",)
        self.sites = {name: by_site[:, at].tolist() for at, name in enumerate(trace.sites)} if named else {}

    def totals_by_key(self) -> dict[str, int | float | None]:
        totals, remaining = self._totals, self._totals.living
        return {
            "events": totals.events,
            **self._sums,
            "requested_peak_bytes": totals.peak_bytes,
            "live_objects_peak": totals.peak_objects,
            "distinct_sizes": len(self.sizes),
            "never_freed_objects": len(remaining),
            "never_freed_bytes": int(remaining.columns["size"].sum(dtype=np.int64)),
            "threads": totals.threads,
            "seconds": totals.seconds,
        }

    def lifetimes(self) -> dict[str, int | None]:
        return self._lives.percentiles()


class LifetimeHistogram:
    """Histogram of lifetimes in calls, in steps of 3 %, so that memory does not grow with the trace."""

    def __init__(self) -> None:
        self._counts = np.zeros(64 << _BITS, np.int64)
        self._most: int | None = None

    def add(self, lifetimes: NDArray[np.int64]) -> None:
        """Count these."""
        if len(lifetimes):
            self._most = max(self._most or 0, int(lifetimes.max()))
            self._counts += np.bincount(_step(lifetimes), minlength=len(self._counts))

    def percentiles(self) -> dict[str, int | None]:
        """The lifetimes that these per cents of the objects do not exceed, and the longest; None without any."""
        if self._most is None:
            return {**{f"p{percent}": None for percent in PERCENTILES}, "max": None}
        covered = np.cumsum(self._counts)
        places = np.searchsorted(covered, [covered[-1] * percent / 100 for percent in PERCENTILES])
        info = {f"p{percent}": _least(int(place)) for percent, place in zip(PERCENTILES, places, strict=True)}
        return {**info, "max": self._most}


def _step(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The step that each number from 0 on lies in: the numbers below 2 ^ (_BITS + 1) have steps of their own."""
    exponent = np.frexp(values.astype(np.float64))[1].astype(np.int64)  # bits of the number
    shift = np.maximum(exponent - _BITS - 1, 0)
    return (shift << _BITS) + (values >> shift)


def _least(step: int) -> int:
    """The least number that lies in a step."""
    shift = max((step >> _BITS) - 1, 0)
    return (step - (shift << _BITS)) << shift


def _rows(key: str, pair: list[dict[Any, list[int]]]) -> list[dict[str, Any]]:
    before, after = pair
    rows = []
    for item in {**before, **after}:
        sums = list(zip(before.get(item, [0, 0, 0]), after.get(item, [0, 0, 0]), strict=True))
        rows.append(({key: item, "requests": list(sums[0]), "peak_bytes": list(sums[2])}, sums))
    rows.sort(key=lambda row: [-abs(b - a) for a, b in (row[1][2], row[1][1])])
    return [row for row, _ in rows]
