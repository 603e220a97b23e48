"""The keys of recipes: how many there are, and the error for a file with a key of an older version."""

from __future__ import annotations

import pytest
from case_tables import each

from heapwright._recipes.kinds.base import BasePool
from heapwright._recipes.pools import KINDS
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError

MOST_KEYS = 95


def test_recipes_have_at_most_95_keys() -> None:
    """Counted in two ways: as the models of the kinds have them, inherited ones and `kind` once for each kind; and as
    docs/recipes.md lists them, the heap's keys included, those of every pool once."""
    by_kind = sum(len(model.model_fields) for model in KINDS.values())
    common = {*BasePool.model_fields, "kind"}
    own = sum(len(model.model_fields.keys() - common) for model in KINDS.values())
    assert by_kind <= MOST_KEYS
    assert len(Recipe.model_fields) + len(common) + own <= MOST_KEYS


@each(
    ("pool", "message"),
    [
        ('kind = "quick"\nup_to = 64\nflush_growth = 0.5', '(quick): "flush_growth" was removed, Heapwright 0.2.0'),
        ('kind = "quick"\nup_to = 64\nflush_large = 500', '(quick): "flush_large" was removed, Heapwright 0.2.0'),
        ('kind = "quick"\nup_to = 64\nlimit_bytes = 500', 'is the last to read it; use "limit_blocks"'),
        ('kind = "general"\nsplit_share = 0.5', '(general): "split_share" was removed, Heapwright 0.2.0'),
        ('kind = "compact"\nhandles = "arena"', "is the last to read it; handles lie with the caller"),
        ('kind = "compact"\nhandle_bytes = 12', "is the last to read it; a handle has 4 bytes"),
        ('kind = "general"\nflush_growth = 1.0', '(general): unknown key "flush_growth"'),
        ('kind = "pages"\nup_to = 64', '"kind" "pages" is not valid; valid: quick, general'),
    ],
)
def test_a_removed_key_names_the_last_version_that_read_it(pool: str, message: str) -> None:
    with pytest.raises(HeapwrightError) as refused:
        Recipe.parse(f"[[pool]]\n{pool}\n")
    assert message in str(refused.value) and "\n" not in str(refused.value)
