"""The safe arena: the least such that it and every larger one serve a trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from heapwright._recipes.geometry import round_up
from heapwright._recipes.policy import policy_struct
from heapwright._replay.arena_sizes import depends_on_arena, fills_arena, fit_from, footprint, high_water_mark, server
from heapwright._replay.engine import run

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

TRIES = 1000
"""Larger arenas that are tried where nothing proves that they serve; a failing stretch of one in a thousand is met."""

CALLS = 200_000_000
"""Calls that all these tries may make: long traces get fewer tries, `LEAST_TRIES` at least."""

LEAST_TRIES = 100

ENOUGH_TRIES = 64
"""Larger arenas that are tried for each copy of a trace."""

NEIGHBOURS = 64
"""Arenas next above the safe one that are tried one by one, for what fails is often next to what serves."""

DOWNWARD = 256
"""Arenas below the high-water mark that are tried one by one: a heap near its end may find room by flushing lists."""


class SafeArena(NamedTuple):
    """The safe arena in bytes, and how sure it is.

    `tried` larger arenas up to twice as large all served; none had to be where it is `proved` that they do.
    """

    bytes: int
    tried: int
    proved: bool


def safe_arena(
    trace: Trace, recipe: Recipe, *, step: int | None = None, tries: int | None = None, seed: int = 0
) -> SafeArena | None:
    """The least arena such that it and every larger one serve the whole trace; None where none does.

    Args:
        trace: the calls.
        recipe: the allocator.
        step: bytes that the arena is a multiple of; None is one alignment unit.
        tries: larger arenas to try where nothing proves that they serve; None for `TRIES`, fewer on long traces.
        seed: which.

    A heap that takes fresh memory last does in every arena from its high-water mark on what it does there: the mark is
    safe, and just below it the last few arenas are tried. Where what goes where depends on the arena (TLSF and its kin,
    whose fresh memory is a free block among others), a larger arena may refuse what a smaller one serves, so as many
    are tried, spread over the sizes up to twice the safe one; where only a short arena matters (newlib-nano), up to the
    mark.
    """
    struct = policy_struct(recipe)
    result, _ = run(trace, recipe, struct, None)
    if result.failed:
        return None
    unit, serves = step or recipe.align, server(trace, recipe, struct)
    mark = round_up(high_water_mark(struct, result), unit)
    if not depends_on_arena(recipe):
        return SafeArena(_downward(serves, mark, unit), 0, proved=True)
    smallest = fit_from(trace, recipe, struct, result, unit)
    assert smallest is not None, "an ample arena served"
    if tries is None:
        tries = max(LEAST_TRIES, min(TRIES, CALLS // len(trace)))
    most = int(struct.reach) if fills_arena(recipe) or recipe.reserve else mark
    return search(serves, smallest, unit, most, tries, seed)


def enough_arena(trace: Trace, recipe: Recipe, *, step: int | None = None) -> int | None:
    """An arena from which on every one tried serves the whole trace, found in few replays; None where none serves.

    The footprint, where that is proved to be enough. Else the least from there on such that `ENOUGH_TRIES` larger ones
    serve, too: a look at another trace, where `safe_arena` is the answer for one.
    """
    struct = policy_struct(recipe)
    result, arena = run(trace, recipe, struct, None)
    if result.failed:
        return None
    unit = step or recipe.align
    needed = round_up(footprint(trace, recipe, struct, result, arena), unit)
    if not fills_arena(recipe):
        return needed
    return search(server(trace, recipe, struct), needed, unit, int(struct.reach), ENOUGH_TRIES).bytes


def search(serves: Callable[[int], bool], smallest: int, unit: int, reach: int, tries: int, seed: int = 0) -> SafeArena:
    """The safe arena where only trying tells: from `smallest`, which serves, upwards, within `reach`."""
    return SafeArena(_upward(serves, smallest, unit, reach, tries, random.Random(seed)), tries, proved=False)


def _downward(serves: Callable[[int], bool], mark: int, unit: int) -> int:
    size = mark
    while mark - size < DOWNWARD * unit and serves(size - unit):
        size -= unit
    return size


def _upward(
    serves: Callable[[int], bool], start: int, unit: int, reach: int, tries: int, random_: random.Random
) -> int:
    """The first size from `start` on above which nothing that is tried fails: few tries first, all of them at last."""
    size = start
    for count in (tries // 16, tries // 4, tries):
        while (failing := _last_failing(serves, size, unit, reach, count, random_)) is not None:
            size = failing + unit
    return size


def _last_failing(
    serves: Callable[[int], bool], size: int, unit: int, reach: int, count: int, random_: random.Random
) -> int | None:
    """The largest of `count` arenas that fails: the next ones above `size`, then one in each equal part up to twice."""
    near = [size + unit * step for step in range(min(NEIGHBOURS, count // 4))]
    width = (min(2 * size, reach) - size) / (count - len(near))
    spread = [size + int(width * (part + random_.random())) // unit * unit for part in range(count - len(near))]
    return next((item for item in sorted({*near, *spread}, reverse=True) if not serves(item)), None)
