"""Picks stay where they are: a bound that they meet does not change them, and more memory gives no more accesses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from exploring import explore
from made_studies import TRACES, identity, metrics
from traces_random import churning, plain_trace

from heapwright.cli import heapwright as command_line
from heapwright.decide.budgets import budgets
from heapwright.decide.candidate import Candidate
from heapwright.decide.picks import PICKS, NoPickError, Pick
from heapwright.decide.prior import doubt
from heapwright.decide.study import Study
from heapwright.explore.space import Space
from heapwright.recipes.pools import General
from heapwright.recipes.recipe import Recipe
from heapwright.studies.records import Result, TraceInfo, device_of
from heapwright.studies.tables import Role
from heapwright.traces.copies import each_copy
from heapwright.traces.trace import Trace

STOPS = 21
WITHIN = 1.01


def picked(study: Study, how: Pick, *conditions: str) -> Candidate | None:
    try:
        return study.pick(how, where=conditions)
    except NoPickError:
        return None


def assert_steady(study: Study, how: Pick, *conditions: str) -> int:
    """Along bounds on memory; returns how many different recipes were picked."""
    sizes = [int(one.metrics["footprint_bytes"] or 0) for one in study.front(where=conditions)]
    bounds = [int(np.ceil(bound)) for bound in np.geomspace(min(sizes), 1.1 * max(sizes), STOPS)]
    chosen = [picked(study, how, *conditions, f"footprint_bytes <= {bound}") for bound in bounds]
    for bound, pick, more in zip(bounds, chosen, [*chosen[1:], study.pick(how, where=conditions)], strict=True):
        if pick is None:
            continue
        assert more is not None, "more memory leaves no less to pick from"
        if int(more.metrics["footprint_bytes"] or 0) <= bound:
            assert more.id == pick.id
        assert float(more.metrics["accesses"] or 0) <= WITHIN * float(pick.metrics["accesses"] or 0)
        assert not beating(study, pick, how)
    return len({pick.id for pick in chosen if pick is not None})


def beating(study: Study, pick: Candidate, how: Pick) -> list[str]:
    """What is no worse in both figures that are printed, better in one, and has nothing printed against it."""
    robustness, results = study.robustness(), study.combined
    shown = results.values(("footprint_bytes", "accesses"))
    own = shown[results.row(pick.id)]
    better = (shown <= own).all(axis=1) & (shown < own).any(axis=1) & results.eligible(study.objectives)
    ids = [results.ids[row] for row in np.flatnonzero(better)]
    return [id for id in ids if robustness.why_not(id) is None and robustness.doubt(id, how) is None]


MERGING = [Recipe.unchecked((General(bins="exact", fit="best", victim_up_to=64 * at),)) for at in range(12)]
RECIPES = {
    one.hash: one for one in [*MERGING, *(Recipe.unchecked((General(coalesce_from=64 * at),)) for at in range(1, 13))]
}


def drawn(path: Path, seed: int, traces: Sequence[Trace]) -> Study:
    """What recipes need, whether they last, and what they need on copies, all at random."""
    draw = random.Random(seed)
    about = replace(identity(traces, ids=[*RECIPES]), device=device_of(traces, True))
    study = Study.create_or_resume(path, about)
    copies = [copy for trace in traces for copy in each_copy(trace, 1, seed=0)]
    study.set_apart([TraceInfo.of(copy) for copy in copies], "copy")
    roles: dict[Role, Sequence[Trace]] = {"explored": traces, "copy": copies}
    for role, asked in roles.items():
        rows = []
        for id, recipe in RECIPES.items():
            lasts = int(draw.random() < 0.7)
            for trace in asked:
                one = metrics(
                    draw.randint(1000, 1400), draw.randint(50, 500), lasts=lasts, growth_ratio=1.2 - lasts / 10
                )
                rows.append(Result(id, recipe, None, trace.name, one))
        study.add(rows, role)
    return study


@pytest.mark.parametrize("loads", [1, 2])
def test_bounds_that_picks_meet_change_none_and_more_memory_gives_no_more_accesses(loads: int, tmp_path: Path) -> None:
    """Half of the designs are doubted, a third does not last, some fall off on copies; two loads are of one device."""
    assert {doubt(one) is None for one in RECIPES.values()} == {True, False}
    different = 0
    for seed in range(10):
        with drawn(tmp_path / f"{seed}.duckdb", seed, TRACES[:loads]) as study:
            for how in PICKS:
                different += assert_steady(study, how)
                assert_steady(study, how, "accesses <= 400")
    assert different > 40


def test_picks_of_explorations_are_steady(tmp_path: Path) -> None:
    """Of a trace, and of two loads of one device; with what was seen on copies, and whether heaps last."""
    light, full = plain_trace(1, calls=600, name="irc_a"), churning(random.Random(2), 900, (16, 24, 100), 0.48, "irc_b")
    every = [one for one in Space.default([light, full]).recipes() if not one.name]
    space = Space([random.Random(7).sample(every, 60)])
    for traces in ([light], [full], [light, full]):
        path = tmp_path / f"{len(traces)}-{traces[-1].name}.duckdb"
        explore(traces, space, study_path=path, copies=2)
        with Study.open(path) as study:
            assert study.same_device == (len(traces) == 2)
            for how in PICKS:
                assert assert_steady(study, how) >= 1


def test_a_bound_on_memory_asks_no_less_of_a_pick(tmp_path: Path) -> None:
    """What is doubted is not picked for want of memory, and the line says what would be needed; a deadline is met."""
    first, *_ = MERGING
    other = next(one for one in RECIPES.values() if doubt(one))
    with Study.create_or_resume(tmp_path / "study.duckdb", identity(ids=[*RECIPES])) as study:
        study.add(
            [
                Result(first.hash, first, None, "busy", metrics(1000, 50, accesses_malloc_max=90, lasts=1)),
                Result(other.hash, other, None, "busy", metrics(900, 40, accesses_malloc_max=9, lasts=1)),
            ]
        )
        assert study.pick("balanced").id == first.hash
        said = (
            f"nothing that may ship has footprint_bytes <= 999; the least is 1,000, of {first.hash}; {other.hash} "
            "stays within, but its design is doubted: it does not merge every block as it is freed"
        )
        with pytest.raises(NoPickError, match=said):
            study.pick("balanced", where="footprint_bytes <= 999")
        for conditions in (["accesses_malloc_max <= 20"], ["accesses_malloc_max <= 20", "footprint_bytes <= 900"]):
            assert study.pick("balanced", where=conditions).id == other.hash
        found = budgets(study)
        assert found.picks[-1][found.memory.index(1104)] is None
        assert found.picks[found.worst.index(9)][found.memory.index(1104)] == other.hash
    run = CliRunner()
    words = ["pareto", str(tmp_path / "study.duckdb"), "--where", "footprint_bytes <= 999"]
    table, alone = run.invoke(command_line, words), run.invoke(command_line, [*words, "--pick", "balanced"])
    assert (table.exit_code, alone.exit_code) == (0, 1)
    assert said in " ".join(table.stdout.split()) and said in str(alone.exception)
    assert f"\n{other.hash}" in table.stdout
    assert "BALANCED" not in table.stdout


def test_how_often_a_pick_wins_on_copies(tmp_path: Path) -> None:
    """It would be picked on the first, needs little more on the second, is beaten on the third, refuses on the last."""
    first, second, *_ = MERGING
    copies = list(each_copy(TRACES[0], 4, seed=0))
    with Study.create_or_resume(tmp_path / "study.duckdb", identity(ids=[*RECIPES])) as study:
        for one, size in ((first, 1000), (second, 1100)):
            study.add([Result(one.hash, one, None, "busy", metrics(size, 50, lasts=1))])
        assert study.wins("smallest") is None
        study.set_apart([TraceInfo.of(copy) for copy in copies], "copy")
        needs = {first.hash: (1000, 1019, 1150, 1000), second.hash: (1100, 1000, 1100, 1100)}
        for one in (first, second):
            for copy, size in zip(copies, needs[one.hash], strict=True):
                failed = int(copy is copies[-1] and one is first)
                study.add([Result(one.hash, one, None, copy.name, metrics(size, 50, failed=failed))], "copy")
    with Study.open(tmp_path / "study.duckdb") as study:
        robustness, rows = study.robustness(), [study.combined.row(one.hash) for one in (first, second)]
        assert robustness.wins("smallest", [row for row in rows if row is not None]) == (2, 4)
        assert study.pick("smallest").id == second.hash, "the first refuses on a copy"
        assert study.wins("smallest") == (4, 4)
    shown = CliRunner().invoke(command_line, ["pareto", str(tmp_path / "study.duckdb"), "--pick", "smallest"]).stdout
    assert "\n# wins on 4 of 4 copies\n" in shown
