"""Canonical form: recipes that behave alike become equal."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from heapwright.recipes.geometry import Geometry, has_tags, round_up
from heapwright.recipes.pools import (
    BINS_PER_OCTAVE,
    FLUSH_STEPS,
    MAX_REACH,
    MAX_REQUEST,
    MAX_UP_TO,
    ROUNDED_UP,
    Bins,
    Buddy,
    Compact,
    Fixed,
    General,
    Partition,
    Pool,
    Quick,
)


def _bins_name(pool: General, linear: int, per_octave: int, unit: int) -> Bins:
    """Name a shape of bins by the design whose default it is, else by the family's parameterised member."""
    if pool.bins in ROUNDED_UP:
        return "half-fit" if (linear, per_octave) == (0, 1) else "two-level"
    if pool.close_bins:
        return "exact"
    if (linear, per_octave) == (0, 1):
        return "power-of-two"
    return "lea" if (linear, per_octave) == (max(256, 4 * unit), 4) else "exact"


def _least_remainder(pool: General, unit: int, min_block: int) -> Literal["always", "never"] | int:
    if isinstance(pool.split, str):
        return pool.split
    return "always" if pool.split <= min_block else round_up(pool.split, unit)


@lru_cache(maxsize=65536)
def _canonical_general(pool: General, geometry: Geometry) -> General:
    order = "address" if pool.free_list in ("implicit", "tree") else pool.order
    if not pool.victim_up_to and pool.close_bins:  # best fit takes the next filled bin anyway
        pool = pool.model_copy(update={"close_bins": 0})
    unit = pool.unit or geometry.align
    min_block = geometry.smallest_block(pool)
    changes: dict[str, Any] = {"unit": unit, "min_block": min_block, "boundary_tags": has_tags(pool)}
    if not has_tags(pool):
        changes["tag_in"] = "block"
    if pool.free_list == "implicit":
        changes["links_in"] = "payload"
    if order in ("address", "size") or pool.bins != "none" or pool.free_list == "implicit":
        changes["remainder"] = "in-place"  # the order says where it belongs
    if pool.coalesce != "lazy":
        changes["merge_until"] = "end"
    if pool.grow_least:
        changes["grow_least"] = 0 if pool.grow_least <= min_block else round_up(pool.grow_least, unit)
    if pool.max_block == MAX_REACH:
        changes["max_block"] = 0
    changes["order"] = order
    if pool.bins == "none":
        changes |= {"linear_up_to": None, "bins_per_octave": None, "bin_by": "block", "most_bins": 0}
    else:
        linear, per_octave = geometry.bin_shape(pool)
        bins = _bins_name(pool, linear, per_octave, unit)
        changes |= {"bins": bins, "linear_up_to": linear, "bins_per_octave": per_octave}
        changes["large_order"] = None if pool.large_order == order else pool.large_order
    if pool.bins in ROUNDED_UP or (
        pool.fit == "best" and (pool.search_percent == 0 or (pool.large_order or order) == "size")
    ):
        changes["fit"] = "first"
    fit_searches = changes.get("fit", pool.fit) == "best"
    changes["search_percent"] = pool.search_percent if fit_searches else 100
    changes["split"] = _least_remainder(pool, unit, min_block)
    if pool.split == "never" or pool.fit == "exact":
        changes["split_from"] = "head"
    merging = pool.coalesce != "never" and pool.coalesce_from > min_block
    changes["coalesce_from"] = round_up(pool.coalesce_from, unit) if merging else 0
    if pool.victim_up_to:
        small = min(pool.victim_up_to, pool.max_size or MAX_REQUEST)
        changes["victim_up_to"] = geometry.capacity_for(small, pool)
    changes["region"] = pool.region // unit * unit
    return pool.model_copy(update=_request_range(pool) | changes)


@lru_cache(maxsize=65536)
def _canonical_fixed(pool: Fixed, geometry: Geometry) -> Fixed:
    classes = [round_up(size, geometry.align) for size in pool.sizes]
    changes: dict[str, Any] = {"sizes": tuple(sorted(classes))}
    if pool.counts != "grow":
        changes["counts"] = tuple(count for _, count in sorted(zip(classes, pool.counts, strict=True)))
    if len(classes) == 1:
        changes["fall_through"] = False
    if pool.page < 2 * round_up(pool.header + min(classes) + geometry.guard, geometry.align):
        changes["page"] = 0
    if pool.max_size is not None and pool.max_size >= max(classes):
        changes["max_size"] = None
    return pool.model_copy(update=_request_range(pool) | changes)


@lru_cache(maxsize=65536)
def _canonical_buddy(pool: Buddy, geometry: Geometry) -> Buddy:
    largest = geometry.largest_block(pool)
    unbounded = largest == geometry.largest_block(pool.model_copy(update={"max_block": 0}))
    changes: dict[str, Any] = {
        "max_block": 0 if unbounded else largest,
        "region": pool.region // pool.min_block * pool.min_block,
    }
    return pool.model_copy(update=_request_range(pool, largest - pool.header - geometry.guard) | changes)


@lru_cache(maxsize=65536)
def _canonical_partition(pool: Partition, geometry: Geometry) -> Partition:
    changes: dict[str, Any] = {"size": round_up(pool.size, geometry.align)}
    if pool.count != "grow":
        changes["lists"] = min(pool.lists, pool.count)
    if pool.order == "size":  # the first group that is large enough is the smallest
        changes["fit"] = "first"
    return pool.model_copy(update=_request_range(pool, geometry.largest_served(pool)) | changes)


@lru_cache(maxsize=65536)
def _canonical_compact(pool: Compact, geometry: Geometry) -> Compact:
    changes: dict[str, Any] = {"handle_bytes": pool.handle_bytes or geometry.least_handle(pool)}
    return pool.model_copy(update=_request_range(pool, geometry.largest_object(pool)) | changes)


@lru_cache(maxsize=65536)
def _canonical_quick(pool: Quick, below: tuple[Pool, ...], geometry: Geometry) -> Quick:
    changes = _request_range(pool)
    if pool.sizes is not None:
        cached = {geometry.capacity(size, below) for size in pool.sizes if pool.takes(size)}
        changes |= {"sizes": tuple(sorted(cached)), "min_size": 0, "max_size": None}
    elif pool.up_to is not None:
        changes["up_to"] = min(geometry.capacity(pool.up_to, below), MAX_UP_TO)
        if pool.max_size is not None and pool.max_size >= pool.up_to:
            changes["max_size"] = None
    for key in ("flush_share", "flush_growth"):
        share = round(getattr(pool, key) * FLUSH_STEPS) / FLUSH_STEPS
        changes[key] = share if pool.flush == "before-growing" else 0.0
    changes["flush_large"] = pool.flush_large if changes["flush_growth"] else 0
    return pool.model_copy(update=changes)


def _request_range(pool: Pool, largest: int = MAX_REQUEST) -> dict[str, Any]:
    """A request of size 0 is served as 1 byte, and none above `largest` is served at all."""
    return {
        "min_size": 0 if pool.min_size == 1 else pool.min_size,
        "max_size": None if pool.max_size is not None and pool.max_size >= largest else pool.max_size,
    }


def canonical_pools(pools: tuple[Pool, ...], geometry: Geometry) -> tuple[Pool, ...]:
    """Return the pools in the form that all recipes of the same behaviour share; see `Recipe.canonical`. Idempotent."""
    canonical: list[Pool] = []
    for index, pool in enumerate(pools):
        if isinstance(pool, Quick):
            canonical.append(_canonical_quick(pool, pools[index + 1 :], geometry))
        elif isinstance(pool, General):
            canonical.append(_canonical_general(pool, geometry))
        elif isinstance(pool, Buddy):
            canonical.append(_canonical_buddy(pool, geometry))
        elif isinstance(pool, Partition):
            canonical.append(_canonical_partition(pool, geometry))
        elif isinstance(pool, Compact):
            canonical.append(_canonical_compact(pool, geometry))
        else:
            canonical.append(_canonical_fixed(pool, geometry))
    return tuple(canonical)


def without_resolved(pool: Pool, geometry: Geometry) -> Pool:
    """Undo what canonical() fills in, where the absent key means the same."""
    if isinstance(pool, Compact) and pool.handle_bytes == geometry.least_handle(pool):
        return pool.model_copy(update={"handle_bytes": 0})
    if not isinstance(pool, General):
        return pool
    changes: dict[str, Any] = {}
    if pool.unit == geometry.align:
        changes["unit"] = 0
    if pool.min_block == geometry.least_block(pool):
        changes["min_block"] = 0
    if not pool.boundary_tags and pool.coalesce != "immediate":
        changes["boundary_tags"] = True
    if pool.free_list == "implicit":
        changes["order"] = "lifo"
    if pool.bins != "none":
        shape = geometry.bin_shape(pool)
        absent = geometry.bin_shape(pool.model_copy(update={"linear_up_to": None}))
        changes["linear_up_to"] = None if shape == absent else pool.linear_up_to
        changes["bins_per_octave"] = None if shape[1] == BINS_PER_OCTAVE[pool.bins] else pool.bins_per_octave
    return pool.model_copy(update=changes)
