"""The future work of Mamagkakis et al. 2006: time, fragmentation and energy weighed at once.

Their section 2 calls fragmentation and performance "complementary objective functions" to the footprint and energy of
their earlier papers, and explores them apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright import pareto
from heapwright_papers import measuring
from heapwright_papers.answers import rank_correlation
from heapwright_papers.page import ALIGN

if TYPE_CHECKING:
    from heapwright import Recipe, Study, Trace

AXES = {"time": "accesses", "fragmentation": "fragmentation", "energy": "energy_nJ"}
"""The three costs, and the metrics that stand for them: accesses for time, which no machine changes."""
MEASURED = 48
"""Members of the front, evenly along its time, whose instructions are counted."""


@dataclass(frozen=True)
class Cloud:
    """All allocators that served every request: their ids, names in the zoo or "", and float64 columns by metric."""

    ids: Sequence[str]
    names: Sequence[str]
    columns: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, study: Study) -> Cloud:
        """Those of a study of one trace."""
        combined = study.combined
        served = np.flatnonzero(combined.columns["failed"] == 0)
        keys = {*AXES.values(), "footprint_bytes"}
        return cls(
            [combined.ids[at] for at in served],
            [combined.zoo_names[at] or "" for at in served],
            {key: combined.columns[key][served].astype(np.float64) for key in keys},
        )

    def front(self, costs: Sequence[str]) -> NDArray[np.intp]:
        """Rows that no other beats in all of these of AXES, by rising time."""
        values = np.column_stack([self.columns[AXES[cost]] for cost in costs])
        rows = np.flatnonzero(pareto.front(values, ["min" for _ in costs]))
        return rows[np.argsort(self.columns["accesses"][rows], kind="stable")]

    def point(self, row: int, calls: int) -> dict[str, Any]:
        """Its costs a call of a trace of so many."""
        at = {key: float(column[row]) for key, column in self.columns.items()}
        return {
            "wasted": 100 * at["fragmentation"],
            "accesses": at["accesses"] / calls,
            "energy": at["energy_nJ"] / calls,
            "microjoule": at["energy_nJ"] / 1e3,
            "footprint": at["footprint_bytes"],
        }


def fronts(study: Study, trace: Trace, named: Mapping[str, str]) -> dict[str, Any]:
    """What the expressions see of the fronts of two and of three costs.

    `named` are those of the zoo that the paper has, with its names for them. Whether fragmentation and performance go
    their own ways is told as rank correlations: of fragmentation and footprint over all, and of instructions and
    accesses over those `measured`.
    """
    found = Cloud.of(study)
    pairs = {" and ".join(pair): found.front(pair).tolist() for pair in combinations(AXES, 2)}
    three = found.front((*AXES,))
    some = three[np.unique(np.linspace(0, len(three) - 1, min(MEASURED, len(three))).round().astype(int))]
    of_paper = {of: found.names.index(name) for name, of in named.items() if name in found.names}
    chosen = {
        "least fragmentation": _least(three, found.columns["fragmentation"]),
        "fewest accesses": _least(three, found.columns["accesses"]),
        "least energy": _least(three, found.columns["energy_nJ"]),
        "nearest to all three": _least(three, _product(found)),
        **of_paper,
    }
    recipes = {row: study.recipe(found.ids[row]) for row in dict.fromkeys([*chosen.values(), *map(int, some)])}
    known = _instructions(recipes, trace, found)
    correlations = [rank_correlation(found.columns["fragmentation"], found.columns["footprint_bytes"])]
    if len(known) > 2:
        counts = np.array([*known.values()], float)
        correlations.append(rank_correlation(counts, found.columns["accesses"][list(known)]))
    calls = len(trace)
    return {
        "pairs": pairs,
        "three": [found.point(int(row), calls) for row in three],
        "beyond": len(set(three.tolist()).difference(*pairs.values())),
        "of_paper": [found.point(row, calls) | {"name": of} for of, row in of_paper.items()],
        "told": {
            what: found.point(row, calls)
            | {
                "recipe": found.names[row] or recipes[row].summary(ALIGN),
                "instructions": known[row] / calls if row in known else None,
            }
            for what, row in chosen.items()
        },
        "correlations": correlations,
        "measured": len(known),
        "allocators": len(found.ids),
    }


def _instructions(recipes: Mapping[int, Recipe], trace: Trace, found: Cloud) -> dict[int, float]:
    """Of all calls, of those that could be counted."""

    def count(row: int) -> float | None:
        known = measuring.instructions(recipes[row], [trace], [float(found.columns["accesses"][row])])
        return known[0].total if known and known[0] else None

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counts = zip(recipes, threads.map(count, recipes), strict=True)
        return {row: known for row, known in counts if known is not None}


def _least(rows: Iterable[Any], cost: NDArray[np.float64]) -> int:
    return int(min(rows, key=lambda row: cost[row]))


def _product(found: Cloud) -> NDArray[np.float64]:
    """Of the three costs: memory used over requested, accesses, and energy."""
    product: NDArray[np.float64] = 1 + found.columns["fragmentation"]
    return product * found.columns["accesses"] * found.columns["energy_nJ"]
