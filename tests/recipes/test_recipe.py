"""Recipes: what is equal to what, writing and reading agree, and the reference has every key with its bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from case_tables import each
from hypothesis import assume, given
from hypothesis import strategies as st
from pool_recipes import GENERAL, general, recipe
from pydantic import ValidationError

from heapwright._recipes.geometry import Geometry
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import KINDS, MAX_REQUEST, General, Pool, Quick
from heapwright._recipes.recipe import CHECKS, Recipe, json_schema
from heapwright._support.errors import HeapwrightError

DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"


def same(first: Recipe, second: Recipe) -> bool:
    """Equal in canonical form; the hash must say the same."""
    equal = first.canonical() == second.canonical()
    assert (first.hash == second.hash) == equal
    return equal


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
    output = recipe(GENERAL, checks=True)
    assert (output.checks, output.hash) == ("frees", "ad5bea4b9260")  # as it was for true
    assert output == recipe(GENERAL, checks="frees")
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

    assert same(quick(up_to=61), quick())
    assert same(quick(max_size=64), quick())
    assert not same(quick(max_size=63), quick())
    assert same(quick(release_most=0), quick())
    idle = {"flush": "idle"}
    assert same(quick(**idle, release_most=2), quick(**idle))
    assert not same(quick(**idle, release_most=0), quick(**idle))
    assert same(quick(**idle, idle_share=0.25001), quick(**idle, idle_share=0.25))
    assert not same(quick(**idle, idle_share=0.26), quick(**idle, idle_share=0.25))


def test_fixed_classes_are_in_ascending_order_with_their_counts() -> None:
    def fixed(**keys: Any) -> Recipe:
        return recipe({"kind": "fixed", **keys})

    item = fixed(sizes=[64, 13], counts=[2, 9])
    assert same(item, fixed(sizes=[16, 64], counts=[9, 2]))
    assert item.canonical().pools[0].model_dump(include={"sizes", "counts"}) == {"sizes": (16, 64), "counts": (9, 2)}
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
        flush=st.sampled_from(["never", "over-limit", "before-growing", "idle"]),
        idle_share=st.floats(0, 1),
        release_most=st.integers(0, 9),
        refill=st.sampled_from([0, 2, 16]),
        lists_per_octave=st.sampled_from([0, 2, 8, 32]),
        keep=st.sampled_from(["all", "apart"]),
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
    output = "general exact bins best-fit, split from 64 B, coalesce immediate, victim 2000"
    assert bins.summary() == f"{output}, align 4"
    assert bins.summary(usual_align=4) == output


def test_the_unchecked_way_is_the_same_without_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    freelists, pool = Quick(sizes=(16, 1476)), General(split=40, coalesce_from=100)
    checked = Recipe(pools=(freelists, pool), align=8, link_bytes=2, checks="neighbours")
    monkeypatch.setattr("heapwright._recipes.recipe.contradictions", lambda *_: pytest.fail("checked"))
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
        "aligned_search",
        "threads",
        "cache_up_to",
        "cache_bytes",
    }
    assert set(schema["$defs"]["General"]["properties"]) == set(General.model_fields)


def documented_bounds() -> Iterator[tuple[str, str, int, int]]:
    """(kind, key, least, most) of every key whose row in the reference gives bounds, or says bytes or blocks."""
    kind = ""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if result := re.match(r"## (\w+): ", line):
            kind = result[1]
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
