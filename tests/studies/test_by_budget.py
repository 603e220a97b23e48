"""Budgets: picks within bounds are those of the study within the same conditions."""

from __future__ import annotations

from pathlib import Path

from sample_studies import IDS, identity, in_the_long_run, metrics, result

from heapwright._replay.metrics import WORST_CALLS
from heapwright._studies.analysis import Analysis
from heapwright._studies.by_budget import budgets, worst_calls


def four(path: Path) -> Analysis:
    """Less memory costs accesses and a more expensive malloc; the smallest has the most expensive free."""
    study = Analysis.create_or_resume(path, identity())
    study.add(
        [
            result(0, metrics(100, 1000, accesses_malloc_max=90, accesses_free_max=95)),
            result(1, metrics(120, 700, accesses_malloc_max=60, accesses_free_max=65)),
            result(2, metrics(150, 400, accesses_malloc_max=30, accesses_free_max=5)),
            result(3, metrics(400, 300, accesses_malloc_max=10, accesses_free_max=5)),
        ]
    )
    return study


def test_every_pick_is_that_of_the_study_within_the_same_bounds(tmp_path: Path) -> None:
    with four(tmp_path / "s.duckdb") as study:
        outcome = budgets(study)
        assert (outcome.memory, outcome.worst) == ([144, 160, 192], [10, 30, 65])
        for row, most in zip(outcome.picks, (*outcome.worst, None), strict=True):
            for pick, bytes in zip(row, (*outcome.memory, None), strict=True):
                where = [f"{key} <= {most}" for key in WORST_CALLS.values()] if most is not None else []
                where += [f"reserve_bytes <= {bytes}"] if bytes is not None else []
                assert (pick is None) == (not study.within(where).any())
                assert pick is None or pick == study.pick("balanced", where=where).id
        assert outcome.picks[-1][-1] == study.pick("balanced").id
        assert outcome.ids == {pick for row in outcome.picks for pick in row if pick}


def test_where_nothing_stays_within_there_is_no_pick(tmp_path: Path) -> None:
    with four(tmp_path / "s.duckdb") as study:
        outcome = budgets(study)
    assert outcome.picks[0] == [None, None, None, outcome.picks[0][-1]] and outcome.picks[0][-1] is not None


def test_worst_calls_are_those_on_the_future_where_the_study_has_it(tmp_path: Path) -> None:
    with four(tmp_path / "s.duckdb") as study:
        assert worst_calls(study) == list(WORST_CALLS.values())
        study.set_long_run(
            [(IDS[at], "busy", in_the_long_run(100 + at, malloc=40 + at, free=20 + at)) for at in range(4)]
        )
        assert worst_calls(study) == ["long_run_malloc_max", "accesses_realloc_max", "long_run_free_max"]
        outcome = budgets(study)
        assert max(outcome.worst) < 95, "the bounds are those of the future: the recording has 95"
