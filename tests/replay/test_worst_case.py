"""The worst case: no program of this load needs more, and heaps that theory does not cover have none."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from case_tables import each
from recipes_random import random_recipes
from traces_random import churning

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay.arena_sizes import server
from heapwright._replay.replay import replay
from heapwright._replay.worst_case import block_sizes, load_of, worst_case
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

FIRST_FIT = """
align = 8
[[pool]]
kind = "general"
header = 8
boundary_tags = false
links_in = "header"
free_list = "single"
order = "address"
min_block = 16
"""


def churn(seed: int, calls: int = 1200) -> Trace:
    draw = random.Random(seed)
    sizes = [draw.choice([8, 24, 40, 60, 100, 260, 700]) for _ in range(draw.randint(1, 6))]
    share = draw.uniform(0.4, 0.52)
    return churning(draw, calls, sizes, share, f"churn {seed}")


def comb(size: int, count: int, large: int) -> Trace:
    """Small objects of which every other one is freed, then large ones that fit into none of the holes."""
    small, freed = list(range(count)), list(range(0, count, 2))
    big = list(range(count, count + len(freed) * size // large))
    return Trace.from_columns(
        op=[MALLOC] * count + [FREE] * len(freed) + [MALLOC] * len(big),
        id=small + freed + big,
        size=[size] * count + [0] * len(freed) + [large] * len(big),
    )


def test_first_fit_has_the_bound_of_robson() -> None:
    """16 small blocks of 16 bytes and a largest of 64, units of 8: 2.72 = 1 + 1/2 + ... + 1/8 times 256 / ln 2."""
    recipe = Recipe.parse(FIRST_FIT)
    trace = Trace.from_columns(
        op=[MALLOC] * 16 + [FREE] * 16 + [MALLOC], id=[*range(16), *range(16), 16], size=[8] * 16 + [0] * 16 + [56]
    )
    assert load_of(trace, recipe)[:3] == (256, 64, 16)
    result = worst_case(trace, recipe)
    assert result is not None
    unsplit = 256 // 16 * 8  # a rest of 8 bytes stays with its block
    harmonic = sum(1 / size for size in range(1, 10))
    slack = int(policy_struct(recipe).fixed_end) + 8 + 8
    assert result.theorem.startswith("first fit") or result.theorem == "any fit"
    assert result.bytes <= slack + harmonic * (256 + unsplit) / np.log(2) + 1


def test_buddies_have_that_of_knuth() -> None:
    recipe = catalogue.load("binary-buddy")
    trace = Trace.from_columns(op=[MALLOC] * 9, id=list(range(9)), size=[12] * 8 + [120])
    assert load_of(trace, recipe)[:3] == (8 * 16 + 128, 128, 16)
    result = worst_case(trace, recipe)
    assert result is not None
    assert result.bytes == int(policy_struct(recipe).fixed_end) + (1 + 3) * 256 + 2 * 128


@each(
    ("name", "theorem"),
    [
        ("first-fit-slow-free", "first fit: Robson 1977; Knuth 2.5, ex. 43"),
        ("freertos-heap4", "first fit: Robson 1977; Knuth 2.5, ex. 43"),
        ("half-fit", "half fit: Ogasawara 1995; o1heap"),
        ("binary-buddy", "buddies: Knuth 2.5, ex. 41"),
        ("tlsf", "any fit"),
        ("espressif-tlsf-large", "any fit"),
        ("all-round", "any fit"),
        ("victim-bins", "any fit"),  # the last remainder is one hole more
        ("small-lists", "any fit"),  # no request is of its last bin, whose blocks a bounded search may pass by
        ("lea-2.7.2", "any fit"),  # its queue is filed before it refuses
        ("drr-proposed", "any fit"),  # quick lists are emptied before it refuses
        ("kingsley", None),
        ("freertos-heap2", None),  # never merges
        ("fixed-pool", None),
    ],
)
def test_the_zoo(name: str, theorem: str | None) -> None:
    trace = comb(100, 400, 1000)
    result = worst_case(trace, catalogue.load(name))
    assert (result and result.theorem) == theorem


def test_first_fit_that_takes_no_fresh_memory_for_a_hole_is_any_fit() -> None:
    trace = comb(100, 400, 1000)
    first, bump = (worst_case(trace, Recipe.parse(FIRST_FIT + more)) for more in ("", 'top = "bump"\n'))
    assert first is not None and bump is not None
    assert (first.theorem[:9], bump.theorem) == ("first fit", "any fit")
    assert first.bytes < bump.bytes


def test_what_the_theorems_do_not_speak_of_has_no_bound() -> None:
    recipe = Recipe.parse(FIRST_FIT)
    grown = Trace.from_columns(op=[MALLOC, REALLOC], id=[1, 1], size=[8, 16])
    resized = worst_case(grown, recipe)
    assert resized is not None and resized.theorem == "any fit", "where it grows, first fit would not have put it"
    assert worst_case(grown, Recipe.parse(FIRST_FIT + 'resize = "keep"\n')) is None, "a block may be larger than asked"
    aligned = Trace.from_columns(op=[MALLOC], id=[1], size=[8], align=[64])
    assert worst_case(aligned, recipe) is None
    near = Recipe.parse('align = 4\nlink_bytes = 2\n[[pool]]\nkind = "general"\norder = "address"\n')
    assert worst_case(comb(100, 4000, 1000), near) is None, "beyond what its links reach"


@pytest.mark.parametrize(
    "key",
    ["grow_least = 4096", 'coalesce = "never"', "coalesce_from = 512", 'split = "never"', 'fit = "exact"'],
)
def test_a_heap_that_passes_by_what_would_serve_has_no_bound(key: str) -> None:
    plain = 'align = 4\n[[pool]]\nkind = "general"\nfree_list = "single"\norder = "address"\nboundary_tags = false\n'
    plain += 'top = "bump"\n' * key.startswith("grow")
    assert worst_case(comb(100, 400, 1000), Recipe.parse(plain)) is not None
    assert worst_case(comb(100, 400, 1000), Recipe.parse(f"{plain}{key}\n")) is None


@pytest.mark.parametrize(("largest", "bounded"), [(508, True), (509, False), (1000, False)])
def test_a_bounded_search_in_a_last_bin_of_many_sizes_has_no_bound(largest: int, bounded: bool) -> None:
    """Bins of 16, 24, ... 56 bytes, then 64 to 96, 96 to 128, ... 384 to 512, and all from 512 on."""
    text = """
        align = 8
        [[pool]]
        kind = "general"
        bins = "exact"
        fit = "best"
        search_most = 4
        linear_up_to = 64
        bins_per_octave = 2
        most_bins = 13
    """
    result = worst_case(comb(24, 400, largest), Recipe.parse(text))
    assert (result is not None) == bounded


def test_realloc_has_both_blocks_live() -> None:
    trace = Trace.from_columns(op=[MALLOC, MALLOC, REALLOC, FREE], id=[1, 2, 1, 2], size=[8, 100, 24, 0])
    assert load_of(trace, Recipe.parse(FIRST_FIT)).live == 16 + 112 + 32


def test_no_program_needs_more_than_the_bound() -> None:
    tried = 0
    traces = [churn(seed) for seed in range(3)] + [comb(24, 600, 700)]
    for recipe in [*random_recipes(400, seed=21), *map(catalogue.load, catalogue.names())]:
        serves_of = policy_struct(recipe)
        for trace in traces:
            result = worst_case(trace, recipe)
            if result:
                serves = server(trace, recipe, serves_of)
                assert serves(result.bytes), recipe
                assert serves(result.bytes + result.bytes // 3 // recipe.align * recipe.align), recipe
                tried += 1
    assert tried > 60


def resizing(seed: int) -> Trace:
    draw = random.Random(seed)
    sizes = [draw.choice([8, 24, 40, 60, 100, 260, 700, 2500]) for _ in range(5)]
    calls: list[tuple[int, int, int]] = []
    live: list[int] = []
    for number in range(800):
        what = draw.choices([MALLOC, REALLOC, FREE], [0.45, 0.15, 0.4])[0] if live else MALLOC
        at = number if what == MALLOC else draw.choice(live)
        calls.append((what, at, 0 if what == FREE else draw.choice(sizes)))
        live = [*live, at] if what == MALLOC else [item for item in live if (item, what) != (at, FREE)]
    op, id, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=id, size=size)


def test_an_arena_that_refuses_is_below_the_bound_of_the_calls_so_far() -> None:
    """Sharper than at the bound, which no program comes near: at the first refusal the theorem has to hold, too."""
    refusals, nearest = 0, 99.0
    for recipe in [*random_recipes(150, seed=3), *map(catalogue.load, catalogue.names())]:
        struct = policy_struct(recipe)
        for trace in (churn(1, 500), comb(24, 300, 700), resizing(1)):
            arena = int(0.4 * (replay(trace, recipe)["footprint_bytes"] or 0)) // 16 * 16
            if worst_case(trace, recipe) is None or arena <= struct.fixed_end + 64:
                continue
            served, refused = 0, len(trace)
            if server(trace, recipe, struct)(arena):
                continue
            while refused - served > 1:
                middle = (served + refused) // 2
                serves = server(first(trace, middle), recipe, struct)(arena)
                served, refused = (middle, refused) if serves else (served, middle)
            bound = worst_case(first(trace, refused), recipe)
            assert bound is not None and bound.bytes > arena, recipe
            refusals, nearest = refusals + 1, min(nearest, bound.bytes / arena)
    assert refusals > 40 and nearest < 3


def first(trace: Trace, calls: int) -> Trace:
    """Calls from the beginning."""
    return Trace.from_columns(op=trace.op[:calls], id=trace.id[:calls], size=trace.size[:calls])


def test_of_several_pools_blocks_are_requests_rounded_up_to_the_alignment() -> None:
    pools = [{"kind": "general", "max_size": 64, "region": 1024}, {"kind": "general"}]
    requests = np.array([0, 1, 8, 9, 100])
    result, smallest = block_sizes(Recipe.from_dict({"align": 8, "pool": pools}), requests)
    assert (result.tolist(), smallest) == ([8, 8, 8, 16, 104], 8)
    alone, _ = block_sizes(Recipe.from_dict({"align": 8, "pool": pools[1:]}), requests)
    assert alone.tolist() != result.tolist(), "of one pool a header counts, too"


def test_block_sizes_are_those_of_the_heap() -> None:
    sizes = np.array([0, 1, 12, 13, 100, 4092])
    assert block_sizes(catalogue.load("tlsf"), sizes)[0].tolist() == [16, 16, 16, 20, 104, 4096]
    assert block_sizes(catalogue.load("binary-buddy"), sizes)[0].tolist() == [16, 16, 16, 32, 128, 4096]
    assert block_sizes(catalogue.load("half-fit"), sizes)[0].tolist() == [32, 32, 32, 32, 128, 8192]
