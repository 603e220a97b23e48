"""Portfolio of recipe templates: the ranked fronts of other programs' traces, evaluated first on any other trace.

A template has no sizes of its own: it names the number of most frequent sizes that have lists, and thresholds as steps
between the least and the largest that matter, so that each trace makes its own recipe of it. `bench/teach.py` selects
the templates and measures the portfolio, and writes both to portfolio.toml; docs/spaces.md has the evidence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any

from heapwright._explore.default_space import Demand, Levels
from heapwright._explore.space import DEFAULT_ALIGN, Space, TargetPlatform
from heapwright._recipes.policy import BeyondReachError, policy
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

Template = Mapping[str, Any]
"""A recipe without sizes: ``zoo``, the name of a reference allocator; or ``pool`` and ``link_bytes`` as of a recipe, in
which ``most_frequent`` and ``classes`` stand for sizes, and "I/N" of ``split`` and ``coalesce_from`` for the I-th of N
steps. `fragments`: its footprint grew without bound in the stress tests of most traces.
"""


@dataclass(frozen=True)
class HeldOutScore:
    """Score of the portfolio on traces of programs from which no template was learned.

    Attributes:
        traces, programs: how many.
        hypervolume: of the whole portfolio, median share of that of the exact front.
        hypervolume_low: the share that nine in ten traces reach.
        picks: number of traces on which recommendations were compared with those of complete explorations, both without
            copies and stress tests.
        memory, accesses: median ratio of the portfolio's balanced recommendation to that of the complete exploration.
        memory_high, accesses_high: the ratio within which nine in ten stay.
    """

    traces: int
    programs: int
    hypervolume: float
    hypervolume_low: float
    picks: int
    memory: float
    memory_high: float
    accesses: float
    accesses_high: float

    def sentence(self) -> str:
        """The distance of such recommendations from those of a complete exploration, in words."""
        return (
            f"On {self.picks} held-out traces, and before stress tests, such recommendations needed "
            f"{_more(self.memory)} memory and {_more(self.accesses)} accesses than those of a complete exploration in "
            f"the median, and in nine of ten at most {_more(self.memory_high)} and {_more(self.accesses_high)}."
        )


def _more(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.1f} % {'more' if ratio >= 1 else 'less'}"


@dataclass(frozen=True)
class Portfolio:
    """Templates, the best first, and their score on held-out traces."""

    recipes: tuple[Template, ...]
    kept_out: HeldOutScore


@cache
def shipped_portfolio() -> Portfolio:
    """The portfolio that ships."""
    data = tomllib.loads((resources.files(__package__) / "portfolio.toml").read_text(encoding="utf-8"))
    return Portfolio(tuple(data["recipes"]), HeldOutScore(**data["kept_out"]))


def tailored(templates: Sequence[Template], traces: Sequence[Trace], align: int = DEFAULT_ALIGN) -> list[Recipe]:
    """Recipes that traces make of templates, in their order: canonical, each once, without contradictory ones."""
    return _made(templates, Demand.of(traces), align)


def _made(templates: Sequence[Template], demand: Demand, align: int) -> list[Recipe]:
    levels = Levels(demand, align)
    made = (recipe.canonical() for item in templates if (recipe := tailored_to(item, levels)) is not None)
    return list({recipe.hash: recipe for recipe in made}.values())


def first_of(traces: Sequence[Trace], align: int) -> tuple[Recipe, ...]:
    """Recipes to evaluate first, the best first."""
    return _first_of(Demand.of(traces), align)


@lru_cache(maxsize=64)
def _first_of(demand: Demand, align: int) -> tuple[Recipe, ...]:
    return tuple(_made(shipped_portfolio().recipes, demand, align))


def portfolio_space(
    traces: Sequence[Trace],
    align: int = DEFAULT_ALIGN,
    templates: Sequence[Template] | None = None,
    platform: TargetPlatform | None = None,
) -> Space:
    """Space of the portfolio's recipes that may ship, or of other templates, with the reference allocators."""
    may_ship = [
        item for item in (shipped_portfolio().recipes if templates is None else templates) if not item.get("fragments")
    ]
    return Space([tailored(may_ship, traces, align)], align=align, platform=platform)


def tailored_to(template: Template, levels: Levels) -> Recipe | None:
    """The recipe that traces make of a template; None if they lack sizes that it needs."""
    try:
        if "zoo" in template:
            recipe = catalogue.load(template["zoo"]).at_alignment(levels.align)
        else:
            pools = [pool for item in template["pool"] if (pool := _pool(item, levels)) is not None]
            heap = {key: template[key] for key in _HEAP if key in template}
            recipe = Recipe.from_dict({**heap, "align": levels.align, "pool": pools}, "portfolio")
        policy(recipe)
    except (ContradictionError, BeyondReachError):
        return None
    return recipe if "zoo" in template or levels.reaches(recipe) else None


_HEAP = ("link_bytes",)


def _pool(template: Template, levels: Levels) -> dict[str, Any] | None:
    pool = dict(template)
    if "most_frequent" in pool:
        frequent = levels.frequent[: pool.pop("most_frequent")]
        pool["sizes"] = sorted(frequent) if pool["kind"] == "quick" else levels.aligned(frequent)
    if "classes" in pool:
        pool["sizes"] = levels.classes[pool.pop("classes")]
    if pool.get("sizes") == []:
        return None
    for key, steps in _steps(levels).items():
        if isinstance(pool.get(key), str) and "/" in pool[key]:
            pool[key] = steps[pool[key]]
    if "up_to" in pool and levels.up_to:
        pool["up_to"] = min(pool["up_to"], levels.up_to[-1])
    if pool.get("victim_up_to", 0) not in (0, *levels.victims):
        pool["victim_up_to"] = levels.victims[-1]
    return pool


def _steps(levels: Levels) -> dict[str, dict[str, int]]:
    """Bytes of each step of the thresholds that have some."""
    of = {"split": levels.splits[1:-1], "coalesce_from": levels.merge_from}
    return {key: {f"{at}/{len(steps) - 1}": size for at, size in enumerate(steps)} for key, steps in of.items()}


def abstracted(recipe: Recipe, levels: Levels) -> Template | None:
    """The template of a recipe of the default space, from which its traces make the same recipe.

    None if there is none.
    """
    data = recipe.to_dict()
    heap = {key: data[key] for key in _HEAP if key in data}
    for pools in product(*(list(_readings(pool, levels)) for pool in data["pool"])):
        template: Template = {**heap, "pool": list(pools)}
        result = tailored_to(template, levels)
        if result is not None and result.hash == recipe.hash:
            return template
    return None


def _readings(pool: Template, levels: Levels) -> Iterator[dict[str, Any]]:
    """Templates that a pool may be an instance of, the likeliest first."""
    choices: dict[str, list[tuple[str, Any]]] = {key: [(key, value)] for key, value in pool.items()}
    if "sizes" in pool:
        choices["sizes"] = _readings_of_sizes(pool["kind"], levels)
    if "up_to" in pool:
        choices["up_to"] = [("up_to", size) for size in _near(pool["up_to"], levels.up_to)]
    if pool.get("victim_up_to"):
        every = levels.victims[-1]
        near = _near(pool["victim_up_to"], levels.victims)
        choices["victim_up_to"] = [("victim_up_to", MOST_VICTIM if size == every else size) for size in near]
    for key, steps in _steps(levels).items():
        if isinstance(pool.get(key), int):
            near = _near(pool[key], steps.values())
            choices[key] = [(key, name) for name, size in steps.items() if size in near] or choices[key]
    for values in product(*choices.values()):
        yield dict(values)


def _readings_of_sizes(kind: str, levels: Levels) -> list[tuple[str, Any]]:
    """Keys that may stand for a pool's sizes."""
    frequent = [("most_frequent", count + 1) for count in range(len(levels.frequent))]
    # a free-list cache has a list for each size up to its largest, so it has no size classes
    return frequent if kind == "quick" else [*frequent, *(("classes", name) for name in levels.classes)]


def _near(size: int, levels: Iterable[int]) -> list[int]:
    """The levels that a canonical threshold of this size may stand for."""
    return [level for level in levels if abs(level - size) <= NEAR]


NEAR = 32
"""Bytes by which canonical thresholds, which are block sizes, may differ from the given ones."""

MOST_VICTIM = 4096
"""A last remainder for every size; traces with smaller sizes only have a lower threshold."""
