"""Classes of call sites by their objects: short-lived, long-lived, and of one size.

Sources: Barrett and Zorn 1993, section 4 (a site is short-lived if all its objects are; lives are counted in bytes
allocated meanwhile); Grunwald and Zorn 1993 (frequent sizes of a program get lists of their own).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._traces.validation import CALLOC, FREE

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

SiteClass = Literal["short", "long", "equal"]
CLASSES: tuple[SiteClass, ...] = get_args(SiteClass)

SHORT_SHARE = 1 / 4
"""A short life ends before requests add up to this share of the live peak."""

LONG_SHARE = 1 / 2
"""A long life spans requests of at least this share of all requested bytes, or ends with the trace."""

MOST_OF = 0.99
"""A site belongs to a class if at least this share of its objects do: any other object occupies memory of the class."""

SCARCE_SHARE = 0.9
"""Memory is scarce while at least this share of the peak is live: idle memory then enlarges the arena."""

EQUAL_OBJECTS = 16
"""Fewest objects from which a site is inferred to request only one size."""


@dataclass(frozen=True)
class SitesOfClass:
    """The sites of a class, and the memory of their objects.

    Attributes:
        sites: their names, those with the most objects first.
        live_bytes: bytes of their objects, each with 8 more and rounded up to 8, that are live at least whenever memory
            is scarce.
        sizes: requests of the class by bytes, ascending; empty unless all objects of a site have one size.
        counts: objects of each size that are live at least whenever memory is scarce.
    """

    sites: tuple[str, ...]
    live_bytes: int
    sizes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()


def site_classes(traces: Sequence[Trace], most: int = 256) -> dict[SiteClass, SitesOfClass]:
    """Classify call sites by the lives and sizes of their objects in all traces that name sites. O(calls x log calls).

    A site belongs to a class if at least `MOST_OF` of its objects do, in each trace in which it has any; to ``equal``
    if it has `EQUAL_OBJECTS` or more, all of one size. A site may be both ``short`` and ``equal``. Returns for each
    class the `most` sites with the most objects. Raises HeapwrightError if no trace names a site.
    """
    named = [trace for trace in traces if trace.sites != ("",)]
    if not named:
        raise HeapwrightError(f"{', '.join(trace.name for trace in traces)}: no call site is named; record with sites")
    objects = [_Objects(trace) for trace in named]
    return {kind: _sites_of(kind, objects, most) for kind in CLASSES}


def _sites_of(kind: SiteClass, traces: Sequence[_Objects], most: int) -> SitesOfClass:
    counts: Counter[str] = Counter()
    excluded: set[str] = set()
    for trace in traces:
        for name, objects, belongs in trace.judged(kind):
            counts[name] += objects
            if not belongs:
                excluded.add(name)
    names = tuple(name for name, _ in counts.most_common() if name and name not in excluded)[:most]
    sizes: dict[int, int] = {}
    for trace in traces if kind == "equal" else ():
        for size, count in trace.always_alive(names).items():
            sizes[size] = max(count, sizes.get(size, 0))
    live = max(trace.live_bytes(names) for trace in traces)
    ordered = tuple(sorted(sizes))
    return SitesOfClass(names, live, ordered, tuple(sizes[size] for size in ordered))


class _Objects:
    """The objects of a trace: call of allocation, lifetime and size."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._born = np.flatnonzero(trace.op <= CALLOC)
        death = trace.calls.deaths()[self._born]
        requested = np.cumsum(np.where(trace.op != FREE, trace.size, 0), dtype=np.int64)
        self._total, peak = int(requested[-1]), trace.peak_live_bytes
        self._scarce = trace.live_bytes >= SCARCE_SHARE * peak
        self._lasts = death < 0
        life = requested[np.where(self._lasts, len(trace) - 1, death)] - requested[self._born]
        self._holds: dict[SiteClass, NDArray[np.bool_]] = {
            "short": ~self._lasts & (life <= SHORT_SHARE * peak),
            "long": self._lasts | (life >= LONG_SHARE * self._total),
        }
        self._site, self._size = trace.site[self._born], np.maximum(trace.size[self._born], 1)
        number, count = trace.objects()
        resized = np.zeros(count, bool)
        resized[number[(trace.op != FREE) & (trace.op > CALLOC)]] = True
        self._number, self._resized = number, resized[number[self._born]]

    def judged(self, kind: SiteClass) -> list[tuple[str, int, bool]]:
        """Name and number of objects of each site, and whether it belongs to a class."""
        sites, inverse, counts = np.unique(self._site, return_inverse=True, return_counts=True)
        if kind == "equal":
            least, largest = np.full(len(sites), np.iinfo(np.int64).max), np.zeros(len(sites), np.int64)
            np.minimum.at(least, inverse, self._size)
            np.maximum.at(largest, inverse, self._size)
            resized = np.bincount(inverse, self._resized, len(sites)) > 0
            holds = (least == largest) & ~resized & (counts >= EQUAL_OBJECTS)
        else:
            holds = np.bincount(inverse, self._holds[kind], len(sites)) >= MOST_OF * counts
        names = self._trace.sites
        return [(names[site], int(count), bool(item)) for site, count, item in zip(sites, counts, holds, strict=True)]

    def _calls_of(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Mask of the calls on objects that are allocated at the named sites."""
        wanted = np.isin(np.array(self._trace.sites, dtype=object), list(names))
        chosen = np.zeros(len(self._size), bool)
        chosen[self._number[self._born]] = wanted[self._site]
        return chosen[self._number]

    def live_bytes(self, names: Sequence[str]) -> int:
        """Bytes of these sites' objects live at least whenever memory is scarce (`SitesOfClass.live_bytes`)."""
        mine = self._calls_of(names)
        blocks = np.where(mine, (self._trace.size.astype(np.int64) + 15) // 8 * 8, 0)
        live = np.empty(len(mine), np.int64)
        self._trace.calls.largest_live_sum(blocks, after=live)
        return int(live[self._scarce].min())

    def always_alive(self, names: Sequence[str]) -> dict[int, int]:
        """Least number of live objects of each size while memory is scarce, for sites that request one size each."""
        mine = self._calls_of(names)
        size = np.zeros(len(self._size), np.int64)
        size[self._number[self._born]] = self._size
        change = np.where(self._trace.op <= CALLOC, 1, np.where(self._trace.op == FREE, -1, 0))
        of_call = size[self._number]
        return {
            int(item): int(np.cumsum(change * (mine & (of_call == item)))[self._scarce].min())
            for item in np.unique(of_call[mine])
        }
