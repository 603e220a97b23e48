"""What other programs' traces taught: recipes of their fronts, ranked, to be tried first on any other trace.

In the list a recipe has no sizes of its own: lists are for so many of the most frequent sizes, thresholds are steps
between the least and the largest that matter, so that each trace makes its own recipe of it. `bench/teach.py` learns
the list and what is known of it, and writes both to portfolio.toml; docs/spaces.md has the evidence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any

from heapwright._explore.default_space import Demand, Levels
from heapwright._explore.space import DEFAULT_ALIGN, Space
from heapwright._recipes.policy import BeyondReachError, policy
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

Told = Mapping[str, Any]
"""A recipe of the list: ``zoo``, its name there; or ``pool`` and ``link_bytes`` as of a recipe, where ``most_frequent``
and ``classes`` stand for sizes, and of ``split`` and ``coalesce_from`` "I/N" is the I-th of N steps. ``rots``: it grew
on most traces that this was tried on.
"""


@dataclass(frozen=True)
class HeldOutScore:
    """What the list came to on traces of programs that had no part in its learning.

    Attributes:
        traces, programs: how many.
        hypervolume: of the whole list, median share of that of the exact front.
        hypervolume_low: the share that nine in ten traces reach.
        picks: on so many of the traces a pick was set against that of a complete exploration, both as explored: without
            copies and endurance.
        memory, accesses: median of what the list's balanced pick needs, over what the other does.
        memory_high, accesses_high: what nine in ten picks stay within.
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
        """How far such answers are from a complete exploration, in words."""
        return (
            f"Such picks, on {self.picks} traces kept out of the learning and before it is tried what lasts, needed "
            f"{_more(self.memory)} memory and {_more(self.accesses)} accesses than those of a complete exploration in "
            f"the median, and in nine of ten at most {_more(self.memory_high)} and {_more(self.accesses_high)}."
        )


def _more(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.1f} % {'more' if ratio >= 1 else 'less'}"


@dataclass(frozen=True)
class Portfolio:
    """The list, the best first, and what is known of it."""

    recipes: tuple[Told, ...]
    kept_out: HeldOutScore


@cache
def taught() -> Portfolio:
    """The list that ships."""
    data = tomllib.loads((resources.files(__package__) / "portfolio.toml").read_text(encoding="utf-8"))
    return Portfolio(tuple(data["recipes"]), HeldOutScore(**data["kept_out"]))


def tailored(told: Sequence[Told], traces: Sequence[Trace], align: int = DEFAULT_ALIGN) -> list[Recipe]:
    """Recipes of the list as traces make them, in its order: canonical, each once, without those they cannot have."""
    return _made(told, Demand.of(traces), align)


def _made(told: Sequence[Told], demand: Demand, align: int) -> list[Recipe]:
    levels = Levels(demand, align)
    made = (recipe.canonical() for item in told if (recipe := tailored_to(item, levels)) is not None)
    return list({recipe.hash: recipe for recipe in made}.values())


def first_of(traces: Sequence[Trace], align: int) -> tuple[Recipe, ...]:
    """What is worth being tried first, the best first."""
    return _first_of(Demand.of(traces), align)


@lru_cache(maxsize=64)
def _first_of(demand: Demand, align: int) -> tuple[Recipe, ...]:
    return tuple(_made(taught().recipes, demand, align))


def taught_space(traces: Sequence[Trace], align: int = DEFAULT_ALIGN, told: Sequence[Told] | None = None) -> Space:
    """What may ship of the list, or of another one, as a space; the zoo with it."""
    may_ship = [item for item in (taught().recipes if told is None else told) if not item.get("rots")]
    return Space([tailored(may_ship, traces, align)], align=align)


def tailored_to(told: Told, levels: Levels) -> Recipe | None:
    """The recipe that traces make of one of the list; None where they ask for too little of what it needs."""
    try:
        if "zoo" in told:
            recipe = catalogue.load(told["zoo"]).at_alignment(levels.align)
        else:
            pools = [pool for item in told["pool"] if (pool := _pool(item, levels)) is not None]
            heap = {key: told[key] for key in _HEAP if key in told}
            recipe = Recipe.from_dict({**heap, "align": levels.align, "pool": pools}, "taught")
        policy(recipe)
    except (ContradictionError, BeyondReachError):
        return None
    return recipe if "zoo" in told or levels.reaches(recipe) else None


_HEAP = ("link_bytes",)


def _pool(told: Told, levels: Levels) -> dict[str, Any] | None:
    pool = dict(told)
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


def abstracted(recipe: Recipe, levels: Levels) -> Told | None:
    """What a recipe of the default space is without the sizes of its traces, so that they make it of that again.

    None where it is no such recipe.
    """
    data = recipe.to_dict()
    heap = {key: data[key] for key in _HEAP if key in data}
    for pools in product(*(list(_readings(pool, levels)) for pool in data["pool"])):
        info: Told = {**heap, "pool": list(pools)}
        result = tailored_to(info, levels)
        if result is not None and result.hash == recipe.hash:
            return info
    return None


def _readings(pool: Told, levels: Levels) -> Iterator[dict[str, Any]]:
    """What a pool may be without sizes, the likeliest first."""
    choices: dict[str, list[tuple[str, Any]]] = {key: [(key, value)] for key, value in pool.items()}
    if "sizes" in pool:
        choices["sizes"] = [("most_frequent", count + 1) for count in range(len(levels.frequent))]
        if pool["kind"] != "quick":
            choices["sizes"] += [("classes", name) for name in levels.classes]
    if "up_to" in pool:
        choices["up_to"] = [("up_to", size) for size in levels.up_to if abs(size - pool["up_to"]) <= NEAR]
    if pool.get("victim_up_to"):
        every = levels.victims[-1]
        near = [size for size in levels.victims if abs(size - pool["victim_up_to"]) <= NEAR]
        choices["victim_up_to"] = [("victim_up_to", MOST_VICTIM if size == every else size) for size in near]
    for key, steps in _steps(levels).items():
        if isinstance(pool.get(key), int):
            named = [(key, name) for name, size in steps.items() if abs(size - pool[key]) <= NEAR]
            choices[key] = named or choices[key]
    for values in product(*choices.values()):
        yield dict(values)


NEAR = 32
"""Canonical thresholds lie within so many bytes of what was asked for: they are sizes of blocks."""

MOST_VICTIM = 4096
"""A victim for every size: traces of smaller sizes only have a lower one."""
