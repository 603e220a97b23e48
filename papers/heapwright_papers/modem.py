"""A multi-channel modem concentrator: Tables 1 to 3, Figure 5, and what the paper leaves as future work.

Peintner, Bukhatwa and Patel, "Analysing dynamic memory allocation in embedded systems for multi-channel modems".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import FREE, HEAP_MAP_STATES, MALLOC, REALLOC, Recipe, Trace, heap_map, zoo
from heapwright_papers import measuring
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import Metrics, finish, metrics, page_of, seen
from heapwright_papers.measuring import each, replayed, spread
from heapwright_papers.page import ALIGN, Page

FOUR = {
    "first fit, slow free": "first-fit-slow-free",
    "first fit, fast free": "first-fit-fast-free",
    "best fit, slow free": "best-fit-slow-free",
    "best fit, fast free": "best-fit-fast-free",
}
FIRST_SLOW, FIRST_FAST, BEST_SLOW, BEST_FAST = FOUR
FIRST_TREE, BEST_TREE = "first fit, tree", "best fit, tree"
FITS = {"first": "first fit", "best": "best fit"}
LEVELS = ("O0", "Os")
CALLS, SEEDS = 1000, (1, 2, 3, 4, 5)
LENGTHS = (10, 30, 100, 300, 1000, 3000)
"""Modem calls of the runs that show how fragments grow."""
FULL = 0.9
"""The crucial state for response times: calls at which at least this share of the most live blocks are live."""
INSTANCES = (1, 2, 5, 10, 20, 50)
CALLS_AN_INSTANCE = 100
THE_PAPERS, MEMORY = 5, 128 * 1024
"""Instances of the paper's board, and bytes of memory that they share."""
SPLITS_OF = 100
"""Modem calls of the run whose blocks are counted after each call."""

ORDERS, COALESCE = ("lifo", "fifo", "address"), ("immediate", "deferred")


@dataclass(frozen=True)
class Swaps:
    """The swaps of a run, and among them those of connected calls, whose line got worse.

    Attributes:
        contexts: bytes that the instance holds when a swap begins.
        connected: which of the swaps are of connected calls.
        copy: instructions to copy a byte; None if this machine cannot measure them.
    """

    contexts: NDArray[np.int64]
    connected: NDArray[np.bool_]
    copy: float | None

    def context(self, connected: bool) -> float:
        """Mean bytes that a swap copies, of all or of connected calls."""
        return float(self.contexts[self.connected].mean() if connected else self.contexts.mean())

    def allocator(self, response: Metrics, connected: bool) -> float | None:
        """Mean instructions that a swap spends in the allocator."""
        if response.inside is None:
            return None
        inside = sum(response.inside[phase] for phase in (("retrain",) if connected else ("swap", "retrain")))
        return float(inside) / int(self.connected.sum() if connected else len(self.contexts))


@dataclass(frozen=True)
class Results:
    """All that the page reports; orders by fit and order, splits by the way of coalescing."""

    traces: list[Trace]
    heaps: dict[str, Metrics]
    swaps: Swaps
    lengths: list[Metrics]
    splits: dict[str, float]
    orders: dict[tuple[str, str], float]

    def mean_share(self, label: str, part: str) -> float:
        """Mean share of a part of memory over the seeds."""
        return mean(float(item[part] / item.physical) for item in self.heaps[label].peaks)

    def length(self, calls: int, fit: str, coalesce: str = "immediate") -> Metrics:
        """The runs of this number of calls."""
        return next(item for item in self.lengths if (item.calls, item.fit, item.coalesce) == (calls, fit, coalesce))


def one_list(name: str = "", **how: Any) -> Recipe:
    """A list of free blocks, kept in this way."""
    return Recipe(name=name, align=ALIGN, pools=(hw.pools.General(**how),))


def heaps() -> dict[str, Recipe]:
    """The paper's four allocators, and both fits from a search tree of free blocks, with boundary tags."""
    trees = {f"{name}, tree": one_list(f"{name}, tree", free_list="tree", fit=fit) for fit, name in FITS.items()}
    return {label: zoo(name) for label, name in FOUR.items()} | trees


def peak(trace: Trace, recipe: Recipe) -> Metrics:
    """Table 1's split of the smallest arena that serves a trace, in bytes, when most is live for the first time."""
    physical = int(replayed(trace, recipe, fit=True)["smallest_arena_bytes"] or 0)
    until = hw.cut(trace, first=int(trace.live_bytes.argmax()) + 1, close=False)
    map_ = heap_map(until, recipe, columns=2)
    last = map_["blocks"][map_["blocks"]["column"] == 1]
    bytes_of = {state: int(last["size"][last["state"] == at].sum()) for at, state in enumerate(HEAP_MAP_STATES)}
    used, headers, control = (bytes_of[state] for state in ("payload in use", "header", "control data"))
    return metrics("modem", "peak", physical=physical, used=used, headers=headers, control=control)


def crucial(trace: Trace) -> NDArray[np.bool_]:
    """The calls at which the number of blocks is near its maximum."""
    near: NDArray[np.bool_] = trace.live_objects >= FULL * trace.live_objects.max()
    return near


def measure(progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Results:
    """All runs, on all processors; `most` is the largest number of instances."""
    traces = [hw.workload("modem", calls=calls, seed=seed) for seed in SEEDS]
    counts = [count for count in INSTANCES if count <= most]
    progress("modem: allocators")
    result = each(lambda recipe: of_heap(recipe, traces, counts), heaps())
    progress("modem: orders of a list")
    ordered = list(product(FITS, ORDERS))
    orders = dict(zip(ordered, spread(lambda way: _fragments(traces, *way), ordered), strict=True))
    progress("modem: lengths of a run")
    lengths = [count for count in LENGTHS if count <= 3 * calls]
    runs = {count: [hw.workload("modem", calls=count, seed=seed) for seed in SEEDS] for count in lengths}
    ways = spread(lambda way: _length(runs[way[0]], *way), product(runs, FITS, COALESCE))
    splits = {coalesce: _splits(coalesce) for coalesce in COALESCE}
    return Results(traces, result, swaps_of(traces[0]), ways, splits, orders)


def of_heap(recipe: Recipe, traces: Sequence[Trace], instances: Iterable[int]) -> Metrics:
    """What an allocator makes of the runs: `peaks` by seed, `scaled` by the number of instances, `sizes` by level."""
    scaled = {}
    for count in instances:
        trace = _instances(count)
        result = replayed(trace, recipe)
        scaled[count] = metrics("modem", "scaled", result, calls=len(trace), blocks=trace.peak_live_objects)
    peaks, sizes = [peak(trace, recipe) for trace in traces], measuring.code_sizes(recipe, LEVELS)
    return Metrics(peaks=peaks, response=_response(traces[0], recipe), sizes=sizes, scaled=scaled)


# ---- response times ------------------------------------------------------------------------------------------------


def _response(trace: Trace, recipe: Recipe) -> Metrics:
    near = Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=crucial(trace).astype(int), phases=("else", "full")
    )
    whole, full = measuring.on_target(recipe, _retrains_apart(trace), near) or (None, None)
    return metrics("modem", "response", replayed(trace, recipe), calls=len(trace), whole=whole, full=full)


def _swaps(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The first call of each swap, which swaps are of connected calls, and which calls are in these.

    A swap is at one time, in one instance; those that replace the unit that negotiates are of no connected call.
    """
    inside = np.flatnonzero(trace.phase == trace.phases.index("swap"))
    places = np.column_stack([trace.ts_us[inside], trace.tid[inside]])
    _, first, which = np.unique(places, axis=0, return_index=True, return_inverse=True)
    connected = trace.site[inside[first]] != trace.sites.index("negotiation")
    calls = np.zeros(len(trace), np.bool_)
    calls[inside[connected[which.reshape(-1)]]] = True
    return inside[first], connected, calls


def _retrains_apart(trace: Trace) -> Trace:
    """The trace with swaps of connected calls in a phase of their own."""
    phase = np.where(_swaps(trace)[2], len(trace.phases), trace.phase)
    return Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=phase, phases=(*trace.phases, "retrain"), name=trace.name
    )


def swaps_of(trace: Trace) -> Swaps:
    """The swaps of a run, with what each instance holds."""
    sizes = {int(id_): int(size) for id_, size, op in zip(trace.id, trace.size, trace.op, strict=True) if op == MALLOC}
    held: dict[int, int] = {}
    before = np.empty(len(trace), np.int64)
    for row, (tid, id_, op) in enumerate(zip(trace.tid.tolist(), trace.id.tolist(), trace.op.tolist(), strict=True)):
        before[row] = held.get(tid, 0)
        held[tid] = held.get(tid, 0) + (-sizes[id_] if op == FREE else sizes[id_])
    first, connected, _ = _swaps(trace)
    return Swaps(before[first], connected, _copy_of_a_byte())


def _copy_of_a_byte() -> float | None:
    """Instructions that the copy of a realloc which moves takes for a byte; None where nothing can be measured."""
    sizes = (1024, 5120)
    traces = [Trace.from_columns(op=[MALLOC, REALLOC], id=[0, 0], size=[size, size]) for size in sizes]
    info = measuring.on_target(one_list(resize="move"), *traces)
    if info is None:
        return None
    few, many = (item["calls"]["realloc"]["instructions_mean"] for item in info)
    return float(many - few) / (sizes[1] - sizes[0])


# ---- fragments -----------------------------------------------------------------------------------------------------


def _fragments(traces: Sequence[Trace], fit: str, order: str) -> float:
    """Mean share of fragments of a list of free blocks in some order."""
    peaks = (peak(trace, one_list(fit=fit, order=order)) for trace in traces)
    return mean(float(item.fragments / item.physical) for item in peaks)


def _walking(fit: str, coalesce: str) -> Recipe:
    """The paper's allocator with slow free, or with deferred coalescing, which needs no previous block."""
    return one_list(free_list="implicit", boundary_tags=False, fit=fit, coalesce=coalesce)


def _length(traces: Sequence[Trace], calls: int, fit: str, coalesce: str) -> Metrics:
    """One way of coalescing in runs of this number of modem calls, a value for each seed."""
    recipe = _walking(fit, coalesce)
    accesses = [float(replayed(trace, recipe)["accesses"] or 0) / len(trace) for trace in traces]
    peaks = [peak(trace, recipe) for trace in traces]
    return metrics("modem", "length", calls=calls, fit=fit, coalesce=coalesce, peaks=peaks, accesses=accesses)


def _splits(coalesce: str) -> float:
    """Share of the mallocs of first fit after which there is a block more."""
    trace = hw.workload("modem", calls=SPLITS_OF, seed=1)
    runs = heap_map(trace, _walking("first", coalesce), columns=len(trace))["blocks"]
    headers = runs[runs["state"] == HEAP_MAP_STATES.index("header")]
    blocks = np.bincount(headers["column"], weights=headers["size"], minlength=len(trace))
    more = np.diff(blocks, prepend=0.0) > 0
    return float(more[trace.op == MALLOC].mean())


# ---- instances -----------------------------------------------------------------------------------------------------


@cache
def _instances(count: int) -> Trace:
    """A run in which each instance has its share of the memory."""
    return hw.workload(
        "modem", instances=count, calls=CALLS_AN_INSTANCE * count, memory=MEMORY * count // THE_PAPERS, seed=1
    )


def one_call() -> Metrics:
    """A call on a board with one instance: its calls of the allocator, the units that it enters, and its moments.

    `units` are rows of a unit, that entered before it, and the number and bytes of its blocks; `moments`, by name after
    how many calls the instance is idle, connected, and idle again.
    """
    trace = hw.workload("modem", calls=1, instances=1, seed=1)
    asked = trace.op == MALLOC
    entered = [trace.sites[site] for site in dict.fromkeys(trace.site[asked].tolist())]
    sizes = {unit: trace.size[asked & (trace.site == trace.sites.index(unit))] for unit in entered}
    before = dict(zip(entered, ["–", *entered[:-1]], strict=True))
    units = [[unit, before[unit], len(sizes[unit]), int(sizes[unit].sum())] for unit in entered]
    idle, connected = len(sizes[entered[0]]), int(np.flatnonzero(asked)[-1]) + 1
    return Metrics(
        calls=list(zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True)),
        units=units,
        moments={"idle": idle, "connected": connected, "idle again": len(trace)},
    )


# ---- the page --------------------------------------------------------------------------------------------------------


def page(packets: Path | None, progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Page:
    """Tables 1 to 3, Figure 5, deferred coalescing, and search trees with up to `most` instances; no packets."""
    results = measure(progress, calls, most)
    made = page_of("modem")
    made.traffic({f"workload modem, seed {seed}": trace for seed, trace in zip(SEEDS, results.traces, strict=True)})
    progress("modem: other allocators in the places of the paper's")
    instances = results.heaps[FIRST_FAST].scaled
    others = {name: of_heap(recipe, results.traces, instances) for name, recipe in mutants("modem").items()}

    def with_other(place: str, other: Metrics) -> dict[str, Any]:
        return _names(replace(results, heaps={**results.heaps, place: other}))

    return finish(made, _names(results), {"asked": calls, "call": one_call()}, others, with_other)


def _names(results: Results) -> dict[str, Any]:
    """What the expressions see: the results, and the constants of the paper and of the runs."""
    runs = {"length": results.length, "mean_share": results.mean_share, "crucial": crucial(results.traces[0]).mean()}
    return seen("modem", globals(), {**vars(results), **runs})
