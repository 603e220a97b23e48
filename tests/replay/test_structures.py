"""Recipes that differ in thresholds alone share what is packed of them, and each gets its own policy from it."""

from __future__ import annotations

import random

import pytest
from recipes_random import random_recipes

from heapwright._native import ffi
from heapwright._recipes.policy import BeyondReachError, policy, policy_struct, structure_of, whole_bytes
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._support.errors import HeapwrightError
from heapwright._support.toml import parse_toml

SPLITS = ("always", 17, 24, 40, 64, 200, 1000, 60_000, "never")
MERGES = (0, 17, 24, 64, 200, 1000, 60_000)
VICTIMS = (1, 30, 64, 333, 1500, 4000)


def general(**keys: object) -> Recipe:
    return Recipe.from_dict({"align": 8, "pool": [{"kind": "general", **keys}]})


def with_other_thresholds(recipe: Recipe, rng: random.Random) -> Recipe | None:
    """The recipe with other thresholds in all general pools; None where it cannot have them."""
    heap = parse_toml(recipe.to_toml())
    for pool in heap["pool"]:
        if pool["kind"] == "general":
            pool |= {"split": rng.choice(SPLITS), "coalesce_from": rng.choice(MERGES)}
        if "victim_up_to" in pool:
            pool["victim_up_to"] = rng.choice(VICTIMS)
    try:
        return Recipe.from_dict(heap)
    except HeapwrightError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_each_policy_is_that_of_its_own_recipe(seed: int) -> None:
    rng, shared = random.Random(seed), 0
    for drawn in random_recipes(80, seed):
        for recipe in filter(None, (drawn, *(with_other_thresholds(drawn, rng) for _ in range(3)))):
            packed = ffi.new("struct hw_policy *", policy(recipe))
            assert whole_bytes(policy_struct(recipe)) == bytes(ffi.buffer(packed)), recipe.to_toml()
            shared += recipe.hash != drawn.hash and structure_of(recipe) is structure_of(drawn)
    assert shared > 20


def test_thresholds_share_a_structure_and_nothing_else_does() -> None:
    first = structure_of(general(bins="exact", fit="best", split=64, coalesce_from=64, victim_up_to=64))
    assert structure_of(general(bins="exact", fit="best", split=200, victim_up_to=500)) is first
    for keys in ({"split": "never"}, {"victim_up_to": 0}, {"close_bins": 4}, {"header": 8}):
        other = {"bins": "exact", "fit": "best", "split": 64, "victim_up_to": 64, **keys}
        assert structure_of(general(**other)) is not first, keys


def test_a_structure_handed_out_is_nobody_elses() -> None:
    structure = structure_of(general(split=64))
    structure.struct().align = 99
    assert structure.struct().align == 8


def test_a_name_makes_no_other_structure_and_is_told_where_the_policy_is_beyond_reach() -> None:
    assert structure_of(general(split=64)) is structure_of(general(split=64).model_copy(update={"name": "named"}))
    beyond = {"align": 8, "link_bytes": 2, "pool": [{"kind": "general", "header": 4}], "control_bytes": 65536}
    for name in ("one", "two"):
        recipe = Recipe.from_dict({**beyond, "align": 1, "name": name})
        with pytest.raises(BeyondReachError, match=name):
            policy_struct(recipe)


def test_worst_steps_are_told_of_all_pools_but_their_thresholds() -> None:
    bounded = {"bins": "two-level", "split": 64}
    assert worst_steps(general(**bounded)).most == worst_steps(general(**{**bounded, "split": "always"})).most
    assert worst_steps(general(**bounded)).most != worst_steps(general(**bounded, victim_up_to=64)).most
