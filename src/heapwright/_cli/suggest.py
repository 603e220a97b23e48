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
        for told in trace.notes:
            note(told)
    found = api.suggest(read, output, align=align, jobs=jobs)
    if as_toml:
        click.echo(found.pick.recipe.to_toml(), nl=False)
        return
    if as_json:
        print_json(
            {
                "id": found.pick.id,
                "recipe": found.pick.recipe.to_dict(),
                "metrics": found.pick.metrics,
                "reserve_bytes": found.decision.reserve_bytes,
                "recipes": found.recipes,
                "seconds": round(found.seconds, 3),
                "sentences": found.sentences(),
                "kept_out": dataclasses.asdict(found.kept_out),
                "study": None if found.study is None else called(found.study),
            }
        )
        return
    from heapwright._cli.tables import print_side_by_side

    print_sentences(found.decision.sentences())
    click.echo()
    print_side_by_side(found.decision)
    print_sentences([found.kept_out.sentence()])
    click.echo(f"{found.recipes:,} recipes in {found.seconds:,.1f} s; heapwright explore tries thousands")
