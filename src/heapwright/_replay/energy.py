"""Energy of memory accesses, by the size of the SRAM."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import exp, inf, log
from pathlib import Path

from heapwright._replay.metrics import Value
from heapwright._support.errors import HeapwrightError


@dataclass(frozen=True)
class EnergyTable:
    """Energy of one access to an SRAM, by its size: parallel tuples, sizes in bytes rising, energies in pJ.

    Raises `HeapwrightError` if there are fewer than two sizes, they do not rise, or a number is not positive.

    Between two sizes log energy is linear in log size. Below the smallest size its energy applies (decoders and sense
    amplifiers do not shrink away); above the largest size the slope of the last segment continues (a clamped table
    would underestimate large heaps).
    """

    sizes: tuple[float, ...]
    read_pj: tuple[float, ...]
    write_pj: tuple[float, ...]
    name: str = "default"

    def __post_init__(self) -> None:
        positive = all(0 < value < inf for value in self.sizes + self.read_pj + self.write_pj)
        parallel = len(self.sizes) == len(self.read_pj) == len(self.write_pj) >= 2
        if not positive or not parallel or any(low >= high for low, high in pairwise(self.sizes)):
            raise HeapwrightError(
                f"{self.name}: an energy table needs two rows or more, rising sizes, positive energies"
            )

    @classmethod
    def read(cls, path: Path) -> EnergyTable:
        """Read a CSV file with the columns size_bytes, read_pJ and write_pJ (others are ignored).

        Raises `HeapwrightError` if a column is missing or the table is invalid; `OSError` if the file cannot be read.
        """
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            sizes, reads, writes = (
                tuple(float(row[column]) for row in rows) for column in ("size_bytes", "read_pJ", "write_pJ")
            )
        except (KeyError, TypeError, ValueError) as error:
            raise HeapwrightError(
                f"{path}: not an energy table ({error}); the columns size_bytes, read_pJ, write_pJ hold numbers"
            ) from None
        return cls(sizes, reads, writes, name=str(path))

    @property
    def rows(self) -> list[tuple[float, float, float]]:
        """Size, pJ of a read and of a write, row by row."""
        return list(zip(self.sizes, self.read_pj, self.write_pj, strict=True))

    def energy_nj(self, reads: float, writes: float, size: float) -> float:
        """Energy in nJ of this many reads and writes in an SRAM of ``size`` bytes."""
        return (reads * self._per_access(size, self.read_pj) + writes * self._per_access(size, self.write_pj)) / 1000.0

    def _per_access(self, size: float, energies: tuple[float, ...]) -> float:
        if size <= self.sizes[0]:
            return energies[0]
        right = min(bisect_left(self.sizes, size), len(self.sizes) - 1)
        slope = log(energies[right] / energies[right - 1]) / log(self.sizes[right] / self.sizes[right - 1])
        return energies[right - 1] * exp(slope * log(size / self.sizes[right - 1]))


PROCESSES = ("90 nm", "22 nm")
"""Processes of the memories with a table: of the papers' years, and of microcontrollers with much SRAM."""


@cache
def energy_table(process: str) -> EnergyTable:
    """The table of a process of `PROCESSES`: CACTI 7, low operating power, 32-bit words, 256 B to 4 MiB."""
    return EnergyTable.read(Path(__file__).with_name(f"sram_energy_{process.replace(' ', '')}.csv"))


def default_energy_table() -> EnergyTable:
    """The table of 90 nm, the process of the papers' years (`energy_table`)."""
    return _default_table()


@cache
def _default_table() -> EnergyTable:
    return replace(energy_table(PROCESSES[0]), name="default")


def with_energy(measured: Mapping[str, Value], table: EnergyTable | None = None) -> dict[str, Value]:
    """The metrics of one replay with ``energy_nJ`` filled in from its reads, writes and footprint."""
    reads, writes, footprint = (measured.get(key) for key in ("reads", "writes", "footprint_bytes"))
    energy: Value = None
    if reads is not None and writes is not None and footprint is not None:
        energy = (table or default_energy_table()).energy_nj(reads, writes, footprint)
    return {**measured, "energy_nJ": energy}
