"""What the benchmark compares: allocators of the system, recipes of the zoo, and the pick of an exploration."""

from __future__ import annotations

import ctypes.util
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import heapwright as hw
from heapwright.host.timing import Bench, Program
from heapwright.traces.trace import Trace

PRELOADED = {"mimalloc": "mimalloc", "jemalloc": "jemalloc", "tcmalloc": "tcmalloc_minimal"}
"""Allocators that replace the C library's when preloaded, and the library each is in."""

ZOO = ("victim-bins", "exact-bins", "drr-proposed", "tlsf")
WITH_QUICK_LISTS = ("exact-bins", "tlsf")
QUICK_LISTS = 3
RUN_TIME = " (run time)"
"""What the name of a recipe ends in when the core reads its policy at run time."""


def with_lists(name: str) -> str:
    """What a zoo recipe is called with quick lists in front."""
    return f"{name} + {QUICK_LISTS} lists"


FOLDED_AND_RUN_TIME = [name for zoo_name in WITH_QUICK_LISTS for name in (zoo_name, with_lists(zoo_name))]
"""Recipes that are measured both folded and with the policy at run time."""


@dataclass(frozen=True)
class Contender:
    """A heap to be timed: a library (preloaded; None is the C library's own), or a recipe in one of two builds."""

    name: str
    recipe: hw.api.Recipe | None = None
    library: str | None = None
    run_time: bool = False

    def program(self, bench: Bench, *defines: str) -> Program:
        if self.recipe is None:
            return bench.library(self.library, *defines)
        if self.run_time:
            return bench.with_policy(self.recipe, *defines)
        return bench.generated(self.recipe, *defines)


@dataclass(frozen=True)
class Pick:
    """The balanced pick of an exploration, and how the exploration went."""

    id: str
    recipe: hw.api.Recipe
    trace: str
    recipes: int
    seconds: float


def explored_pick(trace: Trace, limit: int | None) -> Pick:
    """Explore the default space on a trace, or `limit` recipes of it drawn at random, and take the balanced pick.

    At alignment 4, as most of the zoo that it stands beside.
    """
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as folder:
        start = time.perf_counter()
        study = hw.explore(trace, Path(folder) / "study.duckdb", align=4, strategy="random", limit=limit)
        seconds = time.perf_counter() - start
        pick = study.pick("balanced")
        return Pick(pick.id, pick.recipe, trace.name, study.ranked, seconds)


def libraries() -> tuple[list[Contender], list[str]]:
    """The system's allocators, and the names of those that are not installed."""
    found = {name: ctypes.util.find_library(library) for name, library in PRELOADED.items()}
    installed = [Contender(name, library=library) for name, library in found.items() if library]
    return [Contender("glibc"), *installed], [name for name, library in found.items() if not library]


def recipes(trace: Trace, pick: Pick) -> Iterator[Contender]:
    """Recipes as generated code; some depend on the trace's sizes."""
    yield Contender("broker pick", pick.recipe)
    for name in ZOO:
        yield Contender(name, hw.zoo(name))
    for name in WITH_QUICK_LISTS:
        yield Contender(with_lists(name), with_quick_lists(hw.zoo(name), trace))


def at_run_time(contenders: list[Contender]) -> list[Contender]:
    """The recipes that are also measured with their policy at run time, in that build."""
    named = {one.name: one.recipe for one in contenders}
    return [Contender(name + RUN_TIME, named[name], run_time=True) for name in FOLDED_AND_RUN_TIME]


def with_quick_lists(recipe: hw.api.Recipe, trace: Trace) -> hw.api.Recipe:
    """Put freelists for the trace's most frequent sizes of blocks in front of a recipe of one general pool."""
    (pool,) = recipe.pools
    assert pool.kind == "general"
    sizes: dict[int, int] = {}
    for row in hw.profile(trace)["sizes"]:
        sizes.setdefault(recipe.geometry.capacity_for(row["size"], pool), row["size"])
        if len(sizes) == QUICK_LISTS:
            break
    quick = {"kind": "quick", "sizes": list(sizes.values())}
    return recipe.from_dict(recipe.to_dict() | {"name": "", "pool": [quick, *recipe.to_dict()["pool"]]})
