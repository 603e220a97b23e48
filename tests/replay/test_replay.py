"""Replay: metrics, pictures and arenas of traces short enough to be worked out by hand.

SIMPLE is a heap whose every step can be followed: 20 bytes of control data (refused requests, limit, high-water mark,
top, list head), blocks with a 4-byte header in multiples of 4, at least 8 (header and link), free blocks in one single
list, last freed first, first fit, never merged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from case_tables import each
from metric_values import known

from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.arena_sizes import (
    depends_on_arena,
    fit,
    fit_steps,
    footprint,
    footprint_where,
    high_water_mark,
    server,
    smallest_arena,
)
from heapwright._replay.engine import run
from heapwright._replay.pictures import HEAP_MAP_STATES, heap_map, metadata, timeline
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Call = tuple[int, str, int]

CONTROL = 20
SIMPLE = Recipe.from_dict(
    {
        "name": "simple",
        "align": 4,
        "pool": [
            {
                "kind": "general",
                "header": 4,
                "boundary_tags": False,
                "free_list": "single",
                "order": "lifo",
                "fit": "first",
                "split": "always",
                "coalesce": "never",
            }
        ],
    }
)

# What the calls of SIMPLE cost in metadata accesses, see csrc/pool_general.h.
FRESH = 9  # list head | top, high | top, limit, high; stores high, top, word
REUSED = 5  # list head, word | next; stores head, word
SPLIT = 7  # list head, word | next; stores head, next, word, the rest's word
PASSED = 2  # every free block that is too small: word, next
FREED = 5  # word | list head; stores word, head, next
REFUSED = 7  # list head | top, high | top, limit | count; stores count


def trace_of(*calls: Call, **columns: Any) -> Trace:
    """A trace of (operation, name of the object, size)."""
    names = sorted({name for _, name, _ in calls})
    op, objects, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=[names.index(name) for name in objects], size=size, **columns)


def accesses(*calls: Call, arena: int | None = None) -> Any:
    return replay(trace_of(*calls), SIMPLE, arena=arena, check_invariants=True)["accesses"]


#   offset:  20        36                  80                       136
#            | a: 4+12 | b: 4+40           | c: 4+52                |      a is free at the end
FOUR_CALLS: tuple[Call, ...] = ((MALLOC, "a", 10), (MALLOC, "b", 40), (FREE, "a", 0), (MALLOC, "c", 50))


# ---- metrics -------------------------------------------------------------------------------------------------------


def test_bytes_of_four_calls() -> None:
    result = replay(trace_of(*FOUR_CALLS), SIMPLE, check_invariants=True)
    assert result["requested_peak_bytes"] == 90
    assert result["footprint_bytes"] == 136
    assert result["header_bytes"] == 3 * 4
    assert result["internal_bytes"] == 2, "c has 52 bytes for 50; a is no longer in use"
    assert result["external_bytes"] == 12, "a's payload"
    assert result["allocated_peak_bytes"] == 136 - CONTROL - 12
    assert result["fragmentation"] == pytest.approx(104 / 90 - 1)
    assert result["fragmentation_with_headers"] == pytest.approx(116 / 90 - 1)
    assert result["lower_bound_bytes"] == 40 + 52
    assert (result["failed"], result["moved_bytes"], result["admitted_fraction"]) == (0, 0, 1.0)
    assert (result["smallest_arena_bytes"], result["ns_per_event"]) == (None, None)


def test_the_split_is_taken_when_the_footprint_is_first_reached() -> None:
    """Later holes below the same footprint change nothing."""
    later = replay(trace_of(*FOUR_CALLS, (FREE, "b", 0), (MALLOC, "d", 1)), SIMPLE)
    for key in ("footprint_bytes", "internal_bytes", "external_bytes", "header_bytes", "allocated_peak_bytes"):
        assert later[key] == replay(trace_of(*FOUR_CALLS), SIMPLE)[key]


def test_accesses_of_single_calls() -> None:
    a, b = (MALLOC, "a", 40), (MALLOC, "b", 40)
    assert accesses(a) == FRESH
    assert accesses(a, b) == 2 * FRESH
    assert accesses(a, (FREE, "a", 0)) == FRESH + FREED
    assert accesses(a, (FREE, "a", 0), b) == FRESH + FREED + REUSED
    assert accesses(a, (FREE, "a", 0), (MALLOC, "b", 20)) == FRESH + FREED + SPLIT
    assert accesses(a, (FREE, "a", 0), (MALLOC, "b", 44)) == FRESH + FREED + PASSED + FRESH
    assert accesses(a, (MALLOC, "b", 4000), arena=100) == FRESH + REFUSED
    assert accesses(a, (CALLOC, "b", 40)) == 2 * FRESH, "zeros are payload"


def test_accesses_of_a_realloc_that_moves() -> None:
    """It reads a's word and the top, takes a fresh block, reads a's word for what to copy, copies 3 words, frees a."""
    calls: tuple[Call, ...] = ((MALLOC, "a", 10), (MALLOC, "b", 10), (REALLOC, "a", 100))
    result = replay(trace_of(*calls), SIMPLE, check_payload=True)
    assert result["accesses"] == 2 * FRESH + 2 + FRESH + 1 + 2 * 3 + FREED
    assert result["accesses_realloc_max"] == 2 + FRESH + 1 + FREED, "its copy is booked apart"
    assert (result["accesses_malloc_max"], result["accesses_malloc_p999"]) == (FRESH, FRESH), "of mallocs alone"
    assert result["accesses_free_max"] == 0
    assert result["moved_bytes"] == 12, "all that a's block holds"
    assert replay(trace_of(*calls[:2], (REALLOC, "b", 100)), SIMPLE)["moved_bytes"] == 0, "the last block grows"


def test_reads_and_writes() -> None:
    result = replay(trace_of(*FOUR_CALLS), SIMPLE)
    fresh, freed, passed = (6, 3), (2, 3), (2, 0)
    assert result["reads"] == 3 * fresh[0] + freed[0] + passed[0]
    assert result["writes"] == 3 * fresh[1] + freed[1] + passed[1]
    assert result["accesses"] == 3 * FRESH + FREED + PASSED


@pytest.mark.parametrize(("mallocs", "p999"), [(999, FRESH + 10 * PASSED), (1000, FRESH), (2000, FRESH)])
def test_the_percentile_leaves_out_one_call_in_a_thousand(mallocs: int, p999: int) -> None:
    """One malloc is dear: it passes ten free blocks."""
    calls: list[Call] = [(MALLOC, f"o{number}", 8) for number in range(mallocs - 1)]
    calls += [(FREE, f"o{number}", 0) for number in range(10)]
    result = replay(trace_of(*calls, (MALLOC, "dear", 100)), SIMPLE)
    assert result["accesses_malloc_max"] == FRESH + 10 * PASSED
    assert result["accesses_malloc_p999"] == p999
    assert (result["accesses_free_max"], result["accesses_free_p999"]) == (FREED, FREED)


def test_costs_beyond_every_table_have_a_percentile_too() -> None:
    """3,000 mallocs that pass 2,500 free blocks each, behind 2,500 cheap ones."""
    calls: list[Call] = [(MALLOC, f"o{number:04}", 8) for number in range(2500)]
    calls += [(FREE, f"o{number:04}", 0) for number in range(2500)]
    calls += [(MALLOC, f"p{number:04}", 100) for number in range(3000)]
    result = replay(trace_of(*calls), SIMPLE)
    assert result["accesses_malloc_max"] == FRESH + 2500 * PASSED
    assert result["accesses_malloc_p999"] == FRESH + 2500 * PASSED


def test_of_different_costs_beyond_every_table_the_percentile_is_exact() -> None:
    """400 mallocs of which each passes one free block more than the one before: 2 of 2,900 calls cost more."""
    calls: list[Call] = [(MALLOC, f"o{number:04}", 8) for number in range(2500)]
    calls += [(FREE, f"o{number:04}", 0) for number in range(2100)]
    for number in range(2100, 2500):
        calls += [(FREE, f"o{number:04}", 0), (MALLOC, f"p{number:04}", 100)]
    result = replay(trace_of(*calls), SIMPLE)
    assert result["accesses_malloc_max"] == FRESH + 2500 * PASSED
    assert result["accesses_malloc_p999"] == FRESH + 2498 * PASSED


def test_utilisation_weighs_calls_where_there_are_no_times() -> None:
    mean = (10 + 50 + 40 + 90) / 4
    result = replay(trace_of(*FOUR_CALLS), SIMPLE)
    assert result["utilisation"] == pytest.approx(mean / 136)
    assert result["pool_utilisation"] == pytest.approx(mean / 104)
    in_arena = replay(trace_of(*FOUR_CALLS), SIMPLE, arena=200)
    assert in_arena["utilisation"] == pytest.approx(mean / 200)
    assert in_arena["pool_utilisation"] == pytest.approx(mean / (200 - CONTROL - 12))


def test_utilisation_weighs_time_where_there_is_one() -> None:
    mean = (10 * 10 + 20 * 50 + 30 * 40) / 60
    result = replay(trace_of(*FOUR_CALLS, ts_us=[5, 15, 35, 65]), SIMPLE)
    assert result["utilisation"] == pytest.approx(mean / 136)
    assert result["pool_utilisation"] == pytest.approx(mean / 104)


def test_the_lower_bound_rounds_every_object() -> None:
    trace = trace_of((MALLOC, "a", 0), (MALLOC, "b", 5), (REALLOC, "b", 17), (FREE, "a", 0), (MALLOC, "c", 1))
    assert trace.lower_bound(1) == 1 + 17
    assert trace.lower_bound(4) == 4 + 20
    assert trace.lower_bound(16) == 16 + 32


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_later_calls_of_a_refused_object_are_skipped() -> None:
    trace = trace_of(
        (MALLOC, "a", 10), (MALLOC, "b", 1000), (REALLOC, "b", 20), (FREE, "b", 0), (MALLOC, "c", 20), (FREE, "a", 0)
    )
    result = replay(trace, SIMPLE, arena=CONTROL + 40, check_invariants=True)
    assert result["failed"] == 1
    assert result["admitted_fraction"] == pytest.approx(30 / 1030)
    assert result["requested_peak_bytes"] == 30
    assert result["accesses"] == 2 * FRESH + REFUSED + FREED
    assert result["footprint_bytes"] == CONTROL + 16 + 24


@each("recipe", zoo.recipes(), ids=lambda recipe: recipe.name)
def test_empty_objects_are_served_as_one_byte(recipe: Recipe) -> None:
    """Most heaps' arithmetic does that by itself, and their code does not look for it."""
    op, id = [MALLOC] * 3 + [FREE, MALLOC, REALLOC], [1, 2, 3, 2, 4, 1]
    empty, item = (Trace.from_columns(op=op, id=id, size=[size, size, 40, 0, size, 60]) for size in (0, 1))
    result, expected = (replay(trace, recipe, arena=1 << 20, check_invariants=True) for trace in (empty, item))
    for key in ("footprint_bytes", "reads", "writes", "failed"):
        assert result[key] == expected[key]


def test_a_resize_covers_no_more_than_it_keeps() -> None:
    """Where all memory is one free block, an object that grows takes it whole and gives the rest back."""
    recipe = Recipe.from_dict({"align": 4, "pool": [{"kind": "general", "top": "list"}]})
    trace = Trace.from_columns(op=[MALLOC, REALLOC], id=[1, 1], size=[100, 1000])
    result = replay(trace, recipe, arena=1 << 20)
    assert known(result["footprint_bytes"]) == known(replay(trace, recipe, arena=1 << 16)["footprint_bytes"]) < 1100


def test_a_failed_realloc_leaves_the_object_as_it_was() -> None:
    trace = trace_of((MALLOC, "a", 40), (MALLOC, "b", 8), (REALLOC, "a", 5000), (REALLOC, "a", 12), (FREE, "a", 0))
    result = replay(trace, SIMPLE, arena=CONTROL + 100, check_invariants=True)
    assert result["failed"] == 1
    assert result["requested_peak_bytes"] == 48
    assert result["admitted_fraction"] == pytest.approx((40 + 8 + 12) / (40 + 8 + 5000 + 12))
    assert result["moved_bytes"] == 0


def test_what_no_arena_can_hold_is_refused() -> None:
    trace = Trace.from_columns(op=[MALLOC] * 3, id=[0, 1, 2], size=[1 << 31, 8, 8], align=[0, 1 << 31, 64])
    result = replay(trace, SIMPLE, check_invariants=True)
    assert result["failed"] == 2
    assert result["requested_peak_bytes"] == 8


def test_an_arena_that_cannot_hold_the_control_data() -> None:
    trace = trace_of(*FOUR_CALLS)
    for arena in (0, CONTROL - 1):
        with pytest.raises(HeapwrightError, match=rf"simple: .*20 bytes.*has {arena}; give it a larger one"):
            replay(trace, SIMPLE, arena=arena)
        with pytest.raises(HeapwrightError, match="give it a larger one"):
            metadata(trace, SIMPLE, arena)
    assert replay(trace, SIMPLE, arena=CONTROL)["failed"] == 3


@pytest.mark.parametrize(
    ("pool", "ends", "need"),
    [
        ({"kind": "compact", "header": 15}, 33, 33),
        ({"kind": "partition"}, 32, 32),
        ({"kind": "fixed", "sizes": [16], "counts": "grow", "header": 5}, 27, 27),  # payloads from 32 on
    ],
)
def test_an_arena_holds_the_control_data_at_least(pool: dict[str, Any], ends: int, need: int) -> None:
    recipe = Recipe.from_dict({"name": "aligned", "align": 16, "pool": [pool]})
    assert policy(recipe)["fixed_end"] == ends
    trace = trace_of((MALLOC, "a", 1 << 31))
    assert replay(trace, recipe, arena=need)["failed"] == 1
    with pytest.raises(HeapwrightError, match=f"aligned: .*need {need} bytes, the arena has {need - 1};"):
        replay(trace, recipe, arena=need - 1)
    drawn = heap_map(trace, recipe, columns=1)
    assert drawn["footprint"] == drawn["blocks"]["size"].sum() == need


# ---- the smallest arena --------------------------------------------------------------------------------------------


def test_the_smallest_arena_of_a_heap_that_grows_at_its_top() -> None:
    trace = trace_of(*FOUR_CALLS)
    assert fit(trace, SIMPLE) == 136
    assert fit(trace, SIMPLE, step=50) == 150
    assert replay(trace, SIMPLE, fit=True)["smallest_arena_bytes"] == 136
    assert replay(trace, SIMPLE, arena=136)["failed"] == 0
    assert replay(trace, SIMPLE, arena=135)["failed"] == 1


def test_the_smallest_arena_may_be_smaller_than_the_footprint() -> None:
    """In an ample arena b grows over the top although the hole a would do for it; in a tight one it moves there."""
    recipe = Recipe.from_dict(
        {"align": 4, "pool": [{"kind": "general", "boundary_tags": False, "free_list": "single"}]}
    )
    trace = trace_of((MALLOC, "a", 200), (MALLOC, "b", 40), (FREE, "a", 0), (REALLOC, "b", 196))
    footprint = replay(trace, recipe)["footprint_bytes"]
    smallest = fit(trace, recipe)
    assert footprint == CONTROL + 204 + 200
    assert smallest == CONTROL + 204 + 44


def test_no_arena_serves_more_than_the_classes_hold() -> None:
    recipe = Recipe.from_dict({"align": 4, "pool": [{"kind": "fixed", "sizes": [16], "counts": [2]}]})
    trace = trace_of((MALLOC, "a", 16), (MALLOC, "b", 16), (MALLOC, "c", 16))
    assert fit(trace, recipe) is None
    assert replay(trace, recipe, fit=True)["smallest_arena_bytes"] is None


@pytest.mark.parametrize("guess", [0, 40, 96, 100, 104, 1000])
@pytest.mark.parametrize("enough", [None, 104, 4096])
def test_the_search_finds_the_one_threshold(guess: int, enough: int | None) -> None:
    tried: list[int] = []

    def serves(size: int) -> bool:
        tried.append(size)
        return size >= 100

    assert smallest_arena(serves, 40, guess, 8, enough) == 104
    assert all(size % 8 == 0 and 40 <= size <= max(guess, 200) for size in tried)


def test_a_right_guess_takes_two_probes() -> None:
    tried: list[int] = []

    def serves(size: int) -> bool:
        tried.append(size)
        return size >= 100

    assert smallest_arena(serves, 0, 100, 1) == 100
    assert tried == [100, 99]


def test_below_a_gap_the_search_ends_where_the_lower_neighbour_fails() -> None:
    result = smallest_arena(lambda size: 50 <= size < 60 or size >= 90, 0, 200, 1)
    assert result in (50, 90)


@pytest.mark.parametrize("unit", [1, 8])
def test_where_a_larger_arena_may_fail_the_first_success_from_below_counts(unit: int) -> None:
    tried: list[int] = []

    def serves(size: int) -> bool:
        tried.append(size)
        return 50_000 <= size < 50_800 or size >= 90_000

    assert smallest_arena(serves, 40_000, 90_000, unit, steps=128) == 50_000
    assert len(tried) < 300
    assert all(size % unit == 0 for size in tried)


def test_an_arena_that_is_known_to_do_ends_the_search() -> None:
    """Nothing below serves: it is not looked for in ever larger steps beyond what is known."""
    tried: list[int] = []

    def serves(size: int) -> bool:
        tried.append(size)
        return size >= 996

    assert smallest_arena(serves, 0, 100, 8, enough=1001, steps=64) == 1000
    assert max(tried) < 1001


def test_a_region_of_its_own_does_not_depend_on_the_arena() -> None:
    """The fresh memory of its free block has always the same size."""
    pool = {"kind": "general", "top": "list"}
    assert depends_on_arena(Recipe.from_dict({"pool": [pool]}))
    bounded = {**pool, "region": 4096, "max_size": 64}
    assert not depends_on_arena(Recipe.from_dict({"pool": [bounded, {"kind": "general"}]}))


@pytest.mark.parametrize(("top", "room", "tries"), [("extend", 1 << 20, 0), ("extend", 64, 1), ("list", 1 << 20, 1)])
def test_an_arena_with_room_to_spare_proves_what_a_short_one_would_do(top: str, room: int, tries: int) -> None:
    """Where only the end of the memory matters, no other replay is made unless that came near."""
    pool = {"kind": "general", "free_list": "single", "order": "address", "boundary_tags": False, "top": top}
    recipe = Recipe.from_dict({"pool": [pool]})
    trace, struct = trace_of(*FOUR_CALLS), policy_struct(recipe)
    result, arena = run(trace, recipe, struct, high_water_mark(struct, run(trace, recipe, struct, None)[0]) + room)
    tried: list[int] = []

    def serves(size: int) -> bool:
        tried.append(size)
        return server(trace, recipe, struct)(size)

    mark = high_water_mark(struct, result)
    assert footprint(trace, recipe, struct, result, arena, serves) == mark
    assert tried == [mark] * tries
    assert server(trace, recipe, struct)(mark)


# ---- pictures ------------------------------------------------------------------------------------------------------


def test_the_timeline_of_four_calls() -> None:
    result = timeline(trace_of(*FOUR_CALLS, ts_us=[0, 7, 8, 9]), SIMPLE)
    assert {key: values.tolist() for key, values in result.items()} == {
        "event": [0, 1, 2, 3],
        "ts_us": [0, 7, 8, 9],
        "requested": [10, 50, 40, 90],
        "allocated": [16, 60, 44, 100],
        "footprint": [36, 80, 80, 136],
    }


def test_peaks_survive_thinning() -> None:
    calls: list[Call] = []
    for number in range(5000):
        calls += [(MALLOC, f"o{number}", 9000 if number == 3210 else 50), (FREE, f"o{number}", 0)]
    result = timeline(trace_of(*calls), SIMPLE, points=40)
    assert len(result["event"]) == 2 * 19 + 2, "both extremes of every stretch, the first call and the last"
    assert result["event"][0] == 0 and result["event"][-1] == 9999
    assert result["requested"].max() == 9000
    assert result["requested"].min() == 0
    assert (np.diff(result["event"]) > 0).all()


def runs(found: dict[str, Any], column: int) -> list[tuple[int, int, str]]:
    """(offset, size, state) of a column."""
    blocks = found["blocks"][found["blocks"]["column"] == column]
    return [(int(block["offset"]), int(block["size"]), HEAP_MAP_STATES[block["state"]]) for block in blocks]


def test_the_heap_map_of_four_calls() -> None:
    result = heap_map(trace_of(*FOUR_CALLS), SIMPLE, columns=4)
    assert result["event"].tolist() == [0, 1, 2, 3]
    assert result["footprint"] == 136
    assert runs(result, 0) == [
        (0, 20, "control data"),
        (20, 4, "header"),
        (24, 12, "payload in use"),
        (36, 100, "untouched"),
    ]
    assert runs(result, 3) == [
        (0, 20, "control data"),
        (20, 4, "header"),
        (24, 12, "free"),
        (36, 4, "header"),
        (40, 40, "payload in use"),
        (80, 4, "header"),
        (84, 52, "payload in use"),
    ]


def test_the_heap_map_of_a_single_call() -> None:
    result = heap_map(trace_of((MALLOC, "a", 10)), SIMPLE)
    assert result["event"].tolist() == [0]
    assert set(result["blocks"]["column"]) == {0}


def test_the_heap_map_is_in_order_of_address_whatever_the_order_of_the_pools() -> None:
    """Growing classes lie at the arena's end, a region before the shared part; both stand first in a recipe."""
    classes = {"kind": "fixed", "sizes": [16], "counts": "grow", "header": 4, "max_size": 16}
    region = {"kind": "general", "region": 200, "max_size": 64}
    counted = {"kind": "fixed", "sizes": [500], "counts": [1], "min_size": 300}
    recipe = Recipe.from_dict({"align": 4, "pool": [classes, region, counted, {"kind": "general"}]})
    trace = trace_of((MALLOC, "a", 16), (MALLOC, "b", 60), (MALLOC, "c", 400), (MALLOC, "d", 100), (FREE, "a", 0))
    result = heap_map(trace, recipe, columns=5)
    assert len(result["event"]) == 5
    for column in range(5):
        drawn = runs(result, column)
        offsets = [offset for offset, _, _ in drawn]
        ends = [offset + size for offset, size, _ in drawn]
        assert offsets == [0, *ends[:-1]]
        assert ends[-1] == result["footprint"]
    used = [(size, state) for _, size, state in runs(result, 3) if state == "payload in use"]
    assert [size for size, _ in used] == [60, 500, 100, 16]
    assert runs(result, 4)[-1][1:] == (16, "free")


def test_a_map_with_more_runs_than_expected_is_whole() -> None:
    calls: list[Call] = [(MALLOC, f"o{number}", 8) for number in range(1200)]
    result = heap_map(trace_of(*calls), SIMPLE, columns=60)
    assert len(result["blocks"]) > 1 << 16
    for column in range(len(result["event"])):
        drawn = result["blocks"][result["blocks"]["column"] == column]
        assert int(drawn["size"].sum()) == result["footprint"]


# ---- what other programs replay ------------------------------------------------------------------------------------


def test_call_records_reuse_numbers_and_keep_alignments() -> None:
    trace = Trace.from_columns(
        op=[MALLOC, CALLOC, FREE, MALLOC, REALLOC],
        id=[70, 50, 70, 90, 90],
        size=[1, 2, 0, 3, 4],
        align=[64, 0, 0, 0, 0],
    )
    slots, records = trace.calls.slots, trace.calls.records()
    assert slots == 2
    assert records.dtype == np.uint32
    assert records.tolist() == [
        [0, 1, 64],
        [CALLOC << 30 | 1, 2, 0],
        [FREE << 30, 0, 0],
        [0, 3, 0],
        [REALLOC << 30, 4, 0],
    ]


def test_the_metadata_of_four_calls() -> None:
    content, marks = metadata(trace_of(*FOUR_CALLS), SIMPLE, 200)
    assert len(content) == len(marks) == 84
    assert np.flatnonzero(marks).tolist() == [*range(28), *range(36, 40), *range(80, 84)]
    words = content.view("<u4")
    assert words[:5].tolist() == [0, 200, 136, 136, 24], "refused, limit, high-water mark, top, first free payload"
    assert words[5:7].tolist() == [16, 0], "a: free, the only one"
    assert (words[9], words[20]) == (44 | 1, 56 | 1), "b and c: in use"


def test_replays_in_threads_do_not_meet() -> None:
    trace = trace_of(*FOUR_CALLS, *((MALLOC, f"x{number}", 7 * number) for number in range(500)))
    recipes = zoo.recipes() * 4
    expected = [replay(trace, recipe) for recipe in recipes]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda recipe: replay(trace, recipe), recipes)) == expected


def test_aligned_requests_find_the_same_addresses_in_every_arena() -> None:
    """The arena is aligned to a power of two beyond its size, for any address that the system gives."""
    count = 40
    trace = Trace.from_columns(op=[MALLOC] * count, id=range(count), size=[100] * count, align=[1 << 16] * count)
    recipe = zoo.load("exact-bins")
    expected = replay(trace, recipe, arena=1 << 23)
    with ThreadPoolExecutor(6) as threads:
        assert set(map(str, threads.map(lambda _: replay(trace, recipe, arena=1 << 23), range(12)))) == {str(expected)}


@pytest.mark.parametrize("name", ["lighttpd_server", "mosquitto_broker"])
def test_an_arena_of_the_footprint_serves_whatever_the_heap(name: str) -> None:
    trace = Trace.read(EXAMPLES / f"{name}.parquet")
    served = 0
    for heap in zoo.names():
        recipe = zoo.load(heap)
        result = replay(trace, recipe)
        if result["failed"] == 0:
            assert replay(trace, recipe, arena=int(result["footprint_bytes"] or 0))["failed"] == 0, heap
            served += 1
    assert served > 30


def test_a_region_that_stays_partly_empty_is_in_the_footprint() -> None:
    recipe = Recipe.parse("""
        align = 4
        [[pool]]
        kind = "fixed"
        sizes = [64]
        counts = [10]
        """)
    result = replay(Trace.from_columns(op=[0, 0], id=[1, 2], size=[64, 60]), recipe)
    control = int(policy(recipe)["control"])
    assert result["footprint_bytes"] == control + 640
    assert result["external_bytes"] == 8 * 64
    assert result["allocated_peak_bytes"] == 128


def test_where_the_arena_decides_the_footprint_is_one_that_serves() -> None:
    """TLSF passes by what is left of its one large block: the high-water mark of an ample arena is not enough."""
    trace, tlsf = Trace.read(EXAMPLES / "lighttpd_server.parquet"), zoo.load("tlsf")
    needed = int(replay(trace, tlsf)["footprint_bytes"] or 0)
    struct = policy_struct(tlsf)
    result, _ = run(trace, tlsf, struct, None)
    mark = high_water_mark(struct, result)
    assert known(replay(trace, tlsf, arena=mark)["failed"]) > 0
    assert mark < needed < 1.01 * mark
    assert replay(trace, tlsf, arena=2 * needed)["footprint_bytes"] == needed, "for any arena of the replay"


@pytest.mark.parametrize(("calls", "steps"), [(20_000, 512), (20_001, 128)])
def test_the_search_for_an_arena_is_as_fine_as_the_manual_says(calls: int, steps: int) -> None:
    assert fit_steps(Trace.from_columns(op=[MALLOC] * calls, id=range(calls), size=[8] * calls)) == steps


def test_no_arena_is_looked_for_that_serves_what_was_refused() -> None:
    heap, requested = zoo.load("freertos-heap4"), list[int]()
    struct = policy_struct(heap)

    def serves(arena: int) -> bool:
        requested.append(arena)
        return True

    used = [
        footprint_where(serves, heap, struct, SimpleNamespace(shared=4096, failed=item), 1 << 20) for item in (1, 0)
    ]
    assert used == [high_water_mark(struct, SimpleNamespace(shared=4096))] * 2 and requested == used[:1]
