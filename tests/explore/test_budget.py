"""The time of a budget: how it is shared out, and what is reported of what did not fit."""

from __future__ import annotations

from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from keyword_explorations import explore

from heapwright._explore import budget, evaluation, options, runner, schedule, search, stress_test, validation
from heapwright._explore.budget import COPIES, READING, STRESS_TEST, TimeBudget, in_bisecting_order
from heapwright._explore.space import Space
from heapwright._recipes.zoo.catalogue import load
from heapwright._replay.engine import GivenUpError
from heapwright._replay.replay import replay
from heapwright._replay.stress_test import StressEffort
from heapwright._studies.analysis import Analysis
from heapwright._traces.cut import cut
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Clock:
    """It advances by `step` each time that it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.seconds, self.step = 0.0, step

    def perf_counter(self) -> float:
        self.seconds += self.step
        return self.seconds


def test_what_comes_after_exploring_has_shares_and_no_more_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    shares = TimeBudget(100.0, calls=6000, replays=6, stress_tested=True, jobs=2)
    assert shares.stress_tests_until == 100 - 100 * READING
    assert (shares.validation, shares.stress_testing) == (100 * COPIES, budget.STRESS_TEST_SECONDS / 2)
    shares.each = 0.001
    assert 0 < shares.validation < 1
    shares.each = 100 * COPIES * 2 / budget.FEWEST  # as long as all that may be kept, on one copy of few recipes
    assert shares.validation == 0
    shares.each = 0.001
    assert shares.exploring_until == shares.stress_tests_until - shares.stress_testing - shares.validation
    assert TimeBudget(4.0, stress_tested=True).stress_testing == 4 * STRESS_TEST
    clock.seconds = 99.0  # exploring took longer than it was to
    shares.end_exploring()
    assert shares.validation_until == 99  # and nothing is left
    clock.seconds = 0.0
    hurried = TimeBudget(100.0, calls=6000, replays=6)  # no stress test, and no room for one copy
    hurried.each, clock.seconds = 50.0, 80.0
    hurried.end_exploring()
    assert (hurried.validation, hurried.validation_until) == (0, 80)
    without = TimeBudget()
    without.end_exploring()
    assert (without.exploring_until, without.validation_until, without.stress_tests_until) == (inf, inf, inf)


def test_what_is_told_of_exploring_knows_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "time", Clock())
    hurried, unhurried = TimeBudget(100.0, calls=6000, replays=6, stress_tested=True, jobs=2), TimeBudget()
    for shares, after in ((hurried, 100 - hurried.exploring_until), (unhurried, 0.0)):
        meter = SimpleNamespace()
        schedule._set_end(cast(Any, meter), shares)
        assert (meter.until, meter.after) == (shares.exploring_until, after)


def test_only_what_was_cut_short_is_told() -> None:
    shares = TimeBudget()
    shares.note("copies", 6, 6)
    shares.note("copies", 2, 6)
    assert shares.short == ["copies: 2 of 6 in the time"]


@pytest.mark.parametrize(("count", "order"), [(0, []), (1, [0]), (2, [0, 1]), (5, [0, 4, 2, 1, 3])])
def test_a_front_is_gone_through_from_both_ends(count: int, order: list[int]) -> None:
    assert in_bisecting_order(count) == order
    assert sorted(in_bisecting_order(10 * count + 3)) == list(range(10 * count + 3))


def test_a_search_for_a_footprint_is_given_up_as_a_replay_is() -> None:
    trace = cut(Stream.of(Trace.read(EXAMPLES / "mosquitto_broker.parquet")), first=6000).trace()
    seen: list[int] = []

    def watch(calls: int) -> bool:
        seen.append(calls)
        return calls < len(trace)

    with pytest.raises(GivenUpError) as given_up:
        replay(trace, load("tlsf"), watch=lambda so_far: watch(so_far.calls))
    assert given_up.value.so_far.calls == seen[-1] == len(trace)
    whole = replay(trace, load("tlsf"))
    assert given_up.value.so_far.accesses == whole["accesses"]
    assert given_up.value.so_far.footprint_bytes <= int(whole["footprint_bytes"] or 0)


def test_copies_that_do_not_fit_are_told_and_no_half_of_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of copies was tried by all that may be picked, and is what would be without a budget."""
    trace = cut(Stream.of(Trace.read(EXAMPLES / "mosquitto_broker.parquet")), first=1500).trace()
    space = Space([], align=8)
    clock = Clock(1.0)
    for module in (options, runner, evaluation, schedule, search, budget, validation, stress_test):
        monkeypatch.setattr(module, "time", clock)
    done = explore([trace], space, study_path=tmp_path / "short", copies=6, stress_test=False, budget=2200, jobs=1)
    monkeypatch.undo()
    explore([trace], space, study_path=tmp_path / "whole", copies=6, stress_test=False)
    with Analysis.open(tmp_path / "short") as short, Analysis.open(tmp_path / "whole") as whole:
        made, every = short.traces("copy"), whole.traces("copy")
        assert 0 < len(made) < 6 and set(made) < set(every)
        assert done.short == [f"copies: {len(made)} of 6 in the time"]
        output = {(id, name): result for id, name, result in whole.measured_on("copy", ["footprint_bytes", "accesses"])}
        kept = {(id, name): result for id, name, result in short.measured_on("copy", ["footprint_bytes", "accesses"])}
        on_each = [{id for id, name in kept if name == copy.name} for copy in made]
        assert len(on_each[0]) > 10 and all(ids == on_each[0] for ids in on_each)
        assert len(kept) == len(made) * len(on_each[0])
        assert kept == {pair: output[pair] for pair in kept}


def test_what_there_was_time_for_is_not_told_as_short(tmp_path: Path) -> None:
    trace = cut(Stream.of(Trace.read(EXAMPLES / "mosquitto_broker.parquet")), first=300).trace()
    space = Space([[load("tlsf").at_alignment(8), load("half-fit").at_alignment(8)]], include_zoo=False)
    done = explore([trace], space, study_path=tmp_path / "s", budget=600, copies=0, jobs=1)
    assert done.short == []
    with Analysis.open(tmp_path / "s") as study:
        assert study.robustness().stable(study.pick("balanced").id)
        assert study.pick("balanced").metrics["long_run_bytes"]


def test_a_run_tells_what_was_asked_for_but_what_a_study_tells_elsewhere() -> None:
    assert options.Options().in_words() == ""
    requested = options.Options(copies=3, strategy="random", seed=7, limit=5, budget=60.0, command="heapwright explore")
    assert requested.in_words() == "copies 3, limit 5, budget 60.0"


def test_whatever_fails_the_stress_test_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front is tested briefly, what is recommended for longer, and each that takes its place in turn."""
    short, long = (getattr(stress_test, form) for form in ("SHORT", "LONG"))  # brief ones here
    failed: set[str] = set()
    tested: list[tuple[list[str], int]] = []
    known: dict[int, set[tuple[str, str]]] = {}
    order = ["a", "b", "c", "d"]

    def front() -> list[Any]:
        return [SimpleNamespace(id=id) for id in order if id not in failed][:2]

    def test(_: object, some: list[str], traces: object, effort: StressEffort, until: float) -> None:
        tested.append((some, effort.calls))
        known.setdefault(effort.calls, set()).update((id, "t") for id in some)
        failed.update({"a"} & {*some} if effort == short else {"b"} & {*some})

    study = SimpleNamespace(
        endured=lambda calls: {pair for at, pairs in known.items() if at >= calls for pair in pairs},
        combined=SimpleNamespace(front_rows=lambda keys: [0]),
        objectives=(),
        front=front,
    )
    monkeypatch.setattr(stress_test, "stress_test_each", test)
    monkeypatch.setattr(stress_test, "recommended", lambda _: [front()[0].id])
    candidates: Any = {id: id for id in order}
    who = cast("runner.Runner", SimpleNamespace(study=study))
    stress_test.stress_test_best(who, candidates, [cast(Any, SimpleNamespace(name="t"))], TimeBudget())
    assert [item for item in tested if item[0]] == [
        (["a", "b"], short.calls),
        (["b"], long.calls),
        (["c", "d"], short.calls),
        (["c"], long.calls),
    ]
    assert [item.id for item in front()] == ["c", "d"]
