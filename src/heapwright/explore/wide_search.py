"""Search of a wide space: what of it is tried, in which order, and how the front grows meanwhile.

NSGA-II, and two baselines, stand behind one interface. A genome is a row of whole numbers, one an axis of the space:
which of the axis's values is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from heapwright.decide import pareto
from heapwright.decide.study import Study
from heapwright.explore.space import WideSpace
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.recipe import Recipe
from heapwright.replay.metrics import METRICS, Columns, Value, as_float, combine
from heapwright.studies.records import Grown

Genomes = NDArray[np.int64]
Floats = NDArray[np.float64]
Strategy = Literal["search", "latin-hypercube", "random"]
"""Names of searchers: NSGA-II (Deb et al. 2002), and what it is compared with."""

POPULATION = 100
"""Genomes of a generation: the default of pymoo's NSGA-II."""


class Searcher(Protocol):
    """Proposes genomes, and is told what they cost."""

    def ask(self, most: int) -> Genomes:
        """The next genomes to try, int64[n, axes] with 0 < n <= most, or more than `most` of a whole generation."""

    def tell(self, genomes: Genomes, costs: Floats) -> None:
        """What genomes that were asked for cost, float64[n, objectives]: less is better, inf for what is refused."""


def searcher(
    strategy: Strategy,
    sizes: Sequence[int],
    seed: int,
    start: Genomes,
    objectives: int,
    key_of: Callable[[NDArray[np.int64]], str | None],
) -> Searcher:
    """The searcher of that name.

    Args:
        strategy: its name.
        sizes: how many values each axis has.
        seed: another seed, another search.
        start: genomes to begin with, int64[n, axes].
        objectives: how many costs a genome has.
        key_of: what genomes that stand for the same recipe have in common; None for one that stands for none.

    Raises HeapwrightError where pymoo is missing.
    """
    if strategy == "search":
        return _Nsga2(sizes, seed, start, objectives, key_of)
    return _Baseline(strategy, sizes, seed)


def _latin(sizes: Sequence[int], count: int, random: np.random.Generator) -> Genomes:
    """A Latin hypercube (McKay, Beckman and Conover 1979): along each axis the values are spread evenly."""
    strata = np.stack([random.permutation(count) for _ in sizes], axis=1) + random.random((count, len(sizes)))
    genomes: Genomes = (strata / count * np.array(sizes)).astype(np.int64)
    return genomes


class _Baseline:
    def __init__(self, strategy: Strategy, sizes: Sequence[int], seed: int) -> None:
        self._latin = strategy == "latin-hypercube"
        self._sizes = sizes
        self._random = np.random.default_rng(seed)

    def ask(self, most: int) -> Genomes:
        if self._latin:
            return _latin(self._sizes, most, self._random)
        genomes: Genomes = self._random.integers(0, self._sizes, (min(most, POPULATION), len(self._sizes)))
        return genomes

    def tell(self, genomes: Genomes, costs: Floats) -> None:
        """Nothing that was found changes what is tried next."""


class _Nsga2:
    """NSGA-II of pymoo over whole numbers.

    Uniform crossover, as the axes have no order among themselves; a gene mutates to a neighbour as often as to any
    value, since some axes are ordered and some are not. What stands for a recipe that was tried is never tried again.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seed: int,
        start: Genomes,
        objectives: int,
        key_of: Callable[[NDArray[np.int64]], str | None],
    ) -> None:
        try:
            from pymoo.algorithms.moo.nsga2 import NSGA2
            from pymoo.core.duplicate import DuplicateElimination
            from pymoo.core.mutation import Mutation
            from pymoo.core.problem import Problem
            from pymoo.core.termination import NoTermination
            from pymoo.operators.crossover.ux import UniformCrossover
        except ImportError:
            raise HeapwrightError("search: pymoo is missing; install heapwright[search]") from None
        self._random = np.random.default_rng(seed)
        self._seen: set[str] = set()
        self._sizes = np.array(sizes)
        random, seen, widths = self._random, self._seen, self._sizes

        class Change(Mutation):  # type: ignore[misc]
            def _do(self, problem: Any, genomes: Any, **_: Any) -> Any:
                return _mutated(genomes, widths, random)

        class Tried(DuplicateElimination):  # type: ignore[misc]
            """Leaves out what was tried, what is in the generation twice, and what stands for no recipe."""

            def _do(self, population: Any, other: Any, is_duplicate: Any) -> Any:
                twice = {key_of(one.X) for one in other} if other is not None else set()
                for at, one in enumerate(population):
                    key = key_of(one.X)
                    is_duplicate[at] |= key is None or key in seen or key in twice
                    if other is None:
                        twice.add(key)
                return is_duplicate

        drawn = _latin(sizes, POPULATION, self._random)
        first = np.concatenate([start, drawn])[: max(POPULATION, len(start))]
        self._problem = Problem(len(sizes), objectives, 1, xl=0, xu=self._sizes - 1, vtype=int)
        self._algorithm = NSGA2(
            pop_size=POPULATION,
            sampling=_distinct(first, key_of),
            crossover=UniformCrossover(),
            mutation=Change(prob=1.0),
            eliminate_duplicates=Tried(),
        )
        self._algorithm.setup(self._problem, termination=NoTermination(), seed=seed)
        self._key_of = key_of
        self._asked: Any = None

    def ask(self, most: int) -> Genomes:
        self._asked = self._algorithm.ask()
        if self._asked is None or not len(self._asked):  # all that the population leads to was tried
            return _latin(list(self._sizes), POPULATION, self._random)
        genomes: Genomes = np.asarray(self._asked.get("X"), np.int64)
        return genomes

    def tell(self, genomes: Genomes, costs: Floats) -> None:
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem

        self._seen.update(filter(None, map(self._key_of, genomes)))
        if self._asked is None or not len(self._asked):
            return
        refused = np.asarray(np.isinf(costs).any(axis=1))
        known = np.where(refused[:, np.newaxis], 0.0, costs)
        static = StaticProblem(self._problem, F=known, G=refused[:, np.newaxis].astype(float))
        Evaluator().eval(static, self._asked)
        self._algorithm.tell(infills=self._asked)


def _distinct(genomes: Genomes, key_of: Callable[[NDArray[np.int64]], str | None]) -> Genomes:
    """The first genome of every recipe."""
    first: dict[str, int] = {}
    for at, genome in enumerate(genomes):
        if key := key_of(genome):
            first.setdefault(key, at)
    return genomes[list(first.values())]


def _mutated(genomes: Genomes, sizes: NDArray[np.int64], random: np.random.Generator) -> Genomes:
    """Change one gene in the mean, by a step or to any value."""
    genomes = np.asarray(genomes, np.int64)
    chosen = random.random(genomes.shape) < 1 / len(sizes)
    steps = np.clip(genomes + random.choice((-1, 1), genomes.shape), 0, sizes - 1)
    anywhere = random.integers(0, sizes, genomes.shape)
    return np.where(chosen, np.where(random.random(genomes.shape) < 0.5, steps, anywhere), genomes)


LIMIT = 5000
"""Recipes that a search tries if nothing else is said."""


@dataclass
class Costs:
    """What recipes cost in the objectives, comparable over traces: logarithms of ratios to the zoo's best.

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
        """Logarithms of the objectives, float64[n, devices, objectives]: less is better, inf for what is refused."""
        found = study.per_trace(list(dict.fromkeys(ids)))
        raw = np.full((len(ids), len(self.devices), len(self.objectives)), np.inf)
        for row, id in enumerate(ids):
            for at, loads in enumerate(self.devices):
                if not loads.keys() <= found[id].keys():
                    continue
                metrics = combine([found[id][trace] for trace in loads], [*loads.values()])
                if self.refusing or metrics["failed"] == 0:
                    columns = Columns({key: np.array([as_float(value)]) for key, value in metrics.items()})
                    columns.calls = float(sum(loads.values()))
                    raw[row, at] = [_cost(key, METRICS[key].plain(float(columns[key][0]))) for key in self.objectives]
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
        strategy: see `searcher`.
        limit: recipes to try.
        seed: another seed, another search.
        earlier: recipes that promise much, such as the fronts of earlier studies: the search begins near them and the
            zoo.
    """
    begun = time.perf_counter() - max((one.seconds for one in study.growth()), default=0.0)
    costs = Costs(study.objectives, study.devices())
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
