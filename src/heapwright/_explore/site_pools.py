"""Pools for the classes of call sites in traces: the meaning of `site_class` in a SPACE.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heapwright._recipes.pools import KINDS, MAX_CLASSES
from heapwright._traces.site_classes import CLASSES, SitesOfClass

SITE_CLASS = "site_class"
"""The key of a pool in a SPACE.toml."""

NO_SITES = "none"
"""Its value that leaves the pool out."""

SITE_CLASSES = (NO_SITES, *CLASSES)

ROOM = 9 / 8
"""Size of a region over the size of its blocks: best fit needs no more on most traces."""

_UNIT = 64
"""Bytes of which the size of a region is a multiple."""


def pool_of_sites(result: SitesOfClass, pool: Mapping[str, Any], align: int) -> dict[str, Any]:
    """The keys that a pool gets for the call sites of a class, in addition to its own; none if there are no such sites.

    Args:
        found: the sites.
        pool: the pool's own keys; its region, sizes and counts stay if it has some.
        align: alignment in bytes.

    Counts of sizes that are equal once aligned are added. A pool of counted classes has the `MAX_CLASSES` with the most
    bytes; the pools below serve the other requests. A pool at the arena's far end has no region.
    """
    keys = KINDS[pool["kind"]].model_fields
    counted = "counts" in keys
    if not result.sites or (counted and not result.sizes and "sizes" not in pool):
        return {}
    info: dict[str, Any] = {"sites": list(result.sites)}
    if counted:
        classes: dict[int, int] = {}
        for size, count in zip(result.sizes, result.counts, strict=True):
            aligned = -(-size // align) * align
            if count:
                classes[aligned] = classes.get(aligned, 0) + count
        dearest = sorted(classes, key=lambda size: -size * classes[size])[:MAX_CLASSES]
        info |= {"sizes": sorted(dearest), "counts": [classes[size] for size in sorted(dearest)]}
    elif "region" in keys and pool.get("place") != "ends":
        if not result.live_bytes:
            return {}
        info["region"] = -(-int(result.live_bytes * ROOM) // _UNIT) * _UNIT
    return info | {key: value for key, value in pool.items() if key in ("sizes", "counts", "region")}
