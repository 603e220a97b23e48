"""Pages of objects without headers: what their keys say, where their control data lies, what a replay counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case_tables import each
from metric_values import known
from pool_recipes import random_trace, recipe

from heapwright._recipes.kinds.pages import MOST_PAGES
from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.pools import Pages
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._replay.arena_sizes import fit
from heapwright._replay.monotone_minimum import safe_arena
from heapwright._replay.pictures import HEAP_MAP_STATES, heap_map, metadata
from heapwright._replay.reach import reach
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

PAGES: dict[str, Any] = {"kind": "pages", "up_to": 64}
GENERAL: dict[str, Any] = {"kind": "general", "bins": "exact", "fit": "best"}
MALLOC, REALLOC, FREE = 0, 2, 3


def paged(*below: dict[str, Any], **keys: Any) -> Recipe:
    return recipe({**PAGES, **keys}, *below, align=8)


# ---- keys ----------------------------------------------------------------------------------------------------------


@each(
    ("pools", "problem"),
    [
        ([{"kind": "pages"}], 'needs either "sizes" (bytes of each class) or "up_to" (evenly spaced classes)'),
        ([{**PAGES, "sizes": [8]}], 'needs either "sizes" (bytes of each class) or "up_to"'),
        ([{"kind": "pages", "sizes": [8], "spacing": 8}], '"spacing" needs "up_to"'),
        ([{"kind": "pages", "sizes": [9, 16]}], "two classes are the same at align 8"),
        ([{**PAGES, "up_to": 520}], '"up_to" makes 65 classes; valid: at most 64, with a larger "spacing"'),
        (
            [{"kind": "pages", "page_bytes": 512, "sizes": [504]}],
            '"page_bytes" 512 holds no object of 504 bytes; valid: up to 496',
        ),
        ([{**PAGES, "min_size": 65}, GENERAL], '"min_size" 65 is above the largest class, 64'),
        ([{**PAGES, "page_bytes": 768}], '"page_bytes": 768 is not valid; valid: 512, 1024, 2048, 4096'),
        ([PAGES, PAGES], "both its pages and the pages pool would grow from the arena's end"),
        ([PAGES, {"kind": "fixed", "sizes": [8], "header": 4}, GENERAL], "pages and the fixed pool would grow"),
        ([PAGES, {"kind": "partition"}], "pages and the partition pool would grow"),
        ([PAGES, {**GENERAL, "bins": "none", "top": "list"}], '"top" "list" leaves nothing to the pages pool'),
    ],
)
def test_contradictions_say_what_would_be_valid(pools: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(HeapwrightError) as error:
        recipe(*pools, align=8)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"up_to": 24}, {"up_to": None, "sizes": [24, 8, 16]}),
        ({"up_to": 40, "spacing": 16}, {"up_to": 48, "spacing": 9}),
        ({"up_to": 30, "spacing": 8}, {"up_to": 32}),
        ({"max_size": 64}, {}),
    ],
)
def test_equal_pages_have_equal_hashes(one: dict[str, Any], other: dict[str, Any]) -> None:
    def only(keys: dict[str, Any]) -> str:
        return recipe({key: value for key, value in {**PAGES, **keys}.items() if value is not None}, align=8).hash

    assert only(one) == only(other)
    assert only(one) != only({**other, "page_bytes": 512})


def test_words() -> None:
    assert Pages(up_to=64).summary() == "pages of 1024 B up to 64 B"
    assert Pages(up_to=64, spacing=16, min_size=9).summary() == "pages of 1024 B up to 64 B by 16 B from 9 B"
    assert Pages(sizes=(16, 48), page_bytes=512).summary() == "pages of 512 B for 16,48"
    assert Pages(sizes=(16, 48)).title() == "pages of 16, 48"


def test_another_alignment_rounds_the_classes() -> None:
    pools = recipe({"kind": "pages", "sizes": [20, 24, 40]}, align=4).at_alignment(16).canonical().pools
    assert pools == (Pages(sizes=(32, 48)),)


# ---- the arena -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "checks", "unit", "words", "counts"),
    [
        ({"up_to": 24, "page_bytes": 512}, "none", 8, 2, [62, 31, 20]),
        ({"up_to": 32, "spacing": 16, "page_bytes": 512}, "none", 16, 1, [31, 15]),
        ({"sizes": [256], "up_to": None}, "none", 256, 1, [3]),
        ({"sizes": [12, 68], "up_to": None}, "full", 8, 4, [62, 13]),
    ],
)
def test_what_a_page_holds(keys: dict[str, Any], checks: str, unit: int, words: int, counts: list[int]) -> None:
    """A page less its 8 bytes and a word of bits for 32 units, the largest power of two that divides all classes."""
    drawn = {key: value for key, value in {**PAGES, **keys}.items() if value is not None}
    (pool,) = policy(recipe(drawn, align=4 if checks == "full" else 8, checks=checks))["pools"]
    result = pool["pages"]
    assert (1 << result["unit_shift"], result["words"], result["counts"]) == (unit, words, counts)
    assert result["room"] == (1 << result["page_log2"]) - 8 - 4 * words == result["state"] - 4 * words


def test_control_data() -> None:
    """Three numbers of pages, two bytes each: of two classes and of empty pages; then three words."""
    result = policy(paged(up_to=16))
    pool = result["pages"] if "pages" in result else result["pools"][0]["pages"]
    assert [pool[key] for key in ("heads_at", "given_at", "seen_at", "end_at")] == [12, 20, 24, 28]
    assert (result["control"], result["grows_down"], result["end_header"]) == (32, 1, 0)
    assert result["shared_end_at"] == 28


def test_what_pages_reach() -> None:
    alone, beside = reach(paged(page_bytes=512)), reach(paged(GENERAL, page_bytes=512))
    assert alone.arena_bytes == policy(paged(page_bytes=512))["fixed_end"] + 4 + 512 * MOST_PAGES, "aligned"
    assert alone.request_bytes == 64
    assert beside.arena_bytes is None


# ---- replay --------------------------------------------------------------------------------------------------------


def test_an_arena_of_both_ends_is_as_large_as_they_ever_were_together() -> None:
    """Pages of small objects go back before the large block comes: the sum of both at their peaks is not needed."""
    small = 100
    trace = Trace.from_columns(
        op=[MALLOC] * small + [FREE] * small + [MALLOC],
        id=[*range(small), *range(small), small],
        size=[64] * small + [0] * small + [4000],
    )
    heap = paged(GENERAL, page_bytes=512)
    result = replay(trace, heap, check_invariants=True)
    pages = -(-small // 7)  # of 7 objects each
    assert result["footprint_bytes"] == policy(heap)["fixed_end"] + 4 + pages * 512, "ends are aligned"
    assert result["header_bytes"] == pages * 16
    assert result["external_bytes"] == pages * 496 - (7 * (pages - 1) + 1) * 64 + 4, "as the last page begins"


@pytest.mark.parametrize("page_bytes", [512, 1024, 2048, 4096])
@pytest.mark.parametrize("below", [[], [GENERAL], [{"kind": "buddy"}]], ids=["alone", "general", "buddy"])
def test_the_footprint_is_a_safe_arena(page_bytes: int, below: list[dict[str, Any]]) -> None:
    """And the smallest one, where a request for which there is no page goes nowhere else."""
    heap = paged(*below, page_bytes=page_bytes)
    trace = random_trace(page_bytes, largest=300 if below else 64)
    result = replay(trace, heap, check_invariants=True)
    assert result["failed"] == 0
    smallest, safe = fit(trace, heap), safe_arena(trace, heap)
    assert smallest is not None and safe is not None and safe.proved
    assert smallest <= safe.bytes <= known(result["footprint_bytes"])
    assert below or smallest == result["footprint_bytes"]
    parts = sum(known(result[key]) for key in ("internal_bytes", "external_bytes", "header_bytes"))
    assert parts < known(result["footprint_bytes"])


def test_metadata_of_pages_lies_behind_their_objects() -> None:
    heap = paged(up_to=16, page_bytes=512)
    trace = Trace.from_columns(op=[MALLOC, MALLOC], id=[1, 2], size=[16, 8])
    arena = policy(heap)["fixed_end"] + 1024
    memory, marks = metadata(trace, heap, arena)
    control = policy(heap)["control"]
    assert len(memory) == arena == control + 1024
    marked = np.flatnonzero(marks[control:])
    assert list(marked) == [*range(496, 512), *range(1008, 1024)]


def test_a_picture_shows_objects_and_descriptions() -> None:
    trace = Trace.from_columns(op=[MALLOC], id=[1], size=[64])
    result = heap_map(trace, paged(page_bytes=512), columns=1)
    drawn = [(HEAP_MAP_STATES[state], int(size)) for state, size in result["blocks"][["state", "size"]].tolist()]
    control = int(policy(paged(page_bytes=512))["fixed_end"])
    assert result["footprint"] == control + 4 + 512
    ahead = [("control data", control), ("untouched", 4)]
    assert drawn == [*ahead, ("payload in use", 64), ("free", 384), ("untouched", 48), ("header", 16)]


def test_worst_steps_hold() -> None:
    for keys in ({}, {"page_bytes": 4096, "up_to": 8}, {"sizes": [24, 200], "up_to": None}):
        drawn = {key: value for key, value in {**PAGES, **keys}.items() if value is not None}
        heap = recipe(drawn, {"kind": "fixed", "sizes": [900], "counts": [400]}, align=8)
        result = replay(random_trace(5), heap)
        steps = worst_steps(heap)
        assert 0 < known(result["accesses_malloc_max"]) <= known(steps.malloc)
        assert 0 < known(result["accesses_free_max"]) <= known(steps.free)


def test_a_policy_for_the_core() -> None:
    struct = policy_struct(paged(GENERAL))
    assert struct.pools[0].pages.most == MOST_PAGES
    assert (struct.pools[0].last, struct.pools[1].last) == (0, 1)
