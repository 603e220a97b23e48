"""The words of generated comments: which of them a heap of this recipe has no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heapwright._recipes.pools import Compact, Fixed, Quick

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heapwright._recipes.pools import Pool
    from heapwright._recipes.recipe import Recipe


def flushes(recipe: Recipe) -> bool:
    """Whether freed blocks may wait in the heap, and a program can have them given back."""
    waits = recipe.checks == "full" or _has(recipe.pools, Quick)
    return waits and recipe.threads != "cached"


def absent_words(recipe: Recipe) -> str:
    """A pattern of the words for what the recipe lacks; no comment of its heap has a sentence with any of them."""
    pools = recipe.pools
    quick, fixed = _has(pools, Quick), _has(pools, Fixed)
    shared, hardened = recipe.threads == "cached", recipe.checks in ("neighbours", "full")
    owners = [pool for pool in pools if pool.owns_blocks]
    headed = sum(pool.aligns for pool in owners)
    words = {
        r"\bquick lists?\b": quick,
        r"\bcached blocks?\b": quick or recipe.checks == "full",
        r"\bwaits, at checks\b": recipe.checks == "full",
        r"\bboundary tag\b": any(getattr(pool, "boundary_tags", False) for pool in pools),
        r"\b[Ss]everal pools\b": len(pools) > 1,
        r"\brounded up to a bin\b": any(getattr(pool, "rounds_up", False) for pool in pools),
        r"\bother pools or sizes\b": len(owners) > 1 or any(map(_serves_own_sizes, owners)),
        r"\bfirst blocks of a list\b": any(getattr(pool, "search_most", 0) for pool in owners),
        r"\bjust freed\b": any(map(_passes_freed, owners)),
        r"\bclass's list\b": fixed,
        r"\b[Cc]lass(es|'s)?\b": _has_classes(recipe) or shared,
        r"\bhardened\b": hardened,
        r"\bwithout checks\b": recipe.checks == "none",
        r"\bOnly pools with headers\b": 0 < headed < len(owners),
        r"\bno pool has headers\b": not headed and not _has(pools, Compact),
        r"\bhw_flush\b": flushes(recipe),
        r"\bkeeps its alignment\b": headed > 0,
        r"\bcaches?\b": quick or shared,
        r"\bthreads?\b": recipe.threads != "none",
    }
    return "|".join(pattern for pattern, present in words.items() if not present)


def _has(pools: Iterable[Pool], kind: type) -> bool:
    return any(type(pool) is kind for pool in pools)


def _serves_own_sizes(pool: Pool) -> bool:
    """Whether a pool serves a request only by free blocks of one size, although it has larger ones."""
    classes = isinstance(pool, Fixed) and len(pool.sizes) > 1 and not pool.fall_through
    return classes or getattr(pool, "fit", None) == "exact"


def _passes_freed(pool: Pool) -> bool:
    """Whether a search may pass by the block of an object of the same size that was freed last."""
    if getattr(pool, "rounds_up", False):
        return getattr(pool, "round_to", None) == "unit"
    order = getattr(pool, "large_order", None) or getattr(pool, "order", None)
    return bool(getattr(pool, "search_most", 0)) and order != "lifo"


def _has_classes(recipe: Recipe) -> bool:
    """Whether the blocks of a pool are of several sizes or for several call sites."""
    return bool(recipe.sites) or any(isinstance(pool, Fixed) and len(pool.sizes) > 1 for pool in recipe.pools)
