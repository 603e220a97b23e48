"""Pools: all kinds. `heapwright._recipes.kinds.base` declares their common interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heapwright._recipes.kinds.base import BasePool
from heapwright._recipes.kinds.buddy import Buddy
from heapwright._recipes.kinds.compact import Compact
from heapwright._recipes.kinds.fixed import Fixed
from heapwright._recipes.kinds.general.pool import General
from heapwright._recipes.kinds.partition import Partition
from heapwright._recipes.kinds.quick import Quick
from heapwright._recipes.limits import MAX_CLASSES, MAX_MEMORIES, MAX_POOLS, MAX_REACH, MAX_REQUEST, MAX_UP_TO
from heapwright._recipes.model import Table

__all__ = [
    "ALIGNING",
    "BEST_FIT",
    "HOW_TO_END",
    "KINDS",
    "KINDS_BY_NUMBER",
    "MAX_CLASSES",
    "MAX_MEMORIES",
    "MAX_POOLS",
    "MAX_REACH",
    "MAX_REQUEST",
    "MAX_UP_TO",
    "Buddy",
    "Compact",
    "Fixed",
    "General",
    "Lists",
    "Owner",
    "Partition",
    "Pool",
    "Quick",
    "Table",
    "kind_of",
    "lists_in",
    "owners_in",
]

Lists = Quick
"""Pools that keep blocks of those below; what the cache of a thread has, too."""

Owner = General | Fixed | Buddy | Partition | Compact
"""Pools that blocks belong to."""

Pool = Lists | Owner

KINDS: dict[str, type[BasePool]] = {
    "quick": Quick,
    "general": General,
    "fixed": Fixed,
    "buddy": Buddy,
    "partition": Partition,
    "compact": Compact,
}
"""The model of each kind of pool."""

KINDS_BY_NUMBER = {kind.number: kind for kind in KINDS.values()}
"""By the number that the core has for it."""

ALIGNING = next(name for name, kind in KINDS.items() if kind.aligns)
"""The kind that serves alignments above the heap's own."""

BEST_FIT = General(bins="exact", fit="best")
"""Best fit with one bin a size: the reference for other heaps."""

HOW_TO_END = 'give fixed pools "counts" and general ones a "region", or leave the pool out'
"""Advice for a recipe whose pools share the rest of the arena, if something else needs it."""


def kind_of(laid_out: Any) -> type[BasePool]:
    """The model of a pool in the C struct (`struct hw_pool`)."""
    return KINDS_BY_NUMBER[laid_out.kind]


def lists_in(pools: Iterable[Pool]) -> list[Lists]:
    """Pools that cache blocks of other pools."""
    return [pool for pool in pools if isinstance(pool, Lists)]


def owners_in(pools: Iterable[Pool]) -> list[Owner]:
    """Pools that own blocks: all but caches of other pools' blocks."""
    return [pool for pool in pools if not isinstance(pool, Lists)]
