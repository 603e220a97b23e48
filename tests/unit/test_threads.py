"""What a recipe says of threads: which go together with which pools, what is the same recipe, the policy."""

from __future__ import annotations

import pytest

import heapwright as hw
from heapwright.recipes.policy import policy
from heapwright.recipes.recipe import ContradictionError, Recipe


def recipe(name: str = "victim-bins", **keys: object) -> Recipe:
    return Recipe.from_dict(hw.zoo(name).to_dict() | keys)


def test_no_threads_change_nothing() -> None:
    assert recipe(threads="none").hash == hw.zoo("victim-bins").hash
    assert recipe(threads="none", cache_bytes=4096).hash == hw.zoo("victim-bins").hash
    assert recipe(threads="lock", cache_up_to=64).canonical() == recipe(threads="lock").canonical()


def test_every_way_has_a_hash_of_its_own() -> None:
    ways = [recipe(), recipe(threads="lock"), recipe(threads="cached"), recipe(threads="cached", cache_bytes=4096)]
    assert len({way.hash for way in ways}) == 4
    assert all(Recipe.parse(way.to_toml()).hash == way.hash for way in ways)


def test_a_lock_changes_nothing_but_the_calls() -> None:
    assert policy(recipe(threads="lock")) | {"threads": 0} == policy(recipe())


def test_a_cache_has_a_list_for_every_block_up_to_its_largest() -> None:
    values = policy(recipe(threads="cached", align=8, cache_up_to=64))
    assert values["cache"]["count"] == 8  # blocks of 16 to 72 bytes, 4 of them header
    assert values["cache_largest"] == 68
    assert values["cache_object"] == 12 + 8 * 8


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        (
            "contiki-mmem",
            {"threads": "lock"},
            "objects of a compact pool move while other threads use them",
        ),
        ("victim-bins", {"threads": "cached", "align": 2}, 'valid with "align" 4, 8 or 16 and "link_bytes" 4'),
        ("victim-bins", {"threads": "cached", "cache_bytes": 1000}, "valid: 1024 and more"),
        ("victim-bins", {"threads": "often"}, "often"),
    ],
)
def test_what_cannot_be_shared_is_refused(name: str, keys: dict[str, object], words: str) -> None:
    with pytest.raises(hw.HeapwrightError, match=r"threads|cache_bytes") as refused:
        recipe(name, **keys)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_another_alignment_that_cannot_be_cached_is_refused() -> None:
    with pytest.raises(ContradictionError, match='cannot be had at align 2: "threads"'):
        recipe(threads="cached").at_alignment(2)


def test_a_summary_tells_the_threads() -> None:
    assert recipe(threads="lock").summary().endswith(", lock")
    assert "caches of threads <= 512, 32768 bytes each" in recipe(threads="cached").summary()
