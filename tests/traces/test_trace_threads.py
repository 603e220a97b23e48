"""What a recipe says of threads: which go together with which pools, what is the same recipe, the policy."""

from __future__ import annotations

import random

import pytest
from metric_values import known

import heapwright as hw
from heapwright._recipes.policy import cache_class, cache_units, policy
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace


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


def test_a_cache_has_a_list_for_every_class_up_to_its_largest() -> None:
    values = policy(recipe(threads="cached", align=8, cache_up_to=64))
    assert values["cache"]["count"] == 8  # blocks of 16 to 72 bytes, 4 of them header
    assert values["cache_largest"] == 68
    assert values["cache_object"] == 12 + 8 * 8


def test_classes_are_units_and_then_eight_to_an_octave() -> None:
    units = [cache_units(of) for of in range(1, 41)]
    assert units == [*range(1, 17), *range(18, 33, 2), *range(36, 65, 4), *range(72, 129, 8)]
    assert [cache_class(size) for size in units] == [*range(1, 41)]
    assert [cache_class(size) for size in (17, 19, 35, 127)] == [16, 17, 24, 39]


def test_the_last_class_holds_the_largest_request_that_is_cached() -> None:
    for up_to in (1, 16, 100, 512, 1000, 2048, 4096):
        values = policy(recipe(threads="cached", cache_up_to=up_to))
        assert up_to <= values["cache_largest"] <= max(16, up_to * 9 / 8)


@pytest.mark.parametrize(
    ("name", "cuts"),
    [("victim-bins", 1), ("all-round", 1), ("binary-buddy", 0), ("kingsley", 0), ("wifi-special-pools", 0)],
)
def test_one_pool_of_blocks_with_headers_is_cut(name: str, cuts: int) -> None:
    assert policy(recipe(name, threads="cached"))["cache_cuts"] == cuts


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        (
            "contiki-mmem",
            {"threads": "lock"},
            "objects of a compact pool move while other threads use them",
        ),
        ("victim-bins", {"threads": "cached", "align": 2}, 'valid with "align" 4, 8 or 16 and "link_bytes" 4'),
        ("victim-bins", {"threads": "cached", "cache_bytes": 1000}, "valid: 4096 and more"),
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
    assert "caches of threads <= 2048, 65536 bytes each" in recipe(threads="cached").summary()


def several_threads(calls: int, threads: int) -> Trace:
    """Threads that allocate, resize and free each other's objects, of many sizes and a few frequent ones."""
    draw = random.Random(calls)
    rows: list[tuple[int, int, int, int]] = []
    live: list[int] = []
    for call in range(calls):
        size = draw.choice([40, 100, 600, 1500, draw.randrange(3000)])
        kind = draw.random() + (0.2, -0.2)[call // 250 % 2]
        if not live or kind < 0.5:
            rows.append((0, call, size, draw.randrange(threads)))
            live.append(call)
        elif kind < 0.6:
            rows.append((2, draw.choice(live), size, draw.randrange(threads)))
        else:
            rows.append((3, live.pop(draw.randrange(len(live))), 0, draw.randrange(threads)))
    op, id_, sizes, tid = (list(column) for column in zip(*rows, strict=True))
    return Trace.from_columns(op=op, id=id_, size=sizes, tid=tid)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("victim-bins", {}),
        ("victim-bins", {"cache_bytes": 4096, "checks": "neighbours"}),
        ("victim-bins", {"cache_up_to": 64, "cache_bytes": 300}),
        ("all-round", {"align": 16}),
        ("tlsf", {"align": 8}),
        ("wifi-special-pools", {}),
        ("binary-buddy", {}),
    ],
)
def test_every_list_holds_blocks_of_its_class_and_no_more_than_it_may(name: str, keys: dict[str, object]) -> None:
    trace = several_threads(2000, 3)
    heap = recipe(name, threads="cached", **keys)
    whole = replay(trace, heap, check_invariants=True)
    assert whole["failed"] == 0
    scarce = replay(trace, heap, arena=int(known(whole["footprint_bytes"])) * 7 // 8, check_invariants=True)
    assert known(scarce["footprint_bytes"]) < known(whole["footprint_bytes"])


def test_what_one_thread_frees_another_is_given() -> None:
    def hand_over(objects: int) -> Trace:
        sizes = [100, 700, 1500] * objects
        calls = [call for i in range(len(sizes)) for call in ((0, i, sizes[i], 1), (3, i, 0, 2))]
        op, id_, size, tid = (list(column) for column in zip(*calls, strict=True))
        return Trace.from_columns(op=op, id=id_, size=size, tid=tid)

    heap = recipe(threads="cached")
    few, many = (replay(hand_over(objects), heap)["footprint_bytes"] for objects in (2000, 10_000))
    assert many == few
