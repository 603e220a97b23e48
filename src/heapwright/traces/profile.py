"""What a trace or a packet table asks of memory: sizes, lifetimes, the live curve, and the order in which objects
die.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, REALLOC

if TYPE_CHECKING:
    pass

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]

FREQUENT_SHARE = 0.1
"""From this share of all requests a size deserves blocks of its own (Mamagkakis et al. 2007, "Middleware design
optimization of wireless protocols based on the exploitation of dynamic input patterns", proposed blocks).
"""

LOCALITY_WINDOWS = (1, 8, 64)
PERCENTILES = (10, 25, 50, 75, 90, 99)


class Objects(NamedTuple):
    """Every object of a trace in order of birth: int32 of shape (objects,), call of birth, call of death (-1:
    never).
    """

    birth: Int32s
    death: Int32s


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
    - `lifetimes`: see `lifetimes`; `never_freed`: `{"objects", "bytes", "share"}`, bytes at their last size, share of
      all objects;
    - `repairs`: what reading the trace dropped or changed, in words;
    - `locality`: see `locality_of_frees`; `free_order`: see `order_of_frees`.
    """
    operation = trace.op
    counts = np.array([np.count_nonzero(operation == kind) for kind in (MALLOC, CALLOC, REALLOC, FREE)])
    requests = trace.size[operation != FREE]
    live = _live(trace, points)
    objects = births_and_deaths(trace)
    never = objects.death < 0
    return {
        "name": trace.name,
        "events": len(operation),
        "mallocs": int(counts[MALLOC]),
        "callocs": int(counts[CALLOC]),
        "reallocs": int(counts[REALLOC]),
        "frees": int(counts[FREE]),
        "threads": len(np.unique(trace.tid)),
        "seconds": trace.seconds,
        "requests": len(requests),
        "requested_bytes": int(requests.sum(dtype=np.int64)),
        **describe_sizes(requests),
        "requested_peak_bytes": trace.peak_live_bytes,
        "requested_peak_event": live.peak_event,
        "live_objects_peak": trace.peak_live_objects,
        "live": live.sampled,
        "lifetimes": lifetimes(trace, objects),
        "never_freed": {
            "objects": int(never.sum()),
            "bytes": live.left,
            "share": float(never.mean()) if len(never) else 0.0,
        },
        "repairs": list(trace.repairs),
        "locality": locality_of_frees(objects),
        "free_order": order_of_frees(objects),
    }


class _Live(NamedTuple):
    """The call after which most bytes are live, the bytes after the last one, and samples of the curve."""

    peak_event: int
    left: int
    sampled: dict[str, list[int]]


def _live(trace: Trace, points: int) -> _Live:
    """The live curve; what it takes for every call is not kept."""
    live = np.empty(len(trace), np.int64)
    trace.calls.largest_live_sum(after=live)
    sample = sample_events(live, points)
    peak_event, left, bytes_ = int(live.argmax()), int(live[-1]), live[sample].tolist()
    del live
    born = np.cumsum(trace.op <= CALLOC, dtype=np.int32)[sample]
    freed = np.cumsum(trace.op == FREE, dtype=np.int32)[sample]
    return _Live(peak_event, left, {"event": sample.tolist(), "bytes": bytes_, "objects": (born - freed).tolist()})


def size_table(sizes: Ints) -> list[dict[str, Any]]:
    """Distinct sizes (bytes) with count and share of all, most frequent first, the smaller size first among equals."""
    values, counts = np.unique(sizes, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    total = max(len(sizes), 1)
    return [
        {"size": int(size), "count": int(count), "share": int(count) / total}
        for size, count in zip(values[order], counts[order], strict=True)
    ]


def births_and_deaths(trace: Trace) -> Objects:
    """The objects of a trace in order of birth; realloc keeps the object."""
    number, count = trace.objects()
    birth = np.flatnonzero(trace.op <= CALLOC).astype(np.int32)
    death = np.full(count, -1, dtype=np.int32)
    frees = np.flatnonzero(trace.op == FREE).astype(np.int32)
    death[number[frees]] = frees
    return Objects(birth, death)


def lifetimes(trace: Trace, objects: Objects) -> dict[str, Any]:
    """How long objects live, over those that are freed, on two clocks.

    `events`: calls from birth to death. `bytes`: bytes requested between birth and death, the clock
    that does not depend on how busy the program is otherwise (Barrett and Zorn 1993). Each holds `p10` ... `p99`,
    `max` (None without frees) and `histogram`: `[{"from", "to", "count"}, ...]` with bounds at powers of two, `to`
    excluded.
    """
    freed = objects.death >= 0
    birth, death = objects.birth[freed], objects.death[freed]
    events = _distribution(death - birth)
    clock = np.where(trace.op == FREE, np.uint32(0), trace.size).cumsum(dtype=np.int64)
    waited = clock[death]
    waited -= clock[birth]
    del clock
    return {"events": events, "bytes": _distribution(waited)}


def locality_of_frees(objects: Objects, windows: tuple[int, ...] = LOCALITY_WINDOWS) -> list[dict[str, Any]]:
    """Do objects that were born together die together? Mamagkakis et al. 2006 ("Reducing memory fragmentation in
    network applications", fourth common characteristic) say so of networks, Johnstone and Wilson 1998 ("The memory
    fragmentation problem: solved?") of programs in general; it is what makes coalescing work.

    Two objects born one right after the other, both alive, are neighbours. When one of them dies, does the other die
    within the next k frees? For each k: `{"within_frees": k, "share", "by_chance"}`. `by_chance` is what the same
    trace would show if every later free picked one of the live objects at random: the mean of 1 - (1 - 1/n)^k, with n
    objects alive after the first death. Both are None where no two neighbours were alive together.
    """
    deaths = np.sort(objects.death[objects.death >= 0])
    forever = np.iinfo(np.int32).max
    death = np.where(objects.death < 0, forever, objects.death)
    first, second = np.minimum(death[:-1], death[1:]), np.maximum(death[:-1], death[1:])
    together = (first != forever) & (death[:-1] > objects.birth[1:])
    first, second = first[together], second[together]
    dead = np.searchsorted(deaths, first).astype(np.int32)
    waited = np.searchsorted(deaths, second).astype(np.int32) - dead
    waited[second == forever] = forever
    alive = np.searchsorted(objects.birth, first).astype(np.int32) - dead - 1
    return [
        {
            "within_frees": window,
            "share": float((waited <= window).mean()) if len(first) else None,
            "by_chance": float((1 - (1 - 1 / alive) ** window).mean()) if len(first) else None,
        }
        for window in windows
    ]


def order_of_frees(objects: Objects) -> dict[str, Any]:
    """Which of the live objects dies: the youngest, as from a stack, or the oldest, as from a queue?

    Only objects that are freed some time count, so that what lives for ever does not make a queue look like a stack.
    `score` is the mean over all frees, with other objects alive, of (live objects older than the one freed) / (live
    objects - 1): 1 is a stack (LIFO), 0 a queue (FIFO), 0.5 no order. `youngest_share` and `oldest_share`: how often
    exactly the youngest or oldest is freed. All are None where no free had a choice.
    """
    freed = objects.death >= 0
    birth, death = objects.birth[freed], objects.death[freed]
    rank = np.empty(len(death), dtype=np.int32)
    rank[np.argsort(death)] = np.arange(len(death), dtype=np.int32)
    others = np.searchsorted(birth, death).astype(np.int32) - rank - 1
    del birth, death, freed
    older = _larger_before(rank)
    choice = others > 0
    older, others = older[choice], others[choice]
    if not len(others):
        return {"score": None, "youngest_share": None, "oldest_share": None}
    return {
        "score": float((older / others).mean()),
        "youngest_share": float((older == others).mean()),
        "oldest_share": float((older == 0).mean()),
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
    """For each element of a permutation: how many before it are larger.

    Two elements are told apart by the highest bit in which they differ. So the elements are parted bit by bit,
    stably, into groups that agree in all higher bits; in a group, an element whose bit is 0 is smaller than all
    before it whose bit is 1.
    """
    larger = np.zeros(len(rank), dtype=np.int32)
    order = np.arange(len(rank), dtype=np.int32)
    for bit in reversed(range(max(len(rank) - 1, 0).bit_length())):
        value = rank[order] >> bit
        ones = value & 1
        before = ones.cumsum(dtype=np.int32) - ones
        group = value >> 1
        start = np.searchsorted(group, group, side="left").astype(np.int32)
        larger[order] += (1 - ones) * (before - before[start])
        order = order[np.argsort(value, kind="stable")]
    return larger


def _distribution(values: Ints) -> dict[str, Any]:
    if not len(values):
        return {**{f"p{percent}": None for percent in PERCENTILES}, "max": None, "histogram": []}
    levels = np.percentile(values, PERCENTILES, method="inverted_cdf")
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
