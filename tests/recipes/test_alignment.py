"""Recipes moved to another alignment: what is rounded, what becomes equal, and where none can be."""

from __future__ import annotations

import random
from typing import Any

import pytest
from recipes_random import random_recipe

from heapwright._recipes.policy import BeyondReachError, policy
from heapwright._recipes.pools import Pool
from heapwright._recipes.recipe import ALIGNMENTS, ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError

GENERAL = {"kind": "general"}


def recipe(*pools: dict[str, Any], **heap: Any) -> Recipe:
    return Recipe.from_dict({"align": 4, **heap, "pool": list(pools)})


def moved(*pools: dict[str, Any], align: int = 8, **heap: Any) -> tuple[Pool, ...]:
    return recipe(*pools, **heap).at_alignment(align).pools


def told(pool: Pool, *keys: str) -> tuple[Any, ...]:
    return tuple(getattr(pool, key) for key in keys)


def test_classes_that_become_equal_are_one_with_the_counts_of_both() -> None:
    (pool,) = moved({"kind": "fixed", "sizes": [60, 12, 16, 64], "counts": [1, 2, 30, 4]})
    assert told(pool, "sizes", "counts") == ((64, 16), (5, 32))
    (pool,) = moved({"kind": "fixed", "sizes": [4, 8, 20], "counts": "grow", "header": 4})
    assert told(pool, "sizes", "counts") == ((8, 24), "grow")


def test_lists_of_blocks_that_become_equal_are_one() -> None:
    # With a header of 4, blocks of 8-byte steps hold 12, 20, 28, ... bytes.
    lists, _ = moved({"kind": "quick", "sizes": [1476, 24, 16, 20], "limit_blocks": 3}, GENERAL)
    assert told(lists, "sizes", "limit_blocks") == ((20, 28, 1476), 3)
    lists, _ = moved({"kind": "quick", "sizes": [16], "max_size": 16}, GENERAL)
    assert told(lists, "sizes", "max_size") == ((20,), None)


def test_a_block_that_two_quick_pools_come_to_hold_is_left_to_one() -> None:
    first, second = {"kind": "quick", "sizes": [16, 40]}, {"kind": "quick", "sizes": [20, 64], "limit_blocks": 3}
    assert [told(pool, "sizes") for pool in moved(first, second, GENERAL)[:2]] == [((20, 44),), ((68,),)]
    assert [pool.kind for pool in moved(first, {**second, "sizes": [20]}, GENERAL)] == ["quick", "general"]
    assert [pool.kind for pool in moved({"kind": "quick", "up_to": 16}, {**second, "sizes": [20]}, GENERAL)] == [
        "quick",
        "general",
    ]


def test_what_the_alignment_decided_follows_it() -> None:
    plain = recipe(GENERAL)
    assert plain.canonical().at_alignment(8).hash == plain.at_alignment(8).hash == recipe(GENERAL, align=8).hash
    assert recipe(GENERAL, align=8).canonical().at_alignment(4).hash == plain.hash
    (pool,) = recipe({**GENERAL, "unit": 8, "min_block": 24}).at_alignment(16).canonical().pools
    assert told(pool, "unit", "min_block") == (16, 32)
    (pool,) = moved({"kind": "buddy", "min_block": 16}, align=16)
    assert told(pool, "min_block") == (32,)
    (pool,) = moved({"kind": "partition", "size": 20}, align=16)
    assert told(pool, "size") == (32,)


def test_the_rest_stays() -> None:
    kingsley = zoo.load("kingsley")
    assert kingsley.at_alignment(4) is kingsley
    other = kingsley.at_alignment(8)
    assert (other.name, other.source, other.about, other.align) == ("kingsley", kingsley.source, kingsley.about, 8)


@pytest.mark.parametrize("align", ALIGNMENTS)
def test_what_can_be_moved_is_valid_there(align: int) -> None:
    rng = random.Random(align)
    impossible = 0
    for item in [*zoo.recipes(), *(random_recipe(rng) for _ in range(300))]:
        try:
            other = item.at_alignment(align)
            policy(other)
        except (ContradictionError, BeyondReachError):
            impossible += 1
            continue
        assert other.align == align
        assert Recipe.parse(other.to_toml()).hash == other.hash == other.at_alignment(align).hash
    assert impossible < 60


def test_what_cannot_be_moved_is_one_line() -> None:
    with pytest.raises(
        ContradictionError, match=r'nano-qplus: cannot be had at align 8: pool 1 \(general\): "header" 6'
    ):
        zoo.load("nano-qplus").at_alignment(8)
    with pytest.raises(HeapwrightError, match="align 12 is not valid; valid: 1, 2, 4, 8, 16"):
        zoo.load("tlsf").at_alignment(12)
