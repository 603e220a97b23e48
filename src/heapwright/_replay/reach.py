"""The reach: the largest arena, request and number of objects that a heap can serve at all."""

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
    """How far a heap reaches; None where nothing bounds it below 2 GB, the most that any heap here serves.

    Attributes:
        arena_bytes: the largest arena that it uses; a larger one changes nothing. Links and headers end somewhere, and
            regions and pools with counts do not grow.
        request_bytes: an empty heap serves every request up to this size, and not the next one.
        objects: as many can be alive at most, where counts or the numbers of handles bound them.
    """

    arena_bytes: int | None
    request_bytes: int | None
    objects: int | None


UNKNOWN = Reach(None, None, None)
"""Of heaps that cannot be looked into, too."""


def reach(recipe: Recipe) -> Reach:
    """How far the heap of a recipe reaches. Some 40 replays of a single call; the arena alone is `reach_bytes`."""
    struct = policy_struct(recipe)
    return Reach(reach_bytes(struct), _largest_request(recipe, struct), _most_objects(struct))


def reaches(recipe: Recipe, size: float) -> bool:
    """Whether nothing of its `reach`, in arenas and requests, is below so many bytes: a few replays at most."""
    if _plainly_reaches(recipe, size):
        return True
    struct = policy_struct(recipe)
    arena, most = reach_bytes(struct), min(math.ceil(size), MAX_REQUEST)
    return (arena is None or arena >= size) and _largest_request(recipe, struct, most) is None


def _plainly_reaches(recipe: Recipe, size: float) -> bool:
    """Whether its pools tell without a replay that it reaches so many bytes, in arenas as in requests.

    They do where the first one that blocks belong to takes all requests and all memory, as in most heaps.
    """
    owner = next(pool for pool in recipe.pools if pool.owns_blocks)
    bounded = recipe.reach is not None or owner.min_size or owner.max_size or owner.sites
    largest = min(owner.largest_request(recipe.geometry), owner.largest_served(recipe.geometry))
    return not bounded and owner.shares_the_rest and not owner.lists_fresh_memory and AMPLE * size <= largest


AMPLE = 16
"""Headers, roundings and control data take less than so many times a request."""


def reach_bytes(struct: Any) -> int | None:
    """The `arena_bytes` of `reach` from the policy alone."""
    arena = _largest_arena(struct)
    return arena if arena < MAX_REACH else None


def _pools(struct: Any) -> Iterator[Any]:
    """The pools that blocks belong to."""
    pools = (struct.pools[index] for index in range(struct.pool_count))
    return (pool for pool in pools if kind_of(pool).owns_blocks)


def _largest_arena(struct: Any) -> int:
    sharing = [pool for pool in _pools(struct) if kind_of(pool).grows_in(pool)]
    return kind_of(sharing[0]).largest_arena(struct, sharing[0]) if sharing else int(struct.fixed_end)


def _most_objects(struct: Any) -> int | None:
    most = [kind_of(pool).most_objects(pool) for pool in _pools(struct)]
    return sum(count for count in most if count is not None) if None not in most else None


@lru_cache(maxsize=64)  # heaps are asked for the same sizes
def _request(size: int) -> Trace:
    """A single request."""
    return Trace.from_columns(op=[0], id=[0], size=[size])


def _largest_request(recipe: Recipe, struct: Any, most: int = MAX_REQUEST) -> int | None:
    """Bisected between the sizes at which a pool begins or ends: of each, an empty heap serves the smaller ones.

    None where all up to ``most`` are served.
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
