"""What statements of Mamagkakis et al. 2006 about case studies see: trials, and reductions as the paper has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from heapwright_papers.answers import NO_PACKETS
from heapwright_papers.case_study import (
    MIX,
    PROPOSED,
    REAL,
    SYSTEMS,
    Case,
    Trial,
    Value,
    accesses,
    fragmentation,
    millions,
    part,
)
from heapwright_papers.held_out import geometric_means
from heapwright_papers.measuring import NO_TOOLS
from heapwright_papers.traffic import marked

AVERAGE = "Avg. Alloc."


def names(case: Case, *trials: Trial) -> dict[str, Any]:
    """What the statements' expressions see."""
    return {
        "MIX": MIX,
        "NO_TOOLS": NO_TOOLS,
        "PROPOSED": PROPOSED,
        "REAL": REAL,
        "SYSTEMS": SYSTEMS,
        "accesses": accesses,
        "fragmentation": fragmentation,
        "millions": millions,
        "internal": part("internal_bytes"),
        "external": part("external_bytes"),
        "known": known,
        "reductions": reductions,
        "of_seed": of_seed,
        "stands": stands,
        "published": [
            Standing({heap: row[of][0] for heap, row in case.rows.items() if heap != AVERAGE}) for of in (0, 1)
        ],
        "geometric_means": geometric_means,
        "marked": marked,
        "case": case,
        "trials": {REAL: NO_PACKETS} | {trial.on: trial for trial in trials},
    }


def known(trial: Trial, value: Value) -> list[str]:
    """The systems with this value on all runs: none where the proposed allocator lacks it."""
    has = trial.timed if value is millions else trial.served
    return [heap for heap in SYSTEMS if has(heap)] if has(PROPOSED) else []


def reductions(columns: Mapping[str, Sequence[float]]) -> tuple[float, str, int, float]:
    """As the paper computes them, in per cent, from a value by allocator and column.

    Returns the largest over allocators and columns with where it is, and that of the average over all.
    """
    own = columns[PROPOSED]
    most, heap, at = max(
        (100 * (1 - own[at] / cells[at]), heap, at)
        for heap, cells in columns.items()
        if heap != PROPOSED
        for at in range(len(own))
        if cells[at] > 0
    )
    others = mean(mean(cells) for heap, cells in columns.items() if heap != PROPOSED)
    return most, heap, at, 100 * (1 - mean(own) / others)


def of_seed(trial: Trial, seed: int, heaps: Iterable[str], value: Value) -> dict[str, list[float]]:
    """The values of one draw, by allocator and column."""
    runs = [run for run in trial.runs if run.seed == seed]
    return {heap: [value(run, heap) for run in runs] for heap in heaps}


class Standing(NamedTuple):
    """How the proposed allocator stands to the five systems, by average."""

    averages: Mapping[str, float]

    @property
    def own(self) -> float:
        """The proposed one's."""
        return self.averages[PROPOSED]

    @property
    def others(self) -> list[float]:
        """The systems', the least first."""
        return sorted(value for heap, value in self.averages.items() if heap != PROPOSED)

    @property
    def below(self) -> tuple[bool, bool]:
        """Whether it is below the systems' mean, and below their median."""
        return self.own < mean(self.others), self.own < median(self.others)

    @property
    def ratio(self) -> float:
        """To the mean of the systems."""
        return self.own / mean(self.others)

    @property
    def lead(self) -> float:
        """To the least of the systems."""
        return self.own / self.others[0]


def stands(trial: Trial, value: Value) -> Standing:
    """That of our numbers, over the systems that have them."""
    return Standing({heap: trial.average(heap, value) for heap in (*known(trial, value), PROPOSED)})
