"""Special pools: a recipe derived from a profile (Mamagkakis et al. 2007, section 4, A)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heapwright.errors import HeapwrightError
from heapwright.recipes.pools import MAX_CLASSES, Fixed
from heapwright.recipes.recipe import Recipe
from heapwright.zoo.catalogue import load

SPECIAL_POOLS = "wifi-special-pools"
"""The recipe that `special_pools` derives from what a program or a network really asks for."""


def special_pools(path: Path) -> Recipe:
    """Derive special pools from a trace or packet table (Mamagkakis et al. 2007, section 4, A).

    Every size with at least 10 % of the requests becomes a class; the others are powers of two, from the first that
    holds the smallest request to the first that holds the largest. Raises HeapwrightError where the file cannot be
    used.
    """
    from heapwright.traces.profile import FREQUENT_SHARE
    from heapwright.traffic.profile import profile_file

    profile = profile_file(path)
    sizes = profile["sizes"]
    if not sizes:
        raise HeapwrightError(f"{path}: asks for no memory; valid: a trace or packet table with requests")
    special = [entry["size"] for entry in sizes if entry["share"] >= FREQUENT_SHARE]
    model = load(SPECIAL_POOLS)
    classes = _classes(special, [entry["size"] for entry in sizes], model.align)
    pool = model.pools[0]
    assert isinstance(pool, Fixed)
    listed = ", ".join(map(str, sorted(special))) or "none"
    return model.model_copy(
        update={
            "about": f"Special pools for {profile['name']}: sizes with at least {FREQUENT_SHARE:.0%} of its requests "
            f"({listed}),\nand powers of two up to the largest.",
            "pools": (pool.model_copy(update={"sizes": classes}), *model.pools[1:]),
        }
    )


def _classes(special: Sequence[int], sizes: Sequence[int], align: int) -> tuple[int, ...]:
    """Special sizes and the powers of two around them, each class once when rounded up to the alignment."""
    least, largest = max(min(sizes), align), max(sizes)
    powers = [1 << bits for bits in range((least - 1).bit_length(), (largest - 1).bit_length() + 1)]
    if largest in special:
        powers = [power for power in powers if power < largest]
    by_class: dict[int, int] = {}
    for size in [*special, *powers]:
        by_class.setdefault(-(-max(size, align) // align), max(size, align))
    return tuple(sorted(by_class.values()))[:MAX_CLASSES]
