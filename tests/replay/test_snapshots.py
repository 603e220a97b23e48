"""Snapshots of a replay: the blocks of the arena at each stop, their objects, and the arena needed without one."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from case_tables import each
from recipes_random import random_recipe

from heapwright._native import lib
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import peak_blockers, snapshots
from heapwright._replay.replay import replay
from heapwright._report.animation import KINDS, kinds_of
from heapwright._traces.profile import births_and_deaths
from heapwright._traces.trace import Trace

MALLOC, CALLOC, REALLOC, FREE = range(4)
SIMPLE = Recipe.from_dict({"align": 4, "pool": [{"kind": "general"}]})


def trace_of(*calls: tuple[int, int, int]) -> Trace:
    op, id_, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=id_, size=size, name="calls")


def random_trace(seed: int, calls: int = 400) -> Trace:
    draw = random.Random(seed)
    rows: list[tuple[int, int, int]] = []
    live: list[int] = []
    while len(rows) < calls:
        kind = draw.random()
        if kind < 0.5 or not live:
            live.append(len(rows))
            rows.append((draw.choice([MALLOC, CALLOC]), live[-1], draw.choice([0, 8, 40, 300, draw.randrange(2000)])))
        elif kind < 0.6:
            rows.append((REALLOC, draw.choice(live), draw.randrange(1500)))
        else:
            rows.append((FREE, live.pop(draw.randrange(len(live))), 0))
    return trace_of(*rows)


def arena_of(trace: Trace, recipe: Recipe) -> int:
    return int(replay(trace, recipe)["footprint_bytes"] or 0)


def objects_after(trace: Trace, call: int) -> dict[int, int]:
    """Bytes requested at allocation, of all live objects after a call."""
    live: dict[int, tuple[int, int]] = {}
    for at in range(call + 1):
        id_, size = int(trace.id[at]), int(trace.size[at])
        if trace.op[at] == FREE:
            del live[id_]
        else:
            live[id_] = (live[id_][0] if trace.op[at] == REALLOC else at, size)
    return dict(live.values())


@each("seed", range(30))
def test_frames_cover_the_arena_and_hold_every_live_object(seed: int) -> None:
    trace, draw = random_trace(seed), random.Random(seed)
    # What was refused does not live: a recipe that serves all.
    recipe = next(item for item in iter(lambda: random_recipe(draw), None) if not replay(trace, item)["failed"])
    size = arena_of(trace, recipe)
    birth, death = births_and_deaths(trace)
    deaths = dict(zip(birth.tolist(), death.tolist(), strict=True))
    for frame in snapshots.frames(trace, recipe, size, [0, 7, 8, 150, len(trace) - 1]):
        blocks = frame.blocks
        ends = blocks["offset"].astype(int) + blocks["size"]
        assert blocks["offset"].tolist() == [0, *ends[:-1].tolist()]
        assert ends[-1] == size
        lives = blocks[blocks["birth"] >= 0]
        assert dict(zip(lives["birth"].tolist(), lives["requested"].tolist(), strict=True)) == objects_after(
            trace, frame.call
        )
        assert [deaths[born] for born in lives["birth"].tolist()] == lives["death"].tolist()
        assert set(blocks["state"][blocks["birth"] >= 0].tolist()) <= {lib.HW_RUN_USED}


def test_the_arena_grows_last_at_the_call_that_needs_more_than_all_before() -> None:
    trace = trace_of((MALLOC, 1, 100), (FREE, 1, 0), (MALLOC, 2, 60), (MALLOC, 3, 200), (FREE, 2, 0), (MALLOC, 4, 8))
    assert snapshots.last_growth(trace, SIMPLE, arena_of(trace, SIMPLE)) == 3
    fixed = Recipe.from_dict({"align": 4, "pool": [{"kind": "fixed", "sizes": [200], "counts": [4]}]})
    assert snapshots.last_growth(trace, fixed, arena_of(trace, fixed)) is None


def test_holes_are_what_is_free_between_objects_and_end_where_memory_was_never_used() -> None:
    trace = trace_of(*((MALLOC, at, 96) for at in range(6)), (FREE, 1, 0), (FREE, 3, 0), (FREE, 2, 0))
    for recipe in (SIMPLE, zoo.load("freertos-heap4")):
        size = arena_of(trace, recipe) + 4096
        within = snapshots.regions(recipe, size)
        (frame,) = snapshots.frames(trace, recipe, size, [len(trace) - 1])
        (hole,) = snapshots.holes(frame.blocks, frame.extent, within)
        lives = frame.blocks[frame.blocks["birth"] >= 0]
        before, after = lives[lives["birth"] == 0][0], lives[lives["birth"] == 4][0]
        assert hole["offset"] == before["offset"] + before["size"]
        assert hole["offset"] + hole["size"] == after["offset"]


def test_what_is_free_and_was_never_used_is_no_hole() -> None:
    extent = snapshots.Extent(100, 400, None)
    rows = [(0, 40), (60, 80), (100, 20), (100, 300), (100, 330), (390, 30), (400, 10)]
    blocks = np.array([(at, size, 0, lib.HW_RUN_FREE, 0) for at, size in rows], snapshots.PIECE_TYPE)
    start, end = snapshots.used_part(blocks, extent)
    used = [(int(item), int(other)) for item, other in zip(start, end, strict=True) if item < other]
    assert used == [(0, 40), (60, 100), (400, 430), (400, 420), (400, 410)]


def test_no_region_is_shared_where_the_arena_has_no_room_for_it() -> None:
    pools = [{"kind": "fixed", "sizes": [16], "counts": [10], "max_size": 16}, {"kind": "general"}]
    recipe = Recipe.from_dict({"align": 8, "pool": pools})
    least = snapshots.regions(recipe, 1 << 20)[1].start
    assert [len(snapshots.regions(recipe, size)) for size in (least, least + 8)] == [1, 2]


def pieces_of(*rows: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
    """(offset, size, header, state) of each."""
    return np.array([(*row, 0) for row in rows], snapshots.PIECE_TYPE)


def test_shares_of_a_cell_add_up_by_bytes() -> None:
    header, used, free = lib.HW_RUN_HEADER, lib.HW_RUN_USED, lib.HW_RUN_FREE
    shares = snapshots.cell_shares(pieces_of((0, 15, 0, used), (15, 25, 5, used), (40, 60, 0, free)), 100, 10)
    assert shares.sum(axis=0) == pytest.approx(1)
    assert shares[used] == pytest.approx([1, 0.5, 1, 1, 0, 0, 0, 0, 0, 0])
    assert shares[header] == pytest.approx([0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0])
    within = snapshots.cell_shares(pieces_of((12, 3, 0, used), (90, 50, 0, free)), 100, 10)
    assert within[used] == pytest.approx([0, 0.3, 0, 0, 0, 0, 0, 0, 0, 0])
    assert within[free] == pytest.approx([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), "what lies beyond counts for nothing"


def test_every_byte_of_a_cell_is_counted_once() -> None:
    draw = np.random.default_rng(3)
    for _ in range(50):
        sizes = draw.integers(1, 200, 40)
        offsets = np.cumsum(sizes) - sizes
        rows, extent = int(draw.integers(1, 30)), int(draw.integers(1, 2 * sizes.sum()))
        states = draw.integers(6, size=40)
        shares = snapshots.cell_shares(pieces_of(*zip(offsets, sizes, [0] * 40, states, strict=True)), extent, rows)
        cell = extent / rows
        for state in range(6):
            spans = [(at, at + size) for at, size, of in zip(offsets, sizes, states, strict=True) if of == state]
            for row in range(rows):
                edges = row * cell, (row + 1) * cell
                expected = sum(max(min(end, edges[1]) - max(at, edges[0]), 0) for at, end in spans) / cell
                assert shares[state, row] == pytest.approx(expected, abs=1e-4)


def test_regions_are_those_of_pools_with_a_size_and_the_rest_that_others_share() -> None:
    pools = [
        {"kind": "quick", "sizes": [40]},
        {"kind": "fixed", "sizes": [16, 64], "counts": [10, 5], "max_size": 64},
        {"kind": "general", "region": 2000, "max_size": 200},
        {"kind": "buddy", "region": 4096, "max_size": 400},
        {"kind": "general"},
    ]
    recipe = Recipe.from_dict({"align": 8, "pool": pools})
    result = snapshots.regions(recipe, 100_000)
    assert [region.pools for region in result] == [(1,), (2,), (3,), (4,)]
    assert result[0].end - result[0].start == 10 * 16 + 5 * 64
    assert [region.end - region.start for region in result[1:3]] == [2000, 4096]
    assert result[3].end == 100_000
    assert all(item.end <= other.start for item, other in pairwise(result))


def test_an_animation_may_be_interrupted_by_other_replays_of_its_thread() -> None:
    trace = random_trace(1)
    size, calls = int(replay(trace, SIMPLE)["footprint_bytes"] or 0), range(0, len(trace), 50)
    whole = [frame.blocks for frame in snapshots.frames(trace, SIMPLE, size, calls)]
    for frame, blocks in zip(snapshots.frames(trace, SIMPLE, size, calls), whole, strict=True):
        replay(random_trace(2), SIMPLE)
        assert np.array_equal(frame.blocks, blocks)
    assert len(whole) > 3


# --- without an object ------------------------------------------------------------------------------------------------


def without(trace: Trace, birth: int) -> Trace:
    """The trace without the calls of the object that a call makes, made again of its columns."""
    number, _ = trace.objects()
    kept = number != number[birth]
    return Trace.from_columns(op=trace.op[kept], id=trace.id[kept], size=trace.size[kept], name="rest")


@pytest.mark.parametrize("heap", ["victim-bins", "tlsf", "newlib-nano", "kingsley", "wifi-special-pools", "heaplib"])
def test_leaving_an_object_out_is_replaying_the_trace_without_it(heap: str) -> None:
    trace, recipe = random_trace(3, calls=1500), zoo.load(heap)
    needed = arena_of(trace, recipe)
    birth, death = births_and_deaths(trace)
    for at in random.Random(heap).sample(range(len(birth)), 6):
        lives = int(birth[at]), int(death[at])
        result = peak_blockers._without(trace, recipe, lives, needed)
        rest = replay(without(trace, lives[0]), recipe)
        assert result is not None
        assert result.arena == rest["footprint_bytes"]
        assert result.gain == needed - result.arena - result.bytes


def pinned() -> Trace:
    """A permanent object above memory that is free when the arena grows for the last time."""
    calls = [(MALLOC, 0, 2000), (MALLOC, 1, 64), (MALLOC, 2, 2000), (FREE, 0, 0), (FREE, 2, 0), (MALLOC, 3, 4000)]
    return trace_of(*calls, *(call for at in range(10, 20) for call in ((MALLOC, at, 16), (FREE, at, 0))))


def capped(trace: Trace, recipe: Recipe) -> Any:
    size = arena_of(trace, recipe)
    grown = snapshots.last_growth(trace, recipe, size)
    assert grown is not None
    (frame,) = snapshots.frames(trace, recipe, size, [grown])
    return peak_blockers.cap(trace, recipe, frame, snapshots.regions(recipe, size), size)


def test_the_object_between_the_holes_is_what_caps_the_arena() -> None:
    result = capped(pinned(), SIMPLE)
    assert (result.birth, result.death, result.requested, result.tried) == (1, None, 64, 1)
    assert result.hole == 2004
    # Without it the holes join: what is above it is not needed.
    assert result.gain > 1900
    assert result.chance < result.gain


def test_an_object_lives_long_from_a_quarter_of_the_calls_on() -> None:
    blocks = np.zeros(5, [("birth", "i8"), ("death", "i8")])
    blocks["birth"], blocks["death"] = [10, 10, 10, -1, 75], [35, 34, -1, 90, 100]
    assert peak_blockers.is_long(blocks, 100).tolist() == [True, False, True, False, True]


def test_nothing_caps_an_arena_without_holes_or_without_long_lives() -> None:
    full = trace_of(*((MALLOC, at, 100) for at in range(10)))
    assert capped(full, SIMPLE) is None
    short = [(MALLOC, 0, 2000), (MALLOC, 1, 64), (FREE, 0, 0), (MALLOC, 2, 4000), (FREE, 1, 0), (FREE, 2, 0)]
    busy = [call for at in range(10, 40) for call in ((MALLOC, at, 16), (FREE, at, 0))]
    assert capped(trace_of(*short, *busy), SIMPLE) is None


def test_an_object_is_tried_at_the_largest_size_that_it_is_asked_for() -> None:
    trace = trace_of((MALLOC, 0, 50), (REALLOC, 0, 301), (REALLOC, 0, 20), (FREE, 0, 0), (MALLOC, 0, 999))
    result = peak_blockers._without(trace, SIMPLE, (0, 3), 5000)
    assert result is not None
    assert (result.requested, result.bytes) == (301, 304)


def test_free_memory_is_unused_from_where_none_was_used_to_where_it_is() -> None:
    blocks = np.zeros(4, snapshots.BLOCK_TYPE)
    blocks["offset"], blocks["size"] = (0, 64, 80, 160), (64, 16, 80, 32)
    blocks["state"], blocks["birth"], blocks["death"] = lib.HW_RUN_FREE, -1, -1
    output = kinds_of(snapshots.Frame(0, snapshots.Extent(64, 160, None), blocks), 100)
    assert [KINDS[kind] for kind in output] == ["free", "unused", "unused", "free"]
