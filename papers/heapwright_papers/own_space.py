"""The 2006 paper's own space, complete: every combination of levels of its four techniques on one application's traces.

Section 5: about ten levels of use of freelists, fit, splitting and coalescing, in all combinations, 10,000 allocators
for each application. Free blocks are in one list, as in the paper: no bins, trees or classes, which our default space
has in addition. Figure 2 is the front of memory and time; its five claims say what the front's members share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

import heapwright as hw
from heapwright import Recipe, pareto, zoo
from heapwright_papers.declared import Metrics
from heapwright_papers.measuring import replayed, spread
from heapwright_papers.page import ALIGN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heapwright import Trace

Levels = hw.default_space.Techniques
FIRST_FIT = hw.default_space.FITS.index({"fit": "first"})
FITS = (
    FIRST_FIT,
    *(at for at, fit in enumerate(hw.default_space.FITS) if "bins" not in fit and fit["fit"] == "best"),
)
"""Levels of fit over one list: first fit, and best fit that searches 10, 30, 60 and 100 % of it."""
STEP = 1
"""Between the levels of splitting and coalescing that are tried: all of them."""
TECHNIQUES = ("two or three freelists", "first fit", "full splitting", "full coalescing")


def uses(levels: Levels, technique: str) -> bool:
    """Whether an allocator has what the paper says that the optimal ones share, one of TECHNIQUES."""
    return {
        "two or three freelists": 2 <= levels.freelists <= 3,
        "first fit": levels.fit == FIRST_FIT,
        "full splitting": levels.split == 0,
        "full coalescing": levels.coalesce == 0,
    }[technique]


@dataclass(frozen=True)
class OwnSpace:
    """All uses of the four techniques on traces of one application.

    Attributes:
        names: of the traces.
        recipes: all of them.
        levels: of each recipe; of several that have the same one, the first.
        costs: float64[traces, recipes, 2], footprint in bytes and accesses; infinite where a request was refused.
        proposed: float64[traces, 2], the same of the allocator that the paper proposes.
    """

    names: Sequence[str]
    recipes: Sequence[Recipe]
    levels: Sequence[Levels]
    costs: NDArray[np.float64]
    proposed: NDArray[np.float64]

    @classmethod
    def of(cls, proposed: str, traces: Mapping[str, Trace]) -> OwnSpace:
        """Replay all of them; `proposed` is the zoo's name of the allocator that the paper proposes."""
        space: dict[str, tuple[Levels, Recipe]] = {}
        for levels, recipe in hw.default_space.technique_grid(list(traces.values()), ALIGN).items():
            if levels.fit in FITS and not levels.split % STEP and not levels.coalesce % STEP:
                canonical = recipe.canonical()
                space.setdefault(canonical.hash, (levels, canonical))
        recipes, own = [recipe for _, recipe in space.values()], zoo(proposed)
        costs = np.array([spread(partial(_costs, trace), (*recipes, own)) for trace in traces.values()])
        return cls(list(traces), recipes, [levels for levels, _ in space.values()], costs[:, :-1], costs[:, -1])

    def front(self, at: int) -> list[int]:
        """The recipes that no other beats in footprint and accesses on one trace, smallest first."""
        costs = self.costs[at]
        rows = np.flatnonzero(pareto.front(costs, ("min", "min")) & np.isfinite(costs[:, 0]))
        return sorted(rows.tolist(), key=lambda row: tuple(costs[row]))

    @cached_property
    def fronts(self) -> dict[str, list[int]]:
        """By the name of the trace."""
        return {name: self.front(at) for at, name in enumerate(self.names)}

    def shares(self, technique: str) -> list[float]:
        """Of each trace's front, the share that has one of TECHNIQUES."""
        return [float(np.mean([uses(self.levels[row], technique) for row in rows])) for rows in self.fronts.values()]

    def share_tried(self, technique: str) -> float:
        """Of all that are tried."""
        return float(np.mean([uses(levels, technique) for levels in self.levels]))

    @property
    def proposed_on_front(self) -> list[bool]:
        """On each trace, whether none of them takes no more of both than the proposed one, and less of one."""
        own = self.proposed[:, None]
        beaten = np.logical_and((self.costs <= own).all(axis=2), (self.costs < own).any(axis=2))
        return [not any(row) for row in beaten.tolist()]

    @property
    def against_proposed(self) -> Metrics:
        """How the proposed allocator stands in it, by geometric means over the traces.

        `tried` is how many serve every request; `less`, how many of these take less memory, and how many fewer
        accesses; `both`, how many take less of both, and `best`, that of the least product, its ratios.
        """
        served = np.flatnonzero(np.isfinite(self.costs).all(axis=(0, 2)))
        ratios = np.exp(np.log(self.costs[:, served] / self.proposed[:, None]).mean(axis=0))
        both = np.flatnonzero((ratios < 1).all(axis=1))
        best = min(both, key=lambda row: float(ratios[row].prod()), default=None)
        return Metrics(
            tried=len(served),
            less=tuple(int((ratios[:, cost] < 1).sum()) for cost in (0, 1)),
            both=len(both),
            best=None if best is None else (self.recipes[served[best]].summary(ALIGN), tuple(ratios[best].tolist())),
        )


def _costs(trace: Trace, recipe: Recipe) -> tuple[float, float]:
    found = replayed(trace, recipe)
    return (np.inf, np.inf) if found["failed"] else (float(found["footprint_bytes"]), float(found["accesses"]))
