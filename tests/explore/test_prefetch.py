"""The zoo is tried while the space is still being made, and not again at its turn."""

from __future__ import annotations

import threading

import pytest

from heapwright._explore import search
from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._explore.search import prefetching
from heapwright._explore.space import Space
from heapwright._recipes.recipe import Recipe
from heapwright._replay.engine import Watch
from heapwright._replay.replay import Replayed, replay_with_margins
from heapwright._traces.trace import Trace

TRACE = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[40, 60, 0])
KEYS = ("footprint_bytes", "accesses")
ONE = Recipe.from_dict({"align": 8, "pool": [{"kind": "general"}]})
ZOO = [SearchCandidate(ONE.hash, ONE, "one")]


class NoInterrupt:
    seen = False


class Counting:
    """A replay that reports when it was begun."""

    def __init__(self) -> None:
        self.count, self.begun = 0, threading.Event()

    def __call__(self, trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        self.count += 1
        self.begun.set()
        return replay_with_margins(trace, recipe, watch=watch)


def test_what_was_tried_ahead_is_not_replayed_at_its_turn() -> None:
    counting = Counting()
    evaluator = Evaluator([TRACE], counting, KEYS)
    with prefetching(evaluator, ZOO):
        assert counting.begun.wait(20)
    result = evaluator.evaluate(EvaluationTask(ZOO[0], PartialResult(KEYS, 1)), StopRule(NoInterrupt()))
    assert counting.count == 1
    assert result.partial_result.ended.all()
    assert result.begun == 1
    assert result.metrics[0] == replay_with_margins(TRACE, ONE).metrics


def test_it_ends_with_the_context() -> None:
    counting = Counting()
    endless = (ZOO[0] for _ in iter(int, 1))
    with prefetching(Evaluator([TRACE], counting, KEYS), endless):
        assert counting.begun.wait(20)
    tried = counting.count
    counting.begun.clear()
    assert not counting.begun.wait(0.05)
    assert counting.count == tried


@pytest.mark.parametrize("why", ["measured", "long"])
def test_nothing_is_tried(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "long":
        monkeypatch.setattr(search, "MOST_PREFETCHED_CALLS", 2)
    counting = Counting()
    with prefetching(Evaluator([TRACE], counting, () if why == "measured" else KEYS), ZOO):
        assert not counting.begun.wait(0.05)


def test_what_fails_ahead_fails_at_its_turn() -> None:
    def failing(*_: object) -> Replayed:
        raise ValueError("broken")

    evaluator = Evaluator([TRACE], failing, KEYS)
    with prefetching(evaluator, ZOO):
        pass
    with pytest.raises(ValueError, match="broken"):
        evaluator.evaluate(EvaluationTask(ZOO[0], PartialResult(KEYS, 1)), StopRule(NoInterrupt()))


def test_a_default_space_knows_its_zoo_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from heapwright._explore import space

    monkeypatch.setattr(space, "default_families", lambda _: pytest.fail("made"))
    assert Space.default([TRACE]).zoo
