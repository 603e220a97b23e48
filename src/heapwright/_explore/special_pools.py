"""Special pools for the requests of a program or network, as Mamagkakis et al. 2007 made theirs for 802.11b."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heapwright._recipes.limits import MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo.catalogue import load
from heapwright._support.errors import HeapwrightError
from heapwright._traces.profile import FREQUENT_SHARE

SPECIAL_POOLS = "wifi-special-pools"
"""The zoo's recipe, with the paper's own sizes."""


def special_pools(profile: Mapping[str, Any]) -> Recipe:
    """Return `SPECIAL_POOLS` with pools for the sizes of a profile (section 4, A).

    Every size with at least `FREQUENT_SHARE` of the requests has a pool. The others share powers of two, from the
    first that holds the smallest request, and above these a pool for the largest, which no block need exceed: the
    paper's packets of 40 bytes to the MTU of 1500 give 64 to 1024 and 1500.

    Args:
        profile: `name` and `sizes` as a profile has them; of each size `size` and `share` are read.

    Raises:
        HeapwrightError: the profile has no sizes that a heap can serve.
    """
    rows = [row for row in profile["sizes"] if row["size"] <= MAX_REQUEST]
    sizes = [row["size"] for row in rows]
    if not sizes:
        raise HeapwrightError(
            f"{profile['name']}: no request that a heap can serve; give a trace or packet table with requests"
        )
    special = sorted(row["size"] for row in rows if row["share"] >= FREQUENT_SHARE)
    model = load(SPECIAL_POOLS)
    pool = model.pools[0]
    classes = _classes(special, min(sizes), max(sizes), model.align)
    listed = ", ".join(map(str, special)) or "none"
    return model.model_copy(
        update={
            "about": f"Special pools for {profile['name']}: sizes with at least {FREQUENT_SHARE:.0%} of its requests "
            f"({listed}),\npowers of two, and the largest.",
            "pools": (pool.model_copy(update={"sizes": classes}), *model.pools[1:]),
        }
    )


def _classes(special: Sequence[int], least: int, largest: int, align: int) -> tuple[int, ...]:
    """The sizes of the pools, rounded up to the alignment as their blocks are."""
    powers = [1 << bits for bits in range((least - 1).bit_length(), (largest - 1).bit_length())]
    return tuple(sorted({max(-(-size // align), 1) * align for size in (*special, *powers, largest)}))
