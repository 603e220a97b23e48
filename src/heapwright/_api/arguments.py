"""What users give: traces, heaps and energies, by name or as they are; each is found once, here."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from heapwright._replay.metrics import DEFAULT_OBJECTIVES, ON_RECORDING, Value
from heapwright._studies import Candidate
from heapwright._support import notebook
from heapwright._support.errors import HeapwrightError, ParameterError

if TYPE_CHECKING:
    from heapwright._heaps.foreign.adapter import WordSize
    from heapwright._heaps.heaps import Heap
    from heapwright._platforms.catalogue import Platform
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.energy import EnergyTable
    from heapwright._traces.trace import Trace

PathLike: TypeAlias = "str | os.PathLike[str]"
AnyTrace: TypeAlias = "Trace | PathLike"
AnyHeap: TypeAlias = "PathLike | Recipe | Heap | Member"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_line_errors(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise the operating system's errors as a HeapwrightError of one line, as the command line prints."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise HeapwrightError(f"{where}{error.strerror or error}") from error

    return call


def trace_of(trace: AnyTrace, repair: bool = False) -> Trace:
    """The trace, read where it is a path."""
    from heapwright._traces.trace import Trace

    return trace if isinstance(trace, Trace) else Trace.read(trace, repair=repair)


SHOWN = (
    *ON_RECORDING.values(),
    *DEFAULT_OBJECTIVES,
    "accesses_malloc_max",
    "accesses_free_max",
    "instructions_pair_mean",
    "growth_ratio",
)
"""The metrics of a recipe that a notebook shows."""


def listed(given: Any) -> list[Any]:
    """The items of a list or tuple, or the one thing given."""
    return list(given) if isinstance(given, list | tuple) else [given]


@dataclass(frozen=True, repr=False)
class Member(Candidate):
    """A recipe of a study with its metrics over all traces; functions that take a heap take it, too.

    Attributes:
        id, zoo_name, metrics: as of a `Candidate`.
        recipe: the allocator.
        tuned_for: the study's traces and objectives, in words.
        study: the study's file.
    """

    recipe: Recipe
    tuned_for: str
    study: Path | None = None

    def __repr__(self) -> str:
        keys = [key if self.metrics[key] is not None else ON_RECORDING[key] for key in DEFAULT_OBJECTIVES]
        shown = ", ".join(f"{key} {number(self.metrics[key])}" for key in keys)
        return f"<{self.label}: {shown}; {self.recipe.summary()}>"

    def _repr_html_(self) -> str:
        info = {key: notebook.number(self.metrics[key]) for key in SHOWN if self.metrics[key] is not None}
        return notebook.pairs(f"{self.label}, on {self.tuned_for}", info, self.recipe._repr_html_())


def heap_of(heap: AnyHeap, word_size: WordSize | None) -> Heap:
    """The heap, found where it is a name; a foreign one that cannot be used says so when it is used."""
    from heapwright._heaps.heaps import RecipeHeap, find
    from heapwright._recipes.recipe import Recipe

    if isinstance(heap, str | os.PathLike):
        return find(os.fspath(heap), word_size)
    if isinstance(heap, Recipe):
        return RecipeHeap(heap)
    return RecipeHeap(heap.recipe) if isinstance(heap, Member) else heap


def recipe_of(heap: AnyHeap) -> Recipe:
    """The recipe of a heap. Raises HeapwrightError for a foreign one."""
    from heapwright._heaps.names import resolve_recipe
    from heapwright._recipes.recipe import Recipe

    if isinstance(heap, str | os.PathLike):
        return resolve_recipe(os.fspath(heap))
    if isinstance(heap, Recipe):
        return heap
    if isinstance(heap, Member):
        return heap.recipe
    from heapwright._heaps.heaps import RecipeHeap

    if isinstance(heap, RecipeHeap):
        return heap.recipe
    raise HeapwrightError(f"{label_of(heap)}: no recipe but a foreign heap; replay and fit take those, this does not")


def label_of(heap: AnyHeap) -> str:
    """What answers call a heap: the name it was given by, or its own."""
    from heapwright._recipes.recipe import Recipe

    if isinstance(heap, str | os.PathLike):
        return os.fspath(heap)
    return heap.name or heap.hash if isinstance(heap, Recipe) else heap.label


class RequestedHeaps(NamedTuple):
    """The requested heaps: the label and key of each, in order, and every heap once by its key.

    The key is the label; if several heaps share a label, each gets a key of its own.
    """

    each: list[tuple[str, str]]
    heaps: dict[str, Heap]


def requested_heaps(heaps: AnyHeap | Sequence[AnyHeap], word_size: WordSize | None = None) -> RequestedHeaps:
    """Find all heaps of a list, or a single one."""
    requested = RequestedHeaps([], {})
    for item in listed(heaps):
        label, heap = label_of(item), heap_of(item, word_size)
        keys = chain([label], (f"{label} ({number})" for number in count(2)))
        key = next(key for key in keys if requested.heaps.get(key, heap) == heap)
        requested.heaps[key] = heap
        requested.each.append((label, key))
    return requested


def energies_of(table: EnergyTable | PathLike | None) -> EnergyTable | None:
    """The energy table, read where it is a path."""
    from heapwright._replay.energy import EnergyTable

    return table if table is None or isinstance(table, EnergyTable) else EnergyTable.read(Path(table))


def number(value: Value) -> str:
    """A metric for people."""
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def check_generated(behind: str | None, into: Platform | None, inline: bool, traces: bool, memp: bool) -> None:
    """Raise ParameterError for arguments of `generate` that exclude each other."""
    if behind is not None and (into is not None or traces):
        raise ParameterError(
            f"pools in front of {behind} are generated alone: leave platforms and evidence out", parameter="behind"
        )
    if memp and (into is None or into.name != "lwip"):
        raise ParameterError("lwIP's pools are for the platform lwip", parameter="memp")
    if inline and into is not None:
        raise ParameterError("a platform's glue calls functions; leave inline or platform out", parameter="inline")
