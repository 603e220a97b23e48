"""Recipes: what is refused and how the error reads, what is equal to what, and that writing and reading agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from each import each
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from heapwright.files.errors import HeapwrightError
from heapwright.heaps.names import resolve_recipe
from heapwright.recipes.geometry import Geometry
from heapwright.recipes.policy import policy
from heapwright.recipes.pools import KINDS, MAX_REQUEST, General, Pool, Quick
from heapwright.recipes.recipe import CHECKS, ContradictionError, Recipe, json_schema

DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"
GENERAL = {"kind": "general"}


def recipe(*pools: dict[str, Any], **heap: Any) -> Recipe:
    return Recipe.from_dict({"align": 4, **heap, "pool": list(pools)})


def same(first: Recipe, second: Recipe) -> bool:
    """Equal in canonical form; the hash must say the same."""
    equal = first.canonical() == second.canonical()
    assert (first.hash == second.hash) == equal
    return equal


def general(**keys: Any) -> Recipe:
    return recipe({**GENERAL, **keys})


# ---- what is refused -----------------------------------------------------------------------------------------------

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
    ([{**QUICK_64, "lists_per_octave": 8, "limit_bytes": 999}, GENERAL], 'pool 1 (quick): "lists_per_octave" is not'),
    ([{**QUICK_64, "lists_per_octave": 8}, {**GENERAL, "min_size": 2}], 'pool 1 (quick): "lists_per_octave" needs one'),
    ([{**QUICK_64, "lists_per_octave": 8}, BUDDY], 'pool 1 (quick): "lists_per_octave" is not valid above blocks'),
    ([{**QUICK_8, "limit_bytes": 7}, GENERAL], 'pool 1 (quick): "limit_bytes" 7 keeps no block of 12 bytes'),
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
    ({"split_share": 0.5}, None),
    ({"split_share": 0.5, "bins": "exact", "victim_up_to": 64}, '"split_share" is not valid with "victim_up_to"'),
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
    ({"bins": "lea", "unsorted": True}, None),
    ({"unsorted": True}, '"unsorted" needs'),
    ({"bins": "half-fit", "unsorted": True}, '"unsorted" needs'),
    ({"bins": "lea", "unsorted": True, "free_list": "single"}, '"unsorted" needs'),
    ({"bins": "lea", "unsorted": True, "victim_up_to": 64}, '"unsorted" needs'),
    ({"bins": "exact", "victim_up_to": 64, "tag_in": "header"}, '"victim_up_to" needs'),
    ({"max_block": 1024}, None),
    ({"max_block": 1000}, '"max_block" 1000 is not valid; valid: 0 or a power of two'),
    ({"min_block": 16}, None),
    ({"region": 16}, None),
    ({"min_size": 9, "max_size": 9}, None),
]


@each(("keys", "message"), TOGETHER)
def test_keys_of_a_general_pool_that_need_others(keys: dict[str, Any], message: str | None) -> None:
    """Each of the combinations that are refused stands beside the nearest one that is not."""
    if message is None:
        assert general(**keys)
    else:
        with pytest.raises(ContradictionError) as refused:
            general(**keys)
        assert str(refused.value).startswith(f"recipe: pool 1 (general): {message}")


VALID: list[list[dict[str, Any]]] = [
    [{"kind": "quick", "sizes": [8]}, {"kind": "quick", "sizes": [16]}, GENERAL],
    [{"kind": "quick", "sizes": [32]}, {"kind": "quick", "up_to": 16}, GENERAL],
    [{**QUICK_8, "limit_bytes": 12, "flush": "over-limit"}, GENERAL],
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


def test_contradictions_in_python_are_pydantic_errors() -> None:
    with pytest.raises(ValidationError, match="cannot hold a block"):
        Recipe(pools=(General(region=8),))
    with pytest.raises(ValidationError):
        General(header=0)
    with pytest.raises(ValidationError):
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


# ---- what is equal -------------------------------------------------------------------------------------------------

EQUAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"min_block": 16, "unit": 4}),
    ({"min_block": 17}, {"min_block": 20}),
    ({"coalesce": "never"}, {"coalesce": "never", "boundary_tags": False, "coalesce_from": 400}),
    ({"coalesce": "deferred", "boundary_tags": True}, {"coalesce": "deferred", "boundary_tags": False}),
    ({"coalesce_from": 16}, {}),
    ({"coalesce_from": 17}, {"coalesce_from": 20}),
    ({"split": 16}, {"split": "always"}),
    ({"split": 0}, {"split": "always"}),
    ({"split": 21}, {"split": 24}),
    ({"split": "never", "split_from": "tail"}, {"split": "never"}),
    ({"split": "never", "split_share": 0.5}, {"split": "never"}),
    ({"split_share": 1}, {"split": "never"}),
    ({"split": 64, "split_share": 1.0}, {"split": "never"}),
    ({"split_share": 0.1}, {"split_share": 25 / 256}),
    ({"split_share": 0.003}, {}),
    ({"fit": "exact", "split_from": "tail"}, {"fit": "exact"}),
    ({"fit": "best", "search_percent": 0}, {"fit": "first"}),
    ({"fit": "first", "search_percent": 50}, {}),
    ({"fit": "best", "order": "size"}, {"fit": "first", "order": "size"}),
    ({"fit": "best", "order": "size", "search_percent": 30}, {"order": "size"}),
    ({"free_list": "implicit", "order": "fifo"}, {"free_list": "implicit", "order": "address"}),
    ({"free_list": "tree", "order": "fifo", "remainder": "filed"}, {"free_list": "tree", "order": "size"}),
    ({"free_list": "implicit", "order": "size", "fit": "best"}, {"free_list": "implicit", "fit": "best"}),
    ({"bins": "none", "linear_up_to": 64, "bins_per_octave": 2}, {}),
    ({"bins": "two-level", "fit": "best", "search_percent": 20}, {"bins": "two-level"}),
    ({"bins": "two-level", "linear_up_to": 128, "bins_per_octave": 32}, {"bins": "two-level"}),
    ({"bins": "two-level", "linear_up_to": 0, "bins_per_octave": 1}, {"bins": "half-fit"}),
    ({"bins": "exact", "linear_up_to": 256}, {"bins": "lea"}),
    ({"bins": "exact", "linear_up_to": 0, "bins_per_octave": 1}, {"bins": "power-of-two"}),
    ({"bins": "lea", "linear_up_to": 2048}, {"bins": "exact"}),
    (
        {"bins": "exact", "linear_up_to": 0, "bins_per_octave": 8},
        {"bins": "exact", "linear_up_to": 32, "bins_per_octave": 8},
    ),
    ({"bins": "exact", "victim_up_to": 61}, {"bins": "exact", "victim_up_to": 64}),
    ({"bins": "exact", "victim_up_to": 500, "max_size": 100}, {"bins": "exact", "victim_up_to": 100, "max_size": 100}),
    ({"bins": "power-of-two", "linear_up_to": 16}, {"bins": "power-of-two"}),  # no block is smaller
    ({"bins": "exact", "linear_up_to": 16}, {"bins": "exact", "linear_up_to": 0}),
    ({"bins": "lea", "min_block": 256}, {"bins": "exact", "linear_up_to": 0, "min_block": 256}),
    ({"bins": "exact", "close_bins": 4}, {"bins": "exact"}),  # best fit takes the next filled bin anyway
    ({"min_size": 1}, {"min_size": 0}),
    ({"max_size": MAX_REQUEST}, {}),
    ({"region": 1027}, {"region": 1024}),
    # Bins narrower than a unit of 16 hold one size, as linear bins do.
    (
        {"bins": "exact", "unit": 16, "linear_up_to": 64, "bins_per_octave": 4},
        {"bins": "exact", "unit": 16, "linear_up_to": 0},
    ),
]


@each(("one", "other"), EQUAL)
def test_recipes_that_behave_alike_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert same(general(**one), general(**other))


DISTINCT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"boundary_tags": False}, {}),
    ({"free_list": "implicit", "order": "size", "fit": "best"}, {"free_list": "implicit"}),
    ({"split_from": "tail"}, {}),
    ({"fit": "exact", "split": "never"}, {"fit": "exact"}),  # realloc splits what it shrinks
    ({"fit": "best"}, {"fit": "best", "search_percent": 99}),
    ({"order": "fifo"}, {}),
    ({"bins": "two-level", "order": "fifo"}, {"bins": "two-level"}),
    ({"bins": "half-fit"}, {"bins": "power-of-two"}),
    ({"coalesce_from": 24}, {}),
    ({"split": 24}, {}),
    ({"unit": 8}, {}),
    ({"min_block": 20}, {}),
    ({"header": 3}, {}),
    (
        {"bins": "exact", "victim_up_to": 64, "close_bins": 1},
        {"bins": "exact", "victim_up_to": 64},
    ),
    ({"min_size": 2}, {}),
]


@each(("one", "other"), DISTINCT)
def test_recipes_that_differ_are_distinct(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert not same(general(**one), general(**other))


def test_exact_bins_are_at_most_512_linear_ones() -> None:
    for align, linear in ((1, 512), (2, 1024), (4, 2048), (8, 2048)):
        exact = {**GENERAL, "bins": "exact"}
        assert same(recipe(exact, align=align), recipe({**exact, "linear_up_to": linear}, align=align))


def test_heap_wide_keys_are_part_of_the_hash_but_names_are_not() -> None:
    hashes = {general().hash} | {
        recipe(GENERAL, **keys).hash
        for keys in ({"align": 8}, {"link_bytes": 2}, {"checks": "frees"}, {"checks": "neighbours"})
    }
    assert len(hashes) == 5
    named = recipe(GENERAL, name="mine", source="here", about="text")
    assert named.hash == general().hash
    assert named.canonical().name == "mine"


def test_checks_of_before_there_were_levels_mean_what_they_meant() -> None:
    told = recipe(GENERAL, checks=True)
    assert (told.checks, told.hash) == ("frees", "ad5bea4b9260")  # as it was for true
    assert told == recipe(GENERAL, checks="frees")
    untold = recipe(GENERAL, checks=False)
    assert (untold.checks, untold.hash) == ("none", general().hash)


def test_a_copy_has_a_hash_of_its_own() -> None:
    """It is worked out once, and kept: by what has it, and by its canonical form."""
    first = recipe({"kind": "quick", "sizes": [13, 1476]}, GENERAL)
    canonical = first.canonical()
    assert canonical != first
    assert Recipe.from_dict(canonical.to_dict()).hash == canonical.hash == first.hash
    for kept in (first, canonical):
        other = kept.model_copy(update={"link_bytes": 2})
        assert other.hash == Recipe.from_dict(other.to_dict()).hash != first.hash


def test_the_hash_is_stable() -> None:
    # Studies store it: a change here makes every stored study unreadable.
    assert general().hash == "19703e89cf2b"
    assert recipe({"kind": "quick", "sizes": [16, 1476]}, GENERAL).hash == "50fc0a748539"


def test_quick_sizes_are_those_of_the_blocks_below() -> None:
    def quick(*sizes: int, **keys: Any) -> Recipe:
        return recipe({"kind": "quick", "sizes": list(sizes), **keys}, GENERAL)

    assert same(quick(1476, 16), quick(16, 1476, 16))
    assert same(quick(11), quick(12))  # both get a block of 16 bytes
    assert same(quick(1), quick(12))  # the smallest block
    assert same(quick(16, 100, min_size=1, max_size=50), quick(16))
    assert not same(quick(16), quick(20))
    classes: dict[str, Any] = {"kind": "fixed", "sizes": [6], "counts": [9]}
    assert same(recipe({"kind": "quick", "sizes": [6]}, classes), recipe({"kind": "quick", "sizes": [8]}, classes))
    both = [{**classes, "max_size": 6}, GENERAL]
    assert same(recipe({"kind": "quick", "sizes": [5]}, *both), recipe({"kind": "quick", "sizes": [6]}, *both))
    assert not same(recipe({"kind": "quick", "sizes": [5]}, *both), recipe({"kind": "quick", "sizes": [9]}, *both))
    wide = {**GENERAL, "unit": 8}
    assert same(recipe({"kind": "quick", "sizes": [13]}, wide), recipe({"kind": "quick", "sizes": [20]}, wide))


def test_quick_keys_without_effect_do_not_count() -> None:
    def quick(**keys: Any) -> Recipe:
        return recipe({"kind": "quick", "up_to": 64, **keys}, GENERAL)

    assert same(quick(flush_share=0.5), quick())
    assert same(quick(up_to=61), quick())
    assert same(quick(max_size=64), quick())
    assert not same(quick(max_size=63), quick())
    growing = {"flush": "before-growing"}
    assert same(quick(**growing, flush_share=0.25001), quick(**growing, flush_share=0.25))
    assert not same(quick(**growing, flush_share=0.26), quick(**growing, flush_share=0.25))


def test_fixed_classes_are_in_ascending_order_with_their_counts() -> None:
    def fixed(**keys: Any) -> Recipe:
        return recipe({"kind": "fixed", **keys})

    one = fixed(sizes=[64, 13], counts=[2, 9])
    assert same(one, fixed(sizes=[16, 64], counts=[9, 2]))
    assert one.canonical().pools[0].model_dump(include={"sizes", "counts"}) == {"sizes": (16, 64), "counts": (9, 2)}
    assert same(fixed(sizes=[8], counts=[1], fall_through=True), fixed(sizes=[8], counts=[1]))
    assert same(fixed(sizes=[8], header=4, page=23), fixed(sizes=[8], header=4))
    assert not same(fixed(sizes=[8], header=4, page=24), fixed(sizes=[8], header=4))
    assert same(fixed(sizes=[8], counts=[1], max_size=8), fixed(sizes=[8], counts=[1]))
    assert not same(fixed(sizes=[8], counts=[1], max_size=7), fixed(sizes=[8], counts=[1]))
    assert not same(fixed(sizes=[8, 16], counts=[1, 1], max_size=15), fixed(sizes=[8, 16], counts=[1, 1]))


@each(
    ("keys", "least"),
    [
        ({}, 16),  # 4 header, 8 links, 4 tag
        ({"boundary_tags": False}, 12),
        ({"coalesce": "never"}, 12),
        ({"free_list": "single"}, 12),
        ({"free_list": "tree"}, 16),
        ({"free_list": "implicit"}, 8),
        ({"free_list": "implicit", "boundary_tags": False}, 8),  # never less than the header and one unit
        ({"header": 8}, 20),  # the word is 4 bytes, but the links come after the whole header
        ({"header": 2}, 12),
        ({"header": 3}, 16),
        ({"unit": 16}, 16),
        ({"unit": 16, "header": 13}, 32),
        ({"trailer": 2}, 16),
        ({"trailer": 2, "free_list": "implicit", "boundary_tags": False}, 12),
        ({"header": 8, "tag_in": "header"}, 16),
        ({"header": 16, "tag_in": "header", "links_in": "header"}, 20),
        ({"header": 12, "links_in": "header", "boundary_tags": False}, 16),
        ({"round_to": "power-of-two", "header": 8}, 32),
        ({"round_to": "power-of-two", "header": 8, "unit": 64}, 64),
    ],
)
def test_the_smallest_block_holds_its_metadata(keys: dict[str, Any], least: int) -> None:
    (pool,) = general(**keys).canonical().pools
    assert isinstance(pool, General)
    assert pool.min_block == least


def test_narrow_links_make_smaller_blocks_and_reach_less() -> None:
    narrow = recipe(GENERAL, link_bytes=2)
    (pool,) = narrow.canonical().pools
    assert isinstance(pool, General)
    assert pool.min_block == 12
    assert general().reach is None
    assert narrow.reach == 262_140
    assert recipe(GENERAL, link_bytes=2, align=8).reach == 524_280
    assert general(header=2).reach == 65_532  # 14 bits of size in units of 4 bytes
    assert general(header=2, coalesce="lazy", free_list="implicit").reach == 131_068  # 15 bits


def test_capacity_is_what_a_block_holds() -> None:
    assert [General().capacity_for(size, Geometry(4)) for size in (1, 12, 13, 16, 17)] == [12, 12, 16, 16, 20]
    assert [General().capacity_for(size, Geometry(8)) for size in (1, 12, 13, 20, 21)] == [12, 12, 20, 20, 28]
    assert General(unit=4096).capacity_for(MAX_REQUEST, Geometry(4)) == MAX_REQUEST


# ---- any recipe ----------------------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(1, 5000), min_size=1, max_size=6, unique=True)
SIZE = st.integers(0, 5000)


def optional(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


QUICKS = st.builds(
    lambda sizes, keys: {"kind": "quick", **sizes, **keys},
    st.one_of(
        st.builds(lambda sizes: {"sizes": sizes}, SIZES),
        st.builds(lambda up_to: {"up_to": up_to}, st.integers(1, 4096)),
    ),
    optional(
        min_size=st.integers(0, 300),
        max_size=st.integers(4000, 5000),
        limit_blocks=st.integers(1, 99),
        limit_bytes=st.integers(1, 9999),
        flush=st.sampled_from(["never", "over-limit", "before-growing", "idle"]),
        idle_share=st.floats(0, 1),
        lists_per_octave=st.sampled_from([0, 2, 8, 32]),
        keep=st.sampled_from(["all", "apart"]),
        flush_share=st.floats(0, 1),
    ),
)


def without_most_contradictions(keys: dict[str, Any]) -> dict[str, Any]:
    """Else nearly all that is drawn would be refused."""
    if keys.get("free_list") in ("implicit", "tree") or keys.get("fit") == "next" or keys.get("coalesce") == "lazy":
        keys = {key: value for key, value in keys.items() if key not in ("bins", "search_percent")}
    if keys.get("coalesce") == "lazy":
        keys = {**keys, "order": "address"}
    bins = keys.get("bins", "none")
    if bins == "none" or keys.get("coalesce", "immediate") != "immediate" or not keys.get("boundary_tags", True):
        keys = {key: value for key, value in keys.items() if key != "victim_up_to"}
    if bins != "exact" or keys.get("fit") == "exact":
        keys = {key: value for key, value in keys.items() if key != "close_bins"}
    return keys


GENERALS = st.builds(
    lambda keys: {"kind": "general", **without_most_contradictions(keys)},
    optional(
        min_size=st.integers(0, 300),
        max_size=st.integers(4000, 5000),
        header=st.sampled_from([1, 2, 3, 4, 8, 13, 16]),
        boundary_tags=st.booleans(),
        free_list=st.sampled_from(["double", "single", "implicit", "tree"]),
        order=st.sampled_from(["lifo", "fifo", "address", "size"]),
        bins=st.sampled_from(["none", "exact", "lea", "two-level", "half-fit", "power-of-two"]),
        linear_up_to=st.sampled_from([0, 16, 64, 256, 1024]),
        bins_per_octave=st.sampled_from([1, 2, 4, 8, 16, 32]),
        victim_up_to=SIZE,
        close_bins=st.integers(0, 4),
        fit=st.sampled_from(["first", "next", "best", "worst", "exact"]),
        search_percent=st.integers(0, 100),
        split=st.one_of(st.sampled_from(["always", "never"]), SIZE),
        split_from=st.sampled_from(["head", "tail"]),
        coalesce=st.sampled_from(["immediate", "never", "forward", "lazy", "deferred"]),
        coalesce_from=SIZE,
        min_block=st.sampled_from([0, 0, 33, 64]),
        unit=st.sampled_from([0, 4, 8, 16, 32]),
        region=st.sampled_from([0, 0, 0, 0, 4096, 9999]),
    ),
)
FIXEDS = st.builds(
    lambda sizes, count, keys: {
        "kind": "fixed",
        "sizes": sizes,
        "counts": [count] * len(sizes) if count else "grow",
        **keys,
    },
    SIZES,
    st.integers(0, 50),
    optional(
        min_size=st.integers(0, 300),
        max_size=st.integers(4000, 5000),
        header=st.integers(0, 16),
        find=st.sampled_from(["freelist", "first-fit"]),
        fall_through=st.booleans(),
        page=st.sampled_from([0, 100, 4096]),
    ),
)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    heap = draw(
        optional(
            align=st.sampled_from([1, 2, 4, 8, 16]), link_bytes=st.sampled_from([2, 4]), checks=st.sampled_from(CHECKS)
        )
    )
    pools = (
        draw(st.lists(QUICKS, max_size=1)) + draw(st.lists(FIXEDS, max_size=1)) + draw(st.lists(GENERALS, max_size=1))
    )
    try:
        return Recipe.from_dict({**heap, "pool": pools})
    except HeapwrightError:
        assume(False)
        raise


@given(recipes())
def test_canonical_form_is_valid_idempotent_and_survives_writing(any_recipe: Recipe) -> None:
    canonical = any_recipe.canonical()
    assert canonical.canonical() == canonical
    assert canonical.hash == any_recipe.hash
    assert Recipe.from_dict(canonical.model_dump(mode="json")) == canonical
    for written in (any_recipe, canonical):
        read = Recipe.parse(written.to_toml())
        assert read.canonical() == canonical
        assert read.hash == any_recipe.hash
    assert any_recipe.summary()


def test_a_recipe_without_an_alignment_has_eight_bytes_and_says_so() -> None:
    silent = Recipe.from_dict({"pool": [GENERAL]})
    assert silent.align == Recipe.unchecked(silent.pools).align == silent.geometry.align == 8
    assert silent.to_dict()["align"] == 8
    assert silent.hash == recipe(GENERAL, align=8).hash != general().hash


def test_writing_leaves_out_what_is_the_default() -> None:
    full = recipe({"kind": "quick", "sizes": [16, 1476]}, {**GENERAL, "fit": "best"}, name="mine")
    assert full.canonical().to_toml() == (
        'name = "mine"\nalign = 4\n\n'
        '[[pool]]\nkind = "quick"\nsizes = [16, 1476]\n\n[[pool]]\nkind = "general"\nfit = "best"\n'
    )
    for keys in (
        {"bins": "two-level"},
        {"bins": "exact", "fit": "best"},
        {"free_list": "implicit"},
        {"coalesce": "lazy", "order": "address"},
    ):
        assert general(**keys).canonical().to_dict() == {"align": 4, "pool": [{**GENERAL, **keys}]}


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


def test_control_data_takes_at_least_what_is_asked_for() -> None:
    least = policy(recipe(GENERAL))["control"]
    assert policy(Recipe.from_dict({"control_bytes": least + 10, "pool": [GENERAL]}))["control"] == least + 10
    assert policy(Recipe.from_dict({"control_bytes": least - 4, "pool": [GENERAL]}))["control"] == least
    assert Recipe.from_dict({"control_bytes": 100, "pool": [GENERAL]}).hash != recipe(GENERAL).hash


def test_summaries_are_one_short_line() -> None:
    drr = recipe({"kind": "quick", "sizes": [20, 1476]}, GENERAL, align=8)
    assert drr.summary() == "quick 20,1476 + general double/lifo first-fit, split always, coalesce immediate"
    assert drr.canonical().summary() == drr.summary()
    bins = recipe({**GENERAL, "bins": "exact", "fit": "best", "victim_up_to": 2000, "split": 64})
    told = "general exact bins best-fit, split from 64 B, coalesce immediate, victim 2000"
    assert bins.summary() == f"{told}, align 4"
    assert bins.summary(usual_align=4) == told


def test_the_unchecked_way_is_the_same_without_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    freelists, pool = Quick(sizes=(16, 1476)), General(split=40, coalesce_from=100)
    checked = Recipe(pools=(freelists, pool), align=8, link_bytes=2, checks="neighbours")
    monkeypatch.setattr("heapwright.recipes.recipe.contradictions", lambda *_: pytest.fail("checked"))
    unchecked = Recipe.unchecked((freelists, pool), align=8, link_bytes=2, checks="neighbours")
    assert unchecked == checked
    assert unchecked.canonical().hash == checked.hash


def test_the_schema_names_every_key_of_every_kind() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == {
        "name",
        "year",
        "source",
        "about",
        "align",
        "link_bytes",
        "checks",
        "counters",
        "reserve",
        "memory",
        "pool",
    } | {
        "control_bytes",
        "threads",
        "cache_up_to",
        "cache_bytes",
    }
    assert set(schema["$defs"]["General"]["properties"]) == set(General.model_fields)


def documented_bounds() -> Iterator[tuple[str, str, int, int]]:
    """(kind, key, least, most) of every key whose row in the reference gives bounds, or says bytes or blocks."""
    kind = ""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"## (\w+): ", line):
            kind = found[1]
        row = re.match(r"\| `(\w+)` \| ([^|]+) \|", line)
        if not row or kind not in KINDS:
            continue
        if bounds := re.fullmatch(r"(\d+) to (\d+)", row[2]):
            yield kind, row[1], int(bounds[1]), int(bounds[2])
        elif unit := re.fullmatch(r"(?:bytes|blocks)(?:, from (\d))?", row[2]):
            yield kind, row[1], int(unit[1] or 0), MAX_REQUEST


@each(("kind", "key", "least", "most"), list(documented_bounds()))
def test_a_key_takes_what_its_reference_says(kind: str, key: str, least: int, most: int) -> None:
    needed = {"sizes": [8]} if kind == "fixed" else {}

    def valid(value: int) -> bool:
        try:
            return bool(KINDS[kind].model_validate({**needed, key: value}))
        except ValidationError:
            return False

    assert [valid(value) for value in (least - 1, least, most, most + 1)] == [False, True, True, False]


def test_the_reference_documents_every_key() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for table in (Recipe, *get_args(Pool)):
        for key in table.model_fields:
            name = "pool" if key == "pools" else key
            assert f"`{name}`" in text, f"docs/recipes.md lacks {table.__name__}.{name}"
