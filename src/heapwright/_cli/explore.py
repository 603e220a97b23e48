"""`heapwright explore`: the search of a design space."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import (
    OBJECTIVES,
    Duration,
    align_option,
    objectives_option,
    read_traces,
    seed_option,
    traces_argument,
)
from heapwright._cli.output import command_line, json_option, note, note_partial, print_json, print_sentences
from heapwright._cli.pipes import called
from heapwright._cli.progress import exploration_progress


class LongRunSetting(click.ParamType[int]):
    """Calls of a long run: 1,000 or more, or 0 for none."""

    name = "calls"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the number."""
        calls = click.IntRange(min=0).convert(value, param, ctx)
        if 0 < calls < 1000:
            self.fail(f"{calls}: valid: 1000 calls or more, or 0 for no long run", param, ctx)
        return calls


@click.command(epilog=OBJECTIVES)
@traces_argument
@click.option("--space", "space_path", metavar="SPACE.toml", type=click.Path(path_type=Path), help="The design space.")
@align_option
@objectives_option("footprint_bytes,accesses")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Threads; default one per processor.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Replay on the workers of this Dask scheduler; local starts one here, with a process per job.",
)
@click.option(
    "--held-out",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Replay candidates on this trace, too, without ranking by it. Repeat the flag for more.",
)
@click.option(
    "--copies",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Replay candidates on N perturbed copies of each trace, too.",
)
@click.option(
    "--long-run",
    type=LongRunSetting(),
    default=500_000,
    show_default=True,
    metavar="CALLS",
    help="Rank by the memory needed in the long run: candidates are replayed on this many more calls like the trace's "
    "(heapwright trace resample), and stress-tested. 0: rank by the traces alone.",
)
@click.option(
    "--current",
    metavar="NAME",
    help="Your current allocator, as freertos-heap4: it is shown in every table.",
)
@click.option(
    "--same-device/--no-same-device",
    default=None,
    help="The traces are loads of one device: the largest memory counts, accesses are summed. Default for one program "
    "traces. Otherwise the worst ratio to each trace's best counts.",
)
@click.option(
    "--strategy",
    type=click.Choice(["exhaustive", "random", "search"]),
    help="Evaluate recipes in order, at random with --seed, or by a search: the default above 100,000 combinations.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Evaluate at most N recipes, and the zoo.")
@seed_option
@click.option(
    "--warm",
    metavar="STUDY",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Start a search near the Pareto front of this study, too. Repeat the flag for more.",
)
@click.option("--complete", is_flag=True, help="Prune nothing: finish every recipe, however long it takes.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Prune recipes that a Pareto front within this share of the best does not need; 0: the exact front.",
)
@click.option(
    "--budget",
    type=Duration(),
    metavar="TIME",
    help="Find the best front within this time, as 90s, 5m or 1h; the same command then continues.",
)
@click.option("-o", "--output", metavar="STUDY", required=True, type=click.Path(path_type=Path), help="The study file.")
@json_option
def command(
    traces: tuple[Path, ...],
    space_path: Path | None,
    align: int | None,
    held_out: tuple[Path, ...],
    warm: tuple[Path, ...],
    output: Path,
    long_run: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Explore a design space: replay its recipes on traces and keep the results as a study, a database file.

    Without --space the space is built from the traces. Every space includes the zoo unless it says otherwise. The same
    command continues an exploration that was interrupted.

    If all recipes would take more than about a minute, recipes are pruned that cannot come on a Pareto front within
    1 % of the best.

    All recipes have one alignment: 8 is malloc's on 32-bit ABIs, 16 on 64-bit hosts. Zoo heaps with another alignment
    of their own are also shown at that one, unranked.
    """
    from heapwright import _api as api
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.by_load import picks_by_load

    settings = {key: value for key, value in options.items() if value is not None}
    settings["stress_test"] = long_run > 0
    if long_run:
        settings["future"] = long_run
    requested = api.Options(command=command_line(), **settings)
    recordings = read_traces(traces)
    space = api.space_for(recordings, space_path, align)
    for trace in recordings:
        for text in trace.notes:
            note(f"{text}; explored at {space.align}")
    apart = read_traces(held_out)
    with exploration_progress() as report:
        done = api.explore_with(requested, recordings, space, output, held_out=apart, warm=warm, progress=report)
    for text in space.notes:
        note(f"space: {text}")
    for text in done.short:
        note(f"{done.study}: {text}")
    with Analysis.open(done.study) as study:
        note_partial(study)
        by_load, question = picks_by_load(study, recordings), study.question
        if not as_json:
            from heapwright._cli.front import print_front
            from heapwright._cli.tables import print_by_load

            decision = print_front(study, study.objectives)
            print_by_load(by_load)
            click.echo(f"{done.evaluations:,} replays in {done.seconds:,.1f} s")
            if decision:
                print_sentences([decision.evidence()])
            return
    loads = {"by_load": list(map(dataclasses.asdict, by_load))} if by_load else {}
    head = {"study": called(done.study), "question": question, "seconds": round(done.seconds, 3)}
    print_json({**dataclasses.asdict(done), **head, **loads})
