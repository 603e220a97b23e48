"""Rows of the tables of the case studies of Mamagkakis et al. 2006, and the paper's own arithmetic done again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean

from heapwright_papers.case_claims import AVERAGE
from heapwright_papers.case_study import PROPOSED, SYSTEMS, Case, Trial, Value, accesses, fragmentation, millions


def heap_row(heap: str, trial: Trial) -> list[str]:
    """Fragmentation and instructions of an allocator, on average and on each trace; marked where these are told."""
    counted = trial.counted
    told = {run.name for run in counted.runs if heap in run.instructions and not run.instructions[heap].exact}
    wasted = _cells(trial, heap, fragmentation) if trial.served(heap) else _dashes(trial)
    return [heap, *wasted, *(_cells(counted, heap, millions, told) if counted.timed(heap) else _dashes(trial))]


def average_row(trial: Trial) -> list[str]:
    """Over the five systems, as the paper's row of that name; a heap that refuses is left out."""
    cells = [AVERAGE]
    for of, value in ((trial, fragmentation), (trial.counted, millions)):
        known = [of.columns(heap, value) for heap in SYSTEMS if (of.served if of is trial else of.timed)(heap)]
        means = [mean(column) for column in zip(*known, strict=True)]
        cells += [f"{one:.1f}" for one in (mean(means), *means)] if means else _dashes(trial)
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
        found = trial.seed_averages(heap, value)
        average += f" ({min(found):.1f}–{max(found):.1f})"
    return [average, *("≈" * (name in told) + f"{trial.column(heap, value, name):.1f}" for name in trial.names)]


# ---- the paper's arithmetic ------------------------------------------------------------------------------------------


def arithmetic(case: Case) -> list[str]:
    """What the paper prints that its own table does not give, and the reductions that the table gives."""
    found = [*_averages(case)]
    for what, of, claimed in (("fragmentation", 0, case.less_fragmentation), ("execution time", 1, case.less_time)):
        found.append(_reductions(case, what, of, claimed))
    return found


def published_reductions(case: Case, of: int) -> tuple[dict[tuple[str, str], float], float]:
    """Every reduction in the paper's table in per cent, by allocator and column, and that of the averages."""
    own = case.rows[PROPOSED][of]
    cells = {
        (heap, column): 100 * (1 - own[at] / case.rows[heap][of][at])
        for heap in SYSTEMS
        for at, column in enumerate(case.columns, start=1)
    }
    return cells, 100 * (1 - own[0] / case.rows[AVERAGE][of][0])


def _averages(case: Case) -> list[str]:
    """Averages over columns, and over allocators, that are not what the cells give when rounded."""
    slips = []
    for of, (digits, unit) in enumerate(((0, "%"), (2, "s"))):
        for heap, row in case.rows.items():
            if _differs(row[of][0], row[of][1:], digits):
                slips.append(f"{heap} {row[of][0]:.{digits}f} {unit} for {mean(row[of][1:]):.{digits + 1}f}")
        for at, column in enumerate(("the average", *case.columns)):
            cells = [case.rows[heap][of][at] for heap in SYSTEMS]
            if at and _differs(case.rows[AVERAGE][of][at], cells, digits):
                printed = f"{case.rows[AVERAGE][of][at]:.{digits}f} {unit}"
                slips.append(f"{AVERAGE} on {column} {printed} for {mean(cells):.{digits + 1}f}")
    return [f"averages that are cut off and not rounded: {'; '.join(slips)};"] if slips else []


def _differs(printed: float, cells: Sequence[float], digits: int) -> bool:
    exact = sum((Decimal(str(cell)) for cell in cells), Decimal(0)) / len(cells)
    return exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) != Decimal(f"{printed:.{digits}f}")


_NEAR = 0.6
"""Points of a per cent that the rounding of the table's cells explains."""


def _reductions(case: Case, what: str, of: int, claimed: tuple[float, float]) -> str:
    cells, usual = published_reductions(case, of)
    most = max(cells, key=lambda key: cells[key])
    up_to = f"up to {claimed[0]} % in the text, {cells[most]:.2f} % in the table ({most[0]} on {most[1]})"
    if abs(cells[most] - claimed[0]) > _NEAR:
        near = min(cells, key=lambda key: abs(cells[key] - claimed[0]))
        up_to += f", where {cells[near]:.2f} % is that of {near[0]} on {near[1]}"
    average = f"on average {claimed[1]} % in the text, {usual:.2f} % in the table"
    if abs(usual - claimed[1]) > _NEAR:
        average += f" ({case.rows[PROPOSED][of][0]} against {case.rows[AVERAGE][of][0]}): a slip of the paper"
    worst = max(SYSTEMS, key=lambda heap: case.rows[heap][of][0])
    rest = mean(case.rows[heap][of][0] for heap in SYSTEMS if heap != worst)
    without = 100 * (1 - case.rows[PROPOSED][of][0] / rest)
    return f"reductions of {what}: {up_to}; {average}; {without:.0f} % without {worst}, the worst on average."
