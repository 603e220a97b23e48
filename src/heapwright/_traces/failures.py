"""Failed requests of a recording: the trace holds them as if they had been served, for a life that can be set.

A recording cannot show when the program would have freed an object that it never got. The life of one that a realloc
asked for is that of the object that it should have resized. Any other's is taken from the objects of its size that were
served: the call count that `SHARE` of them live at most, to the end where that many are never freed. If they are fewer
than `NEAREST`, those nearest in size fill up to that number; then no more failed requests of the size live at once than
of these objects, or than hold as many bytes as all objects that were served: a request that a program repeats for hours
is not counted each time as an object that stays. bench/robustness.md says on which recordings this was tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE

SHARE = 0.9
"""Share of the objects of a size that live no longer than a failed request of that size is taken to."""

NEAREST = 10
"""Objects of which a life is taken at least: if fewer have the size, those nearest in size count, too."""

BEYOND = 16
"""A failed request larger than this multiple of the peak of served requests, and than `LEAST_BEYOND`, is a probe or an
error of the program: no memory is reserved for it, and it is left out."""

LEAST_BEYOND = 1 << 20
"""Bytes; smaller requests always count."""

LEFT_OUT = "failed_left_out"
"""Key of a trace's metadata: how many failed requests were left out as `BEYOND` says, and the largest."""

LIFE = "failed_life"
"""Key of a trace's metadata: the life of its failed requests, in words."""

CHANGE_LIFE = "heapwright import --failed-life CALLS sets another life"
"""How the life of failed requests is changed, in words."""

ARENA = "arena"
"""Key of a trace's metadata: bytes of the heap that it was recorded on, if that is known and requests failed."""

LINKED = 2
"""In the column `failed`: a realloc that failed; its object lives as long as the one that it should have resized."""

_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Failures:
    """Requests that failed while a trace was recorded.

    Attributes:
        count: of them.
        sizes: requested size in bytes -> failures, the most frequent first.
        sites: call site -> failures, the most frequent first; empty if the trace names none.
        first: index of the first failed call; with `count` 0 it is -1.
        live_bytes: requested bytes of served objects that were live at the first failure.
        served_peak_bytes: peak of requested live bytes without the failed requests.
        peak_bytes: the same with them.
        life: how long their objects live in the trace, in words.
        left_out: requests that are left out as `BEYOND` says, in words; "" for none.
        first_seconds: time of the first failed call from the start of the trace; None if the trace has no times.
        arena_bytes: size of the heap that it was recorded on; None if it is not known.
    """

    count: int
    sizes: Mapping[int, int]
    sites: Mapping[str, int]
    first: int
    live_bytes: int
    served_peak_bytes: int
    peak_bytes: int
    life: str
    left_out: str = ""
    first_seconds: float | None = None
    arena_bytes: int | None = None

    def __bool__(self) -> bool:
        return self.count > 0 or bool(self.left_out)

    @property
    def free_bytes(self) -> int | None:
        """Bytes of the heap that no live object had requested at the first failure; None if its size is not known."""
        return None if self.arena_bytes is None else max(self.arena_bytes - self.live_bytes, 0)

    def __str__(self) -> str:
        """One sentence for people, without a full stop: how many, which sizes, when, with what free, and their life."""
        if not self.count:
            return f"left out: {self.left_out}" if self.left_out else "no request failed"
        shown = ", ".join(f"{count:,} x {size:,} B" for size, count in list(self.sizes.items())[:3])
        more = f" and {len(self.sizes) - 3} more sizes" if len(self.sizes) > 3 else ""
        plural = "s" * (self.count != 1)
        when = "" if self.first_seconds is None else f" ({self.first_seconds:,.3g} s)"
        free = "" if self.free_bytes is None else f" and {self.free_bytes:,} B of the heap free"
        first = f"the first at call {self.first:,}{when} with {self.live_bytes:,} B live{free}"
        return (
            f"{self.count:,} request{plural} failed in the recording ({shown}{more}), {first}: counted as served, "
            f"{self.life}; "
            f"peak {self.peak_bytes:,} B live with them, {self.served_peak_bytes:,} B without"
            f"{f'; left out: {self.left_out}' if self.left_out else ''}"
        )


def failures_of(trace: Trace) -> Failures:
    """Summarise the failed requests of a trace. O(calls)."""
    rows = np.flatnonzero(trace.failed)
    peak = trace.peak_live_bytes
    if not len(rows):
        return Failures(0, {}, {}, -1, 0, peak, peak, "", trace.metadata.get(LEFT_OUT, ""))
    served = served_live_bytes(trace)
    sizes = Counter(trace.size[rows].tolist())
    sites = Counter(trace.sites[site] for site in trace.site[rows].tolist() if trace.sites[site])
    return Failures(
        count=len(rows),
        sizes=dict(sizes.most_common()),
        sites=dict(sites.most_common()),
        first=int(rows[0]),
        live_bytes=int(served[rows[0]]),
        served_peak_bytes=int(served.max()),
        peak_bytes=peak,
        life=trace.metadata.get(LIFE, "each freed at once"),
        left_out=trace.metadata.get(LEFT_OUT, ""),
        first_seconds=float(trace.ts_us[rows[0]] - trace.ts_us[0]) / 1e6 if trace.seconds is not None else None,
        arena_bytes=int(arena) if (arena := trace.metadata.get(ARENA, "")).isdecimal() else None,
    )


def served_live_bytes(trace: Trace) -> NDArray[np.int64]:
    """Requested live bytes after each call without the objects of failed requests, int64[calls]. O(calls)."""
    objects, failed = trace.objects()[0], _failed_objects(trace)
    after = np.empty(len(trace), np.int64)
    trace.calls.largest_live_sum(np.where(failed[objects], 0, trace.size).astype(np.int64), after=after)
    return after


def _failed_objects(trace: Trace) -> NDArray[np.bool_]:
    """Which objects are those of failed requests, bool[objects]."""
    objects, count = trace.objects()
    result = np.zeros(count, bool)
    result[objects[trace.failed > 0]] = True
    return result


def with_life(trace: Trace, life: int | None = None, resizes: Sequence[tuple[int, int]] = ()) -> Trace:
    """The trace with other lives of its failed requests; itself if none failed.

    Args:
        trace: any.
        life: calls from each failed request to the free of its object; None takes that of served objects of its size,
            as the module says.
        resizes: ids of the objects of failed reallocs, and of the objects that they should have resized: with no `life`
            they live until those are resized or freed.

    Raises ParameterError for a life below 0. O(calls log calls).
    """
    if life is not None and life < 0:
        raise ParameterError(f"life {life}: a number of calls, 0 or more", parameter="failed_life")
    if not trace.failed.any():
        return trace
    trace = _without_probes(_linked(trace, resizes) if life is None else trace)
    objects, failed = trace.objects()[0], _failed_objects(trace)
    kept = np.flatnonzero(~(failed[objects] & (trace.op == FREE)))
    asked = np.flatnonzero(trace.failed[kept])
    if life is None:
        each = _lives_of(trace, kept, failed)
        linked = trace.failed[kept][asked] == LINKED
        each[linked] = _lives_so_far(trace, kept)[asked[linked]]
    else:
        each = np.full(len(asked), life, np.int64)
    ends = each < len(kept) - asked
    frees = kept[asked[ends]]
    row = np.concatenate([kept, frees])
    place = np.concatenate([2 * np.arange(len(kept)), 2 * (asked + np.maximum(each, 1))[ends] - 1])
    order = np.argsort(place, kind="stable")
    row, is_free = row[order], order >= len(kept)
    before = np.minimum(place[order] // 2, len(kept) - 1)
    of_calls = np.where(is_free, 0, 1)
    return trace.select(
        row,
        notes={LIFE: _in_words(each, life)},
        op=np.where(is_free, FREE, trace.op[row]),
        ts_us=trace.ts_us[kept][before],
        failed=np.minimum(trace.failed[row], LINKED if life is None else 1) * of_calls,
        **{key: getattr(trace, key)[row] * of_calls for key in ("size", "align", "low")},
    )


def _linked(trace: Trace, resizes: Sequence[tuple[int, int]]) -> Trace:
    """The trace in which failed reallocs live until the object that each should have resized is resized or freed."""
    if not resizes:
        return trace
    of = dict(resizes)
    rows: dict[int, list[int]] = {number: [] for number in of.values()}
    ids = trace.id
    for row in np.flatnonzero(np.isin(ids, [*rows]) & (trace.op > CALLOC)).tolist():
        rows[int(ids[row])].append(row)
    asked = np.flatnonzero((trace.failed > 0) & np.isin(ids, [*of]))
    for row in asked.tolist():
        rows[of[int(ids[row])]].append(row)
    place, failed, gone = 2 * np.arange(len(trace)), trace.failed.copy(), np.zeros(len(trace), bool)
    frees = {int(ids[row]): row for row in np.flatnonzero((trace.op == FREE) & np.isin(ids, [*of])).tolist()}
    for row in asked.tolist():
        number = int(ids[row])
        later = [end for end in rows[of[number]] if end > row]
        failed[row] = LINKED
        if later:
            place[frees[number]] = 2 * min(later) - 1
        else:
            gone[frees[number]] = True
    order = np.argsort(place, kind="stable")
    order = order[~gone[order]]
    moved = trace.op[order] == FREE
    before = np.where(moved, np.minimum(place[order] // 2, len(trace) - 1), order)
    return trace.select(order, failed=failed[order], ts_us=trace.ts_us[before])


def _lives_so_far(trace: Trace, kept: NDArray[np.intp]) -> NDArray[np.int64]:
    """Row of `kept` -> calls of `kept` from the birth of its object to its free, `_FOREVER` if it is never freed."""
    objects, count = trace.objects()
    death = np.full(count, -1, np.int64)
    frees = np.flatnonzero(trace.op == FREE)
    death[objects[frees]] = frees
    ends = death[objects[kept]]
    lives: NDArray[np.int64] = np.where(ends < 0, _FOREVER, np.searchsorted(kept, ends) - np.arange(len(kept)))
    return lives


def _without_probes(trace: Trace) -> Trace:
    """The trace without failed requests that are far beyond all that was served."""
    limit = max(BEYOND * int(served_live_bytes(trace).max()), LEAST_BEYOND)
    probes = (trace.failed > 0) & (trace.size > limit)
    if not probes.any():
        return trace
    objects, count = trace.objects()
    gone = np.zeros(count, bool)
    gone[objects[probes]] = True
    kept = np.flatnonzero(~gone[objects])
    if not len(kept):
        return trace
    number = int(np.count_nonzero(probes))
    words = f"{number:,} failed request{'s' * (number != 1)} of up to {int(trace.size[probes].max()):,} B, more than"
    return trace.select(kept, notes={LEFT_OUT: f"{words} {BEYOND} times what was served"})


class _Served(NamedTuple):
    """Served objects in the order of their sizes: size in bytes, birth and death, `_FOREVER` if never freed.

    `peak_bytes` is the largest sum of live requested bytes of all of them.
    """

    size: NDArray[np.int64]
    birth: NDArray[np.int64]
    death: NDArray[np.int64]
    peak_bytes: int

    @classmethod
    def of(cls, trace: Trace, kept: NDArray[np.intp], failed: NDArray[np.bool_]) -> _Served:
        """Served objects of a trace, with rows of `kept` as birth and death; `failed` are the objects that were not."""
        objects, op = trace.objects()[0][kept], trace.op[kept]
        count = len(failed)
        birth, death, size = np.zeros(count, np.int64), np.full(count, _FOREVER), np.zeros(count, np.int64)
        rows, births = np.arange(len(kept)), op <= CALLOC
        birth[objects[births]], size[objects[births]] = rows[births], trace.size[kept][births]
        death[objects[op == FREE]] = rows[op == FREE]
        served = np.flatnonzero(~failed)
        served = served[np.argsort(size[served], kind="stable")]
        return cls(size[served], birth[served], death[served], int(served_live_bytes(trace).max()))

    def like(self, wanted: int) -> NDArray[np.int64]:
        """Indices of the objects of `wanted` bytes and, if they are fewer than `NEAREST`, of those nearest in size."""
        begin, end = (int(np.searchsorted(self.size, wanted, side)) for side in ("left", "right"))
        below = np.arange(max(begin - NEAREST, 0), begin)
        others = np.concatenate([below, np.arange(end, min(end + NEAREST, len(self.size)))])
        distance = np.abs(np.log(np.maximum(self.size[others], 1) / wanted))
        nearest = others[np.argsort(distance, kind="stable")][: max(NEAREST - (end - begin), 0)]
        return np.concatenate([np.arange(begin, end), nearest])

    def lives(self, wanted: int, asked: NDArray[np.intp]) -> NDArray[np.int64]:
        """Calls that each failed request of `wanted` bytes lives, made before the calls `asked`, in order."""
        same = self.like(wanted)
        if not len(same):
            return np.zeros(len(asked), np.int64)
        life = _calls_between(self.birth[same], self.death[same])
        estimate = int(np.quantile(life, SHARE, method="higher"))
        result = np.full(len(asked), estimate)
        if np.count_nonzero(self.size[same] == wanted) >= NEAREST:
            return result
        most = max(_most_at_once(self.birth[same], self.death[same]), self.peak_bytes // wanted)
        result[: max(len(asked) - most, 0)] = np.minimum(estimate, asked[most:] - asked[: max(len(asked) - most, 0)])
        return result


def _calls_between(birth: NDArray[np.int64], death: NDArray[np.int64]) -> NDArray[np.int64]:
    result: NDArray[np.int64] = np.where(death == _FOREVER, _FOREVER, death - birth)
    return result


def _most_at_once(birth: NDArray[np.int64], death: NDArray[np.int64]) -> int:
    """How many of some objects are live at once at most."""
    moments = np.concatenate([birth, death])
    change = np.repeat([1, -1], len(birth))
    return int(np.cumsum(change[np.lexsort((change, moments))]).max())


def _lives_of(trace: Trace, kept: NDArray[np.intp], failed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Calls that each failed request lives, from served objects of its size or the nearest, int64[failed requests]."""
    asked = np.flatnonzero(trace.failed[kept])
    sizes, served = trace.size[kept][asked], _Served.of(trace, kept, failed)
    result = np.zeros(len(asked), np.int64)
    for wanted in np.unique(sizes).tolist():
        of_size = np.flatnonzero(sizes == wanted)
        result[of_size] = served.lives(wanted, asked[of_size])
    return result


def _in_words(lives: NDArray[np.int64], life: int | None) -> str:
    if life is not None:
        return f"each for {life:,} calls" if life else "each freed at once"
    if not lives.any():
        return "each freed at once, as no request was served"
    finite = lives[lives < _FOREVER]
    if not len(finite):
        return "each to the end, as most served objects of their sizes or the nearest"
    low, high = int(finite.min()), int(finite.max())
    to_end = len(lives) - len(finite)
    words = f"each for {low:,} calls" if low == high else f"for {low:,} to {high:,} calls"
    return f"{words}{f' ({to_end:,} to the end)' if to_end else ''}, as served objects of their sizes or the nearest"
