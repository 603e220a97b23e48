"""The key `memory`: which pool lives where, as part of a recipe."""

from __future__ import annotations

from typing import Any

import pytest
from case_tables import each

from heapwright._recipes.pools import MAX_REQUEST
from heapwright._recipes.recipe import ContradictionError, Recipe, json_schema
from heapwright._support.errors import HeapwrightError

FAST = {"kind": "fixed", "memory": "fast", "sizes": [60, 250], "counts": [10, 2]}
EXTERNAL = {"kind": "general", "memory": "external"}
MEMORY = {"fast": 4000, "external": 90_000}


def recipe(**changes: Any) -> Recipe:
    return Recipe.from_dict({"name": "two", "memory": MEMORY, "pool": [FAST, EXTERNAL], **changes})


def test_a_recipe_is_written_and_read_with_its_memories_in_order() -> None:
    two = recipe()
    assert two.memory == (("fast", 4000), ("external", 90_000))
    assert Recipe.parse(two.to_toml()) == two
    assert "[memory]\nfast = 4000\nexternal = 90000\n" in two.to_toml()
    assert two.summary() == (
        "fast 4000 B: fixed 60,250 counts 10,2 freelist, "
        "external 90000 B: general double/lifo first-fit, split always, coalesce immediate"
    )
    assert json_schema()["properties"]["memory"]["type"] == "object"


def test_each_part_is_a_recipe_of_its_own() -> None:
    parts = recipe(checks="frees").parts()
    assert list(parts) == ["fast", "external"]
    assert parts["external"].hash == Recipe.from_dict({"checks": "frees", "pool": [{"kind": "general"}]}).hash
    assert (parts["fast"].offered, parts["external"].offered) == ((1, 256), (1, MAX_REQUEST))
    assert parts["fast"].name == "two, fast"
    assert recipe(memory={}, pool=[{"kind": "general"}]).parts() == {}


def test_the_hash_tells_memories_apart_and_ignores_how_they_are_written() -> None:
    assert recipe().hash != recipe(memory={"fast": 4008, "external": 90_000}).hash
    assert recipe().hash == recipe(pool=[{**FAST, "sizes": [64, 256]}, EXTERNAL]).hash
    assert recipe().hash == recipe().canonical().hash
    assert recipe().canonical().canonical() == recipe().canonical()
    assert (
        recipe().hash
        != recipe(memory={"quick": 4000, "external": 90_000}, pool=[{**FAST, "memory": "quick"}, EXTERNAL]).hash
    )


def test_another_alignment_keeps_the_memories() -> None:
    moved = recipe().at_alignment(16)
    assert [pool.memory for pool in moved.pools] == ["fast", "external"]
    assert moved.memory == recipe().memory
    assert moved.hash == recipe(align=16).hash


@each(
    ("changes", "told"),
    [
        ({"memory": {}}, r'pool 1 \(fixed\): "memory" "fast" is none of the recipe\'s; no table "memory" names any'),
        ({"memory": {"fast": 4000}}, r'pool 2 \(general\): "memory" "external" is none of the recipe\'s; valid: fast'),
        ({"pool": [FAST, {"kind": "general"}]}, r'pool 2 \(general\): "memory" is missing; valid: fast, external'),
        ({"pool": [FAST]}, '"memory" "external" has no pool; give one memory = "external", or leave it out'),
        ({"pool": [EXTERNAL, FAST]}, 'those of a memory are adjacent, in the order of "memory": fast, external'),
        ({"pool": [FAST, EXTERNAL, FAST]}, "those of a memory are adjacent"),
        ({"threads": "cached"}, 'with several memories valid: "none", "lock"'),
        ({"pool": [{"kind": "compact", "memory": "fast"}, EXTERNAL]}, "compact pool move within one memory"),
        ({"pool": [{**FAST, "counts": [1]}, EXTERNAL]}, r"pool 1 \(fixed\)"),
        ({"pool": [FAST, {"kind": "quick", "memory": "external", "up_to": 64}]}, r"pool 2 \(quick\)"),
    ],
)
def test_contradictions_name_the_pool_and_what_would_be_valid(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ContradictionError, match=told):
        recipe(**changes)


@pytest.mark.parametrize(
    "memory", [{"Fast": 1}, {"fast": 0}, {"fast": "4k"}, "fast", {f"m{i}": 9 for i in range(5)}, {"a_b": 9}]
)
def test_what_is_no_table_of_memories_is_told_in_one_line(memory: Any) -> None:
    with pytest.raises(HeapwrightError, match=r'"memory": .* valid: a table of 1 to 4 names with their bytes'):
        recipe(memory=memory)
