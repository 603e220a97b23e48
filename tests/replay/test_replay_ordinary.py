"""Ordinary recipes have code of their own in the engine, made of the same text: the same numbers.

HEAPWRIGHT_ORDINARY, set to "never", replays them with the code that reads the policy (docs/core.md).
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from run_length import EFFORT, brief
from traces_random import plain_trace, random_trace

from heapwright._explore.default_space import technique_grid
from heapwright._explore.space import Space
from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.pools import General
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import engine
from heapwright._replay.engine import run
from heapwright._replay.pictures import timeline
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

TRACES = (random_trace(random.Random(1), 2500, live=600), plain_trace(3, 1500))

WAYS = (("never", "never"), ("never", "0"), ("", "never"), ("", "0"), ("", "3000"))
"""HEAPWRIGHT_ORDINARY and HEAPWRIGHT_INDEX."""

OF_THE_INDEX = ("skipped", "walked", "margins")
METRICS = [name for name, _ in ffi.typeof("struct hw_metrics").fields if name not in OF_THE_INDEX]


ALIGNMENTS = (4, 8, 16)


@cache
def space(at: int, align: int) -> list[Recipe]:
    """The default space of a trace, by its index, at an alignment in bytes."""
    return list(Space.default([TRACES[at]], align=align).recipes())


def recipes(trace: Trace, count: int) -> list[Recipe]:
    """Some of the trace's default spaces, in equal parts of each alignment."""
    draw, at = random.Random(len(trace)), TRACES.index(trace)
    drawn = [item for align in ALIGNMENTS for item in draw.sample(space(at, align), count // len(ALIGNMENTS))]
    return [item for item in drawn if policy_struct(item).fixed_end < 30_000]  # blocks for all of a queue need more


def everything(trace: Trace, recipe: Recipe, arena: int | None) -> Any:
    """All that a replay counts, with payloads looked at, and call by call."""
    result, _ = run(trace, recipe, policy_struct(recipe), arena, lib.HW_CHECK_PAYLOAD)
    shown = {} if arena else {key: values.tobytes() for key, values in timeline(trace, recipe).items()}
    return {name: getattr(result, name) for name in METRICS}, shown


def shape(recipe: Recipe) -> tuple[str, bool] | None:
    """The key of the engine's copies; None of a recipe with an order that has none."""
    last = recipe.canonical().pools[-1]
    return (last.coalesce, last.bins != "none") if isinstance(last, General) and last.order == "lifo" else None


def test_every_number_of_the_default_space(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {trace: recipes(trace, brief(30, 60) * EFFORT) for trace in TRACES}
    grid = list(technique_grid([TRACES[0]], 8).values())
    drawn[TRACES[0]] += random.Random(3).sample([item for item in grid if shape(item) == ("deferred", False)], 2)
    drawn[TRACES[0]] += random.Random(4).sample([item for item in grid if shape(item) == ("deferred", True)], 2)
    drawn[TRACES[0]] += random.Random(5).sample([item for item in grid if shape(item) == ("never", False)], 2)
    tried = {shape(recipe) for some in drawn.values() for recipe in some}
    assert tried >= {(merging, bins) for merging in ("immediate", "forward", "deferred", "never") for bins in (0, 1)}
    for trace, some in drawn.items():
        for recipe in some:
            for arena in (None, 60_000):
                answers = []
                for ordinary, index in WAYS:
                    monkeypatch.setenv("HEAPWRIGHT_ORDINARY", ordinary)
                    monkeypatch.setenv("HEAPWRIGHT_INDEX", index)
                    answers.append(everything(trace, recipe, arena))
                for way, answer in zip(WAYS[1:], answers[1:], strict=True):
                    assert answer == answers[0], f"{way}\n{recipe.to_toml()}"


def test_what_calls_add_up_to_is_the_same_told_at_once_and_call_by_call() -> None:
    refused = 0
    for trace in TRACES:
        alone = Trace.from_columns(
            **{key: getattr(trace, key) for key in ("op", "id", "size", "align", "ts_us", "tid")}
        )
        assert alone.calls.struct.totals.requests == (trace.op != FREE).sum()
        alone.calls.struct.totals.requests = 0
        for recipe in recipes(trace, 30):
            for arena in (None, 60_000, 30_000):
                output, summed = everything(trace, recipe, arena), everything(alone, recipe, arena)
                assert output == summed, recipe.to_toml()
                refused += output[0]["failed"] > 0
    assert refused > 20


class FewLooks:
    """Gives a replay up after seven looks, and keeps what they showed."""

    def __init__(self) -> None:
        self.told: list[engine.ReplayProgress] = []

    def __call__(self, so_far: engine.ReplayProgress) -> bool:
        self.told.append(so_far)
        return len(self.told) < 7


def test_what_is_watched_and_invariants(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = TRACES[1]
    monkeypatch.setattr(engine, "WATCHED_CALLS", 100)
    for recipe in recipes(trace, 20):
        answers = []
        for ordinary in ("never", ""):
            monkeypatch.setenv("HEAPWRIGHT_ORDINARY", ordinary)
            struct = policy_struct(recipe)
            looks = FewLooks()
            with pytest.raises(engine.GivenUpError):
                run(trace, recipe, struct, None, watch=looks)
            checked, _ = run(trace, recipe, struct, None, lib.HW_CHECK_INVARIANTS)
            answers.append((looks.told, [getattr(checked, name) for name in METRICS]))
        assert answers[0] == answers[1], recipe.to_toml()


def test_most_of_the_default_space_is_ordinary() -> None:
    for align in ALIGNMENTS:
        drawn = random.Random(align).sample(space(0, align), 100)
        assert sum(lib.hw_is_ordinary(policy_struct(recipe)) for recipe in drawn) > 75, align


def test_what_the_ordinary_code_cannot_do_is_not_ordinary() -> None:
    for name in ("lwip-mem", "freertos-heap2", "contiki-mmem", "windows-ce"):
        assert not lib.hw_is_ordinary(policy_struct(zoo.load(name)))
