"""Spaces: how many recipes the default space has and which, and what SPACE.toml may say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from sample_demand import demand
from traces_random import steady

from heapwright._explore import default_space
from heapwright._explore.default_space import Demand, Levels, default_families
from heapwright._explore.space import Space, WideSpace
from heapwright._explore.special_pools import special_pools
from heapwright._recipes.pools import Fixed, General, Pool, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError
from heapwright._traces.futures import resample
from heapwright._traces.live_counts import live_counts
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC


@pytest.fixture(scope="module")
def space() -> Space:
    return Space.tailored(demand(), 4, move_zoo=False)


def generals(space: Space) -> list[General]:
    return [pool for recipe in space.recipes() for pool in recipe.pools if isinstance(pool, General)]


# ---- the default space ---------------------------------------------------------------------------------------------


def test_an_ordinary_trace_gets_ten_thousand_recipes_and_not_many_more(space: Space) -> None:
    assert 10_000 <= len(space) <= 13_000
    assert space.notes == ()
    recipes = list(space.recipes())
    assert len(recipes) == len(space) == len({recipe.hash for recipe in recipes})


def test_the_zoo_is_in_it_and_comes_first(space: Space) -> None:
    stay = [recipe.name for recipe in zoo.staying()]
    assert set(zoo.names()) - set(stay) == {"contiki-mmem", "st-compact-memmgr"}
    assert [recipe.name for recipe in islice(space.recipes(), len(stay))] == stay
    assert list(space.zoo.values()) == zoo.staying() and space.unranked == []


@pytest.mark.parametrize("align", [8, 16])
def test_every_recipe_has_the_alignment_asked_for(align: int) -> None:
    space = Space.tailored(demand(), align)
    assert len(space) >= 10_000
    assert {recipe.align for recipe in space.recipes()} == {align} == {space.align}
    assert {recipe.name for recipe in space.unranked} == {item.name for item in zoo.staying() if item.align != align}
    names = {recipe.name for recipe in space.zoo.values()}
    assert "nano-qplus" not in names, (
        "2-byte links count in units of the alignment, and its header has no room for them"
    )
    assert names >= {"tlsf", "kingsley", "st-memmgr-8"} if align == 8 else {"tlsf", "half-fit"}


def test_of_zoo_recipes_that_become_equal_one_keeps_its_name() -> None:
    alike = {"st-memmgr", "st-memmgr-1", "st-memmgr-2", "st-memmgr-8"}
    space = Space([])
    assert {recipe.name for recipe in space.zoo.values()} & alike == {"st-memmgr-8"}, "the one that was not moved"
    assert {recipe.name for recipe in space.unranked} & alike == alike - {"st-memmgr-8"}


def test_each_technique_has_about_ten_levels(space: Space) -> None:
    grid = [recipe for recipe in space.recipes() if not recipe.name]
    freelists = {pool.sizes for recipe in grid for pool in recipe.pools if isinstance(pool, Quick) and pool.sizes}
    assert set(range(1, 10)) <= {len(sizes) for sizes in freelists}
    assert any(isinstance(recipe.pools[0], General) for recipe in grid)
    pools = generals(space)
    assert len({(pool.fit, pool.search_percent, pool.bins) for pool in pools}) >= 10
    assert len({pool.split for pool in pools}) >= 10
    assert len({(pool.coalesce, pool.coalesce_from) for pool in pools}) >= 10
    assert {pool.order for pool in pools} == {"lifo", "fifo", "address", "size"}
    assert {pool.free_list for pool in pools} == {"double", "single", "implicit", "tree"}


def test_freelists_are_those_of_the_most_frequent_blocks(space: Space) -> None:
    assert any(recipe.pools[0] == Quick(sizes=(16, 1476)) and len(recipe.pools) == 2 for recipe in space.recipes())
    # 13 and 15 bytes need the same block as 16, and together they outnumber 1000.
    merged = Space.tailored(Demand(((1000, 0.4), (13, 0.3), (15, 0.3)), 1000, 5000), 4)
    assert Quick(sizes=(16,)) in {recipe.pools[0] for recipe in merged.recipes()}
    assert Quick(sizes=(1000,)) not in {recipe.pools[0] for recipe in merged.recipes()}


def test_a_size_with_a_tenth_of_the_requests_gets_fixed_blocks_of_its_own() -> None:
    def classes(share: float) -> set[tuple[int, ...]]:
        levels = Levels(Demand(((300, 0.6), (84, 0.4 - share), (52, share)), 300, 5000), 4)
        first = [recipe.pools[0] for family in default_families(levels) for recipe in family]
        return {pool.sizes for pool in first if isinstance(pool, Fixed)}

    assert classes(0.1) - classes(0.099) == {(52, 64, 84, 128, 256, 300, 512)}
    assert classes(0.099) - classes(0.1) == {(64, 84, 128, 256, 300, 512)}


def test_slow_kinds_are_few(space: Space) -> None:
    pools = generals(space)
    lists = [pool for pool in pools if pool.free_list != "tree"]
    slow = [pool for pool in lists if pool.free_list != "double" or pool.order in ("address", "size")]
    assert len(slow) < 0.06 * len(pools)
    assert sum(pool.coalesce == "never" for pool in pools) < 0.1 * len(pools)


def test_what_is_cheap_comes_before_what_walks_lists(space: Space) -> None:
    searched = [
        not any(isinstance(pool, General) and pool.bins != "none" for pool in recipe.pools)
        for recipe in space.recipes()
    ]
    quarter = len(searched) // 4
    assert sum(searched[:quarter]) < 0.3 * quarter
    assert sum(searched[-quarter:]) > 0.9 * quarter


def test_too_few_sizes_give_fewer_recipes_and_a_note() -> None:
    space = Space.tailored(demand((66, 1514)))
    assert 1_000 < len(space) < 10_000
    (note,) = space.notes
    assert "only 2 sizes of blocks" in note
    assert "3 levels of freelists instead of 10" in note


def test_a_trace_may_ask_for_nothing_that_a_heap_serves() -> None:
    trace = Trace.from_columns(op=[MALLOC, FREE], id=[1, 1], size=[2**31, 0])
    assert Demand.of([trace]) == Demand((), 1, 2**31)
    assert len(Space.default([trace])) > len(zoo.staying())
    with pytest.raises(HeapwrightError, match="no request that a heap can serve"):
        special_pools({"name": "huge", "sizes": [{"size": 2**31, "share": 1.0}]})


def test_demand_counts_requests_of_all_traces() -> None:
    item = Trace.from_columns(op=[MALLOC, MALLOC, FREE], id=[1, 2, 1], size=[100, 20, 0])
    two = Trace.from_columns(op=[MALLOC, FREE, MALLOC], id=[1, 1, 2], size=[20, 0, 0])
    requested = Demand.of([item, two])
    assert requested._replace(counts=()) == Demand(((20, 0.5), (1, 0.25), (100, 0.25)), 100, 120)
    with pytest.raises(HeapwrightError, match="no traces"):
        Demand.of([])


# ---- pools with counts -----------------------------------------------------------------------------------------------

COUNTS = ((24, (2, 5, 8, 9)), (1480, (0, 1, 3, 4)), (20, (4, 6, 6, 7)), (40, (1, 1, 1, 1)))
"""Of four sizes, the most frequent first: blocks that suffice a tenth, half, nine tenths and all of the time."""


def counted(align: int = 8, counts: tuple[tuple[int, tuple[int, ...]], ...] = COUNTS) -> list[tuple[Pool, ...]]:
    return list(default_space._counted_family(Levels(demand()._replace(counts=counts), align)))


def test_counts_are_those_of_a_future_of_the_most_frequent_sizes() -> None:
    trace = steady(1200, live=40)
    sizes = default_space.Demand.of([trace]).counts
    future = resample(trace, default_space.COUNTED_CALLS, seed=0)
    assert len(sizes) == max(default_space.COUNTED) == 48
    for size, counts in sizes[::7]:
        (wanted,) = live_counts(future, [size], default_space.COUNT_ALIGN, default_space.COUNT_SHARES).tolist()
        assert size % default_space.COUNT_ALIGN == 0 and list(counts) == wanted == sorted(wanted)
    recorded = live_counts(trace, [size for size, _ in sizes], default_space.COUNT_ALIGN, (1.0,))[:, 0]
    assert sum(counts[-1] for _, counts in sizes) > recorded.sum(), "a recording shows fewer than there come to be"


def test_of_several_traces_the_largest_counts_stand() -> None:
    item, other = (Trace.from_columns(op=[MALLOC] * n, id=range(n), size=[24] * n) for n in (9, 3))
    both, alone = Demand.of([item, other]).counts, [Demand.of([trace]).counts for trace in (item, other)]
    assert both == (max(alone[0], alone[1], key=lambda result: result[0][1]))


def test_a_counted_pool_stands_before_each_general_pool_with_its_sizes_in_order() -> None:
    result = counted()
    pools = {pools[0] for pools in result}
    behind = {pool: {pools[1:] for pools in result if pools[0] == pool} for pool in pools}
    assert len({frozenset(item) for item in behind.values()}) == 1 and len(result) > 2 * len(pools)
    for pool in pools:
        assert isinstance(pool, Fixed) and pool.counts is not None
        assert list(pool.sizes) == sorted(set(pool.sizes))
        assert all(isinstance(count, int) and count >= default_space.FEWEST_COUNTED == 2 for count in pool.counts)
        assert pool.max_size == pool.sizes[-1]
    assert Fixed(sizes=(24,), counts=(2,), max_size=24) in {pools[0] for pools in counted(counts=COUNTS[:2])}
    assert all(isinstance(pools[-1], General) for pools in result)


def test_sizes_that_need_the_same_block_are_one_and_few_blocks_are_no_pool() -> None:
    """20 and 24 bytes need the same block: 9 + 7 of them at most; one of 40 bytes is no pool."""
    whole = {(pool.sizes, pool.counts) for pool, *_ in counted() if isinstance(pool, Fixed)}
    assert ((24, 1480), (16, 4)) in whole
    assert not any(40 in sizes for sizes, _ in whole)
    wide = {pool.sizes for pool, *_ in counted(align=16) if isinstance(pool, Fixed)}
    assert wide <= {(32,), (32, 1488)}


def test_no_counted_recipe_comes_twice_and_its_counts_are_canonical() -> None:
    recipes = [Recipe.unchecked(pools, 8) for pools in counted()]
    assert len({recipe.hash for recipe in recipes}) == len(recipes) > 0
    for recipe in recipes:
        written, canonical = recipe.pools[0], recipe.canonical().pools[0]
        assert isinstance(written, Fixed) and isinstance(canonical, Fixed)
        assert (canonical.sizes, canonical.counts) == (written.sizes, written.counts)


def test_without_counts_there_is_no_counted_pool() -> None:
    assert counted(counts=()) == counted(counts=((24, (1, 1, 1, 1)),)) == []


# ---- SPACE.toml ----------------------------------------------------------------------------------------------------


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Space | WideSpace]:
    def write(text: str, *traces: Trace, align: int | None = None) -> Space | WideSpace:
        path = tmp_path / "space.toml"
        path.write_text(text, encoding="utf-8")
        return Space.load(path, traces, align)

    return write


TRACE = Trace.from_columns(op=[MALLOC] * 5, id=[1, 2, 3, 4, 5], size=[16, 16, 16, 1476, 1476])

AXES = """
include_zoo = false
link_bytes = [2, 4]
[[pool]]
kind = "quick"
sizes = [[16], [16, 1476]]
[[pool]]
kind = "general"
bins = ["none", "exact"]
fit = ["first", "next"]
"""


def test_axes_are_multiplied_out_without_contradictions(load: Callable[..., Space]) -> None:
    space = load(AXES)
    # 2 widths of links x 2 lists of sizes x 4 searches, less next fit over bins
    assert len(space) == 12
    (note,) = space.notes
    assert note.startswith("4 combinations left out as contradictions, the first: ")
    assert '"fit" "next" roves over one list' in note


def test_combinations_that_behave_alike_count_once(load: Callable[..., Space]) -> None:
    space = load("include_zoo = false\n[[pool]]\nkind = 'general'\nsplit = ['always', 0, 8, 16, 20]")
    assert len(space) == 2


def test_the_zoo_and_the_default_space_may_join(load: Callable[..., Space]) -> None:
    own = "[[pool]]\nkind = 'general'\nheader = 16\n"
    assert len(load(own)) == len(Space([])) + 1
    default = len(Space.default([TRACE]))
    assert len(load("default = true\n" + own, TRACE)) == default + 1
    assert len(load("default = true", TRACE)) == len(load("", TRACE)) == default
    assert len(load("default = false", TRACE)) == len(Space([]))
    assert len(load("include_zoo = false", TRACE)) > default - len(Space([])) - 10


@pytest.mark.parametrize("align", [4, 8, 16])
def test_an_alignment_governs_every_recipe(load: Callable[..., Space], align: int) -> None:
    own = "[[pool]]\nkind = 'quick'\nmost_frequent = 1\n[[pool]]\nkind = 'general'\nheader = 16\n"
    output, requested = f"align = {align}\n", {"align": align}
    for space in (load(output, TRACE), load(output + own, TRACE), load(output + "default = true\n" + own, TRACE)):
        assert {recipe.align for recipe in space.recipes()} == {align} == {space.align}
    hashes = [
        [recipe.hash for recipe in space.recipes()] for space in (load(output, TRACE), load("", TRACE, **requested))
    ]
    assert hashes[0] == hashes[1] == [recipe.hash for recipe in Space.default([TRACE], align).recipes()]
    assert load(output + own, TRACE, **requested).align == align
    with pytest.raises(HeapwrightError, match=f'space.toml: "align" {align}, but 2 was given; give one'):
        load(output, TRACE, align=2)
    assert load(own, TRACE).align == 8


def test_most_frequent_sizes_come_from_the_traces(load: Callable[..., Space]) -> None:
    space = load(
        "include_zoo = false\n[[pool]]\nkind = 'quick'\nmost_frequent = [0, 1, 2]\n[[pool]]\nkind = 'general'", TRACE
    )
    first, second, third = (recipe.pools for recipe in space.recipes())
    assert len(first) == 1
    assert second[0] == Quick(sizes=(20,))
    assert third[0] == Quick(sizes=(20, 1476))


def test_a_level_is_a_share_of_the_requests(load: Callable[..., Space]) -> None:
    """Three in five requests are of 16 bytes, the others of 1,476."""
    levels = "split = ['0 %', '60%', '60.1 %', 64]\ncoalesce_from = '100 %'"
    space = load(f"include_zoo = false\n[[pool]]\nkind = 'general'\n{levels}", TRACE)
    results = [pool for recipe in space.recipes() for pool in recipe.pools if isinstance(pool, General)]
    assert [pool.split for pool in results] == ["always", 1480, 64]  # 16 bytes are the least block
    assert {pool.coalesce_from for pool in results} == {1480}
    assert Demand.of([TRACE]).size_at(0.6) == 16 < Demand.of([TRACE]).size_at(0.601)
    with pytest.raises(HeapwrightError, match="\"split\": '0 %' is a share of requests; give traces for their sizes"):
        load(f"[[pool]]\nkind = 'general'\n{levels}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alin = 4", 'unknown key "alin"; did you mean "align"? valid: include_zoo, default, align'),
        ("include_zoo = 1", '"include_zoo": 1 is not valid; valid: true, false'),
        ("pool = 3", '"pool" is not valid; valid: [[pool]] tables'),
        ("[[pool]]\nfit = 'first'", 'pool 1: "kind": None is not valid; valid: one of quick, general, fixed'),
        ("[[pool]]\nkind = 'general'\nfits = ['first']", 'pool 1 (general): unknown key "fits"; did you mean "fit"?'),
        (
            "[[pool]]\nkind = 'general'\nfit = ['first', 'good']",
            'pool 1 (general): "fit": "good" is not valid; valid: first',
        ),
        (
            "align = 5\n[[pool]]\nkind = 'general'",
            '"align": 5 is not valid; a study is of one alignment; valid: 1, 2, 4, 8',
        ),
        (
            "align = [4, 8]\n[[pool]]\nkind = 'general'",
            '"align": [4, 8] is not valid; a study is of one alignment; valid',
        ),
        ("align = true", '"align": True is not valid; a study is of one alignment; valid: 1, 2, 4, 8, 16'),
        ("checks = true", '"checks" is for [[pool]] tables, and there is none; add one'),
        ("default = true", "the default space belongs to it, which needs traces to be built from"),
        ("align = 8", "the default space belongs to it, which needs traces to be built from"),
        ("[[pool]]\nkind = 'quick'\nmost_frequent = 2\n[[pool]]\nkind = 'general'", '"most_frequent" needs traces'),
        (
            "[[pool]]\nkind = 'quick'\nmost_frequent = true\n[[pool]]\nkind = 'general'",
            '"most_frequent": True is not valid',
        ),
        (
            "[[pool]]\nkind = 'quick'\nmost_frequent = 1.5\n[[pool]]\nkind = 'general'",
            '"most_frequent": 1.5 is not valid',
        ),
        (
            "[[pool]]\nkind = 'quick'\nmost_frequent = 10\n[[pool]]\nkind = 'general'",
            '"most_frequent": 10 is not valid',
        ),
        ("include_zoo = false\ndefault = false", "no recipes; valid: [[pool]] tables with axes"),
        (
            "include_zoo = false\n[[pool]]\nkind = 'general'\nfit = 'next'\nbins = ['exact', 'lea']",
            "no recipes; 2 combinations left out as contradictions, the first: ",
        ),
        (
            "[[pool]]\nkind = 'general'\nfit = ['best', 'bset']\n"
            + "\n".join(f"{key} = {list(range(1, 301))}" for key in ("split", "min_size")),
            'pool 1 (general): "fit": "bset" is not valid',
        ),
        (
            "default = true\n[[pool]]\nkind = 'general'\n"
            + "\n".join(f"{key} = {list(range(1, 101))}" for key in ("search_percent", "split", "min_size")),
            "the default space belongs to it, which needs traces to be built from",
        ),
        ("a = [", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line_with_what_is_valid(load: Callable[..., Space], text: str, message: str) -> None:
    with pytest.raises(HeapwrightError) as refused:
        load(text)
    assert f"space.toml: {message}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_buddies_are_tried_where_they_serve_the_largest_of_the_frequent_sizes() -> None:
    small, huge = (Demand(((16, 0.6), (size, 0.4)), size, 2 * size) for size in (1024, 1 << 30))
    assert list(default_space._buddy_family(Levels(small, 8)))
    assert not list(default_space._buddy_family(Levels(huge, 8)))
