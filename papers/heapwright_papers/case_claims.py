"""What statements of Mamagkakis et al. 2006 about case studies see: trials, and reductions as the paper has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from heapwright_papers.case_study import (
    MIX,
    PROPOSED,
    REAL,
    SYSTEMS,
    UNSPLIT,
    Case,
    Run,
    Trial,
    accesses,
    fragmentation,
    millions,
    part,
)
from heapwright_papers.measuring import NO_TOOLS
from heapwright_papers.traffic import marked

Value = Callable[[Run, str], float]


def names(case: Case, *trials: Trial) -> dict[str, Any]:
    """What the statements' expressions see."""
    return {
        "MIX": MIX,
        "NO_TOOLS": NO_TOOLS,
        "PROPOSED": PROPOSED,
        "REAL": REAL,
        "SYSTEMS": SYSTEMS,
        "UNSPLIT": UNSPLIT,
        "accesses": accesses,
        "fragmentation": fragmentation,
        "millions": millions,
        "internal": part("internal_bytes"),
        "external": part("external_bytes"),
        "known": known,
        "reductions": reductions,
        "of_seed": of_seed,
        "unsplit": unsplit,
        "dearest": dearest,
        "marked": marked,
        "case": case,
        "trials": {trial.on: trial for trial in trials},
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


def unsplit(trial: Trial) -> tuple[float, str, int, float]:
    """The reductions of fragmentation where Windows CE and XP neither split nor merge."""
    columns = {heap: trial.columns(heap, fragmentation) for heap in (*SYSTEMS, PROPOSED) if trial.served(heap)}
    return reductions(columns | {of: trial.columns(name, fragmentation) for name, of in UNSPLIT.items()})


def dearest(columns: Mapping[str, Sequence[float]]) -> str:
    """The system with the largest average."""
    return max((heap for heap in columns if heap != PROPOSED), key=lambda heap: mean(columns[heap]))
