"""The default space, recipe by recipe: all are valid and canonical, for any demand of the traces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from run_length import brief
from sample_demand import demand

from heapwright._explore.default_space import Demand
from heapwright._explore.space import Space
from heapwright._recipes.geometry import Geometry
from heapwright._recipes.pools import MAX_REQUEST, Pool
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.rules import contradictions
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._traces.trace import Trace
from heapwright._traces.validation import MALLOC


def some_of(space: Space) -> Iterator[Recipe]:
    """Each seventh recipe in the usual run, which steps through all values of the axes."""
    return islice(space.recipes(), 0, None, brief(7, 1))


@pytest.fixture(scope="module")
def space() -> Space:
    return Space.tailored(demand())


def test_every_recipe_is_canonical_and_valid(space: Space) -> None:
    for recipe in some_of(space):
        assert recipe.canonical() is recipe
        assert Recipe.from_dict(recipe.to_dict()).hash == recipe.hash


def test_narrow_metadata_is_tried_only_where_it_reaches() -> None:
    small, large = Space.tailored(demand(peak=20_000)), Space.tailored(demand(peak=500_000))
    narrow = [recipe for recipe in small.recipes() if recipe.reach is not None and not recipe.name]
    assert {recipe.link_bytes for recipe in narrow} == {2, 4}
    assert all(recipe.reach is not None and recipe.reach >= 25_000 for recipe in narrow)
    reaches = [recipe.reach for recipe in large.recipes() if recipe.reach is not None and not recipe.name]
    assert all(reach >= 625_000 for reach in reaches)


@pytest.mark.parametrize("sizes", [(1,), (7, 1), (100_000,), (2**30, 8)])
def test_any_sizes_give_valid_recipes(sizes: tuple[int, ...]) -> None:
    for recipe in some_of(Space.tailored(demand(sizes))):
        assert Recipe.from_dict(recipe.to_dict()).hash == recipe.hash


def test_another_alignment_gives_valid_recipes() -> None:
    space = Space.tailored(demand(), align=16)
    assert len(space) >= 10_000
    for recipe in some_of(space):
        assert recipe.align == 16
        assert Recipe.from_dict(recipe.to_dict()).hash == recipe.hash


def test_it_is_the_same_every_time_and_checks_none_of_its_recipes(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would make it several times slower; those of the zoo are few."""
    checked = []

    def counted(pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[tuple[int, str]]:
        checked.append(pools)
        return contradictions(pools, geometry)

    monkeypatch.setattr("heapwright._recipes.recipe.contradictions", counted)
    again = Space.tailored(demand())
    assert 0 < len(checked) <= len(zoo.staying())
    assert [recipe.hash for recipe in again.recipes()] == [recipe.hash for recipe in space.recipes()]


@pytest.mark.parametrize("largest", [MAX_REQUEST, MAX_REQUEST + 1, 2**31 - 1, 2**31])
def test_requests_beyond_every_heap_make_no_levels(largest: int) -> None:
    trace = Trace.from_columns(op=[MALLOC] * 4, id=[1, 2, 3, 4], size=[40, 40, largest, 100])
    requested = Demand.of([trace])
    served = largest <= MAX_REQUEST
    assert requested.sizes == ((40, 0.5), (100, 0.25), *([(largest, 0.25)] if served else []))
    assert requested.largest == (largest if served else 100)
    for recipe in some_of(Space.default([trace])):
        Recipe.from_dict(recipe.to_dict())
