"""The portfolio: templates, the recipes that traces make of them, and the templates of recipes."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from sample_demand import demand

from heapwright._explore.default_space import Demand, Levels
from heapwright._explore.evaluation import SearchCandidate
from heapwright._explore.portfolio import HeldOutScore, Template, abstracted, shipped_portfolio, tailored_to
from heapwright._explore.search import _ordered
from heapwright._explore.space import Space
from heapwright._recipes.pools import General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue

FEW = Demand(sizes=((24, 0.7), (100, 0.3)), largest=100, peak_live_bytes=5_000)
"""Two sizes, and little that lives."""

FIRST: Template = {"pool": [{"kind": "quick", "most_frequent": 2}, {"kind": "general", "split": "7/7"}]}


def made(align: int, of: Demand) -> list[Recipe]:
    levels = Levels(of, align)
    return [recipe for item in shipped_portfolio().recipes if (recipe := tailored_to(item, levels)) is not None]


# ---- the list ------------------------------------------------------------------------------------------------------


def test_it_has_some_two_hundred_recipes_each_once() -> None:
    output = [json.dumps(recipe, sort_keys=True) for recipe in shipped_portfolio().recipes]
    assert 150 <= len(output) == len(set(output))


def test_no_recipe_has_sizes_of_its_own() -> None:
    for recipe in shipped_portfolio().recipes:
        assert recipe.keys() <= {"zoo", "pool", "link_bytes", "fragments"}
        if "zoo" in recipe:
            assert recipe["zoo"] in catalogue.names()
        else:
            assert all("sizes" not in pool for pool in recipe["pool"])


def test_less_than_half_of_the_list_grew_on_most_traces_that_it_was_tried_on() -> None:
    recipes = shipped_portfolio().recipes
    assert sum(bool(recipe.get("fragments")) for recipe in recipes) < len(recipes) / 2


@pytest.mark.parametrize("align", [4, 8, 16])
def test_an_ordinary_trace_makes_recipes_of_nearly_all(align: int) -> None:
    recipes = made(align, demand())
    assert len({recipe.hash for recipe in recipes}) >= 0.9 * len(shipped_portfolio().recipes)
    assert {recipe.align for recipe in recipes} == {align}


@pytest.mark.parametrize(
    ("align", "of", "count", "digest"), [(8, demand(), 195, "ef7ed70cbcc3"), (4, FEW, 199, "2fd0a963e70d")]
)
def test_what_a_trace_makes_of_the_list_stays_as_it_is(align: int, of: Demand, count: int, digest: str) -> None:
    """An answer at once is the same again, until the list is learnt again."""
    recipes = made(align, of)
    assert (len(recipes), sha256(" ".join(recipe.hash for recipe in recipes).encode()).hexdigest()[:12]) == (
        count,
        digest,
    )


def test_nine_in_ten_are_recipes_of_the_default_space() -> None:
    known = {recipe.hash for recipe in Space.tailored(demand()).recipes()}
    recipes = made(8, demand())
    assert sum(recipe.hash in known for recipe in recipes) >= 0.9 * len(recipes)


def test_a_trace_of_two_sizes_makes_fewer_and_all_are_valid() -> None:
    recipes = made(8, FEW)
    assert 0 < len({recipe.hash for recipe in recipes}) < len({recipe.hash for recipe in made(8, demand())})
    assert all(Recipe.from_dict(recipe.to_dict()).hash == recipe.hash for recipe in recipes)


# ---- to a trace and back -------------------------------------------------------------------------------------------


def test_lists_and_thresholds_are_made_from_the_sizes_of_a_trace() -> None:
    for of in (FEW, demand()):
        levels = Levels(of, 8)
        recipe = tailored_to(FIRST, levels)
        assert recipe is not None
        quick, general = recipe.pools
        assert isinstance(quick, Quick) and isinstance(general, General)
        assert quick.sizes == tuple(sorted(levels.frequent[:2]))
        assert general.split == levels.splits[-2] >= levels.largest


def test_a_victim_and_lists_reach_no_farther_than_requests() -> None:
    output: Template = {
        "pool": [
            {"kind": "quick", "up_to": 2048},
            {"kind": "general", "bins": "exact", "fit": "best", "victim_up_to": 4096},
        ]
    }
    recipe = tailored_to(output, Levels(FEW, 8))
    assert recipe is not None
    quick, general = recipe.pools
    assert isinstance(quick, Quick) and isinstance(general, General)
    assert (quick.up_to, general.victim_up_to) == (128, 128)


def test_what_does_not_reach_the_arena_is_left_out() -> None:
    output: Template = {"link_bytes": 2, "pool": [{"kind": "general"}]}
    assert tailored_to(output, Levels(FEW, 8)) is not None
    assert tailored_to(output, Levels(FEW._replace(peak_live_bytes=10_000_000), 8)) is None


@pytest.mark.parametrize("of", [demand(), FEW])
def test_what_a_recipe_is_without_sizes_makes_it_again(of: Demand) -> None:
    levels = Levels(of, 8)
    for recipe in list(Space.tailored(of).recipes())[60::97]:
        output = abstracted(recipe, levels)
        if output is not None:
            again = tailored_to(output, levels)
            assert again is not None and again.hash == recipe.hash


def test_nearly_all_of_the_default_space_is_something_without_sizes() -> None:
    levels = Levels(demand(), 8)
    recipes = list(Space.tailored(demand()).recipes())[60::97]
    assert sum(abstracted(recipe, levels) is not None for recipe in recipes) >= 0.9 * len(recipes)


def test_a_recipe_of_other_sizes_is_nothing_without_them() -> None:
    recipe = Recipe.from_dict({"align": 8, "pool": [{"kind": "quick", "sizes": [3000]}, {"kind": "general"}]})
    assert abstracted(recipe, Levels(FEW, 8)) is None


# ---- what is made of it --------------------------------------------------------------------------------------------


def test_the_zoo_comes_first_then_the_list_in_its_order_then_the_others_as_they_were() -> None:
    recipe = Recipe.from_dict({"pool": [{"kind": "general"}]})
    chosen = [SearchCandidate(id, recipe, "tlsf" if id == "zoo" else None) for id in ("a", "b", "zoo", "c", "d")]
    assert [item.id for item in _ordered(chosen, ["d", "missing", "b"])] == ["zoo", "d", "b", "a", "c"]
    assert _ordered(chosen, []) == [chosen[2], *chosen[:2], *chosen[3:]]


def test_how_far_answers_were_is_a_sentence_with_its_numbers() -> None:
    known = HeldOutScore(
        traces=40,
        programs=30,
        hypervolume=0.999,
        hypervolume_low=0.98,
        picks=12,
        memory=0.99,
        memory_high=1.05,
        accesses=1.1,
        accesses_high=2.5,
    )
    assert known.sentence() == (
        "On 12 held-out traces, and before stress tests, such recommendations needed 1.0 % less memory "
        "and 10.0 % more accesses than those of a complete exploration in the median, and in nine of ten at most 5.0 % "
        "more and 150.0 % more."
    )


def test_the_list_was_judged_on_traces_kept_out() -> None:
    known = shipped_portfolio().kept_out
    assert known.traces >= 40 and known.programs >= 20 and known.picks >= 5
    assert 0.9 < known.hypervolume_low <= known.hypervolume <= 1
    assert known.memory <= known.memory_high and known.accesses <= known.accesses_high
