"""Tables as classes: immutable, hashable, and validated when they come from files."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from heapwright._recipes.model import Table
from heapwright._recipes.pools import Fixed, General, Partition, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue


def test_reference_allocators_are_read_as_files_of_users_are() -> None:
    """They are trusted to be valid, so that reading them needs no pydantic."""
    for name in catalogue.names():
        parsed = Recipe.parse(catalogue.text(name))
        assert alike(list(parsed.model_dump().items()), list(catalogue.load(name).model_dump().items())), name


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of the same types all through; a float may be written as a whole number."""
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    return one == other and (type(one) is type(other) or isinstance(one, float))


def test_a_table_is_immutable_and_equal_to_its_copies() -> None:
    pool = General(bins="exact", sites=("a*",))
    for same in (copy.copy(pool), copy.deepcopy(pool), pickle.loads(pickle.dumps(pool)), pool.model_copy(deep=True)):
        assert same == pool and hash(same) == hash(pool) and same is not pool
    assert hash(pool) and not any(
        hasattr(made, "_hash") for made in (pickle.loads(pickle.dumps(pool)), copy.copy(pool))
    )
    assert pool.model_copy(update={"header": 8}) == General(bins="exact", sites=("a*",), header=8) != pool
    other: Table = Quick(up_to=8)
    assert pool != other
    with pytest.raises(AttributeError, match="frozen"):
        setattr(pool, "header", 8)  # noqa: B010
    with pytest.raises(AttributeError, match="frozen"):
        delattr(pool, "header")


def test_keys_are_taken_once_and_by_both_their_names() -> None:
    assert Recipe.model_validate({"pool": [{"kind": "general"}]}) == Recipe(pools=(General(),))
    refused: tuple[Any, ...] = ({"pool": [], "pools": []}, {"pool": [{"kind": "general"}], "nothing": 1}, {}, [], None)
    for wrong in refused:
        with pytest.raises(ValidationError):
            Recipe.model_validate(wrong)
    with pytest.raises(TypeError, match="unknown or missing: sizes"):
        Fixed()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown or missing: size"):
        Partition(sizes=8)  # type: ignore[call-arg]
    assert Quick.model_validate({"kind": "quick", "flush": "never", "up_to": 8}).flush == "before-refusing"
