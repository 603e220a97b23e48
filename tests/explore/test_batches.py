"""Recipes that are replayed in one native call come to what each comes to alone."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any

import pytest
from recipes_random import random_recipes
from traces_random import random_trace

import heapwright as hw
from heapwright._explore import evaluation, workers
from heapwright._explore.evaluation import EvaluationOutcome, EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._measure.metrics import replay_for
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import replay as replays
from heapwright._replay.energy import default_energy_table
from heapwright._replay.replay import BATCH, Replayed, replay_recipes, replay_with_margins
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

TRACE = random_trace(random.Random(5), 300, live=60)
LONGER = random_trace(random.Random(7), 3000, live=60)
SHORT = random_trace(random.Random(6), 40, live=10)
ZOO = [recipe for recipe in zoo.recipes() if not recipe.memory and not recipe.sites]
RANDOM = random_recipes(3 * BATCH, seed=23)
ONE = Trace.from_columns(op=[0], id=[1], size=[0])
"""Requests nothing: no ratio is known."""
KEYS = ("footprint_bytes", "accesses")


class NoInterrupt:
    seen = False


def same(ours: Any, theirs: Any) -> bool:
    """Whether two metrics are equal, and of one type."""
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("trace", [TRACE, ONE], ids=["calls", "one"])
@pytest.mark.parametrize("recipes", [ZOO, RANDOM], ids=["zoo", "random"])
def test_all_numbers_are_those_of_one_by_one(recipes: Sequence[Recipe], trace: Trace) -> None:
    """Of the random ones some have checks and some none; lists are longer than a batch."""
    assert len(recipes) > BATCH and (recipes is ZOO or len({item.checks for item in RANDOM}) == 4)
    for recipe, output in zip(recipes, replay_recipes(trace, recipes), strict=True):
        alone = replay_with_margins(trace, recipe)
        assert list(output.metrics) == list(alone.metrics)
        assert [key for key in output.metrics if not same(output.metrics[key], alone.metrics[key])] == [], (
            recipe.to_toml()
        )
        assert output.margins == alone.margins


def test_refusals_fits_and_energies_are_those_of_one_by_one() -> None:
    table = hw.default_energy_table()
    table = type(table)(table.sizes, tuple(2 * item for item in table.read_pj), table.write_pj)
    recipes = [recipe for recipe in ZOO if recipe.name not in ("fixed-pool", "variable-pool")]
    output = [item.metrics for item in replay_recipes(TRACE, recipes, arena=100_000, energies=table)]
    alone = [replays.replay(TRACE, recipe, arena=100_000) for recipe in recipes]
    assert all(item["failed"] for item in alone)
    for ours, theirs in zip(output, alone, strict=True):
        assert {**ours, "energy_nJ": None} == {**theirs, "energy_nJ": None}
        assert ours["energy_nJ"] > theirs["energy_nJ"]  # type: ignore[operator]
    fitted = [item.metrics["smallest_arena_bytes"] for item in replay_recipes(SHORT, ZOO, fit=True)]
    assert fitted == [replays.replay(SHORT, recipe, fit=True)["smallest_arena_bytes"] for recipe in ZOO]


def general(**keys: Any) -> Recipe:
    return Recipe.from_dict({"align": 8, "pool": [{"kind": "general", **keys}]})


def test_each_has_an_arena_that_it_reaches() -> None:
    """Links of 2 bytes reach 512 KB, and what follows them more."""
    many = Trace.from_columns(op=[0] * 400, id=[*range(400)], size=[4000] * 400)
    recipes = [general(), general().model_copy(update={"link_bytes": 2}), general(fit="best")]
    output = [item.metrics for item in replay_recipes(many, recipes)]
    assert output == [replays.replay(many, recipe) for recipe in recipes]
    assert [item["failed"] for item in output] == [0, 270, 0]


def test_the_first_that_an_arena_cannot_hold_is_named() -> None:
    """Behind others, before others, and where it looks at payloads as those around it do not."""
    for checks in ("none", "full"):
        large = general(region=4096).model_copy(update={"name": "large", "checks": checks})
        with pytest.raises(HeapwrightError, match="large: control data and regions need") as alone:
            replays.replay(TRACE, large, arena=2000)
        for recipes in ([large], [general(), large, general()], [general(fit="best"), general(), large, large]):
            with pytest.raises(HeapwrightError) as together:
                replay_recipes(TRACE, recipes, arena=2000)
            assert str(together.value) == str(alone.value)


def tasks_of(recipes: Sequence[Recipe], traces: int) -> list[EvaluationTask]:
    return [
        EvaluationTask(SearchCandidate(recipe.hash, recipe, None), PartialResult(KEYS, traces)) for recipe in recipes
    ]


SPLITS = [general(split=split, fit=fit) for fit in ("first", "best") for split in ("always", 24, 56, 57, 64, "never")]


def test_a_trier_tells_of_batches_what_it_tells_one_by_one() -> None:
    """Recipes that differ in thresholds alone are distinguished, of one batch and of earlier ones."""
    stop_rule, traces = StopRule(NoInterrupt()), [TRACE, SHORT]
    together, alone = (Evaluator(traces, replay_for(KEYS, default_energy_table()), KEYS) for _ in range(2))
    recipes = [*SPLITS, *RANDOM[:10], *ZOO[:10]]
    for some in (recipes[:7], recipes[7:], [general(split=40)]):
        tasks = tasks_of(some, len(traces))
        for task, item in zip(tasks, together.evaluate_each(tasks, stop_rule), strict=True):
            (same_task,) = tasks_of([task.candidate.recipe], len(traces))
            expected = alone.evaluate(same_task, stop_rule)
            assert item.metrics == expected.metrics and sorted(item.metrics) == [0, 1]
            assert (item.begun, item.given_up, item.machine) == (2, False, None)
            assert (
                item.partial_result is task.partial_result
                and item.partial_result.ended.all()
                and item.partial_result.remaining == 0
            )
            assert item.partial_result.least.tolist() == expected.partial_result.least.tolist()
            assert item.partial_result.refused.tolist() == expected.partial_result.refused.tolist()


def test_of_recipes_that_do_the_same_one_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = list[list[Recipe]]()

    def counting(trace: Trace, recipes: Sequence[Recipe], **keys: Any) -> list[Replayed]:
        requested.append(list(recipes))
        return replay_recipes(trace, recipes, **keys)

    monkeypatch.setattr(replays, "replay_recipes", counting)
    ids, sizes = [1, 2, 3, 4, 1, 3, 5], [100, 20, 100, 20, 0, 0, 40]
    leaves_56 = Trace.from_columns(op=[0, 0, 0, 0, 3, 3, 0], id=ids, size=sizes)
    evaluator = Evaluator([leaves_56], replay_for(KEYS, default_energy_table()), KEYS)
    list(evaluator.evaluate_each(tasks_of(SPLITS, 1), StopRule(NoInterrupt())))
    firsts, bests = SPLITS[:6], SPLITS[6:]
    assert requested[:2] == [
        [firsts[0], bests[0]],
        [firsts[3], bests[3]],
    ]  # a split below 57 leaves 56 bytes, others none
    assert not any(requested[2:])


def test_what_was_tried_ahead_is_not_replayed_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator, requested = Evaluator([SHORT], replay_for(KEYS, default_energy_table()), KEYS), list[Recipe]()

    def counting(trace: Trace, recipe: Recipe, **keys: Any) -> Replayed:
        requested.append(recipe)
        return replay_with_margins(trace, recipe, **keys)

    monkeypatch.setattr(replays, "replay_with_margins", counting)
    monkeypatch.setattr(replays, "replay_recipes", lambda *_, **__: pytest.fail("one of them is known"))
    tasks = tasks_of([ZOO[0], ZOO[9]], 1)
    evaluator.prefetch(tasks[1].candidate)
    results = list(evaluator.evaluate_each(tasks, StopRule(NoInterrupt())))
    assert requested == [ZOO[9], ZOO[0]]
    assert [item.metrics[0] for item in results] == [
        replay_with_margins(SHORT, item).metrics for item in (ZOO[0], ZOO[9])
    ]


def test_a_worker_takes_a_batch_or_what_others_leave() -> None:
    pending = deque(tasks_of(ZOO[:5], 1))
    taken = [workers._some(pending, 3) for _ in range(3)]
    assert [[task.candidate.recipe for task in some] for some in taken] == [ZOO[:3], ZOO[3:5], []]


def test_a_trace_that_ended_is_not_replayed_again() -> None:
    evaluator, stop_rule = (
        Evaluator([TRACE, SHORT], replay_for(KEYS, default_energy_table()), KEYS),
        StopRule(NoInterrupt()),
    )
    tasks = tasks_of(ZOO[:3], 2)
    tasks[1].partial_result.end(0, replays.replay(TRACE, ZOO[1]))
    results = list(evaluator.evaluate_each(tasks, stop_rule))
    assert [sorted(item.metrics) for item in results] == [[0, 1], [1], [0, 1]]
    assert [item.begun for item in results] == [2, 1, 2]


def test_where_one_fails_those_ahead_of_it_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the second trace; what the first reported of all is not lost."""
    measure = replay_for(KEYS, default_energy_table())
    evaluator, tasks = Evaluator([SHORT, TRACE], measure, KEYS), tasks_of(ZOO[:4], 2)

    def failing(trace: Trace, recipes: Sequence[Recipe], **keys: Any) -> list[Replayed]:
        if trace is TRACE and ZOO[2] in recipes:
            raise HeapwrightError("engine: out of memory")
        return replay_recipes(trace, recipes, **keys)

    def failing_alone(trace: Trace, recipe: Recipe, **keys: Any) -> Replayed:
        return failing(trace, [recipe])[0]

    monkeypatch.setattr(replays, "replay_recipes", failing)
    monkeypatch.setattr(replays, "replay_with_margins", failing_alone)
    output = list[EvaluationOutcome]()
    with pytest.raises(HeapwrightError, match="engine: out of memory"):
        output.extend(evaluator.evaluate_each(tasks, StopRule(NoInterrupt())))
    assert [sorted(item.metrics) for item in output] == [[0, 1], [0, 1]]
    assert list(evaluator.evaluate_each([], StopRule(NoInterrupt()))) == []  # where another worker took the last


@pytest.mark.parametrize(
    ("traces", "keys", "stop_rule", "batch"),
    [
        ([SHORT], KEYS, StopRule(NoInterrupt()), BATCH),
        ([SHORT, ONE], (), StopRule(NoInterrupt()), BATCH),
        ([ONE], KEYS, StopRule(NoInterrupt()), BATCH),
        ([LONGER], KEYS, StopRule(NoInterrupt()), evaluation._BATCH_CALLS // 3000),
        ([SHORT], KEYS, StopRule(NoInterrupt(), until=1e9), 1),
        ([SHORT], KEYS, StopRule(NoInterrupt(), pieces=[3], until=inf), 1),
        ([SHORT], ("smallest_arena_bytes",), StopRule(NoInterrupt()), 1),
        ([SHORT], ("ns_per_event",), StopRule(NoInterrupt()), 1),
    ],
    ids=["short", "two", "one", "longer", "time", "pieces", "fitted", "timed"],
)
def test_batches_are_of_short_replays_that_nothing_ends(
    traces: list[Trace], keys: Sequence[str], stop_rule: StopRule, batch: int
) -> None:
    assert Evaluator(traces, replay_for(keys, default_energy_table()), keys).batch(stop_rule) == batch


def test_a_list_of_heaps_is_replayed_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = list[int]()

    def counting(trace: Trace, recipes: Sequence[Recipe], **keys: Any) -> list[Replayed]:
        batches.append(len(recipes))
        return replay_recipes(trace, recipes, **keys)

    monkeypatch.setattr("heapwright._heaps.heaps.replay_recipes", counting)
    result = hw.replay(TRACE, [*RANDOM, *ZOO[:3]], arena=1 << 20)
    assert batches == [len({recipe.hash for recipe in [*RANDOM, *ZOO[:3]]})], "equal recipes are replayed once"
    assert isinstance(result, list)
    alone = [hw.replay(TRACE, item, arena=1 << 20) for item in [*RANDOM, *ZOO[:3]]]
    assert [item.metrics for item in result] == [item.metrics for item in alone]
