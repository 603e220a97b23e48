"""Alignment: the pools of a recipe as another alignment has them."""

from __future__ import annotations

from typing import Any

from heapwright.recipes.canonical import without_resolved
from heapwright.recipes.geometry import Geometry
from heapwright.recipes.pools import Buddy, Fixed, General, Partition, Pool, Quick


def moved_pools(pools: tuple[Pool, ...], old: Geometry, new: Geometry) -> tuple[Pool, ...]:
    """Round what depends on the alignment; classes and lists of blocks that become equal are merged.

    What a key left to the alignment, or canonical form filled in from it, follows the new one. Whether the pools are
    valid together there is not looked at.
    """
    moved: tuple[Pool, ...] = ()
    for pool in reversed(pools):  # a quick pool asks those below it
        moved = (_moved(without_resolved(pool, old), moved, old, new), *moved)
    return _each_list_once(moved, new)


def _moved(pool: Pool, below: tuple[Pool, ...], old: Geometry, geometry: Geometry) -> Pool:
    changes: dict[str, Any] = {}
    if isinstance(pool, Quick):
        changes = _moved_lists(pool, below, geometry)
    elif isinstance(pool, Fixed):
        changes = _moved_classes(pool, geometry)
    elif isinstance(pool, General):
        if pool.unit >= old.align:  # a smaller one, with padding in the block, is meant as it is
            changes["unit"] = max(pool.unit, geometry.align)
        least = geometry.metadata_block(pool.model_copy(update=changes))
        changes["min_block"] = pool.min_block and max(pool.min_block, least)
    elif isinstance(pool, Buddy):
        changes["min_block"] = max(pool.min_block, geometry.least_buddy(pool))
    elif isinstance(pool, Partition):
        changes["size"] = geometry.capacity_in(pool, pool.size)
    return pool.model_copy(update=changes)


def _moved_lists(pool: Quick, below: tuple[Pool, ...], geometry: Geometry) -> dict[str, Any]:
    if pool.sizes is None:
        return {}
    blocks = sorted({geometry.capacity(size, below) for size in pool.sizes if pool.takes(size)})
    limit = pool.limit_bytes and max(pool.limit_bytes, blocks[-1])
    return {"sizes": tuple(blocks), "min_size": 0, "max_size": None, "limit_bytes": limit}


def _moved_classes(pool: Fixed, geometry: Geometry) -> dict[str, Any]:
    blocks = [geometry.capacity_in(pool, size) for size in pool.sizes]
    sizes = tuple(dict.fromkeys(blocks))
    if pool.counts == "grow":
        return {"sizes": sizes}
    counts = dict.fromkeys(sizes, 0)
    for size, count in zip(blocks, pool.counts, strict=True):
        counts[size] += count
    return {"sizes": sizes, "counts": tuple(counts.values())}


def _each_list_once(pools: tuple[Pool, ...], geometry: Geometry) -> tuple[Pool, ...]:
    """Leave lists of the same blocks to "up_to", else to the first quick pool; one that keeps none goes."""
    covered = 0
    for index, pool in enumerate(pools):
        if isinstance(pool, Quick) and pool.up_to is not None:
            covered = geometry.capacity(pool.up_to, pools[index + 1 :])
    taken: set[int] = set()
    kept: list[Pool] = []
    for pool in pools:
        if isinstance(pool, Quick) and pool.sizes is not None:
            sizes = tuple(size for size in pool.sizes if size > covered and size not in taken)
            taken.update(sizes)
            kept += [pool.model_copy(update={"sizes": sizes})] if sizes else []
        else:
            kept.append(pool)
    return tuple(kept)
