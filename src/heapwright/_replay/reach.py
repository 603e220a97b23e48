"""Reach of a heap: the largest arena, request and number of objects that it can serve at all."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.pools import MAX_REACH, MAX_REQUEST, kind_of
from heapwright._replay.arena_sizes import server
from heapwright._traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heapwright._recipes.recipe import Recipe


class Reach(NamedTuple):
    """Reach of a heap; None for values without a bound below 2 GB, the most that any heap here serves.

    Attributes:
        arena_bytes: the largest arena that it uses, which the width of links and headers, regions, and pools with
            counts limit; a larger one changes nothing.
        request_bytes: an empty heap serves every request up to this size, and not the next one.
        objects: most objects that can be live, if counts or the numbers of handles bound them.
    """

    arena_bytes: int | None
    request_bytes: int | None
    objects: int | None


UNKNOWN = Reach(None, None, None)
"""The reach without any known bound, also of heaps that cannot be inspected."""


def reach(recipe: Recipe) -> Reach:
    """The reach of a recipe's heap. Some 40 replays of a single call; the arena alone is `reach_bytes`."""
    struct = policy_struct(recipe)
    return Reach(reach_bytes(struct), _largest_request(recipe, struct), _most_objects(struct))


def reaches(recipe: Recipe, size: float) -> bool:
    """Whether its `reach`, in arenas and requests, is at least this many bytes: a few replays at most."""
    if _plainly_reaches(recipe, size):
        return True
    struct = policy_struct(recipe)
    arena, most = reach_bytes(struct), min(math.ceil(size), MAX_REQUEST)
    return (arena is None or arena >= size) and _largest_request(recipe, struct, most) is None


def _plainly_reaches(recipe: Recipe, size: float) -> bool:
    """Whether the reach is at least this many bytes by its pools alone, without a replay.

    It is if the first pool that owns blocks takes all requests and all memory, as in most heaps.
    """
    owner = next(pool for pool in recipe.pools if pool.owns_blocks)
    bounded = recipe.reach is not None or owner.min_size or owner.max_size or owner.sites
    largest = min(owner.largest_request(recipe.geometry), owner.largest_served(recipe.geometry))
    return not bounded and owner.shares_the_rest and not owner.lists_fresh_memory and AMPLE * size <= largest


AMPLE = 16
"""Upper bound on headers, rounding and control data, as a multiple of a request."""


def reach_bytes(struct: Any) -> int | None:
    """The `arena_bytes` of `reach` from the policy alone."""
    arena = _largest_arena(struct)
    return arena if arena < MAX_REACH else None


def _pools(struct: Any) -> Iterator[Any]:
    """The pools that own blocks."""
    pools = (struct.pools[index] for index in range(struct.pool_count))
    return (pool for pool in pools if kind_of(pool).owns_blocks)


def _largest_arena(struct: Any) -> int:
    sharing = [pool for pool in _pools(struct) if kind_of(pool).grows_in(pool)]
    return kind_of(sharing[0]).largest_arena(struct, sharing[0]) if sharing else int(struct.fixed_end)


def _most_objects(struct: Any) -> int | None:
    most = [kind_of(pool).most_objects(pool) for pool in _pools(struct)]
    return sum(count for count in most if count is not None) if None not in most else None


@lru_cache(maxsize=64)  # heaps get requests of the same sizes
def _request(size: int) -> Trace:
    """A trace of a single request."""
    return Trace.from_columns(op=[0], id=[0], size=[size])


def _largest_request(recipe: Recipe, struct: Any, most: int = MAX_REQUEST) -> int | None:
    """The largest request that an empty heap serves; None if it serves all up to ``most``.

    It is bisected between two sizes at which a pool begins or ends: between these, the heap serves the smaller ones.
    """
    arena = _largest_arena(struct)

    def serves(size: int) -> bool:
        return server(_request(size), recipe, struct)(arena)

    ends = {most + 1}
    for pool in _pools(struct):
        ends |= {end for end in (int(pool.min_size), int(pool.max_size) + 1) if 1 < end <= most}
    first = 1
    for end in sorted(ends):
        if not serves(first):
            return first - 1
        if not serves(end - 1):
            return _last_served(serves, first, end - 1)
        first = end
    return None


def _last_served(serves: Callable[[int], bool], served: int, refused: int) -> int:
    while refused - served > 1:
        middle = (served + refused) // 2
        if serves(middle):
            served = middle
        else:
            refused = middle
    return served
