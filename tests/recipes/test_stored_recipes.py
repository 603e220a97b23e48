"""Recipes as a study holds them: read fast, and read as all others are."""

from __future__ import annotations

import pytest
from recipes_random import random_recipes

from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._support.errors import HeapwrightError


def test_what_was_written_is_read_as_it_was_meant() -> None:
    for item in [*zoo.recipes(), *random_recipes(400, 31)]:
        text = item.to_toml()
        slow, fast = Recipe.parse(text), Recipe.parse_stored(text)
        assert fast == slow, text
        assert (fast.hash, fast.summary(), fast.to_toml()) == (slow.hash, slow.summary(), slow.to_toml())


def test_a_pool_that_is_only_told_of_is_none() -> None:
    output = Recipe.from_dict({"about": "It was\n\n[[pool]]\nkind = 'buddy'\n", "pool": [{"kind": "general"}]})
    assert Recipe.parse_stored(output.to_toml()) == output


@pytest.mark.parametrize(
    "text",
    [
        "align = 8\n\n[[pool]]\nkind = 'none'\n",
        "align = 3\n\n[[pool]]\nkind = 'general'\n",
        "align = 8\n\n[[pool]]\nkind = 'general'\nheader = true\n",
        "align = 8\n\n[[pool]]\nkind = \n",
        "align = 8\n",
        "",
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(text: str) -> None:
    with pytest.raises(HeapwrightError) as slow:
        Recipe.parse(text, "study:1")
    with pytest.raises(HeapwrightError) as fast:
        Recipe.parse_stored(text, "study:1")
    assert str(fast.value) == str(slow.value)
