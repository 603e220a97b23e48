"""What Mamagkakis et al. 2006 say of each proposed allocator beside those of operating systems, and what holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean

from heapwright_papers.case_study import (
    PROPOSED,
    SYSTEMS,
    UNSPLIT,
    Case,
    Run,
    Trial,
    fragmentation,
    millions,
)
from heapwright_papers.page import Page
from heapwright_papers.traffic import marked
from heapwright_papers.verdicts import HOLDS, Cause, Verdict, fails, not_tested, within_noise

WITHIN = 0.1
"""A number holds that is at most so far, as a share, below the paper's: reductions are claimed as reached."""
NO_TOOLS = "no cross compiler or emulator on this machine"
Value = Callable[[Run, str], float]


def check(page: Page, case: Case, trial: Trial) -> None:
    """The four reductions, and for DRR and Easyport that it is best in both on average."""
    if case.name != "url":
        _check_best(page, case, trial, fragmentation)
        _check_best(page, case, trial.counted, millions)
    _check_reductions(page, case, trial, fragmentation)
    _check_reductions(page, case, trial.counted, millions)


def known(trial: Trial, value: Value) -> list[str]:
    """The systems with this value on all runs: none where the proposed allocator lacks it."""
    has = trial.timed if value is millions else trial.served
    return [heap for heap in SYSTEMS if has(heap)] if has(PROPOSED) else []


def shown(value: Value, number: float) -> str:
    """A value with its unit."""
    return f"{number:.1f} M" if value is millions else f"{number:.1f} %"


def _check_best(page: Page, case: Case, trial: Trial, value: Value) -> None:
    statement = f"{page.name}-{'time' if value is millions else 'fragmentation'}-average"
    systems = known(trial, value)
    if not systems:
        return page.verdict(statement, "–", not_tested(NO_TOOLS), trial.on)
    averages = {heap: trial.average(heap, value) for heap in (*systems, PROPOSED)}
    better = sorted((heap for heap in systems if averages[heap] <= averages[PROPOSED]), key=lambda heap: averages[heap])
    rivals = better or [min(systems, key=lambda heap: averages[heap])]
    told = ", ".join(f"{heap} {shown(value, averages[heap])}" for heap in rivals)
    here = f"{shown(value, averages[PROPOSED])}; {'lower are' if better else 'next is'} {told}"
    return page.verdict(statement, here, _worse(case, trial, value, better) if better else HOLDS, trial.on)


def _worse(case: Case, trial: Trial, value: Value, better: Sequence[str]) -> Verdict:
    """Why others are better than the proposed allocator: what the paper prints for them, and what they do here."""
    if value is fragmentation:
        unsplit = [f"{of} {trial.average(name, value):.0f} %" for name, of in UNSPLIT.items() if of in better]
        aside = f"; as section 5 has them, {', '.join(unsplit)}" if unsplit else ""
        linux = "" if "Linux" not in better else f"; Linux has {case.rows['Linux'][0][0]} % in the paper's table"
        cause = Cause.UNEXPLAINED if linux else Cause.CONTRADICTION
        return fails(cause, f"heaps that split and merge waste little on this traffic{aside}{linux}")
    calls = mean(len(run.trace) for run in trial.runs)
    each = ", ".join(
        f"{heap} takes {1e6 * trial.average(heap, value) / calls:.0f} instructions a call (the paper: "
        f"{case.rows[heap][1][0]:.2f} s)"
        for heap in better
    )
    own = f"the proposed one {1e6 * trial.average(PROPOSED, value) / calls:.0f} ({case.rows[PROPOSED][1][0]:.2f} s)"
    return fails(Cause.UNEXPLAINED, f"{each}, {own}")


# ---- reductions ------------------------------------------------------------------------------------------------------


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


def _check_reductions(page: Page, case: Case, trial: Trial, value: Value) -> None:
    what = "time" if value is millions else "fragmentation"
    up_to, average = f"{page.name}-{what}-up-to", f"{page.name}-{what}-by"
    systems = known(trial, value)
    if not systems:
        for statement in (up_to, average):
            page.verdict(statement, "–", not_tested(NO_TOOLS), trial.on)
        return
    columns = {heap: trial.columns(heap, value) for heap in (*systems, PROPOSED)}
    most, heap, at, usual = reductions(columns)
    claimed = case.less_time if value is millions else case.less_fragmentation
    draws = [reductions(_of_seed(trial, seed, columns, value)) for seed in trial.seeds]
    here = f"{most:.1f} % ({heap} on {marked(trial.names[at])})"
    why = _why(case, trial, value, 0, claimed[0])
    page.verdict(up_to, here, _number(most, claimed[0], [draw[0] for draw in draws], why), trial.on)
    worst = max(systems, key=lambda heap: mean(columns[heap]))
    rest = reductions({heap: cells for heap, cells in columns.items() if heap != worst})[3]
    here = f"{usual:.1f} %; {rest:.1f} % without {worst}, the worst on average"
    why = _why(case, trial, value, 3, claimed[1])
    page.verdict(average, here, _number(usual, claimed[1], [draw[3] for draw in draws], why), trial.on)


def _of_seed(trial: Trial, seed: int, heaps: Iterable[str], value: Value) -> dict[str, list[float]]:
    runs = [run for run in trial.runs if run.seed == seed]
    return {heap: [value(run, heap) for run in runs] for heap in heaps}


def _number(found: float, theirs: float, draws: Sequence[float], why: Verdict) -> Verdict:
    if found >= (1 - WITHIN) * theirs:
        return HOLDS
    if len(draws) > 1 and min(draws) <= theirs <= max(draws):
        return within_noise(f"{len(draws)} seeds: {min(draws):.1f} to {max(draws):.1f} %")
    return why


def _why(case: Case, trial: Trial, value: Value, at: int, claimed: float) -> Verdict:
    """Why a reduction is smaller here; `at` is its place among what `reductions` returns."""
    if value is millions:
        averages = {heap: trial.average(heap, value) for heap in known(trial, value)}
        fast = min(averages, key=lambda heap: averages[heap])
        return fails(
            Cause.UNEXPLAINED,
            f"{fast} takes {shown(value, averages[fast])} here and the proposed one "
            f"{shown(value, trial.average(PROPOSED, value))}; in the paper {case.rows[fast][1][0]:.2f} s and "
            f"{case.rows[PROPOSED][1][0]:.2f} s",
        )
    if case.unsplit:
        columns = {heap: trial.columns(heap, value) for heap in (*SYSTEMS, PROPOSED) if trial.served(heap)}
        columns |= {of: trial.columns(name, value) for name, of in UNSPLIT.items()}
        unsplit = float(reductions(columns)[at])
        if unsplit >= (1 - WITHIN) * claimed:
            return fails(
                Cause.CONTRADICTION,
                f"with Windows CE and XP as section 5 has them, which neither split nor merge, it is {unsplit:.1f} %",
            )
    own, theirs = trial.columns(PROPOSED, value), case.rows[PROPOSED][0][1:]
    return fails(
        Cause.UNEXPLAINED,
        f"the proposed one fragments {min(own):.1f} to {max(own):.1f} % here, {min(theirs)} to {max(theirs)} % in the "
        "paper; its freelists keep most of it",
    )
