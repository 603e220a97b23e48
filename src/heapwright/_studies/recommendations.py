"""Recommendations: one recipe for a device, as an engineer would choose it on seeing the front; docs/choosing.md has
the rule, and docs/robustness.md the evidence for its constants.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._recipes.pools import KINDS
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import TIME, metric
from heapwright._studies.results import Bools, Floats
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.units import number_of

Pick = Literal["balanced", "smallest", "fastest"]
PICKS: tuple[Pick, ...] = ("balanced", "smallest", "fastest")
"""The ways to pick one recipe; see `choose`."""

MEMORY_STEP, COST_STEP = 1.15, 2.0
"""The price: `MEMORY_STEP` times the memory is worth as much as `COST_STEP` times of anything else.

A device is bought by its memory. What needs more than `COST_STEP` times the least memory is no compromise.
"""

EQUAL_WITHIN = 1.02
"""Within this factor of the best, recipes count as equal, and the other needs decide: the order of smaller differences
turns on another recording."""

WORST_CALL = 400
"""Accesses of a malloc or free on the future within which a recommendation stays if any recipe does.

Heaps of bounded work stay below; those that empty lists or walk free blocks in one call are far above.
"""

MEMORY = ("long_run_bytes", "footprint_bytes", "smallest_arena_bytes", "allocated_peak_bytes")
"""The metrics that are memory to be bought."""

NEAR = 1.5
"""A recipe is near the front if it is within this factor of some member in every objective."""

WELL_KNOWN = ("all-round", "tlsf", "newlib-nano")
"""Reference allocators that recommendations are compared with: what most would use otherwise."""

DEPLOYED = ("freertos-heap4", "zephyr-sys-heap", "lwip-mem", "umm-malloc")
"""Reference allocators that systems ship with: replayed on futures too, as they may be the current ones."""

UNTUNED = ("all-round", "fast", "small", "small-lists", "exact-bins", "lea-2.7.2", "half-fit", "tlsf")
"""Reference allocators that are candidates in any case: what one would use without a recording."""


# ---- conditions ----------------------------------------------------------------------------------------------------

COMPARE: Mapping[str, Callable[[Any, float], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
"""Comparisons of conditions and rules: of numbers, or of columns."""
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*")


RESERVE = "reserve_bytes"
"""Key that conditions may bound in addition to metrics: the arena to reserve for a recipe."""


class NoPickError(HeapwrightError):
    """No recipe that may ship meets a bound on memory, although another recipe does."""


@dataclass(frozen=True)
class Condition:
    """A bound on a metric over all traces, or on `RESERVE`, such as ``footprint_bytes <= 131072``."""

    key: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read KEY <= VALUE, or with >=, ==, < or >. Raises `ParameterError`."""
        match = _CONDITION.fullmatch(text)
        try:
            if match is None:
                raise ValueError
            key, comparison, bound = match.groups()
            return cls(key if key == RESERVE else metric(key).key, comparison, number_of(bound))
        except ValueError:
            raise ParameterError(
                f"{text!r}: no condition; write one as in 'footprint_bytes <= 131072'", parameter="where"
            ) from None
        except ParameterError as error:
            raise ParameterError(error.message, parameter="where") from None

    @property
    def bounds_memory(self) -> bool:
        """Whether it bounds memory."""
        return self.key in (*MEMORY, RESERVE) and self.comparison in ("<=", "<")

    def met(self, values: Floats) -> Bools:
        """Mask of the values of recipes that meet it; one that is NaN does not."""
        met: Bools = COMPARE[self.comparison](values, self.bound)
        return met

    def __str__(self) -> str:
        return f"{self.key} {self.comparison} {self.bound:.15g}"


# ---- designs -------------------------------------------------------------------------------------------------------


def design(recipe: Recipe) -> Hashable:
    """Design of a recipe, equal for recipes that differ in sizes and thresholds alone."""
    return tuple([_design_values_of(pool.kind)(pool.__dict__) for pool in recipe.pools])


@cache
def _design_values_of(kind: str) -> Callable[[Mapping[str, Any]], Hashable]:
    """Function that takes the values that are part of a design out of a pool's keys."""
    keys = KINDS[kind].model_fields
    values = operator.itemgetter("kind", *(key for key in _DESIGN if key in keys))
    present = [key for key in _PRESENT if key in keys]
    return lambda pool: (values(pool), *[bool(pool[key]) for key in present])


_DESIGN = ("free_list", "order", "bins", "fit", "coalesce", "split_from", "flush", "find", "header")

_PRESENT = ("victim_up_to", "close_bins", "coalesce_from", "limit_blocks")
"""Keys of which only the presence is part of a design."""


# ---- the choice ----------------------------------------------------------------------------------------------------


class Needs(NamedTuple):
    """Ratios of recipes to the best in one metric, float64[n] of at least 1: on the traces explored on, and the worst
    over these and the hold-out set."""

    here: Floats
    at_worst: Floats


def order(how: Pick, needs: Mapping[str, Needs], most: int | None = None) -> list[int]:
    """Recipes, one or more, in the order in which they are recommended: their indices, the recommendation first.

    ``needs``: the objectives, one of `MEMORY` and one of anything else for ``smallest`` and ``fastest``. ``most``: the
    number of recipes to return; all by default.

    ``balanced`` has the least price at its worst: the largest, over the objectives, of the logarithm of its ratio in
    steps of `MEMORY_STEP` for memory and of `COST_STEP` for anything else. ``smallest`` has the least memory, and of
    those within `EQUAL_WITHIN` of it the least of the second; ``fastest`` the other way round.

    No recipe stands before one that needs less of something here and no more of anything. So the first of the order
    that meets a condition is the recommendation under it: a condition that the recommendation meets does not change
    it, and more memory never gives more of the other of two objectives. O(n^2).
    """
    if how == "balanced":
        by = _by_price(needs)
    else:
        memory = next(need for key, need in needs.items() if key in MEMORY)
        cost = needs[TIME] if TIME in needs else next(need for key, need in needs.items() if key not in MEMORY)
        by = _by_one(memory.here, cost.at_worst) if how == "smallest" else _by_one(cost.at_worst, memory.here)
    here = np.stack([need.here for need in needs.values()])
    beats = (here[:, :, np.newaxis] <= here[:, np.newaxis, :]).all(axis=0)
    beats &= ~beats.T  # equals do not dominate each other
    dominators, open_, ordered = beats.sum(axis=0), np.ones(len(beats), np.bool_), list[int]()
    while open_.any() and (most is None or len(ordered) < most):
        first = by(np.flatnonzero(open_ & (dominators == 0)))
        ordered.append(first)
        open_[first] = False
        dominators -= beats[first]
    return ordered


def _by_one(first: Floats, second: Floats) -> Callable[[NDArray[np.intp]], int]:
    """The least of the second of those within `EQUAL_WITHIN` of the least of the first."""

    def least(rows: NDArray[np.intp]) -> int:
        equal = rows[first[rows] <= EQUAL_WITHIN * first[rows].min()]
        return int(equal[np.lexsort((first[equal], second[equal]))[0]])

    return least


def prices(needs: Mapping[str, Needs]) -> Floats:
    """The price of each recipe, float64[n]: steps above the least of memory or of another need, the larger of both.

    inf for more than `COST_STEP` times the least memory, unless all recipes need that much.
    """
    memory = np.array([key in MEMORY for key in needs])
    here, at_worst = (np.stack(columns) for columns in zip(*needs.values(), strict=True))
    failing = np.isinf(at_worst).all(axis=1)  # all of them failed requests somewhere, so this need does not rank them
    at_worst[failing] = here[failing]
    affordable: Bools = (here[memory] <= COST_STEP * here[memory].min(axis=1, keepdims=True)).all(axis=0)
    if not affordable.any():  # two kinds of memory, and no recipe that has little of both
        affordable[:] = True
    worth = np.where(memory, MEMORY_STEP, COST_STEP)[:, np.newaxis]
    least = at_worst[:, affordable].min(axis=1, keepdims=True)
    steps = (np.log(at_worst / least) / np.log(worth)).max(axis=0)
    result: Floats = np.where(affordable, steps, np.inf)
    return result


def _by_price(needs: Mapping[str, Needs]) -> Callable[[NDArray[np.intp]], int]:
    price = prices(needs)
    memory = np.stack([item.here for key, item in needs.items() if key in MEMORY] or [np.ones(len(price))]).max(axis=0)

    def best(rows: NDArray[np.intp]) -> int:
        return int(rows[np.lexsort((memory[rows], price[rows]))[0]])

    return best
