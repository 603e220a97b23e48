"""Worst-case arena: a theoretical bound on fragmentation for any program with the live bytes of a trace.

Live bytes include headers and rounding: the bounds hold for programs whose live blocks never take more than those of
the trace, and whose largest block is no larger. Requested bytes alone bound little: 100,000 bytes may be as many
objects.

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

from heapwright._recipes.kinds.bounds import BlockLoad, WorstCase
from heapwright._recipes.kinds.fixed import Fixed
from heapwright._recipes.kinds.quick import Quick
from heapwright._recipes.policy import policy_struct
from heapwright._replay.engine import arena_holding, least_arena
from heapwright._traces.live_bound import KEY, LiveBound
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe


def worst_case(trace: Trace, recipe: Recipe) -> WorstCase | None:
    """The least arena that a theorem gives for programs like the trace; None if no theorem applies.

    Programs like the trace have its live bytes; of a trace with a `LiveBound` they have the objects that the bound
    allows, in any order.

    A theorem applies to requests at the heap's own alignment, and to recipes of a single pool that never skips a
    fitting free block, with or without quick lists in front of it, or of fixed pools: the pool's kind has the theorems.
    """
    (*lists, pool), struct = recipe.canonical().pools, policy_struct(recipe)
    laid_out, bound = struct.pools[len(lists)], LiveBound.of(trace)
    if any(list.owns_blocks for list in lists) or recipe.threads == "cached":
        return None
    if (trace.align > recipe.align).any() or recipe.reserve or not _takes_all(trace, laid_out, bound):
        return None
    if isinstance(pool, Fixed):
        result = pool.worst_cases_of(laid_out, bound.classes) if bound and not lists else iter(())
    else:
        load = load_of(trace, recipe) if bound is None else load_of_bound(bound, recipe)
        reallocs = bool((trace.op == REALLOC).any())
        result = pool.worst_cases(laid_out, load, lists=bool(lists), reallocs=reallocs)
    least = min(result, default=None)
    if least is None:
        return None
    arena = max(arena_holding(struct, int(struct.fixed_end) + least.bytes), least_arena(struct))
    return WorstCase(arena, least.theorem) if arena <= struct.reach else None


def worst_case_of(bound: LiveBound, recipe: Recipe) -> WorstCase | None:
    """The least arena that a theorem gives for any order of objects within a bound; None if no theorem applies."""
    largest = Trace.from_columns(op=[MALLOC], id=[0], size=[bound.largest], metadata={KEY: bound.text})
    return worst_case(largest, recipe)


def _takes_all(trace: Trace, pool: Any, bound: LiveBound | None) -> bool:
    if bound is not None:
        return bool(min(item.least for item in bound.classes) >= pool.min_size and bound.largest <= pool.max_size)
    sizes = trace.size[trace.op != FREE]
    return bool((sizes >= pool.min_size).all() and (sizes <= pool.max_size).all())


def load_of_bound(bound: LiveBound, recipe: Recipe) -> BlockLoad:
    """The load on a recipe of as many objects as the bound allows, each as large as its class."""
    most = np.array([item.most for item in bound.classes], np.int64)
    blocks, smallest = block_sizes(recipe, most)
    live = int((blocks * [item.objects for item in bound.classes]).sum())
    return BlockLoad(live, int(blocks.max()), smallest, bound.objects)


def load_of(trace: Trace, recipe: Recipe) -> BlockLoad:
    """The load of a trace on a recipe in which a single pool owns blocks; a realloc has both of its blocks live."""
    blocks, smallest = block_sizes(recipe, trace.size)
    blocks[trace.op == FREE] = 0
    return BlockLoad(trace.largest_live_sum(blocks, both=True), int(blocks.max(initial=smallest)), smallest)


def block_sizes(recipe: Recipe, requests: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], int]:
    """The block sizes of requests if splitting is exact, int64[n]; and the smallest block of any request.

    For recipes in which several pools own blocks, the requests rounded up to the alignment.
    """
    pools, struct = recipe.canonical().pools, policy_struct(recipe)
    sizes = np.maximum(requests.astype(np.int64), 1)
    if sum(pool.owns_blocks for pool in pools) > 1:
        return -(-sizes // recipe.align) * recipe.align, recipe.align
    blocks, smallest = pools[-1].exact_blocks(struct.pools[len(pools) - 1], sizes, recipe.align)
    for at, pool in enumerate(pools[:-1]):
        if isinstance(pool, Quick):
            blocks = pool.rounded_blocks(struct.pools[at], sizes, blocks)
    return blocks, smallest
