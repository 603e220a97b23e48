"""The worst case: no program of this load needs more, and heaps that theory does not cover have none."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from recipes_random import random_recipes
from traces_random import churning

from heapwright.recipes.policy import policy_struct
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue
from heapwright.replay.smallest import server
from heapwright.replay.worst_case import block_sizes, load_of, worst_case
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC, REALLOC

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
    assert load_of(trace, recipe) == (256, 64, 16)
    found = worst_case(trace, recipe)
    assert found is not None
    unsplit = 256 // 16 * 8  # a rest of 8 bytes stays with its block
    harmonic = sum(1 / size for size in range(1, 10))
    slack = int(policy_struct(recipe).fixed_end) + 8 + 8
    assert found.theorem.startswith("first fit") or found.theorem == "any fit"
    assert found.bytes <= slack + harmonic * (256 + unsplit) / np.log(2) + 1


def test_buddies_have_that_of_knuth() -> None:
    recipe = catalogue.load("binary-buddy")
    trace = Trace.from_columns(op=[MALLOC] * 9, id=list(range(9)), size=[12] * 8 + [120])
    assert load_of(trace, recipe) == (8 * 16 + 128, 128, 16)
    found = worst_case(trace, recipe)
    assert found is not None
    assert found.bytes == int(policy_struct(recipe).fixed_end) + (1 + 3) * 256 + 2 * 128


@pytest.mark.parametrize(
    ("name", "theorem"),
    [
        ("first-fit-slow-free", "first fit: Robson 1977; Knuth 2.5, ex. 43"),
        ("freertos-heap4", "first fit: Robson 1977; Knuth 2.5, ex. 43"),
        ("half-fit", "half fit: Ogasawara 1995; o1heap"),
        ("binary-buddy", "buddies: Knuth 2.5, ex. 41"),
        ("tlsf", "any fit"),
        ("victim-bins", None),  # the victim is passed by
        ("lea-2.7.2", None),
        ("drr-proposed", None),  # quick lists keep blocks from merging
        ("freertos-heap2", None),  # never merges
        ("fixed-pool", None),
    ],
)
def test_the_zoo(name: str, theorem: str | None) -> None:
    trace = comb(100, 400, 1000)
    found = worst_case(trace, catalogue.load(name))
    assert (found and found.theorem) == theorem


def test_first_fit_that_takes_no_fresh_memory_for_a_hole_is_any_fit() -> None:
    trace = comb(100, 400, 1000)
    first, bump = (worst_case(trace, Recipe.parse(FIRST_FIT + more)) for more in ("", 'top = "bump"\n'))
    assert first is not None and bump is not None
    assert (first.theorem[:9], bump.theorem) == ("first fit", "any fit")
    assert first.bytes < bump.bytes


def test_what_the_theorems_do_not_speak_of_has_no_bound() -> None:
    recipe = Recipe.parse(FIRST_FIT)
    grown = Trace.from_columns(op=[MALLOC, REALLOC], id=[1, 1], size=[8, 16])
    assert worst_case(grown, recipe) is None, "a block that grows where it is, is not where first fit would put it"
    assert worst_case(grown, catalogue.load("freertos-heap4")) is not None, "realloc takes a new block"
    aligned = Trace.from_columns(op=[MALLOC], id=[1], size=[8], align=[64])
    assert worst_case(aligned, recipe) is None
    near = Recipe.parse('align = 4\nlink_bytes = 2\n[[pool]]\nkind = "general"\norder = "address"\n')
    assert worst_case(comb(100, 4000, 1000), near) is None, "beyond what its links reach"


def test_realloc_has_both_blocks_live() -> None:
    trace = Trace.from_columns(op=[MALLOC, MALLOC, REALLOC, FREE], id=[1, 2, 1, 2], size=[8, 100, 24, 0])
    assert load_of(trace, Recipe.parse(FIRST_FIT)).live == 16 + 112 + 32


def test_no_program_needs_more_than_the_bound() -> None:
    tried = 0
    traces = [churn(seed) for seed in range(3)] + [comb(24, 600, 700)]
    for recipe in [*random_recipes(400, seed=21), *map(catalogue.load, catalogue.names())]:
        serves_of = policy_struct(recipe)
        for trace in traces:
            found = worst_case(trace, recipe)
            if found:
                serves = server(trace, recipe, serves_of)
                assert serves(found.bytes), recipe
                assert serves(found.bytes + found.bytes // 3 // recipe.align * recipe.align), recipe
                tried += 1
    assert tried > 60


def test_block_sizes_are_those_of_the_heap() -> None:
    sizes = np.array([0, 1, 12, 13, 100, 4092])
    assert block_sizes(catalogue.load("tlsf"), sizes)[0].tolist() == [16, 16, 16, 20, 104, 4096]
    assert block_sizes(catalogue.load("binary-buddy"), sizes)[0].tolist() == [16, 16, 16, 32, 128, 4096]
    assert block_sizes(catalogue.load("half-fit"), sizes)[0].tolist() == [32, 32, 32, 32, 128, 8192]
