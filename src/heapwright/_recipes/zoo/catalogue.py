"""The zoo: allocators with a name and a source, each a TOML recipe in this folder."""

from __future__ import annotations

from functools import cache

from heapwright._recipes.recipe import Recipe
from heapwright._support.resources import toml_files, toml_text
from heapwright._support.toml import parse_toml

RECOMMENDED = "all-round"
"""The allocator for a program without a trace."""


def names() -> list[str]:
    """Return the names of all recipes, in alphabetical order."""
    return list(toml_files(__package__))


def text(name: str) -> str:
    """Return the TOML file of a recipe, with its prose and comments. Raises HeapwrightError for an unknown name."""
    return toml_text(__package__, name, "the zoo has no such allocator", "valid", "a RECIPE.toml or STUDY:ID")


@cache
def load(name: str) -> Recipe:
    """Return the recipe of that name. Raises HeapwrightError for an unknown name."""
    return Recipe.trusted(parse_toml(text(name)))


def recipes() -> list[Recipe]:
    """Return all recipes, in alphabetical order of their names."""
    return [load(name) for name in names()]


def staying() -> list[Recipe]:
    """Return the recipes of heaps whose objects stay where they are: those that can stand for malloc."""
    return [recipe for recipe in recipes() if not recipe.pools[0].moves_objects]
