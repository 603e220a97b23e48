"""Live objects along a trace, call by call, against those of the whole trace; and heaps that run with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import heapwright as hw
from heapwright._recipes.recipe import Recipe
from heapwright._replay import incremental
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import number_objects
from heapwright._traces.live_objects_stream import LiveObjectsStream
from heapwright._traces.trace import Trace
from heapwright._traces.validation import Columns

BROKER = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"
WINDOW = 2999


@pytest.fixture(scope="module")
def broker() -> Trace:
    return hw.read_trace(BROKER)


def windows(trace: Trace) -> list[Columns]:
    """As a log's history hands them on."""
    columns: Columns = {key: getattr(trace, key) for key in ("op", "size", "align", "tid")}
    columns["id"] = number_objects(trace.op, trace.id)[0]
    return [{key: values[at : at + WINDOW] for key, values in columns.items()} for at in range(0, len(trace), WINDOW)]


def test_what_lives_is_what_the_whole_trace_says(broker: Trace) -> None:
    alive, live, slots = LiveObjectsStream(), [], []
    for window in windows(broker):
        slots.append(alive.feed(window))
        live.append(alive.bytes)
    after = np.empty(len(broker), np.int64)
    broker.calls.largest_live_sum(after=after)
    assert live == [*after[WINDOW - 1 :: WINDOW].tolist(), after[-1]]
    assert (alive.calls, alive.peak_bytes, alive.peak_objects) == (
        len(broker),
        broker.peak_live_bytes,
        broker.peak_live_objects,
    )
    assert alive.slots == broker.calls.slots == 1 + max(part.max() for part in slots)
    output: Counter[int] = Counter()
    for row in hw.profile(broker)["at_peak"]:
        output[row["size"]] += row["objects"]
    assert dict(alive.at_peak()) == output
    sizes = [size * count for size, count in alive.at_peak()]
    assert sizes == sorted(sizes, reverse=True)


def test_who_holds_the_peak_is_told_by_site() -> None:
    alive = LiveObjectsStream()
    op, number = np.array([0, 0, 2, 3, 0], np.uint8), np.array([0, 1, 0, 1, 2], np.uint32)
    calls: Columns = {"op": op, "id": number, "size": np.array([10, 20, 50, 0, 5], np.uint32)}
    alive.feed(calls | {"site": np.array([1, 2, 3, 0, 1], np.uint32)})
    assert alive.peak_bytes == 70 and alive.holders() == [(3, 50), (2, 20)]


def test_a_curve_of_many_calls_keeps_its_highest_points() -> None:
    alive = LiveObjectsStream()
    sizes = np.ones(5000, np.uint32)
    sizes[3000] = 1000
    op = np.tile(np.array([0, 3], np.uint8), 5000)
    alive.feed({"op": op, "id": np.repeat(np.arange(5000, dtype=np.uint32), 2), "size": np.repeat(sizes, 2)})
    curve = alive.curve()
    assert len(curve) == 10_000 // 8
    assert [at for at, most in enumerate(curve) if most > 1] == [6000 // 8]
    assert (max(curve), min(curve)) == (1000, 1)


def test_a_peak_that_is_reached_again_is_the_first() -> None:
    alive = LiveObjectsStream()
    alive.feed({"op": np.array([0, 2, 3, 0]), "id": np.array([0, 0, 0, 1]), "size": np.array([10, 30, 0, 30])})
    assert (alive.at_peak(), alive.peak_bytes, alive.bytes) == ([(30, 1)], 30, 30)
    alive.feed({"op": np.array([0, 0]), "id": np.array([2, 3]), "size": np.array([5, 5])})
    assert alive.at_peak() == [(30, 1), (5, 2)]


CACHED = Recipe.from_dict(hw.zoo("victim-bins").to_dict() | {"threads": "cached"})


@pytest.mark.parametrize(
    "recipe",
    [hw.zoo(name) for name in ("all-round", "freertos-heap4", "st-compact-memmgr")] + [CACHED],
    ids=lambda recipe: str(recipe.name),
)
@pytest.mark.parametrize("share", [None, 0.75])
def test_a_heap_that_is_told_calls_as_they_come_does_what_a_replay_does(
    recipe: Recipe, share: float | None, broker: Trace
) -> None:
    arena = None if share is None else int(share * (hw.replay(broker, recipe).metrics["footprint_bytes"] or 0)) // 8 * 8
    alive = LiveObjectsStream()
    with incremental.running(recipe, arena) as heap:
        for window in windows(broker):
            heap.take(window, alive.feed(window))
            standing = heap.standing()
    metrics = hw.replay(broker, recipe, arena=arena).metrics
    assert (standing.used_bytes, standing.refused) == (metrics["footprint_bytes"], metrics["failed"])
    assert (standing.refused > 0) == (standing.reserve_bytes is None) == (share is not None)
    assert 0 < standing.largest_free_bytes < (arena or standing.used_bytes)


def test_the_largest_free_block_of_an_arena_is_what_a_next_object_gets() -> None:
    alive = LiveObjectsStream()
    four = {"op": [0, 0, 0, 3], "id": [0, 1, 2, 1], "size": [1000, 2000, 1000, 0], "align": [0] * 4, "tid": [0] * 4}
    columns = {key: np.array(values, np.uint32) for key, values in four.items()}
    with incremental.running(hw.zoo("freertos-heap4"), 16384) as heap:
        heap.take(columns, alive.feed(columns))
        whole = heap.standing()
    with incremental.running(hw.zoo("freertos-heap4")) as heap:
        heap.take(columns, LiveObjectsStream().feed(columns))
        used = heap.standing()
    assert used.largest_free_bytes == 2008  # the object and its header
    assert 16384 - 4096 - 64 < whole.largest_free_bytes < 16384 - 4000


def test_more_objects_than_a_running_heap_holds_are_refused_in_a_line() -> None:
    item = {key: np.zeros(1, np.uint32) for key in ("op", "id", "size", "align", "tid")}
    with (
        incremental.running(hw.zoo("tlsf")) as heap,
        pytest.raises(HeapwrightError, match="more than 1,048,576 objects live at once"),
    ):
        heap.take(item, np.array([incremental.MOST_OBJECTS], np.uint32))
