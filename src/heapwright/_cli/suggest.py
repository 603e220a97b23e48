"""`heapwright suggest`: a recommendation in seconds, from the portfolio."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from heapwright._cli.options import align_option, explored_for_option, read_traces, traces_argument
from heapwright._cli.output import json_option, note, print_json, print_sentences
from heapwright._cli.pipes import called


@click.command()
@traces_argument
@align_option
@explored_for_option
@click.option("-o", "--output", metavar="STUDY", type=click.Path(path_type=Path), help="Keep the study in this file.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the recipe alone, a file for any command.")
@json_option
def command(
    traces: tuple[Path, ...],
    align: int | None,
    platform: str | None,
    output: Path | None,
    as_toml: bool,
    as_json: bool,
) -> None:
    """Recommend a heap in seconds, from a portfolio of other programs' recipes.

    Some 200 recipes of other traces' Pareto fronts are adapted to the sizes of these traces and replayed with the zoo.
    The recommendation is replayed on perturbed traces and stress-tested, for a shorter time than by explore. The last
    line says how far such recommendations were from those of a complete exploration.
    """
    if as_toml and as_json:
        raise click.UsageError("--toml prints the recipe alone, and not with --json")
    from heapwright import _api as api

    recordings = read_traces(traces)
    for trace in recordings:
        for text in trace.notes:
            note(text)
    result = api.suggest(recordings, output, align=align, platform=platform)
    if result.caveat is not None:
        note(result.caveat)
    if as_toml:
        click.echo(result.pick.recipe.to_toml(), nl=False)
        return
    if as_json:
        print_json(
            {
                "id": result.pick.id,
                "recipe": result.pick.recipe.to_dict(),
                "metrics": result.pick.metrics,
                "reserve_bytes": result.decision.reserve_bytes,
                "recipes": result.recipes,
                "seconds": round(result.seconds, 3),
                "sentences": result.sentences(),
                "kept_out": dataclasses.asdict(result.kept_out),
                "study": None if result.study is None else called(result.study),
            }
        )
        return
    from heapwright._cli.tables import print_side_by_side

    print_sentences(result.decision.sentences())
    click.echo()
    print_side_by_side(result.decision)
    print_sentences([result.kept_out.sentence()])
    click.echo(f"{result.recipes:,} recipes in {result.seconds:,.1f} s; heapwright explore tries thousands")
