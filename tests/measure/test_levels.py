"""The cost of a level of checks, which every hardened header states: the instructions of a malloc and its free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tool_requirements import target

from heapwright._measure.boards import levels
from heapwright._measure.boards import measure as module
from heapwright._measure.boards.measure import measure
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC


def hardened(name: str = "tlsf", checks: str = "full") -> Recipe:
    return Recipe.from_dict(catalogue.load(name).to_dict() | {"checks": checks})


class Board:
    """In place of `Session`: a call takes 60 instructions, with checks 150."""

    def instructions(self, recipe: Recipe, traces: Sequence[Trace]) -> list[int | None]:
        return [len(trace) * (60 if recipe.checks == "none" else 150) for trace in traces]


def test_a_pair_is_a_malloc_and_a_free_and_the_ratio_is_to_the_same_heap_without_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "Session", Board)
    assert levels.cost_of_checks(hardened()) == (
        'A malloc and its free with checks of "full" take 300 instructions on a Cortex-M3, 2.5 times those without '
        "checks: measured on this heap, on 1,500 random calls."
    )


def test_the_random_calls_are_as_many_mallocs_as_frees_and_leave_nothing_live() -> None:
    trace = levels._program()
    assert len(trace) == 1500
    assert np.count_nonzero(trace.op == MALLOC) == np.count_nonzero(trace.op == FREE) == 750
    assert sorted(trace.id[trace.op == MALLOC]) == sorted(trace.id[trace.op == FREE])
    assert trace.size.max() < 1000


def test_no_cost_is_stated_where_a_request_fails_or_nothing_can_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Board, "instructions", lambda self, recipe, traces: [None])
    monkeypatch.setattr(module, "Session", Board)
    assert levels.cost_of_checks(hardened()) == ""

    def lacking(self: Board, recipe: Recipe, traces: Sequence[Trace]) -> list[int | None]:
        raise HeapwrightError("no cross compiler")

    monkeypatch.setattr(Board, "instructions", lacking)
    assert levels.cost_of_checks(hardened()) == ""
    assert levels.cost_of_checks(catalogue.load("tlsf")) == "", "a heap without checks"


def test_the_instructions_stated_are_those_that_the_board_counts_call_by_call() -> None:
    target("cortex-m3", None, "unicorn")
    pairs = []
    for checks in ("full", "none"):
        calls = measure(hardened(checks=checks), levels._program())["calls"]
        pairs.append(calls["malloc"]["instructions_mean"] + calls["free"]["instructions_mean"])
    text = levels.cost_of_checks(hardened())
    assert f"take {pairs[0]:,.0f} instructions" in text
    assert f"{pairs[0] / pairs[1]:.1f} times those without checks" in text
