"""Exploration: which recipes are tried on which traces, what is stored, resumed, drawn and refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import keyword_explorations
import numpy as np
import pytest
from traces_random import plain_trace

from heapwright._explore import dask_workers, host_timing, runner
from heapwright._explore.host_timing import Timed, Turns, time_in_turn
from heapwright._explore.runner import Progress
from heapwright._explore.search import Exploration
from heapwright._explore.space import Space
from heapwright._measure.host.timing import ProgramError
from heapwright._recipes.pools import General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import replay as replaying
from heapwright._replay.energy import EnergyTable, with_energy
from heapwright._replay.replay import replay, replay_with_margins
from heapwright._studies.analysis import Analysis
from heapwright._studies.recommendations import UNTUNED, WELL_KNOWN
from heapwright._studies.records import Result
from heapwright._studies.tables import Role
from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__
from heapwright._traces.copies import copies
from heapwright._traces.trace import Trace

explore = partial(keyword_explorations.explore, copies=0, stress_test=False)
"""Copies have tests of their own."""

ZOO = Space([])
"""The zoo as it is tried, and what stands next to it."""
RECIPES = 12 + len(ZOO)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return plain_trace(1, calls=300, name="first")


@pytest.fixture(scope="module")
def other() -> Trace:
    return plain_trace(2, calls=300, name="second")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


def few_recipes(include_zoo: bool = True) -> Space:
    """A space small enough for a test."""
    recipes = [
        Recipe.unchecked((Quick(up_to=up_to), General(fit=fit)))
        for up_to in (16, 32, 64, 128)
        for fit in ("first", "best", "worst")
    ]
    return Space([recipes], include_zoo=include_zoo)


def test_every_recipe_and_the_zoo_are_tried_on_every_trace(trace: Trace, other: Trace, path: Path) -> None:
    done = explore([trace, other], few_recipes(), study_path=path)
    assert done == Exploration(path, RECIPES, 2 * (RECIPES + len(ZOO.unranked)), done.seconds, True, 0.0, 0, done.front)
    with Analysis.open(path) as study:
        assert {name for name in study.combined.zoo_names if name} == {
            *(recipe.name for recipe in ZOO.zoo.values()),
            *(f"{recipe.name}@{recipe.align}" for recipe in ZOO.unranked),
        }
        assert [member.id for member in study.front()] == done.front
        for item in study.describe(study.front()):
            recipe = Recipe.from_dict(item["recipe"])
            for replayed in (trace, other):
                assert item["traces"][replayed.name] == with_energy(replay(replayed, recipe))


@pytest.mark.parametrize(
    ("how", "tried"),
    [
        ({}, range(12)),
        ({"limit": 12}, range(12)),
        ({"limit": 100}, range(12)),
        ({"limit": 5}, range(5)),
        ({"limit": 1}, range(1)),
        ({"strategy": "random"}, range(12)),
        ({"strategy": "random", "limit": 100}, range(12)),
    ],
)
def test_neither_more_nor_less_than_was_asked_for_is_tried(
    how: dict[str, Any], tried: range, trace: Trace, path: Path
) -> None:
    """The zoo, and of the rest the first in the space's order."""
    space = few_recipes()
    done = explore([trace], space, study_path=path, **how)
    own = [recipe.hash for recipe in space.recipes() if not recipe.name]
    named = [*ZOO.zoo, *(recipe.hash for recipe in ZOO.unranked)]
    with Analysis.open(path) as study:
        assert study.finished() == {(id, "first") for id in [*(own[at] for at in tried), *named]}
    assert done.complete == (len(tried) == 12)
    assert done.recipes == len(tried) + len(ZOO)
    assert done.evaluations == len(tried) + len(named)


def test_results_are_stored_in_batches(trace: Trace, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that dies has lost is one batch."""
    stored: list[int] = []
    add = Analysis.add
    monkeypatch.setattr(runner, "_BATCH_RESULTS", 5)

    def counted(study: Analysis, batch: Sequence[Result], role: Role) -> None:
        stored.append(len(batch))
        add(study, batch, role)

    monkeypatch.setattr(Analysis, "add", counted)
    explore([trace], few_recipes(include_zoo=False), study_path=path, complete=True)
    assert stored == [5, 5, 2]


def test_a_draw_is_as_large_as_asked_for(trace: Trace, path: Path) -> None:
    space = few_recipes(include_zoo=False)
    explore([trace], space, study_path=path, strategy="random", limit=7)
    with Analysis.open(path) as study:
        drawn = {id for id, _ in study.finished()}
    assert len(drawn) == 7
    assert drawn < {recipe.hash for recipe in space.recipes()}


def test_without_the_zoo_none_of_it_is_tried(trace: Trace, other: Trace, path: Path) -> None:
    done = explore([trace], few_recipes(include_zoo=False), study_path=path, held_out=[other])
    assert done.recipes == 12
    with Analysis.open(path) as study:
        assert set(study.combined.zoo_names) == {None}
        assert study.zoo_standings() == []
        assert study.pick("balanced").id in done.front
        assert set(done.front) <= set(study.elsewhere["held out"].ids)


def test_threads_give_what_one_thread_gives(trace: Trace, tmp_path: Path) -> None:
    columns = []
    for jobs in (1, 4):
        explore([trace], few_recipes(), study_path=tmp_path / f"{jobs}.duckdb", jobs=jobs)
        with Analysis.open(tmp_path / f"{jobs}.duckdb") as study:
            columns.append(study.results())
    for key in columns[0]:
        np.testing.assert_array_equal(columns[0][key], columns[1][key])


def test_the_zoo_is_ranked_at_the_alignment_explored_and_shown_at_its_own(trace: Trace, path: Path) -> None:
    explore([trace], Space([], align=16), study_path=path)
    with Analysis.open(path) as study:
        standings = {item.candidate.label: item for item in study.zoo_standings()}
        assert (
            {study.recipe(standing.candidate.id).align for standing in standings.values() if standing.ranked}
            == {16}
            == {study.align}
        )
        own = standings["kingsley@4"]
        assert study.recipe("kingsley@4") == zoo.load("kingsley")
        assert own.candidate.metrics == with_energy(replay(trace, zoo.load("kingsley")))
        assert standings["kingsley"].candidate.metrics == with_energy(
            replay(trace, zoo.load("kingsley").at_alignment(16))
        )
        assert (own.ranked, own.on_front, own.dominated_by) == (False, False, None)
        least = min(
            standing.candidate.metrics["footprint_bytes"] or 0 for standing in standings.values() if not standing.ranked
        )
        assert least < (study.pick("smallest").metrics["footprint_bytes"] or 0), "a front with it would have had it"
        assert "half-fit@16" not in standings and standings["half-fit"].ranked


def test_one_at_its_own_alignment_gives_up_no_other(trace: Trace, tmp_path: Path) -> None:
    space = Space([], align=16)
    pruned = explore([trace], space, study_path=tmp_path / "pruned", tolerance=0, jobs=1)
    assert pruned.front == explore([trace], space, study_path=tmp_path / "whole").front


def test_a_study_is_of_one_alignment(trace: Trace, path: Path) -> None:
    explore([trace], Space([[Recipe(pools=(General(),))]], include_zoo=False), study_path=path)
    other = Space([[Recipe(pools=(General(),), align=4)]], include_zoo=False, align=4)
    with pytest.raises(HeapwrightError, match="explored at alignment 8, not 4; give the same one, or another file"):
        explore([trace], other, study_path=path)
    with pytest.raises(HeapwrightError, match="has align 4, and the space 8; a study is of one alignment"):
        Space([other.recipes()])
    with pytest.raises(HeapwrightError, match="align: 3: no alignment; valid: 1, 2, 4, 8, 16"):
        Space([], align=3)


def test_resuming_repeats_nothing(trace: Trace, path: Path) -> None:
    first = explore([trace], few_recipes(), study_path=path)
    again = explore([trace], few_recipes(), study_path=path)
    assert (again.evaluations, again.recipes, again.front) == (0, first.recipes, first.front)


def test_a_limit_can_be_lifted_later(trace: Trace, path: Path) -> None:
    some = explore([trace], few_recipes(), study_path=path, strategy="random", limit=5, seed=3)
    assert some.recipes == 5 + len(ZOO)
    assert not some.complete
    rest = explore([trace], few_recipes(), study_path=path)
    assert (rest.recipes, rest.evaluations, rest.complete) == (RECIPES, 7, True)


def test_random_draws_follow_the_seed(trace: Trace, tmp_path: Path) -> None:
    drawn = []
    for name, seed in {"a": 1, "b": 1, "c": 2}.items():
        explore([trace], few_recipes(), study_path=tmp_path / name, strategy="random", limit=4, seed=seed)
        with Analysis.open(tmp_path / name) as study:
            drawn.append(study.combined.ids)
    assert drawn[0] == drawn[1] != drawn[2]


def test_objectives_on_request_are_measured(trace: Trace, path: Path) -> None:
    explore([trace], few_recipes(), "smallest_arena_bytes,accesses", path)
    with Analysis.open(path) as study:
        best = study.pick("smallest").metrics
        assert isinstance(best["smallest_arena_bytes"], int)
        assert study.front()


def test_held_out_traces_never_rank(trace: Trace, other: Trace, path: Path, tmp_path: Path) -> None:
    alone = explore([trace], few_recipes(), study_path=tmp_path / "alone")
    done = explore([trace], few_recipes(), study_path=path, held_out=[other])
    assert done.front == alone.front
    with Analysis.open(path) as study:
        apart = study.elsewhere["held out"]
        assert set(apart.ids) >= {*done.front, *map(study.resolve, (*WELL_KNOWN, *UNTUNED))}
        for id in done.front:
            result = apart.find(id)
            assert result is not None
            assert result.metrics == with_energy(replay(other, study.recipe(id)))


def test_what_is_near_the_front_is_tried_on_copies(trace: Trace, path: Path) -> None:
    seen: list[Progress] = []
    done = keyword_explorations.explore(
        [trace], few_recipes(), study_path=path, copies=3, seed=7, progress=seen.append, stress_test=False
    )
    made = {copy.name: copy for copy in copies(trace, 3, seed=7)}
    with Analysis.open(path) as study:
        apart = study.elsewhere["copy"]
        assert apart.traces == sorted(made)
        assert set(apart.ids) > {*done.front, study.resolve("tlsf"), study.resolve("newlib-nano")}
        assert not {recipe.hash for recipe in ZOO.unranked} & set(apart.ids)
        stored = study.results("copy")
        for recipe, name, accesses in zip(stored["recipe"], stored["trace"], stored["accesses"], strict=True):
            assert accesses == replay(made[name], study.recipe(recipe))["accesses"]
        assert "first~load-1" not in study.per_trace(done.front)[done.front[0]]
        tried = len(apart.ids)
    assert (seen[-1].what, seen[-1].finished, seen[-1].total) == ("copies", 3 * tried, 3 * tried)
    again = keyword_explorations.explore([trace], few_recipes(), study_path=path, copies=4, seed=7, stress_test=False)
    assert again.evaluations == tried, "the first three are kept"


def test_an_energy_table_replaces_the_default(trace: Trace, path: Path) -> None:
    table = EnergyTable((1, 2**30), (1000, 1000), (2000, 2000))
    explore([trace], few_recipes(), "energy_nJ", path, energy_table=table)
    with Analysis.open(path) as study:
        metrics = study.front()[0].metrics
        assert metrics["energy_nJ"] == pytest.approx((metrics["reads"] or 0) + 2 * (metrics["writes"] or 0))


def test_progress_counts_to_the_end(trace: Trace, path: Path) -> None:
    seen: list[Progress] = []
    explore([trace], few_recipes(), study_path=path, progress=seen.append, stress_test=True)
    explored = next(item for item in reversed(seen) if item.what == "exploring")
    assert explored.finished == explored.total == RECIPES + len(ZOO.unranked)
    assert (seen[-1].what, seen[-1].finished) == ("stress test", seen[-1].total)
    assert explored.rate > 0
    assert seen[-1].seconds_left == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"objectives": "acesses"}, "did you mean accesses"),
        ({"limit": 0}, "limit: 0"),
        (
            {"objectives": "accesses,code_bytes", "tolerance": 0},
            "tolerance: code_bytes may fall during a replay",
        ),
        ({"tolerance": 2}, "tolerance: 2; must be from 0 to 1"),
        ({"tolerance": 0, "complete": True}, "complete: finishes every recipe, which excludes tolerance"),
        ({"budget": 9, "complete": True}, "complete: finishes every recipe, which excludes budget"),
        ({"budget": 0}, "budget: 0; must be above 0 seconds"),
        ({"copies": -1}, "copies: -1; must be 0 or more"),
        ({"future": 999}, "future: 999; must be 1000 calls or more"),
        ({"current": "tlfs"}, "current: 'tlfs' is no reference allocator; did you mean tlsf"),
        ({"objectives": "long_run_growth"}, "objectives: long_run_growth is measured for candidates alone"),
        ({"objectives": "footprint_bytes,growth_ratio"}, "objectives: growth_ratio is measured for candidates alone"),
        ({"traces": []}, "no trace given"),
        ({"traces": [plain_trace(1), plain_trace(2)]}, "two traces are named random"),
        ({"held_out": [plain_trace(2, name="first")]}, "two traces are named first"),
        ({"held_out": [plain_trace(1, calls=300, name="copy")]}, "held out and explored on"),
    ],
)
def test_what_cannot_be_explored_is_one_line(trace: Trace, path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(HeapwrightError, match=says):
        explore(**{"traces": [trace], "space": few_recipes(), "study_path": path, **changes})


def test_a_worker_that_fails_stops_the_exploration_and_keeps_results(
    trace: Trace, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = [5]

    def fails_in_the_end(*arguments: Any, **options: Any) -> Any:
        remaining[0] -= 1
        if remaining[0] < 0:
            raise HeapwrightError("engine: out of memory")
        return replay_with_margins(*arguments, **options)

    def fails(*_: object, **__: object) -> NoReturn:
        raise HeapwrightError("engine: out of memory")

    monkeypatch.setattr(replaying, "replay_with_margins", fails_in_the_end)
    monkeypatch.setattr(replaying, "replay_recipes", fails)
    with pytest.raises(HeapwrightError, match="out of memory"):
        explore([trace], few_recipes(), study_path=path, jobs=1)
    with Analysis.open(path) as study:
        assert len(study.finished()) == 5


def test_times_of_every_trace_replace_what_the_study_has_of_them() -> None:
    of_each: list[tuple[Role, str]] = [("explored", "x"), ("copy", "x~1")]
    every = [Timed(role, name, {"a": 5.0}, "here") for role, name in of_each]
    kept: list[object] = []
    output: list[Progress] = []

    def run_alone(work: object, go_on: Callable[[int], bool]) -> Iterator[Timed]:
        for item in every:
            assert go_on(2)
            yield item
        interrupt.seen = True
        assert not go_on(1)

    interrupt = SimpleNamespace(seen=False)
    study = SimpleNamespace(set_times=lambda *item: kept.append(item))
    of: Any = SimpleNamespace(
        workers=SimpleNamespace(run_alone=run_alone), study=study, progress=output.append, interrupt=interrupt
    )
    turns = Turns({"a": zoo.load("tlsf"), "b": zoo.load("fast")}, [plain_trace(1)], copies=0, seed=0)
    time_in_turn(of, turns)
    assert kept == [tuple(item) for item in every]
    assert turns.steps == 4 and [(item.what, item.finished, item.total) for item in output] == [
        ("timing", 2, 4),
        ("timing", 4, 4),
        ("timing", 5, 4),
    ]
    assert output[1].seconds_left == 0 and (output[0].seconds_left or 0) > 0


def test_heaps_are_timed_in_turn_on_every_trace_and_one_that_fails_on_none(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[tuple[list[str], str, int, int]] = []

    class Bench:
        def __enter__(self) -> Bench:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def generated(self, recipe: Recipe) -> str:
            return recipe.name

        def measure(self, programs: dict[str, str], trace: Trace, rounds: int, passes: int) -> dict[str, float]:
            requested.append(([*programs.values()], trace.name, rounds, passes))
            if "fast" in programs.values():
                raise ProgramError("b", "fails")
            return dict.fromkeys(programs, 5.0)

    monkeypatch.setattr(host_timing, "Bench", Bench)
    recipes = {id: zoo.load(name) for id, name in (("a", "tlsf"), ("b", "fast"), ("c", "small"))}
    traces = [plain_trace(1, calls=400, name="x"), plain_trace(2, calls=400, name="y")]
    turns = Turns(recipes, traces[:1], copies=1, seed=0, held_out=traces[1:])
    steps: list[int] = []

    def go_on(some: int) -> bool:
        steps.append(some)
        return True

    results = list(turns.timed(go_on))
    assert [item.role for item in results] == ["explored", "copy", "held out"] and results[0].trace == "x"
    assert all(item.times == {"a": 5.0, "c": 5.0} and item.machine for item in results)
    assert steps == [1, 1, 1, 3, 3, 3] and turns.steps == sum(steps)
    assert requested[0][0] == ["tlsf", "fast", "small"] and {tuple(names) for names, *_ in requested[1:]} == {
        ("tlsf", "small")
    }
    assert {(rounds, passes) for *_, rounds, passes in requested} == {(host_timing.ROUNDS, 100)}
    assert list(turns.timed(lambda _: False)) == []


@pytest.mark.parametrize(("found", "has"), [("0.1", "heapwright 0.1"), (None, "no heapwright")])
def test_a_worker_of_another_version_is_told(found: str | None, has: str) -> None:
    dask_workers._require_version(__version__, "tcp://here")
    with pytest.raises(HeapwrightError, match=rf"^tcp://there: the Dask worker has {has}; install {__version__} there"):
        dask_workers._require_version(found, "tcp://there")
