"""The adversarial search: within the sizes and live bytes of a trace, far from harmless, never beyond the proof."""

from __future__ import annotations

import random

import numpy as np
import pytest
from metric_values import known
from recipes_random import random_recipes
from traces_random import churning

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay import adversarial_search
from heapwright._replay.adversarial_search import OBJECTIVES, Phase, find_worst
from heapwright._replay.arena_sizes import depends_on_arena, server
from heapwright._replay.replay import replay
from heapwright._replay.worst_case import load_of, worst_case
from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC


@pytest.fixture(scope="module")
def trace() -> Trace:
    """3,000 calls, sizes of a protocol stack, a peak that stays."""
    draw = random.Random(3)
    sizes = [12, 16, 24, 40, 48, 64, 100, 128, 200, 256, 300, 512, 700, 1024]
    return churning(draw, 3000, sizes, 0.49, "stack")


BOUNDED = ("first-fit-slow-free", "freertos-heap4", "binary-buddy", "half-fit", "tlsf", "best-fit-slow-free")


@pytest.mark.parametrize("name", BOUNDED)
def test_no_sequence_exceeds_the_bound(trace: Trace, name: str) -> None:
    recipe = catalogue.load(name)
    result, bound = find_worst(trace, recipe, tries=40), worst_case(trace, recipe)
    assert bound is not None
    assert result.value <= bound.bytes
    assert load_of(result.trace, recipe).live <= load_of(trace, recipe).live


def test_no_random_recipe_exceeds_its_bound(trace: Trace) -> None:
    tried = 0
    for recipe in random_recipes(500, seed=77):
        bound = worst_case(trace, recipe)
        if bound:
            result = find_worst(trace, recipe, tries=20)
            assert server(result.trace, recipe, policy_struct(recipe))(bound.bytes), recipe
            assert depends_on_arena(recipe) or result.value <= bound.bytes, recipe
            tried += 1
    assert tried > 8


def test_first_fit_is_fragmented_far_worse_than_by_the_trace(trace: Trace) -> None:
    recipe = catalogue.load("first-fit-slow-free")
    result = find_worst(trace, recipe, tries=60)
    assert result.original == replay(trace, recipe)["footprint_bytes"]
    assert result.value == replay(result.trace, recipe)["footprint_bytes"]
    assert result.value > 1.8 * result.original


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["first-fit-slow-free", "drr-proposed"])
def test_it_stays_within_the_trace(trace: Trace, name: str, objective: str) -> None:
    recipe = catalogue.load(name)
    result = find_worst(trace, recipe, objective, tries=30)
    requested = result.trace.size[result.trace.op != FREE]
    assert np.isin(requested, trace.size).all()
    assert result.trace.peak_live_bytes <= trace.peak_live_bytes
    assert len(result.trace) <= len(trace)
    output = replay(result.trace, recipe)
    calls = max(output["accesses_malloc_max"] or 0, output["accesses_free_max"] or 0)
    assert result.value == (calls if objective == "accesses" else known(output[objective])) >= result.original
    if objective in ("footprint_bytes", "accesses_malloc_max"):
        assert result.value > 1.1 * result.original


def test_it_is_the_same_for_a_seed_and_more_tries_lose_nothing(trace: Trace) -> None:
    recipe = catalogue.load("tlsf")
    few, again, more = (find_worst(trace, recipe, tries=tries, seed=1) for tries in (40, 40, 90))
    assert few.value == again.value <= more.value
    assert few.trace.size.tolist() == again.trace.size.tolist()
    assert few.trace.name == "stack~worst"
    assert few.trace.metadata == {
        "format_version": "1",
        "worst_of": "stack",
        "worst_heap": "tlsf",
        "worst_for": "footprint_bytes",
        "worst_value": str(few.value),
        "worst_tries": "40",
        "worst_seed": "1",
    }


def test_a_phase_frees_what_it_says_and_then_fills_its_share_of_the_budget() -> None:
    """Room for 20 objects of 10 bytes, or fewer with a pin of 20 bytes before each."""
    budget = adversarial_search._Budget(np.array([10, 20]), np.array([10, 20]), 200, 200, 1000)

    def lived(*phases: Phase) -> list[list[int]]:
        """The sizes alive after each phase."""
        calls, after = adversarial_search._Calls(budget), list[list[int]]()
        for phase in phases:
            calls.release(phase.release)
            calls.fill(phase)
            after.append(budget.sizes[calls.live[:, 1]].tolist())
        return after

    half, rest = [10] * 10, [20, 10] * 3
    assert lived(Phase(0, 0, -1, 0.5), Phase(0, 0, 1, 1.0)) == [half, half + rest], "nothing is freed"
    assert lived(Phase(0, 0, 1, 1.0), Phase(1, 0, -1, 0.0)) == [[20, 10] * 6, [20] * 6], "all but pins"
    assert lived(Phase(0, 0, -1, 0.5), Phase(3, 1, -1, 0.5)) == [half, [10] * 4 + [20] * 4], "all but a third"
    assert len(adversarial_search._program([Phase(0, 0, -1, 1.0), Phase(2, 0, -1, 1.0)], budget)) == 20 + 10 + 10
    short = budget.__class__(budget.sizes, budget.blocks, 200, 200, 25)
    assert len(adversarial_search._program([Phase(0, 0, -1, 1.0), Phase(2, 0, -1, 1.0)], short)) == 25


def test_a_trace_of_one_size_has_nothing_to_fragment() -> None:
    same = Trace.from_columns(op=[MALLOC] * 20, id=list(range(20)), size=[32] * 20)
    result = find_worst(same, catalogue.load("first-fit-slow-free"), tries=20)
    assert result.value == result.original
    assert result.trace.size.tolist() == same.size.tolist()
    item = Trace.from_columns(op=[MALLOC], id=[1], size=[0])
    assert find_worst(item, catalogue.load("tlsf"), tries=5).value > 0


def test_programs_that_a_heap_refuses_are_passed_over(trace: Trace) -> None:
    near = Recipe.parse('align = 1\n[[pool]]\nkind = "general"\nheader = 2\nfree_list = "implicit"\n')
    assert near.reach is not None and trace.peak_live_bytes < near.reach < 3 * trace.peak_live_bytes
    result = find_worst(trace, near, tries=40)
    assert result.original < result.value <= near.reach
    assert replay(result.trace, near)["failed"] == 0


def test_what_cannot_be_searched_is_said(trace: Trace) -> None:
    with pytest.raises(ParameterError, match=r"objective: footprint: not searched for; did you mean footprint_bytes\?"):
        find_worst(trace, catalogue.load("tlsf"), "footprint")
    with pytest.raises(ParameterError, match="tries: 0; must be 1 or more"):
        find_worst(trace, catalogue.load("tlsf"), tries=0)


def test_the_last_programs_of_the_literature_are_combs_of_every_size_under_the_largest() -> None:
    combs = [[Phase(0, small, -1, 1.0), Phase(release, 2, -1, 1.0)] for small in (0, 1, 2) for release in (2, 4, 8)]
    assert list(adversarial_search._known_programs(3))[-9:] == combs


def test_few_of_many_sizes_are_spread_in_their_order() -> None:
    assert adversarial_search._some(5, 9) == [0, 1, 2, 3, 4]
    assert adversarial_search._some(1000, 6) == [0, 200, 400, 599, 799, 999]
    assert adversarial_search._some(99_991, 16) == sorted(adversarial_search._some(99_991, 16))
