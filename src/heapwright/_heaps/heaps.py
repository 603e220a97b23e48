"""Heaps of every origin: what every heap can do, the one of a name, and several of them side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from heapwright._heaps.names import HeapName, parse, resolve_recipe
from heapwright._recipes.kinds.bounds import WorstCase
from heapwright._recipes.recipe import Recipe
from heapwright._replay.energy import EnergyTable, with_energy
from heapwright._replay.metrics import METRICS, Value
from heapwright._replay.reach import UNKNOWN, Reach, reach
from heapwright._replay.replay import refused_low, replay, replay_recipes
from heapwright._support.errors import ForeignHeapError, HeapwrightError

if TYPE_CHECKING:
    from heapwright._heaps.foreign.adapter import WordSize
    from heapwright._heaps.foreign.heap import ForeignHeap
    from heapwright._measure.boards.image import BoardHeap
    from heapwright._measure.host.timing import Bench, TimedProgram
    from heapwright._replay.monotone_minimum import SafeArena
    from heapwright._traces.trace import Trace


class Heap(Protocol):
    """Anything that can be replayed: a recipe, or a third-party allocator with its adapter."""

    @property
    def label(self) -> str:
        """What tables call it."""

    def replay(self, trace: Trace, *, arena: int | None = None, fit: bool = False) -> dict[str, Value]:
        """Every metric of `heapwright._replay.metrics.METRICS`, None where unknown; see `heapwright._replay.replay`.

        `arena` is in bytes, None for ample; `fit` also finds `smallest_arena_bytes`.
        """

    def fit(self, trace: Trace, *, step: int | None = None) -> int | None:
        """Smallest arena in bytes, rounded up to a multiple of `step`, that serves the whole trace; None: none does."""

    def safe_arena(self, trace: Trace, *, step: int | None = None) -> SafeArena | None:
        """The least arena such that it and every larger one serve the whole trace; None: none does."""

    def enough_arena(self, trace: Trace, *, step: int | None = None) -> int | None:
        """An arena from which on every one tried serves the whole trace, found in few replays; None: none does."""

    def worst_case(self, trace: Trace) -> WorstCase | None:
        """The arena that is enough for any program like the trace, where a theorem gives one; else None."""

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> TimedProgram:
        """See `heapwright._measure.host.timing.TimedHeap`."""

    @property
    def reach(self) -> Reach:
        """The largest arena, request and number of objects that it serves; None where no bound is known."""


@dataclass(frozen=True)
class RecipeHeap:
    """The heap of a recipe: what is explored, and what ships."""

    recipe: Recipe

    @property
    def label(self) -> str:
        """The recipe's name or hash."""
        return self.recipe.name or self.recipe.hash

    def replay(self, trace: Trace, *, arena: int | None = None, fit: bool = False) -> dict[str, Value]:
        """See `Heap.replay`."""
        return replay(trace, self.recipe, arena=arena, fit=fit)

    def fit(self, trace: Trace, *, step: int | None = None) -> int | None:
        """See `Heap.fit`."""
        from heapwright._replay.arena_sizes import fit

        return fit(trace, self.recipe, step=step)

    def safe_arena(self, trace: Trace, *, step: int | None = None) -> SafeArena | None:
        """See `heapwright._replay.monotone_minimum.safe_arena`."""
        from heapwright._replay.monotone_minimum import safe_arena

        return safe_arena(trace, self.recipe, step=step)

    def enough_arena(self, trace: Trace, *, step: int | None = None) -> int | None:
        """See `heapwright._replay.monotone_minimum.enough_arena`."""
        from heapwright._replay.monotone_minimum import enough_arena

        return enough_arena(trace, self.recipe, step=step)

    def worst_case(self, trace: Trace) -> WorstCase | None:
        """See `heapwright._replay.worst_case.worst_case`."""
        from heapwright._replay.worst_case import worst_case

        return worst_case(trace, self.recipe)

    @property
    def reach(self) -> Reach:
        """See `heapwright._replay.reach.reach`."""
        return reach(self.recipe)

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> TimedProgram:
        """The recipe's generated code; it takes the arena it needs."""
        return bench.generated(self.recipe)


@dataclass(frozen=True)
class UnusableHeap:
    """A foreign heap that exists and cannot be used: every method raises the reason."""

    label: str
    reason: ForeignHeapError
    reach: Reach = UNKNOWN

    def replay(self, trace: Trace, *, arena: int | None = None, fit: bool = False) -> dict[str, Value]:
        """Raise the reason."""
        raise self.reason

    def fit(self, trace: Trace, *, step: int | None = None) -> int | None:
        """Raise the reason."""
        raise self.reason

    def safe_arena(self, trace: Trace, *, step: int | None = None) -> SafeArena | None:
        """Raise the reason."""
        raise self.reason

    def enough_arena(self, trace: Trace, *, step: int | None = None) -> int | None:
        """Raise the reason."""
        raise self.reason

    def worst_case(self, trace: Trace) -> WorstCase | None:
        """None: nothing is known of it."""
        return None

    def timed_program(self, bench: Bench, trace: Trace, arena: int | None = None) -> TimedProgram:
        """Raise the reason."""
        raise self.reason


# ---- by name -------------------------------------------------------------------------------------------------------


def resolve(text: str, word_size: WordSize | None = None) -> RecipeHeap | ForeignHeap:
    """Find the heap of that name.

    A zoo NAME (or NAME@ALIGN), a RECIPE.toml or STUDY:ID is a recipe. `lib:NAME` is a library of this system, PATH.so
    any shared object, ADAPTER.toml an allocator as an adapter file describes it, PATH.c the same with the adapter
    in its folder, and ADAPTER=PATH a ready-made adapter (or an ADAPTER.toml) with the file or folder of its sources.
    RECIPE+FOREIGN is a recipe in front of a foreign heap, RECIPE+malloc one in front of the C library's. `word_size`
    is that of heaps built from sources, None for what their adapter says.

    Raises HeapwrightError where nothing has that name, ForeignHeapError where what has it is a foreign heap that cannot
    be used, as where its adapter is wrong. Nothing is built before it is needed.
    """
    name = parse(text)
    return RecipeHeap(resolve_recipe(text)) if name.is_recipe else _foreign(name, text, word_size)


def _foreign(name: HeapName, text: str, word_size: WordSize | None) -> ForeignHeap:
    from heapwright._heaps.foreign import names
    from heapwright._heaps.foreign.adapter import Adapter, ready_made

    path = Path(name.first)
    if name.kind == "library":
        return names.library(name.first, text, word_size)
    if name.kind == "file":
        return names.at_place(names.beside(path), path, text, word_size)
    if name.kind == "adapter":
        return names.at_place(Adapter.load(path), path.parent, text, word_size)
    if name.kind == "sources":
        adapter = Adapter.load(name.second) if name.second.endswith(".toml") else ready_made(name.second)
        return names.at_place(adapter, path, text, word_size)
    behind = resolve(name.second, word_size)
    assert not isinstance(behind, RecipeHeap), "what stands behind a recipe is a foreign heap"
    return names.behind(resolve_recipe(name.first), behind, text)


def find(text: str, word_size: WordSize | None = None) -> Heap:
    """Find the heap of that name as `resolve` does, but let a foreign heap that cannot be used say so when it is used.

    It then costs its own row of a table. Raises HeapwrightError where nothing has that name.
    """
    try:
        return resolve(text, word_size)
    except ForeignHeapError as error:
        return UnusableHeap(text, error)


def resolve_on_target(text: str) -> BoardHeap:
    """Find what can be measured on a target: a zoo NAME, RECIPE.toml, STUDY:ID, lib:NAME of a C library, or FILE.c.

    Raises HeapwrightError where nothing has that name.
    """
    from heapwright._measure.boards.image import BoardHeap

    name = parse(text)
    if name.kind == "library":
        return BoardHeap.of_library(name.first)
    if name.kind == "file" and text.endswith(".c"):
        return BoardHeap.of_file(Path(text))
    return BoardHeap(text, recipe=resolve_recipe(text))


# ---- side by side --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a heap did on a trace: its metrics, all of them None where it failed, and why it failed."""

    metrics: Mapping[str, Value]
    error: str | None = None
    memories: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """The metrics of each memory of a recipe in several."""
    failed_low: int | None = None
    """How many of the refused requests have low priority; None for foreign heaps and traces without priorities."""


def replay_each(
    trace: Trace,
    heaps: Mapping[str, Heap],
    *,
    arena: int | None = None,
    time: bool = False,
    fit: bool = False,
    energy: EnergyTable | None = None,
) -> dict[str, Outcome]:
    """Replay the trace on every heap; with `time` they are measured in turn, so that they share what disturbs them.

    `energy` replaces the default table of `energy_nJ`. A foreign heap that cannot be built, or fails, has the reason in
    its outcome. Raises HeapwrightError where an arena cannot hold a recipe's control data.
    """
    outcomes: dict[str, Outcome] = {}
    recipes = {name: heap.recipe for name, heap in heaps.items() if isinstance(heap, RecipeHeap)}
    alone = {name: recipe for name, recipe in recipes.items() if not recipe.memory}
    batch = replay_recipes(trace, list(alone.values()), arena=arena, fit=fit, energies=energy)
    replayed = dict(zip(alone, batch, strict=True))
    for name, heap in heaps.items():
        if name in replayed:
            low = refused_low(trace, recipes[name], arena) if trace.low.any() else None
            outcomes[name] = Outcome(replayed[name].metrics, failed_low=low)
            continue
        try:
            if name in recipes:
                outcomes[name] = _in_memories(trace, recipes[name], arena, time or fit, energy)
            else:
                outcomes[name] = Outcome(with_energy(heap.replay(trace, arena=arena, fit=fit), energy))
        except ForeignHeapError as error:
            outcomes[name] = Outcome(dict.fromkeys(METRICS), str(error))
    if time:
        _add_times(outcomes, trace, heaps, arena)
    return outcomes


def _add_times(outcomes: dict[str, Outcome], trace: Trace, heaps: Mapping[str, Heap], arena: int | None) -> None:
    """Measure the heaps that completed, and add `ns_per_event` to their outcomes."""
    from heapwright._measure.host.timing import time_heaps

    completed = {name: heap for name, heap in heaps.items() if outcomes[name].error is None}
    for name, result in time_heaps(trace, completed, arena).items():
        if isinstance(result, float):
            outcomes[name] = replace(outcomes[name], metrics={**outcomes[name].metrics, "ns_per_event": result})
        else:
            outcomes[name] = Outcome(dict.fromkeys(METRICS), str(result))


def _in_memories(
    trace: Trace, recipe: Recipe, arena: int | None, searched: bool, energy: EnergyTable | None
) -> Outcome:
    name = recipe.name or recipe.hash
    if arena is not None:
        raise HeapwrightError(f"{name}: its memories have sizes of their own; leave the arena out", parameter="arena")
    if searched:
        raise HeapwrightError(f"{name}: is neither timed nor fitted, as it lies in several memories; replay it alone")
    from heapwright._replay.memories import replay_memories

    whole, parts = replay_memories(trace, recipe)
    memories = {part: with_energy(metrics, energy) for part, metrics in parts.items()}
    spent = sum(metrics["energy_nJ"] or 0 for metrics in memories.values())
    return Outcome({**whole, "energy_nJ": spent}, memories=memories)


@dataclass(frozen=True)
class Arenas:
    """The arenas of a heap for a trace, in bytes; all None where it failed, and why it failed.

    `reserve` is None where a held-out trace, or too many of the copies, are refused in any arena: the `refused`. A heap
    that gets its memory from the system has no arena to search, and `reserve` goes by the most that it took.
    `failed` counts the requests of the trace that are refused in an ample one, if no arena serves it.
    """

    smallest: int | None
    safe: SafeArena | None
    reach: Reach
    reserve: int | None = None
    refused: tuple[str, ...] = ()
    failed: int = 0
    worst: WorstCase | None = None
    error: str | None = None


def fit_each(
    trace: Trace,
    heaps: Mapping[str, Heap],
    *,
    step: int | None = None,
    copies: Sequence[Trace] = (),
    held_out: Sequence[Trace] = (),
    share: float = 1.0,
    scaled: Callable[[Trace], float] = lambda trace: 1.0,
) -> dict[str, Arenas]:
    """Smallest, safe and recommended arena of every heap on the trace; for a foreign heap that fails, the reason.

    The reserved arena is that of `reserved`, where what each trace needs counts ``scaled`` times: for another load.
    """
    requested = _Reserving(copies, held_out, share, scaled)
    return {name: _fit(trace, heap, step, requested) for name, heap in heaps.items()}


class _Reserving(NamedTuple):
    copies: Sequence[Trace]
    held_out: Sequence[Trace]
    share: float
    scaled: Callable[[Trace], float]


def _fit(trace: Trace, heap: Heap, step: int | None, asked: _Reserving) -> Arenas:
    try:
        smallest, safe = heap.fit(trace, step=step), heap.safe_arena(trace, step=step)
        worst = heap.worst_case(trace)
        own = safe.bytes if safe else heap.enough_arena(trace, step=step)
        if own is None:
            return Arenas(smallest, safe, heap.reach, worst=worst, failed=int(heap.replay(trace)["failed"] or 0))
        others = (*asked.held_out, *asked.copies)
        needs = [heap.enough_arena(other, step=step) for other in others]
    except ForeignHeapError as error:
        return Arenas(None, None, UNKNOWN, error=str(error))
    from heapwright._replay.reserve import reserved

    refused = tuple(other.name for other, needed in zip(others, needs, strict=True) if needed is None)
    pairs = zip((trace, *others), (own, *needs), strict=True)
    grown = [None if needed is None else math.ceil(needed * asked.scaled(of)) for of, needed in pairs]
    apart = 1 + len(asked.held_out)
    reserve = reserved(grown[:apart], grown[apart:], asked.share, heap.reach.arena_bytes)
    return Arenas(smallest, safe, heap.reach, reserve, refused, worst=worst)
