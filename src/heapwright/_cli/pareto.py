"""`heapwright pareto`: the Pareto-optimal recipes of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright._cli.completion import conditions
from heapwright._cli.options import OBJECTIVES, against_option, objectives_option
from heapwright._cli.output import json_option, note, note_partial, print_json, print_sentences
from heapwright._support.names import printable

if TYPE_CHECKING:
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.results import Candidate


@click.command(epilog=OBJECTIVES)
@click.argument("study_path", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--pick",
    type=click.Choice(["balanced", "smallest", "fastest"]),
    help="Print one robust recipe: the best compromise, the least memory, or the fewest metadata accesses.",
)
@click.option(
    "--where",
    metavar="'KEY <= VALUE'",
    shell_complete=conditions,
    multiple=True,
    help="Only recipes that meet a condition, as 'reserve_bytes <= 131072'. Repeat the flag for more.",
)
@objectives_option("those of the exploration")
@against_option
@click.option("--all", "everything", is_flag=True, help="Show the whole Pareto front and the whole zoo.")
@click.option("--toml", "as_toml", is_flag=True, help="With --pick: print the recipe alone, as a file for any command.")
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
    """Print a study's recommendation, and its Pareto-optimal recipes compared with common allocators.

    --objectives ranks the study by other metrics. With --pick the recipe is printed as TOML after its metrics.
    """
    if as_toml and (pick is None or as_json):
        raise click.UsageError("--toml prints one recipe; give --pick, and not --json")
    from heapwright._replay.metrics import parse_objectives
    from heapwright._studies.analysis import Analysis

    with Analysis.open(study_path) as study:
        keys = parse_objectives(objectives) if objectives is not None else study.objectives
        if pick:
            _print_pick(study, study.pick(pick, keys, where), keys, as_toml, as_json)
            return
        front = study.front(keys, where)
        if (where or objectives) and not front:
            study.pick("balanced", keys, where)  # raises the error that names the condition
        note_partial(study)
        if as_json:
            print_json(study.describe(front))
            return
        from heapwright._cli.front import print_front

        decision = print_front(study, keys, where, against=against, everything=everything)
        if decision:
            print_sentences([decision.evidence()])


def _print_pick(study: Analysis, pick: Candidate, keys: Sequence[str], as_toml: bool, as_json: bool) -> None:
    """Print one recipe of a study; a note warns if it is not robust."""
    note_partial(study)
    if why := study.robustness(keys).why_not(pick.id):
        note(f"{printable(pick.label)} is not robust, and no recipe is better: it {why}")
    if as_json:
        print_json(study.describe([pick]))
        return
    recipe = study.recipe(pick.id).to_toml()
    if not as_toml:
        from heapwright._cli.tables import print_metrics

        question = f": {study.question}" if study.question else ""
        print_metrics(f"Metrics over all traces{question}", {pick.label: pick.metrics})
        click.echo(f"# {printable(str(study.path))}:{pick.id}\n# again: {printable(study.command(pick.id))}")
    click.echo(recipe, nl=False)
