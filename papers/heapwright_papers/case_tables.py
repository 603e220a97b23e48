"""The tables of the case studies of Mamagkakis et al. 2006: theirs, with its arithmetic done again, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean

from heapwright_papers.answers import FACTOR, rank_correlation
from heapwright_papers.case_claims import AVERAGE
from heapwright_papers.case_study import (
    PROPOSED,
    SYSTEMS,
    Case,
    Trial,
    Value,
    accesses,
    fragmentation,
    millions,
)
from heapwright_papers.measuring import MOST_ACCESSES
from heapwright_papers.page import Page, table_of
from heapwright_papers.traffic import marked

METRIC = f"""\
Fragmentation is the paper's cost function, memory used / memory requested - 1, each at its peak and without
headers. The paper's times are those that the allocator takes in a whole run on a Pentium IV; ours are instructions
of all its calls, in millions (M), of the generated code at -Os on an emulated Cortex-M3. `≈`: a heap that makes more
than {MOST_ACCESSES / 1e6:g} million accesses is followed for so many, and the rest is told by its accesses, which are
counted exactly. `–`: requests were refused, or nothing on this machine counts instructions."""

BAND = f"""\
A number of the paper holds within a band. A reduction does where both what it saves and what it leaves are within a
factor of {FACTOR} of the paper's, or where it is smaller by a tenth at most; an average where its ratio to the next, or
to the mean of the five systems, is. The proposed allocator must stand to the mean and the median, or to each system, in
the paper's order, as far as the statement speaks of them. A difference in that order and beyond the band is *larger
than stated*, no hold."""

CHOICES = """\
- What the paper leaves open is read as [the readings](#how-the-paper-is-read) say. Where it is silent, the choices are
  ours: a header of 4 bytes and boundary tags in the proposed main pool, 8 bytes in Windows.
- The paper's metric leaves out headers, and so do the tables but for the column that says so."""


def add_published(page: Page, case: Case) -> None:
    """The paper's table, and what comes of computing its averages and reductions again."""
    page.text(f"## Table {case.table}: fragmentation and execution time")
    names = [column.rstrip(".") for column in case.columns]
    header = ("the paper", "average, %", *(f"{name}, %" for name in names), "average, s", *(f"{n}, s" for n in names))
    rows = [[name, *wasted, *(f"{time:.2f}" for time in times)] for name, (wasted, times) in case.rows.items()]
    page.table(header, rows)
    page.text("The paper's arithmetic, done again:\n\n" + "\n".join(f"- {line}" for line in arithmetic(case)))


_LEAD = """\
As [the paper is read]({name}-details.html#how-the-paper-is-read), {hold} of {of} contests between allocators hold and
{larger} more are larger than stated. Rank correlation of the six allocators with the paper's: fragmentation
{fragmentation}, time {time} ({on}).
Each number is a mean over {columns} traces; times are ratios of such means, in which the slowest trace weighs most."""


def add_lead(page: Page, case: Case, trials: Sequence[Trial], counts: tuple[int, int, int]) -> None:
    """The table at the top: both averages of each allocator, and its time over the proposed one's, theirs and ours.

    `counts` is how many contests hold, how many are larger than stated, and of how many.
    """
    rows, ranks = [], []
    heaps = (*SYSTEMS, PROPOSED)
    theirs = [[case.rows[heap][of][0] for heap in heaps] for of in (0, 1)]
    wasted = [[trial.average(heap, fragmentation) for heap in heaps] for trial in trials]
    timed = [trial.counted for trial in trials if all(trial.counted.timed(heap) for heap in heaps)]
    times = [[trial.average(heap, millions) for heap in heaps] for trial in timed]
    for of, ours in ((0, wasted), (1, times)):
        ranks.append(", ".join(f"{rank_correlation(theirs[of], one):.2f}" for one in ours) or "–")
    for at, heap in enumerate(heaps):
        parts = [f"{theirs[0][at]:.0f}", *(f"{one[at]:.1f}" for one in wasted)]
        for one in (theirs[1], *times):
            parts.append(f"{one[at] / one[-1]:.2f}")
        rows.append([heap, *parts])
    on = [trial.on for trial in trials]
    header = ["allocator", "fragmentation: the paper, %", *(f"{name}, %" for name in on)]
    header += ["time over the proposed one's: the paper", *(trial.on for trial in timed)]
    hold, larger, of = counts
    page.lead(
        _LEAD.format(
            name=page.name,
            hold=hold,
            larger=larger,
            of=of,
            fragmentation=ranks[0],
            time=ranks[1],
            on=", ".join(f"on {name}" for name in on),
            columns=" and ".join(dict.fromkeys(str(len(trial.names)) for trial in trials)),
        )
    )
    page.lead(table_of(header, rows))


def add_tables(page: Page, trial: Trial, more: Sequence[str]) -> None:
    """Our table on the paper's rows, one of the other allocators, and one of accesses."""
    networks = [marked(name) for name in trial.names]
    columns = ("average, %", *(f"{name}, %" for name in networks), "average, M", *(f"{n}, M" for n in networks))
    ours = [_row(heap, trial) for heap in (*SYSTEMS, PROPOSED)]
    page.table(("here", *columns), [*ours[:-1], _average_row(trial), ours[-1]])
    page.text(
        "Accesses of the allocator to its own data, a call; and the average fragmentation without headers and with "
        "them. Below the paper's allocators are others:"
    )
    header = ("here", *networks, "fragmentation, %", "with headers, %")
    page.table(header, [_access_row(heap, trial) for heap in (*SYSTEMS, PROPOSED, *more)])


def add_reasons(page: Page, reasons: Sequence[str]) -> None:
    """Why our numbers differ: items of a list, of all case studies and of this one alone."""
    page.text("Why our numbers differ from the paper's, as far as it is known:")
    page.text("\n".join([CHOICES, *reasons]))


def _row(heap: str, trial: Trial) -> list[object]:
    columns = len(trial.names)
    wasted = [f"{value:.1f}" for value in trial.columns(heap, fragmentation)] if trial.served(heap) else ["–"] * columns
    average = _with_range(trial, heap, fragmentation, 1) if trial.served(heap) else "–"
    counted = trial.counted
    if not counted.timed(heap):
        return [heap, average, *wasted, "–", *(["–"] * columns)]
    inexact = {run.name for run in counted.runs if not run.instructions[heap].exact}
    times = ["≈" * (name in inexact) + f"{counted.column(heap, millions, name):.1f}" for name in trial.names]
    return [heap, average, *wasted, "≈" * bool(inexact) + _with_range(counted, heap, millions, 1), *times]


def _with_range(trial: Trial, heap: str, value: Value, digits: int) -> str:
    average = f"{trial.average(heap, value):.{digits}f}"
    if len(trial.seeds) == 1:
        return average
    found = trial.seed_averages(heap, value)
    return f"{average} ({min(found):.{digits}f}–{max(found):.{digits}f})"


def _average_row(trial: Trial) -> list[object]:
    """Over the five systems, as the paper's row of that name; a heap that refuses is left out."""
    wasted = [trial.columns(heap, fragmentation) for heap in SYSTEMS if trial.served(heap)]
    times = [trial.counted.columns(heap, millions) for heap in SYSTEMS if trial.counted.timed(heap)]
    cells: list[object] = [AVERAGE]
    for rows in (wasted, times):
        means = [mean(column) for column in zip(*rows, strict=True)]
        cells += (
            [f"{mean(means):.1f}", *(f"{value:.1f}" for value in means)] if means else ["–"] * (len(trial.names) + 1)
        )
    return cells


def _access_row(heap: str, trial: Trial) -> list[object]:
    if not trial.served(heap):
        return [heap, *["–"] * (len(trial.names) + 2)]
    headers = trial.average(heap, lambda run, heap: 100 * float(run.metrics[heap]["fragmentation_with_headers"]))
    cells = [f"{value:,.1f}" for value in trial.columns(heap, accesses)]
    return [heap, *cells, f"{trial.average(heap, fragmentation):.1f}", f"{headers:.1f}"]


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
