"""The worst case: the arena that is enough for any program with this much live, where theory gives a bound.

What is live is counted as the heap does, with headers and rounding: the bounds hold for programs whose live blocks
never take more than those of the trace, and whose largest is no larger. Requests alone bound little: 100,000 bytes may
be that many objects.

Sources: J. M. Robson 1971, An estimate of the store size necessary for dynamic storage allocation, JACM 18; Robson
1974, Bounds for some functions concerning dynamic storage allocation, JACM 21; Robson 1977, Worst case fragmentation of
first fit and best fit storage allocation strategies, Computer Journal 20; D. E. Knuth, TAOCP 1 (3rd edition), 2.5,
exercises 41 to 43; T. Ogasawara 1995, An algorithm with constant execution time for dynamic storage allocation;
P. Kirienko, README of o1heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright.recipes.kinds.bounds import Load, WorstCase
from heapwright.recipes.policy import policy_struct
from heapwright.replay.engine import arena_holding
from heapwright.traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace


def worst_case(trace: Trace, recipe: Recipe) -> WorstCase | None:
    """The least arena that a theorem gives for programs like the trace; None where none holds.

    It holds for malloc, calloc and free, and for realloc where that always takes a new block; for requests at the
    heap's own alignment; and for recipes of a single pool that passes no free block by: its kind has the theorems.
    """
    pools, struct = recipe.canonical().pools, policy_struct(recipe)
    if len(pools) > 1 or (trace.align > recipe.align).any() or not _takes_all(trace, struct.pools[0]):
        return None
    pool = pools[0]
    if (trace.op == REALLOC).any() and not pool.always_moves:
        return None
    if not pool.has_worst_case(struct.pools[0]):
        return None
    least = min(pool.worst_cases(struct.pools[0], load_of(trace, recipe)))
    arena = arena_holding(struct, int(struct.fixed_end) + least.bytes)
    return WorstCase(arena, least.theorem) if arena <= struct.reach else None


def _takes_all(trace: Trace, pool: Any) -> bool:
    sizes = trace.size[trace.op != FREE]
    return bool((sizes >= pool.min_size).all() and (sizes <= pool.max_size).all())


def load_of(trace: Trace, recipe: Recipe) -> Load:
    """The load of a trace on a recipe of a single pool; a realloc has both of its blocks live."""
    blocks, smallest = block_sizes(recipe, trace.size)
    blocks[trace.op == FREE] = 0
    return Load(trace.largest_live_sum(blocks, both=True), int(blocks.max(initial=smallest)), smallest)


def block_sizes(recipe: Recipe, requests: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], int]:
    """The blocks that requests get where splitting is exact, int64 as many; and the smallest that any request gets.

    Of recipes of several pools, and of pools whose blocks are not split, the requests rounded up to the alignment.
    """
    pools, struct = recipe.canonical().pools, policy_struct(recipe)
    sizes = np.maximum(requests.astype(np.int64), 1)
    if len(pools) > 1:
        return -(-sizes // recipe.align) * recipe.align, recipe.align
    return pools[0].exact_blocks(struct.pools[0], sizes, recipe.align)
