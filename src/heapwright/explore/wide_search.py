"""Search: what of a wide space is tried, in which order, and how the front grows meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heapwright.decide import pareto
from heapwright.decide.study import Study
from heapwright.explore.searchers import Floats, Genomes, Strategy, searcher
from heapwright.explore.space import WideSpace
from heapwright.recipes.recipe import Recipe
from heapwright.replay.metrics import METRICS, Value
from heapwright.studies.records import Grown

LIMIT = 5000
"""Recipes that a search tries if nothing else is said."""


@dataclass
class Costs:
    """What recipes cost in the objectives, comparable over traces: logarithms of ratios to the zoo's best.

    Of several traces the worst counts, as where recipes are ranked. A recipe that refused requests costs inf. What the
    first recipes cost at most is the reference of hypervolumes.
    """

    objectives: Sequence[str]
    traces: Sequence[str]
    refusing: bool = field(init=False)
    best: Floats | None = None
    """float64[traces, objectives], raw logarithms."""
    reference: Floats | None = None

    def __post_init__(self) -> None:
        self.refusing = "admitted_fraction" in self.objectives

    def of(self, study: Study, ids: Sequence[str]) -> Floats:
        """float64[n, objectives] of recipes that the study has results of; the first call sets the scale."""
        raw = self._raw(study, ids)
        if self.best is None:
            served = np.where(np.isfinite(raw), raw, np.inf)
            self.best = np.where(np.isfinite(served.min(axis=0)), served.min(axis=0), 0.0)
        costs: Floats = (raw - self.best).max(axis=1)
        finite = np.isfinite(costs).all(axis=1)
        if self.reference is None and finite.any():
            self.reference = costs[finite].max(axis=0)
        return costs

    def _raw(self, study: Study, ids: Sequence[str]) -> Floats:
        """Logarithms of the objectives, float64[n, traces, objectives]: less is better, inf for what is refused."""
        found = study.per_trace(list(dict.fromkeys(ids)))
        raw = np.full((len(ids), len(self.traces), len(self.objectives)), np.inf)
        for row, id in enumerate(ids):
            for at, trace in enumerate(self.traces):
                metrics = found[id].get(trace)
                if metrics and (self.refusing or metrics["failed"] == 0):
                    raw[row, at] = [_cost(key, metrics[key]) for key in self.objectives]
        return raw


def _cost(key: str, value: Value) -> float:
    if value is None:
        return np.inf
    metric = METRICS[key]
    logarithm = np.log(value + (1 if metric.integer else 1e-9))
    return float(logarithm if metric.direction == "min" else -logarithm)


def seek(
    study: Study,
    space: WideSpace,
    evaluate: Callable[[Sequence[Recipe]], None],
    *,
    strategy: Strategy = "search",
    limit: int = LIMIT,
    seed: int = 0,
    earlier: Sequence[Recipe] = (),
) -> list[Recipe]:
    """Try `limit` recipes of a wide space; the zoo was tried before. Returns them.

    The search follows from its arguments and the results alone: one that was stopped and is called again proposes the
    same, finds it stored, and goes on.

    Args:
        study: where results are kept, and how the hypervolume grows (`Study.growth`).
        space: what to search.
        evaluate: replays recipes on every trace and stores the results.
        strategy: see `heapwright.explore.searchers.searcher`.
        limit: recipes to try.
        seed: another seed, another search.
        earlier: recipes that promise much, such as the fronts of earlier studies: the search begins near them and the
            zoo.
    """
    begun = time.perf_counter() - max((one.seconds for one in study.growth()), default=0.0)
    costs = Costs(study.objectives, [info.name for info in study.traces()])
    known: dict[str, Floats] = {}
    zoo = list(space.zoo)
    if zoo:
        known |= dict(zip(zoo, costs.of(study, zoo), strict=True))
    start = _start(space, [*earlier, *_promising(space, known)])

    def key_of(genome: NDArray[np.int64]) -> str | None:
        recipe = space.recipe(genome)
        return recipe.hash if recipe else None

    next_ones = searcher(strategy, space.sizes, seed, start, len(study.objectives), key_of)
    tried: dict[str, Recipe] = {}
    while len(tried) < limit:
        genomes = next_ones.ask(limit - len(tried))
        recipes = [space.recipe(genome) for genome in genomes]
        sound = [one for one in recipes if one is not None]
        new = [one for one in dict.fromkeys(sound) if one.hash not in tried][: limit - len(tried)]
        evaluate(new)
        tried |= {one.hash: one for one in new}
        if fresh := [one.hash for one in new if one.hash not in known]:
            known |= dict(zip(fresh, costs.of(study, fresh), strict=True))
        nothing = np.full(len(study.objectives), np.inf)
        told = np.array([known.get(one.hash, nothing) if one else nothing for one in recipes])
        next_ones.tell(genomes, told)
        _keep_growth(study, Grown(strategy, seed, len(tried), time.perf_counter() - begun, _volume(costs, known)))
    return list(tried.values())


def fronts(paths: Sequence[Path]) -> list[Recipe]:
    """The recipes on the fronts of studies."""
    found = []
    for path in paths:
        with Study.open(path) as study:
            found += [study.recipe(member.id) for member in study.front()]
    return found


def _promising(space: WideSpace, known: dict[str, Floats]) -> list[Recipe]:
    """The zoo, the best in the objectives first."""
    return [space.zoo[id] for id in sorted(known, key=lambda id: float(known[id].sum()))]


def _start(space: WideSpace, recipes: Sequence[Recipe]) -> Genomes:
    genomes = dict.fromkeys(tuple(space.nearest(recipe).tolist()) for recipe in recipes)
    return np.array(list(genomes), np.int64).reshape(len(genomes), len(space.sizes))


def _volume(costs: Costs, known: dict[str, Floats]) -> float:
    points = np.array(list(known.values()))
    points = points[np.isfinite(points).all(axis=1)]
    return pareto.hypervolume(points, costs.reference) if costs.reference is not None else 0.0


def _keep_growth(study: Study, grown: Grown) -> None:
    """Store how far the search is, unless an earlier run did."""
    if grown.evaluations > max((one.evaluations for one in study.growth()), default=0):
        study.add_growth(grown)
