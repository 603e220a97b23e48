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

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright.recipes.geometry import round_up
from heapwright.recipes.policy import policy_struct
from heapwright.recipes.pools import ROUNDED_UP, Buddy, General
from heapwright.replay.engine import arena_holding
from heapwright.traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace


class WorstCase(NamedTuple):
    """An arena in bytes that is enough for any program like the trace, and the theorem that says so."""

    bytes: int
    theorem: str


class Load(NamedTuple):
    """What programs ask of a heap, in bytes of its blocks: live at once, the largest block, the smallest."""

    live: int
    largest: int
    smallest: int


def worst_case(trace: Trace, recipe: Recipe) -> WorstCase | None:
    """The least arena that a theorem gives for programs like the trace; None where none holds.

    It holds for malloc, calloc and free, and for realloc where that always takes a new block; for requests at the
    heap's own alignment; and for recipes of a single pool that passes no free block by: see `_general_bounds` and
    `_buddy_bound`.
    """
    pools, struct = recipe.canonical().pools, policy_struct(recipe)
    if len(pools) > 1 or (trace.align > recipe.align).any() or not _takes_all(trace, struct.pools[0]):
        return None
    pool = pools[0]
    moves = isinstance(pool, General) and pool.resize == "move"
    if (trace.op == REALLOC).any() and not moves:
        return None
    if isinstance(pool, General) and _passes_none_by(pool, struct.pools[0].general):
        bounds = list(_general_bounds(pool, struct.pools[0].general, load_of(trace, recipe)))
    elif isinstance(pool, Buddy) and not pool.region:
        bounds = [_buddy_bound(load_of(trace, recipe))]
    else:
        return None
    least = min(bounds)
    arena = arena_holding(struct, int(struct.fixed_end) + least.bytes)
    return WorstCase(arena, least.theorem) if arena <= struct.reach else None


def _takes_all(trace: Trace, pool: Any) -> bool:
    sizes = trace.size[trace.op != FREE]
    return bool((sizes >= pool.min_size).all() and (sizes <= pool.max_size).all())


def load_of(trace: Trace, recipe: Recipe) -> Load:
    """The load of a trace on a recipe of a single general or buddy pool; a realloc has both of its blocks live."""
    blocks, smallest = block_sizes(recipe, trace.size)
    blocks[trace.op == FREE] = 0
    return Load(trace.largest_live_sum(blocks, both=True), int(blocks.max(initial=smallest)), smallest)


def block_sizes(recipe: Recipe, requests: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], int]:
    """The blocks that requests get where splitting is exact, int64 as many; and the smallest that any request gets.

    Of recipes of other pools than a general or a buddy one alone, the requests rounded up to the alignment.
    """
    pools, struct = recipe.canonical().pools, policy_struct(recipe)
    pool = struct.pools[0]
    sizes = np.maximum(requests.astype(np.int64), 1)
    if len(pools) > 1 or not isinstance(pools[0], General | Buddy):
        return -(-sizes // recipe.align) * recipe.align, recipe.align
    if isinstance(pools[0], Buddy):
        smallest = 1 << pool.buddy.min_block_log2
        return _powers(np.maximum(sizes + pool.buddy.header + pool.buddy.trailer, smallest)), smallest
    general = pool.general
    unit = 1 << general.unit_shift
    blocks = np.maximum(-(-(sizes + general.overhead) // unit) * unit, general.min_block)
    smallest = int(general.min_block)
    if general.powers:
        return _powers(blocks), 1 << (smallest - 1).bit_length()
    return blocks, smallest


def _powers(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.left_shift(1, np.ceil(np.log2(sizes)).astype(np.int64))


def _passes_none_by(pool: General, general: Any) -> bool:
    """Whether fresh memory is taken only where no free block would do, and free neighbours are always one block."""
    return (
        not pool.region
        and pool.top != "extend"
        and 1 << general.unit_shift >= general.align
        and pool.coalesce == "immediate"
        and general.coalesce_from <= general.min_block
        and pool.split != "never"
        and pool.fit != "exact"
        and general.search_percent == 100
        and not (pool.search_most or pool.victim_up_to or pool.unsorted or pool.grow_least)
    )


def _general_bounds(pool: General, general: Any, load: Load) -> Iterator[WorstCase]:
    unit = 1 << general.unit_shift
    unsplit = int(general.split_least) - unit  # the most that a block has beyond what was asked for
    slack = unit + int(general.overhead)  # where blocks begin, and a word behind the last one
    found = round_up(load.largest, unit) + _rounding_up(pool, load.largest, unit)
    # Any fit: when memory grows for a block, every hole is too small for it, and each but one lies before a live block.
    objects = (load.live - load.smallest) // load.smallest
    holes = (objects + 1) * (found - unit)
    yield WorstCase(load.live + objects * unsplit + holes + load.largest + slack, "any fit")
    if _is_first_fit(pool):
        live = load.live + load.live // load.smallest * unsplit
        harmonic = sum(1 / size for size in range(1, (load.largest + unsplit) // unit + 1))
        yield WorstCase(math.ceil(harmonic * live / math.log(2)) + slack, "first fit: Robson 1977; Knuth 2.5, ex. 43")
    if pool.bins == "half-fit" and general.powers and unsplit < load.smallest:
        octaves = (load.largest // load.smallest - 1).bit_length()
        yield WorstCase(2 * load.live * (1 + octaves) + slack, "half fit: Ogasawara 1995; o1heap")


def _rounding_up(pool: General, size: int, unit: int) -> int:
    """How far a search may look beyond the size it needs: to the next bin."""
    if pool.bins not in ROUNDED_UP:
        return 0
    return max(unit, (1 << size.bit_length() - 1) // (pool.bins_per_octave or 1))


def _is_first_fit(pool: General) -> bool:
    """Whether the lowest hole that is large enough is taken, from its start, memory never used among them."""
    by_address = pool.free_list in ("implicit", "tree") or pool.order == "address"
    return (
        by_address
        and pool.fit == "first"
        and pool.bins == "none"
        and pool.search_from == "start"
        and pool.split_from == "head"
        and pool.top != "bump"
    )


def _buddy_bound(load: Load) -> WorstCase:
    """(1 + log2 of largest / smallest) times what is live is never split and used up (Knuth 2.5, exercise 41).

    That is for a memory which is there from the start. One that grows block by block may have one more block of each
    size split than it would need: less than two largest blocks together.
    """
    octaves = (load.largest // load.smallest).bit_length() - 1
    return WorstCase((1 + octaves) * load.live + 2 * load.largest, "buddies: Knuth 2.5, ex. 41")
