"""The words of generated comments: which of them a heap of this recipe has no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heapwright._recipes.pools import Compact, Fixed, Quick

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe


def flushes(recipe: Recipe) -> bool:
    """Whether freed blocks may wait in the heap, and a program can have them given back."""
    waits = recipe.checks == "full" or any(isinstance(pool, Quick) for pool in recipe.pools)
    return waits and recipe.threads != "cached"


def absent_words(recipe: Recipe) -> str:
    """A pattern of the words for what the recipe lacks; no comment of its heap has a sentence with any of them."""
    kinds = {type(pool) for pool in recipe.pools}
    owners = [pool for pool in recipe.pools if pool.owns_blocks]
    aligning = [pool for pool in owners if pool.aligns]
    several = any(isinstance(pool, Fixed) and len(pool.sizes) > 1 for pool in recipe.pools)
    quick, shared, hardened = Quick in kinds, recipe.threads == "cached", recipe.checks in ("neighbours", "full")
    words = {
        r"\bquick lists?\b": quick,
        r"\bcached blocks?\b": quick or recipe.checks == "full",
        r"\bwaits, at checks\b": recipe.checks == "full",
        r"\bboundary tag\b": any(getattr(pool, "boundary_tags", False) for pool in recipe.pools),
        r"\b[Ss]everal pools\b": len(recipe.pools) > 1,
        r"\bclass's list\b": Fixed in kinds,
        r"\b[Cc]lass(es|'s)?\b": several or bool(recipe.sites) or shared,
        r"\bhardened\b": hardened,
        r"\bwithout checks\b": recipe.checks == "none",
        r"\bOnly pools with headers\b": 0 < len(aligning) < len(owners),
        r"\bno pool has headers\b": not aligning and Compact not in kinds,
        r"\bhw_flush\b": flushes(recipe),
        r"\bkeeps its alignment\b": bool(aligning),
        r"\bcaches?\b": quick or shared,
        r"\bthreads?\b": recipe.threads != "none",
    }
    return "|".join(pattern for pattern, present in words.items() if not present)
