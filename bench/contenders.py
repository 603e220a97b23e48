"""What the benchmark compares: the best allocators there are, recipes as generated code, and a heap that does nothing.

All of them are timed by one driver, which calls each through one function of its own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import originals
import rivals

import heapwright as hw
from heapwright import ForeignHeap, HeapwrightError, Trace

EMPTY = "empty"
"""A heap that returns one address and frees nothing: what it takes is the replay loop's."""

LIBRARIES = ("glibc", "mimalloc", "jemalloc", "tcmalloc")
ORIGINALS: dict[str, Callable[[], Path]] = {
    "dlmalloc": originals.dlmalloc,
    "o1heap": originals.o1heap,
    "freertos-heap4": originals.freertos,
    "tlsf, original": originals.tlsf,
}
"""Allocators as their authors released them, and what fetches their sources; a name begins with its adapter's."""
RELEASED = {"NDEBUG": "1"}
"""For time, originals are built without their assertions, as their users ship them."""
GRANULARITY = {"malloc_getpagesize": "((size_t)4096U)", "DEFAULT_GRANULARITY": "((size_t)65536U)"}
"""For time, dlmalloc takes memory as it does on a host; the adapter's pages of 64 bytes would ask for it more often."""

ZOO = ("fast", "all-round", "victim-bins", "exact-bins", "drr-proposed", "tlsf", "half-fit")
WITH_QUICK_LISTS = ("exact-bins", "tlsf")
QUICK_LISTS = 3

_ADAPTER = """\
style = "arena"
sources = ["timed_heap.c"]
align = {align}
init = "heap = timed_init(memory, bytes)"
malloc = "timed_malloc(heap, size)"
free = "timed_free(heap, pointer)"
realloc = "timed_realloc(heap, pointer, size)"
aligned_alloc = "timed_aligned_alloc(heap, align, size)"
defines = {{ TIMED_HEAP_ALIGN_UNCHECKED = 1 }}
"""
_EMPTY = """\
#include <stddef.h>
static void *empty_init(void *memory) { return memory; }
static void *empty_malloc(void *heap, size_t size) { (void)size; return heap; }
static void empty_free(void *pointer) { (void)pointer; }
"""
_EMPTY_ADAPTER = """\
style = "arena"
sources = ["empty.c"]
init = "heap = empty_init(memory)"
malloc = "empty_malloc(heap, size)"
free = "empty_free(pointer)"
"""


def with_lists(name: str) -> str:
    """What a zoo recipe is called with quick lists in front."""
    return f"{name} + {QUICK_LISTS} lists"


FOLDED_AND_RUN_TIME = [name for zoo_name in WITH_QUICK_LISTS for name in (zoo_name, with_lists(zoo_name))]
"""Recipes that are measured both folded and with the policy at run time."""


@dataclass(frozen=True)
class Contender:
    """A heap to be timed: built for 64 bits, as the driver calls it; `recipe` is there where it is generated code.

    `compact` is the same allocator as its smallest arena is reported, if that is another heap.
    """

    name: str
    heap: ForeignHeap
    recipe: hw.Recipe | None = None
    compact: ForeignHeap | None = None

    def programs(
        self, bench: hw.timing.Bench, trace: Trace
    ) -> tuple[hw.timing.TimedProgram, hw.timing.TimedProgram] | None:
        """Its program with the payload untouched, and written once; None where it cannot serve the trace."""
        try:
            program = self._program(bench, trace)
        except HeapwrightError:
            return None
        return program, replace(program, arguments=(*program.arguments, "written"))

    def _program(self, bench: hw.timing.Bench, trace: Trace) -> hw.timing.TimedProgram:
        if self.name == EMPTY:  # it serves nothing, so no replay may check it
            largest = int(trace.size.max(initial=0)) + 4096
            return hw.timing.TimedProgram(self.heap.program(largest), (str(largest),))
        return self.heap.timed_program(bench, trace)

    def smallest_arena(self, trace: Trace) -> int | None:
        """Bytes of the smallest arena for 32-bit pointers that serves the trace; None where that means nothing."""
        if self.recipe is not None:
            return hw.fit(trace, self.recipe, copies=0).smallest_arena_bytes
        return None if self.compact is None else self.compact.fit(trace)

    def build_compact(self) -> None:
        """Compile what `smallest_arena` runs."""
        if self.compact is not None:
            self.compact.program()


def libraries() -> tuple[list[Contender], list[str]]:
    """The allocators that programs are linked with here, and why some are not there."""
    result, missing = [], []
    for name in LIBRARIES:
        try:
            heap = _foreign(f"lib:{name}", 64)
            heap.program()
            result.append(Contender(name, heap))
        except HeapwrightError as error:
            missing.append(str(error))
    return result, missing


QUICK_RIVALS = ("rlsf",)
"""The adapters of crates that a smoke test builds: the others take a minute."""


def peers(others: Sequence[str], *, quick: bool = False) -> tuple[list[Contender], list[str]]:
    """Other allocators, and why some are not there; `others` are names as `heapwright replay` takes them.

    Who names an original has his own measured instead.
    """
    result, missing = libraries()
    given = {_peer_name(place): _foreign(place, 64) for place in others}
    fetched = [(name, original) for name in ORIGINALS]
    fetched += [(name, rival) for name in (QUICK_RIVALS if quick else rivals.RIVALS)]
    for name, contender in fetched:
        if name in given:
            continue
        try:
            result.append(contender(name))
        except originals.MissingError as error:
            missing.append(str(error))
    return [*result, *(Contender(name, heap) for name, heap in given.items())], missing


def _peer_name(place: str) -> str:
    """What ADAPTER=PATH is called, where the zoo may have a recipe of that name."""
    name = place.partition("=")[0]
    return f"{name}, original" if name in ZOO else name


def original(name: str) -> Contender:
    """An allocator as its authors released it. Raises MissingError where its sources cannot be had."""
    place = f"{name.partition(',')[0]}={ORIGINALS[name]()}"
    heap = _foreign(place, 64)
    timed = RELEASED | (GRANULARITY if name == "dlmalloc" else {})
    heap.adapter = heap.adapter.model_copy(update={"defines": {**heap.adapter.defines, **timed}})
    return Contender(name, heap, compact=_foreign(place, 32))


def rival(name: str) -> Contender:
    """An allocator of a crate, for time alone. Raises MissingError where it cannot be built."""
    return Contender(name, _foreign(str(rivals.adapter(name)), 64))


def empty(folder: Path) -> Contender:
    """The heap that does nothing, its source in `folder`."""
    (folder / "empty.c").write_text(_EMPTY)
    (folder / "empty.toml").write_text(_EMPTY_ADAPTER)
    return Contender(EMPTY, _foreign(str(folder / "empty.toml"), 64))


def generated(name: str, recipe: hw.Recipe, folder: Path) -> Contender:
    """A recipe as generated code, written into a folder of its own under `folder`."""
    place = folder / recipe.hash
    if not place.exists():
        hw.generate(recipe, place, prefix="timed")
        (place / "timed.toml").write_text(_ADAPTER.format(align=recipe.align))
    return Contender(name, _foreign(str(place / "timed.toml"), 64), recipe)


def recipes(trace: Trace, pick: Pick) -> Iterator[tuple[str, hw.Recipe]]:
    """The recipes that are measured, by name; some depend on the trace's sizes."""
    yield "broker pick", pick.recipe
    for name in ZOO:
        yield name, hw.zoo(name)
    for name in WITH_QUICK_LISTS:
        yield with_lists(name), with_quick_lists(hw.zoo(name), trace)


def _foreign(name: str, word_size: Literal[32, 64]) -> ForeignHeap:
    heap = hw.find_heap(name, word_size)
    if not isinstance(heap, ForeignHeap):
        raise HeapwrightError(f"{name}: is a recipe; the benchmark takes ADAPTER=PATH of another allocator")
    return heap


@dataclass(frozen=True)
class Pick:
    """The balanced pick of an exploration, and how the exploration went."""

    id: str
    recipe: hw.Recipe
    trace: str
    recipes: int
    seconds: float


def explored_pick(trace: Trace, limit: int | None) -> Pick:
    """Explore the default space on a trace, or `limit` recipes of it drawn at random, and take the balanced pick.

    At alignment 4, as most of the zoo next to it.
    """
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as folder:
        start = time.perf_counter()
        study = hw.explore(trace, Path(folder) / "study.duckdb", align=4, strategy="random", limit=limit)
        seconds = time.perf_counter() - start
        pick = study.pick("balanced")
        return Pick(pick.id, pick.recipe, trace.name, study.ranked, seconds)


def with_quick_lists(recipe: hw.Recipe, trace: Trace) -> hw.Recipe:
    """Put freelists for the trace's most frequent sizes of blocks in front of a recipe of one general pool."""
    (pool,) = recipe.pools
    assert pool.kind == "general"
    sizes: dict[int, int] = {}
    for row in hw.profile(trace)["sizes"]:
        sizes.setdefault(pool.capacity_for(row["size"], recipe.geometry), row["size"])
        if len(sizes) == QUICK_LISTS:
            break
    quick = {"kind": "quick", "sizes": list(sizes.values())}
    return recipe.from_dict(recipe.to_dict() | {"name": "", "pool": [quick, *recipe.to_dict()["pool"]]})
