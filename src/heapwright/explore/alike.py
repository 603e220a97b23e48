"""Alike: recipes that must do the same on a trace, because what they differ in never comes up there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright.recipes.pools import General, Quick
from heapwright.traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace


class Seen:
    """What a trace asks of a heap: the sizes of its requests, and whether it resizes or aligns any."""

    def __init__(self, trace: Trace) -> None:
        """Look at all calls once."""
        asked = trace.size[trace.op != FREE]
        self.sizes: list[int] = [int(size) for size in np.unique(np.maximum(asked, 1))]
        self.plain = not bool((trace.op == REALLOC).any() or trace.align.any())

    def form(self, recipe: Recipe) -> Hashable:
        """Equal for recipes whose replays of the trace have the same metrics; None for one that is like no other.

        A threshold of the victim means the largest request below it. Behind quick lists that keep every block of a
        trace without reallocs a general pool never gets one back: it only ever carves from its top, and has no free
        block to split or merge.
        """
        *fronts, last = recipe.canonical().pools
        changes = self._unseen(recipe, fronts, last) if isinstance(last, General) else {}
        if not changes:
            return None
        last = last.model_copy(update=changes)
        return (recipe.align, recipe.link_bytes, recipe.checks, recipe.counters, recipe.control_bytes, *fronts, last)

    def _unseen(self, recipe: Recipe, fronts: list[Any], last: General) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if last.victim_up_to and not fronts:
            capacities = [recipe.geometry.capacity_for(size, last) for size in self.sizes]
            below = bisect_right(capacities, last.victim_up_to)
            changes["victim_up_to"] = capacities[below - 1] if below else last.victim_up_to
        if len(fronts) == 1 and self.plain and self._keeps_all(recipe, fronts[0], last):
            changes |= {"split": "always", "split_from": "head", "coalesce_from": 0}
        return changes

    def _keeps_all(self, recipe: Recipe, quick: Any, last: General) -> bool:
        """Whether every block goes to a list and stays there, and the pool behind grows by whole blocks alone."""
        if not isinstance(quick, Quick) or quick.sizes is None or quick.flush != "never" or quick.flush_from:
            return False
        if quick.limit_blocks or quick.limit_bytes or last.victim_up_to or last.grow_least or last.region:
            return False
        if last.top not in ("last", "bump") or last.min_size or last.max_size is not None:
            return False
        return all(recipe.geometry.capacity(size, (last,)) in quick.sizes for size in self.sizes)
