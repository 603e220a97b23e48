"""From a recipe to the policy: derived numbers worked out by hand, in the words of csrc/policy.h."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from case_tables import each
from recipes_random import random_recipes

from heapwright._native import ffi
from heapwright._recipes.policy import policy, policy_struct
from heapwright._recipes.pools import MAX_REACH, MAX_REQUEST
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError


def heap(*pools: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Policy of a recipe of these pools."""
    return policy(Recipe.from_dict({"align": 4, **keys, "pool": list(pools)}))


def general(**keys: Any) -> dict[str, Any]:
    return {"kind": "general", **keys}


def fixed(**keys: Any) -> dict[str, Any]:
    return {"kind": "fixed", **keys}


def some(values: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: values[name] for name in names.split()}


def test_the_2006_design() -> None:
    """Null node 0-7, refused 8, limit 12, high 16, two list heads 20-27, top 28, list 32; payloads are 4-aligned."""
    result = policy(zoo.load("drr-proposed"))
    quick, pool = result["pools"]
    assert some(result, "align pool_count control fixed_end arena_align reach") == {
        "align": 4,
        "pool_count": 2,
        "control": 36,
        "fixed_end": 36,
        "arena_align": 16,
        "reach": 1 << 31,
    }
    assert some(result, "refused_at shared_limit_at shared_high_at shared_end_at misused_at") == {
        "refused_at": 8,
        "shared_limit_at": 12,
        "shared_high_at": 16,
        "shared_end_at": 12,
        "misused_at": 0,
    }
    assert some(quick["quick"], "heads_at count sizes by_size limit_blocks flush mixed block_header block_least") == {
        "heads_at": 20,
        "count": 2,
        "sizes": [16, 1476],
        "by_size": 0,
        "limit_blocks": 0,
        "flush": 0,
        "mixed": 0,
        "block_header": 4,
        "block_least": 16,
    }
    assert some(pool["general"], "top_at lists_at list_stride start high_at limit_at min_block split_least") == {
        "top_at": 28,
        "lists_at": 32,
        "list_stride": 4,
        "start": 36,
        "high_at": 16,
        "limit_at": 12,
        "min_block": 16,
        "split_least": 16,
    }
    assert (quick["cached"], pool["cached"], quick["last"], pool["last"]) == (0, 1, 0, 1)


def test_two_level_bins() -> None:
    """29 exact bins for payloads of 12 to 124 bytes, then 23 octaves of 32 up to 2^30 (Masmano et al. 2004)."""
    pool = policy(zoo.load("tlsf"))["pools"][0]["general"]
    bins = "bins bin_linear bin_linear_bins bin_first bin_octave bin_steps_log2 bin_round_up"
    assert some(pool, bins) == {
        "bins": 29 + 23 * 32,
        "bin_linear": 128,
        "bin_linear_bins": 29,
        "bin_first": 3,
        "bin_octave": 7,
        "bin_steps_log2": 5,
        "bin_round_up": 1,
    }
    assert pool["bitmap_at"] == pool["summary_at"] + 4
    assert pool["lists_at"] == pool["bitmap_at"] + 24 * 4
    assert pool["start"] == pool["lists_at"] + 765 * 4 + 4 == 3188, "as many bytes as the original's structure"


def test_classes_that_grow() -> None:
    """Kingsley: the heads of 28 classes behind refused, limit and high, then the upper end of what they grow from."""
    result = policy(zoo.load("kingsley"))
    pool = result["pools"][0]["fixed"]
    assert pool["sizes"] == [2**power - 4 for power in range(3, 31)]
    assert some(pool, "grow page header heads_at end_at limit_at high_at") == {
        "grow": 1,
        "page": 4096,
        "header": 4,
        "heads_at": 12,
        "end_at": 12 + 28 * 4,
        "limit_at": 4,
        "high_at": 8,
    }
    assert result["shared_end_at"] == pool["end_at"]
    assert result["fixed_end"] == 128


@pytest.mark.parametrize(
    ("sizes", "lacks"),
    [
        ([8, 16, 32], 0),
        ([4, 12, 28], 4),
        ([16, 48, 64], None),
        ([24, 48, 96], None),
        ([64], None),
        ([8, 12], None),
    ],
)
def test_classes_that_double_are_found_by_the_highest_bit(sizes: list[int], lacks: int | None) -> None:
    pool = heap(fixed(sizes=sizes, counts=[2] * len(sizes)))["pools"][0]["fixed"]
    assert (pool["doubles"], pool["lacks"]) == ((0, 0) if lacks is None else (1, lacks))


def test_classes_of_single_bytes_are_not_found_by_the_highest_bit() -> None:
    pool = heap(fixed(sizes=[1, 2, 4], counts=[2] * 3, find="first-fit"), align=1)["pools"][0]["fixed"]
    assert (pool["doubles"], pool["lacks"]) == (0, 0)


def test_maps_of_counted_classes() -> None:
    """3 blocks of 8 bytes, 2 of 16, 4 of 40 and 1 of 68: all bounds but the last size are multiples of 8."""
    pool = heap(fixed(sizes=[8, 16, 40, 68], counts=[3, 2, 4, 1]), align=4)["pools"][0]
    assert some(pool["fixed"], "mapped size_step size_even region_step region_even") == {
        "mapped": 1,
        "size_step": 3,
        "size_even": 1,
        "region_step": 3,
        "region_even": 1,
    }
    assert pool["fixed"]["size_map"] == [0, 0, 1, 2, 2, 2, 3, 3, 3, 3], "0 bytes, up to 8, up to 16, ... up to 72"
    assert pool["fixed"]["region_map"] == [0] * 3 + [1] * 4 + [2] * 20 + [3] * 9
    assert pool["fast_max"] == 68, "no map is queried for more"


def test_maps_in_which_classes_end_within_a_step() -> None:
    """2,000 bytes in at most 256 steps, and 9,440 bytes of blocks in at most 16 steps a class."""
    pool = heap(fixed(sizes=[24, 40, 400, 2000], counts=[10, 30, 10, 2]), align=8)["pools"][0]["fixed"]
    assert some(pool, "size_step size_even region_step region_even") == {
        "size_step": 3,
        "size_even": 1,
        "region_step": 8,
        "region_even": 0,
    }
    first = pool["blocks_at"][0]
    assert pool["ends_at"] == [first + 240, first + 1440, first + 5440, first + 9440]
    assert pool["ends_at"] == [*pool["blocks_at"][1:], pool["end"]]
    assert pool["region_map"] == [0] + [1] * 5 + [2] * 16 + [3] * 15
    odd = heap(fixed(sizes=[12, 20, 400, 2000], counts=[10, 30, 10, 2]), align=4)["pools"][0]["fixed"]
    assert (odd["size_step"], odd["size_even"], odd["size_map"][:5]) == (3, 0, [0, 0, 0, 1, 2])


@pytest.mark.parametrize(
    "pool",
    [
        fixed(sizes=[8, 16, 40], counts=[3, 2, 4]),
        fixed(sizes=[8, 16, 40, 64], header=4),
    ],
)
def test_few_classes_and_those_that_grow_have_no_map(pool: dict[str, Any]) -> None:
    result = heap(pool)["pools"][0]
    assert some(result["fixed"], "mapped size_map") == {"mapped": 0, "size_map": []}
    assert result["fast_max"] == MAX_REQUEST


def test_classes_that_double_need_no_map_of_sizes() -> None:
    pool = heap(fixed(sizes=[8, 16, 32, 64], counts=[2] * 4))["pools"][0]["fixed"]
    assert (pool["mapped"], pool["doubles"], pool["size_map"]) == (1, 1, [])
    assert len(pool["region_map"]) == 15, "16 bytes are the largest step that all regions begin with"


def test_classes_with_counts_lie_one_behind_the_other() -> None:
    """3 blocks for up to 12 bytes and 2 for 20, each with 2 bytes of header, and every payload a multiple of 4."""
    pool = fixed(sizes=[10, 20], counts=[3, 2], header=2)
    result = heap(pool, general(), align=4)
    classes, rest = result["pools"][0]["fixed"], result["pools"][1]["general"]
    first, second = classes["blocks_at"]
    assert (first + 2) % 4 == (second + 2) % 4 == 0
    assert second == first + 3 * 16
    assert classes["end"] == second + 2 * 24
    assert result["control"] <= first < result["control"] + 4
    assert rest["start"] >= classes["end"]
    assert result["fixed_end"] == rest["start"]


def test_flags_take_a_byte_a_block() -> None:
    flagged = heap(fixed(sizes=[8, 16], counts=[5, 7], find="first-fit"))
    pool = flagged["pools"][0]["fixed"]
    assert pool["flags_at"] == [pool["flags_at"][0], pool["flags_at"][0] + 5]
    assert pool["heads_at"] == 0, "nothing is listed"
    assert heap(fixed(sizes=[8, 16], counts=[5, 7]))["pools"][0]["fixed"]["flags_at"] == []


def test_a_region_of_its_own_lies_before_the_shared_part() -> None:
    result = heap(general(region=1000, max_size=64), general(fit="best"))
    own, shared = (pool["general"] for pool in result["pools"])
    assert own["start"] >= result["control"]
    assert result["fixed_end"] == shared["start"] >= own["start"] + 1000
    assert own["high_at"] != shared["high_at"] == result["shared_high_at"]
    assert own["limit_at"] != shared["limit_at"] == result["shared_limit_at"]
    assert result["pools"][0]["max_size"] == 64
    assert result["pools"][1]["max_size"] == MAX_REQUEST


@each(
    ("keys", "pool", "reach"),
    [
        ({}, {}, MAX_REACH),
        ({"align": 4}, {"header": 2}, (2**14 - 1) * 4),
        ({"align": 4}, {"header": 2, "boundary_tags": False}, (2**15 - 1) * 4),
        ({"align": 8}, {"header": 2}, (2**14 - 1) * 8),
        ({"align": 4}, {"header": 3}, (2**22 - 1) * 4),
        ({"align": 1}, {"header": 4}, 2**30 - 1),
        ({"align": 2}, {"header": 4, "boundary_tags": False}, MAX_REACH),
        ({"align": 4, "link_bytes": 2}, {}, 0xFFFF * 4),
        ({"align": 16, "link_bytes": 2}, {}, 0xFFFF * 16),
        ({"align": 4, "link_bytes": 2}, {"header": 2}, (2**14 - 1) * 4),
    ],
)
def test_reach_is_what_links_and_size_fields_hold(keys: dict[str, int], pool: dict[str, Any], reach: int) -> None:
    """A header of n bytes keeps 8n - flags bits of size in units of the alignment; 4 bytes keep it as it is."""
    assert heap(general(**pool), **keys)["reach"] == reach


def test_control_data_beyond_the_reach_is_refused() -> None:
    with pytest.raises(HeapwrightError, match="link_bytes") as caught:
        heap(fixed(sizes=[1000], counts=[300]), align=4, link_bytes=2)
    assert "262140" in str(caught.value)


def test_links_of_two_bytes_count_in_units_of_the_alignment() -> None:
    for align, shift in ((1, 0), (2, 1), (4, 2), (8, 3), (16, 4)):
        links = heap(general(header=4), align=align, link_bytes=2)["pools"][0]["general"]["links"]
        assert links["field"] == {"bytes": 2, "natural": int(align > 1)}
        assert links["shift"] == shift
        links = heap(general(header=4), align=align, link_bytes=4)["pools"][0]["general"]["links"]
        assert links["field"] == {"bytes": 4, "natural": int(align >= 4)}
        assert links["shift"] == 0


def test_headers_that_are_not_aligned_are_read_bytewise() -> None:
    for align, header, natural in ((4, 4, 1), (4, 2, 1), (4, 1, 1), (4, 3, 0), (2, 4, 0), (8, 12, 1), (4, 6, 0)):
        pool = heap(general(header=header), align=align)["pools"][0]["general"]
        assert pool["word"] == {"bytes": min(header, 4), "natural": natural}, (align, header)


def test_only_what_a_policy_needs_has_a_place_in_the_control_data() -> None:
    plain = heap(general(free_list="single", boundary_tags=False))
    assert plain["control"] == 5 * 4, "refused, limit, high, top, list"
    assert heap(general(free_list="double", boundary_tags=False))["control"] == 5 * 4 + 8
    assert heap(general(free_list="single", boundary_tags=False), checks="frees")["control"] == 7 * 4
    assert heap(general(free_list="implicit", boundary_tags=False))["control"] == 4 * 4
    assert heap(general(free_list="single", boundary_tags=False, fit="next"))["control"] == 6 * 4
    assert heap(general(free_list="single", boundary_tags=False, order="fifo"))["control"] == 6 * 4
    assert heap(general(free_list="single", boundary_tags=False, coalesce="deferred"))["control"] == 6 * 4
    partial = general(free_list="single", boundary_tags=False, fit="best", search_percent=50)
    assert heap(partial)["control"] == 6 * 4
    assert heap({**partial, "search_percent": 100})["control"] == 5 * 4
    assert heap({"kind": "quick", "sizes": [8]}, general(free_list="single", boundary_tags=False))["control"] == 6 * 4
    limited = {"kind": "quick", "sizes": [8], "limit_blocks": 3}
    assert heap(limited, general(free_list="single", boundary_tags=False))["control"] == 7 * 4


def test_quick_lists_hold_what_the_pool_below_gives() -> None:
    """Requests of 17 and 20 bytes come from the same block of 24; up to 33 bytes means blocks of 16, 20, ... 40."""
    listed = heap({"kind": "quick", "sizes": [17, 20, 100]}, general())["pools"][0]["quick"]
    assert (listed["count"], listed["sizes"], listed["by_size"]) == (2, [20, 100], 0)
    up_to = heap({"kind": "quick", "up_to": 33}, general())["pools"][0]["quick"]
    assert (up_to["count"], up_to["up_to"], up_to["by_size"]) == (7, 40, 1)


def test_the_heap_knows_what_its_pools_are() -> None:
    flushed = {"kind": "quick", "sizes": [8], "flush": "before-growing"}
    assert heap(flushed, general())["flushes"] == 1
    assert heap({**flushed, "flush": "never"}, general())["flushes"] == 0
    growing = fixed(sizes=[8, 16], header=8)
    assert some(heap(growing, general(header=8)), "grows_down end_header shared_end_at") == {
        "grows_down": 1,
        "end_header": 8,
        "shared_end_at": heap(growing, general(header=8))["pools"][0]["fixed"]["end_at"],
    }
    assert some(heap(general()), "grows_down end_header") == {"grows_down": 0, "end_header": 0}
    below = heap({"kind": "quick", "sizes": [8]}, general(region=512, max_size=64), general())["pools"]
    assert [(pool["cached"], pool["last"]) for pool in below] == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("pools", "empty_as_one"),
    [
        ([general()], 1),
        ([general(header=12, links_in="header", boundary_tags=False, min_block=12)], 0),
        ([fixed(sizes=[8], counts=[2])], 1),
        ([{"kind": "buddy"}], 1),
        ([{"kind": "partition"}], 0),
        ([{"kind": "quick", "sizes": [8]}, {"kind": "partition"}], 0),
        ([{"kind": "quick", "sizes": [8]}, general()], 1),
    ],
)
def test_pools_that_give_no_bytes_the_block_of_one(pools: list[dict[str, Any]], empty_as_one: int) -> None:
    assert heap(*pools)["empty_as_one"] == empty_as_one


def test_a_list_of_mixed_blocks_looks_at_their_sizes() -> None:
    """Where a block may be smaller than its list says, or may come from several pools, its own size counts."""
    quick = {"kind": "quick", "up_to": 16}
    below: list[tuple[int, list[dict[str, Any]]]] = [
        (0, [general()]),
        (1, [general(region=512), general()]),
        (1, [general(round_to="power-of-two")]),
        (0, [fixed(sizes=[4, 16], counts=[9, 9])]),
        (1, [fixed(sizes=[2, 16], counts=[9, 9], find="first-fit")]),
    ]
    for mixed, pools in below:
        align = 2 if pools[0]["kind"] == "fixed" else 4
        assert heap(quick, *pools, align=align)["pools"][0]["quick"]["mixed"] == mixed, pools


def test_the_least_remainder_makes_a_block() -> None:
    for split, least in (("always", 16), ("never", 16), (8, 16), (16, 16), (64, 64), (65, 68)):
        assert heap(general(split=split))["pools"][0]["general"]["split_least"] == least, split


@each(
    ("keys", "field", "value", "otherwise"),
    [
        ({"split_from": "tail"}, "split_tail", 1, 0),
        ({"split": "never"}, "split", 0, 1),
        ({"remainder": "filed"}, "refile", 1, 0),
        ({"merged": "in-place"}, "merged", 1, 0),
        ({"merged": "at-next"}, "merged", 2, 0),
        ({"coalesce": "lazy", "order": "address", "merge_until": "enough"}, "merge_enough", 1, 0),
        ({"tag_in": "header"}, "tag_in_header", 1, 0),
        ({"tag_in": "header", "coalesce": "deferred"}, "tag_in_header", 0, 0),
        ({"boundary_tags": False}, "boundary_tags", 0, 1),
        ({"top": "list"}, "end_word", 1, 0),
        ({"top": "list", "boundary_tags": False}, "end_word", 0, 0),
        ({"top": "bump", "boundary_tags": False, "grow_least": 65}, "grow_least", 68, 0),
        ({"round_to": "power-of-two"}, "powers", 1, 0),
        ({"bins": "two-level"}, "bin_round_up", 1, 0),
        ({"bins": "two-level"}, "bin_unmark", 1, 0),
        ({"bins": "two-level", "top": "list", "round_to": "bin"}, "bin_fill", 1, 0),
        ({"bins": "exact", "search_most": 3}, "bin_unmark", 0, 0),
        ({"bins": "lea", "unsorted": True}, "unsorted", 1, 0),
        ({"trailer": 3}, "overhead", 7, 4),
        ({"header": 12, "links_in": "header"}, "node", 4, 4),
        ({"fit": "best", "search_percent": 30}, "search_percent", 30, 100),
        ({"fit": "best", "free_list": "implicit"}, "search_percent", 100, 100),
        ({"bins": "exact", "bin_by": "payload"}, "bin_less", 4, 0),
        ({"bins": "exact"}, "bins", (2048 - 16) // 4 + 4 * 20, 0),
        ({"bins": "exact", "most_bins": 587}, "bins", 587, 0),
        ({"bins": "exact", "most_bins": 587}, "bin_last", 1, 0),
        ({"bins": "exact", "most_bins": 588}, "bin_last", 0, 0),
    ],
)
def test_what_a_key_of_a_general_pool_becomes(keys: dict[str, Any], field: str, value: int, otherwise: int) -> None:
    assert heap(general(**keys))["pools"][0]["general"][field] == value
    assert heap(general())["pools"][0]["general"][field] == otherwise


def test_no_request_is_taken_whose_block_is_beyond_reach() -> None:
    """Size fields of 14 bits count blocks up to 65,532 bytes, of which one unit is kept back."""
    for keys, largest in (
        ({}, 65_528 - 2),
        ({"trailer": 4}, 65_528 - 2 - 4),
        ({"unit": 64}, 64 * (2**14 - 2) - 2),
        ({"round_to": "power-of-two"}, 32_768 - 2),
        ({"max_size": 100}, 100),
    ):
        assert heap(general(header=2, **keys))["pools"][0]["max_size"] == largest, keys


def test_links_of_2_bytes_halve_the_heads_of_double_lists() -> None:
    """No link leads to a head then: vouched links do, and those of a list that knows its last block."""

    def stride(link_bytes: int, checks: str = "none", **keys: Any) -> tuple[int, int]:
        pool = general(bins="exact", linear_up_to=128, **keys)
        result = heap(pool, align=8, link_bytes=link_bytes, checks=checks)["pools"][0]["general"]
        return result["list_stride"], result["heads_close"]

    assert (stride(4), stride(2), stride(2, "frees")) == ((4, 0), (2, 1), (2, 1))
    assert (stride(2, "neighbours"), stride(2, order="fifo")) == ((8, 0), (8, 0))


@each(
    ("pool", "keys", "places"),
    [
        (
            {"kind": "buddy", "max_block": 64},  # behind the null node 0-7, refused 8, limit 12, high 16
            {},
            {"top_at": 20, "lists_at": 24, "orders": 3, "high_at": 16, "limit_at": 12, "start": 24 + 3 * 4},
        ),
        (
            {"kind": "buddy", "max_block": 32, "region": 100, "header": 2},
            {"link_bytes": 2},  # null node 0-3; a list head takes a unit
            {"top_at": 16, "high_at": 20, "limit_at": 24, "lists_at": 28, "list_stride": 4, "start": 28 + 2 * 4 + 2},
        ),
        (
            {"kind": "partition"},  # refused 0, limit 4, high 8
            {},
            {"head_at": 12, "top_at": 16, "high_at": 8, "limit_at": 4, "end_at": 20, "start": 24},
        ),
        (
            {"kind": "partition", "lists": 3},  # three heads, and the bitmap
            {},
            {"head_at": 12, "bitmap_at": 24, "top_at": 28, "lists": 3, "end_at": 32, "start": 36},
        ),
        (
            {"kind": "partition", "size": 64, "count": 4, "descriptor_bytes": 17},
            {"align": 8},
            {"head_at": 12, "top_at": 16, "high_at": 20, "end_at": 0, "descriptors": 24, "start": 96, "end": 352},
        ),
        (
            {"kind": "compact"},
            {},
            {"holes_at": 12, "top_at": 16, "high_at": 8, "limit_at": 4, "start": 20, "head_at": 0},
        ),
        (
            {"kind": "compact", "when": "eager", "header": 0},
            {},
            {"head_at": 12, "top_at": 16, "holes_at": 0, "start": 20},
        ),
        (
            {"kind": "fixed", "sizes": [8, 16], "header": 8, "find": "first-fit"},
            {},
            {"heads_at": 12, "tails_at": 20, "end_at": 28, "carved_at": 0, "high_at": 8, "limit_at": 4},
        ),
        (
            {"kind": "fixed", "sizes": [8, 16], "counts": [3, 2], "find": "first-fit"},
            {},
            {"flags_at": [12, 15], "carved_at": 20, "blocks_at": [28, 52], "end": 84, "heads_at": 0, "end_at": 4},
        ),
        (
            {"kind": "general", "bins": "lea", "unsorted": True},
            {},
            {"unsorted_at": 20, "remainder_at": 28, "top_at": 32, "summary_at": 36, "bitmap_at": 40, "lists_at": 60},
        ),
        (
            {"kind": "general", "bins": "exact", "victim_up_to": 64, "close_bins": 2, "linear_up_to": 32},
            {"align": 8},  # 2 linear bins, and 4 in each of 26 octaves
            {"top_at": 20, "victim_at": 24, "summary_at": 32, "bitmap_at": 36, "lists_at": 56, "bins": 106},
        ),
        (
            {"kind": "general", "bins": "exact", "victim_up_to": 64, "close_bins": 2, "linear_up_to": 512},
            {"align": 8},  # the bitmap is two words at a time, so it ends with one that has no marks
            {"bins": 150, "bitmap_at": 36, "lists_at": 64},
        ),
        (
            {"kind": "general", "bins": "exact", "victim_up_to": 64, "linear_up_to": 512},
            {"align": 8},
            {"bins": 150, "bitmap_at": 36, "lists_at": 56},
        ),
    ],
)
def test_where_control_data_and_memory_lie(pool: dict[str, Any], keys: dict[str, Any], places: dict[str, int]) -> None:
    result = heap(pool, **keys)["pools"][0][pool["kind"]]
    assert some(result, " ".join(places)) == places


def test_headers_of_objects_that_move_are_two_halves() -> None:
    for header, half, natural in ((4, 2, 1), (5, 2, 0), (6, 3, 0), (8, 4, 1), (12, 4, 1), (16, 4, 1), (10, 4, 0)):
        word = heap({"kind": "compact", "header": header})["pools"][0]["compact"]["word"]
        assert word == {"bytes": half, "natural": natural}, header


def test_keys_take_no_word_one_or_four() -> None:
    for checks, words in (("none", 0), ("frees", 0), ("neighbours", 1), ("full", 4)):
        result = heap({"kind": "general", "header": 8}, checks=checks)
        assert (result["keys"], result["keys_at"] > 0) == (words, words > 0), checks


def test_arenas_are_aligned_for_every_unit() -> None:
    assert heap(general())["arena_align"] == 16
    assert heap(general(unit=64))["arena_align"] == 64
    assert heap(general(unit=64, region=640, max_size=100), general())["arena_align"] == 64


def leaves(values: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """(path, number) of every number in nested dicts and lists."""
    if isinstance(values, int):
        yield path, values
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield from leaves(value, f"{path}.{key}")


def test_the_struct_holds_what_the_dictionary_says() -> None:
    for recipe in zoo.recipes() + random_recipes(50, seed=8):
        struct = policy_struct(recipe)
        for path, expected in leaves(policy(recipe)):
            result = struct
            for key in path.strip(".").split("."):
                result = result[int(key)] if key.isdigit() else getattr(result, key)
            assert result == expected, path


def test_every_field_of_the_struct_is_set() -> None:
    """But those of the pool kinds that a pool is not."""
    result = policy(zoo.load("victim-bins"))
    kind = ffi.typeof("struct hw_policy")
    assert set(result) == {name for name, _ in kind.fields}
    pools = {
        "quick": heap({"kind": "quick", "sizes": [8]}, general())["pools"][0]["quick"],
        "general": result["pools"][0]["general"],
        "fixed": heap(fixed(sizes=[8], counts=[2]))["pools"][0]["fixed"],
    }
    for name, values in pools.items():
        assert set(values) == {field for field, _ in ffi.typeof(f"struct hw_{name}").fields}
