"""`heapwright pareto`: print the Pareto-optimal recipes of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from heapwright._cli.completion import conditions
from heapwright._cli.options import OBJECTIVES, against_option, objectives_option
from heapwright._cli.output import json_option, note, note_partial, print_json, print_sentences
from heapwright._support.names import printable


@click.command(epilog=OBJECTIVES)
@click.argument("study_path", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--pick",
    type=click.Choice(["balanced", "smallest", "fastest"]),
    help="One recipe that is fit to ship: the best compromise, the least memory, or the fewest accesses.",
)
@click.option(
    "--where",
    metavar="'KEY <= VALUE'",
    shell_complete=conditions,
    multiple=True,
    help="Look only at recipes with such a metric, as in 'reserve_bytes <= 131072'. Repeat the flag for more.",
)
@objectives_option("those it was explored for")
@against_option
@click.option("--all", "everything", is_flag=True, help="Show all of the front and of the zoo.")
@click.option("--toml", "as_toml", is_flag=True, help="With --pick: print the recipe alone, a file for any command.")
@json_option
def command(
    study_path: Path,
    pick: Literal["balanced", "smallest", "fastest"] | None,
    where: tuple[str, ...],
    objectives: str | None,
    against: str | None,
    everything: bool,
    as_toml: bool,
    as_json: bool,
) -> None:
    """Print what a study says to ship, and its Pareto-optimal recipes beside what everybody knows.

    --objectives ranks the study anew by any metrics. With --pick the recipe is printed as TOML after its metrics.
    """
    if as_toml and (pick is None or as_json):
        raise click.UsageError("--toml prints one recipe; give --pick, and not --json")
    from heapwright._replay.metrics import parse_objectives
    from heapwright._studies.analysis import Analysis

    with Analysis.open(study_path) as study:
        keys = parse_objectives(objectives) if objectives is not None else study.objectives
        chosen = [study.pick(pick, keys, where)] if pick else study.front(keys, where)
        if (where or objectives) and not chosen:
            study.pick("balanced", keys, where)  # which says what no recipe has
        note_partial(study)
        if pick and (why := study.robustness(keys).why_not(chosen[0].id)):
            note(f"{printable(chosen[0].label)} is not fit to ship, and nothing better is: it {why}")
        if as_json:
            print_json(study.describe(chosen))
        elif as_toml:
            click.echo(study.recipe(chosen[0].id).to_toml(), nl=False)
        elif pick:
            from heapwright._cli.tables import print_metrics

            (item,) = chosen
            print_metrics(
                f"Metrics over all traces{f': {study.question}' if study.question else ''}", {item.label: item.metrics}
            )
            click.echo(f"# {printable(str(study.path))}:{item.id}\n# again: {printable(study.command(item.id))}")
            click.echo(study.recipe(item.id).to_toml(), nl=False)
        else:
            from heapwright._cli.front import print_front

            decision = print_front(study, keys, where, against=against, everything=everything)
            if decision:
                print_sentences([decision.evidence()])
