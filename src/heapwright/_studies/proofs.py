"""Proofs of a reserve: what serves any order of the objects that a ring or a queue holds, and what some order needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heapwright._replay.worst_case import worst_case_of
from heapwright._replay.worst_order import worst_order
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.live_bound import LiveBound


@dataclass(frozen=True)
class ReserveProof:
    """ReserveProof of a reserve for one bound on live objects.

    Attributes:
        bound: the objects at once, in words.
        arena: bytes that serve any order of them, and by which theorem; None if none is proved.
        theorem: its name.
        order: bytes that the worst order known needs.
    """

    bound: str
    arena: int | None
    theorem: str
    order: int | None

    def sentence(self) -> str:
        """The proof in words."""
        if self.arena is None:
            return f"No arena is proved to serve any order of {self.bound}."
        text = f"{self.arena:,} bytes serve any order of {self.bound} ({self.theorem})"
        if self.order is None:
            return f"{text}."
        if self.order == self.arena:
            return f"{text}, and some order needs all of them."
        return f"{text}; the worst order known needs {self.order:,}, {100 * (1 - self.order / self.arena):.1f} % less."


def proof_of(bound: LiveBound, recipe: Recipe) -> ReserveProof:
    """The proof for a bound, and the worst order known: some replays."""
    proved = worst_case_of(bound, recipe)
    try:
        order: int | None = worst_order(bound, recipe)[1]
    except HeapwrightError:
        order = None
    return ReserveProof(str(bound), proved and proved.bytes, proved.theorem if proved else "", order)


def proofs_of(study: Analysis, id: str) -> list[ReserveProof]:
    """The proofs of a recipe's reserve, one for each bound of the traces explored on; none unless all have one."""
    if not study.proved:
        return []
    recipe = study.recipe(id)
    return [proof_of(bound, recipe) for bound in dict.fromkeys(study.live_bounds.values())]
