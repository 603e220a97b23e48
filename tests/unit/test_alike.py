"""Recipes that must do the same on a trace do."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable

import pytest
from traces_random import churning

from heapwright.explore.alike import Seen
from heapwright.explore.space import Space
from heapwright.recipes.recipe import Recipe
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace

FEW = churning(random.Random(5), 400, (16, 40, 100), 0.48, "few sizes")
SPARSE = churning(random.Random(6), 400, (*range(8, 110, 9), 1300), 0.48, "sizes far apart")


@pytest.mark.parametrize(("trace", "least"), [(FEW, 500), (SPARSE, 20)], ids=lambda value: getattr(value, "name", ""))
def test_recipes_of_one_form_have_the_same_metrics(trace: Trace, least: int) -> None:
    """All of the default space that have a form in common are replayed."""
    forms: dict[Hashable, list[Recipe]] = defaultdict(list)
    seen = Seen(trace)
    for recipe in Space.default([trace]).recipes():
        if (form := seen.form(recipe)) is not None:
            forms[form].append(recipe)
    spared = 0
    for recipes in forms.values():
        if len(recipes) > 1:
            first = replay(trace, recipes[0])
            for other in recipes[1:]:
                assert replay(trace, other) == first, f"{recipes[0].to_toml()}\n{other.to_toml()}"
                spared += 1
    assert spared >= least


def test_where_blocks_are_resized_or_aligned_thresholds_count() -> None:
    resized = Trace.from_columns(op=[0, 2, 3], id=[1, 1, 1], size=[100, 16, 0])
    aligned = Trace.from_columns(op=[0, 3], id=[1, 1], size=[100, 0], align=[64, 0])
    plain = Trace.from_columns(op=[0, 3], id=[1, 1], size=[100, 0])
    assert [Seen(trace).plain for trace in (resized, aligned, plain)] == [False, False, True]
