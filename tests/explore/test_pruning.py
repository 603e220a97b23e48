"""Recipes that are pruned: the front is that of all recipes, or within the tolerance, no matter what was left out."""

from __future__ import annotations

import gc
import pickle
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import keyword_explorations
import numpy as np
import pytest
from run_length import by_turns
from sample_studies import OBJECTIVES
from traces_random import churning, plain_trace

from heapwright._api import cut
from heapwright._explore import evaluation, options, runner, schedule, search
from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import FrontBound, Incumbents, PartialResult, on_device
from heapwright._explore.runner import Meter, Progress, Runner, Trials
from heapwright._explore.schedule import EvaluationQueue
from heapwright._explore.search import Exploration
from heapwright._explore.space import Space
from heapwright._explore.workers import Interrupt, Threads
from heapwright._measure.metrics import replay_for
from heapwright._replay import engine
from heapwright._replay.energy import default_energy_table
from heapwright._replay.metrics import METRICS
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis
from heapwright._studies.pareto import ratios
from heapwright._studies.recommendations import NEAR
from heapwright._studies.records import Identity
from heapwright._studies.results import Results
from heapwright._support import gc_tuning
from heapwright._traces.trace import Trace

explore = partial(keyword_explorations.explore, stress_test=False)

TRACES = [
    plain_trace(1, calls=1200, name="plain"),
    churning(random.Random(2), 2500, (16, 24, 40, 100, 1500), 0.48, "churning"),
    churning(random.Random(3), 2000, range(8, 600, 7), 0.49, "varied"),
]
RECIPES = 150
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def often_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WATCHED_CALLS", 64)


@pytest.fixture(scope="module")
def space() -> Space:
    """A draw of the default space, with the zoo."""
    drawn = random.Random(7).sample([item for item in Space.default(TRACES).recipes() if not item.name], RECIPES)
    return Space([drawn])


@pytest.fixture(scope="module")
def whole(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study of all recipes on all traces."""
    path = tmp_path_factory.mktemp("whole") / "study.duckdb"
    explore(TRACES, space, study_path=path, copies=0, complete=True)
    return path


def front_of(path: Path, traces: Sequence[Trace], objectives: Sequence[str]) -> list[str]:
    """The front of all recipes for some of the traces."""
    with Analysis.open(path) as study:
        results = study.combined if len(traces) > 1 else study.alone(traces[0].name)
        return [results.ids[row] for row in results.front_rows(objectives)]


@pytest.mark.parametrize(
    ("traces", "objectives"),
    [
        (TRACES[:1], OBJECTIVES),
        (TRACES[1:2], OBJECTIVES),
        (TRACES, OBJECTIVES),
        (TRACES[2:], ("footprint_bytes", "reads", "accesses_malloc_max")),
        (TRACES, ("moved_bytes", "writes")),
    ],
)
def test_an_exact_front_is_that_of_all_recipes(
    traces: list[Trace], objectives: tuple[str, ...], space: Space, whole: Path, tmp_path: Path
) -> None:
    done = explore(traces, space, objectives, tmp_path / "study", copies=0, tolerance=0)
    assert done.front == front_of(whole, traces, objectives)
    assert (done.complete, done.tolerance) == (False, 0)
    assert done.recipes + done.given_up == len(space)
    assert done.given_up > RECIPES / 4


@pytest.mark.parametrize(
    ("objectives", "tolerance"),
    [
        (objectives, tolerance)
        for turn, objectives in enumerate(
            [OBJECTIVES, ("reads", "accesses_malloc_max", "footprint_bytes"), ("moved_bytes", "writes")]
        )
        for tolerance in by_turns([0, 0.05], turn)
    ],
)
def test_of_loads_of_one_device_a_front_is_that_of_all_recipes(
    objectives: tuple[str, ...], tolerance: float, space: Space, whole: Path, tmp_path: Path
) -> None:
    """The largest memory, all accesses: each number of what was finished is that of the complete exploration."""
    done = explore(
        TRACES, space, objectives, tmp_path / "study", copies=0, tolerance=tolerance, same_device=True, jobs=2
    )
    with Analysis.open(whole) as study, Analysis.open(tmp_path / "study") as sparing:
        calls = {trace.name: len(trace) for trace in TRACES}
        every = Results.of(study.results(), [*calls], study._known(), [calls])
        result = sparing.combined
    assert done.given_up > RECIPES / 4
    assert result.devices == ["+".join(calls)]
    rows = [every.ids.index(id) for id in result.ids]
    for key in METRICS:
        np.testing.assert_array_equal(result.columns[key], every.columns[key][rows])
    expected = every.front_rows(objectives)
    if not tolerance:
        assert done.front == [every.ids[row] for row in expected]
    members = result.points(objectives)[result.front_rows(objectives)]
    for point in every.points(objectives)[expected]:
        assert (members <= (1 + tolerance) * point * (1 + 1e-12) + tolerance).all(axis=1).any()


def test_what_a_recipe_comes_to_on_one_device_only_grows_with_each_load() -> None:
    random = np.random.default_rng(3)
    for _ in range(100):
        least = random.integers(0, 50, (3, 4)).astype(float)
        more = least + random.integers(0, 3, least.shape).astype(float)
        keys = ("footprint_bytes", "accesses", "accesses_free_max")
        assert (on_device(more, keys) >= on_device(least, keys)).all()
        assert on_device(least, keys)[:, 0].tolist() == [least[0].max(), least[1].sum(), least[2].max()]


@pytest.mark.parametrize(
    ("traces", "tolerance"),
    [
        (traces, tolerance)
        for turn, traces in enumerate((TRACES[2:], TRACES))
        for tolerance in by_turns([0.1, 0.01], turn)
    ],
)
def test_a_front_within_a_tolerance_is(
    traces: list[Trace], tolerance: float, space: Space, whole: Path, tmp_path: Path
) -> None:
    """Judged by the best that it found on each trace: every recipe has one on the front that needs little more."""
    done = explore(traces, space, study_path=tmp_path / "study", copies=0, tolerance=tolerance)
    names = [trace.name for trace in traces]
    with Analysis.open(whole) as study:
        every = study.combined
        at = [every.traces.index(name) for name in sorted(names)]
        served = (every.each["failed"][:, at] == 0).all(axis=1) & every.ranked
        values = np.stack([every.each[key][:, at] for key in OBJECTIVES], axis=1)
    with Analysis.open(tmp_path / "study") as study:
        assert study.tolerance == tolerance
        result = study.combined
        rows = result.front_rows(OBJECTIVES)
        assert [result.ids[row] for row in rows] == done.front
        competing = result.ranked[:, np.newaxis] & (result.each["failed"] == 0)
        best = np.stack([np.where(competing, result.each[key], np.inf).min(axis=0) for key in OBJECTIVES])
        members = result.points(OBJECTIVES)[rows]
    points = ratios(values[served], best).max(axis=2)
    if len(traces) == 1:
        members = members / best[:, 0]
    for point in points:
        assert (members <= (1 + tolerance) * point * (1 + 1e-12)).all(axis=1).any()


def test_what_is_no_better_than_harmless_on_any_trace_changes_no_front() -> None:
    random = np.random.default_rng(1)
    served = np.ones((1, 3), np.bool_)
    better = 0
    for _ in range(200):
        values = random.integers(0 if better % 2 else 5, 60, (20, 2, 3)).astype(float)
        front_bound = FrontBound.of(values, served.repeat(len(values), axis=0), 0)
        assert front_bound is not None
        others = random.integers(0, 60, (200, 2, 3))
        harmless = [other for other in others if (other >= front_bound.harmless).all() and front_bound.dominates(other)]
        more = np.concatenate([values, np.reshape(harmless, (-1, 2, 3))])
        result = FrontBound.of(more, served.repeat(len(more), axis=0), 0)
        assert result is not None
        np.testing.assert_array_equal(result.front, front_bound.front)
        better += bool((result.best < front_bound.best).any())
    assert better > 100


def test_a_tolerance_saves_replays(space: Space, tmp_path: Path) -> None:
    given_up = [
        explore(TRACES, space, study_path=tmp_path / str(share), copies=0, tolerance=share).given_up
        for share in (0, 0.1)
    ]
    assert given_up[0] < given_up[1]


def test_one_recipe_of_nearly_each_design_near_the_front_is_finished(space: Space, whole: Path, tmp_path: Path) -> None:
    """These are raced on futures, however many like them come on no front of the recordings."""
    explore(TRACES, space, study_path=tmp_path / "study", copies=0, tolerance=0.01, jobs=1)
    with Analysis.open(whole) as study:
        every = study.combined
        points = every.points(OBJECTIVES)
        front = points[every.front_rows(OBJECTIVES)]
        near = pareto.distances(points, front) <= np.log(NEAR)
        near &= every.eligible(OBJECTIVES)
    drawn = search._choose(list(search._candidates(space).values()), "exhaustive", None, 0)
    spread = {item.id for item in schedule._one_of_each_design([item for item in drawn if not item.zoo_name])}
    with Analysis.open(tmp_path / "study") as study:
        finished = set(study.combined.ids)
    of = {item.id: item.design for item in drawn}
    near_designs = {of[id] for id, is_near in zip(every.ids, near, strict=True) if is_near and id in spread}
    missing = near_designs - {of[id] for id in finished & of.keys()}
    assert len(near_designs) > 20 and len(missing) <= len(near_designs) / 10
    assert len(spread & finished) < len(spread) - 10


def test_what_was_given_up_is_nowhere_taken_for_a_result(space: Space, tmp_path: Path) -> None:
    done = explore(TRACES, space, study_path=tmp_path / "study", copies=0, tolerance=0.05)
    with Analysis.open(tmp_path / "study") as study:
        assert not np.isnan(study.combined.columns["accesses"]).any()
        assert len(study.combined.ids) == done.recipes + sum(not ranked for ranked in study.combined.ranked)
        assert study.given_up == done.given_up
        assert len(study.zoo_standings()) > 30
        partial = {id for id, *_ in study.partial()}
        assert len(partial) == done.given_up
        assert not partial & set(study.combined.ids)


def test_a_study_is_finished_step_by_step(space: Space, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "study"
    loose = explore(TRACES, space, study_path=path, copies=0, tolerance=0.1)
    seen: list[Progress] = []
    again = explore(TRACES, space, study_path=path, copies=0, progress=seen.append)
    assert seen[-1].finished == seen[-1].total
    assert (again.evaluations, again.tolerance) == (0, 0.1), "the same command has nothing left to do"
    exact = explore(TRACES, space, study_path=path, copies=0, tolerance=0)
    assert exact.given_up < loose.given_up
    assert exact.front == front_of(whole, TRACES, OBJECTIVES)
    last = explore(TRACES, space, study_path=path, copies=0, complete=True)
    assert (last.complete, last.tolerance, last.given_up) == (True, 0, 0)
    with Analysis.open(path) as study, Analysis.open(whole) as other:
        for key, column in study.results().items():
            np.testing.assert_array_equal(column, other.results()[key])


def test_how_many_are_finished_follows_from_the_time_that_takes(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explore(TRACES[:1], space, study_path=tmp_path / "short", copies=0).complete
    seen: list[Progress] = []
    monkeypatch.setattr(schedule, "COMPLETE_SECONDS", 0)
    done = explore(TRACES[:1], space, study_path=tmp_path / "long", copies=0, progress=seen.append)
    assert (done.complete, done.tolerance) == (False, schedule.TOLERANCE)
    assert [seen[0].tolerance, seen[-1].tolerance] == [None, schedule.TOLERANCE]
    assert seen[-1].finished == seen[-1].total


def test_a_front_for_what_may_fall_is_always_of_all_recipes(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "COMPLETE_SECONDS", 0)
    assert explore(TRACES[:1], space, "fragmentation,accesses", tmp_path / "study", copies=0).complete
    hurried = explore(TRACES[:1], space, "fragmentation,accesses", tmp_path / "hurried", copies=0, budget=1e-9)
    assert (hurried.complete, hurried.tolerance, hurried.given_up) == (False, None, 0)


def test_what_promises_most_is_told_by_pieces_of_the_trace(tmp_path: Path) -> None:
    """A recording: what calls to come ask for is like those before, which a draw of random lifetimes is not."""
    trace = cut(Trace.read(EXAMPLES / "mosquitto_broker.parquet"), first=6000)
    every = [item for item in Space.default([trace]).recipes() if not item.name]
    drawn = Space([random.Random(7).sample(every, RECIPES)], include_zoo=False)
    done = explore([trace], drawn, study_path=tmp_path / "whole", copies=0, complete=True)
    table = default_energy_table()
    identity = Identity.of([trace], OBJECTIVES, drawn.digest, len(drawn), table, drawn.align)
    with Interrupt() as interrupt, Analysis.create_or_resume(tmp_path / "pieces", identity) as study:
        evaluator = Evaluator([trace], replay_for(OBJECTIVES, table), OBJECTIVES)
        trials, one_thread = Trials(study, evaluator, "explored"), Threads(1)
        meter = Meter(None, "explored", len(drawn), 1, one_thread)
        candidates = [SearchCandidate(item.hash, item, None) for item in drawn.recipes()]
        runner = Runner(study, one_thread, interrupt, None)
        queue = EvaluationQueue(trials, meter, interrupt, candidates)
        for batch in queue._forecast(StopRule(interrupt)):
            batch.meter.expect(batch.candidates)
            runner.run(batch.candidates, trials, batch.meter, batch.stop_rule)
        ordered = queue.waiting
        assert study.finished() == set()
        assert max(so_far.calls for *_, so_far in study.partial()) < len(trace) / 3
    assert meter.finished == 0
    places = [place for place, item in enumerate(ordered) if item.id in done.front]
    assert np.median(places) < len(ordered) / 4, places


def test_what_needs_as_much_as_a_member_is_beaten_within_a_tolerance_alone() -> None:
    """Of equal recipes the one on an exact front is chosen by its id, so all are finished."""
    values = np.array([[[10.0], [40.0]], [[20.0], [20.0]]])
    exact, near = (FrontBound.of(values, np.ones((2, 1), np.bool_), tolerance) for tolerance in (0.0, 0.1))
    assert exact is not None and near is not None
    for point, beaten in (
        ((20, 20), (False, True)),
        ((20, 21), (True, True)),
        ((19, 21), (False, True)),
        ((10, 40), (False, True)),
        ((9.5, 100), (False, True)),
        ((9, 100), (False, False)),
    ):
        needs = np.array(point)[:, np.newaxis]
        assert (bool(exact.dominates(needs)), bool(near.dominates(needs))) == beaten


@pytest.mark.parametrize("same_device", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_a_recipe_is_beaten_once_it_comes_to_a_corner_and_not_before(tolerance: float, same_device: bool) -> None:
    """No matter what its results on other traces are; a best of 0 counts as ratios count it."""
    random, keys, settled = np.random.default_rng(8), ("footprint_bytes", "accesses", "moved_bytes"), 0
    for _ in range(400):
        values = random.integers(0 if random.random() < 0.3 else 5, 30, (8, 3, 3)).astype(float)
        values = on_device(values, keys) if same_device else values
        front_bound = FrontBound.of(values, np.ones((8, values.shape[2]), np.bool_), tolerance)
        assert front_bound is not None
        known, at = PartialResult(keys, 3, same_device), int(random.integers(3))
        known.least[:] = random.integers(0, 25, known.least.shape)
        known.refused[:] = random.random(3) < 0.1
        corners = front_bound.corners(known, at)
        for _ in range(20):
            known.least[:, at] = np.maximum(known.least[:, at], random.integers(0, 90 if same_device else 40, 3))
            beaten = bool(known.refused.any() or front_bound.dominates(known.bound))
            at_corner = bool((known.least[:, at] >= corners).all(axis=1).any())
            assert at_corner or not (beaten and front_bound.leaves_best_unchanged(known, at))
            assert front_bound.leaves_best_unchanged(known, at) or not at_corner
            if at_corner and not beaten:  # as good as a member, which an exact front chooses by its id
                assert not tolerance and front_bound.dominates(known.bound * (1 + 1e-9) + 1e-9)
            settled += at_corner and beaten
    assert settled > 500


@pytest.mark.parametrize("same_device", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_what_is_settled_is_beaten_and_leaves_the_best_on_each_trace(tolerance: float, same_device: bool) -> None:
    random, keys, output = np.random.default_rng(9), ("footprint_bytes", "accesses"), [0, 0]
    for _ in range(100):
        values = random.integers(5, 30, (8, 2, 3)).astype(float)
        values = on_device(values, keys) if same_device else values
        front_bound = FrontBound.of(values, np.ones((8, values.shape[2]), np.bool_), tolerance)
        assert front_bound is not None
        known = [PartialResult(keys, 3, same_device) for _ in range(20)]
        for item in known:
            item.least[:] = random.integers(0, 16 if same_device else 30, item.least.shape)
            item.refused[:], item.ended[:] = random.random((2, 3)) < 0.2
        for item, settled in zip(known, front_bound.settled(known), strict=True):
            beaten = bool(item.refused.any() or front_bound.dominates(item.bound))
            leaves = [front_bound.leaves_best_unchanged(item, at) for at in range(3)]
            assert settled == (beaten and all(leaves))
            output[int(settled)] += 1
    assert min(output) > 100


def test_garbage_is_looked_for_seldom_while_exploring_alone(space: Space, tmp_path: Path) -> None:
    usual, within = gc.get_threshold(), set[tuple[int, int, int]]()

    def note(progress: Progress) -> None:
        within.add(gc.get_threshold())

    def ends(progress: Progress) -> None:
        raise RuntimeError

    try:
        gc.set_threshold(700, 9, 8)
        explore(TRACES[:1], space, study_path=tmp_path / "whole", copies=0, limit=5, strategy="random", progress=note)
        assert within == {(gc_tuning.OBJECTS, 9, 8)} and gc.get_threshold() == (700, 9, 8)
        with pytest.raises(RuntimeError):
            explore(TRACES[:1], space, study_path=tmp_path / "part", copies=0, progress=ends)
        assert gc.get_threshold() == (700, 9, 8)
        gc.set_threshold(0)  # a user wants none at all
        explore(TRACES[:1], space, study_path=tmp_path / "none", copies=0, limit=5, strategy="random", progress=note)
        assert gc.get_threshold()[0] == 0 and len(within) == 2
    finally:
        gc.set_threshold(*usual)


class Never:
    """No interrupt."""

    seen = False


@pytest.mark.parametrize(("tolerance", "tolerated"), [(0.0, None), (0.05, None), (0.0, 1.5)])
def test_levels_give_a_recipe_up_as_early_as_asking_each_time(
    tolerance: float, tolerated: float | None, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known before a replay, and of accesses to come, counts; if none is known, the same is pruned later."""
    keys = ("footprint_bytes", "accesses")
    small = churning(random.Random(4), 2000, (16, 24, 40), 0.4, "small")
    traces = [*TRACES, Trace.from_columns(  # most of the memory is requested at the end
        op=[*small.op, *[0] * 600], id=[*small.id, *range(10_000, 10_600)], size=[*small.size, *[40] * 600], name="late"
    )]  # fmt: skip
    evaluator = Evaluator(traces, replay_for(keys, default_energy_table()), keys)
    candidates = [SearchCandidate(item.hash, item, None) for item in space.recipes()]
    incumbents = Incumbents(tolerance)
    for item in candidates[:40]:
        incumbents.add(
            evaluator.evaluate(EvaluationTask(item, PartialResult(keys, len(traces))), StopRule(Never())).partial_result
        )

    def given_up(asked: list[int]) -> list[int]:
        fresh = Evaluator(traces, replay_for(keys, default_energy_table()), keys)  # which has no replays to learn from
        call = evaluation._OnTrace.__call__

        def counted(watch: evaluation._OnTrace, so_far: engine.ReplayProgress) -> bool:
            asked.append(so_far.calls)
            return call(watch, so_far)

        with monkeypatch.context() as patched:
            patched.setattr(evaluation._OnTrace, "__call__", counted)
            stop_rule = StopRule(Never(), incumbents, tolerated=tolerated)
            results = [
                fresh.evaluate(EvaluationTask(candidate, PartialResult(keys, len(traces))), stop_rule).partial_result
                for candidate in candidates[40:]
            ]
        return [known.calls(at) for known in results for at in range(len(traces))]

    seldom, often = list[int](), list[int]()
    with_levels = given_up(seldom)
    with monkeypatch.context() as patched:
        patched.setattr(evaluation._OnTrace, "levels", lambda watch: None)
        assert with_levels == given_up(often)
    assert sum(map(bool, with_levels)) > 50
    assert len(seldom) < len(often) / (1.5 if tolerated else 3)


class Clock:
    """A second passes each time that it is read."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        self.seconds += 1
        return self.seconds


def test_without_time_what_was_finished_is_a_front_and_the_same_command_goes_on(
    space: Space, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (options, runner, evaluation, schedule, search):
        monkeypatch.setattr(module, "time", clock)

    def go_on(seconds: float | None) -> Exploration:
        return explore(
            TRACES, space, study_path=tmp_path / "study", copies=0, tolerance=0, budget=seconds, jobs=1,
            progress=lambda item: output.add(item.tolerance),
        )  # fmt: skip

    output = set[float | None]()
    short = go_on(8_000)
    assert short.tolerance is None and not short.complete
    assert 0 < short.recipes < len(space) and output == {None, 0}
    with Analysis.open(tmp_path / "study") as study:
        assert {id for id, _ in study.finished()} >= set(short.front)
        assert study.tolerance is None
    more = go_on(None)
    assert more.front == front_of(whole, TRACES, OBJECTIVES)
    assert more.tolerance == 0


@pytest.mark.parametrize(("tolerance", "within"), [(0.25, 0.25), (None, schedule.TOLERANCE)])
def test_where_there_is_no_time_for_the_zoo_what_others_taught_is_tried_first(
    tolerance: float | None, within: float, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (options, runner, evaluation, schedule, search):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(schedule, "LEAST_PIECE", 8)
    output = set[float | None]()
    short = explore(
        TRACES, space, study_path=tmp_path / "study", copies=0, tolerance=tolerance, budget=3_000, jobs=1,
        progress=lambda item: output.add(item.tolerance),
    )  # fmt: skip
    assert short.tolerance is None and not short.complete
    assert 0 < short.recipes < len(space.zoo) and output == {None, within}


def test_what_is_known_goes_to_another_process_and_is_written_to_there() -> None:
    known = PartialResult(("footprint_bytes", "accesses"), 3, same_device=True)
    known.least[:] = [[1, 2, 3], [4, 5, 6]]
    known.end(1, {"footprint_bytes": 2, "accesses": 5, "failed": 0})
    known.end(1, {"footprint_bytes": 2, "accesses": 5, "failed": 0})
    known.refused[2] = True
    known.set_least_footprint(2, 1 << 40)
    assert known.remaining == 2
    result = pickle.loads(pickle.dumps(known))
    for key in ("least", "ended", "refused", "floor"):
        assert np.array_equal(getattr(result, key), getattr(known, key)), key
    assert (result.so_far, result.remaining) == (known.so_far, 2) and result.bound.shape == known.bound.shape
    result.set_least_footprint(0, 8)
    assert result.floor[0] == 8 and known.floor[0] == 0
