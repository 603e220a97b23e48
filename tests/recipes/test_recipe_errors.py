"""Recipes that are refused: how the errors read, which keys and pools contradict one another, and which get along."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from case_tables import each
from pool_recipes import GENERAL, general, recipe

from heapwright._heaps.names import resolve_recipe
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import General
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._support.errors import HeapwrightError

REFUSED = [
    ("", "needs 1 to 8 [[pool]] tables; valid kinds: quick, general, fixed"),
    ("pool = []", "needs 1 to 8 [[pool]] tables; valid kinds: quick, general, fixed"),
    ("[[pool]]\nkind = 'general'\n" * 9, "needs 1 to 8 [[pool]] tables; valid kinds: quick, general, fixed"),
    ("pool = [3]", "pool 1: is not a table; valid: [[pool]] with a kind"),
    ("[[pool]]\nfit = 'first'", 'pool 1: "kind" is missing; valid: quick, general, fixed'),
    ("[[pool]]\nkind = 'slab'", 'pool 1: "kind" "slab" is not valid; valid: quick, general, fixed'),
    (
        "aling = 4\n[[pool]]\nkind = 'general'",
        'unknown key "aling"; did you mean "align"? valid: name, year, source, about,',
    ),
    ("align = 3\n[[pool]]\nkind = 'general'", '"align": 3 is not valid; valid: 1, 2, 4, 8, 16'),
    ("align = true\n[[pool]]\nkind = 'general'", '"align": true is not valid; valid: 1, 2, 4, 8, 16'),
    ("align = 4.0\n[[pool]]\nkind = 'general'", '"align": 4.0 is not valid; valid: 1, 2, 4, 8, 16'),
    ("link_bytes = 3\n[[pool]]\nkind = 'general'", '"link_bytes": 3 is not valid; valid: 2, 4'),
    ("checks = 1\n[[pool]]\nkind = 'general'", '"checks": 1 is not valid; valid: none, frees, neighbours, full'),
    (
        "[[pool]]\nkind = 'quick'\nsizes = [8]\nlimit_block = 3\n[[pool]]\nkind = 'general'",
        'pool 1 (quick): unknown key "limit_block"; did you mean "limit_blocks"? valid: min_size, max_size,',
    ),
    (
        "[[pool]]\nkind = 'general'\norder = 'random'",
        'pool 1 (general): "order": "random" is not valid; valid: lifo, fifo, address, size',
    ),
    (
        "[[pool]]\nkind = 'general'\nsplit = 'sometimes'",
        'pool 1 (general): "split": "sometimes" is not valid; valid: always, never, a whole number from 0 to',
    ),
    (
        "[[pool]]\nkind = 'general'\nheader = 0\ncoalesce = 'immediate'",
        'pool 1 (general): "header" 0: splitting, coalescing and free read the size of a block from its header;',
    ),
    (
        "[[pool]]\nkind = 'general'\nheader = 17",
        'pool 1 (general): "header": 17 is not valid; valid: a whole number from',
    ),
    (
        "[[pool]]\nkind = 'fixed'",
        'pool 1 (fixed): "sizes" is missing; valid: a list of 1 to 64 whole numbers from 1 to',
    ),
    (
        "[[pool]]\nkind = 'fixed'\nsizes = [8, 'a']",
        'pool 1 (fixed): "sizes": "a" is not valid; valid: a list of 1 to 64',
    ),
    (
        "[[pool]]\nkind = 'general'\nheader = 99\nfit = 'good'",
        'pool 1 (general): "header": 99 is not valid; valid: a whole number from 1 to 16 (and 1 more)',
    ),
    ("pool = [", "not valid TOML: "),
]


@each(("toml", "message"), REFUSED)
def test_a_wrong_key_or_value_is_one_line_with_the_valid_ones(toml: str, message: str) -> None:
    with pytest.raises(HeapwrightError) as refused:
        Recipe.parse(toml, "my.toml")
    assert not isinstance(refused.value, ContradictionError)
    text = str(refused.value)
    assert text.startswith("my.toml: " + message)
    assert "\n" not in text


def test_the_first_problem_is_told_and_how_many_more_there_are() -> None:
    for keys, end in (
        ({}, "valid: a whole number from 1 to 16"),
        ({"trailer": 17, "unit": -1}, "1 to 16 (and 2 more)"),
    ):
        with pytest.raises(HeapwrightError) as refused:
            general(header=17, **keys)
        assert str(refused.value).startswith('recipe: pool 1 (general): "header": 17 is not valid; ')
        assert str(refused.value).endswith(end)


def test_a_long_value_is_cut() -> None:
    for digits, quoted in ((60, "9" * 60), (61, "9" * 57 + "...")):
        with pytest.raises(HeapwrightError, match=rf'"header": {re.escape(quoted)} is not valid'):
            general(header=int("9" * digits))


QUICK_8 = {"kind": "quick", "sizes": [8]}
QUICK_64 = {"kind": "quick", "up_to": 64}
IDLE_64 = {**QUICK_64, "flush": "idle"}
FIXED_8 = {"kind": "fixed", "sizes": [8], "counts": [4]}
BUDDY = {"kind": "buddy", "min_block": 16}
VICTIM = {**GENERAL, "bins": "exact", "victim_up_to": 1000}

CONTRADICTIONS: list[tuple[list[dict[str, Any]], str]] = [
    ([QUICK_8], "pool 1 (quick): no pool below it"),
    ([GENERAL, QUICK_8], "pool 1 (general): shares the rest of the arena and must be the last pool"),
    ([GENERAL, GENERAL], "pool 1 (general): shares the rest of the arena and must be the last pool"),
    ([{"kind": "quick"}, GENERAL], 'pool 1 (quick): needs either "sizes"'),
    ([{**QUICK_8, "up_to": 64}, GENERAL], 'pool 1 (quick): needs either "sizes"'),
    ([{**QUICK_8, "keep": "apart"}, GENERAL], 'pool 1 (quick): "keep" "apart" is not valid here'),
    ([QUICK_8, {**QUICK_8, "sizes": [99], "keep": "apart"}, VICTIM], 'pool 1 (quick): "keep" "all" is not valid'),
    ([{**QUICK_8, "flush": "over-limit"}, GENERAL], 'pool 1 (quick): "flush" "over-limit" has no limit'),
    ([{**QUICK_8, "flush": "idle", "limit_blocks": 4}, GENERAL], 'pool 1 (quick): "flush" "idle" is not'),
    ([{**QUICK_8, "lists_per_octave": 8}, GENERAL], 'pool 1 (quick): "lists_per_octave" needs "up_to"'),
    ([{**QUICK_64, "lists_per_octave": 12}, GENERAL], 'pool 1 (quick): "lists_per_octave" 12 is not valid; valid: 0'),
    ([{**QUICK_64, "refill": 8}, GENERAL], 'pool 1 (quick): "refill" needs "flush" "idle" in each'),
    ([{**IDLE_64, "refill": 1}, GENERAL], 'pool 1 (quick): "refill" 1 is not valid'),
    ([{**IDLE_64, "refill": 8}, {**GENERAL, "min_size": 2}], 'pool 1 (quick): "refill" needs one pool below'),
    ([{**IDLE_64, "refill": 8}, {**GENERAL, "split": "never"}], 'pool 1 (quick): "refill" needs a pool below that'),
    ([{**QUICK_64, "lists_per_octave": 8}, {**GENERAL, "min_size": 2}], 'pool 1 (quick): "lists_per_octave" needs one'),
    ([{**QUICK_64, "lists_per_octave": 8}, BUDDY], 'pool 1 (quick): "lists_per_octave" is not valid above blocks'),
    ([{**QUICK_8, "min_size": 9}, GENERAL], 'pool 1 (quick): "sizes" has none between'),
    ([{**QUICK_8, "min_size": 9, "max_size": 8}, GENERAL], 'pool 1 (quick): "min_size" 9 is above "max_size" 8'),
    ([{"kind": "quick", "sizes": [9]}, FIXED_8], 'pool 1 (quick): "sizes": no pool below serves 9 bytes'),
    ([QUICK_8, {**GENERAL, "max_size": 7}], 'pool 1 (quick): "sizes": no pool below serves 8 bytes'),
    ([QUICK_8, QUICK_8, GENERAL], "pool 2 (quick): 8 bytes is cached by two quick pools"),
    ([QUICK_8, {"kind": "quick", "up_to": 16}, GENERAL], "pool 2 (quick): 8 bytes is cached by two quick pools"),
    ([{"kind": "quick", "up_to": 8}, {"kind": "quick", "up_to": 16}, GENERAL], 'pool 2 (quick): a second "up_to"'),
    ([*({"kind": "quick", "sizes": [size]} for size in (8, 16, 24)), GENERAL], "pool 3 (quick): at most 2 quick pools"),
    ([{**GENERAL, "region": 256}] * 4 + [GENERAL], "pool 5 (general): at most 4 general pools"),
    ([{**GENERAL, "free_list": "implicit", "bins": "exact"}], 'pool 1 (general): "bins" "exact" needs lists'),
    (
        [{**GENERAL, "free_list": "tree", "bins": "lea"}],
        'pool 1 (general): "bins" "lea" needs lists of free blocks; valid with "free_list" "tree": "none"',
    ),
    (
        [{**GENERAL, "free_list": "tree", "fit": "next"}],
        'pool 1 (general): "fit" "next" is no order that a tree keeps; valid with "free_list" "tree": first, best',
    ),
    (
        [{**GENERAL, "free_list": "tree", "search_most": 9}],
        'pool 1 (general): "search_most" 9 counts free blocks of a list; valid with "free_list" "tree": 0',
    ),
    (
        [{**GENERAL, "free_list": "tree", "coalesce": "lazy"}],
        'pool 1 (general): "coalesce" "lazy" merges blocks that a search passes one after another',
    ),
    (
        [{**GENERAL, "free_list": "implicit", "fit": "best", "search_percent": 50}],
        'pool 1 (general): "search_percent" 50',
    ),
    ([{**GENERAL, "bins": "exact", "fit": "next"}], 'pool 1 (general): "fit" "next" roves over one list'),
    ([{**GENERAL, "bins": "two-level", "coalesce": "lazy", "order": "address"}], 'pool 1 (general): "coalesce" "lazy"'),
    ([{**GENERAL, "coalesce": "lazy"}], 'pool 1 (general): "coalesce" "lazy" merges blocks that are neighbours in the'),
    ([{**GENERAL, "victim_up_to": 64}], 'pool 1 (general): "victim_up_to" needs "bins"'),
    ([{**GENERAL, "bins": "exact", "victim_up_to": 64, "boundary_tags": False}], 'pool 1 (general): "victim_up_to"'),
    ([{**GENERAL, "bins": "exact", "victim_up_to": 64, "coalesce": "deferred"}], 'pool 1 (general): "victim_up_to"'),
    ([{**GENERAL, "bins": "lea", "close_bins": 1}], 'pool 1 (general): "close_bins" looks for larger blocks'),
    (
        [{**GENERAL, "bins": "exact", "fit": "exact", "close_bins": 1}],
        'pool 1 (general): "close_bins" looks for larger',
    ),
    ([{**GENERAL, "bins": "exact", "linear_up_to": 100}], 'pool 1 (general): "linear_up_to" 100 is not valid'),
    (
        [{**GENERAL, "bins": "exact", "linear_up_to": 8192}],
        'pool 1 (general): "linear_up_to" and "bins_per_octave" make',
    ),
    (
        [{**GENERAL, "unit": 2, "header": 2, "coalesce": "never"}],
        'pool 1 (general): "unit" 2 is below "align" 4, so payloads float in their blocks; it needs a "header"',
    ),
    (
        [{**GENERAL, "top": "extend", "boundary_tags": False}],
        'pool 1 (general): "top" "extend" looks for the last free block; it needs "order" "address" and one list',
    ),
    (
        [{**GENERAL, "top": "extend", "order": "address"}],
        'pool 1 (general): "top" "extend" leaves free blocks below memory that has no header to say so',
    ),
    ([{**GENERAL, "unit": 6}], 'pool 1 (general): "unit" 6 is not valid; valid: 0 (= align) or a power of two'),
    ([{**GENERAL, "unit": 12}], 'pool 1 (general): "unit" 12 is not valid; valid: 0 (= align) or a power of two'),
    ([{**GENERAL, "min_block": 12}], 'pool 1 (general): "min_block" 12 cannot hold header, links and tag; valid: 0'),
    ([{**GENERAL, "region": 15}], 'pool 1 (general): "region" 15 cannot hold a block; valid: 0 (the rest of'),
    ([{**GENERAL, "header": 1, "region": 300}], 'pool 1 (general): "region" 300 is beyond what its links and headers'),
    ([{**FIXED_8, "counts": [4, 4]}], 'pool 1 (fixed): "counts" has 2 numbers for 1 sizes'),
    ([{**FIXED_8, "sizes": [5, 8], "counts": [4, 4]}], 'pool 1 (fixed): "sizes": two classes have 8 bytes at align 4'),
    ([{**FIXED_8, "min_size": 9}], 'pool 1 (fixed): "min_size" 9 is above the largest class, 8'),
    ([{**FIXED_8, "page": 512}], 'pool 1 (fixed): "page" needs "counts" "grow"'),
    ([{**FIXED_8, "counts": "grow"}], 'pool 1 (fixed): "counts" "grow" needs a "header" that names the class'),
    (
        [{**FIXED_8, "counts": "grow", "header": 4, "find": "first-fit"}],
        'pool 1 (fixed): "find" "first-fit" chains growing blocks through a "header" of 4; valid: 8 to 16',
    ),
    (
        [{**FIXED_8, "counts": "grow", "header": 8}, GENERAL],
        'pool 1 (fixed): "header" 8 differs from the 4 of the general pool it shares the arena with; valid: 4',
    ),
    (
        [{"kind": "fixed", "sizes": [size], "header": 4} for size in (8, 16)],
        "pool 2 (fixed): pool 1 already grows; put the sizes of both into one fixed pool",
    ),
]


@each(("pools", "message"), CONTRADICTIONS)
def test_a_contradiction_names_the_pool_and_what_would_be_valid(pools: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ContradictionError) as refused:
        Recipe.from_dict({"align": 4, "pool": pools}, "my.toml")
    assert str(refused.value).startswith("my.toml: " + message)
    assert "\n" not in str(refused.value)


BUMP = {"top": "bump", "boundary_tags": False}
FILLED = {"round_to": "bin", "top": "list"}
IN_TURN = {"search_from": "tried", "bins": "exact", "order": "fifo"}
IMPLICIT = {"free_list": "implicit"}
TREE = {"free_list": "tree"}
NARROW = {"links_in": "header", "free_list": "single"}
UNTAGGED = {**NARROW, "header": 16, "boundary_tags": False}

TOGETHER: list[tuple[dict[str, Any], str | None]] = [
    ({"merged": "in-place"}, None),
    ({"merged": "in-place", "order": "fifo"}, None),
    ({"merged": "in-place", "order": "address"}, '"merged" "in-place" needs'),
    ({"merged": "in-place", "bins": "exact"}, '"merged" "in-place" needs'),
    ({"merged": "at-next"}, None),
    ({"merged": "at-next", "bins": "exact"}, '"merged" "at-next" needs'),
    ({"merged": "in-place", "coalesce": "deferred"}, '"merged" "in-place" needs'),
    ({"merged": "in-place", **IMPLICIT}, '"merged" "in-place" needs'),
    ({"merged": "in-place", **TREE}, '"merged" "in-place" needs'),
    ({"coalesce": "sweep", **TREE}, '"coalesce" "sweep" passes'),
    ({"top": "extend", "boundary_tags": False, "order": "address", **TREE}, '"top" "extend" looks'),
    ({"fit": "best", "search_percent": 50, **TREE}, '"search_percent" 50 is a share'),
    ({"fit": "worst", **TREE}, '"fit" "worst" is no order'),
    ({"fit": "best", "coalesce": "deferred", "resize": "both-sides", **TREE}, '"resize" "both-sides" looks'),
    ({"fit": "best", "coalesce": "deferred", **TREE}, None),
    ({"resize": "both-sides"}, None),
    ({"resize": "both-sides", "bins": "exact", "victim_up_to": 64}, '"resize" "both-sides" looks'),
    ({"resize": "both-sides", "boundary_tags": False}, '"resize" "both-sides" looks'),
    ({"resize": "down-first"}, None),
    ({"resize": "down-first", "boundary_tags": False}, '"resize" "down-first" looks'),
    ({"resize": "smaller-side", "boundary_tags": False}, '"resize" "smaller-side" looks'),
    ({"coalesce": "sweep"}, None),
    ({"coalesce": "sweep", "order": "address"}, None),
    ({"coalesce": "sweep", "order": "size"}, '"coalesce" "sweep" passes'),
    ({"coalesce": "sweep", "bins": "exact"}, '"coalesce" "sweep" passes'),
    ({"coalesce": "sweep", **IMPLICIT}, '"coalesce" "sweep" passes'),
    (IN_TURN, None),
    ({**IN_TURN, "bins": "power-of-two", "large_order": "fifo"}, None),
    ({**IN_TURN, "bins": "two-level"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "bins": "none"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "fit": "best"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "order": "lifo"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "large_order": "lifo"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "order": "lifo", "large_order": "fifo"}, '"search_from" "tried" takes'),
    ({**IN_TURN, "unsorted": True}, '"search_from" "tried" takes'),
    ({"top": "list"}, None),
    (BUMP, None),
    ({"top": "bump", "coalesce": "deferred"}, None),
    ({"top": "bump"}, '"top" "bump" leaves'),
    (
        {"top": "list", "bins": "exact", "victim_up_to": 64},
        '"top" "list" is not valid with "victim_up_to"; valid: last',
    ),
    ({"bins": "exact", "victim_up_to": 64}, None),
    ({**BUMP, "grow_least": 64}, None),
    ({"grow_least": 64}, '"grow_least" leaves'),
    ({**BUMP, "grow_least": 64, "bins": "exact"}, '"grow_least" leaves'),
    ({**BUMP, "grow_least": 64, "fit": "exact"}, '"grow_least" leaves'),
    ({**BUMP, "grow_least": 64, "search_most": 9}, '"grow_least" leaves'),
    ({**BUMP, "grow_least": 64, "split": "never"}, '"grow_least" leaves'),
    ({"header": 2, "tag_in": "header"}, None),
    (
        {"header": 1, "tag_in": "header"},
        '"header" 1 cannot hold a size, the size of the block before; valid: 2 to 16, "links_in" "payload", "tag_in"',
    ),
    ({"header": 5, **NARROW}, None),
    ({"header": 4, **NARROW}, '"header" 4 cannot hold a size, links; valid: 5 to 16'),
    ({"header": 5, **NARROW, "tag_in": "header", "boundary_tags": False}, None),
    (
        {"header": 5, **NARROW, "tag_in": "header"},
        '"header" 5 cannot hold a size, the size of the block before, links; valid: 6',
    ),
    ({"search_most": 9}, None),
    ({"search_most": 9, **IMPLICIT}, '"search_most" 9 counts free blocks of a list'),
    ({"search_from": "freed", "fit": "next"}, None),
    ({"search_from": "freed"}, '"search_from" "freed" is where a next fit starts; valid with "fit" "first": start'),
    ({"search_from": "lowest-free", **IMPLICIT}, None),
    ({"search_from": "lowest-free", "fit": "exact", **IMPLICIT}, None),
    ({"search_from": "lowest-free", "fit": "best", **IMPLICIT}, '"search_from" "lowest-free" needs'),
    ({"search_from": "lowest-free"}, '"search_from" "lowest-free" needs'),
    ({"fit": "best", **IMPLICIT}, None),
    ({"fit": "best", "search_percent": 0, **IMPLICIT}, None),
    ({"fit": "best", "search_percent": 99, **IMPLICIT}, '"search_percent" 99 is a share'),
    ({"fit": "first", "search_percent": 99, **IMPLICIT}, None),
    ({"coalesce": "lazy", "order": "address"}, None),
    ({"coalesce": "lazy", **IMPLICIT}, None),
    ({"bins": "exact", "most_bins": 509}, None),
    ({"bins": "exact", "most_bins": 508}, '"most_bins" 508 leaves no bin for all larger blocks; valid: 0, or from 509'),
    ({"bins": "two-level", "most_bins": 200}, '"most_bins" 200 leaves no bin'),
    ({"bins": "exact", "linear_up_to": 32, "trailer": 5, "bin_by": "payload", "most_bins": 8}, None),
    (
        {"bins": "exact", "linear_up_to": 32, "trailer": 5, "bin_by": "payload", "most_bins": 7},
        '"most_bins" 7 leaves no bin for all larger blocks; valid: 0, or from 8',
    ),
    ({"bins": "power-of-two", "bin_by": "payload", "min_block": 24, "trailer": 4, **NARROW, "header": 16}, None),
    (
        {"bins": "power-of-two", "bin_by": "payload", "min_block": 20, "trailer": 4, **NARROW, "header": 16},
        '"bin_by" "payload" has no bin for blocks of 20 bytes, which are header and trailer alone; '
        'valid: block, or a "min_block" from 21 on',
    ),
    ({"bins": "exact", "bin_by": "payload", "min_block": 24, "trailer": 8, **UNTAGGED}, None),
    (
        {"bins": "exact", "bin_by": "payload", "min_block": 20, "trailer": 8, **UNTAGGED},
        '"bin_by" "payload" has no bin for blocks of 20 bytes',
    ),
    ({"bins": "exact", "linear_up_to": 4096}, '"linear_up_to" and "bins_per_octave" make 1096 bins; at most 1024'),
    ({"bins": "exact", "linear_up_to": 4096, "unit": 8}, None),
    ({"bins": "exact", "linear_up_to": 4096, "most_bins": 1024}, None),
    ({"bins": "exact", "large_order": "size"}, None),
    ({"large_order": "size"}, '"large_order" "size" is the order of bins'),
    ({**FILLED, "bins": "two-level"}, None),
    ({**FILLED, "bins": "half-fit"}, None),
    ({**FILLED, "bins": "exact"}, '"round_to" "bin" gives a malloc all of the bin'),
    ({**FILLED, "bins": "two-level", "top": "last"}, '"round_to" "bin" gives a malloc all of the bin'),
    ({"bins": "lea", "unsorted": True}, None),
    ({"unsorted": True}, '"unsorted" needs'),
    ({"bins": "half-fit", "unsorted": True}, '"unsorted" needs'),
    ({"bins": "lea", "unsorted": True, "free_list": "single"}, '"unsorted" needs'),
    ({"bins": "lea", "unsorted": True, "victim_up_to": 64}, '"unsorted" needs'),
    ({"bins": "exact", "victim_up_to": 64, "tag_in": "header"}, '"victim_up_to" needs'),
    ({"victim_up_to": 64}, '"victim_up_to" needs'),
    ({"max_block": 1024}, None),
    ({"max_block": 1000}, '"max_block" 1000 is not valid; valid: 0 or a power of two'),
    ({"min_block": 16}, None),
    ({"region": 16}, None),
    ({"min_size": 9, "max_size": 9}, None),
]


@each(("keys", "message"), TOGETHER)
def test_keys_of_a_general_pool_that_need_others(keys: dict[str, Any], message: str | None) -> None:
    """Each of the combinations that are refused stands next to the nearest one that is not."""
    if message is None:
        assert general(**keys)
    else:
        with pytest.raises(ContradictionError) as refused:
            general(**keys)
        assert str(refused.value).startswith(f"recipe: pool 1 (general): {message}")


VALID: list[list[dict[str, Any]]] = [
    [{"kind": "quick", "sizes": [8]}, {"kind": "quick", "sizes": [16]}, GENERAL],
    [{"kind": "quick", "sizes": [32]}, {"kind": "quick", "up_to": 16}, GENERAL],
    [{**QUICK_8, "limit_blocks": 1, "flush": "over-limit"}, GENERAL],
    [{**QUICK_64, "lists_per_octave": 2, "limit_blocks": 1}, GENERAL],
    [{"kind": "quick", "sizes": [8, 9], "min_size": 9}, GENERAL],
    [{"kind": "quick", "sizes": [8, 9], "max_size": 8}, FIXED_8],
    [{**GENERAL, "region": 256}] * 3 + [GENERAL],
    [{**GENERAL, "top": "list", "region": 256}, {"kind": "fixed", "sizes": [8], "header": 4}],
    [FIXED_8, {**GENERAL, "top": "list"}],
    [{**FIXED_8, "min_size": 8}],
    [{"kind": "fixed", "sizes": [8], "header": 4, "page": 512}],
    [{"kind": "fixed", "sizes": [8], "header": 8, "find": "first-fit"}],
    [{"kind": "fixed", "sizes": [8], "header": 8}, {**GENERAL, "region": 256}],
    [{"kind": "fixed", "sizes": [8], "header": 4}, {**FIXED_8, "sizes": [16]}, GENERAL],
]


@each("pools", VALID)
def test_pools_that_get_along(pools: list[dict[str, Any]]) -> None:
    assert recipe(*pools)


def test_a_top_that_is_a_free_block_leaves_nothing_to_classes_that_grow() -> None:
    with pytest.raises(ContradictionError, match=r'pool 2 \(general\): "top" "list" leaves nothing to the fixed pool'):
        recipe({"kind": "fixed", "sizes": [8], "header": 4}, {**GENERAL, "top": "list"})


def test_a_block_without_a_link_is_refused() -> None:
    tiny = {"kind": "fixed", "sizes": [2], "counts": [9]}
    with pytest.raises(ContradictionError, match="a free block of 2 bytes cannot hold its link; valid: 4 and more"):
        recipe({**tiny, "sizes": [8, 2], "counts": [9, 9]}, align=1)
    assert recipe({**tiny, "find": "first-fit"}, align=1)
    assert recipe(tiny, align=1, link_bytes=2)
    growing = {"kind": "fixed", "sizes": [2], "counts": "grow", "find": "first-fit", "header": 8}
    with pytest.raises(ContradictionError, match="growing blocks of 2 bytes are smaller than a link; valid: 4 "):
        recipe(growing, align=1)
    assert recipe({**growing, "sizes": [4]}, align=1)


def test_recipes_made_in_python_are_checked_as_files_are() -> None:
    with pytest.raises(ContradictionError, match="cannot hold a block"):
        Recipe(pools=(General(region=8),))
    with pytest.raises(HeapwrightError, match=r'pool 1 \(general\): "header" 0'):
        Recipe(pools=(General(header=0),))
    with pytest.raises(AttributeError, match="frozen"):
        general().pools[0].min_size = 3  # type: ignore[misc]


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "heap.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(HeapwrightError, match=r"heap\.toml: not UTF-8 text"):
        Recipe.load(path)
    path.write_text("[[pool]]\nkind = 'general'\nheader = 0")
    with pytest.raises(HeapwrightError, match=r'heap\.toml: pool 1 \(general\): "header" 0'):
        resolve_recipe(str(path))
    with pytest.raises(FileNotFoundError):
        Recipe.load(tmp_path / "none.toml")


FLOATING = {**GENERAL, "unit": 4, "header": 4, "boundary_tags": False}


def test_a_unit_below_the_alignment_costs_padding() -> None:
    """A block holds its header, the payload in units of 4, and 4 bytes that lie before or behind the payload."""
    floating = recipe(FLOATING, align=8)
    pool = floating.pools[0]
    assert isinstance(pool, General)
    assert (pool.padding(floating.geometry), pool.overhead(floating.geometry)) == (4, 8)
    assert [pool.capacity_for(size, floating.geometry) + 8 for size in (1, 4, 5, 1500)] == [12, 12, 16, 1508]
    assert policy(floating)["pools"][0]["general"]["start"] % 8 == 0
    assert recipe(FLOATING, align=4).hash == recipe({**FLOATING, "unit": 0}, align=4).hash


@pytest.mark.parametrize(
    ("pools", "link_bytes"),
    [
        ([{**FLOATING, "header": 8}], 4),
        ([{**FLOATING, "boundary_tags": True}], 4),
        ([{**FLOATING, "links_in": "header", "header": 8, "unit": 8}], 4),
        ([FLOATING], 2),
        ([QUICK_8, FLOATING], 4),
    ],
)
def test_what_a_unit_below_the_alignment_excludes(pools: list[dict[str, Any]], link_bytes: int) -> None:
    with pytest.raises(ContradictionError, match="payloads float in their blocks"):
        Recipe.from_dict({"align": 16, "link_bytes": link_bytes, "pool": pools})
