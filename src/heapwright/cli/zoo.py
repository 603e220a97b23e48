"""`heapwright zoo`: list the named allocators, or print one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heapwright.cli.output import json_option, print_json

if TYPE_CHECKING:
    from heapwright.recipes import Recipe


@click.command()
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the named allocators, or print the recipe of one: TOML with its source and the choices it made.

    The output is a recipe file: redirect it, change it, and give it to any command that takes a heap.
    """
    from heapwright import zoo

    recipes = [zoo.load(name)] if name else zoo.recipes()
    if as_json:
        print_json([_data(recipe) for recipe in recipes])
    elif name:
        click.echo(zoo.text(name), nl=False)
    else:
        _show(recipes)


def _data(recipe: Recipe) -> dict[str, Any]:
    """Every key of the recipe, its hash and its summary."""
    return {**recipe.model_dump(mode="json"), "hash": recipe.hash, "summary": recipe.summary()}


def _show(recipes: list[Recipe]) -> None:
    from heapwright.cli.tables import print_table

    headings = ("name", "pools", "source")
    rows = [(recipe.name, recipe.summary(), recipe.source) for recipe in recipes]
    print_table("", headings, [rows], left=headings)
