"""Neighbours: the recipes one step from another one, for a search by local steps.

A step takes another value along one axis of the space. Where the default space joins, it may also take another value
of any key, or other pools before the last, as some recipe has them that the search begins with: what other traces
taught has the levels of the default space.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from heapwright._explore.space import reaches
from heapwright._explore.space_file import HEAP_AXES, MADE
from heapwright._recipes.pools import MAX_POOLS
from heapwright._recipes.recipe import Recipe

if TYPE_CHECKING:
    from heapwright._explore.space import WideSpace
    from heapwright._recipes.pools import Pool

Step = tuple[Hashable, Callable[[], Recipe | None]]
"""What is changed; makes the canonical recipe, or None where that does not go together with the rest."""

Key = tuple[str, str]
"""A kind of pool, or "heap", and one of its keys."""

_NAMELESS = {"name": "", "year": None, "source": "", "about": ""}


class Neighbourhood:
    """The steps that a space allows from any of its recipes."""

    def __init__(self, space: WideSpace, beginnings: Sequence[Recipe]) -> None:
        """Take the space, and the recipes whose values and pools count where the default space joins."""
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
            results += self._elsewhere(recipe)
        return results

    def _along(self, genome: tuple[int, ...], axis: int, value: int) -> Recipe | None:
        return self._space.recipe((*genome[:axis], value, *genome[axis + 1 :]))

    def _elsewhere(self, recipe: Recipe) -> Iterator[Step]:
        """Steps to what other recipes have."""
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
    """The pools without what follows from other keys, so that it does again once these change."""
    return tuple(pool.without_resolved(recipe.geometry) for pool in recipe.pools)


def _with(recipe: Recipe, pools: tuple[Pool, ...], at: int, changes: dict[str, Any]) -> Recipe | None:
    changed = pools[at].model_copy(update=changes)
    return _made(recipe, {"pools": (*pools[:at], changed, *pools[at + 1 :])})


def _made(recipe: Recipe, changes: dict[str, Any]) -> Recipe | None:
    """The recipe with other keys, each valid for itself; None where they contradict one another."""
    made = recipe.model_copy(update=_NAMELESS | changes)
    if made.contradiction is not None:
        return None
    made = made.canonical()
    return made if reaches(made) else None
