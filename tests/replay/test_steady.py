"""Recommendations are steady: a bound that they meet does not change them, and more memory gives no more accesses."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from keyword_explorations import explore
from run_length import brief
from sample_studies import OBJECTIVES, TRACES, identity, in_the_long_run, metrics
from traces_random import churning, plain_trace

from heapwright._cli import heapwright as command_line
from heapwright._explore.space import Space
from heapwright._recipes.pools import General
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import DEFAULT_OBJECTIVES
from heapwright._studies.analysis import Analysis
from heapwright._studies.by_budget import budgets
from heapwright._studies.recommendations import PICKS, WORST_CALL, NoPickError, Pick
from heapwright._studies.records import Result, TraceInfo, device_of
from heapwright._studies.results import Candidate
from heapwright._studies.tables import Role
from heapwright._traces.copies import each_copy
from heapwright._traces.trace import Trace

STOPS = brief(11, 21)
WITHIN = 1.01


def picked(study: Analysis, how: Pick, *conditions: str) -> Candidate | None:
    try:
        return study.pick(how, where=conditions)
    except NoPickError:
        return None


def assert_steady(study: Analysis, how: Pick, *conditions: str) -> int:
    """Along bounds on memory; returns how many different recipes were recommended."""
    memory, cost = study.objectives
    sizes = [needed(item, memory) for item in study.front(where=conditions)]
    bounds = [int(np.ceil(bound)) for bound in np.geomspace(min(sizes), 1.1 * max(sizes), STOPS)]
    chosen = [picked(study, how, *conditions, f"{memory} <= {bound}") for bound in bounds]
    for bound, pick, more in zip(bounds, chosen, [*chosen[1:], study.pick(how, where=conditions)], strict=True):
        if pick is None:
            continue
        assert more is not None, "more memory leaves no less to choose from"
        if needed(more, memory) <= bound:
            assert more.id == pick.id
        assert needed(more, cost) <= WITHIN * needed(pick, cost)
        assert not beating(study, pick)
    return len({pick.id for pick in chosen if pick is not None})


def needed(one: Candidate, key: str) -> float:
    return float(one.metrics[key] or 0)


def beating(study: Analysis, pick: Candidate) -> list[str]:
    """What needs no more in either objective, less in one, and is as fit to ship."""
    robustness, results = study.robustness(), study.combined
    shown = results.values(study.objectives)
    own = shown[results.row(pick.id)]
    better = (shown <= own).all(axis=1) & (shown < own).any(axis=1) & results.eligible(study.objectives)
    ids = [results.ids[row] for row in np.flatnonzero(better)]
    longest = max(WORST_CALL, robustness.worst_call(pick.id))
    return [id for id in ids if robustness.why_not(id) is None and robustness.worst_call(id) <= longest]


RECIPES = {one.hash: one for one in (Recipe.unchecked((General(coalesce_from=64 * at),)) for at in range(1, 25))}


def drawn(path: Path, seed: int, traces: Sequence[Trace], objectives: Sequence[str]) -> Analysis:
    """What recipes need, whether they pass the stress test, and what they need on futures and copies, at random."""
    draw = random.Random(seed)
    about = replace(identity(traces, objectives, ids=[*RECIPES]), device=device_of(traces, True))
    study = Analysis.create_or_resume(path, about)
    copies = [copy for trace in traces for copy in each_copy(trace, 1, seed=0)]
    study.set_apart([TraceInfo.of(copy) for copy in copies], "copy")
    roles: dict[Role, Sequence[Trace]] = {"explored": traces, "copy": copies}
    for role, requested in roles.items():
        rows = []
        for id, recipe in RECIPES.items():
            passed, bounded = int(draw.random() < 0.8), draw.random() < 0.8
            malloc, failed = draw.choice((50, 50, 900)), int(role == "copy" and draw.random() < 0.1)
            for trace in requested:
                more = {"lasts": passed, "growth_ratio": 1.2 - passed / 10, "failed": failed}
                memory = draw.randint(1500, 2500)
                future = in_the_long_run(memory if bounded else None, draw.randint(5, 50), malloc)
                known = {**more, **future} if objectives == DEFAULT_OBJECTIVES else more
                item = metrics(draw.randint(1000, 1400), draw.randint(50, 500), **known)
                rows.append(Result(id, recipe, None, trace.name, item))
        study.add(rows, role)
    return study


@pytest.mark.parametrize("objectives", [OBJECTIVES, DEFAULT_OBJECTIVES])
@pytest.mark.parametrize("loads", [1, 2])
def test_bounds_that_are_met_change_nothing_and_more_memory_gives_no_more_accesses(
    loads: int, objectives: tuple[str, ...], tmp_path: Path
) -> None:
    """Some recipes fail the stress test, grow without bound, make a long call, or fail on copies; two loads are of one
    device."""
    different, most = 0, 400 if objectives == OBJECTIVES else 40
    for seed in range(brief(5, 10)):
        with drawn(tmp_path / f"{seed}.duckdb", seed, TRACES[:loads], objectives) as study:
            for how in PICKS:
                different += assert_steady(study, how)
                assert_steady(study, how, f"{objectives[1]} <= {most}")
    assert different > brief(20, 40)


def test_recommendations_of_explorations_are_steady(tmp_path: Path) -> None:
    """Of a trace, and of two loads of one device; with copies, futures and the stress test."""
    light, full = plain_trace(1, calls=600, name="irc_a"), churning(random.Random(2), 900, (16, 24, 100), 0.48, "irc_b")
    every = [item for item in Space.default([light, full]).recipes() if not item.name]
    space = Space([random.Random(7).sample(every, 30)])
    for traces in ([light], [full], [light, full]):
        path = tmp_path / f"{len(traces)}-{traces[-1].name}.duckdb"
        explore(traces, space, study_path=path, copies=2)
        with Analysis.open(path) as study:
            assert study.same_device == (len(traces) == 2)
            for how in PICKS:
                assert assert_steady(study, how) >= 1


def test_a_bound_on_memory_asks_no_less_of_a_recommendation(tmp_path: Path) -> None:
    """What is not fit is not recommended for want of memory, and the line says what is needed; a deadline is met."""
    first, other, *_ = RECIPES.values()
    copy = next(each_copy(TRACES[0], 1, seed=0))
    with Analysis.create_or_resume(tmp_path / "study.duckdb", identity(ids=[*RECIPES])) as study:
        study.set_apart([TraceInfo.of(copy)], "copy")
        study.add(
            [
                Result(first.hash, first, None, "busy", metrics(1000, 50, accesses_malloc_max=90, lasts=1)),
                Result(other.hash, other, None, "busy", metrics(900, 40, accesses_malloc_max=9, lasts=1)),
            ]
        )
        study.add([Result(first.hash, first, None, copy.name, metrics(1000, 50))], "copy")
        study.add([Result(other.hash, other, None, copy.name, metrics(900, 40, failed=3))], "copy")
        assert study.pick("balanced").id == first.hash
        said = (
            f"nothing that may ship has footprint_bytes <= 999; the least is 1,000, of {first.hash}; {other.hash} "
            f"stays within, but it failed 3 requests on copies, as on {copy.name}"
        )
        with pytest.raises(NoPickError, match=re.escape(said)):
            study.pick("balanced", where="footprint_bytes <= 999")
        for conditions in (["accesses_malloc_max <= 20"], ["accesses_malloc_max <= 20", "footprint_bytes <= 900"]):
            assert study.pick("balanced", where=conditions).id == other.hash
        result = budgets(study)
        assert result.picks[-1][result.memory.index(1104)] is None
        assert result.picks[result.worst.index(9)][result.memory.index(1104)] == other.hash
    run = CliRunner()
    words = ["pareto", str(tmp_path / "study.duckdb"), "--where", "footprint_bytes <= 999"]
    table, alone = run.invoke(command_line, words), run.invoke(command_line, [*words, "--pick", "balanced"])
    assert (table.exit_code, alone.exit_code) == (0, 1)
    assert said in " ".join(table.stdout.split()) and said in str(alone.exception)
    assert f"\n{other.hash}" in table.stdout
    assert "BALANCED" not in table.stdout


def test_a_long_call_speaks_against_a_recipe_where_another_has_none(tmp_path: Path) -> None:
    first, other, *_ = RECIPES.values()
    with Analysis.create_or_resume(tmp_path / "study.duckdb", identity(ids=[*RECIPES])) as study:
        for item, size, accesses, worst in ((first, 1000, 50, 400), (other, 900, 60, 401)):
            study.add([Result(item.hash, item, None, "busy", metrics(size, accesses, accesses_free_max=worst))])
        assert study.pick("smallest").id == first.hash
        with pytest.raises(NoPickError, match="but its worst call makes 401 accesses"):
            study.pick("smallest", where="footprint_bytes <= 999")
