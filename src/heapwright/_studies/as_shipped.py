"""Metrics of a study's recipe as it ships: with the counters, threads and alignment of the generated files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import Value, combine
from heapwright._support.engine import Engine
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._replay.usage import Usage
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace


class Shipped(NamedTuple):
    """Statements of generated files about the study of their heap; the defaults are for a heap without a study.

    Attributes:
        tuned_for: the study's traces and objectives, in words.
        metrics: over the traces explored on, as generated; None if the traces cannot be read any more and the heap
            differs from the one explored.
        reserve: a sentence about the memory to reserve; "" if no arena served it.
        explored: a sentence about how the study was made; "" if it holds no runs.
        reserve_bytes: the memory to reserve, as `reserve` says; None if that is not known.
        recorded: the most that the heap is used for in the traces explored on, as generated; None if they cannot be
            read any more.
    """

    tuned_for: str | None = None
    metrics: Mapping[str, Value] | None = None
    reserve: str = ""
    explored: str = ""
    reserve_bytes: int | None = None
    recorded: Usage | None = None


NOTHING = Shipped()


@dataclass(frozen=True)
class ShippingOptions:
    """Heap to generate.

    Attributes:
        recipe: its recipe.
        study, id: the open study and its id there; None if it comes from no study.
        known: statements without a study.
    """

    recipe: Recipe
    study: Analysis | None = None
    id: str = ""
    known: Shipped = NOTHING

    @classmethod
    def of(cls, study: Analysis, id: str) -> ShippingOptions:
        """The recipe of this id in a study. Raises HeapwrightError if there is none, or it is not stable."""
        if why_not := study.robustness().why_not_stable(study.candidate(id).id):
            raise HeapwrightError(
                f"{study.path}:{id}: not shipped, because it {why_not}; give its recipe as a file to do so"
            )
        return cls(study.recipe(id), study, id)

    def shipped(self, recipe: Recipe, traces: Sequence[Trace] = ()) -> Shipped:
        """Statements of the files for this recipe, as it is generated; without a study it is tailored to the traces."""
        if self.study is not None:
            return shipped(self.study, self.id, recipe)
        known = self.known if recipe.hash == self.recipe.hash else self.known._replace(metrics=None, recorded=None)
        if not traces:
            return known
        from heapwright._replay.usage import usage_of

        return known._replace(recorded=usage_of(traces, recipe))


def shipped(study: Analysis, id: str, recipe: Recipe) -> Shipped:
    """Replay the recipe, which is the study's `id` as it is generated, on the traces that the study was made on.

    Raises HeapwrightError if there is no such recipe.
    """
    id = study.candidate(id).id
    explored = study.recipe(id)
    (metrics, recorded), (reserve, reserved) = (
        _replayed(study, id, explored, recipe),
        _reserve(study, id, explored, recipe),
    )
    return Shipped(study.tuned_for, metrics, reserve, _explored(study), reserved, recorded)


def _explored(study: Analysis) -> str:
    """How the study was made, by its last exploration."""
    runs = study.runs()
    if not runs:
        return ""
    run = runs[-1]
    how = f"by {run.command}" if run.command else "from Python"
    options = f", {run.options}" if run.options else ""
    built = Engine(run.engine, run.commit).sentence()
    space = str(study.meta["space"])[:12]
    return f"Explored {how}: strategy {run.strategy}, seed {run.seed}{options}, space {space}, {built}."


def _replayed(
    study: Analysis, id: str, explored: Recipe, recipe: Recipe
) -> tuple[Mapping[str, Value] | None, Usage | None]:
    """`metrics` and `recorded` of `Shipped`."""
    from heapwright._replay.replay import replay
    from heapwright._replay.usage import usage_of
    from heapwright._studies.originals import original

    try:
        traces = [original(study, info, (), repair=True) for info in study.traces()]
    except HeapwrightError:
        return (study.candidate(id).metrics if recipe.hash == explored.hash else None), None
    return combine([replay(trace, recipe) for trace in traces]), usage_of(traces, recipe)


def _reserve(study: Analysis, id: str, explored: Recipe, recipe: Recipe) -> tuple[str, int | None]:
    """A sentence about the memory to reserve, and its bytes; "" and None if they are not known."""

    most = study.reserve(id)
    if most is None:
        return "", None
    largest = max(study.live_bounds.values(), key=lambda bound: bound.payload_bytes) if study.proved else None
    load = f"any order of at most {largest}" if largest else "a load like the recorded one"
    text = f"Reserve {most:,} bytes for {load}"
    if recipe.align != explored.align:
        other = f"that was at alignment {explored.align}, so ask heapwright fit what it takes at {recipe.align}"
        return f"{text}; {other}.", None
    more = int(policy(recipe)["fixed_end"]) - int(policy(explored)["fixed_end"])
    if more <= 0:
        return f"{text}.", most
    return f"{text}, and {more} more for the counters that it has here: {most + more:,}.", most + more
