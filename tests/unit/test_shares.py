"""The time of a budget: how it is shared out, and what is told of what did not fit."""

from __future__ import annotations

from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from exploring import explore

from heapwright.decide.study import Study
from heapwright.explore import budget, elsewhere, endurance, options, runner, schedule, search, trial
from heapwright.explore.budget import COPIES, ENDURANCE, TELLING, Shares, in_bisecting_order
from heapwright.explore.space import Space
from heapwright.recipes.zoo.catalogue import load
from heapwright.replay.endurance import LASTS, MIDDLE, Effort
from heapwright.replay.engine import GivenUpError
from heapwright.replay.replay import replay
from heapwright.traces.cut import cut
from heapwright.traces.streams import Stream
from heapwright.traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Clock:
    """It goes on by so much each time that somebody looks at it."""

    def __init__(self, step: float = 0.0) -> None:
        self.seconds, self.step = 0.0, step

    def perf_counter(self) -> float:
        self.seconds += self.step
        return self.seconds


def test_what_comes_after_exploring_has_shares_and_no_more_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    shares = Shares(100.0, calls=6000, replays=6, endured=True, jobs=2)
    assert shares.lasting_until == 100 - 100 * TELLING
    assert (shares.apart, shares.lasting) == (100 * COPIES, budget.ENDURED / 2)
    shares.each = 0.001
    assert 0 < shares.apart < 1
    shares.each = 100 * COPIES * 2 / budget.FEWEST  # as long as all that may be kept, on one copy of few recipes
    assert shares.apart == 0
    shares.each = 0.001
    assert shares.exploring_until == shares.lasting_until - shares.lasting - shares.apart
    assert Shares(4.0, endured=True).lasting == 4 * ENDURANCE
    clock.seconds = 99.0  # exploring took longer than it was to
    shares.end_exploring()
    assert shares.apart_until == 99  # and nothing is left
    clock.seconds = 0.0
    hurried = Shares(100.0, calls=6000, replays=6)  # no endurance, and no room for one copy
    hurried.each, clock.seconds = 50.0, 80.0
    hurried.end_exploring()
    assert (hurried.apart, hurried.apart_until) == (0, 80)
    without = Shares()
    without.end_exploring()
    assert (without.exploring_until, without.apart_until, without.lasting_until) == (inf, inf, inf)


def test_what_is_told_of_exploring_knows_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "time", Clock())
    hurried, unhurried = Shares(100.0, calls=6000, replays=6, endured=True, jobs=2), Shares()
    for shares, after in ((hurried, 100 - hurried.exploring_until), (unhurried, 0.0)):
        meter = SimpleNamespace()
        schedule._keep(shares, cast(Any, meter))
        assert (meter.until, meter.after) == (shares.exploring_until, after)


def test_only_what_was_cut_short_is_told() -> None:
    shares = Shares()
    shares.tell("copies", 6, 6)
    shares.tell("copies", 2, 6)
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
    for module in (options, runner, trial, schedule, search, budget, elsewhere, endurance):
        monkeypatch.setattr(module, "time", clock)
    done = explore([trace], space, study_path=tmp_path / "short", endurance=False, budget=2200, jobs=1)
    monkeypatch.undo()
    explore([trace], space, study_path=tmp_path / "whole", endurance=False)
    with Study.open(tmp_path / "short") as short, Study.open(tmp_path / "whole") as whole:
        made, every = short.traces("copy"), whole.traces("copy")
        assert 0 < len(made) < 6 and set(made) < set(every)
        assert done.short == [f"copies: {len(made)} of 6 in the time"]
        told = {(id, name): found for id, name, found in whole.measured_on("copy", ["footprint_bytes", "accesses"])}
        kept = {(id, name): found for id, name, found in short.measured_on("copy", ["footprint_bytes", "accesses"])}
        on_each = [{id for id, name in kept if name == copy.name} for copy in made]
        assert len(on_each[0]) > 10 and all(ids == on_each[0] for ids in on_each)
        assert len(kept) == len(made) * len(on_each[0])
        assert kept == {pair: told[pair] for pair in kept}


def test_what_there_was_time_for_is_not_told_as_short(tmp_path: Path) -> None:
    trace = cut(Stream.of(Trace.read(EXAMPLES / "mosquitto_broker.parquet")), first=300).trace()
    space = Space([[load("tlsf").at_alignment(8), load("half-fit").at_alignment(8)]], include_zoo=False)
    done = explore([trace], space, study_path=tmp_path / "s", budget=600, copies=0, jobs=1)
    assert done.short == []
    with Study.open(tmp_path / "s") as study:
        assert study.robustness().lasts(study.pick("balanced").id)


def test_a_run_tells_what_was_asked_for_but_what_a_study_tells_elsewhere() -> None:
    assert options.Options().told() == ""
    asked = options.Options(copies=3, strategy="random", seed=7, limit=5, budget=60.0, command="heapwright explore")
    assert asked.told() == "copies 3, limit 5, budget 60.0"


def test_what_may_be_picked_and_grew_passes_a_sieve(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = {"grew": 1.2, "kept": LASTS, "doubted": 1.2}
    study = SimpleNamespace(
        candidate=lambda id: SimpleNamespace(metrics={"growth_ratio": growth[id]}),
        endured=lambda calls: set[tuple[str, str]](),
        robustness=lambda: SimpleNamespace(
            lasts=lambda id: True, doubt=lambda id, how: "it is" if id == "doubted" else None
        ),
    )
    tried: list[tuple[list[str], Effort]] = []

    def try_some(_: object, some: list[str], traces: object, effort: Effort, until: float) -> None:
        tried.append((some, effort))

    monkeypatch.setattr(endurance, "try_endurance", try_some)
    monkeypatch.setattr(endurance, "_recommended", lambda _: ["kept"])
    candidates: Any = {id: id for id in growth}
    who = cast("runner.Runner", SimpleNamespace(study=study))
    endurance.try_what_may_ship(who, candidates, [*growth], {}, [], Shares())
    short, sieve, long = (getattr(endurance, form) for form in ("SHORT", "SIEVE", "LONG"))  # brief ones here
    assert tried == [([*growth], short), (["grew"], sieve), (["kept"], short), (["kept"], long)]


def test_what_is_picked_is_tried_until_one_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    lasts: dict[str, bool] = {}
    ids = ["a", "b", "c"]
    study = SimpleNamespace(
        combined=SimpleNamespace(ids=ids),
        may_ship=lambda how: [at for at, id in enumerate(ids) if lasts.get(id) is not False],
        robustness=lambda: SimpleNamespace(lasts=lasts.get),
    )
    tried: list[str] = []

    def try_one(_: object, some: list[str], *others: object) -> None:
        tried.extend(some)
        lasts.update({id: id == "b" for id in some})

    monkeypatch.setattr(endurance, "try_endurance", try_one)
    candidates: Any = {id: id for id in ids}
    endurance.try_picks(cast("runner.Runner", SimpleNamespace(study=study)), candidates, [], "balanced", MIDDLE)
    assert tried == ["a", "b"]
