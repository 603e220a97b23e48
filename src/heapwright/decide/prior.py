"""A prior on designs: which of them need more elsewhere than a recording foretells, as other recordings showed.

Learnt on nine programs recorded under two loads each, by leave-one-program-out; docs/robustness.md has the evidence,
and what was found on programs that had no part in it.
"""

from __future__ import annotations

from fractions import Fraction

from heapwright.recipes.pools import General, Quick
from heapwright.recipes.recipe import Recipe

WAITING_SHARE = Fraction(1, 128)
"""At most so much of the heap may wait in lists that are emptied before the heap grows."""

WAITING_BLOCKS = 4
"""At most so many blocks may wait in each list that is not."""

_FINE_BINS = ("exact", "lea")


def doubt(recipe: Recipe, *, lists: bool = True) -> str | None:
    """Why a design is doubted, in words; None for one that held.

    What held on other recordings is one general pool that merges every block as it is freed and finds the best fit
    through exact or sorted bins or a tree, behind quick lists or none. Lists that are not emptied before the heap grows
    (`WAITING_SHARE`), or hold more than some blocks (`WAITING_BLOCKS`), save accesses, and cost memory elsewhere and
    over years: without ``lists`` nothing is said of them.
    """
    *front, last = recipe.pools
    quick = [pool for pool in front if isinstance(pool, Quick)]
    if not isinstance(last, General) or len(front) > 1 or len(quick) < len(front):
        return "its pools take memory that no other pool gets back"
    if last.coalesce != "immediate" or last.coalesce_from:
        return "it does not merge every block as it is freed"
    if last.fit != "best" or not (last.bins in _FINE_BINS or last.free_list == "tree"):
        return "it finds no best fit through exact bins or a tree"
    return _waiting(quick[0]) if lists and quick else None


def _waiting(pool: Quick) -> str | None:
    if pool.flush == "before-growing" and Fraction(pool.flush_share) <= WAITING_SHARE:
        return None
    if pool.limit_blocks is not None and pool.limit_blocks <= WAITING_BLOCKS:
        return None
    return "freed blocks wait in its lists while the heap grows"
