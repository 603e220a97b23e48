"""What the page about the modem concentrator is made of: the paper's numbers, runs of its allocators, and trees."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import mean
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

import heapwright as hw
from heapwright import FREE, HEAP_MAP_STATES, MALLOC, REALLOC, Recipe, Trace, heap_map, zoo
from heapwright_papers import measuring
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN

FOUR = {
    "first fit, slow free": "first-fit-slow-free",
    "first fit, fast free": "first-fit-fast-free",
    "best fit, slow free": "best-fit-slow-free",
    "best fit, fast free": "best-fit-fast-free",
}
FIRST_SLOW, FIRST_FAST, BEST_SLOW, BEST_FAST = FOUR
FIRST_TREE, BEST_TREE = "first fit, tree", "best fit, tree"
Fit = Literal["first", "best"]
Order = Literal["lifo", "fifo", "address"]
Merge = Literal["immediate", "deferred"]
FITS: dict[Fit, str] = {"first": "first fit", "best": "best fit"}
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

_T = TypeVar("_T")
_R = TypeVar("_R")


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
    fit: Fit
    coalesce: Merge
    peaks: list[Peak]
    accesses: list[float]

    def share(self, part: str) -> list[float]:
        """Shares of the physical memory."""
        return [one.of(part) / one.physical for one in self.peaks]


@dataclass(frozen=True)
class Scaled:
    """One heap with so many instances."""

    instances: int
    blocks: int
    heap: str
    overhead: float
    accesses: float
    worst: int


@dataclass(frozen=True)
class Results:
    """All that the page tells; peaks, responses, codes and orders by the name of a heap."""

    traces: list[Trace]
    peaks: dict[str, list[Peak]]
    responses: dict[str, Response]
    swaps: Swaps
    codes: dict[str, Any]
    lengths: list[Length]
    splits: dict[Merge, float]
    orders: dict[tuple[Fit, Order], float]
    scaled: list[Scaled]

    def mean_share(self, label: str, part: str) -> float:
        """Mean share of a part of memory over the seeds."""
        return mean(one.of(part) / one.physical for one in self.peaks[label])

    def length(self, calls: int, fit: str, coalesce: str = "immediate") -> Length:
        """The runs of so many calls."""
        return next(one for one in self.lengths if (one.calls, one.fit, one.coalesce) == (calls, fit, coalesce))

    def with_other(self, place: str, other: Other) -> Results:
        """The same with another allocator in the place of one."""
        return replace(
            self,
            peaks={**self.peaks, place: other.peaks},
            responses={**self.responses, place: other.response},
            codes={**self.codes, place: other.codes},
            scaled=[
                replace(other.scaled[one.instances], heap=place) if one.heap == place else one for one in self.scaled
            ],
        )


@dataclass(frozen=True)
class Other:
    """What an allocator that is not the paper's makes of the same runs; `scaled` by the number of instances."""

    peaks: list[Peak]
    response: Response
    codes: Any
    scaled: dict[int, Scaled]


def heaps() -> dict[str, Recipe]:
    """The paper's four allocators, and both fits from a search tree of free blocks, with boundary tags."""
    trees = {FIRST_TREE: hw.pools.General(free_list="tree"), BEST_TREE: hw.pools.General(free_list="tree", fit="best")}
    return {
        **{label: zoo(name) for label, name in FOUR.items()},
        **{label: Recipe(name=label, align=ALIGN, pools=(pool,)) for label, pool in trees.items()},
    }


def peak(trace: Trace, recipe: Recipe) -> Peak:
    """Table 1's split of the smallest arena."""
    physical = int(replayed(trace, recipe, fit=True)["smallest_arena_bytes"] or 0)
    map_ = heap_map(first_calls(trace, int(trace.live_bytes.argmax()) + 1), recipe, columns=2)
    last = map_["blocks"][map_["blocks"]["column"] == 1]
    bytes_of = {state: int(last["size"][last["state"] == at].sum()) for at, state in enumerate(HEAP_MAP_STATES)}
    return Peak(physical, bytes_of["payload in use"], bytes_of["header"], bytes_of["control data"])


def first_calls(trace: Trace, count: int) -> Trace:
    """The trace up to a call."""
    return Trace.from_columns(op=trace.op[:count], id=trace.id[:count], size=trace.size[:count], name=trace.name)


def crucial(trace: Trace) -> NDArray[np.bool_]:
    """The calls at which the number of blocks is near its maximum."""
    near: NDArray[np.bool_] = trace.live_objects >= FULL * trace.live_objects.max()
    return near


def measure(progress: Callable[[str], None], calls: int = CALLS, most: int = INSTANCES[-1]) -> Results:
    """All runs, on all processors; `most` is the largest number of instances."""
    traces = [hw.workload("modem", calls=calls, seed=seed) for seed in SEEDS]
    made = heaps()
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def spread(of: Callable[[_T], _R], over: Iterable[_T]) -> list[_R]:
            return list(pool.map(of, over))

        progress("modem: response times")
        responses = dict(zip(made, spread(lambda recipe: _response(traces[0], recipe), made.values()), strict=True))
        swaps = swaps_of(traces[0])
        progress("modem: code")
        sizes = spread(lambda recipe: measuring.code_sizes(recipe, LEVELS), made.values())
        progress("modem: memory")
        peaks = {label: spread(partial(peak, recipe=recipe), traces) for label, recipe in made.items()}
        progress("modem: orders of a list")
        ordered = [(fit, order) for fit in FITS for order in ORDERS]
        orders = dict(zip(ordered, spread(lambda way: _fragments(way, traces), ordered), strict=True))
        progress("modem: lengths of a run")
        runs = {
            count: [hw.workload("modem", calls=count, seed=seed) for seed in SEEDS]
            for count in LENGTHS
            if count <= 3 * calls
        }
        ways = [(count, fit, merge) for count in runs for fit in FITS for merge in COALESCE]
        lengths = spread(lambda way: _length(runs[way[0]], *way), ways)
        splits = dict(zip(COALESCE, spread(_splits, COALESCE), strict=True))
        progress("modem: instances")
        counts = [count for count in INSTANCES if count <= most]
        busy = {count: _instances(count) for count in counts}
        each = [(count, label) for count in counts for label in made]
        scaled = spread(lambda one: _scaled(one[0], busy[one[0]], made[one[1]], one[1]), each)
    codes = dict(zip(made, sizes, strict=True))
    return Results(traces, peaks, responses, swaps, codes, lengths, splits, orders, scaled)


def other(recipe: Recipe, results: Results) -> Other:
    """Run an allocator that is not the paper's."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        peaks = list(pool.map(partial(peak, recipe=recipe), results.traces))
    counts = sorted({one.instances for one in results.scaled})
    scaled = {count: _scaled(count, _instances(count), recipe, recipe.name) for count in counts}
    return Other(peaks, _response(results.traces[0], recipe), measuring.code_sizes(recipe, LEVELS), scaled)


# ---- response times ------------------------------------------------------------------------------------------------


def _response(trace: Trace, recipe: Recipe) -> Response:
    near = Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=crucial(trace).astype(int), phases=("else", "full")
    )
    accesses = float(replayed(trace, recipe)["accesses"] or 0) / len(trace)
    whole, full = measuring.on_target(recipe, _retrains_apart(trace), near) or (None, None)
    return Response(accesses, whole, full)


def _retrains_apart(trace: Trace) -> Trace:
    """The trace with swaps of connected calls in a phase of their own."""
    phase = trace.phase.astype(np.int64)
    inside = np.flatnonzero(trace.phase == trace.phases.index("swap"))
    first, which = np.unique(np.column_stack([trace.ts_us[inside], trace.tid[inside]]), axis=0, return_inverse=True)
    connected = _is_connected(trace)
    assert len(first) == len(connected)
    phase[inside[connected[which.reshape(-1)]]] = len(trace.phases)
    return Trace.from_columns(
        op=trace.op, id=trace.id, size=trace.size, phase=phase, phases=(*trace.phases, "retrain"), name=trace.name
    )


def _first_rows(trace: Trace) -> NDArray[np.int64]:
    """The first call of each swap, in order of time and instance: a swap is at one time, in one instance."""
    inside = np.flatnonzero(trace.phase == trace.phases.index("swap"))
    return inside[np.unique(np.column_stack([trace.ts_us[inside], trace.tid[inside]]), axis=0, return_index=True)[1]]


def _is_connected(trace: Trace) -> NDArray[np.bool_]:
    """Which swaps are of connected calls: others replace the unit that negotiates."""
    connected: NDArray[np.bool_] = trace.site[_first_rows(trace)] != trace.sites.index("negotiation")
    return connected


def swaps_of(trace: Trace) -> Swaps:
    """The swaps of a run, with what each instance holds."""
    sizes = {int(id_): int(size) for id_, size, op in zip(trace.id, trace.size, trace.op, strict=True) if op == MALLOC}
    held: dict[int, int] = {}
    before = np.empty(len(trace), np.int64)
    for row, (tid, id_, op) in enumerate(zip(trace.tid.tolist(), trace.id.tolist(), trace.op.tolist(), strict=True)):
        before[row] = held.get(tid, 0)
        held[tid] = held.get(tid, 0) + (-sizes[id_] if op == FREE else sizes[id_])
    return Swaps(before[_first_rows(trace)], _is_connected(trace), _copy_of_a_byte())


def _copy_of_a_byte() -> float | None:
    """Instructions that the copy of a realloc which moves takes for a byte; None where nothing can be measured."""
    moves = Recipe(name="", align=ALIGN, pools=(hw.pools.General(resize="move"),))
    sizes = (1024, 5120)
    traces = [Trace.from_columns(op=[MALLOC, REALLOC], id=[0, 0], size=[size, size]) for size in sizes]
    told = measuring.on_target(moves, *traces)
    if told is None:
        return None
    few, many = (one["calls"]["realloc"]["instructions_mean"] for one in told)
    return float(many - few) / (sizes[1] - sizes[0])


# ---- fragments -----------------------------------------------------------------------------------------------------

ORDERS: tuple[Order, ...] = ("lifo", "fifo", "address")
COALESCE: tuple[Merge, ...] = ("immediate", "deferred")


def _fragments(way: tuple[Fit, Order], traces: Sequence[Trace]) -> float:
    """Mean share of fragments of a list of free blocks in some order."""
    recipe = Recipe(name="", align=ALIGN, pools=(hw.pools.General(fit=way[0], order=way[1]),))
    found = [peak(trace, recipe) for trace in traces]
    return mean(one.fragments / one.physical for one in found)


def _walking(fit: Fit, coalesce: Merge) -> Recipe:
    """The paper's allocator with slow free, or with deferred coalescing, which needs no previous block."""
    pool = hw.pools.General(free_list="implicit", boundary_tags=False, fit=fit, coalesce=coalesce)
    return Recipe(name="", align=ALIGN, pools=(pool,))


def _length(traces: Sequence[Trace], calls: int, fit: Fit, coalesce: Merge) -> Length:
    recipe = _walking(fit, coalesce)
    accesses = [float(replayed(trace, recipe)["accesses"] or 0) / len(trace) for trace in traces]
    return Length(calls, fit, coalesce, [peak(trace, recipe) for trace in traces], accesses)


def _splits(coalesce: Merge) -> float:
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


def _scaled(instances: int, trace: Trace, recipe: Recipe, label: str) -> Scaled:
    metrics: dict[str, Any] = dict(replayed(trace, recipe))
    return Scaled(
        instances,
        trace.peak_live_objects,
        label,
        metrics["footprint_bytes"] / metrics["requested_peak_bytes"] - 1,
        metrics["accesses"] / len(trace),
        max(metrics["accesses_malloc_max"], metrics["accesses_free_max"]),
    )
