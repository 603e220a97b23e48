"""A general pool at the arena's far end: what it is refused for, what it needs, and what the smallest arena is."""

from __future__ import annotations

from typing import Any

import pytest
from case_tables import each
from pool_recipes import random_trace, recipe

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._replay.arena_sizes import fit
from heapwright._replay.monotone_minimum import safe_arena
from heapwright._replay.pictures import heap_map
from heapwright._replay.replay import replay
from heapwright._replay.snapshots import frames
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

BINS = {"bins": "exact", "fit": "best"}


def general(**keys: Any) -> dict[str, Any]:
    return {"kind": "general", **keys}


def far(**keys: Any) -> dict[str, Any]:
    return general(place="ends", **keys)


APART = [
    recipe(far(min_size=100, **BINS), general(max_size=99, **BINS)),
    recipe(far(max_size=100, free_list="tree", fit="first"), general(min_size=101, free_list="tree", fit="first")),
    recipe(far(min_size=200, victim_up_to=300, **BINS), general(max_size=199, coalesce="deferred", fit="best")),
    recipe(
        far(max_size=40, order="address", tag_in="header", header=8),
        general(min_size=41, free_list="implicit", header=8),
    ),
    recipe(far(min_size=64, unsorted=True, **BINS), general(max_size=63, **BINS), align=8, link_bytes=2),
]
"""No request may go to either side."""

TOGETHER = [
    recipe(far(min_size=100, **BINS), general(**BINS)),
    recipe(
        {"kind": "quick", "sizes": [40], "flush": "before-growing"},
        far(min_size=41, unsorted=True, bins="lea", fit="best"),
        general(**BINS),
    ),
    recipe(far(min_size=64, **BINS), general(**BINS), align=8, checks="full"),
]
"""What one side refuses, the other may still have, or lists and waiting blocks."""


@each("heap", APART + TOGETHER, ids=Recipe.summary)
def test_the_smallest_arena_is_proved_by_one_replay(heap: Recipe) -> None:
    for seed in (1, 2):
        trace = random_trace(seed)
        result = replay(trace, heap, check_invariants=True)
        assert result["failed"] == 0
        mark = result["footprint_bytes"]
        assert isinstance(mark, int)
        smallest, safe = fit(trace, heap), safe_arena(trace, heap)
        assert smallest is not None
        assert safe is not None
        assert smallest <= safe.bytes <= mark
        assert safe.proved
        if heap in APART:
            assert smallest == mark
        tight = replay(trace, heap, arena=mark)
        same = ["failed", "moved_bytes", "footprint_bytes", "internal_bytes", "external_bytes", "header_bytes"]
        same += ["accesses"] if heap.pools[0].kind != "general" or heap.pools[0].free_list != "tree" else []
        assert [tight[key] for key in same] == [result[key] for key in same]


def test_what_one_side_gives_back_the_other_takes() -> None:
    """Blocks of 104 bytes at the far end and of 44 at the start: never more than ten and five of both at one time."""
    heap = recipe(far(min_size=100, **BINS), general(**BINS))
    small, large = [(0, i, 40) for i in range(5)], [(0, 100 + i, 100) for i in range(10)]
    gone = [(3, i, 0) for i in reversed(range(5))] + [(3, 100 + i, 0) for i in range(10)]
    more = [(0, 200 + i, 40) for i in range(28)]  # 28 * 44 = 1,232 of the 1,260 bytes that both had
    op, id_, size = zip(*small, *large, *gone, *more, strict=True)
    trace = Trace.from_columns(op=op, id=id_, size=size)
    result = replay(trace, heap, check_invariants=True)
    control, mark = policy(heap)["fixed_end"], policy(heap)["end_mark"]
    assert mark == 4
    assert result["footprint_bytes"] == control + 5 * 44 + 10 * 104 + mark


def test_pictures_show_both_ends() -> None:
    heap = recipe(far(min_size=100, **BINS), general(**BINS))
    trace = Trace.from_columns(op=[0, 0, 0], id=[1, 2, 3], size=[40, 100, 200])
    arena = int(policy(heap)["fixed_end"]) + 1000
    (frame,) = frames(trace, heap, arena, [2])
    lives = frame.blocks[frame.blocks["birth"] >= 0]
    drawn = [(int(block["offset"]), int(block["size"]), int(block["pool"])) for block in lives]
    first = arena - 4 - 104 - 204
    assert drawn == [(arena - 1000, 44, 1), (first, 204, 0), (first + 204, 104, 0)]
    assert (frame.extent.low, frame.extent.high) == (arena - 1000 + 44, first)
    result = heap_map(trace, heap, columns=3)
    last = result["blocks"][result["blocks"]["column"] == 2]
    assert sum(int(run["size"]) for run in last) == result["footprint"]


REFUSED = [
    ([far()], "grows toward the last pool"),
    ([far(), general(top="list")], 'with "top" "last"'),
    ([far(), general(region=400)], 'no "region"'),
    ([far(), {"kind": "buddy"}], "make the last one a general pool"),
    ([far(header=8), general()], '"header" 8 differs from the 4'),
    ([far(), far(), general()], "taken from the arena's far end, too"),
    ([{"kind": "fixed", "sizes": [8], "header": 4}, far(), general()], "taken from the arena's far end, too"),
    ([far(coalesce="never"), general()], 'it needs "top" "last"'),
    ([far(boundary_tags=False), general()], 'it needs "top" "last"'),
    ([far(free_list="implicit"), general()], 'it needs "top" "last"'),
    ([far(top="bump", boundary_tags=False), general()], 'it needs "top" "last"'),
    ([far(region=400), general()], 'it needs "top" "last"'),
    ([far(unit=16), general()], '"unit" 16 would have to divide the arena\'s end'),
]


@each(("pools", "words"), REFUSED)
def test_what_cannot_lie_there_is_refused_in_one_line(pools: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(HeapwrightError) as output:
        recipe(*pools)
    assert words in str(output.value)
    assert "\n" not in str(output.value)


def test_the_place_is_part_of_the_recipe() -> None:
    near, away = (recipe(pool(min_size=100, **BINS), general(region=0, **BINS)) for pool in (_with_region, far))
    assert near.hash != away.hash
    assert "from the far end" in away.summary()
    assert Recipe.parse(away.to_toml()).hash == away.canonical().hash == away.hash
    assert away.at_alignment(16).pools[0].grows_down
    plain = recipe(general(place="start"))
    assert plain.hash == recipe(general()).hash
    assert "place" not in plain.to_toml()


def _with_region(**keys: Any) -> dict[str, Any]:
    return general(region=4096, **keys)
