"""Nothing is refused while memory that waits would serve it: in quick lists, or as neighbours that were not merged."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from case_tables import each
from metric_values import known
from recipes_random import random_general_recipe, random_recipe
from run_length import EFFORT, brief

from heapwright._recipes.pools import Compact, Fixed, General, Partition, Pool
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

ARENA = 1 << 16

RANDOM = EFFORT * brief(40, 100)
"""Random recipes that are tried; 1,000 of them were when the rule was made."""

LISTS = [
    Recipe.from_dict({"align": 8, "pool": [{"kind": "quick", "up_to": up_to, **flush}, {"kind": "general"}]})
    for up_to in (128, 1024)
    for flush in ({}, {"limit_blocks": 9}, {"flush": "before-growing"})
]


def refused(recipe: Recipe, calls: Sequence[tuple[int, int, int]]) -> int:
    """Requests that an arena refuses, of calls (op, object, bytes)."""
    op, id, size = zip(*calls, strict=True)
    return int(known(replay(Trace.from_columns(op=op, id=id, size=size), recipe, arena=ARENA)["failed"]))


def filled_and_freed(size: int) -> list[tuple[int, int, int]]:
    """More objects than there is room for, all freed again."""
    objects = range(1, 2 * ARENA // size)
    return [*((MALLOC, id, size) for id in objects), *((FREE, id, 0) for id in objects)]


def serves_half_again(recipe: Recipe, size: int) -> bool:
    """Whether half the arena is had in one piece, once it was full of smaller objects."""
    calls = filled_and_freed(size)
    return refused(recipe, [*calls, (MALLOC, len(calls) + 1, ARENA // 2)]) == refused(recipe, calls)


def merges_all(pool: Pool, size: int) -> bool:
    """Whether all free blocks of these bytes become one, by design.

    Not those that merge forward only or from a size up, nor where a search looks at some of the blocks alone, or asks
    for just one size.
    """
    if isinstance(pool, General):
        limited = pool.fit == "exact" or pool.search_most > 0 or pool.search_percent < 100
        return pool.coalesce not in ("never", "forward") and pool.coalesce_from <= size and not limited
    if isinstance(pool, Partition):
        return pool.coalesce != "never"
    return not isinstance(pool, Fixed)


def recipes() -> Iterator[Recipe]:
    """The zoo, lists in front of a merging pool, and random recipes; objects that move are never in the way."""
    yield from (recipe for recipe in zoo.recipes() if not isinstance(recipe.pools[0], Compact))
    yield from LISTS
    random_ = random.Random(5)
    for number in range(RANDOM):
        yield random_general_recipe(random_) if number % 2 else random_recipe(random_)


def test_an_arena_that_was_full_of_small_objects_serves_half_of_itself() -> None:
    tried = 0
    for recipe in recipes():
        if zoo_is_larger(recipe) or refused(recipe, [(MALLOC, 1, ARENA // 2)]):
            continue  # not even if nothing was requested before: too large a block, or powers of two
        for size in brief((40, 700), (24, 100, 700)):
            if all(merges_all(pool, size) for pool in recipe.pools):
                assert serves_half_again(recipe, size), (recipe.summary(), size)
                tried += 1
    assert tried > brief(60, 100)


def zoo_is_larger(recipe: Recipe) -> bool:
    """Whether the recipe's own regions are larger than the arena."""
    return recipe.name in ("fixed-pool", "variable-pool")


@each("recipe", [*LISTS, zoo.load("all-round"), zoo.load("drr-proposed")], ids=Recipe.summary)
def test_loops_in_which_lists_gather_blocks_refuse_nothing(recipe: Recipe) -> None:
    shrinking = [call for id in range(1, 3000) for call in ((MALLOC, id, 128), (REALLOC, id, 64), (FREE, id, 0))]
    random_ = random.Random(1)
    resized = []
    for id in range(1, 3000):
        sizes = [random_.randint(1, 2000) for _ in range(4)]
        resized += [(MALLOC, id, sizes[0]), *((REALLOC, id, size) for size in sizes[1:]), (FREE, id, 0)]
    for calls in (shrinking, resized):
        assert refused(recipe, calls) == 0


def test_an_object_grows_into_blocks_that_waited_beside_it() -> None:
    """No other memory is large enough, and the lists hold what follows the object."""
    recipe = LISTS[1]
    calls = [(MALLOC, 1, 30_000), *((MALLOC, id, 1000) for id in range(2, 36))]
    freed = [(FREE, id, 0) for id in range(2, 36)]
    assert refused(recipe, [*calls, *freed, (REALLOC, 1, 60_000)]) == refused(recipe, calls) == 0


def test_an_aligned_request_is_served_by_what_waited() -> None:
    calls = filled_and_freed(64)
    columns = list(zip(*[*calls, (MALLOC, len(calls) + 1, 9000)], strict=True))
    align = [*[0] * len(calls), 4096]
    trace = Trace.from_columns(op=columns[0], id=columns[1], size=columns[2], align=align)
    result = replay(trace, LISTS[0], arena=ARENA)
    assert result["failed"] == refused(LISTS[0], calls)
