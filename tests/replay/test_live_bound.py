"""Bounds on what is live at once: the arena that is proved for any order, and the orders that come near it."""

from __future__ import annotations

import random

import pytest
from case_tables import each

from heapwright._explore.default_space import bounded_recipes
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay.arena_sizes import fit, server
from heapwright._replay.worst_case import worst_case_of
from heapwright._replay.worst_order import worst_order
from heapwright._traces.live_bound import KEY, LiveBound, ObjectClass
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

RING = LiveBound.from_classes([ObjectClass(16, 0, 1514)])
ROUND_ROBIN = LiveBound.from_classes([ObjectClass(16, 16, 1476), ObjectClass(16, 24, 24)])


def drawn(bound: LiveBound, seed: int, calls: int = 600) -> Trace:
    """Objects of the bound's classes in any order, near its limit most of the time."""
    draw, rows, number = random.Random(seed), list[tuple[int, int, int]](), 0
    live: list[list[int]] = [[] for _ in bound.classes]
    favourites = [draw.randint(item.least, item.most) for item in bound.classes for _ in range(3)]
    for _ in range(calls):
        at = draw.randrange(len(bound.classes))
        kind = bound.classes[at]
        if len(live[at]) < kind.objects and draw.random() < 0.7:
            some = [size for size in favourites if kind.least <= size <= kind.most]
            size = draw.choice([kind.most, draw.randint(kind.least, kind.most), *some])
            rows.append((MALLOC, number, size))
            live[at].append(number)
            number += 1
        elif live[at]:
            rows.append((FREE, live[at].pop(draw.randrange(len(live[at]))), 0))
    op, numbers, sizes = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=numbers, size=sizes, metadata={KEY: bound.text})


def test_a_bound_is_read_from_a_trace_that_keeps_it_and_from_no_other() -> None:
    def trace(size: int, text: str) -> Trace:
        return Trace.from_columns(op=[MALLOC, MALLOC], id=[0, 1], size=[size, 1], metadata={KEY: text})

    assert LiveBound.of(trace(1514, RING.text)) == RING
    assert LiveBound.of(trace(1515, RING.text)) is None, "larger than what is said"
    assert LiveBound.of(trace(9, "[[1, 0, 9]]")) is None, "more than what is said"
    for damaged in ("", "{}", "[]", "[[1, 2]]", "[[0, 0, 9]]", '[["a", 0, 9]]', "[[1, 9, 8]]"):
        assert LiveBound.of(trace(8, damaged)) is None, damaged
    assert str(ROUND_ROBIN) == "16 of up to 1,476 bytes and 16 of 24 bytes"
    assert (RING.objects, RING.payload_bytes) == (16, 16 * 1514)


def test_fixed_blocks_are_one_for_each_object_that_may_come_to_them() -> None:
    """A packet of 16 to 24 bytes takes a node's block, so there are blocks for nodes and for such packets."""
    assert RING.fixed_blocks(8) == ((1520,), (16,))
    assert ROUND_ROBIN.fixed_blocks(8) == ((24, 1480), (32, 16))
    assert ROUND_ROBIN.fixed_blocks(16) == ((32, 1488), (32, 16))


@each("bound", [RING, ROUND_ROBIN])
def test_fixed_blocks_are_proved_exactly(bound: LiveBound) -> None:
    """Every order is served, and some order needs all bytes."""
    (recipe,) = bounded_recipes([bound], 8)
    proved = worst_case_of(bound, recipe)
    assert proved is not None and proved.theorem == "a block for each object"
    order, needed = worst_order(bound, recipe)
    assert needed == proved.bytes
    assert fit(order, recipe) == proved.bytes
    serves = server(order, recipe, policy_struct(recipe))
    assert serves(proved.bytes) and not serves(proved.bytes - 8)
    for seed in range(20):
        assert server(drawn(bound, seed), recipe, policy_struct(recipe))(proved.bytes)


def test_one_block_too_few_of_a_size_is_not_proved() -> None:
    few = Recipe.parse('align = 8\n[[pool]]\nkind = "fixed"\nsizes = [24, 1480]\ncounts = [31, 16]\n')
    assert worst_case_of(ROUND_ROBIN, few) is None
    lends = 'align = 8\n[[pool]]\nkind = "fixed"\nsizes = [24, 1480]\ncounts = [32, 16]\nfall_through = true\n'
    assert worst_case_of(ROUND_ROBIN, Recipe.parse(lends)) is None, "a small object may keep a large block"


def test_no_order_needs_more_than_what_is_proved() -> None:
    """Of all reference allocators with a proof, on the worst orders known and on random ones of two queues."""
    tried = 0
    for name in catalogue.names():
        recipe = catalogue.load(name)
        struct = policy_struct(recipe)
        for bound in (RING, ROUND_ROBIN, LiveBound.from_classes([ObjectClass(70, 1, 300)])):
            if (proved := worst_case_of(bound, recipe)) is None:
                continue
            order, needed = worst_order(bound, recipe)
            assert needed <= proved.bytes, (name, str(bound))
            for trace in (order, *(drawn(bound, seed) for seed in range(3))):
                assert server(trace, recipe, struct)(proved.bytes), (name, str(bound), trace.name)
            tried += 1
    assert tried > 60


@each(
    "name",
    [
        "first-fit-fast-free",
        "best-fit-slow-free",
        "freertos-heap4",
        "lea-2.7.2",
        "tlsf",
        "lwip-mem",
        "exact-bins",
        "small",
    ],
)
def test_of_one_ring_an_order_comes_within_a_tenth_of_what_is_proved(name: str) -> None:
    recipe = catalogue.load(name)
    proved = worst_case_of(RING, recipe)
    assert proved is not None
    assert worst_order(RING, recipe)[1] >= 0.9 * proved.bytes


@pytest.mark.parametrize("name", ["newlib-nano", "freertos-heap2", "sos"])
def test_heaps_that_never_merge_or_grow_by_more_than_asked_have_no_proof(name: str) -> None:
    assert worst_case_of(RING, catalogue.load(name)) is None
