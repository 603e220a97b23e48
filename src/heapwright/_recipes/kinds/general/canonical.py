"""The form that all general pools of the same behaviour share."""

from __future__ import annotations

from typing import Any, Literal

from heapwright._recipes.geometry import Geometry, round_up
from heapwright._recipes.kinds.general.keys import Bins, GeneralKeys
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST


def canonical_changes(pool: GeneralKeys, geometry: Geometry) -> dict[str, Any]:
    """The keys that change where all pools of the same behaviour get the form that they share."""
    order = pool.order if pool.has_lists else "address"
    unit = pool.unit or geometry.align
    min_block = pool.smallest_block(geometry)
    changes: dict[str, Any] = {
        "unit": unit,
        "min_block": min_block,
        "order": order,
        "region": pool.region // unit * unit,
    }
    if not pool.victim_up_to and pool.close_bins:  # best fit takes the next filled bin anyway
        pool = pool.model_copy(update={"close_bins": 0})
        changes["close_bins"] = 0
    if pool.grow_least:
        changes["grow_least"] = 0 if pool.grow_least <= min_block else round_up(pool.grow_least, unit)
    if pool.max_block == MAX_REACH:
        changes["max_block"] = 0
    if pool.victim_up_to:
        small = min(pool.victim_up_to, pool.max_size or MAX_REQUEST)
        changes["victim_up_to"] = pool.capacity_for(small, geometry)
    changes |= _canonical_lists(pool, order) | _canonical_bins(pool, order, geometry)
    changes |= _canonical_search(pool, order) | _canonical_thresholds(pool, unit, min_block)
    return pool.request_range() | changes


def _bins_name(pool: GeneralKeys, linear: int, per_octave: int, unit: int) -> Bins:
    """Name a shape of bins by the design whose default it is, else by the family's parameterised member."""
    if pool.rounds_up:
        return "half-fit" if (linear, per_octave) == (0, 1) else "two-level"
    if pool.close_bins:
        return "exact"
    if (linear, per_octave) == (0, 1):
        return "power-of-two"
    return "lea" if (linear, per_octave) == (max(256, 4 * unit), 4) else "exact"


def _least_remainder(pool: GeneralKeys, unit: int, min_block: int) -> Literal["always", "never"] | int:
    if isinstance(pool.split, str):
        return pool.split
    return "always" if pool.split <= min_block else round_up(pool.split, unit)


def _canonical_lists(pool: GeneralKeys, order: str) -> dict[str, Any]:
    changes: dict[str, Any] = {"boundary_tags": pool.is_tagged}
    if not pool.is_tagged:
        changes["tag_in"] = "block"
    if pool.free_list == "implicit":
        changes["links_in"] = "payload"
    if order in ("address", "size") or pool.bins != "none" or pool.free_list == "implicit":
        changes["remainder"] = "in-place"  # the order says where it belongs
    if pool.coalesce != "lazy":
        changes["merge_until"] = "end"
    return changes


def _canonical_bins(pool: GeneralKeys, order: str, geometry: Geometry) -> dict[str, Any]:
    if pool.bins == "none":
        return {"linear_up_to": None, "bins_per_octave": None, "bin_by": "block", "most_bins": 0}
    linear, per_octave = pool.bin_shape(geometry)
    return {
        "bins": _bins_name(pool, linear, per_octave, pool.unit or geometry.align),
        "linear_up_to": linear,
        "bins_per_octave": per_octave,
        "large_order": None if pool.large_order == order else pool.large_order,
    }


def _canonical_search(pool: GeneralKeys, order: str) -> dict[str, Any]:
    by_size = (pool.large_order or order) == "size"
    is_first = pool.rounds_up or (pool.fit == "best" and (pool.search_percent == 0 or by_size))
    fit = "first" if is_first else pool.fit
    return {"fit": fit, "search_percent": pool.search_percent if fit == "best" else 100}


def _canonical_thresholds(pool: GeneralKeys, unit: int, min_block: int) -> dict[str, Any]:
    merging = pool.coalesce != "never" and pool.coalesce_from > min_block
    changes: dict[str, Any] = {
        "split": _least_remainder(pool, unit, min_block),
        "coalesce_from": round_up(pool.coalesce_from, unit) if merging else 0,
    }
    if changes["split"] == "never" or pool.fit == "exact":
        changes["split_from"] = "head"
    return changes
