"""The readings of one memory as columns, from its last start on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heapwright._diagnose.readings import SeriesReading
from heapwright._diagnose.wording import QUANTITIES, Quantity

Column = NDArray[np.float64]

LEAST_AFTER_RESTART = 5
"""Readings that a memory must have after a restart, so that those before it are left out."""


GROWN = 1.05
"""A heap grows if it ends with more than that many times its first size: a fixed one is read as one size."""


@dataclass(frozen=True)
class Series:
    """Columns of equal length, NaN where a reading has no such number.

    Attributes:
        memory: its name.
        unit: what the numbers count: "B", or "elements" of a pool.
        seconds: NaN where no time is known.
        columns: one a quantity.
        restarts: how often the program started again before these readings.
    """

    memory: str
    unit: str
    seconds: Column
    columns: dict[Quantity, Column]
    restarts: int = 0

    @classmethod
    def of(cls, memory: str, readings: Sequence[SeriesReading], unit: str = "B", starts: Sequence[int] = ()) -> Series:
        """The readings since the last restart that leaves enough of them, else of the longest run.

        `starts` are lines that report a start; it is one of this memory if free memory is larger behind it.
        """
        runs = _runs(readings, starts)
        last = next((run for run in reversed(runs) if len(run) >= LEAST_AFTER_RESTART), max(runs, key=len))
        seconds = np.array([np.nan if item.seconds is None else item.seconds for item in last], float)
        columns: dict[Quantity, Column] = {
            name: np.array([item.values.get(name, np.nan) for item in last], float)
            for name in QUANTITIES
            if any(name in item.values for item in last)
        }
        _complete(columns)
        return cls(memory, unit, seconds, columns, len(runs) - 1)

    def __len__(self) -> int:
        return len(self.seconds)

    def known(self, name: Quantity) -> Column:
        """The numbers of a quantity, without the readings that lack it."""
        column = self.columns.get(name, np.empty(0))
        return column[~np.isnan(column)]

    def last(self, name: Quantity) -> float | None:
        """The latest number of a quantity; None if there is none."""
        known = self.known(name)
        return float(known[-1]) if len(known) else None

    def first(self, name: Quantity) -> float | None:
        """The first number of a quantity; None if there is none."""
        known = self.known(name)
        return float(known[0]) if len(known) else None

    @property
    def free(self) -> float:
        """Free memory at the end; 0 if none is known."""
        return self.last("free") or 0.0

    @property
    def least(self) -> float | None:
        """The least free memory that is known: the minimum that the heap kept, or the lowest reading."""
        numbers = [*self.known("minimum"), *self.known("free")]
        return float(min(numbers)) if numbers else None

    @property
    def size(self) -> float | None:
        """Bytes of the heap; None if they are not known."""
        known = self.known("total")
        return float(known.max()) if len(known) else None

    @property
    def grows(self) -> bool:
        """Whether the heap takes memory from the system as it needs more: then what it has free says little."""
        total = self.known("total")
        return len(total) > 1 and len(self.known("used")) > 1 and float(total[-1]) > GROWN * float(total[0])

    @property
    def hours(self) -> float | None:
        """Hours from the first reading to the last; None if no times are known."""
        known = self.seconds[~np.isnan(self.seconds)]
        span = float(known[-1] - known[0]) / 3600 if len(known) > 1 else 0.0
        return span if span > 0 else None


def _complete(columns: dict[Quantity, Column]) -> None:
    """Add the columns that others imply, and remove a total that is one of free memory only."""
    if {"total", "free"} <= columns.keys() and np.array_equal(columns["total"], columns["free"], equal_nan=True):
        del columns["total"]
    if "free" not in columns and {"total", "used"} <= columns.keys():
        columns["free"] = columns["total"] - columns["used"]
    if "total" not in columns and {"free", "used"} <= columns.keys():
        columns["total"] = columns["free"] + columns["used"]


def _runs(readings: Sequence[SeriesReading], starts: Sequence[int]) -> list[list[SeriesReading]]:
    """The readings between restarts: a restart shows as a time that falls, a minimum that rises, or in words."""
    runs: list[list[SeriesReading]] = []
    least = seconds = None
    for item in readings:
        again = bool(runs) and _starts_between(runs[-1][-1], item, starts)
        falls = item.seconds is not None and seconds is not None and item.seconds < seconds
        minimum = item.values.get("minimum")
        rises = minimum is not None and least is not None and minimum > least
        if not runs or falls or rises or again:
            runs.append([])
            least = None
        runs[-1].append(item)
        seconds = item.seconds if item.seconds is not None else seconds
        least = minimum if minimum is not None else least
    return runs


def _starts_between(before: SeriesReading, after: SeriesReading, starts: Sequence[int]) -> bool:
    """Whether a line between two readings reports a start, and much of the memory was free again."""
    was, now = before.values.get("free"), after.values.get("free")
    if was is None or now is None or now <= GROWN * was:
        return False
    return any(before.line < line < after.line for line in starts)
