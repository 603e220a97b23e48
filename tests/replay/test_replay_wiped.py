"""A replay of a heap with checks leaves the arena as it found it: all 0."""

from __future__ import annotations

import random

import pytest
from recipes_random import random_recipes
from traces_random import random_trace

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._traces.trace import Trace

ARENA = 1 << 20
TRACE = random_trace(random.Random(1), 400, live=100)


def left_by(recipe: Recipe, trace: Trace) -> tuple[int, int]:
    """Whether the engine says that it has wiped the arena, and how many bytes of it are not 0."""
    struct = policy_struct(recipe)
    size = min(ARENA, struct.reach)
    front = lib.hw_front_bytes(struct, trace.calls.struct)
    memory = ffi.gc(lib.hw_reserve(front, size), lambda pointer: lib.hw_unreserve(pointer, front, size))
    result = ffi.new("struct hw_metrics *")
    options = ffi.new("struct hw_options *", (lib.HW_CHECK_NOTHING, ffi.NULL, ffi.NULL))
    code = lib.hw_replay(struct, trace.calls.struct, memory, size, options, result)
    assert code in (0, lib.HW_NO_ROOM)
    content = bytes(ffi.buffer(memory, size))
    return result.wiped, size - content.count(0)


def test_heaps_with_checks_leave_nothing_behind() -> None:
    recipes = [item for item in random_recipes(120, seed=17) if item.checks != "none"]
    assert {item.checks for item in recipes} == {"frees", "neighbours", "full"}
    for recipe in recipes:
        assert left_by(recipe, TRACE) == (1, 0), recipe.to_toml()


@pytest.mark.parametrize("name", ["tlsf", "freertos-heap2"])
def test_heaps_without_say_that_they_do(name: str) -> None:
    wiped, remaining = left_by(zoo.load(name), TRACE)
    assert wiped == 0
    assert remaining > 0
