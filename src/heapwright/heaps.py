"""Heaps of every origin: how a command line names one, and several of them run on a trace side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from heapwright import adapters, zoo
from heapwright.adapters import Adapter, WordSize, is_foreign, is_supplement
from heapwright.errors import HeapwrightError
from heapwright.metrics import METRICS, EnergyTable, Value, with_energy
from heapwright.recipes import Pool, Recipe

if TYPE_CHECKING:
    from heapwright.foreign import ForeignHeap
    from heapwright.traces import Trace

Heap: TypeAlias = "Recipe | ForeignHeap"

LIBRARY = "lib:"
_SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")


@dataclass(frozen=True)
class Outcome:
    """What a heap did on a trace: its metrics, all of them None where it failed, and why it failed."""

    metrics: Mapping[str, Value]
    error: str | None = None


def resolve_heap(text: str) -> Recipe:
    """Find the recipe that a command line names: a zoo NAME, a RECIPE.toml, or STUDY:ID.

    Raises HeapwrightError where nothing has that name.
    """
    if is_foreign(text):
        raise HeapwrightError(f"{text}: no recipe but a foreign heap; replay and fit take those, this does not")
    if text.endswith(".toml"):
        return Recipe.load(text)
    path, separator, identifier = text.rpartition(":")
    if separator:
        from heapwright.study import Study

        with Study.open(path) as study:
            return study.recipe(identifier)
    return zoo.load(text)


def resolve(text: str, word_size: WordSize | None = None) -> Heap:
    """Find the heap that a command line names.

    A zoo NAME, a RECIPE.toml or STUDY:ID is a recipe. `lib:NAME` is a library of this system, PATH.so any shared
    object, ADAPTER.toml an allocator as an adapter file describes it, PATH.c the same with the adapter beside it, and
    ADAPTER=PATH a ready-made adapter (or an ADAPTER.toml) with the file or folder its sources are in.
    RECIPE+FOREIGN is a recipe in front of a foreign heap that gets its memory from the system.
    `word_size` is that of heaps built from sources, None for what their adapter says.

    Raises HeapwrightError where nothing has that name, or an adapter is wrong.
    """
    if not is_foreign(text):
        return resolve_heap(text)
    if is_supplement(text) and not Path(text).exists():
        front, _, behind = text.partition("+")
        return _supplemented(resolve_heap(front), resolve(behind, word_size), text)
    if text.startswith(LIBRARY):
        return _library(text, word_size)
    name, separator, place = text.partition("=")
    if separator:
        adapter = Adapter.load(name) if name.endswith(".toml") else adapters.ready_made(name)
        return _at(adapter, Path(place), text, word_size)
    path = Path(text)
    if text.endswith(".toml"):
        return _at(Adapter.load(path), path.parent, text, word_size)
    return _at(_beside(path), path, text, word_size)


def _supplemented(front: Recipe, behind: Heap, text: str) -> ForeignHeap:
    if isinstance(behind, Recipe) or behind.front is not None or behind.has_arena:
        raise HeapwrightError(f"{text}: behind a recipe may stand a heap without an arena of its own, as lib:glibc")
    grows = [pool for pool in front.pools if pool.kind != "quick" and _shares_the_rest(pool)]
    if grows:
        raise HeapwrightError(
            f"{text}: the recipe has a {grows[0].kind} pool without bounds, so nothing would reach the heap behind it; "
            'give fixed pools "counts" and general ones a "region"'
        )
    return replace(behind, front=front, label=text)


def _shares_the_rest(pool: Pool) -> bool:
    growing = "grow" in (getattr(pool, "counts", ""), getattr(pool, "count", ""))
    return growing or getattr(pool, "region", 1) == 0 or pool.kind == "compact"


def _library(text: str, word_size: WordSize | None) -> ForeignHeap:
    from heapwright.foreign import ForeignHeap

    name = text.removeprefix(LIBRARY)
    if name not in adapters.libraries():
        raise HeapwrightError(f"{text}: no such library; known: {', '.join(adapters.libraries())} (or give a PATH.so)")
    adapter = adapters.ready_made(name)
    return ForeignHeap(adapter, Path(), text, (), adapter.library, word_size or adapter.word_size)


def _beside(path: Path) -> Adapter:
    """The adapter of the same stem; a shared object may do without one."""
    stem = _SHARED_OBJECT.sub("", path.name) if _SHARED_OBJECT.search(path.name) else path.stem
    beside = path.with_name(f"{stem}.toml")
    if beside.is_file():
        return Adapter.load(beside)
    if path.suffix == ".c":
        fitting = [name for name in adapters.names() if _names_file(adapters.ready_made(name), path.name)]
        known = f"a ready-made one, as in --heap {fitting[0]}={path}" if fitting else "one of the ready-made ones"
        raise HeapwrightError(f"{path}: needs an adapter that says how to call it: {beside.name} beside it, or {known}")
    return Adapter(style="libc", realloc="realloc", align=1)


def _names_file(adapter: Adapter, name: str) -> bool:
    return any(Path(source).name == name for source in adapter.sources)


def _at(adapter: Adapter, place: Path, label: str, word_size: WordSize | None) -> ForeignHeap:
    """The heap of an adapter whose paths are relative to `place`, or which is that file."""
    from heapwright.foreign import ForeignHeap

    place = place.expanduser()
    if not place.exists():
        raise HeapwrightError(
            f"{label}: {place} is missing; it would be the allocator's file or the folder of its sources"
        )
    place = place.resolve()
    root = place if place.is_dir() else place.parent
    if _SHARED_OBJECT.search(place.name):
        return ForeignHeap(adapter, root, label, (), str(place), _elf_word_size(place))
    library = _library_path(adapter, root)
    if library:
        return ForeignHeap(adapter, root, label, (), library, _elf_word_size(Path(library)))
    sources = [root / source for source in adapter.sources]
    if place.is_file():
        sources = [place, *sources[1:]]
    for source in sources:
        if not source.is_file():
            raise HeapwrightError(
                f"{label}: {source} is missing; {adapter.source or 'the adapter lists it as a source'}"
            )
    return ForeignHeap(adapter, root, label, tuple(sources), adapter.library, word_size or adapter.word_size)


def _library_path(adapter: Adapter, root: Path) -> str:
    """The adapter's library where it is a path; empty for a soname, which the loader finds."""
    if "/" not in adapter.library:
        return ""
    path = root / adapter.library
    if not path.is_file():
        raise HeapwrightError(f"{path}: the adapter's library is missing")
    return str(path)


def _elf_word_size(path: Path) -> WordSize:
    with path.open("rb") as file:
        start = file.read(5)
    if start[:4] != b"\x7fELF" or start[4] not in (1, 2):
        raise HeapwrightError(f"{path}: not a shared object of this system (no ELF file)")
    return 32 if start[4] == 1 else 64


# ---- side by side --------------------------------------------------------------------------------------------------


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

    `energy` replaces the default table of `energy_nJ`.
    A foreign heap that fails has the reason in its outcome. Raises HeapwrightError where a heap cannot be built or
    an arena cannot hold a recipe's control data.
    """
    from heapwright import foreign
    from heapwright.replay import replay

    outcomes: dict[str, Outcome] = {}
    for name, heap in heaps.items():
        if isinstance(heap, Recipe):
            outcomes[name] = Outcome(with_energy(replay(trace, heap, arena=arena, fit=fit), energy))
            continue
        try:
            outcomes[name] = Outcome(foreign.replay(trace, heap, arena=arena, fit=fit))
        except foreign.ForeignHeapError as error:
            outcomes[name] = Outcome(dict.fromkeys(METRICS), str(error))
    if time:
        sound = {name: heap for name, heap in heaps.items() if outcomes[name].error is None}
        for name, ns in _ns_per_event(trace, sound, arena).items():
            found = outcomes[name]
            outcomes[name] = Outcome({**found.metrics, "ns_per_event": ns}, found.error)
    return outcomes


def _ns_per_event(trace: Trace, heaps: Mapping[str, Heap], arena: int | None) -> dict[str, float]:
    from heapwright.host_timing import Bench

    with Bench() as bench:
        programs = {
            name: bench.generated(heap) if isinstance(heap, Recipe) else heap.timed_program(trace, arena)
            for name, heap in heaps.items()
        }
        return bench.measure(programs, trace)


def fit_each(
    trace: Trace, heaps: Mapping[str, Heap], *, step: int | None = None
) -> dict[str, tuple[int | None, str | None]]:
    """Smallest arena of every heap on the trace, as `heapwright.replay.fit` and `heapwright.foreign.fit` give it.

    A foreign heap that fails has None and the reason. Raises as they do otherwise.
    """
    from heapwright import foreign
    from heapwright.replay import fit

    found: dict[str, tuple[int | None, str | None]] = {}
    for name, heap in heaps.items():
        try:
            size = fit(trace, heap, step=step) if isinstance(heap, Recipe) else foreign.fit(trace, heap, step=step)
            found[name] = (size, None)
        except foreign.ForeignHeapError as error:
            found[name] = (None, str(error))
    return found
