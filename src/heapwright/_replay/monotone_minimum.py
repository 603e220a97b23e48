"""Monotone minimum: the least arena such that it and every larger one serve a trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from heapwright._recipes.geometry import round_up
from heapwright._replay.arena_sizes import (
    ample_run,
    depends_on_arena,
    fills_arena,
    fit_from,
    footprint,
    high_water_mark,
)

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

TRIES = 1000
"""Larger arenas that are tested if nothing proves that they serve: they find a failing range of one in a thousand."""

CALLS = 200_000_000
"""Calls of all these tests together: long traces get fewer tests, at least `LEAST_TRIES`."""

LEAST_TRIES = 16

ENOUGH_TRIES = 64
"""Larger arenas that are tested for each copy of a trace."""

NEIGHBOURS = 64
"""Arenas right above the minimum that are tested one by one, because failures are often next to a success."""

DOWNWARD = 256
"""Arenas below the high-water mark that are tested one by one: a heap may find room there by flushing lists."""


class SafeArena(NamedTuple):
    """Monotone minimum in bytes, and its guarantee.

    `tried` larger arenas, up to twice as large, all served; if it is `proved` that they do, none had to be tested.
    """

    bytes: int
    tried: int
    proved: bool


def safe_arena(
    trace: Trace, recipe: Recipe, *, step: int | None = None, tries: int | None = None, seed: int = 0
) -> SafeArena | None:
    """The least arena such that it and every larger one serve the whole trace; None if there is none.

    Args:
        trace: the calls.
        recipe: the allocator.
        step: bytes that the arena is a multiple of; None is one alignment unit.
        tries: larger arenas to test if nothing proves that they serve; None for `TRIES`, fewer on long traces.
        seed: seed of the tested sizes.

    A heap that takes fresh memory last behaves the same in every arena from its high-water mark on: the mark serves,
    and so does every larger arena, and only the few arenas just below it are tested. If placement depends on the
    arena's size (TLSF and similar allocators, whose fresh memory is a free block among others), a larger arena may fail
    a request that a smaller one serves. The run in an ample arena often proves that it does not from some size on
    (`proved_from`); if few sizes lie below that, all of them are tested, and the result is proved. Otherwise `tries`
    arenas are tested, spread over the sizes up to twice the minimum, or up to the mark if only an arena that runs short
    matters (newlib-nano).
    """
    ample = ample_run(trace, recipe)
    struct, result, serves = ample.struct, ample.result, ample.serves
    if result.failed:
        return None
    unit = step or recipe.align
    mark = round_up(high_water_mark(struct, result), unit)
    if not depends_on_arena(recipe):
        return SafeArena(_downward(serves, mark, unit), 0, proved=True)
    smallest = fit_from(trace, recipe, struct, result, unit, serves)
    assert smallest is not None, "an ample arena served"
    if tries is None:
        tries = max(LEAST_TRIES, min(TRIES, CALLS // len(trace)))
    if ample.proved is not None and ample.proved - smallest <= NEIGHBOURS * unit:
        between = range(smallest, ample.proved, unit)
        last = max((size + unit for size in between if not serves(size)), default=smallest)
        return SafeArena(last, 0, proved=True)
    most = int(struct.reach) if fills_arena(recipe) or recipe.reserve else mark
    return search(serves, smallest, unit, most, tries, seed)


def enough_arena(trace: Trace, recipe: Recipe, *, step: int | None = None) -> int | None:
    """An arena that serves the whole trace, as do all larger ones that were tested, in few replays; None if none does.

    It is the footprint if that is proved to be enough. Otherwise it is the least arena from there on such that
    `ENOUGH_TRIES` larger ones serve too: a quick test for perturbed copies; `safe_arena` is the result for a trace.
    """
    ample = ample_run(trace, recipe)
    struct, result = ample.struct, ample.result
    if result.failed:
        return None
    unit = step or recipe.align
    needed = round_up(footprint(trace, recipe, struct, result, ample.arena, ample.serves), unit)
    if not fills_arena(recipe):
        return needed
    return search(ample.serves, needed, unit, int(struct.reach), ENOUGH_TRIES).bytes


def search(serves: Callable[[int], bool], smallest: int, unit: int, reach: int, tries: int, seed: int = 0) -> SafeArena:
    """The monotone minimum by tests alone: from `smallest`, which serves, upwards, within `reach`."""
    return SafeArena(_upward(serves, smallest, unit, reach, tries, random.Random(seed)), tries, proved=False)


def _downward(serves: Callable[[int], bool], mark: int, unit: int) -> int:
    size = mark
    while mark - size < DOWNWARD * unit and serves(size - unit):
        size -= unit
    return size


def _upward(
    serves: Callable[[int], bool], start: int, unit: int, reach: int, tries: int, random_: random.Random
) -> int:
    """The first size from `start` on above which no tested arena fails: few tests first, all of them at the end."""
    size = start
    for count in (tries // 16, tries // 4, tries):
        while (failing := _last_failing(serves, size, unit, reach, count, random_)) is not None:
            size = failing + unit
    return size


def _last_failing(
    serves: Callable[[int], bool], size: int, unit: int, reach: int, count: int, random_: random.Random
) -> int | None:
    """The largest failing one of `count` arenas: those right above `size`, then one in each equal part up to twice."""
    near = [size + unit * step for step in range(min(NEIGHBOURS, count // 4))]
    width = (min(2 * size, reach) - size) / (count - len(near))
    spread = [size + int(width * (part + random_.random())) // unit * unit for part in range(count - len(near))]
    return next((item for item in sorted({*near, *spread}, reverse=True) if not serves(item)), None)
