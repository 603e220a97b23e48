"""The JSON Schemas for editors take every file that ships, and refuse what the tool refuses of a single key."""

from __future__ import annotations

import json
import sys

import jsonschema  # type: ignore[import-untyped]
import pytest
from case_tables import each
from click.testing import CliRunner

import heapwright
from heapwright._cli import heapwright as command_line
from heapwright._explore.default_space import FREELISTS
from heapwright._recipes.pools import KINDS
from heapwright._recipes.zoo import catalogue as zoo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECIPE = jsonschema.Draft202012Validator(heapwright.schema())
SPACE = jsonschema.Draft202012Validator(heapwright.schema("space"))
POOL = '[[pool]]\nkind = "general"\n'


def takes(schema: jsonschema.Draft202012Validator, text: str) -> bool:
    return bool(schema.is_valid(tomllib.loads(text)))


def test_both_are_schemas() -> None:
    for item in (RECIPE, SPACE):
        jsonschema.Draft202012Validator.check_schema(item.schema)


@each("name", zoo.names())
def test_every_recipe_of_the_zoo_conforms(name: str) -> None:
    assert takes(RECIPE, zoo.text(name))


@pytest.mark.parametrize("wrong", ['fit = "frist"', "aling = 8", "header = -1", 'split = "50 %"', 'fit = ["first"]'])
def test_a_recipe_with_a_wrong_key_does_not(wrong: str) -> None:
    assert takes(RECIPE, POOL)
    assert not takes(RECIPE, POOL + wrong)


def test_a_pool_needs_a_kind() -> None:
    assert not takes(RECIPE, '[[pool]]\nfit = "first"\n')
    assert not takes(SPACE, '[[pool]]\nfit = "first"\n')


def test_a_space_has_lists_of_values_and_shares_of_the_requests() -> None:
    axes = (
        'align = 8\ninclude_zoo = false\nchecks = ["none", "full"]\n[[pool]]\nkind = "quick"\nmost_frequent = [0, 4]\n'
    )
    assert takes(SPACE, axes + POOL + 'fit = ["first", "best"]\nsplit = ["always", 64, "50 %"]\n')
    assert takes(SPACE, "default = true\n")


@pytest.mark.parametrize("wrong", ['fit = ["first", "frist"]', 'split = ["500 %"]', "most_frequent = 4"])
def test_a_space_with_a_wrong_value_does_not_conform(wrong: str) -> None:
    assert not takes(SPACE, POOL + wrong)


@pytest.mark.parametrize(("kind", "may"), [("general", True), ("buddy", True), ("quick", False), ("compact", False)])
def test_a_pool_of_a_space_is_for_call_sites_where_it_owns_blocks_that_stay(kind: str, may: bool) -> None:
    pool = f'[[pool]]\nkind = "{kind}"\n'
    assert takes(SPACE, pool) and takes(SPACE, pool + 'site_class = "short"\n') == may
    assert not takes(SPACE, pool + 'site_class = "small"\n')


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_of_a_space_has_every_key_of_its_kind(kind: str) -> None:
    axes = SPACE.schema["$defs"][KINDS[kind].__name__]["properties"]
    assert set(axes) == {*KINDS[kind].model_fields, *KINDS[kind].space_keys} | (axes.keys() & {"site_class"})


def test_lists_for_the_most_frequent_sizes_are_bounded() -> None:
    pool = '[[pool]]\nkind = "quick"\nmost_frequent = [0, '
    assert takes(SPACE, f"{pool}{FREELISTS}]\n") and not takes(SPACE, f"{pool}{FREELISTS + 1}]\n")


def test_the_kind_of_a_pool_is_no_axis_of_a_space() -> None:
    space = jsonschema.Draft202012Validator(heapwright.schema("space"))
    assert takes(space, '[[pool]]\nkind = "general"\n')
    assert not takes(space, '[[pool]]\nkind = ["general"]\n')


@pytest.mark.parametrize(("of", "schema"), [("recipe", RECIPE), ("space", SPACE)])
def test_a_command_prints_them(of: str, schema: jsonschema.Draft202012Validator) -> None:
    done = CliRunner().invoke(command_line, ["zoo", "--schema", of])
    assert json.loads(done.stdout) == schema.schema
