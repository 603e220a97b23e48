"""The reserve of a heap: which requests of low priority it refuses, and how a trace shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import heapwright as hw
from heapwright._explore.space import Space
from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import refused_low, replay
from heapwright._studies.records import TraceInfo
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

MALLOC, CALLOC, REALLOC, FREE = range(4)


def blocks(count: int, reserve: int = 0, **keys: object) -> Recipe:
    """Blocks of 100 bytes, without headers: what is free is 100 bytes for each that is."""
    pool = {"kind": "fixed", "sizes": [100], "counts": [count]}
    return Recipe.from_dict({"align": 4, "reserve": reserve, "pool": [pool], **keys})


def calls(*rows: tuple[int, int, int, int]) -> Trace:
    """Of (operation, object, size, low)."""
    op, id_, size, low = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id_, size=size, low=low)


FIVE = calls(*((MALLOC, number, 50, number % 2) for number in range(5)))


@pytest.mark.parametrize(("reserve", "refused"), [(0, 0), (1, 0), (150, 0), (151, 1), (350, 1), (351, 2), (10_000, 2)])
def test_a_low_request_leaves_the_reserve_free(reserve: int, refused: int) -> None:
    """Of five blocks of 100 bytes: before the second object 400 bytes are free, before the fourth 200 or 300."""
    result = replay(FIVE, blocks(5, reserve), check_invariants=True)
    assert (result["failed"], refused_low(FIVE, blocks(5, reserve))) == (refused, refused)


def test_what_is_behind_a_payload_is_no_less_memory() -> None:
    """At full blocks are 104 bytes: of 520 the first low request finds 416 free, the second 208."""
    assert refused_low(FIVE, blocks(5, 350, checks="full")) == 1


def test_all_others_may_use_everything() -> None:
    plain = calls(*((MALLOC, number, 50, 0) for number in range(5)))
    assert replay(plain, blocks(5, 500))["failed"] == 0
    assert replay(FIVE, blocks(4, 0))["failed"] == 1 and refused_low(FIVE, blocks(4, 0)) == 0
    low = hw.replay(FIVE, blocks(3, 0))
    assert (low.metrics["failed"], low.failed_low) == (2, 1) and hw.replay(plain, blocks(3, 0)).failed_low is None


def test_what_was_refused_is_neither_resized_nor_freed() -> None:
    trace = calls((MALLOC, 1, 50, 1), (REALLOC, 1, 90, 1), (FREE, 1, 0, 0), (MALLOC, 2, 50, 0), (FREE, 2, 0, 0))
    result = replay(trace, blocks(2, 200), check_invariants=True)
    assert result["failed"] == 1 and result["requested_peak_bytes"] == 50
    assert result["admitted_fraction"] == 0.5


def test_a_low_object_grows_while_the_reserve_stays_free_and_always_shrinks() -> None:
    recipe = Recipe.from_dict({**zoo.load("exact-bins").to_dict(), "reserve": 400})
    rows = [(MALLOC, 1, 100, 1), (REALLOC, 1, 900, 1), (REALLOC, 1, 40, 1), (REALLOC, 1, 900, 0)]
    control = int(replay(calls(rows[0]), recipe)["footprint_bytes"] or 0) - 104 - 400
    for room, refused in ((1400, 0), (1200, 1), (500, 1)):
        result = replay(calls(*rows[:3]), recipe, arena=control + room, check_invariants=True)
        assert result["failed"] == refused, room
    assert replay(calls(rows[0], rows[1], rows[3]), recipe, arena=control + 1000)["failed"] == 1
    aligned = Trace.from_columns(op=[0, 0], id=[1, 2], size=[100, 100], align=[64, 64], low=[1, 0])
    assert replay(aligned, recipe, arena=control + 450)["failed"] == 1 == refused_low(aligned, recipe, control + 450)


def test_the_smallest_arena_leaves_the_reserve_free_too() -> None:
    last_low = calls((MALLOC, 1, 1000, 0), (MALLOC, 2, 100, 1))
    plain, reserving = (
        Recipe.from_dict({**zoo.load("exact-bins").to_dict(), "reserve": bytes_}) for bytes_ in (0, 512)
    )
    needed, more = (hw.fit(last_low, item, copies=0) for item in (plain, reserving))
    assert needed.smallest_arena_bytes is not None and more.smallest_arena_bytes is not None
    assert 512 <= more.smallest_arena_bytes - needed.smallest_arena_bytes <= 512 + 16
    assert more.safe_arena_bytes == more.smallest_arena_bytes
    assert replay(last_low, reserving)["footprint_bytes"] == more.smallest_arena_bytes
    assert replay(last_low, reserving, arena=more.smallest_arena_bytes - 8)["failed"] == 1


# ---- the recipe ----------------------------------------------------------------------------------------------------


def test_a_reserve_keeps_counters_and_is_another_heap() -> None:
    plain = Recipe.from_dict({**blocks(5, 0).to_dict()})
    assert plain.hash == blocks(5).hash != blocks(5, 64).hash != blocks(5, 65).hash
    assert blocks(5, 64).hash == blocks(5, 64, counters=True).hash == Recipe.parse(blocks(5, 64).to_toml()).hash
    assert "reserve 64" in blocks(5, 64).summary() and "reserve" not in plain.summary()
    counted, reserving = worst_steps(blocks(5, 0, counters=True)).most, worst_steps(blocks(5, 64)).most
    assert counted is not None and reserving == counted + 2


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"reserve": -1}, '"reserve"'),
        ({"threads": "cached"}, '"reserve" counts under the lock'),
        ({"pool": [{"kind": "compact"}]}, '"reserve" is for objects that stay where they are'),
        ({"memory": {"near": 4096}, "pool": [{"kind": "general", "memory": "near"}]}, '"reserve" is of one arena'),
    ],
)
def test_where_there_can_be_no_reserve(keys: dict[str, object], says: str) -> None:
    with pytest.raises(HeapwrightError, match=says):
        Recipe.from_dict({"reserve": 64, "pool": [{"kind": "general"}], **keys})


def test_only_a_heap_with_a_reserve_has_the_functions() -> None:
    with_it = generated_files(blocks(5, 64))
    for name in ("app_malloc_low", "app_realloc_low", "app_counters"):
        assert f" {name}(" in with_it["app_heap.h"].replace("*", " ")
    assert not [file for file, text in generated_files(blocks(5, 0)).items() if "_low" in text or "reserve" in text]
    locked = generated_files(blocks(5, 64, threads="lock"))["app_heap.c"]
    assert "APP_LOCK" in locked[locked.index("\nvoid *app_malloc_low") :][:200]


def test_a_space_tries_reserves(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text('include_zoo = false\nreserve = [0, 4096]\n[[pool]]\nkind = "general"\n', encoding="utf-8")
    assert [item.reserve for item in Space.load(path, [FIVE]).recipes()] == [0, 4096]


# ---- the trace -----------------------------------------------------------------------------------------------------


def test_a_trace_keeps_its_priorities(tmp_path: Path) -> None:
    trace = hw.workload("poisson", requests=400, hold=0.1, low_priority=0.4)
    asks = trace.op == MALLOC
    assert 0.3 < trace.low[asks].mean() < 0.5 and not trace.low[~asks].any()
    path = tmp_path / "p.parquet"
    trace.write(path)
    np.testing.assert_array_equal(Trace.read(path).low, trace.low)
    cut = hw.cut(path, tmp_path / "cut.parquet", first=300)
    np.testing.assert_array_equal(Trace.read(cut.path).low[:300], trace.low[:300])
    assert not Trace.read(cut.path).low[300:].any(), "frees at the end have no priority"
    merged = hw.merge([trace, trace])
    assert merged.low.sum() == 2 * trace.low.sum() == hw.scale(merged, recorded_pointer_bytes=8).low.sum()
    low_sizes = set(trace.size[trace.low == 1].tolist())
    for copy in hw.copies(trace, 2, kinds=["blocks", "load"]):
        assert set(copy.size[copy.low == 1].tolist()) <= low_sizes and copy.low.any()
    plain = hw.workload("poisson", requests=400, hold=0.1)
    np.testing.assert_array_equal(plain.size, trace.size)
    plain.write(path)
    assert not Trace.read(path).low.any() and TraceInfo.of(plain).digest != TraceInfo.of(trace).digest


def test_priorities_are_checked(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="row 1: low 2; must be 0, or 1 for low priority"):
        Trace.from_columns(op=[0, 0], id=[1, 2], size=[8, 8], low=[1, 2])
    repaired = Trace.from_columns(op=[0, 0], id=[1, 2], size=[8, 8], low=[1, 2], repair=True)
    assert repaired.repairs == ("1 call dropped: low priority that is none",)
    with pytest.raises(HeapwrightError, match=r"low_priority: 2: must be a share, 0 to 1"):
        hw.workload("poisson", low_priority=2)
