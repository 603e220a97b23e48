"""Profile of a trace or a packet table: sizes, lifetimes, the live curve, and the order of frees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heapwright._traces.calls import Calls, number_objects
from heapwright._traces.failures import LEFT_OUT, failures_of
from heapwright._traces.holders import holders_of
from heapwright._traces.leaks import find_leaks
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]

FREQUENT_SHARE = 0.1
"""From this share of all requests a size deserves blocks of its own (Mamagkakis et al. 2007, "Middleware design
optimization of wireless protocols based on the exploitation of dynamic input patterns", proposed blocks).
"""

LOCALITY_WINDOWS = (1, 8, 64)
PERCENTILES = (10, 25, 50, 75, 90, 99)
MOMENTS = 300
"""Number of calls after which the holders of live bytes are sampled."""

_SLICE = 1 << 18
"""Calls or objects taken at a time, so that what is computed on the way does not grow with the trace."""
_PASSES = 16
"""Slices at most where each takes a pass over all objects."""


class Objects(NamedTuple):
    """Every object of a trace in order of birth: int32 of shape (objects,), call of birth, call of death (-1:
    never).
    """

    birth: Int32s
    death: Int32s

    def freed(self) -> Objects:
        """Objects that are freed."""
        dies = self.death >= 0
        return self if dies.all() else Objects(self.birth[dies], self.death[dies])


def profile(trace: Trace, points: int = 1000) -> dict[str, Any]:
    """Characterise a heap trace.

    Returns plain Python values, ready for JSON:

    - `name`, `events`, `mallocs`, `callocs`, `reallocs`, `frees`, `threads`, `seconds` (None where the trace has no
      times);
    - `requests`, `requested_bytes`: calls that ask for memory (malloc, calloc, realloc) and the sum of their sizes;
    - `sizes`: `[{"size", "count", "share"}, ...]`, share of the requests, most frequent first; `distinct_sizes`;
      `top_two_share`: the share of the two most frequent sizes together; `sizes_for_90_percent`: how few sizes make
      up 90 % of the requests (about 6 in most programs, two for 30 to 70 % in networks, say Johnstone and Wilson 1998
      and Mamagkakis et al. 2006);
    - `requested_peak_bytes`, `requested_peak_event`, `live_objects_peak`;
    - `live`: `{"event", "bytes", "objects"}`, at most `points` samples, the peak of the bytes among them;
    - `live_by`, `at_peak`: the holders of these bytes, at most `MOMENTS` samples and at the peak, see `holders_of`;
    - `lifetimes`: see `lifetimes`; `never_freed`: `{"objects", "bytes", "share"}`, bytes at their last size, share of
      all objects;
    - `caveats`: limits of what the trace records, in words; `repairs`: what reading it dropped or changed;
    - `leaks`: objects whose number rises in a straight line, each as `heapwright._traces.leaks.Leak`;
    - `failures`: requests that failed while it was recorded, as `heapwright._traces.failures.Failures`, {} for none;
    - `locality`: see `locality_of_frees`; `free_order`: see `order_of_frees`.
    """
    operation = trace.op
    counts = np.array([np.count_nonzero(operation == kind) for kind in (MALLOC, CALLOC, REALLOC, FREE)])
    requests = _requests(trace)
    live = _live(trace, points)
    holders = holders_of(Stream.of(trace), live.moments, live.peak_event)
    objects = births_and_deaths(trace)
    never = objects.death < 0
    failures = failures_of(trace) if trace.failed.any() or LEFT_OUT in trace.metadata else None
    return {
        "name": trace.name,
        "events": len(operation),
        "mallocs": int(counts[MALLOC]),
        "callocs": int(counts[CALLOC]),
        "reallocs": int(counts[REALLOC]),
        "frees": int(counts[FREE]),
        "threads": len(np.unique(trace.tid)),
        "seconds": trace.seconds,
        **requests,
        "requested_peak_bytes": live.peak_bytes,
        "requested_peak_event": live.peak_event,
        "live_objects_peak": live.peak_objects,
        "live": live.sampled,
        **holders,
        "lifetimes": lifetimes(trace, objects),
        "never_freed": {
            "objects": int(never.sum()),
            "bytes": live.left,
            "share": float(never.mean()) if len(never) else 0.0,
        },
        "caveats": list(trace.caveats),
        "repairs": list(trace.repairs),
        "leaks": [asdict(leak) for leak in find_leaks(trace)],
        "failures": asdict(failures) if failures else {},
        "locality": locality_of_frees(objects),
        "free_order": order_of_frees(objects),
    }


def _requests(trace: Trace) -> dict[str, Any]:
    """How many calls ask for memory, for how much, and in which sizes."""
    sizes = trace.size[trace.op != FREE]
    return {"requests": len(sizes), "requested_bytes": int(sizes.sum(dtype=np.int64)), **describe_sizes(sizes)}


class _Live(NamedTuple):
    """The most bytes and objects that are live, the call after which these bytes are, the bytes after the last call,
    samples of the curve, and at most `MOMENTS` calls of these.
    """

    peak_bytes: int
    peak_objects: int
    peak_event: int
    left: int
    sampled: dict[str, list[int]]
    moments: Int64s


def _live(trace: Trace, points: int) -> _Live:
    """The live curve; what it takes for every call is not kept."""
    live = np.empty(len(trace), np.int64)
    calls = Calls.of(trace.op, trace.id, trace.size, trace.align, trace.ts_us, trace.tid)  # the trace's own would stay
    peak_bytes, peak_objects = calls.largest_live_sum(after=live), calls.slots
    del calls
    sample, moments = sample_events(live, points), sample_events(live, MOMENTS)
    peak_event, remaining, bytes_ = int(live.argmax()), int(live[-1]), live[sample].tolist()
    del live
    change = (trace.op <= CALLOC).view(np.int8) - (trace.op == FREE).view(np.int8)
    objects = np.cumsum(change, dtype=np.int32)[sample].tolist()
    sampled = {"event": sample.tolist(), "bytes": bytes_, "objects": objects}
    return _Live(peak_bytes, peak_objects, peak_event, remaining, sampled, moments)


def size_table(sizes: Ints) -> list[dict[str, Any]]:
    """Distinct sizes (bytes) with count and share of all, most frequent first, the smaller size first among equals."""
    values, counts = np.zeros(0, sizes.dtype), np.zeros(0, np.int64)
    for part in _slices(len(sizes)):
        result, times = np.unique(sizes[part], return_counts=True)
        values, place = np.unique(np.concatenate((values, result)), return_inverse=True)
        counts = np.bincount(place, np.concatenate((counts, times))).astype(np.int64)
    order = np.argsort(-counts, kind="stable")
    total = max(len(sizes), 1)
    return [
        {"size": int(size), "count": int(count), "share": int(count) / total}
        for size, count in zip(values[order], counts[order], strict=True)
    ]


def births_and_deaths(trace: Trace) -> Objects:
    """The objects of a trace in order of birth; realloc keeps the object."""
    number, count = number_objects(trace.op, trace.id)
    birth, death = np.empty(count, np.int32), np.full(count, -1, np.int32)
    born = 0
    for part in _slices(len(trace)):
        births, frees = np.flatnonzero(trace.op[part] <= CALLOC), np.flatnonzero(trace.op[part] == FREE)
        birth[born : born + len(births)] = births + part.start
        death[number[part][frees]] = frees + part.start
        born += len(births)
    return Objects(birth, death)


def lifetimes(trace: Trace, objects: Objects) -> dict[str, Any]:
    """How long objects live, over those that are freed, on two clocks.

    `events`: calls from birth to death. `bytes`: bytes requested between birth and death, the clock
    that does not depend on how busy the program is otherwise (Barrett and Zorn 1993). Each holds `p10` ... `p99`,
    `max` (None without frees) and `histogram`: `[{"from", "to", "count"}, ...]` with bounds at powers of two, `to`
    excluded.
    """
    birth, death = objects.freed()
    return {"events": _distribution(death - birth), "bytes": _distribution(_bytes_waited(trace, birth, death))}


def _bytes_waited(trace: Trace, birth: Int32s, death: Int32s) -> Int64s:
    """Bytes requested between birth and death of each object."""
    waited, clock = np.zeros(len(birth), np.int64), np.zeros(1, np.int64)
    for part in _slices(len(trace), passes=_PASSES):
        requested = np.where(trace.op[part] == FREE, np.uint32(0), trace.size[part])
        clock = requested.cumsum(dtype=np.int64) + clock[-1]
        born = slice(*np.searchsorted(birth, (part.start, part.stop)))
        waited[born] -= clock[birth[born] - part.start]
        dying = np.flatnonzero((death >= part.start) & (death < part.stop))
        waited[dying] += clock[death[dying] - part.start]
    return waited


def locality_of_frees(objects: Objects, windows: tuple[int, ...] = LOCALITY_WINDOWS) -> list[dict[str, Any]]:
    """Locality of frees: whether objects that are allocated together are freed together.

    Mamagkakis et al. 2006 ("Reducing memory fragmentation in network applications", fourth common characteristic)
    observe this for networks, Johnstone and Wilson 1998 ("The memory fragmentation problem: solved?") for programs;
    coalescing depends on it.

    Two consecutive allocations, both live, are neighbours. When one of them is freed, is the other freed within the
    next k frees? For each k: `{"within_frees": k, "share", "by_chance"}`. `by_chance` is what the same
    trace would show if every later free picked one of the live objects at random: the mean of 1 - (1 - 1/n)^k, with n
    objects live after the first free. Both are None if no two neighbours were live together.
    """
    birth, death = objects
    deaths = np.sort(death[death >= 0])
    together, alive = 0, np.empty(max(len(birth) - 1, 0), np.int32)
    soon = np.zeros(len(windows), np.int64)
    for part in _slices(len(alive)):
        following = slice(part.start + 1, part.stop + 1)
        # As unsigned numbers, objects that are never freed die after all others.
        item, other = death[part].view(np.uint32), death[following].view(np.uint32)
        first, second = np.minimum(item, other).view(np.int32), np.maximum(item, other).view(np.int32)
        both = (first >= 0) & (item > birth[following].view(np.uint32))
        first, second = first[both], second[both]
        dead = np.searchsorted(deaths, first)
        waited = np.searchsorted(deaths, second) - dead
        soon += [np.count_nonzero((waited <= window) & (second >= 0)) for window in windows]
        alive[together : together + len(first)] = np.searchsorted(birth, first) - dead - 1
        together += len(first)
    del deaths
    alive = alive[:together]
    return [
        {
            "within_frees": window,
            "share": int(count) / together if together else None,
            "by_chance": _chance(alive, window) if together else None,
        }
        for window, count in zip(windows, soon, strict=True)
    ]


def _chance(alive: Int32s, window: int) -> float:
    """Mean probability that one of `alive` objects is among the next `window` that are picked at random."""
    chance = np.empty(len(alive))
    for part in _slices(len(alive)):
        chance[part] = 1 - (1 - 1 / alive[part]) ** window
    return float(chance.mean())


def order_of_frees(objects: Objects) -> dict[str, Any]:
    """Order of frees: the newest live object first, as from a stack, or the oldest, as from a queue.

    Only objects that are eventually freed count, because permanent objects would make a queue look like a stack.
    `score` is the mean over all frees, with other objects alive, of (live objects older than the one freed) / (live
    objects - 1): 1 is a stack (LIFO), 0 a queue (FIFO), 0.5 no order. `youngest_share` and `oldest_share`: how often
    exactly the newest or oldest is freed. All are None if no free had a choice.
    """
    birth, death = objects.freed()
    deaths, rank = np.sort(death), np.empty(len(death), np.int32)
    for part in _slices(len(death)):
        rank[part] = np.searchsorted(deaths, death[part])
    del deaths
    larger, share = _larger_before(rank), np.empty(len(death))
    choices = youngest = oldest = 0
    for part in _slices(len(death)):
        others = np.searchsorted(birth, death[part]).astype(np.int32) - rank[part] - 1
        choice = others > 0
        older, others = larger[part][choice], others[choice]
        share[choices : choices + len(others)] = older / others
        choices += len(others)
        youngest += np.count_nonzero(older == others)
        oldest += np.count_nonzero(older == 0)
    if not choices:
        return {"score": None, "youngest_share": None, "oldest_share": None}
    return {
        "score": float(share[:choices].mean()),
        "youngest_share": youngest / choices,
        "oldest_share": oldest / choices,
    }


def sample_events(values: Ints, points: int) -> Int64s:
    """At most `points` indices into `values`, evenly spread, each the largest of its stretch; the first and the last
    are kept.
    """
    if len(values) <= points:
        return np.arange(len(values), dtype=np.int64)
    edges = np.linspace(0, len(values), points - 1).astype(np.int64)
    largest = [start + int(values[start:end].argmax()) for start, end in pairwise(edges)]
    return np.unique(np.array([0, *largest, len(values) - 1], dtype=np.int64))


def describe_sizes(sizes: Ints) -> dict[str, Any]:
    """The counts by size of `profile`, from `sizes` on, for requests of these sizes (integers[requests], bytes)."""
    table = size_table(sizes)
    covered = np.cumsum([row["count"] for row in table])
    return {
        "distinct_sizes": len(table),
        "sizes": table,
        "top_two_share": sum(row["share"] for row in table[:2]),
        "sizes_for_90_percent": int(np.searchsorted(covered, 0.9 * len(sizes))) + 1 if table else 0,
    }


def _larger_before(rank: Int32s) -> Int32s:
    """For each element of a permutation of 0, 1, ...: how many before it are larger.

    Slice by slice: those of earlier slices are counted among all, those of its own by `_larger_before_within`.
    """
    larger = np.empty(len(rank), np.int32)
    seen = np.zeros(len(rank), np.bool_)
    for part in _slices(len(rank), passes=_PASSES):
        own = rank[part]
        larger[part] = _larger_before_within(own) + (part.start - seen.cumsum(dtype=np.int32)[own])
        seen[own] = True
    return larger


def _larger_before_within(rank: Int32s) -> Int32s:
    """For each number of a permutation: how many before it are larger.

    The highest differing bit decides which of two numbers is larger. So they are split bit by bit, stably, into
    groups that agree in all higher bits; in a group, a number whose bit is 0 is smaller than all before it whose bit
    is 1.
    """
    larger = np.zeros(len(rank), dtype=np.int32)
    order = np.arange(len(rank), dtype=np.int32)
    for bit in reversed(range(int(rank.max(initial=0)).bit_length())):
        value = rank[order] >> bit
        ones = value & 1
        before = ones.cumsum(dtype=np.int32) - ones
        group = value >> 1
        start = np.searchsorted(group, group, side="left")
        larger[order] += (1 - ones) * (before - before[start])
        order = order[np.argsort(value, kind="stable")]
    return larger


def _slices(count: int, passes: int | None = None) -> Iterator[slice]:
    """0 to `count` in slices of `_SLICE`, or larger ones so that there are no more than `passes`."""
    step = _SLICE if passes is None else max(_SLICE, -(-count // passes))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _distribution(values: Ints) -> dict[str, Any]:
    """Percentiles and octaves of `values`, whose order is lost."""
    if not len(values):
        return {**{f"p{percent}": None for percent in PERCENTILES}, "max": None, "histogram": []}
    levels = np.percentile(values, PERCENTILES, method="inverted_cdf", overwrite_input=True)
    result: dict[str, Any] = {f"p{percent}": int(level) for percent, level in zip(PERCENTILES, levels, strict=True)}
    result["max"] = int(values.max())
    result["histogram"] = _octaves(values)
    return result


def _octaves(values: Ints) -> list[dict[str, int]]:
    edges = np.concatenate(([0], 2 ** np.arange(int(values.max()).bit_length() + 1)))
    counts = np.histogram(values, edges)[0]
    # numpy's last bin includes its upper bound; that bound is above the largest value, so no value lies on it.
    return [
        {"from": int(start), "to": int(end), "count": int(count)}
        for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count or start
    ]
