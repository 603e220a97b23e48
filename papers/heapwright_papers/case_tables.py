"""Rows of the tables of the case studies of Mamagkakis et al. 2006, and the paper's own arithmetic done again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean, median
from typing import Any, NamedTuple

from heapwright_papers.answers import FACTOR, NO_PACKETS
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
from heapwright_papers.measuring import MOST_ACCESSES, NO_TOOLS
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
        **{item.__name__: item for item in (accesses, fragmentation, geometric_means, known, marked, millions)},
        **{item.__name__: item for item in (of_seed, reductions, stands)},
        **{item.__name__: item for item in (access_row, arithmetic, average_row, heap_row)},
        "FACTOR": FACTOR,
        "MOST_ACCESSES": MOST_ACCESSES,
        "internal": part("internal_bytes"),
        "external": part("external_bytes"),
        "published": [
            Ranking({heap: row[of][0] for heap, row in case.rows.items() if heap != AVERAGE}) for of in (0, 1)
        ],
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


class Ranking(NamedTuple):
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


def stands(trial: Trial, value: Value) -> Ranking:
    """The average of our numbers, over the systems that have them."""
    return Ranking({heap: trial.average(heap, value) for heap in (*known(trial, value), PROPOSED)})


# ---- the page --------------------------------------------------------------------------------------------------------


def heap_row(heap: str, trial: Trial) -> list[str]:
    """Fragmentation and instructions of an allocator, on average and on each trace; marked if these are reported."""
    counted = trial.counted
    info = {run.name for run in counted.runs if heap in run.instructions and not run.instructions[heap].exact}
    wasted = _cells(trial, heap, fragmentation) if trial.served(heap) else _dashes(trial)
    return [heap, *wasted, *(_cells(counted, heap, millions, info) if counted.timed(heap) else _dashes(trial))]


def average_row(trial: Trial) -> list[str]:
    """Over the five systems, as the paper's row of that name; a heap that refuses is left out."""
    cells = [AVERAGE]
    for of, value in ((trial, fragmentation), (trial.counted, millions)):
        known = [of.columns(heap, value) for heap in SYSTEMS if (of.served if of is trial else of.timed)(heap)]
        means = [mean(column) for column in zip(*known, strict=True)]
        cells += [f"{item:.1f}" for item in (mean(means), *means)] if means else _dashes(trial)
    return cells


def access_row(heap: str, trial: Trial) -> list[str]:
    """Accesses a call on each trace, and the average fragmentation without headers and with them."""
    if not trial.served(heap):
        return [heap, "–", *_dashes(trial)]
    headers = trial.average(heap, lambda run, heap: 100 * float(run.metrics[heap]["fragmentation_with_headers"]))
    cells = [f"{value:,.1f}" for value in trial.columns(heap, accesses)]
    return [heap, *cells, f"{trial.average(heap, fragmentation):.1f}", f"{headers:.1f}"]


def _dashes(trial: Trial) -> list[str]:
    return ["–"] * (len(trial.names) + 1)


def _cells(trial: Trial, heap: str, value: Value, told: Collection[str] = ()) -> list[str]:
    """The average, with its range over the seeds, and each trace."""
    average = "≈" * bool(told) + f"{trial.average(heap, value):.1f}"
    if len(trial.seeds) > 1:
        result = trial.seed_averages(heap, value)
        average += f" ({min(result):.1f}–{max(result):.1f})"
    return [average, *("≈" * (name in told) + f"{trial.column(heap, value, name):.1f}" for name in trial.names)]


# ---- the paper's arithmetic ------------------------------------------------------------------------------------------


def arithmetic(case: Case) -> list[str]:
    """What the paper prints that its own table does not give, and the reductions that the table gives."""
    slips = [
        f"{name} {printed:.{digits}f} {unit} for {mean(cells):.{digits + 1}f}"
        for name, printed, cells, digits, unit in _averages(case)
        if _differs(printed, cells, digits)
    ]
    result = [f"averages that are cut off and not rounded: {'; '.join(slips)};"] if slips else []
    for what, of, claimed in (("fragmentation", 0, case.less_fragmentation), ("execution time", 1, case.less_time)):
        result.append(_reductions(case, what, of, claimed))
    return result


def _averages(case: Case) -> Iterator[tuple[str, float, Sequence[float], int, str]]:
    """Every average in the paper's table, over columns or over allocators: its name, cells, digits and unit."""
    for of, digits, unit in ((0, 0, "%"), (1, 2, "s")):
        for heap, row in case.rows.items():
            yield heap, row[of][0], row[of][1:], digits, unit
        for at, column in enumerate(case.columns, start=1):
            cells = [case.rows[heap][of][at] for heap in SYSTEMS]
            yield f"{AVERAGE} on {column}", case.rows[AVERAGE][of][at], cells, digits, unit


def _differs(printed: float, cells: Sequence[float], digits: int) -> bool:
    """Whether an average is not that of its cells, rounded to `digits` digits."""
    exact = sum((Decimal(str(cell)) for cell in cells), Decimal(0)) / len(cells)
    return exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) != Decimal(f"{printed:.{digits}f}")


_NEAR = 0.6
"""Points of a per cent that the rounding of the table's cells explains."""


def _reductions(case: Case, what: str, of: int, claimed: tuple[float, float]) -> str:
    """The differences in the table, in per cent, by allocator and column and of averages, with what the text claims."""
    values = {heap: row[of] for heap, row in case.rows.items()}
    own, usual = values[PROPOSED], 100 * (1 - values[PROPOSED][0] / values[AVERAGE][0])
    cells = {
        (heap, column): 100 * (1 - own[at] / values[heap][at])
        for heap in SYSTEMS
        for at, column in enumerate(case.columns, start=1)
    }
    most = max(cells, key=lambda key: cells[key])
    up_to = f"up to {claimed[0]} % in the text, {cells[most]:.2f} % in the table ({most[0]} on {most[1]})"
    if abs(cells[most] - claimed[0]) > _NEAR:
        near = min(cells, key=lambda key: abs(cells[key] - claimed[0]))
        up_to += f", where {cells[near]:.2f} % is that of {near[0]} on {near[1]}"
    average = f"on average {claimed[1]} % in the text, {usual:.2f} % in the table"
    if abs(usual - claimed[1]) > _NEAR:
        average += f" ({own[0]} against {values[AVERAGE][0]}): a slip of the paper"
    worst = max(SYSTEMS, key=lambda heap: values[heap][0])
    without = 100 * (1 - own[0] / mean(values[heap][0] for heap in SYSTEMS if heap != worst))
    return f"reductions of {what}: {up_to}; {average}; {without:.0f} % without {worst}, the worst on average."
