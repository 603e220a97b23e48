"""Search of a wide space by local steps: what of it is tried, in which order, and how the front grows meanwhile."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.neighbourhood import Neighbourhood
from heapwright._explore.space import WideSpace
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import METRICS, ON_RECORDING, Columns, Value, as_float, combine_columns, named_in
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Grown

Floats = NDArray[np.float64]

LIMIT = 5000
"""Recipes that a search tries if nothing else is said."""

BATCH = 64
"""So many are tried before it is looked at what came of them."""

USUAL = 20
"""Of so many changes of a key that nothing is known of, one is taken to lead to a front."""

PATIENCE = 1000
"""After so many draws without anything new the space is taken to be used up."""


Told = Mapping[str, Mapping[str, Mapping[str, Value]]]
"""Metrics by recipe and trace."""

_NOTHING: Told = MappingProxyType({})


@dataclass
class RecipeCosts:
    """Costs of recipes in the objectives, comparable over traces: logarithms of ratios to the zoo's best.

    Of several devices the worst counts, as where recipes are ranked. A recipe that refused requests costs inf. What the
    first recipes cost at most is the reference of hypervolumes.
    """

    objectives: Sequence[str]
    devices: Sequence[Mapping[str, int]]
    """Of each the traces that are its loads, with their calls."""
    refusing: bool = field(init=False)
    best: Floats | None = None
    """float64[devices, objectives], raw logarithms."""
    reference: Floats | None = None

    def __post_init__(self) -> None:
        self.refusing = "admitted_fraction" in self.objectives

    def of(self, study: Analysis, ids: Sequence[str], told: Told = _NOTHING) -> Floats:
        """float64[n, objectives] of recipes that the study has results of; the first call sets the scale.

        Those that are ``told`` of each trace are not asked for.
        """
        raw = self._raw(study, ids, told)
        if self.best is None:
            served = np.where(np.isfinite(raw), raw, np.inf)
            self.best = np.where(np.isfinite(served.min(axis=0)), served.min(axis=0), 0.0)
        costs: Floats = (raw - self.best).max(axis=1)
        finite = np.isfinite(costs).all(axis=1)
        if self.reference is None and finite.any():
            self.reference = costs[finite].max(axis=0)
        return costs

    def _raw(self, study: Analysis, ids: Sequence[str], told: Told) -> Floats:
        """Logarithms of the objectives, float64[n, devices, objectives]: less is better, inf for what is refused."""
        keys = {"failed", "footprint_bytes"}.union(*map(named_in, self.objectives)) & METRICS.keys()
        known = {id: told[id] for id in ids if len(told.get(id, ())) == sum(map(len, self.devices))}
        unknown = [id for id in dict.fromkeys(ids) if id not in known]
        result: Told = known | study.per_trace(unknown, sorted(keys)) if unknown else known
        raw = np.full((len(ids), len(self.devices), len(self.objectives)), np.inf)
        for at, loads in enumerate(self.devices):
            rows = [row for row, id in enumerate(ids) if loads.keys() <= result[id].keys()]
            each = [[result[ids[row]][trace] for trace in loads] for row in rows]
            values = {key: [[as_float(item[key]) for item in some] for some in each] for key in keys}
            shape = len(rows), len(loads)
            columns = {key: np.array(of_key, np.float64).reshape(shape) for key, of_key in values.items()}
            combined = Columns(combine_columns(columns, [*loads.values()]))
            combined.calls = float(sum(loads.values()))
            served = np.full(len(rows), self.refusing) | (combined["failed"] == 0)
            for which, key in enumerate(self.objectives):
                raw[rows, at, which] = np.where(served, _costs(key, combined[key]), np.inf)
        return raw


def _costs(key: str, values: Floats) -> Floats:
    metric = METRICS[key]
    logarithms = np.log(values + (1 if metric.integer else 1e-9))
    return np.where(np.isnan(values), np.inf, logarithms if metric.direction == "min" else -logarithms)


def seek(
    study: Analysis,
    space: WideSpace,
    evaluate: Callable[[Sequence[Recipe]], Told],
    *,
    limit: int = LIMIT,
    seed: int = 0,
    earlier: Sequence[Recipe] = (),
    first: Sequence[Recipe] = (),
) -> list[Recipe]:
    """Try at most `limit` recipes of a wide space; the zoo was tried before. Returns them.

    It begins with recipes that promise much, and goes on by steps from the front found so far. It follows from its
    arguments and the results alone: one that was stopped and is called again proposes the same, finds it stored, and
    goes on.

    Args:
        study: where results are kept, and how the hypervolume grows (`Analysis.growth`).
        space: what to search.
        evaluate: replays recipes on every trace, stores the results, and tells those that were not stored before.
        limit: recipes to try.
        seed: another seed, another search.
        earlier, first: recipes to begin with: those before the zoo, such as fronts of earlier studies, and those behind
            it, such as what other traces taught. What does not belong to the space stands for the nearest one.
    """
    grown = study.growth()
    done = max((item.evaluations for item in grown), default=0)
    begun = time.perf_counter() - max((item.seconds for item in grown), default=0.0)
    costs = RecipeCosts([ON_RECORDING.get(key, key) for key in study.objectives], study.devices())
    zoo = list(space.zoo)
    known = dict(zip(zoo, costs.of(study, zoo), strict=True)) if zoo else {}
    info = [*earlier, *_promising(space, known), *first]
    beginnings = [item for recipe in info if (item := _in_space(space, recipe)) is not None]
    walk = LocalSearch(Neighbourhood(space, beginnings), beginnings, seed)
    walk.tell({id: item.canonical() for id, item in space.zoo.items()}, known, costs.reference)
    tried: list[Recipe] = []
    while new := walk.ask(min(BATCH, limit - len(tried))):
        result = evaluate(new)
        tried += new
        ids = [item.hash for item in new]
        cost = dict(zip(ids, costs.of(study, ids, result), strict=True))
        walk.tell(dict(zip(ids, new, strict=True)), cost, costs.reference)
        if len(tried) > done:  # an earlier run stored the rest
            study.add_growth(Grown("search", seed, len(tried), time.perf_counter() - begun, walk.volume))
    return tried


def fronts(paths: Sequence[Path]) -> list[Recipe]:
    """The recipes on the fronts of studies."""
    results = []
    for path in paths:
        with Analysis.open(path) as study:
            results += [study.recipe(member.id) for member in study.front()]
    return results


def _promising(space: WideSpace, known: dict[str, Floats]) -> list[Recipe]:
    """The zoo, the best in the objectives first."""
    return [space.zoo[id] for id in sorted(known, key=lambda id: float(known[id].sum()))]


def _in_space(space: WideSpace, recipe: Recipe) -> Recipe | None:
    """The recipe in canonical form; the nearest one of the axes where it does not belong to the space."""
    if space.default and recipe.align == space.align:
        return recipe.canonical()
    return space.recipe(space.nearest(recipe))


class LocalSearch:
    """What is tried next: recipes to begin with, then steps from members of the fronts found so far.

    A member of the front is the likelier to be stepped from the more of the hypervolume is its own, and a key to be
    changed the more of its changes led to a front. Nothing is tried twice.
    """

    def __init__(self, neighbourhood: Neighbourhood, beginnings: Sequence[Recipe], seed: int) -> None:
        """Begin with these recipes in their order."""
        self.volume = 0.0
        self._neighbourhood, self._waiting, self._random = neighbourhood, deque(beginnings), Random(seed)
        self._recipes: dict[str, Recipe] = {}
        self._costs: dict[str, Floats] = {}
        """Of those that were served everything."""
        self._members: Counter[str] = Counter()
        """Ids of the members of the fronts, with how likely they are."""
        self._left: dict[str, dict[Hashable, list[Callable[[], Recipe | None]]]] = {}
        """Steps that were not taken from a recipe, by what they change."""
        self._led_to: dict[str, Hashable] = {}
        self._taken: Counter[Hashable] = Counter()
        self._kept: Counter[Hashable] = Counter()
        self._worth: dict[Hashable, float] = {}

    def tell(self, recipes: Mapping[str, Recipe], costs: Mapping[str, Floats], reference: Floats | None) -> None:
        """Take note of what recipes cost, float64[objectives] each, infinite where one refused requests.

        ``reference``: float64[objectives], how far hypervolumes reach; None before anything was served.
        """
        self._recipes |= recipes
        self._costs |= {id: item for id, item in costs.items() if np.isfinite(item).all()}
        self._members.clear()
        if reference is not None and self._costs:
            ids, points = list(self._costs), np.array(list(self._costs.values()))
            self.volume = pareto.hypervolume(points, reference)
            rows = np.flatnonzero(pareto.front(points, ["min"] * len(reference)))
            own = own_volumes(points[rows], reference)
            self._members.update({ids[row]: volume for row, volume in zip(rows, own, strict=True)})
        for id in costs.keys() & self._led_to.keys():
            what = self._led_to.pop(id)
            self._taken[what] += 1
            self._kept[what] += id in self._members
        self._worth = {what: (1 + self._kept[what]) / (USUAL + taken) for what, taken in self._taken.items()}

    def ask(self, most: int) -> list[Recipe]:
        """The next recipes to try, at most so many; none where nothing is left."""
        results: list[Recipe] = []
        while len(results) < most and (item := self._next()) is not None:
            results.append(item)
            self._recipes[item.hash] = item
        return results

    def _next(self) -> Recipe | None:
        while self._waiting:
            if (item := self._waiting.popleft()).hash not in self._recipes:
                return item
        for _ in range(PATIENCE):
            what, drawn = self._drawn()
            if drawn is not None and drawn.hash not in self._recipes:
                self._led_to[drawn.hash] = what
                return drawn
        return None

    def _drawn(self) -> tuple[Hashable, Recipe | None]:
        """What a step changes that was not taken from some member, and where it leads to."""
        if not self._members:
            return None, self._farther()
        [member] = self._random.choices(list(self._members), list(self._members.values()))
        remaining = self._steps(member)
        if not remaining:
            del self._members[member]
            return None, None
        likely = [len(makes) * self._worth.get(what, 1 / USUAL) for what, makes in remaining.items()]
        [what] = self._random.choices(list(remaining), likely)
        make = remaining[what].pop(self._random.randrange(len(remaining[what])))
        if not remaining[what]:
            del remaining[what]
        return what, make()

    def _steps(self, id: str) -> dict[Hashable, list[Callable[[], Recipe | None]]]:
        if id not in self._left:
            remaining = self._left[id] = {}
            for what, make in self._neighbourhood.steps(self._recipes[id]):
                remaining.setdefault(what, []).append(make)
        return self._left[id]

    def _farther(self) -> Recipe | None:
        """Where two steps at random lead to, from a member, or from any recipe where there is none."""
        recipe: Recipe | None = self._recipes[self._random.choice(list(self._members or self._recipes))]
        for _ in range(2):
            steps = self._neighbourhood.steps(recipe) if recipe is not None else []
            recipe = self._random.choice(steps)[1]() if steps else None
        return recipe


def own_volumes(points: Floats, reference: Floats) -> Floats:
    """What each member of a front adds to its hypervolume, float64[n]; of more than two objectives at most that."""
    volumes = np.ones(len(points))
    for values, most in zip(points.T, reference, strict=True):
        order = np.argsort(values, kind="stable")
        volumes[order] *= np.maximum(np.diff(values[order], append=max(most, values.max(initial=most))), 1e-9)
    return volumes
