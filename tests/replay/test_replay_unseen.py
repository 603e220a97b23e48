"""A replay whose payloads are not looked at leaves out fills, masks and copies, and counts them: the same numbers."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import cliffs
import pytest
from recipes_random import random_recipes, sample
from run_length import EFFORT, brief
from traces_random import random_trace

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.engine import run
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

OF_THE_ENGINE = ("skipped", "walked", "margins", "wiped")
METRICS = [name for name, _ in ffi.typeof("struct hw_metrics").fields if name not in OF_THE_ENGINE]


LARGE = brief(400, 700)
"""Calls on objects of up to 64 KiB: each is filled, and looked at."""


def of_large_objects() -> Trace:
    """Objects of up to 64 KiB, of which three of ten calls resize one."""
    whole = cliffs.random_trace(random.Random(14))
    return Trace.from_columns(op=whole.op[:LARGE], id=whole.id[:LARGE], size=whole.size[:LARGE])


TRACES = (random_trace(random.Random(1), 800, live=200), of_large_objects())


def counted(trace: Trace, recipe: Recipe, arena: int | None, check: int) -> Any:
    """All that a replay counts, or why it cannot begin."""
    try:
        result, _ = run(trace, recipe, policy_struct(recipe), arena, check)
    except HeapwrightError as error:
        return str(error)
    return {name: getattr(result, name) for name in METRICS}


def same_either_way(recipe: Recipe) -> None:
    """Assert that it is the same whether payloads are looked at or not, with room and with refusals."""
    for trace in TRACES:
        for arena in (None, 60_000, *brief((), (2_000_000,))):
            unseen = counted(trace, recipe, arena, lib.HW_CHECK_NOTHING)
            assert unseen == counted(trace, recipe, arena, lib.HW_CHECK_PAYLOAD), recipe.to_toml()


def checked_in_full(recipe: Recipe) -> Recipe:
    return Recipe.from_dict(recipe.to_dict() | {"checks": "full"})


@pytest.mark.slow
def test_fills_and_masks_of_random_recipes() -> None:
    tried = 0
    for recipe in random_recipes(brief(40, 250) * EFFORT, seed=31):
        with suppress(HeapwrightError):
            policy_struct(checked_in_full(recipe))
            tried += 1
            same_either_way(checked_in_full(recipe))
    assert tried > 20


def test_fills_and_masks_of_the_zoo() -> None:
    own = 0
    for item in sample(zoo.recipes()):
        with suppress(ContradictionError):
            recipe = checked_in_full(item)
            own += lib.hw_is_ordinary(policy_struct(recipe))
            same_either_way(recipe)
    assert own == 0  # as it is masked


def test_blocks_that_move() -> None:
    moved = set()
    for recipe in random_recipes(brief(60, 600) * EFFORT, seed=32):
        pool = recipe.pools[-1]
        if pool.kind == "compact":
            moved.add((pool.header > 0, pool.when))
            same_either_way(recipe)
    assert moved >= {(True, "lazy"), (True, "eager")}
