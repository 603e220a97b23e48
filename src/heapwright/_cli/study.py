"""`heapwright study`: operations on studies, the results of explorations."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright._cli.group import Group
from heapwright._cli.options import moved_option, read_traces
from heapwright._cli.output import command_line, json_option, note_partial, print_json, print_sentences
from heapwright._cli.pipes import called, from_stdin
from heapwright._cli.progress import exploration_progress
from heapwright._support.errors import HeapwrightError
from heapwright._support.names import printable

if TYPE_CHECKING:
    from heapwright._studies.analysis import Analysis

_study_argument = click.argument("path", metavar="STUDY", type=click.Path(path_type=Path))


_ROLES: tuple[Literal["explored", "copy", "held out"], ...] = ("explored", "copy", "held out")


@click.group(cls=Group)
def command() -> None:
    """Merge, extend, compare, query, export or reproduce studies."""


@command.command()
@click.argument("paths", metavar="STUDY...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", metavar="STUDY", required=True, type=click.Path(path_type=Path), help="The study to write."
)
@json_option
def merge(paths: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write one study that holds all results of several.

    Of the same traces, or of the same space: results that contradict each other are refused.
    """
    from heapwright import _api as api

    _tell(api.merge_studies(paths, output), as_json)


@command.command()
@_study_argument
@click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=from_stdin
)
@moved_option
@json_option
def extend(path: Path, traces: tuple[Path, ...], moved: tuple[Path, ...], as_json: bool) -> None:
    """Replay the recipes of STUDY on more traces, and rank by all of them."""
    from heapwright import _api as api

    read = read_traces(traces)
    with exploration_progress() as report:
        study = api.extend_study(path, read, moved=moved, command=command_line(), progress=report)
    _tell(study, as_json)


def _tell(study: Analysis, as_json: bool) -> None:
    note_partial(study)
    names, front = [info.name for info in study.traces()], [item.id for item in study.front()]
    if as_json:
        report = {"study": called(study.path), "recipes": study.ranked, "complete": study.complete}
        report["question"] = study.question
        print_json({**report, "traces": names, "front": front})
        return
    what = f"{study.tried} recipes on {', '.join(names)}, {len(front)} on the front"
    print_sentences([f"{study.path}: {what}{f'; {study.question}' if study.question else ''}"])


@command.command()
@_study_argument
@json_option
def info(path: Path, as_json: bool) -> None:
    """Print the traces and the space of STUDY, and the command of each exploration.

    With --json also the text of its space.
    """
    from heapwright._studies.analysis import Analysis

    with Analysis.open(path) as study:
        if as_json:
            _print_info_json(study, path)
        else:
            _print_info(study, path)


def _print_info_json(study: Analysis, path: Path) -> None:
    roles = {role: [dataclasses.asdict(item) for item in study.traces(role)] for role in _ROLES}
    report = {"study": called(path), **study.meta, "tried": study.ranked, "complete": study.complete}
    print_json({**report, "traces": roles, "runs": [dataclasses.asdict(item) for item in study.runs()]})


def _print_info(study: Analysis, path: Path) -> None:
    meta, runs = study.meta, study.runs()
    print_sentences([f"{path}: {study.tried} recipes of alignment {study.align}, by heapwright {meta['heapwright']}"])
    for role in _ROLES:
        for trace in study.traces(role):
            seed = "" if trace.seed is None else f", seed {trace.seed}"
            print_sentences([f"  {role}: {trace.name}, {trace.events:,} calls, {trace.digest[:12]}{seed}"])
    print_sentences([f"  objectives: {', '.join(study.objectives)}", f"  space: {meta['space'][:12]}"])
    for run in runs:
        print_sentences([f"{run.begun}: {run.command or 'from Python'}"])
        built = f"heapwright {run.heapwright}, engine {run.engine[:12]}"
        options = f", {run.options}" if run.options else ""
        print_sentences(
            [
                f"  {built}{f', commit {run.commit[:12]}' if run.commit else ''}",
                f"  strategy {run.strategy}, seed {run.seed}{options}",
            ]
        )
    if not runs:
        print_sentences(["How it was made is unknown: an older version made it."])


@command.command()
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@moved_option
@json_option
def diff(old: Path, new: Path, moved: tuple[Path, ...], as_json: bool) -> None:
    """Compare two studies: picks, recommended arena, figures, Pareto front, and allocation sites at the peak.

    A change of the arena that another recording of the same build would cause, too, is reported as noise.
    """
    from heapwright import _api as api
    from heapwright._cli.tables import print_heaps

    changes = api.compare_studies(old, new, moved=moved)
    if as_json:
        print_json(changes.as_json())
        return
    names = [f"{heap.role}\n{heap.candidate.label}" for heap in changes.table.heaps]
    print_heaps("Balanced picks", names, changes.table)
    print_sentences(changes.sentences())


@command.command()
@_study_argument
@click.argument("query", metavar="QUERY")
@json_option
def sql(path: Path, query: str, as_json: bool) -> None:
    """Answer an SQL query over the tables of STUDY and its view `replays`: docs/metrics.md names their columns.

    The answer is CSV, or with --json an array of rows.
    """
    import csv
    import sys

    from heapwright import _api as api

    columns, rows = api.open_study(path).sql(query)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *rows])


@command.command()
@_study_argument
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="A name in .parquet or .csv."
)
@json_option
def export(path: Path, output: Path, as_json: bool) -> None:
    """Write all results of STUDY as one table, Parquet or CSV: a row per recipe and trace."""
    from heapwright import _api as api

    rows = api.open_study(path).export(output)
    if as_json:
        print_json({"path": called(output), "rows": rows})
        return
    click.echo(called(printable(f"{output}: {rows:,} rows")))


@command.command()
@click.argument("heap", metavar="STUDY:ID")
@moved_option
@json_option
def again(heap: str, moved: tuple[Path, ...], as_json: bool) -> None:
    """Recompute the metrics of a recipe of a study from its traces, and compare them with the stored ones."""
    from heapwright import _api as api

    path, colon, id = heap.rpartition(":")
    if not colon:
        raise click.UsageError(f"{heap}: give a recipe of a study, as STUDY:ID")
    results = list(api.open_study(path).again(id, (), moved))
    if as_json:
        print_json([dataclasses.asdict(item) for item in results])
    else:
        from heapwright._cli.tables import print_metrics

        print_metrics("Recomputed metrics", {item.trace: item.metrics for item in results})
    if differing := {key: item for item in results for key in item.differing}:
        key, item = next(iter(differing.items()))
        raise HeapwrightError(
            f"{path}:{item.id}: {', '.join(differing)} differ; {key} on {item.trace} was {item.stored[key]} "
            f"with heapwright {item.heapwright} and is {item.metrics[key]}"
        )
    if not as_json:
        print_sentences([f"Equal to what the study holds, on {', '.join(item.trace for item in results)}."])
