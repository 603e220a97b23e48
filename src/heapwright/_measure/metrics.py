"""Metrics of a recipe on a trace, including those that need a measurement if they are requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heapwright._replay.energy import EnergyTable
from heapwright._replay.engine import Watch
from heapwright._replay.metrics import TARGET_METRICS, TIME, named_in

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.replay import Replayed
    from heapwright._traces.trace import Trace

Replay = Callable[["Trace", "Recipe", Watch | None], "Replayed"]


@dataclass(frozen=True)
class Measure:
    """The replay of one recipe on one trace, measuring on request what some objectives need."""

    timed: bool
    fitted: bool
    on_target: frozenset[str]
    energies: EnergyTable

    @property
    def measured(self) -> bool:
        """Whether any metric needs more than one replay."""
        return bool(self.timed or self.fitted or self.on_target)

    def each(self, trace: Trace, recipes: Sequence[Recipe]) -> list[Replayed]:
        """Replays of many recipes in one native call, for objectives that need nothing `measured`."""
        from heapwright._replay.replay import replay_recipes

        assert not self.measured
        return replay_recipes(trace, recipes, energies=self.energies)

    def __call__(self, trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        """The metrics, and margins where they hold for all of them."""
        from heapwright._measure.host.timing import ns_per_event
        from heapwright._replay.replay import Replayed, replay_with_margins

        replayed = replay_with_margins(trace, recipe, fit=self.fitted, watch=watch, energies=self.energies)
        result = replayed.metrics
        if self.timed:
            result[TIME] = ns_per_event(trace, recipe)
        if self.on_target:
            from heapwright._measure.boards.objectives import target_metrics

            result |= target_metrics(trace, recipe, self.on_target)
        return Replayed(result, None if self.measured else replayed.margins)


def replay_for(objectives: Sequence[str], table: EnergyTable) -> Replay:
    """The replay that measures what these objectives need."""
    named = frozenset(name for key in objectives for name in named_in(key))
    timed, fitted = TIME in named, "smallest_arena_bytes" in named
    return Measure(timed, fitted, named & frozenset(TARGET_METRICS), table)
