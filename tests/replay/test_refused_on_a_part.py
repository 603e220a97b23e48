"""A recipe that fails on a piece of a trace needs little, and promises nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._explore.runner import Trials
from heapwright._explore.schedule import Forecast, _by_forecast
from heapwright._recipes.recipe import Recipe
from heapwright._replay.engine import WATCHED_CALLS, Watch
from heapwright._replay.replay import Replayed, replay_with_margins
from heapwright._traces.trace import Trace

KEYS = ("footprint_bytes", "accesses")
PAIRS = 2 * WATCHED_CALLS
"""Ten objects at a time, so that a pool of four blocks fails from the first calls on."""
TRACE = Trace.from_columns(
    op=np.tile([0] * 10 + [3] * 10, PAIRS // 20),
    id=np.tile([*range(10)] * 2, PAIRS // 20),
    size=[16] * (PAIRS // 20 * 20),
)


def candidate(**pool: Any) -> SearchCandidate:
    recipe = Recipe.from_dict({"align": 8, "pool": [pool]})
    return SearchCandidate(recipe.hash, recipe, None)


FEW = candidate(kind="fixed", sizes=[16], counts=[4])
SERVING = [candidate(kind="general", fit=fit) for fit in ("first", "best")]


class NoInterrupt:
    seen = False


def measure(trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
    return replay_with_margins(trace, recipe, watch=watch)


def on_a_piece(one: SearchCandidate) -> PartialResult:
    stop_rule = StopRule(NoInterrupt(), pieces=[WATCHED_CALLS])
    result = Evaluator([TRACE], measure, KEYS).evaluate(EvaluationTask(one, PartialResult(KEYS, 1)), stop_rule)
    assert result.given_up
    assert not result.partial_result.ended.any()
    return result.partial_result


def test_what_refused_is_known_where_a_replay_is_given_up() -> None:
    assert on_a_piece(FEW).refused.all()
    assert not on_a_piece(SERVING[0]).refused.any()


def test_what_refused_is_tried_last_and_moves_no_other() -> None:
    known = {item.id: on_a_piece(item) for item in (FEW, *SERVING)}
    assert (known[FEW.id].least <= known[SERVING[0].id].least).all()
    unknown = candidate(kind="general", fit="next")
    known[unknown.id] = PartialResult(KEYS, 1)
    output = SimpleNamespace(traces=[TRACE], objectives=KEYS, same_device=False, partial_result=known.__getitem__)
    forecast = Forecast(cast(Trials, output))
    alone = _by_forecast([*SERVING, unknown], forecast)
    assert _by_forecast([FEW, *SERVING, unknown], forecast) == [*alone, FEW]


def test_others_come_by_the_best_of_their_design() -> None:
    """Of the first design one is far and one near the front, both of the second lie between."""
    far = {"far": 9.0, "near": 0.5, "between": 2.0, "beside": 3.0}
    design = {
        "far": "first",
        "near": "first",
        "other": "first",
        "between": "second",
        "beside": "second",
        "last": "second",
    }
    output = [cast(SearchCandidate, SimpleNamespace(id=id, design=item)) for id, item in design.items()]
    forecast = SimpleNamespace(
        fails=lambda item: False,
        knows=lambda item: item.id in far,
        distances=lambda some: np.array([far[item.id] for item in some]),
    )
    for some in (output, output[::-1]):
        ordered = [item.id for item in _by_forecast(some, cast(Forecast, forecast))]
        assert ordered == ["near", "between", "beside", "far", "other", "last"]
