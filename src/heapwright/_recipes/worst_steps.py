"""Worst-case bounds: the most metadata accesses of any malloc and free of a recipe, by formula, or why there is none.

What is counted is what a replay counts: loads and stores of at most 4 bytes. The bound holds for any trace of malloc,
calloc and free at the recipe's own alignment, refused requests included; where lists give back a few blocks at a time,
it leaves out a request that empties them all before it would be refused. A realloc that moves is a malloc and a free,
and copies; a larger alignment cuts a block at both ends. Each kind sums the accesses of its functions in the core, each
case at its most expensive; cases that few programs combine are added up, so that a bound lies above what any trace
shows: docs/metrics.md says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from heapwright._recipes.kinds.bounds import OWNED, AccessBounds, UnboundedError, width
from heapwright._recipes.policy import Structure, policy, structure_of
from heapwright._recipes.pools import Lists
from heapwright._recipes.recipe import Recipe


class WorstSteps(NamedTuple):
    """The most accesses of a malloc and of a free; both None where nothing bounds them, and then the reason."""

    malloc: int | None
    free: int | None
    reason: str
    but: str = ""
    """Which calls the bound does not count, where there are such."""

    @property
    def most(self) -> int | None:
        """The most accesses of any malloc or free; None if nothing bounds them."""
        return None if self.malloc is None or self.free is None else max(self.malloc, self.free)

    def short(self) -> str:
        """What a column of a table says."""
        return "unbounded" if self.most is None else f"{self.most:,}"

    def sentence(self) -> str:
        """What headers and reports say."""
        if self.most is None:
            return f"a call is unbounded: {self.reason}"
        return f"a malloc or free takes at most {self.most:,} accesses" + (f", but for {self.but}" if self.but else "")


_COUNTED = 26
"""Accesses of the heap's own counters in a call."""
_CLASSED = 6
"""Accesses of the counters of classes in a call: one that moves an object changes two of them, and a peak."""
_RESERVED = 2
"""What a request of low priority looks at before."""
_REFUSED = 2

_ListValues = list[tuple[Lists, Mapping[str, Any]]]
"""Free-list caches, each with the fields of its policy."""

_EMPTYING = "a request that nothing serves before all lists are emptied"


def worst_steps(recipe: Recipe) -> WorstSteps:
    """The most metadata accesses that any malloc, and any free, of the recipe takes; see the module.

    Thresholds do not change it.
    """
    return _worst_steps(recipe.canonical()) if recipe.memory else _of_structure(structure_of(recipe))


@lru_cache(maxsize=4096)
def _of_structure(structure: Structure) -> WorstSteps:
    return _worst_steps(structure.recipe)


def _worst_steps(recipe: Recipe) -> WorstSteps:
    try:
        calls = _heap(recipe)
    except UnboundedError as error:
        return WorstSteps(None, None, str(error))
    spreads = any(pool.spreads for pool in recipe.pools if isinstance(pool, Lists))
    return WorstSteps(calls.malloc, calls.free, "", _EMPTYING if spreads else "")


def _heap(recipe: Recipe) -> AccessBounds:
    _require_bound(recipe)
    laid_out = policy(recipe)["pools"]
    values = [item[pool.kind] for pool, item in zip(recipe.pools, laid_out, strict=True)]
    owners = [pool.worst_calls(its) for pool, its in zip(recipe.pools, values, strict=True) if pool.owns_blocks]
    lists = [(pool, its) for pool, its in zip(recipe.pools, values, strict=True) if isinstance(pool, Lists)]
    malloc = sum(calls.malloc for calls in owners)
    release = OWNED * len(owners) + max(calls.free for calls in owners)
    counted = (_COUNTED if recipe.counters else 0) + (_CLASSED if recipe.counters == "classes" else 0)
    reserved = _RESERVED if recipe.reserve else 0
    if not lists:
        return AccessBounds(malloc + _REFUSED + counted + reserved, release + counted)
    word = max((width(its[pool.word]) for pool, its in zip(recipe.pools, values, strict=True) if pool.word), default=0)
    malloc = _cached_malloc(lists, malloc, release) + _REFUSED
    return AccessBounds(malloc + counted + reserved, release + _cached_free(lists, release) + word + counted)


def _require_bound(recipe: Recipe) -> None:
    """Raise UnboundedError for a heap whose own keys leave its calls without a bound."""
    if recipe.checks != "none":
        raise UnboundedError(f'what the checks of level "{recipe.checks}" look at has no bound by formula')
    if recipe.threads == "cached":
        raise UnboundedError("a thread's cache is filled and emptied many blocks at a time")
    if recipe.memory:
        raise UnboundedError("several memories are tried in turn, and have no bound by formula")


def _cached_malloc(lists: _ListValues, malloc: int, release: int) -> int:
    """Accesses of a malloc through free-list caches: each pool below is tried before and after a flush."""
    hit = sum(pool.hit(its) for pool, its in lists)
    flush = sum(
        pool.turn(its, release) if pool.spreads else pool.empty(its, its["count"], release) for pool, its in lists
    )
    spreads = any(pool.spreads for pool, _ in lists)
    passes = 1 if spreads else 2  # once more when the lists are empty, before the request fails
    refill = sum(pool.refilling(its, malloc) for pool, its in lists)
    return passes * (hit + 2 * malloc + 2 * flush) + refill


def _cached_free(lists: _ListValues, release: int) -> int:
    """Accesses to put a freed block into a free-list cache, which may be over its limit."""
    goes_over = any(pool.flush == "over-limit" for pool, _ in lists)
    flush_one = max((pool.empty(its, 1, release) for pool, its in lists if goes_over), default=0)
    return sum(pool.push(its) for pool, its in lists) + flush_one + 1
