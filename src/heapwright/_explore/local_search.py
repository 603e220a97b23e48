"""Local search of a wide space: which recipes are evaluated, in which order, and how the front grows meanwhile."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.space import WideSpace, adapted, reaches
from heapwright._explore.space_file import HEAP_AXES, MADE
from heapwright._recipes.pools import MAX_POOLS
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import METRICS, ON_RECORDING, Columns, Value, as_float, combine_columns, named_in
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Grown

if TYPE_CHECKING:
    from heapwright._recipes.pools import Pool

Floats = NDArray[np.float64]

LIMIT = 5000
"""Recipes that a search evaluates by default."""

BATCH = 64
"""Recipes evaluated at a time; the next ones follow from their results."""

USUAL = 20
"""Prior of a key: one in this many of its changes is assumed to lead to the front."""

MOST_VAIN_DRAWS = 1000
"""The space counts as exhausted after this many draws in a row without a new recipe."""


MetricsByTrace = Mapping[str, Mapping[str, Mapping[str, Value]]]
"""Metrics by recipe and trace."""

_NOTHING: MetricsByTrace = MappingProxyType({})


@dataclass
class RecipeCosts:
    """Costs of recipes in the objectives, comparable over traces: logarithms of ratios to the best reference allocator.

    Of several devices the worst counts, as in the ranking. A recipe that failed requests costs inf. The largest costs
    of the first recipes are the reference point of hypervolumes.
    """

    objectives: Sequence[str]
    devices: Sequence[Mapping[str, int]]
    """Traces of each device, which are its loads, with their calls."""
    refusing: bool = field(init=False)
    best: Floats | None = None
    """float64[devices, objectives], raw logarithms."""
    reference: Floats | None = None

    def __post_init__(self) -> None:
        self.refusing = "admitted_fraction" in self.objectives

    def of(self, study: Analysis, ids: Sequence[str], results: MetricsByTrace = _NOTHING) -> Floats:
        """float64[n, objectives] of recipes that the study has results of; the first call sets the scale.

        The study is not read for those whose ``results`` on each trace are given.
        """
        raw = self._raw(study, ids, results)
        if self.best is None:
            served = np.where(np.isfinite(raw), raw, np.inf)
            self.best = np.where(np.isfinite(served.min(axis=0)), served.min(axis=0), 0.0)
        costs: Floats = (raw - self.best).max(axis=1)
        finite = np.isfinite(costs).all(axis=1)
        if self.reference is None and finite.any():
            self.reference = costs[finite].max(axis=0)
        return costs

    def _raw(self, study: Analysis, ids: Sequence[str], results: MetricsByTrace) -> Floats:
        """Logarithms of the objectives, float64[n, devices, objectives]: less is better, inf if requests failed."""
        keys = sorted({"failed", "footprint_bytes"}.union(*map(named_in, self.objectives)) & METRICS.keys())
        known = {id: results[id] for id in ids if len(results.get(id, ())) == sum(map(len, self.devices))}
        unknown = [id for id in dict.fromkeys(ids) if id not in known]
        metrics: MetricsByTrace = known | study.per_trace(unknown, keys) if unknown else known
        raw = np.full((len(ids), len(self.devices), len(self.objectives)), np.inf)
        for at, loads in enumerate(self.devices):
            rows = [row for row, id in enumerate(ids) if loads.keys() <= metrics[id].keys()]
            combined = _combined([[metrics[ids[row]][trace] for trace in loads] for row in rows], keys, loads)
            completed = np.full(len(rows), self.refusing) | (combined["failed"] == 0)
            for which, key in enumerate(self.objectives):
                raw[rows, at, which] = np.where(completed, _costs(key, combined[key]), np.inf)
        return raw


def _combined(each: Sequence[Sequence[Mapping[str, Value]]], keys: Sequence[str], loads: Mapping[str, int]) -> Columns:
    """Metrics of recipes over all loads of one device."""
    shape = len(each), len(loads)
    values = {key: [[as_float(metrics[key]) for metrics in of_recipe] for of_recipe in each] for key in keys}
    columns = {key: np.array(of_key, np.float64).reshape(shape) for key, of_key in values.items()}
    combined = Columns(combine_columns(columns, [*loads.values()]))
    combined.calls = float(sum(loads.values()))
    return combined


def _costs(key: str, values: Floats) -> Floats:
    metric = METRICS[key]
    logarithms = np.log(values + (1 if metric.integer else 1e-9))
    return np.where(np.isnan(values), np.inf, logarithms if metric.direction == "min" else -logarithms)


def seek(
    study: Analysis,
    space: WideSpace,
    evaluate: Callable[[Sequence[Recipe]], MetricsByTrace],
    *,
    limit: int = LIMIT,
    seed: int = 0,
    earlier: Sequence[Recipe] = (),
    first: Sequence[Recipe] = (),
) -> list[Recipe]:
    """Evaluate at most `limit` recipes of a wide space, after its reference allocators. Returns them.

    The search begins with promising recipes and continues by steps from the front found so far. Its order follows from
    its arguments and the results alone: called again after an interrupt, it proposes the same recipes, finds their
    results stored, and continues.

    Args:
        study: where results are kept, and how the hypervolume grows (`Analysis.growth`).
        space: what to search.
        evaluate: replays recipes on every trace, stores the results, and returns those that were not stored before.
        limit: recipes to evaluate.
        seed: another seed, another search.
        earlier, first: recipes to begin with, before the reference allocators (fronts of earlier studies) and after
            them (the portfolio). A recipe outside the space stands for the nearest one in it.
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
    """Reference allocators, the best in the objectives first."""
    return [space.zoo[id] for id in sorted(known, key=lambda id: float(known[id].sum()))]


def _in_space(space: WideSpace, recipe: Recipe) -> Recipe | None:
    """The recipe in canonical form; the nearest one of the axes if it is outside the space."""
    if space.default and recipe.align == space.align:
        return adapted(recipe, space.platform)
    return space.recipe(space.nearest(recipe))


class LocalSearch:
    """Local search: proposes recipes to begin with, then steps from members of the fronts found so far.

    A step starts at a member of the front with a probability that grows with the hypervolume it alone dominates, and
    changes a key with one that grows with the share of its changes that led to a front. No recipe is proposed twice.
    """

    def __init__(self, neighbourhood: Neighbourhood, beginnings: Sequence[Recipe], seed: int) -> None:
        """Begin with these recipes in their order."""
        self.volume = 0.0
        self._neighbourhood, self._waiting, self._random = neighbourhood, deque(beginnings), Random(seed)
        self._recipes: dict[str, Recipe] = {}
        self._costs: dict[str, Floats] = {}
        """Costs of recipes without failed requests."""
        self._members: Counter[str] = Counter()
        """Ids of the members of the fronts, with how likely they are."""
        self._remaining: dict[str, dict[Hashable, list[Callable[[], Recipe | None]]]] = {}
        """Steps that were not taken from a recipe, by what they change."""
        self._led_to: dict[str, Hashable] = {}
        self._taken: Counter[Hashable] = Counter()
        self._kept: Counter[Hashable] = Counter()
        self._worth: dict[Hashable, float] = {}

    def tell(self, recipes: Mapping[str, Recipe], costs: Mapping[str, Floats], reference: Floats | None) -> None:
        """Take the costs of recipes, float64[objectives] each, infinite if requests failed.

        ``reference``: float64[objectives], reference point of hypervolumes; None before any recipe completed.
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
        """The next recipes to evaluate, at most ``most``; none once the space is exhausted."""
        results: list[Recipe] = []
        while len(results) < most and (item := self._next()) is not None:
            results.append(item)
            self._recipes[item.hash] = item
        return results

    def _next(self) -> Recipe | None:
        while self._waiting:
            if (item := self._waiting.popleft()).hash not in self._recipes:
                return item
        for _ in range(MOST_VAIN_DRAWS):
            what, drawn = self._drawn()
            if drawn is not None and drawn.hash not in self._recipes:
                self._led_to[drawn.hash] = what
                return drawn
        return None

    def _drawn(self) -> tuple[Hashable, Recipe | None]:
        """A step not yet taken from some member: the key that it changes, and the recipe to which it leads."""
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
        if id not in self._remaining:
            remaining = self._remaining[id] = {}
            for what, make in self._neighbourhood.steps(self._recipes[id]):
                remaining.setdefault(what, []).append(make)
        return self._remaining[id]

    def _farther(self) -> Recipe | None:
        """The recipe two random steps away from a member, or from any recipe if there is none."""
        recipe: Recipe | None = self._recipes[self._random.choice(list(self._members or self._recipes))]
        for _ in range(2):
            steps = self._neighbourhood.steps(recipe) if recipe is not None else []
            recipe = self._random.choice(steps)[1]() if steps else None
        return recipe


def own_volumes(points: Floats, reference: Floats) -> Floats:
    """Hypervolume that each member of a front adds, float64[n]; an upper bound of it for more than two objectives."""
    volumes = np.ones(len(points))
    for values, most in zip(points.T, reference, strict=True):
        order = np.argsort(values, kind="stable")
        volumes[order] *= np.maximum(np.diff(values[order], append=max(most, values.max(initial=most))), 1e-9)
    return volumes


Step = tuple[Hashable, Callable[[], Recipe | None]]
"""The key that changes; a function that makes the canonical recipe, or None if the value contradicts the others."""

Key = tuple[str, str]
"""A kind of pool, or "heap", and one of its keys."""

_NAMELESS = {"name": "", "year": None, "source": "", "about": ""}


class Neighbourhood:
    """Neighbourhood of recipes: the steps that a space allows from each of them.

    A step takes another value along one axis of the space. In the default space it may also take another value of any
    key, or other pools before the last, that some recipe has with which the search begins.
    """

    def __init__(self, space: WideSpace, beginnings: Sequence[Recipe]) -> None:
        """Take the space, and the recipes whose values and pools are further steps in the default space."""
        self._space = space
        self._axes = [at for at, [(_, key, _), *_] in enumerate(space.axes.values) if not space.default or key in MADE]
        self._values: dict[Key, dict[Any, None]] = {}
        """Values in the order in which they were met."""
        self._before: dict[tuple[Pool, ...], None] = {}
        if space.default:
            for kind, key, value in space.axes.entries():
                self._values.setdefault((kind, key), {}).setdefault(value)
            for recipe in beginnings:
                if not recipe.memory:
                    self._take(recipe)

    def _take(self, recipe: Recipe) -> None:
        pools = _plain(recipe)
        for pool in pools:
            for key in type(pool).model_fields:
                self._values.setdefault((pool.kind, key), {}).setdefault(getattr(pool, key))
        self._values.setdefault(("heap", "link_bytes"), {}).setdefault(recipe.link_bytes)
        if len(pools) < MAX_POOLS:
            self._before.setdefault(pools[:-1])

    def steps(self, recipe: Recipe) -> list[Step]:
        """All steps from a canonical recipe of the space, some hundred; none is made yet."""
        genome = self._space.nearest(recipe)
        results: list[Step] = [
            (axis, partial(self._along, tuple(genome), axis, value))
            for axis in self._axes
            for value in range(self._space.sizes[axis])
            if value != genome[axis]
        ]
        if self._space.default and not recipe.memory:
            results += ((what, partial(self._adapted, make)) for what, make in self._borrowed(recipe))
        return results

    def _adapted(self, make: Callable[[], Recipe | None]) -> Recipe | None:
        made = make()
        return made if made is None or self._space.platform is None else adapted(made, self._space.platform)

    def _along(self, genome: tuple[int, ...], axis: int, value: int) -> Recipe | None:
        return self._space.recipe((*genome[:axis], value, *genome[axis + 1 :]))

    def _borrowed(self, recipe: Recipe) -> Iterator[Step]:
        """Steps to values and pools of other recipes."""
        pools = _plain(recipe)
        for at, pool in enumerate(pools):
            for key in type(pool).model_fields:
                for value in self._others((pool.kind, key), getattr(pool, key)):
                    yield (pool.kind, key), partial(_with, recipe, pools, at, {key: value})
        for key in HEAP_AXES:
            for value in self._others(("heap", key), getattr(recipe, key)):
                yield ("heap", key), partial(_made, recipe, {key: value, "pools": pools})
        for before in self._before:
            if before != pools[:-1]:
                yield "pools", partial(_made, recipe, {"pools": (*before, pools[-1])})

    def _others(self, key: Key, value: Any) -> list[Any]:
        return [other for other in self._values.get(key, ()) if other != value]


def _plain(recipe: Recipe) -> tuple[Pool, ...]:
    """The pools without values that follow from other keys, which are derived again once these change."""
    return tuple(pool.without_resolved(recipe.geometry) for pool in recipe.pools)


def _with(recipe: Recipe, pools: tuple[Pool, ...], at: int, changes: dict[str, Any]) -> Recipe | None:
    changed = pools[at].model_copy(update=changes)
    return _made(recipe, {"pools": (*pools[:at], changed, *pools[at + 1 :])})


def _made(recipe: Recipe, changes: dict[str, Any]) -> Recipe | None:
    """The recipe with other keys, each valid by itself; None if they contradict one another."""
    made = recipe.model_copy(update=_NAMELESS | changes)
    if made.contradiction is not None:
        return None
    made = made.canonical()
    return made if reaches(made) else None
