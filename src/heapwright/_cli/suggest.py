"""`heapwright suggest`: what to ship by what other programs' traces taught, in seconds."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from heapwright._cli.options import align_option, read_traces, repair_option, traces_argument
from heapwright._cli.output import json_option, note, print_json, print_sentences
from heapwright._cli.pipes import called


@click.command()
@traces_argument
@align_option
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Threads; default one for every processor.")
@repair_option
@click.option("-o", "--output", metavar="STUDY", type=click.Path(path_type=Path), help="Keep the study in this file.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the recipe alone, a file for any command.")
@json_option
def command(
    traces: tuple[Path, ...],
    align: int | None,
    jobs: int | None,
    repair: bool,
    output: Path | None,
    as_toml: bool,
    as_json: bool,
) -> None:
    """Say what to ship by what other programs' traces taught, in seconds.

    Some 200 recipes of other traces' fronts are made anew from the sizes of these, and tried with the zoo. The pick is
    tried on copies and, shorter than by explore, whether it lasts. The last line says how far such answers were from a
    complete exploration.
    """
    if as_toml and as_json:
        raise click.UsageError("--toml prints the recipe alone, and not with --json")
    from heapwright import _api as api

    read = read_traces(traces, repair)
    for trace in read:
        for info in trace.notes:
            note(info)
    result = api.suggest(read, output, align=align, jobs=jobs)
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
