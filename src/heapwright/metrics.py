"""What a replay measures: every metric's key, unit, meaning, better direction, and how several traces combine.

The keys are the columns of a study and the JSON keys of every command. ``docs/metrics.md`` is the reference for people.
"""

from __future__ import annotations

import csv
import difflib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heapwright.errors import HeapwrightError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = int | float | None
"""A metric's value; None where it was not asked for or cannot be told."""

Direction = Literal["min", "max"]
Rule = Literal["largest", "smallest", "sum", "of-largest-footprint"]


@dataclass(frozen=True)
class Metric:
    """One metric: its key, unit, one-line meaning, the better direction, and how several traces combine.

    ``rule`` is the ``largest`` or ``smallest`` of the traces' values, their ``sum``, or the value of the trace
    ``of-largest-footprint``.
    """

    key: str
    unit: str
    meaning: str
    direction: Direction = "min"
    rule: Rule = "largest"
    integer: bool = True

    def plain(self, number: float) -> Value:
        """One value of a float64 column as a plain number: None for NaN, an int where the metric counts."""
        if number != number:
            return None
        return int(number) if self.integer else float(number)


METRICS: Mapping[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("requested_peak_bytes", "B", "largest sum of live requested bytes"),
        Metric("allocated_peak_bytes", "B", "largest memory used for blocks, headers not counted"),
        Metric("fragmentation", "ratio", "allocated_peak / requested_peak - 1", integer=False),
        Metric("fragmentation_with_headers", "ratio", "the same with headers", integer=False),
        Metric("footprint_bytes", "B", "all bytes of the arena ever covered by a block, plus control data"),
        Metric("internal_bytes", "B", "rounding and unsplit rests inside blocks", rule="of-largest-footprint"),
        Metric("external_bytes", "B", "free blocks between blocks in use", rule="of-largest-footprint"),
        Metric("header_bytes", "B", "headers and boundary tags", rule="of-largest-footprint"),
        Metric("accesses", "count", "metadata loads and stores over the whole trace", rule="sum"),
        Metric("reads", "count", "metadata loads over the whole trace", rule="sum"),
        Metric("writes", "count", "metadata stores over the whole trace", rule="sum"),
        Metric("accesses_malloc_max", "count", "accesses of the worst single malloc, calloc or realloc"),
        Metric("accesses_malloc_p999", "count", "99.9th percentile of the accesses of those calls"),
        Metric("accesses_free_max", "count", "accesses of the worst single free"),
        Metric("accesses_free_p999", "count", "99.9th percentile of the accesses of frees"),
        Metric("energy_nJ", "nJ", "reads and writes in an SRAM of the footprint's size", "min", "sum", False),
        Metric("moved_bytes", "B", "bytes copied by compaction and by realloc", rule="sum"),
        Metric("failed", "count", "requests refused", rule="sum"),
        Metric("admitted_fraction", "ratio", "bytes admitted / bytes requested", "max", "smallest", False),
        Metric("utilisation", "ratio", "time-weighted requested bytes / all arena bytes", "max", "smallest", False),
        Metric("pool_utilisation", "ratio", "the same / bytes usable for payload", "max", "smallest", False),
        Metric("smallest_arena_bytes", "B", "smallest arena that serves the whole trace; on request"),
        Metric("lower_bound_bytes", "B", "largest sum of live requested bytes rounded to the alignment"),
        Metric("ns_per_event", "ns", "host time of a call; on request", integer=False),
        Metric("instructions_malloc_mean", "count", "mean of a malloc on the target CPU; on request", integer=False),
        Metric("instructions_malloc_max", "count", "dearest malloc on the target CPU; on request"),
        Metric("instructions_free_mean", "count", "mean of a free on the target CPU; on request", integer=False),
        Metric("instructions_free_max", "count", "dearest free on the target CPU; on request"),
        Metric("instructions_pair_mean", "count", "a malloc and a free: the means added; on request", integer=False),
        Metric("instructions_pair_max", "count", "a malloc and a free: the dearest of each added; on request"),
        Metric("code_bytes", "B", "code and constants of malloc, free and realloc at -Os; on request"),
    )
}
"""Every metric by its key, in the order of reports and of a study's columns."""

TARGET_METRICS = tuple(key for key in METRICS if key.startswith("instructions_") or key == "code_bytes")
"""Those measured on the target CPU, by `heapwright.target`."""


def metric(key: str) -> Metric:
    """The metric of this key. Raises `HeapwrightError` with the nearest known key where there is none."""
    if key in METRICS:
        return METRICS[key]
    near = difflib.get_close_matches(key, METRICS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "known: " + ", ".join(METRICS)
    raise HeapwrightError(f"objectives: {key!r} is no metric; {hint}")


def parse_objectives(text: str | Sequence[str]) -> tuple[str, ...]:
    """Metric keys from ``"a,b"`` or a sequence, checked.

    Raises `HeapwrightError` where a key is unknown or repeated, or where there is none.
    """
    parts = text.split(",") if isinstance(text, str) else text
    keys = tuple(part.strip() for part in parts if part.strip())
    if not keys:
        raise HeapwrightError("objectives: none given; name at least one metric, as in footprint_bytes,accesses")
    for key in keys:
        metric(key)
    if len(set(keys)) < len(keys):
        raise HeapwrightError(f"objectives: {','.join(keys)} repeats a metric; name each once")
    return keys


@dataclass(frozen=True)
class EnergyTable:
    """Energy of one access to an SRAM, by its size: parallel tuples, sizes in bytes rising, energies in pJ.

    Between two sizes log energy is linear in log size. Below the smallest size its energy stands (decoders and sense
    amplifiers do not shrink away); above the largest the last segment's slope goes on (a clamped table would call
    large heaps cheaper than they are).
    """

    sizes: tuple[float, ...]
    read_pj: tuple[float, ...]
    write_pj: tuple[float, ...]
    name: str = "default"

    @classmethod
    def read(cls, path: Path) -> EnergyTable:
        """Read a CSV file with the columns size_bytes, read_pJ and write_pJ (others are ignored).

        Raises `HeapwrightError` where a column is missing, a number is not positive, there are fewer than two rows,
        or the sizes do not rise; `OSError` where the file cannot be read.
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
        positive = all(0 < value < float("inf") for value in sizes + reads + writes)
        if len(sizes) < 2 or not positive or any(low >= high for low, high in pairwise(sizes)):
            raise HeapwrightError(f"{path}: an energy table needs two rows or more, rising sizes, positive energies")
        return cls(sizes, reads, writes, name=str(path))

    def energy_nj(self, reads: float, writes: float, size: float) -> float:
        """Energy in nJ of this many reads and writes in an SRAM of ``size`` bytes."""
        return (reads * self._per_access(size, self.read_pj) + writes * self._per_access(size, self.write_pj)) / 1000.0

    def _per_access(self, size: float, energies: tuple[float, ...]) -> float:
        if size <= self.sizes[0]:
            return energies[0]
        right = min(bisect_left(self.sizes, size), len(self.sizes) - 1)
        slope = log(energies[right] / energies[right - 1]) / log(self.sizes[right] / self.sizes[right - 1])
        return energies[right - 1] * exp(slope * log(size / self.sizes[right - 1]))


@cache
def default_energy_table() -> EnergyTable:
    """The table that ships with the package: CACTI 7, 90 nm low operating power, 32-bit words, 256 B to 4 MiB."""
    return replace(EnergyTable.read(Path(__file__).with_name("sram_energy_90nm.csv")), name="default")


def with_energy(measured: Mapping[str, Value], table: EnergyTable | None = None) -> dict[str, Value]:
    """The metrics of one replay with ``energy_nJ`` filled in from its reads, writes and footprint."""
    reads, writes, footprint = (measured.get(key) for key in ("reads", "writes", "footprint_bytes"))
    energy: Value = None
    if reads is not None and writes is not None and footprint is not None:
        energy = (table or default_energy_table()).energy_nj(reads, writes, footprint)
    return {**measured, "energy_nJ": energy}


def combine(measured: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """Metrics over several traces from the metrics of each, by every metric's ``rule``.

    Peaks and maxima take the largest, counts add up. Ratios take the worst trace's: a mean would let a good trace hide
    a bad one. The split of the footprint comes from the trace with the largest footprint, so that it still adds up. A
    percentile takes the largest, an upper bound of the percentile over all calls. Energies add up trace by
    trace. A metric that is None for one trace is None for all together.
    """
    import numpy as np

    if not measured:
        raise ValueError("combine needs the metrics of at least one trace")
    columns = {key: np.array([[as_float(one.get(key)) for one in measured]]) for key in METRICS}
    return {key: METRICS[key].plain(float(column[0])) for key, column in combine_columns(columns).items()}


def combine_columns(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """`combine` for many recipes: columns float64[recipes, traces], NaN for None -> columns float64[recipes]."""
    import numpy as np

    footprints = columns["footprint_bytes"]
    largest = np.argmax(np.where(np.isnan(footprints), -np.inf, footprints), axis=1)[:, np.newaxis]
    combined = {}
    for key, column in columns.items():
        rule = METRICS[key].rule
        if rule == "largest":
            combined[key] = column.max(axis=1)
        elif rule == "smallest":
            combined[key] = column.min(axis=1)
        elif rule == "of-largest-footprint":
            combined[key] = np.take_along_axis(column, largest, axis=1)[:, 0]
        else:
            combined[key] = column.sum(axis=1)
    return combined


def as_float(value: Value) -> float:
    """A metric as a column holds it: NaN for None."""
    return float("nan") if value is None else float(value)
