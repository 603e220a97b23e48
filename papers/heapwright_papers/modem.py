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
from heapwright_papers.declared import constants, finish, page_of
from heapwright_papers.measuring import NO_TOOLS, code_bytes, each, replayed, spread
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
class Peak:
    """Bytes of the smallest arena that serves a trace, when most is live for the first time (the paper's Table 1)."""

    physical: int
    used: int
    headers: int
    control: int

    @property
    def fragments(self) -> int:
        """What is neither used nor the allocator's."""
        return self.physical - self.used - self.headers - self.control

    def of(self, row: str) -> int:
        """The value of a row of the table."""
        names = {"physical size": "physical", "effective used": "used"}
        return int(getattr(self, names.get(row, row)))

    def share(self, row: str) -> float:
        """Its share of the physical memory."""
        return self.of(row) / self.physical


@dataclass(frozen=True)
class Response:
    """What calls of one allocator take; None where this machine cannot tell."""

    accesses: float
    whole: dict[str, Any] | None
    full: dict[str, Any] | None

    def instructions(self, kind: str, crucial: bool = False) -> float | None:
        """Mean of a malloc or a free on the target, of all calls or of those in the crucial state."""
        measured = self.full if crucial else self.whole
        if measured is None:
            return None
        calls = measured["phases"]["full"] if crucial else measured["calls"]
        return float(calls[kind]["instructions_mean"])

    def total(self) -> float | None:
        """Instructions of a malloc and a free."""
        return None if self.whole is None else sum(self.instructions(kind) or 0.0 for kind in ("malloc", "free"))

    def dearest_free(self) -> int | None:
        """Instructions of the free that takes most."""
        return None if self.whole is None else int(self.whole["calls"]["free"]["instructions_max"])

    def inside(self, phases: Iterable[str]) -> float | None:
        """Instructions of all calls in these phases."""
        if self.whole is None:
            return None
        told = [kind for phase in phases for kind in self.whole["phases"][phase].values()]
        return float(sum(kind["count"] * (kind["instructions_mean"] or 0) for kind in told))


@dataclass(frozen=True)
class Swaps:
    """The swaps of a run, and among them those of connected calls, whose line got worse.

    Attributes:
        contexts: bytes that the instance holds when a swap begins.
        connected: which of the swaps are of connected calls.
        copy: instructions to copy a byte; None where this machine cannot tell.
    """

    contexts: NDArray[np.int64]
    connected: NDArray[np.bool_]
    copy: float | None

    def context(self, connected: bool) -> float:
        """Mean bytes that a swap copies, of all or of connected calls."""
        return float(self.contexts[self.connected].mean() if connected else self.contexts.mean())

    def copied(self, connected: bool) -> float | None:
        """Mean instructions that a swap spends on copying."""
        return None if self.copy is None else self.copy * self.context(connected)

    def allocator(self, response: Response, connected: bool) -> float | None:
        """Mean instructions that a swap spends in the allocator."""
        inside = response.inside(("retrain",) if connected else ("swap", "retrain"))
        return None if inside is None else inside / int(self.connected.sum() if connected else len(self.contexts))


@dataclass(frozen=True)
class Length:
    """One way of coalescing in runs of so many modem calls, a value for each seed."""

    calls: int
    fit: str
    coalesce: str
    peaks: list[Peak]
    accesses: list[float]

    def share(self, part: str) -> list[float]:
        """Shares of the physical memory."""
        return [one.share(part) for one in self.peaks]


@dataclass(frozen=True)
class Scaled:
    """One heap with so many instances."""

    blocks: int
    overhead: float
    accesses: float
    worst: int


@dataclass(frozen=True)
class OfHeap:
    """What an allocator makes of the runs: peaks by seed, `scaled` by the number of instances, codes by level."""

    peaks: list[Peak]
    response: Response
    codes: Any
    scaled: dict[int, Scaled]


@dataclass(frozen=True)
class Results:
    """All that the page tells; orders by fit and order, splits by the way of coalescing."""

    traces: list[Trace]
    heaps: dict[str, OfHeap]
    swaps: Swaps
    lengths: list[Length]
    splits: dict[str, float]
    orders: dict[tuple[str, str], float]

    def mean_share(self, label: str, part: str) -> float:
        """Mean share of a part of memory over the seeds."""
        return mean(one.share(part) for one in self.heaps[label].peaks)

    def length(self, calls: int, fit: str, coalesce: str = "immediate") -> Length:
        """The runs of so many calls."""
        return next(one for one in self.lengths if (one.calls, one.fit, one.coalesce) == (calls, fit, coalesce))


def one_list(name: str = "", **how: Any) -> Recipe:
    """A list of free blocks, kept in this way."""
    return Recipe(name=name, align=ALIGN, pools=(hw.pools.General(**how),))


def heaps() -> dict[str, Recipe]:
    """The paper's four allocators, and both fits from a search tree of free blocks, with boundary tags."""
    trees = {f"{name}, tree": one_list(f"{name}, tree", free_list="tree", fit=fit) for fit, name in FITS.items()}
    return {label: zoo(name) for label, name in FOUR.items()} | trees


def peak(trace: Trace, recipe: Recipe) -> Peak:
    """Table 1's split of the smallest arena."""
    physical = int(replayed(trace, recipe, fit=True)["smallest_arena_bytes"] or 0)
    until = hw.cut(trace, first=int(trace.live_bytes.argmax()) + 1, close=False)
    map_ = heap_map(until, recipe, columns=2)
    last = map_["blocks"][map_["blocks"]["column"] == 1]
    bytes_of = {state: int(last["size"][last["state"] == at].sum()) for at, state in enumerate(HEAP_MAP_STATES)}
    return Peak(physical, bytes_of["payload in use"], bytes_of["header"], bytes_of["control data"])


def crucial(trace: Trace) -> NDArray[np.bool_]:
    """The calls at which the number of blocks is near its maximum."""
    near: NDArray[np.bool_] = trace.live_objects >= FULL * trace.live_objects.max()
    return near


def measure(progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Results:
    """All runs, on all processors; `most` is the largest number of instances."""
    traces = [hw.workload("modem", calls=calls, seed=seed) for seed in SEEDS]
    counts = [count for count in INSTANCES if count <= most]
    progress("modem: allocators")
    found = each(lambda recipe: of_heap(recipe, traces, counts), heaps())
    progress("modem: orders of a list")
    ordered = list(product(FITS, ORDERS))
    orders = dict(zip(ordered, spread(lambda way: _fragments(traces, *way), ordered), strict=True))
    progress("modem: lengths of a run")
    lengths = [count for count in LENGTHS if count <= 3 * calls]
    runs = {count: [hw.workload("modem", calls=count, seed=seed) for seed in SEEDS] for count in lengths}
    ways = spread(lambda way: _length(runs[way[0]], *way), product(runs, FITS, COALESCE))
    splits = {coalesce: _splits(coalesce) for coalesce in COALESCE}
    return Results(traces, found, swaps_of(traces[0]), ways, splits, orders)


def of_heap(recipe: Recipe, traces: Sequence[Trace], instances: Iterable[int]) -> OfHeap:
    """Run an allocator."""
    scaled = {count: _scaled(_instances(count), recipe) for count in instances}
    codes = measuring.code_sizes(recipe, LEVELS)
    return OfHeap([peak(trace, recipe) for trace in traces], _response(traces[0], recipe), codes, scaled)


# ---- response times ------------------------------------------------------------------------------------------------


def _response(trace: Trace, recipe: Recipe) -> Response:
    near = Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=crucial(trace).astype(int), phases=("else", "full")
    )
    accesses = float(replayed(trace, recipe)["accesses"] or 0) / len(trace)
    whole, full = measuring.on_target(recipe, _retrains_apart(trace), near) or (None, None)
    return Response(accesses, whole, full)


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
    told = measuring.on_target(one_list(resize="move"), *traces)
    if told is None:
        return None
    few, many = (one["calls"]["realloc"]["instructions_mean"] for one in told)
    return float(many - few) / (sizes[1] - sizes[0])


# ---- fragments -----------------------------------------------------------------------------------------------------


def _fragments(traces: Sequence[Trace], fit: str, order: str) -> float:
    """Mean share of fragments of a list of free blocks in some order."""
    return mean(peak(trace, one_list(fit=fit, order=order)).share("fragments") for trace in traces)


def _walking(fit: str, coalesce: str) -> Recipe:
    """The paper's allocator with slow free, or with deferred coalescing, which needs no previous block."""
    return one_list(free_list="implicit", boundary_tags=False, fit=fit, coalesce=coalesce)


def _length(traces: Sequence[Trace], calls: int, fit: str, coalesce: str) -> Length:
    recipe = _walking(fit, coalesce)
    accesses = [float(replayed(trace, recipe)["accesses"] or 0) / len(trace) for trace in traces]
    return Length(calls, fit, coalesce, [peak(trace, recipe) for trace in traces], accesses)


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


def _scaled(trace: Trace, recipe: Recipe) -> Scaled:
    metrics = replayed(trace, recipe)
    return Scaled(
        trace.peak_live_objects,
        metrics["footprint_bytes"] / metrics["requested_peak_bytes"] - 1,
        metrics["accesses"] / len(trace),
        max(metrics["accesses_malloc_max"], metrics["accesses_free_max"]),
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

    def with_other(place: str, other: OfHeap) -> dict[str, Any]:
        return _names(replace(results, heaps={**results.heaps, place: other}))

    return finish(made, _names(results), {"asked": calls}, others, with_other)


def _names(results: Results) -> dict[str, Any]:
    """What the expressions see: the results, by the name of a heap, and the constants of the paper and of the runs."""
    counts = list(dict.fromkeys(one.calls for one in results.lengths))
    retrained = {"swap of a connected call": True} if results.swaps.connected.any() else {}
    of = results.heaps
    responses = {label: one.response for label, one in of.items()}
    return {
        **constants("modem", globals()),
        **vars(results),
        "length": results.length,
        "mean_share": results.mean_share,
        "peaks": {label: one.peaks for label, one in of.items()},
        "responses": responses,
        "scaled": {label: one.scaled for label, one in of.items()},
        "PAIRS": ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST)),
        "SWAPS": {"swap": False, **retrained},
        "reach": zoo(FOUR[FIRST_FAST]).reach or 1 << 31,
        "calls": min(max(counts), CALLS),
        "counts": counts,
        "instances": list(of[FIRST_FAST].scaled),
        "crucial": crucial(results.traces[0]).mean(),
        "no_times": NO_TOOLS if any(one.whole is None for one in responses.values()) else "",
        "no_codes": NO_TOOLS if any(one.codes is None for one in of.values()) else "",
        "sizes": {label: one.codes for label, one in of.items()},
        "codes": {level: {label: code_bytes(of[label].codes, level) for label in FOUR} for level in LEVELS},
        "dearest": {label: one.dearest_free() for label, one in responses.items()},
        "usual": {label: responses[label].instructions("free") for label in FOUR},
        "total": {label: responses[label].total() for label in FOUR},
    }
