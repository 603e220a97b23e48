"""Picks: one recipe for a device, as an engineer would choose it on seeing the front; docs/choosing.md has the rules.

A pick has to hold elsewhere: on perturbed copies of the traces and on traces held out. docs/robustness.md has the
evidence for the rules and their thresholds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright.decide import pareto
from heapwright.decide.results import Bools, Floats, Results
from heapwright.files.errors import HeapwrightError, ParameterError
from heapwright.files.units import number_of
from heapwright.recipes.pools import KINDS
from heapwright.recipes.recipe import Recipe
from heapwright.replay.metrics import TIME, metric

Pick = Literal["balanced", "smallest", "fastest"]
PICKS: tuple[Pick, ...] = ("balanced", "smallest", "fastest")
"""The ways to pick one recipe; see `choose`."""

FALLS_OFF = 1.2
"""A recipe falls off where its ratio to the least memory on a copy is so many times that on the traces explored on."""

HEADROOM = 2.0
"""A pick can use an arena so many times the largest footprint it had on any trace, copies included."""

LITTLE_MEMORY = 1.15
"""So many times the least memory is little more: a device is bought by its memory."""

MUCH_COST = 2.0
"""So many times the least of anything else is worth `LITTLE_MEMORY`."""

AFFORDABLE = 2.0
"""What needs more than so many times the least memory is no compromise."""

ALIKE = 1.02
"""Within so many times the best, recipes count as equal, and the other needs decide."""

MEMORY = ("footprint_bytes", "smallest_arena_bytes", "allocated_peak_bytes")
"""The metrics that are memory to be bought."""

CLEARLY = 1.05
"""What was tailored needs less memory than what one takes blind where that needs so many times as much: by less than
that the order turns on another recording.
"""

NEAR = 1.5
"""A recipe is near the front that needs at most so many times what some member needs, in every objective."""

LIKELY = 30
"""So many recipes that are not doubted are tried elsewhere for each pick: most of the first of them do not last."""

SHORTLIST = 100
"""How many recipes on the front and near it are tried elsewhere, and the whole front if it has more."""

RIVALS = ("all-round", "tlsf", "newlib-nano")
"""The zoo's that are tried on copies in any case: what most would take otherwise."""

BLIND = ("all-round", "victim-bins", "fast", "small", "small-lists", "lea-2.7.2", "half-fit", "real-time")
"""The zoo's that are taken without looking at a trace: where nothing else lasts, one of them ships."""


# ---- conditions ----------------------------------------------------------------------------------------------------

COMPARE: Mapping[str, Callable[[Any, float], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
"""What conditions and rules compare by: numbers, or columns of them."""
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*")


RESERVE = "reserve_bytes"
"""What conditions may bound beside metrics: the arena to reserve for a recipe."""


class NoPickError(HeapwrightError):
    """Nothing that may ship stays within a bound on memory, though something else does."""


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
        """Whether it says how much memory there is."""
        return self.key in (*MEMORY, RESERVE) and self.comparison in ("<=", "<")

    def met(self, values: Floats) -> Bools:
        """Mask of the values of recipes that meet it; one that is NaN does not."""
        met: Bools = COMPARE[self.comparison](values, self.bound)
        return met

    def __str__(self) -> str:
        return f"{self.key} {self.comparison} {self.bound:.15g}"


# ---- what is tried elsewhere ---------------------------------------------------------------------------------------


def shortlist(
    results: Results,
    objectives: Sequence[str],
    designs: Mapping[str, Hashable],
    trusted: Sequence[Collection[str]] = (),
    likely: Collection[str] = (),
) -> list[int]:
    """Rows of the front, of the fronts of ``trusted`` alone, of ``likely``, and the nearest of designs to `SHORTLIST`.

    A recipe is as far as the least, over the front's members, of its largest ratio to the member in any objective;
    farther than `NEAR` is not near. The nearest alone would be the front's own recipes over again with one more
    threshold that changes nothing here, and fall off together. ``designs`` has the `design` of each recipe by its id;
    ``trusted``: ids of recipes of designs that are not doubted (see `prior.doubt`), one collection or several;
    ``likely``: ids of recipes that may be picked (`Robustness.likely`).
    """
    rows = np.flatnonzero(results.eligible(objectives))
    front = [int(row) for row in results.front_rows(objectives)]
    if not front:
        return []
    points = pareto.ratios_to_best(results.points(objectives)[rows], results.directions_of(objectives))
    distance = pareto.distances(points, points[np.isin(rows, front)])
    nearest: dict[Hashable, int] = {}
    for at in np.argsort(distance, kind="stable"):
        if distance[at] <= np.log(NEAR):
            nearest.setdefault(designs[results.ids[rows[at]]], int(rows[at]))
    for known in trusted:
        among = np.fromiter((id in known for id in results.ids), bool, len(results.ids))
        front += map(int, results.front_rows(objectives, among))
    front += [row for row in map(results.row, likely) if row is not None]
    front = list(dict.fromkeys(front))
    return list(dict.fromkeys([*front, *nearest.values()]))[: max(SHORTLIST, len(front))]


def design(recipe: Recipe) -> Hashable:
    """What a recipe is but for its sizes and thresholds: equal for recipes that differ in these alone."""
    return tuple([_told_of(pool.kind)(pool.__dict__) for pool in recipe.pools])


@cache
def _told_of(kind: str) -> Callable[[Mapping[str, Any]], Hashable]:
    """What tells designs of a kind apart, of a pool's keys."""
    keys = KINDS[kind].model_fields
    values = operator.itemgetter("kind", *(key for key in _DESIGN if key in keys))
    present = [key for key in _PRESENT if key in keys]
    return lambda pool: (values(pool), *[bool(pool[key]) for key in present])


_DESIGN = ("free_list", "order", "bins", "fit", "coalesce", "split_from", "flush", "find", "header")

_PRESENT = ("victim_up_to", "close_bins", "coalesce_from", "limit_blocks")
"""Only whether there is any matters."""


# ---- the choice ----------------------------------------------------------------------------------------------------

DEPENDS = ("footprint_bytes", "accesses")
"""What ``smallest`` and ``fastest`` go by; ``fastest`` by `TIME` where it was explored for."""


class Needs(NamedTuple):
    """Ratios of recipes to the best in one metric, float64[n] of at least 1: as explored, and the worst anywhere."""

    here: Floats
    at_worst: Floats


def order(how: Pick, needs: Mapping[str, Needs], blind: Bools | None = None, most: int | None = None) -> list[int]:
    """Recipes that hold, one or more, in the order in which they are picked: their indices, the pick first.

    ``needs``: the objectives, and the keys of `DEPENDS` for ``smallest`` and ``fastest``. ``blind``: which of them are
    heaps that one would take without looking at a trace; none by default. ``most``: the first so many; all by default.

    ``smallest`` is the least memory of those taken blind; where others need `CLEARLY` less, the least memory here, and
    of those within `ALIKE` of it, the fewest accesses at the worst. ``fastest``
    is the fewest accesses at the worst, or the least `TIME` where that is an objective; of those within `ALIKE`, the
    least memory here. ``balanced`` has the least of the largest of its prices: `LITTLE_MEMORY` times the least memory
    costs as much as `MUCH_COST` times the least of anything else. Both count at their worst. What is not `AFFORDABLE`
    here comes last, and before it what needs more than `LITTLE_MEMORY` here where anything within it stays below
    `MUCH_COST` here. Ties go to the first.

    No recipe stands before one that needs less of something here and no more of anything: none is picked that another
    one beats in what it was explored for. So the first of the order that meets a condition is the pick under it: a
    condition that the pick meets does not change it, and more memory never gives more of the other of two objectives.
    O(n^2).
    """
    if how == "balanced":
        by = _by_price(needs)
    elif how == "fastest":
        by = _by_one(needs.get(TIME, needs["accesses"]).at_worst, needs["footprint_bytes"].here)
    else:
        by = _by_memory(needs, blind)
    here = np.stack([one.here for one in needs.values()])
    beats = (here[:, :, np.newaxis] <= here[:, np.newaxis, :]).all(axis=0)
    beats &= ~beats.T  # equals do not beat each other
    beaten_by, left, found = beats.sum(axis=0), np.ones(len(beats), np.bool_), list[int]()
    while left.any() and (most is None or len(found) < most):
        taken = by(np.flatnonzero(left & (beaten_by == 0)))
        found.append(taken)
        left[taken] = False
        beaten_by -= beats[taken]
    return found


def _by_one(first: Floats, second: Floats) -> Callable[[NDArray[np.intp]], int]:
    """The least of the second of those alike in the first."""

    def least(rows: NDArray[np.intp]) -> int:
        alike = rows[first[rows] <= ALIKE * first[rows].min()]
        return int(alike[np.lexsort((first[alike], second[alike]))[0]])

    return least


def _by_memory(needs: Mapping[str, Needs], blind: Bools | None) -> Callable[[NDArray[np.intp]], int]:
    memory, accesses = (needs[key] for key in DEPENDS)
    least = _by_one(memory.here, accesses.at_worst)

    if blind is None or not blind.any():
        return least
    known = np.flatnonzero(blind)
    best = int(known[np.lexsort((accesses.at_worst[known], memory.here[known]))[0]])

    def smallest(rows: NDArray[np.intp]) -> int:
        if best in rows and CLEARLY * memory.here[rows].min() >= memory.here[best]:
            return best
        less = rows[memory.here[rows] <= memory.here[best]]  # one that needs less of all than the best taken blind
        return least(less if len(less) else rows)

    return smallest


def _by_price(needs: Mapping[str, Needs]) -> Callable[[NDArray[np.intp]], int]:
    memory = np.array([key in MEMORY for key in needs])
    here, at_worst = (np.stack(columns) for columns in zip(*needs.values(), strict=True))
    refusing = np.isinf(at_worst).all(axis=1)  # all of them refused somewhere: that tells them not apart
    at_worst[refusing] = here[refusing]
    bought = here[memory] / here[memory].min(axis=1, keepdims=True)
    affordable: Bools = (bought <= AFFORDABLE).all(axis=0)
    if not affordable.any():  # two kinds of memory, and no recipe that has little of both
        affordable[:] = True
    paid = here[~memory] / here[~memory][:, affordable].min(axis=1, keepdims=True)
    little: Bools = (bought <= LITTLE_MEMORY).all(axis=0)
    if not (affordable & little & (paid <= MUCH_COST).all(axis=0)).any():
        little[:] = True
    worth = np.where(memory, LITTLE_MEMORY, MUCH_COST)[:, np.newaxis]
    least = at_worst[:, affordable].min(axis=1, keepdims=True)
    prices = (np.log(at_worst / least) / np.log(worth)).max(axis=0)

    def best(rows: NDArray[np.intp]) -> int:
        return int(rows[np.lexsort((prices[rows], ~little[rows], ~affordable[rows]))[0]])

    return best
