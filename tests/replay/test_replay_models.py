"""Replay against models: sums that a trace alone determines, and a general pool written down a second time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metric_values import known
from model_heap import Block, ModelHeap
from recipes_random import random_general_recipe, random_recipe
from run_length import EFFORT, brief

from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.pools import MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.arena_sizes import fit
from heapwright._replay.engine import least_arena
from heapwright._replay.pictures import heap_map, timeline
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

MALLOC, CALLOC, REALLOC, FREE = range(4)

SIZES = st.one_of(st.integers(0, 60), st.integers(0, 300), st.sampled_from([16, 40, 64, 1476, 1500, 3000, 20_000]))
CALLS = st.lists(
    st.tuples(st.sampled_from([MALLOC, MALLOC, CALLOC, REALLOC, FREE, FREE]), st.integers(0, 1000), SIZES), min_size=1
)
PLAIN_CALLS = st.lists(st.tuples(st.sampled_from([MALLOC, MALLOC, FREE]), st.integers(0, 1000), SIZES), min_size=1)
RECIPES = st.integers(0, 2**32).map(lambda seed: random_recipe(random.Random(seed)))
GENERAL_RECIPES = st.integers(0, 2**32).map(lambda seed: random_general_recipe(random.Random(seed)))

many = settings(max_examples=brief(75, 150) * EFFORT, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def trace_of(calls: list[tuple[int, int, int]]) -> Trace:
    """A valid trace: realloc and free of the index-th live object, or of none, which makes an object instead."""
    rows: list[tuple[int, int, int]] = []
    live: list[int] = []
    for op, index, size in calls:
        if op in (MALLOC, CALLOC) or not live:
            live.append(len(rows))
            rows.append((CALLOC if op == CALLOC else MALLOC, live[-1], size))
        elif op == REALLOC:
            rows.append((REALLOC, live[index % len(live)], size))
        else:
            rows.append((FREE, live.pop(index % len(live)), 0))
    columns = np.array(rows, np.uint32).reshape(-1, 3)
    return Trace.from_columns(op=columns[:, 0].astype(np.uint8), id=columns[:, 1], size=columns[:, 2], name="calls")


def live_sums(trace: Trace, unit: int | None = None) -> list[int]:
    """Live requested bytes after each call, each request, at least 1, rounded up to a unit where one is given."""
    live: dict[int, int] = {}
    sums = []
    for op, object_, size in zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True):
        if op == FREE:
            del live[object_]
        else:
            live[object_] = size if unit is None else -(-max(size, 1) // unit) * unit
        sums.append(sum(live.values()))
    return sums


def control_bytes(recipe: Recipe) -> int:
    """What lies below the blocks: control data, and gaps that align the first blocks."""
    result = policy(recipe)
    end = int(result["fixed_end"])
    for pool in result["pools"]:
        end -= sum(pool.get(kind, {}).get("region", 0) for kind in ("general", "buddy"))
        groups = pool.get("partition")
        if groups and not groups["grow"]:
            end -= groups["most"] * (groups["partition"] + groups["descriptor"])
        classes = pool.get("fixed")
        if classes and not classes["grow"]:
            step = classes["align"]
            beside = classes["header"] + classes["trailer"]
            strides = [-(-(size + beside) // step) * step for size in classes["sizes"]]
            end -= sum(stride * count for stride, count in zip(strides, classes["counts"], strict=True))
    return end


@many
@given(CALLS, RECIPES)
def test_sums_of_the_trace(calls: list[tuple[int, int, int]], recipe: Recipe) -> None:
    trace = trace_of(calls)
    result: dict[str, Any] = replay(trace, recipe, check_invariants=True)
    requests = sum(op != FREE for op in trace.op.tolist())
    assert 0 <= result["failed"] <= requests
    assert result["lower_bound_bytes"] == max(live_sums(trace, recipe.align))
    assert result["accesses"] == result["reads"] + result["writes"]
    if result["failed"] == 0:
        assert result["requested_peak_bytes"] == max(live_sums(trace))
        assert result["admitted_fraction"] in (1.0, None)
        assert result["footprint_bytes"] - control_bytes(recipe) >= result["lower_bound_bytes"]
    else:
        assert result["requested_peak_bytes"] <= sum(trace.size.tolist())
        assert result["admitted_fraction"] is None or result["admitted_fraction"] <= 1


@many
@given(CALLS, RECIPES)
def test_the_footprint_is_the_sum_of_its_parts(calls: list[tuple[int, int, int]], recipe: Recipe) -> None:
    trace = trace_of(calls)
    result: dict[str, Any] = replay(trace, recipe)
    times = timeline(trace, recipe, points=10**6)
    footprint = times["footprint"]
    control = control_bytes(recipe)
    assert (np.diff(footprint) >= 0).all()
    assert (times["requested"] <= times["allocated"]).all()
    assert (times["allocated"] <= footprint - control).all()
    assert footprint[-1] <= result["footprint_bytes"]
    first = int(np.argmax(footprint == footprint[-1]))
    at_peak = int(times["requested"][first]) if footprint[-1] > control else 0
    parts = result["internal_bytes"] + result["external_bytes"] + result["header_bytes"]
    assert at_peak + parts + control == result["footprint_bytes"]
    assert min(result["internal_bytes"], result["external_bytes"], result["header_bytes"]) >= 0


@many
@given(CALLS, RECIPES, st.integers(0, 30_000))
def test_replays_are_deterministic_and_survive_small_arenas(
    calls: list[tuple[int, int, int]], recipe: Recipe, room: int
) -> None:
    trace = trace_of(calls)
    arena = least_arena(policy_struct(recipe)) + room
    result = replay(trace, recipe, arena=arena, check_invariants=True)
    assert known(result["footprint_bytes"]) <= arena
    assert replay(trace_of(calls), recipe, arena=arena) == result


def serves(trace: Trace, recipe: Recipe, arena: int) -> bool:
    try:
        return replay(trace, recipe, arena=arena)["failed"] == 0
    except HeapwrightError as error:
        assert "control data and regions need" in str(error)
        return False


@many
@given(CALLS, RECIPES, st.sampled_from([None, 64, 256]))
def test_the_smallest_arena_serves_and_one_step_less_does_not(
    calls: list[tuple[int, int, int]], recipe: Recipe, step: int | None
) -> None:
    """What lies further below may serve again: a pool that no longer can may leave its requests to a thriftier one."""
    trace = trace_of(calls)
    smallest = fit(trace, recipe, step=step)
    if smallest is None:
        assert replay(trace, recipe)["failed"]
        return
    assert step is None or smallest % step == 0
    assert serves(trace, recipe, smallest)
    assert not serves(trace, recipe, smallest - (step or recipe.align))


@many
@given(PLAIN_CALLS, GENERAL_RECIPES)
def test_a_heap_that_grows_at_its_top_last_needs_its_footprint(
    calls: list[tuple[int, int, int]], recipe: Recipe
) -> None:
    """To the byte, where no realloc extends a block at the top while a hole elsewhere would do."""
    trace = trace_of(calls)
    footprint = replay(trace, recipe)["footprint_bytes"]
    assert fit(trace, recipe) == footprint
    assert replay(trace, recipe, arena=int(footprint or 0) - 1)["failed"]


def model_run(trace: Trace, recipe: Recipe) -> tuple[list[int], list[int]]:
    """Bytes of used blocks and the high-water mark after each call, by the model."""
    heap = ModelHeap(recipe)
    objects: dict[int, Block] = {}
    used, high = [], []
    for op, object_, size in zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True):
        if op == FREE:
            heap.free(objects.pop(object_))
        elif op == REALLOC:
            objects[object_] = heap.realloc(objects[object_], size)
        else:
            objects[object_] = heap.malloc(size)
        used.append(sum(block.size for block in heap.blocks if not block.free))
        high.append(heap.high)
    return used, high


@settings(many, max_examples=brief(300, 600) * EFFORT)
@given(CALLS, GENERAL_RECIPES)
def test_general_pools_grant_what_the_documentation_says(calls: list[tuple[int, int, int]], recipe: Recipe) -> None:
    trace = trace_of(calls)
    used, high = model_run(trace, recipe)
    times = timeline(trace, recipe, points=10**6)
    assert times["allocated"].tolist() == used
    assert (times["footprint"] - control_bytes(recipe)).tolist() == high


def test_long_programs_on_general_pools() -> None:
    """Thousands of calls a pool: states that short programs do not reach."""
    for seed in range(60):
        rng = random.Random(seed)
        recipe = random_general_recipe(rng)
        sizes = [rng.randint(0, 200) for _ in range(8)]
        calls = [
            (rng.choice([MALLOC, MALLOC, REALLOC, FREE, FREE]) if step % 300 < 200 else FREE, rng.randint(0, 99), size)
            for step, size in ((step, rng.choice(sizes)) for step in range(1500))
        ]
        trace = trace_of(calls)
        used, high = model_run(trace, recipe)
        times = timeline(trace, recipe, points=10**6)
        assert times["allocated"].tolist() == used, recipe.to_toml()
        assert (times["footprint"] - control_bytes(recipe)).tolist() == high, recipe.to_toml()


@many
@given(CALLS, RECIPES)
def test_heap_maps_cover_the_arena_in_order(calls: list[tuple[int, int, int]], recipe: Recipe) -> None:
    drawn = heap_map(trace_of(calls), recipe, columns=5)
    for column in range(len(drawn["event"])):
        runs = drawn["blocks"][drawn["blocks"]["column"] == column]
        ends = runs["offset"] + runs["size"]
        assert runs["offset"][0] == 0 and ends[-1] == drawn["footprint"]
        assert (runs["offset"][1:] == ends[:-1]).all()


def test_the_largest_request_is_served_once() -> None:
    recipe = zoo.load("first-fit-fast-free")
    trace = Trace.from_columns(op=[MALLOC, MALLOC, FREE, MALLOC], id=[0, 1, 0, 2], size=[MAX_REQUEST] * 2 + [0, 1])
    result = replay(trace, recipe)
    assert result["failed"] == 1
    assert result["requested_peak_bytes"] == MAX_REQUEST


def test_memory_beyond_the_reach_of_links_and_headers_is_left_unused() -> None:
    for keys in ({"link_bytes": 2}, {"header": 2}, {"header": 1, "free_list": "implicit"}, {"header": 3, "align": 1}):
        heap = {key: keys[key] for key in ("align", "link_bytes") if key in keys}
        pool = {key: value for key, value in keys.items() if key not in heap} | {"kind": "general"}
        recipe = Recipe.from_dict({**heap, "pool": [pool]})
        reach = int(policy(recipe)["reach"])
        size = max(1, reach // 50)
        count = 200
        trace = Trace.from_columns(
            op=[MALLOC] * count + [FREE] * count, id=list(range(count)) * 2, size=[size] * count + [0] * count
        )
        result: dict[str, Any] = replay(trace, recipe, check_invariants=True)
        assert 0 < result["failed"] < count
        assert reach * 0.9 < result["footprint_bytes"] <= reach, keys
