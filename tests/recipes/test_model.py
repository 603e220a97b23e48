"""Tables as classes: what is read plainly is what pydantic reads, and behaves as its models do."""

from __future__ import annotations

import copy
import math
import pickle
from enum import IntEnum
from typing import Any, get_args

import numpy as np
import pytest
from case_tables import each
from pydantic import ValidationError

from heapwright._recipes.limits import MAX_REQUEST
from heapwright._recipes.model import REQUIRED, Table, _UnsureError, by_pydantic
from heapwright._recipes.pools import KINDS, Fixed, General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._studies.tables import Meta


class One(IntEnum):
    ONE = 1


NUMBERS = (-1, 0, 1, 2, 4, 8, 16, 17, 64, 100, 101, 512, 1952, 2048, 4096, 65536, MAX_REQUEST, MAX_REQUEST + 1, 1 << 40)
ODD: tuple[Any, ...] = (
    True,
    False,
    None,
    One.ONE,
    np.int64(8),
    np.float64(0.5),
    math.nan,
    math.inf,
    0.0,
    0.25,
    1.0,
    1.5,
    8.0,
    b"lifo",
    {},
)
LISTS: tuple[Any, ...] = (
    [],
    (),
    [8],
    (8, 16),
    [0],
    ["a"],
    [True],
    [8.0],
    list(range(1, 300)),
    [[1.0, 2, 3]],
    [[1, 2]],
    ("", "a"),
    {8},
)
TABLES: tuple[type[Table], ...] = (*KINDS.values(), Recipe, Meta)
KEYS = [(table, name) for table in TABLES for name in table.model_fields if name != "pools"]


def words(annotation: Any) -> set[Any]:
    results = {item for item in get_args(annotation) if isinstance(item, int | str)}
    return results.union(*(words(item) for item in get_args(annotation))) if get_args(annotation) else results


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of the same types all through."""
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and (one == other)


@each(("table", "name"), KEYS, ids=lambda item: getattr(item, "__name__", item))
def test_what_is_read_plainly_is_what_pydantic_reads(table: type[Table], name: str) -> None:
    other = [key for key, item in table.model_fields.items() if item.default is REQUIRED and key != name]
    given = {
        "recipes": 3,
        "align": 8,
        "format": 6,
        "sizes": [8],
        "objectives": ["a"],
        "energy_table": None,
        "counts": [1],
    }
    beside = {key: given.get(key, "text") for key in other} | ({"pools": (General(),)} if table is Recipe else {})
    model = by_pydantic(table)
    plainly = 0
    for value in (*NUMBERS, *ODD, *LISTS, "", "text", "never", *words(table.model_fields[name].annotation)):
        try:
            read = table._read_plainly({**beside, name: value})
        except _UnsureError:
            continue
        plainly += 1
        output = {**beside, name: value} | ({"pools": [{"kind": "general"}]} if table is Recipe else {})
        assert alike(read[name], getattr(model.model_validate(output), name)), value
    assert plainly


def test_zoo_recipes_are_read_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("read by pydantic")

    monkeypatch.setattr("heapwright._recipes.model._read_by_pydantic", refuse)
    for name in catalogue.names():
        if "memory = " not in catalogue.text(name):
            Recipe.parse(catalogue.text(name))


def test_tables_tell_their_keys_as_models_of_pydantic_do() -> None:
    for recipe in catalogue.recipes():
        data = {key: value for key, value in recipe.to_dict().items() if key != "memory"}
        model = by_pydantic(Recipe).model_validate(data)
        ours = Recipe.model_validate(data)
        assert ours.model_dump(mode="json") == model.model_dump(mode="json")
        assert ours.model_dump() == model.model_dump()
        for pool, by in zip(ours.pools, getattr(model, "pools"), strict=True):  # noqa: B009
            assert repr(pool) == repr(by)


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
    with pytest.raises(ValidationError, match="frozen"):
        setattr(pool, "header", 8)  # noqa: B010
    with pytest.raises(ValidationError, match="frozen"):
        delattr(pool, "header")


def test_keys_are_taken_once_and_by_both_their_names() -> None:
    assert Recipe.model_validate({"pool": [{"kind": "general"}]}) == Recipe(pools=(General(),))
    refused: tuple[Any, ...] = ({"pool": [], "pools": []}, {"pool": [{"kind": "general"}], "nothing": 1}, {}, [], None)
    for wrong in refused:
        with pytest.raises(ValidationError):
            Recipe.model_validate(wrong)
    with pytest.raises(ValidationError, match="sizes"):
        Fixed()  # type: ignore[call-arg]
    assert Quick(flush="never", up_to=8).flush == "before-refusing"  # type: ignore[arg-type]
