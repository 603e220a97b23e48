"""The grid of four techniques on one trace, and what each technique changes in it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

import heapwright as hw
from heapwright_papers.measuring import replayed
from heapwright_papers.page import ALIGN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heapwright import Trace

FIRST, BEST = hw.families.FITS.index({"fit": "first"}), hw.families.FITS.index({"fit": "best"})
LAST = -1
"""The last level of a technique, whichever it is."""
THINNED = {"freelists": (0, 1, 2, 3), "fit": (0, 2, FIRST, 5, 7, BEST), "split": (0, 3, 6, 9), "coalesce": (0, 3, 6, 9)}
"""Levels that stand for all ten: none, full, and some between."""

Beside = Mapping[str, int]
"""Levels of the other techniques that pairs must have; what it has of the technique itself does not matter."""
ANY: Beside = {}
PROPOSED: Beside = {"freelists": 2, "fit": FIRST, "split": 0, "coalesce": 0}
"""The levels of the allocator that the paper proposes."""
UNSPLIT: Beside = {"split": LAST}
COLUMNS = ("internal", "external", "accesses", "memory")


@dataclass(frozen=True)
class Grid:
    """One trace under every recipe of the grid: for each its levels, and float64[recipes] columns.

    `internal`, `external` and `memory` are over the bytes requested, at the peak; `accesses` are a call.
    """

    rows: Mapping[hw.families.Techniques, int]
    internal: NDArray[np.float64]
    external: NDArray[np.float64]
    memory: NDArray[np.float64]
    accesses: NDArray[np.float64]
    served: NDArray[np.bool_]

    @classmethod
    def of(cls, traces: Sequence[Trace], thinned: bool = False) -> list[Grid]:
        """Replay the grid that is made for all traces together, or what `THINNED` leaves of it, on each of them."""
        every = hw.families.technique_grid(traces, ALIGN)
        chosen = {levels: recipe.canonical() for levels, recipe in every.items() if not thinned or _stays(levels)}
        recipes = {recipe.hash: recipe for recipe in chosen.values()}
        at = {hash: row for row, hash in enumerate(recipes)}
        rows = {levels: at[recipe.hash] for levels, recipe in chosen.items()}
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return [
                cls._on(trace, rows, list(threads.map(partial(replayed, trace), recipes.values()))) for trace in traces
            ]

    @classmethod
    def _on(
        cls, trace: Trace, rows: Mapping[hw.families.Techniques, int], found: Sequence[Mapping[str, float | None]]
    ) -> Grid:
        keys = ("internal_bytes", "external_bytes", "footprint_bytes", "accesses", "failed")
        internal, external, memory, accesses, failed = (
            np.array([float(metrics[key] or 0) for metrics in found]) for key in keys
        )
        peak = trace.peak_live_bytes
        return cls(rows, 1 + internal / peak, 1 + external / peak, memory / peak, accesses / len(trace), failed == 0)

    @property
    def recipes(self) -> int:
        """How many different recipes were replayed."""
        return len(self.served)

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """The row of each combination of levels, -1 where there is none."""
        levels = np.array(list(self.rows))
        table = np.full(levels.max(axis=0) + 1, -1, np.int64)
        table[tuple(levels.T)] = list(self.rows.values())
        return table

    def last(self, technique: str) -> int:
        """The highest level of a technique."""
        return int(self._table.shape[hw.families.Techniques._fields.index(technique)]) - 1

    def pairs(self, technique: str, without: int, used: int, beside: Beside = ANY) -> NDArray[np.int64]:
        """int64[pairs, 2]: rows that differ in one technique alone, without it and with it; those beside `beside`."""
        kept = {
            name: self.last(name) if level == LAST else min(level, self.last(name)) for name, level in beside.items()
        }
        sides = [
            self._table[
                tuple(({**kept, technique: level}).get(name, slice(None)) for name in hw.families.Techniques._fields)
            ]
            for level in (without, used)
        ]
        pairs = np.stack([np.ravel(side) for side in sides], axis=1)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return pairs[self.served[pairs].all(axis=1)]

    def change(self, column: str, pairs: NDArray[np.int64]) -> float:
        """The mean of log(with / without)."""
        values = getattr(self, column)[pairs]
        return float(np.log(values[:, 1] / values[:, 0]).mean())

    def level_means(self, technique: str, level: int) -> list[tuple[float, float]]:
        """Means of log(memory) and log(accesses) over the recipes with this level; empty where there is none."""
        rows = np.take(self._table, level, axis=hw.families.Techniques._fields.index(technique)).ravel()
        rows = rows[rows >= 0]
        rows = rows[self.served[rows]]
        if not len(rows):
            return []
        return [(float(np.log(self.memory[rows]).mean()), float(np.log(self.accesses[rows]).mean()))]


def _stays(levels: hw.families.Techniques) -> bool:
    return all(getattr(levels, technique) in kept for technique, kept in THINNED.items())


def contrast(grid: Grid, technique: str) -> tuple[str, int, int]:
    """An attribute of `Techniques`, its level without the technique, and that with it."""
    return {
        "freelists": ("freelists", 0, min(2, grid.last("freelists"))),
        "best fit": ("fit", FIRST, BEST),
        "split": ("split", grid.last("split"), 0),
        "coalesce": ("coalesce", grid.last("coalesce"), 0),
    }[technique]


Changes = Mapping[str, float]
"""Of internal and external memory, of performance and of memory as a whole: with a technique over without, less 1."""


def changes(grids: Sequence[Grid], technique: str, beside: Beside = ANY) -> Changes | None:
    """The geometric means over all pairs and grids; None where there is no pair."""
    logs = []
    for grid in grids:
        pairs = grid.pairs(*contrast(grid, technique), beside)
        if len(pairs):
            logs.append([grid.change(column, pairs) for column in COLUMNS])
    if not logs:
        return None
    internal, external, accesses, memory = np.mean(logs, axis=0)
    logs_of = {"internal": internal, "external": external, "performance": -accesses, "memory": memory}
    return {name: float(np.expm1(value)) for name, value in logs_of.items()}


def together(found: Sequence[Changes | None], column: str) -> float | None:
    """The geometric mean of one column over several changes, as of the three applications."""
    values = [one[column] for one in found if one is not None]
    return float(np.expm1(mean(map(np.log1p, values)))) if values else None
