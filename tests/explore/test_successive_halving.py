"""The race: which recipes begin, how many reach each round, and what is stored of their futures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import short_explorations
from keyword_explorations import explore
from sample_studies import IDS, RECIPES, TRACES, identity, in_the_long_run, metrics, result
from traces_random import plain_trace, steady

from heapwright._explore import search
from heapwright._explore import successive_halving as module
from heapwright._explore.evaluation import SearchCandidate
from heapwright._explore.runner import Progress, Runner
from heapwright._explore.space import Space
from heapwright._explore.successive_halving import OF_A_DESIGN, ROUNDS, race, starters
from heapwright._explore.workers import Interrupt, Threads
from heapwright._recipes.pools import General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._replay.long_run import long_run
from heapwright._replay.metrics import DEFAULT_OBJECTIVES, Value
from heapwright._replay.replay import Replayed
from heapwright._studies.analysis import Analysis
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.made import futures_of

CALLS = 2000
SHORT, MIDDLE = CALLS // 20, CALLS // 5
CANDIDATES = {id: SearchCandidate(id, one, None) for id, one in zip(IDS, RECIPES, strict=True)}

Needs = Callable[[str, int], dict[str, Value]]
"""What a recipe, by its id, takes on a future, by its calls."""


def future(name: str = "busy") -> Trace:
    return Trace.from_columns(op=[0] * CALLS, id=range(CALLS), size=[8] * CALLS, name=name)


class Futures:
    """Replaces replays of futures: their results, and which were requested."""

    def __init__(self, needs: Needs) -> None:
        self.needs, self.asked = needs, list[tuple[int, str]]()

    def __call__(self) -> Any:
        def replayed(trace: Trace, recipe: Recipe, watch: object) -> Replayed:
            self.asked.append((len(trace), recipe.hash))
            outcome = self.needs(recipe.hash, len(trace))
            return Replayed({"footprint_bytes": outcome["long_run_bytes"] or 9000, "failed": 0, **outcome})

        return replayed

    def of(self, calls: int) -> list[str]:
        return [id for made, id in self.asked if made == calls]


@contextmanager
def racing(path: Path, points: Sequence[tuple[int, int]], traces: Sequence[Trace] = TRACES[:1]) -> Iterator[Runner]:
    """A study of recordings alone, with a footprint and accesses of each recipe."""
    about = identity(traces, DEFAULT_OBJECTIVES)
    with Analysis.create_or_resume(path, about) as study, Interrupt() as interrupt:
        add(study, points, traces)
        yield Runner(study, Threads(1), interrupt, None)


def add(
    study: Analysis, points: Sequence[tuple[int, int]], traces: Sequence[Trace] = TRACES[:1], first: int = 0
) -> None:
    for at, point in enumerate(points, first):
        study.add([result(at, metrics(*point), trace.name) for trace in traces])


def in_order(id: str, calls: int) -> dict[str, Value]:
    """The first recipe needs least."""
    return in_the_long_run(1000 + 100 * IDS.index(id), long_run_calls=calls)


def test_rounds_are_a_twentieth_a_fifth_and_all_of_the_future() -> None:
    assert ROUNDS == ((1 / 20, 480), (1 / 5, 120), (1, 40)) and OF_A_DESIGN == 24


def test_the_nearest_few_of_each_design_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are of one design but the last, which is the farthest from the front."""
    other = Recipe.unchecked((Quick(up_to=64), General()))
    points = [(1000 + at, 500) for at in range(6)]
    with racing(tmp_path / "s.duckdb", points) as runner:
        study = runner.study
        study.add([result(6, metrics(1500, 500))._replace(id=other.hash, recipe=other)])
        study.add([result(7, metrics(10, 10, failed=1))])
        some = CANDIDATES | {other.hash: SearchCandidate(other.hash, other, None)}
        assert starters(study, some) == [*IDS[:6], other.hash], "what fails requests on the recording never begins"
        monkeypatch.setattr(module, "OF_A_DESIGN", 2)
        assert starters(study, some) == [*IDS[:2], other.hash]
        assert starters(study, {IDS[4]: CANDIDATES[IDS[4]]}) == [IDS[4]]


def test_each_round_keeps_the_nearest_to_the_front_on_longer_futures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the recording the order is the reverse of that on the future."""
    monkeypatch.setattr(module, "ROUNDS", ((1 / 20, 6), (1 / 5, 4), (1, 2)))
    futures = Futures(in_order)
    monkeypatch.setattr(module, "LongRunReplay", futures)
    with racing(tmp_path / "s.duckdb", [(2000 - 100 * at, 500) for at in range(8)]) as runner:
        outcome = race(runner, CANDIDATES, TRACES[:1], [future()])
        known = runner.study.foreseen()
    assert futures.of(SHORT) == IDS[:1:-1], "the two farthest on the recording do not begin"
    assert sorted(futures.of(MIDDLE)) == sorted(IDS[2:6])
    assert sorted(futures.of(CALLS)) == sorted(IDS[2:4])
    assert outcome == IDS[2:4]
    assert known == {(id, "busy") for id in outcome}, "of beginnings nothing is stored"


def test_what_is_named_reaches_the_last_round_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUNDS", ((1 / 20, 2), (1 / 5, 1), (1, 1)))
    futures = Futures(in_order)
    monkeypatch.setattr(module, "LongRunReplay", futures)
    with racing(tmp_path / "s.duckdb", [(1000 + 100 * at, 500) for at in range(7)]) as runner:
        outcome = race(runner, CANDIDATES, TRACES[:1], [future()], always=[IDS[6], IDS[7], "unknown"])
    assert sorted(futures.of(CALLS)) == sorted([IDS[0], IDS[6]]), "the eighth was never replayed on the recording"
    assert outcome == [IDS[0], IDS[6]]


def test_a_race_that_is_run_again_replays_no_whole_future_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, points = tmp_path / "s.duckdb", [(1000 + 100 * at, 500) for at in range(4)]
    first, again, longer = (Futures(in_order) for _ in range(3))
    monkeypatch.setattr(module, "LongRunReplay", first)
    with racing(path, points) as runner:
        outcome = race(runner, CANDIDATES, TRACES[:1], [future()])
    assert sorted(first.of(CALLS)) == sorted(IDS[:4])
    with Analysis.open(path, write=True) as study, Interrupt() as interrupt:
        runner = Runner(study, Threads(1), interrupt, None)
        monkeypatch.setattr(module, "LongRunReplay", again)
        assert race(runner, CANDIDATES, TRACES[:1], [future()]) == outcome
        assert again.of(CALLS) == []
        add(study, [(900, 400)], first=4)
        race(runner, CANDIDATES, TRACES[:1], [future()])
        assert again.of(CALLS) == [IDS[4]], "what an exploration adds is raced, too"
        monkeypatch.setattr(module, "LongRunReplay", longer)
        half = Trace.from_columns(op=[0] * 1000, id=range(1000), size=[8] * 1000, name="busy")
        race(runner, CANDIDATES, TRACES[:1], [half])
        assert sorted(longer.of(1000)) == sorted(IDS[:5]), "another length is another future"


def test_after_an_interrupt_what_was_finished_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.duckdb"
    with racing(path, [(1000 + 100 * at, 500) for at in range(4)]) as runner:

        def stopping(id: str, calls: int) -> dict[str, Value]:
            if calls == CALLS and len(futures.of(CALLS)) == 2:
                runner.interrupt.seen = True
            return in_order(id, calls)

        futures = Futures(stopping)
        monkeypatch.setattr(module, "LongRunReplay", futures)
        with pytest.raises(HeapwrightError, match="interrupted with 2 of 4 replays stored"):
            race(runner, CANDIDATES, TRACES[:1], [future()])
        finished = futures.of(CALLS)
    with Analysis.open(path) as study:
        assert {id for id, _ in study.foreseen()} == {*finished} and len(finished) == 2


def test_an_interrupt_on_the_beginnings_stores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with racing(tmp_path / "s.duckdb", [(1000, 500)]) as runner:
        runner.interrupt.seen = True
        monkeypatch.setattr(module, "LongRunReplay", Futures(in_order))
        with pytest.raises(HeapwrightError, match="interrupted"):
            race(runner, CANDIDATES, TRACES[:1], [future()])
        assert runner.study.foreseen() == set()


def test_nothing_is_begun_after_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    futures = Futures(in_order)
    monkeypatch.setattr(module, "LongRunReplay", futures)
    with racing(tmp_path / "s.duckdb", [(1000, 500), (900, 600)]) as runner:
        outcome = race(runner, CANDIDATES, TRACES[:1], [future()], until=time.perf_counter() - 1)
    assert futures.asked == []
    assert sorted(outcome) == sorted(IDS[:2]), "what is nearest on the recording stands for what would be"


def test_every_future_counts_by_the_worst_ratio_and_progress_by_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = {"busy": [100, 110, 300], "idle": [1000, 300, 100]}

    def of(name: str) -> Any:
        return lambda id, calls: in_the_long_run(needs[name][IDS.index(id)], long_run_calls=calls)

    class Both:
        def __call__(self, trace: Trace, recipe: Recipe, watch: object) -> Replayed:
            outcome = of(trace.name)(recipe.hash, len(trace))
            return Replayed({**outcome, "footprint_bytes": outcome["long_run_bytes"], "failed": 0})

    output: list[Progress] = []
    monkeypatch.setattr(module, "LongRunReplay", Both)
    with racing(tmp_path / "s.duckdb", [(1000, 500)] * 3, TRACES) as runner:
        runner.progress = output.append
        outcome = race(runner, CANDIDATES, TRACES, [future("busy"), future("idle")])
        stored = runner.study.per_trace(IDS[:3], ["long_run_bytes"])
    assert outcome == [IDS[1], IDS[2], IDS[0]], "ten times, three times, and three times the least of the one"
    assert {id: [item[name]["long_run_bytes"] for name in needs] for id, item in stored.items()} == {
        id: [needs["busy"][at], needs["idle"][at]] for at, id in enumerate(IDS[:3])
    }
    assert {item.what for item in output} == {"futures"}
    assert all(item.finished <= item.total == 6 for item in output) and output[-1].finished == 6


def test_what_rots_on_the_future_is_on_no_front_though_it_is_best_on_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rotting(id: str, calls: int) -> dict[str, Value]:
        return in_the_long_run(None if id == IDS[0] else 2000, long_run_calls=calls)

    monkeypatch.setattr(module, "LongRunReplay", Futures(rotting))
    with racing(tmp_path / "s.duckdb", [(500, 100), (1000, 500)]) as runner:
        race(runner, CANDIDATES, TRACES[:1], [future()])
        study = runner.study
        assert [item.id for item in study.front()] == [study.pick("balanced").id] == [IDS[1]]
        assert study.robustness().why_not(IDS[0])


# ---- with real replays ----------------------------------------------------------------------------------------------


def test_futures_are_of_the_calls_asked_for_and_at_least_twice_the_recording() -> None:
    short, long = plain_trace(1, calls=200), plain_trace(2, calls=3000)
    (item, other) = futures_of([short, long], 2000, seed=3)
    assert len(item) >= 2000 and len(other) >= 2 * len(long)
    (again,) = futures_of([short], 2000, seed=3)
    assert again.size.tolist() == item.size.tolist()


def test_an_exploration_ranks_by_the_future_and_repeats_nothing(tmp_path: Path) -> None:
    """A heap that hoards makes the fewest accesses, and is no compromise: it needs ever more memory."""
    trace, path = steady(1500, live=100), tmp_path / "s.duckdb"
    hoarding = Recipe.unchecked((Quick(up_to=1024), General(coalesce="never")))
    merging = Recipe.unchecked((General(bins="exact", fit="best"),))
    space = Space([[hoarding, merging]], include_zoo=False)
    how: dict[str, Any] = {"complete": True, "future": 60_000}
    recorded = explore([trace], space, study_path=tmp_path / "recorded.duckdb", stress_test=False, **how)
    assert sorted(recorded.front) == sorted([hoarding.hash, merging.hash])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "futures_of", futures_of)  # for as many calls as asked for
        first = explore([trace], space, study_path=path, **how)
        again = explore([trace], space, study_path=path, **how)
    with Analysis.open(path) as study:
        assert study.foreseen(60_000) == {(hoarding.hash, "steady"), (merging.hash, "steady")}
        (member,) = study.front()
        assert member.metrics["lasts"] == 1 and (member.metrics["long_run_bytes"] or 0) > 0
        assert "grows without bound" in (study.robustness().why_not(hoarding.hash) or "")
    assert first.front == again.front == [merging.hash] and again.evaluations == 0


def test_a_study_has_one_future_of_each_trace(tmp_path: Path) -> None:
    """For any seed of what continues it: needs of two futures do not compare."""
    trace, recipes = steady(600), [Recipe.unchecked((General(fit=fit),)) for fit in ("first", "best")]
    path, needs = tmp_path / "s.duckdb", []
    for seed in (3, 4):
        space = Space([recipes], include_zoo=False)
        explore([trace], space, study_path=path, limit=seed - 2, strategy="random", seed=seed)
        with Analysis.open(path) as study:
            output = study.per_trace(study.combined.ids)
            needs.append({id: recipe["steady"]["long_run_bytes"] for id, recipe in output.items()})
    (future,) = short_explorations.few_calls([trace], 1 << 30, seed=3)
    assert [len(outcome) for outcome in needs] == [1, 2]
    assert needs[1] == {recipe.hash: long_run(future, recipe).arena for recipe in recipes}


def test_the_current_heap_is_raced_and_named_in_the_study(tmp_path: Path) -> None:
    """However far from the front: first fit over all free blocks is beaten in everything."""
    explore([steady(600)], Space([]), study_path=tmp_path / "s.duckdb", current="first-fit-slow-free")
    with Analysis.open(tmp_path / "s.duckdb") as study:
        assert study.current == "first-fit-slow-free"
        current = study.candidate("first-fit-slow-free")
        assert current.metrics["long_run_calls"] and current.id not in {item.id for item in study.front()}
