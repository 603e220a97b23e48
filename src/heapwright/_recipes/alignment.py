"""Alignment: the pools of a recipe as another alignment has them."""

from __future__ import annotations

from typing import cast

from heapwright._recipes.geometry import Geometry
from heapwright._recipes.pools import KINDS, Pool


def moved_pools(pools: tuple[Pool, ...], old: Geometry, new: Geometry) -> tuple[Pool, ...]:
    """Round what depends on the alignment; classes and lists of blocks that become equal are merged.

    What a key left to the alignment, or canonical form filled in from it, follows the new one. Whether the pools are
    valid together there is not looked at.
    """
    moved: tuple[Pool, ...] = ()
    for pool in reversed(pools):  # one that keeps blocks of others asks those below it
        moved = (pool.without_resolved(old).moved(moved, old, new), *moved)
    for kind in KINDS.values():
        moved = cast("tuple[Pool, ...]", kind.each_list_once(moved, new))
    return moved
