"""`heapwright zoo`: the reference allocators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from heapwright._cli.completion import heaps
from heapwright._cli.output import json_option, print_json

if TYPE_CHECKING:
    from heapwright._api import Recipe


@click.command()
@click.argument("name", required=False, shell_complete=heaps)
@click.option(
    "--from-profile",
    metavar="TRACE",
    type=click.Path(path_type=Path),
    help="Derive sizes and counts of wifi-special-pools from a trace or packet table, for generate --behind malloc.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --from-profile: packets that wait at once, default 1000; of a trace the most blocks of a class.",
)
@click.option("--schema", type=click.Choice(("recipe", "space")), help="Print the JSON Schema of such a file instead.")
@json_option
def command(
    name: str | None,
    from_profile: Path | None,
    limit: int | None,
    schema: Literal["recipe", "space"] | None,
    as_json: bool,
) -> None:
    """List the reference allocators, or print the recipe of one: TOML with its source and its assumptions.

    STUDY:ID prints that of a study.

    The output is a recipe file: redirect it, change it, and give it to any command that takes a heap.
    """
    from heapwright import _api as api

    if schema is not None:
        print_json(api.schema(schema))
        return
    if from_profile is not None:
        _print_derived(name, from_profile, limit, as_json)
        return
    of_study = name is not None and ":" in name
    recipes = [api.recipe_of(name) if of_study else api.zoo(name)] if name else api.zoo()
    if as_json:
        print_json([_data(recipe) for recipe in recipes])
    elif of_study:
        click.echo(recipes[0].to_toml(), nl=False)
    elif name:
        click.echo(f"# Verified as it stands here: {api.facts(recipes[0]).verification}")
        click.echo(api.zoo_text(name), nl=False)
    else:
        _show(recipes)


def _print_derived(name: str | None, source: Path, limit: int | None, as_json: bool) -> None:
    from heapwright import _api as api

    if name != api.SPECIAL_POOLS:
        raise click.UsageError(f"--from-profile derives the sizes of {api.SPECIAL_POOLS}; give that name")
    recipe = api.counted_special_pools(source, limit)
    if as_json:
        print_json([_data(recipe)])
    else:
        click.echo(recipe.to_toml(), nl=False)


def _data(recipe: Recipe) -> dict[str, Any]:
    """Every key of the recipe, its hash and its summary, and what its keys say about cost."""
    from heapwright._api import facts, worst_steps

    steps = worst_steps(recipe)
    cost = {**facts(recipe)._asdict(), "worst_steps": steps.most, "unbounded": steps.reason or None}
    return {**recipe.model_dump(mode="json"), "hash": recipe.hash, "summary": recipe.summary(), **cost}


def _show(recipes: list[Recipe]) -> None:
    from heapwright._api import RECOMMENDED, facts, worst_steps
    from heapwright._cli.tables import growth, print_table

    headings = ("name", "year", "overhead", "smallest", "align", "bounded", "bound", "code", "growth")
    rows = []
    for recipe in recipes:
        cost = facts(recipe)
        overhead = "/".join(map(str, cost.overhead_bytes))
        rows.append(
            (
                recipe.name,
                str(recipe.year or "-"),
                overhead,
                str(cost.smallest_block_bytes),
                str(recipe.align),
                "yes" if cost.bounded else "no",
                worst_steps(recipe).short(),
                "-" if cost.code_bytes is None else f"{cost.code_bytes:,}",
                growth(cost.growth_ratio, cost.stable),
                cost.verified or "-",
                recipe.source,
            )
        )
    print_table("", (*headings, "verified", "source"), [rows], left=("name", "verified", "source"))
    click.echo("Bound: worst-case metadata accesses of a malloc or free; --json has the reason\nif there is none.")
    click.echo(
        "Growth: at constant live memory, from 100,000 to 10,000,000 calls (1,000,000\n"
        "without a worst-case bound); !: unbounded growth."
    )
    click.echo(
        "Verified: all addresses are those of the original (address), or all minimum\n"
        "arenas are (footprint); made from a text; our own."
    )
    click.echo(f"\nFor a program without a trace: {RECOMMENDED}")
