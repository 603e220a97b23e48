"""How far a heap reaches: one request, object or byte of arena more changes nothing, or is refused."""

from __future__ import annotations

import random

import pytest
from recipes_random import random_recipes

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay.engine import run
from heapwright._replay.reach import Reach, reach, reaches
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

CLASSES = """
align = 4
[[pool]]
kind = "fixed"
sizes = [32, 64]
counts = [10, 5]
"""


def asking(sizes: list[int]) -> Trace:
    """A trace that asks for an object of each size and keeps all of them."""
    return Trace.from_columns(op=[0] * len(sizes), id=list(range(len(sizes))), size=sizes)


def refused(recipe: Recipe, sizes: list[int], arena: int | None = None) -> int:
    result, _ = run(asking(sizes), recipe, policy_struct(recipe), arena)
    return int(result.failed)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("victim-bins", Reach(None, None, None)),
        ("tlsf", Reach(1 << 30, (1 << 30) - (1 << 24), None)),  # the last list but one of the octave below
        ("st-memmgr-2", Reach(65_534, 65_516, None)),
        ("variable-pool", Reach(557_080, 524_288, 1024)),
        ("fixed-pool", Reach(557_076, 2048, 272)),
        ("st-compact-memmgr", Reach(262_140, 262_116, 65_535)),
    ],
)
def test_heaps_of_the_zoo(name: str, expected: Reach) -> None:
    assert reach(catalogue.load(name)) == expected


def test_classes_without_a_fallback_end_at_the_largest() -> None:
    recipe = Recipe.parse(CLASSES)
    result = reach(recipe)
    assert result.request_bytes == 64
    assert result.objects == 15
    assert refused(recipe, [32] * 11) == 1
    behind = Recipe.parse(CLASSES + '[[pool]]\nkind = "general"\nheader = 4\n')
    assert reach(behind) == Reach(None, None, None)


def test_a_gap_between_pools_is_where_requests_end() -> None:
    gap = Recipe.parse(CLASSES + '[[pool]]\nkind = "general"\nmin_size = 100\n')
    assert reach(gap).request_bytes == 64
    assert refused(gap, [99]) == 1
    assert refused(gap, [100]) == 0


def test_one_byte_more_is_refused_and_a_larger_arena_changes_nothing() -> None:
    bounded = 0
    random_ = random.Random(4)
    sizes = [random_.choice([8, 24, 100, 700, 3000]) for _ in range(400)]
    for recipe in random_recipes(60, seed=8):
        result = reach(recipe)
        if result.request_bytes is not None:
            assert refused(recipe, [result.request_bytes + 1]) == 1
            assert result.request_bytes == 0 or refused(recipe, [result.request_bytes]) == 0
        if result.objects is not None and result.objects < 5000:
            assert refused(recipe, [1] * (result.objects + 1)) >= 1
        if result.arena_bytes is not None:
            assert replay(asking(sizes), recipe)["reach_bytes"] == result.arena_bytes
            assert refused(recipe, sizes, result.arena_bytes) == refused(recipe, sizes, 2 * result.arena_bytes)
            bounded += 1
    assert bounded > 20


def test_whether_a_heap_reaches_so_far_is_told_in_few_replays() -> None:
    output = 0
    exact = Recipe.parse('[[pool]]\nkind = "general"\nfit = "exact"\nsplit = "never"\ntop = "list"\n')
    classes = Recipe.parse('[[pool]]\nkind = "fixed"\nsizes = [512]\ncounts = "grow"\nheader = 4\n')
    small = Recipe.parse('[[pool]]\nkind = "general"\nmax_size = 900\n')
    large = Recipe.parse('[[pool]]\nkind = "general"\nmin_size = 100\n')
    special = [exact, classes, small, large]
    assert [reach(recipe).request_bytes for recipe in special] == [0, 512, 900, 0]
    for recipe in [*special, *random_recipes(100, seed=17), *map(catalogue.load, catalogue.names())]:
        result = reach(recipe)
        bounds = [bound for bound in (result.arena_bytes, result.request_bytes) if bound is not None]
        near = max(1, min(bounds, default=4096))
        for size in (1, 1000, near, near + 1, near + 0.5, 100_000, 1 << 26, (1 << 31) - 1, 1 << 32):
            assert reaches(recipe, size) == (not bounds or min(bounds) >= size), (recipe.summary(), size)
            output += reaches(recipe, size)
    assert output > 400
