"""Buddy, partition and compact pools: behaviour worked out by hand, and what their papers say of them.

Behaviour tables are as in tests/helpers/behaviour.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case_tables import each
from metric_values import known
from numpy.typing import NDArray
from pool_recipes import KINDS_OF_HANDLES, MMEM, buddy, compact, partitions, random_trace, recipe

from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._replay.arena_sizes import fit
from heapwright._replay.pictures import HEAP_MAP_STATES, heap_map, metadata, timeline
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright_papers.pools import erlang_b


def split_adds_up(found: dict[str, Any], control: int) -> bool:
    """Whether what is left of the footprint without its other parts can have been requested at one time."""
    parts = found["internal_bytes"] + found["external_bytes"] + found["header_bytes"] + control
    return bool(0 < found["footprint_bytes"] - parts <= found["requested_peak_bytes"])


# ---- fixed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "made"), [(0, 1), (100, 6)])
def test_a_chain_that_grows_is_walked_once(page: int, made: int) -> None:
    """The head, and word and link of each block in use; then, where none is free, limit, high-water mark and new limit,
    and five accesses for each block made, of which the first is handed out. A free block's word is read and written."""
    heap = recipe({"kind": "fixed", "sizes": [8], "header": 8, "find": "first-fit", "page": page})
    for count in range(1, 12):
        result = replay(Trace.from_columns(op=[0] * count, id=range(count), size=[8] * count), heap)
        walks = sum(1 + 2 * used for used in range(count))
        growths = -(-count // made)
        assert result["accesses"] == walks + growths * (3 + 5 * made) + 2 * (count - growths)


# ---- partition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", ["grow", 1000])
def test_descriptors_belong_to_the_footprint(count: Any) -> None:
    """32 bytes for each partition that was ever covered are headers; free memory is what else is not in use.

    Partitions that are counted take their memory whether they are used or not.
    """
    heap = partitions(count=count)
    trace = Trace.from_columns(op=[0, 0, 0, 3, 0], id=[1, 2, 3, 2, 4], size=[64, 100, 1, 0, 64])
    result = replay(trace, heap, check_invariants=True)
    control = policy(heap)["control"]
    assert result["header_bytes"] == 4 * 32
    unused = 0 if count == "grow" else count - 4
    assert result["footprint_bytes"] == control + (4 + unused) * (64 + 32)
    assert result["internal_bytes"] == 4 * 64 - 165
    assert result["external_bytes"] == unused * (64 + 32)
    assert result["requested_peak_bytes"] == 165


def test_growing_partitions_need_no_more_than_their_high_water_mark() -> None:
    for seed, order, fits in [(1, "address", "first"), (2, "lifo", "best"), (3, "size", "first")]:
        heap = partitions(order=order, fit=fits)
        trace = random_trace(seed)
        result = replay(trace, heap, check_invariants=True)
        assert fit(trace, heap) == result["footprint_bytes"]
        assert split_adds_up(result, policy(heap)["fixed_end"])


def test_the_map_shows_descriptors_on_either_side() -> None:
    trace = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[100, 10, 0])
    drawn: dict[Any, list[tuple[int, str]]] = {}
    for count in ("grow", 4):
        result = heap_map(trace, partitions(count=count), columns=3)
        last = result["blocks"][result["blocks"]["column"] == 2]
        drawn[count] = [(int(run["size"]), HEAP_MAP_STATES[run["state"]]) for run in last]
        assert sum(size for size, _ in drawn[count]) == result["footprint"]
    groups = [(128, "free"), (64, "payload in use")]
    assert drawn["grow"][1:] == [*groups, (96, "header")]
    assert drawn[4][1:] == [(96, "header"), (32, "untouched"), *groups, (64, "untouched")]


# ---- loss systems: Elsayed and Galal -------------------------------------------------------------------------------


FIXED_POOL = recipe({"kind": "fixed", "sizes": [2048], "counts": [272]})
VARIABLE_POOL = recipe({"kind": "partition", "count": 1024})


def loss_system(rate: float, requests: int, least: int, most: int, seed: int) -> Trace:
    """Poisson arrivals, sizes uniform from `least` to `most`, held for an exponential time with mean 1 (a second)."""
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1 / rate, requests))
    release = arrival + rng.exponential(1.0, requests)
    times = np.concatenate([arrival, release])
    order = np.argsort(times, kind="stable")
    ids = np.tile(np.arange(requests), 2)
    sizes: NDArray[np.int64] = np.concatenate([rng.integers(least, most + 1, requests), np.zeros(requests, np.int64)])
    return Trace.from_columns(
        op=np.repeat([MALLOC, FREE], requests)[order],
        id=ids[order],
        size=sizes[order],
        ts_us=(times[order] * 1e6).astype(np.int64),
    )


def test_erlang_b_is_the_textbook_one() -> None:
    assert erlang_b(2.0, 2) == pytest.approx(0.4)
    assert erlang_b(500.0, 272) == pytest.approx(0.458, abs=0.001)


@pytest.mark.parametrize("buffers", [20, 272])
@pytest.mark.parametrize("crowding", [0.8, 1.0, 1.8])
def test_a_fixed_pool_under_poisson_load_follows_erlang_b(buffers: int, crowding: float) -> None:
    """Whether a request is refused depends on the number of buffers alone. Refusals come in runs of about one holding
    time, so the standard error is that of this many independent runs."""
    requests = 40_000
    load = crowding * buffers
    heap = recipe({"kind": "fixed", "sizes": [2048], "counts": [buffers]})
    result = replay(loss_system(load, requests, 80, 2000, 1), heap)
    refused = result["failed"]
    expected = erlang_b(load, buffers)
    assert refused is not None
    deviation = (expected * (1 - expected) / requests * 2 * load) ** 0.5
    assert refused / requests == pytest.approx(expected, abs=4 * deviation)


def test_both_pools_have_the_same_memory() -> None:
    """272 x 2048 bytes and 1024 x 512 with 32 bytes of descriptor each: what Elsayed and Galal compare."""
    sizes = [int(policy(heap)["fixed_end"] - policy(heap)["control"]) for heap in (FIXED_POOL, VARIABLE_POOL)]
    assert sizes == [272 * 2048, 1024 * (512 + 32)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("interval", "fixed", "variable"), [(0.001, 0.272, 0.36), (0.002, 0.542, 0.75), (0.003, 0.804, 0.999)]
)
def test_a_variable_pool_admits_more_than_a_fixed_one(interval: float, fixed: float, variable: float) -> None:
    """Their first experiment: 80 to 2000 bytes; expected values from an independent simulation of the same rules."""
    trace = loss_system(1 / interval, 100_000, 80, 2000, 7)
    admitted = [replay(trace, heap)["admitted_fraction"] for heap in (FIXED_POOL, VARIABLE_POOL)]
    assert admitted == pytest.approx([fixed, variable], abs=0.015)


# ---- buddy ---------------------------------------------------------------------------------------------------------


def test_a_buddy_heap_needs_no_more_than_its_high_water_mark() -> None:
    for seed, keys in enumerate([{}, {"header": 1}, {"min_block": 64}, {"max_block": 1024}]):
        heap = buddy(**keys)
        trace = random_trace(seed)
        result = replay(trace, heap, check_invariants=True)
        assert result["failed"] == 0
        assert fit(trace, heap) == result["footprint_bytes"]
        assert split_adds_up(result, policy(heap)["fixed_end"])


def test_requests_of_1500_bytes_take_2048() -> None:
    trace = Trace.from_columns(op=[0], id=[1], size=[1500])
    result = replay(trace, buddy())
    assert (result["header_bytes"], result["internal_bytes"]) == (4, 2048 - 4 - 1500)


@pytest.mark.parametrize(
    ("below", "lists"),
    [
        ({"kind": "buddy"}, [(12, 12), (28, 1), (60, 60)]),
        ({"kind": "partition", "size": 32}, [(32, 1), (64, 64), (96, 70)]),
    ],
)
def test_quick_lists_hold_blocks_of_these_pools(below: dict[str, Any], lists: list[tuple[int, int]]) -> None:
    """Sizes that get the same block share a list; a hit neither splits nor merges."""
    capacities = [capacity for capacity, _ in lists]
    by_list = recipe({"kind": "quick", "sizes": [size for _, size in lists]}, below).canonical()
    if below["kind"] == "buddy":
        assert by_list.pools[0].sizes == (12, 60)  # type: ignore[union-attr]
    else:
        assert by_list.pools[0].sizes == tuple(capacities)  # type: ignore[union-attr]
    for front in ({"sizes": capacities}, {"up_to": 96}):
        heap = recipe({"kind": "quick", **front}, below)
        trace = Trace.from_columns(op=[0, 0, 3, 0, 3], id=[1, 2, 1, 3, 3], size=[60, 500, 0, 57, 0])
        plain = replay(trace, recipe(below), check_invariants=True)
        cached = replay(trace, heap, check_invariants=True)
        assert cached["footprint_bytes"] == pytest.approx(plain["footprint_bytes"], abs=100), "the lists' heads"
        assert cached != plain
        replay(random_trace(3), heap, check_invariants=True)


# ---- compact -------------------------------------------------------------------------------------------------------


@each("keys", KINDS_OF_HANDLES, ids=str)
def test_compaction_leaves_no_external_fragmentation(keys: dict[str, Any]) -> None:
    """At the peak all memory is objects in use with their headers; the arena needs no more than that."""
    for align, link_bytes, seed in [(1, 4, 1), (4, 2, 2), (8, 4, 3)]:
        heap = compact(align, link_bytes, **keys)
        trace = random_trace(seed)
        result = replay(trace, heap, check_invariants=True)
        arena = fit(trace, heap)
        assert result["failed"] == 0
        assert known(result["external_bytes"]) < align
        assert arena == result["footprint_bytes"]
        assert split_adds_up(result, policy(heap)["fixed_end"])


@pytest.mark.parametrize("when", ["lazy", "eager"])
def test_a_heap_of_bare_bytes_needs_what_is_live_and_no_more(when: str) -> None:
    heap = compact(**{**MMEM, "when": when})
    trace = random_trace(4)
    assert fit(trace, heap) == policy(heap)["control"] + trace.lower_bound(1)


def test_descriptors_of_das_et_al_table_1() -> None:
    """ST_COMPACT_MEMMGR has 4 bytes for each allocation in the arena, mmem 12 bytes outside."""
    trace = Trace.from_columns(op=[MALLOC] * 50, id=range(50), size=[100] * 50)
    kinds: list[tuple[dict[str, Any], int, int]] = [({}, 4, 4), (MMEM, 0, 12)]
    for keys, inside, outside in kinds:
        heap = compact(**keys)
        assert replay(trace, heap)["header_bytes"] == inside * 50
        assert heap.canonical().pools[0].outside_bytes == outside
    assert buddy().canonical().pools[0].outside_bytes == 0


def test_lazy_compaction_moves_less_than_eager() -> None:
    trace = random_trace(5)
    moved = [replay(trace, compact(when=when))["moved_bytes"] for when in ("lazy", "eager")]
    assert moved[0] is not None and moved[1] is not None
    assert 0 < moved[0] < moved[1] / 2


def test_moves_and_rewritten_references_are_accesses() -> None:
    """Freeing the first of three objects copies 24 + 12 bytes, 9 words each way, and rewrites two references."""
    sizes = [40, 20, 8]
    kept = Trace.from_columns(op=[0, 0, 0], id=[1, 2, 3], size=sizes)
    freed = Trace.from_columns(op=[0, 0, 0, 3], id=[1, 2, 3, 1], size=[*sizes, 0])
    before, after = (replay(trace, compact(when="eager")) for trace in (kept, freed))
    assert (before["moved_bytes"], after["moved_bytes"]) == (0, 36)
    reads = after["reads"] - before["reads"]  # type: ignore[operator]
    writes = after["writes"] - before["writes"]  # type: ignore[operator]
    own = 1 + 1  # the reference, and the size in the header
    assert reads == 9 + own + 2 + 2 * 2  # the top twice; size and reference of each block behind
    assert writes == 9 + 1 + 2  # the top; the references


def test_a_handle_that_cannot_be_told_is_refused() -> None:
    """Half of a 4-byte header reaches 32,767 references; a replay keeps one for each object that is live at once."""
    count = 33_000
    trace = Trace.from_columns(op=[MALLOC] * count, id=range(count), size=[1] * count)
    assert replay(trace, compact())["failed"] == count - 32_767
    assert replay(trace, compact(header=8))["failed"] == 0
    assert replay(trace, compact(header=6))["failed"] == 0


def test_larger_alignments_are_refused_where_objects_move() -> None:
    trace = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 2], size=[10, 10, 0], align=[4, 8, 0])
    assert replay(trace, compact(), check_invariants=True)["failed"] == 1


def test_pictures_of_a_heap_that_moves() -> None:
    trace = Trace.from_columns(op=[0, 0, 0, 3], id=[1, 2, 3, 1], size=[40, 20, 8, 0])
    kinds: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["header", "free", "header", "payload in use", "header", "payload in use"]),
        ({"when": "eager"}, ["header", "payload in use", "header", "payload in use", "untouched"]),
        ({"when": "eager", "header": 0}, ["payload in use", "untouched"]),
    ]
    for keys, drawn in kinds:
        result = heap_map(trace, compact(**keys), columns=4)
        last = result["blocks"][result["blocks"]["column"] == 3]
        assert [HEAP_MAP_STATES[state] for state in last["state"]][1:] == drawn
        assert last["size"].sum() == result["footprint"]
        over_time = timeline(trace, compact(**keys))
        assert list(over_time["requested"]) == [40, 60, 68, 28]


# ---- every kind ----------------------------------------------------------------------------------------------------


def test_metadata_of_partitions_ends_with_the_arena() -> None:
    """Growing descriptors lie at the arena's end; what no group covers is not metadata."""
    heap = partitions()
    trace = Trace.from_columns(op=[0, 0], id=[1, 2], size=[100, 10])
    arena = int(policy_struct(heap).fixed_end) + 1000 & ~3
    memory, marks = metadata(trace, heap, arena)
    assert len(memory) == arena - 32 + 4
    marked = np.flatnonzero(marks[policy(heap)["control"] :]) + policy(heap)["control"]
    first, second, third = (arena - 32 * i for i in (1, 2, 3))
    assert list(marked) == [*range(third, third + 8), *range(second + 4, second + 8), *range(first, first + 4)]


# ---- recipes -------------------------------------------------------------------------------------------------------


BUDDY: dict[str, Any] = {"kind": "buddy"}
PARTITION: dict[str, Any] = {"kind": "partition"}
COMPACT: dict[str, Any] = {"kind": "compact"}
GENERAL = {"kind": "general"}


@each(
    ("pools", "message"),
    [
        ([{**BUDDY, "header": 0}], 'pool 1 (buddy): "header" 0: free reads the order of a block from its header'),
        ([{**BUDDY, "min_block": 24}], 'pool 1 (buddy): "min_block" 24 is not valid; valid: a power of two'),
        ([{**BUDDY, "max_block": 24}], '"max_block" 24 is not valid; valid: a power of two'),
        ([{**BUDDY, "min_block": 8}], '"min_block" 8 cannot hold header and links; valid: 16 or a larger power of two'),
        ([{**BUDDY, "header": 9}], '"min_block" 16 cannot hold header and links; valid: 32'),
        ([{**BUDDY, "max_block": 8}], '"max_block" 8 is below "min_block" 16; valid: 0 (no bound), or more'),
        (
            [{**BUDDY, "max_block": 64, "min_size": 61}, GENERAL],
            '"min_size" 61 is above what the largest block holds, 60',
        ),
        ([{**BUDDY, "region": 15}, GENERAL], '"region" 15 cannot hold a block'),
        ([BUDDY, GENERAL], "pool 1 (buddy): shares the rest of the arena and must be the last pool"),
        (
            [{"kind": "fixed", "sizes": [8], "header": 8}, BUDDY],
            "differs from the 4 of the buddy pool it shares the arena",
        ),
        ([{"kind": "quick", "sizes": [64]}, {**BUDDY, "max_block": 64}], "no pool below serves 64 bytes"),
        (
            [{**PARTITION, "descriptor_bytes": 12}],
            '"descriptor_bytes" 12 cannot hold count, start and two links of 4 bytes',
        ),
        (
            [PARTITION, GENERAL],
            "pool 1 (partition): shares the rest of the arena and must be the last pool; move it there",
        ),
        ([{**PARTITION, "lists": 33}], '"lists": 33 is not valid; valid: a whole number from 1 to 32'),
        ([{**PARTITION, "count": 0}], '"count": 0 is not valid; valid: grow, a whole number from 1'),
        (
            [{**PARTITION, "count": 2, "min_size": 1025}, GENERAL],
            '"min_size" 1025 is above what all partitions hold, 1024',
        ),
        (
            [{"kind": "quick", "up_to": 99}, {**PARTITION, "size": 96}],
            "have 96 bytes; valid below a quick pool: powers of two",
        ),
        (
            [{"kind": "quick", "up_to": 99}, {**PARTITION, "size": 1}],
            '"size" 1 cannot hold the link of a quick pool above',
        ),
        (
            [{"kind": "fixed", "sizes": [8], "counts": [4]}, {"kind": "quick", "up_to": 99}, {**PARTITION, "size": 1}],
            '"size" 1 cannot hold the link of a quick pool above',
        ),
        ([{"kind": "fixed", "sizes": [8], "header": 8}, PARTITION], "would grow from the end of the arena"),
        (
            [COMPACT, GENERAL],
            "pool 1 (compact): moves its blocks, which no other pool could follow; valid: a compact pool",
        ),
        (
            [{**COMPACT, "header": 3}],
            '"header" 3 cannot hold a size and a handle; valid: 0 (handles hold them), 4 to 16',
        ),
        ([{**COMPACT, "when": "never"}], '"when": "never" is not valid; valid: lazy, eager'),
        ([{**COMPACT, "min_size": 262137}], '"min_size" 262137 is above the largest size that a header stores, 262136'),
    ],
)
def test_contradictions_of_these_pools_say_what_is_valid(pools: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(HeapwrightError) as refused:
        recipe(*pools)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@each(
    "pools",
    [
        [{**BUDDY, "header": 8}],
        [{**BUDDY, "max_block": 16}],
        [{**BUDDY, "max_block": 64, "min_size": 60}],
        [{**BUDDY, "region": 16}, GENERAL],
        [{**BUDDY, "region": 64, "max_size": 60}, BUDDY],
        [{**PARTITION, "descriptor_bytes": 16}],
        [{**PARTITION, "count": 2, "min_size": 1024}, GENERAL],
        [{**PARTITION, "size": 1}],
        [{**PARTITION, "size": 1, "count": 9, "max_size": 9}, {"kind": "quick", "up_to": 99}, GENERAL],
        [{"kind": "quick", "up_to": 99}, {**PARTITION, "size": 4}],
        [{"kind": "fixed", "sizes": [8], "counts": [4]}, PARTITION],
        [{"kind": "fixed", "sizes": [8], "header": 8}, {**PARTITION, "count": 4}],
        [{**COMPACT, "header": 4}],
        [{**COMPACT, "header": 0}],
        [{**COMPACT, "min_size": 262136}],
    ],
)
def test_pools_of_these_kinds_that_get_along(pools: list[dict[str, Any]]) -> None:
    """Each is next to one that is refused above."""
    assert recipe(*pools)


def test_narrow_links_number_fewer_partitions() -> None:
    recipe({**PARTITION, "count": 32767, "descriptor_bytes": 8, "size": 4}, link_bytes=2)
    with pytest.raises(HeapwrightError, match="valid: up to 32767"):
        recipe({**PARTITION, "count": 32768}, link_bytes=2)


@each(
    ("one", "other"),
    [
        ({**BUDDY, "max_block": 2**30}, BUDDY),
        ({**BUDDY, "region": 1000, "max_block": 4096}, {**BUDDY, "region": 992}),
        ({**BUDDY, "max_block": 256, "max_size": 252}, {**BUDDY, "max_block": 256}),
        ({**PARTITION, "size": 509}, PARTITION),
        ({**PARTITION, "order": "size", "fit": "best"}, {**PARTITION, "order": "size"}),
        ({**PARTITION, "count": 4, "max_size": 2048}, {**PARTITION, "count": 4}),
        ({**PARTITION, "count": 4, "lists": 32}, {**PARTITION, "count": 4, "lists": 4}),
        ({**COMPACT, "max_size": 300_000}, COMPACT),
    ],
)
def test_recipes_of_these_pools_that_behave_alike_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert recipe(one).hash == recipe(other).hash
    assert recipe(one).canonical() == recipe(other).canonical().canonical()
    assert Recipe.parse(recipe(one).canonical().to_toml()).hash == recipe(other).hash


def test_recipes_of_these_pools_that_differ_are_distinct() -> None:
    buddies = [{}, {"min_block": 32}, {"max_block": 64}, {"header": 8}, {"region": 64}]
    groups: list[dict[str, Any]] = [
        {},
        {"size": 64},
        {"count": 9},
        {"descriptor_bytes": 16},
        {"order": "lifo"},
        {"fit": "best"},
        {"lists": 2},
        {"lists": 3},
    ]
    groups.append({"coalesce": "never"})
    objects: list[dict[str, Any]] = [{}, {"when": "eager"}, {"header": 0}]
    results = [recipe({**COMPACT, **keys}) for keys in objects]
    results += [recipe({**BUDDY, **keys}) for keys in buddies] + [recipe({**PARTITION, **keys}) for keys in groups]
    assert len({item.hash for item in results}) == len(results)
    assert len({item.summary() for item in results}) == len(results)


@pytest.mark.parametrize("sizes", [[8, 16, 32, 64], [4, 12, 28, 60], [8, 16, 32, 72]])
def test_a_request_is_served_by_the_smallest_class_that_holds_it(sizes: list[int]) -> None:
    recipe = Recipe.from_dict({"align": 4, "pool": [{"kind": "fixed", "sizes": sizes, "counts": "grow", "header": 4}]})
    for size in range(sizes[-1] + 1):
        trace = Trace.from_columns(op=[0], id=[0], size=[size])
        served = replay(trace, recipe)
        assert served["failed"] == 0
        assert served["allocated_peak_bytes"] == next(held for held in sizes if held >= size), size
    beyond = replay(Trace.from_columns(op=[0], id=[0], size=[sizes[-1] + 1]), recipe)
    assert beyond["failed"] == 1
