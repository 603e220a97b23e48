"""Allocators of sensor nodes: Table I and Figures 6 to 9.

Das, Singh, Singh and Kumar, "A low overhead dynamic memory management system for constrained memory embedded systems".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import heapwright as hw
from heapwright import FREE, MALLOC, Recipe, Trace, zoo
from heapwright_papers import measuring
from heapwright_papers.case_study import mutants
from heapwright_papers.declared import Metrics, finish, metrics, page_of, seen
from heapwright_papers.measuring import each, probe, replayed, served_after
from heapwright_papers.page import Page

UNIT = 256
"""Bytes of a step of the paper's cost metric."""
LEVELS = ("O0", "O3", "Os")
KINDS = ("malloc", "free")

HEAPLIB, MEMMGR, ST, MMEM, ST_COMPACT = "heapLib", "memmgr", "ST_MEMMGR", "Contiki mmem", "ST_COMPACT_MEMMGR"
MANTIS, SOS = "MantisOS", "SOS"
FIVE = (HEAPLIB, MEMMGR, ST, MMEM, ST_COMPACT)
"""Allocators that the paper measures."""
MOVING = (MMEM, ST_COMPACT)
FIXED_PLACE = (MEMMGR, HEAPLIB, ST)
"""Those without compaction, in the paper's order of the memory they need, most first."""
TABLE_1 = {
    MANTIS: (12, True),
    MMEM: (12, False),
    HEAPLIB: (5, True),
    MEMMGR: (8, True),
    ST: (2, True),
    ST_COMPACT: (4, False),
}
"""Bytes of a descriptor for each allocation, and whether there is external fragmentation."""

SOS_SIZES = [16] * 32 + [32] * 16 + [128] * 4
"""Bytes of the blocks of SOS."""

RECORDED = {"tls": "axTLS", "huffman": "Huffman compression", "xml": "SimpleXML"}
SYNTHETIC = {"random, 1–128 B": (1, 128), "random, 1–1024 B": (1, 1024)}
"""Sizes of the random requests."""
SEEDS = 5
SYNTHETIC_CALLS, SYNTHETIC_LIVE = 2000, 40
SEARCHED, TRIES = "random, 1–128 B", 60
"""The trace whose sizes and live bytes the search for the worst call may use, and its replays."""
HOLES = (4, 8, 16)
"""Free blocks that an allocation must pass to find its own; all of SOS's blocks of 16 bytes are twice the last."""
SMALL, LARGE = 16, 32
"""Bytes of the objects between these holes, and of the request that fits none."""
_WHOLE = 120
"""Bytes of an object that takes just one of the pieces in which memmgr takes memory, so that no rest has a header."""
_FRAME = 2
"""Bytes of the allocation frame of both ST allocators."""


@dataclass(frozen=True)
class Results:
    """All that the page is made of.

    Attributes:
        recipes: of the allocators, by name.
        traces: the recorded ones, one each, and the random ones of each seed, by name.
        found: by allocator and name of the traces, one for each trace; MANTIS as well as FIVE.
        worst: by allocator, instructions of the worst calls that a search found; None without tools.
        grown: by allocator, accesses of one malloc behind each of HOLES, and of one free then.
        sizes: of their code, by level; None without a compiler.
    """

    recipes: Mapping[str, Recipe]
    traces: Mapping[str, Sequence[Trace]]
    found: Mapping[str, Mapping[str, Sequence[Metrics]]]
    worst: Mapping[str, Mapping[str, int]] | None
    grown: Mapping[str, Mapping[str, Sequence[int]]]
    sizes: Mapping[str, Any]

    def memory(self, heap: str, name: str) -> list[int]:
        """The cost metric in bytes, for each seed that has one."""
        return [item.memory for item in self.found[heap][name] if item.memory is not None]

    def instructions(self, heap: str, name: str, kind: str) -> float | None:
        """The average over calls and seeds; None without tools."""
        values = [item.instructions[kind][0] for item in self.found[heap][name] if item.instructions]
        return mean(values) if values else None

    def mean_of(self, heap: str, name: str, *kinds: str) -> float:
        """The average of a call of each kind together; 0 without tools."""
        return sum(self.instructions(heap, name, kind) or 0.0 for kind in kinds)

    def ratios(self, heap: str, other: str, *kinds: str) -> list[float]:
        """Instructions of a call of each kind together, over the other's, on each trace."""
        return [self.mean_of(heap, name, *kinds) / self.mean_of(other, name, *kinds) for name in self.traces]

    def most(self, heap: str, kind: str) -> int | None:
        """The most expensive call on any trace."""
        every = [item for of in self.found[heap].values() for item in of]
        return max((item.instructions[kind][1] for item in every if item.instructions), default=None)

    def with_other(self, place: str, other: Results) -> Results:
        """The same with another allocator in the place of one: `other` holds it alone, under any name."""
        parts = {
            part: {**getattr(self, part), place: next(iter(getattr(other, part).values()))}
            for part in ("recipes", "found", "grown", "sizes")
        }
        return replace(self, **parts)


def heaps() -> dict[str, Recipe]:
    """The paper's five allocators; the frame of its own two is 2 bytes, that of the descriptor."""
    return {
        HEAPLIB: zoo("heaplib"),
        MEMMGR: zoo("memmgr"),
        ST: zoo("st-memmgr-2"),
        MMEM: zoo("contiki-mmem"),
        ST_COMPACT: zoo("st-compact-memmgr").model_copy(update={"align": _FRAME}),
    }


def traces(calls: int = SYNTHETIC_CALLS) -> dict[str, list[Trace]]:
    """The recorded substitutes, and the random traces of this number of calls, one for each seed."""
    folder = Path(__file__).with_name("traces")
    results = {name: [Trace.read(folder / f"{name}.parquet")] for name in RECORDED}
    seeds = range(1, SEEDS + 1)
    return results | {name: [synthetic(*sizes, calls, seed) for seed in seeds] for name, sizes in SYNTHETIC.items()}


def synthetic(low: int, high: int, calls: int = SYNTHETIC_CALLS, seed: int = 1) -> Trace:
    """Random requests of `low` to `high` bytes; the more objects live beyond SYNTHETIC_LIVE, the likelier a free."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    live: list[int] = []
    for number in range(calls):
        if live and random.random() < len(live) / (2 * SYNTHETIC_LIVE):
            rows.append((FREE, live.pop(int(random.integers(len(live)))), 0))
        else:
            rows.append((MALLOC, number, int(random.integers(low, high, endpoint=True))))
            live.append(number)
    op, id, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id, size=size, name=f"random-{low}-{high}-{seed}")


def measure(given: Mapping[str, Sequence[Trace]], progress: Callable[[str], None]) -> Results:
    """Run everything."""
    recipes = {**heaps(), MANTIS: zoo("mantisos")}
    progress("sensor: memory and instructions")
    results = alone(recipes, given)
    arena = largest(results)
    progress("sensor: the worst calls")
    searched = given[SEARCHED][0] if SEARCHED in given else list(given.values())[-1][-1]
    worst = {heap: item for heap, item in each(lambda recipe: _worst(recipe, searched, arena), recipes).items() if item}
    sos = zoo("sos")
    return replace(
        results,
        recipes={**recipes, SOS: sos},
        worst=worst if len(worst) == len(recipes) else None,
        grown={**results.grown, SOS: growth(sos)},
    )


def largest(results: Results) -> int:
    """Bytes of an arena that serves all traces for all allocators."""
    return max(size for heap in results.found for name in results.traces for size in results.memory(heap, name))


def alone(recipes: Mapping[str, Recipe], given: Mapping[str, Sequence[Trace]], arena: int | None = None) -> Results:
    """Allocators on all traces, in an arena of `arena` bytes or the largest they need, without their worst calls."""
    flat = [trace for some in given.values() for trace in some]

    def least(recipe: Recipe) -> list[int | None]:
        return [hw.fit(trace, recipe, step=UNIT, copies=0).smallest_arena_bytes for trace in flat]

    memory = each(least, recipes)
    room = max(arena or 0, *(size for of in memory.values() for size in of if size is not None))
    # An arena that serves all is the same for all, as no call looks at what lies beyond.
    without: list[Any] = [None] * len(flat)
    info = each(lambda recipe: measuring.on_target(recipe, *flat, arena=room) or without, recipes)
    results: dict[str, dict[str, list[Metrics]]] = {}
    for heap, recipe in recipes.items():
        made = map(partial(_measured, recipe), flat, memory[heap], info[heap])
        results[heap] = {name: list(islice(made, len(some))) for name, some in given.items()}
    sizes = each(lambda recipe: measuring.code_sizes(recipe, LEVELS), recipes)
    return Results(recipes, given, results, None, each(growth, recipes), sizes)


def _measured(recipe: Recipe, trace: Trace, memory: int | None, told: Mapping[str, Any] | None) -> Metrics:
    handles = trace.peak_live_objects * recipe.canonical().pools[0].outside_bytes
    return metrics("sensor", "run", replayed(trace, recipe), memory=memory, handles=handles, told=told)


def _worst(recipe: Recipe, trace: Trace, arena: int) -> dict[str, int] | None:
    """Instructions of the worst malloc and the worst free that a search for most accesses finds."""
    if measuring.session() is None:
        return None
    results = {kind: hw.find_worst(trace, recipe, f"accesses_{kind}_max", tries=TRIES).trace for kind in KINDS}
    measured = measuring.on_target(recipe, *results.values(), arena=arena)
    assert measured is not None
    return {kind: int(item["calls"][kind]["instructions_max"]) for kind, item in zip(results, measured, strict=True)}


# ---- probes ----------------------------------------------------------------------------------------------------------


def descriptor_bytes(recipe: Recipe) -> int:
    """Bytes that the allocator keeps for one allocation, in front of it and in its handle, as Table I counts them.

    The pointer through which a program finds an object that moves is not counted, as in the paper.
    """
    header = probe(recipe, [(MALLOC, 0, _WHOLE)], "header_bytes")
    pool = recipe.canonical().pools[0]
    return header if header or not isinstance(pool, hw.pools.Compact) else pool.outside_bytes


def allocation_bytes(recipe: Recipe) -> int:
    """Header and handle of an object that moves, on a 32-bit target; of others the descriptor."""
    pool = recipe.canonical().pools[0]
    return pool.header + pool.outside_bytes if isinstance(pool, hw.pools.Compact) else descriptor_bytes(recipe)


def holes(count: int) -> list[tuple[int, int, int]]:
    """Calls that leave this number of holes of SMALL bytes, each between two objects."""
    return [(MALLOC, id, SMALL) for id in range(2 * count)] + [(FREE, id, 0) for id in range(0, 2 * count, 2)]


def growth(recipe: Recipe) -> dict[str, list[int]]:
    """Accesses of a malloc that fits none of the holes, and of the free of the object that lies last."""
    results: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for count in HOLES:
        before = probe(recipe, holes(count))
        for kind, call in (("malloc", (MALLOC, 2 * count, LARGE)), ("free", (FREE, 2 * count - 1, 0))):
            results[kind].append(probe(recipe, [*holes(count), call]) - before)
    return results


def uses_holes(recipe: Recipe, count: int = HOLES[-1]) -> bool:
    """Whether holes that lie apart serve one request nearly as large as all of them, in an arena otherwise full."""
    return bool(served_after(recipe, holes(count), [(MALLOC, 2 * count, (count - 1) * SMALL)]))


def served(sizes: Sequence[int], recipe: Recipe) -> int:
    """How many of these requests in a row an allocator serves."""
    return len(sizes) - probe(recipe, [(MALLOC, id, size) for id, size in enumerate(sizes)], "failed")


def prototypes(name: str, *functions: str) -> list[str]:
    """The declarations of functions in the header that is generated for an allocator of the zoo."""
    lines = hw.generated_files(zoo(name))["app_heap.h"].splitlines()
    return [next(line for line in lines if f" {function}(" in line) for function in functions]


# ---- the page --------------------------------------------------------------------------------------------------------


def page(packets: Path | None, progress: Callable[[str], None], calls: int = SYNTHETIC_CALLS) -> Page:
    """Table I and Figures 6 to 9; no packets are needed. `calls` are those of the synthetic traces."""
    results = measure(traces(calls), progress)
    made = page_of("sensor")
    for name, some in results.traces.items():
        made.traffic({f"{name}, seed {at}" if len(some) > 1 else name: trace for at, trace in enumerate(some, 1)})
    progress("sensor: other allocators in the places of the paper's")
    arena = largest(results)
    others = {name: alone({name: recipe}, results.traces, arena) for name, recipe in mutants("sensor").items()}
    more = {"prototypes": prototypes("st-compact-memmgr", "app_handle_alloc", "app_handle_free")}
    return finish(made, _names(results), more, others, lambda place, item: _names(results.with_other(place, item)))


def _names(results: Results) -> dict[str, Any]:
    """What the expressions see: the results, probes of single allocators, and the constants of the runs."""
    recipes, sos = results.recipes, results.recipes[SOS]
    requested = {name: [trace.size[trace.op != FREE] for trace in some] for name, some in results.traces.items()}
    first = {name: (some[0], len(requested[name][0])) for name, some in results.traces.items()}
    probes = {
        **{name: getattr(results, name) for name in ("memory", "instructions", "ratios", "most")},
        "sos": sos,
        "served": lambda sizes: served(sizes, sos),
        "footprint": lambda recipe: probe(recipe, holes(HOLES[-1]), "footprint_bytes"),
        "asked": requested,
        "refused": {name: int(replayed(trace, sos)["failed"]) / count for name, (trace, count) in first.items()},
        "descriptor": {heap: descriptor_bytes(recipes[heap]) for heap in TABLE_1},
        "loses": {heap: not uses_holes(recipes[heap]) for heap in TABLE_1},
        "whole": {heap: allocation_bytes(recipes[heap]) for heap in MOVING},
    }
    return seen("sensor", globals(), {**vars(results), **probes})
