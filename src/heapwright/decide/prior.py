"""A prior on designs: which of them need more elsewhere than a recording foretells, as other recordings showed.

Learnt on programs recorded under two loads each; docs/robustness.md has the evidence, and what was found on others,
which had no part in it.
"""

from __future__ import annotations

from heapwright.recipes.recipe import Recipe


def doubt(recipe: Recipe, *, lists: bool = True) -> str | None:
    """Why a design is doubted, in words; None for one that held.

    What held on other recordings is one general pool that merges every block as it is freed and finds the best fit
    through exact or sorted bins or a tree, behind quick lists or none. Lists that do not give back what waits idle,
    and hold more than some blocks, save accesses, and cost memory elsewhere and over years, even where they are emptied
    before the heap grows: without ``lists`` nothing is said of them. Each kind of pool tells its own part
    (`BasePool.doubt`).
    """
    *front, last = recipe.pools
    if len(front) > 1 or not last.owns_blocks or any(pool.owns_blocks for pool in front):
        return "its pools take memory that no other pool gets back"
    return last.doubt or (front[0].doubt if front and lists else None)
