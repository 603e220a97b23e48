"""`heapwright explore`: try every recipe of a space on traces and keep the results as a study."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import (
    OBJECTIVES,
    Duration,
    align_option,
    energy_option,
    objectives_option,
    read_traces,
    repair_option,
    seed_option,
    traces_argument,
)
from heapwright._cli.output import command_line, json_option, note, note_partial, print_json, print_sentences
from heapwright._cli.pipes import called
from heapwright._cli.progress import showing


@click.command(epilog=OBJECTIVES)
@traces_argument
@click.option(
    "--space", "space_path", metavar="SPACE.toml", type=click.Path(path_type=Path), help="The recipes to try."
)
@align_option
@objectives_option("footprint_bytes,accesses")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Threads; default one for every processor.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Replay on the workers of this Dask scheduler; local starts one here, with a process for every job.",
)
@click.option(
    "--held-out",
    metavar="TRACE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Try candidates on this trace too, without ranking by it. Repeat the flag for more.",
)
@click.option(
    "--copies",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Try candidates on N perturbed copies of each trace, too.",
)
@click.option(
    "--endurance/--no-endurance",
    default=True,
    show_default=True,
    help="Rank by the need in the long run: candidates are replayed on a future of each trace, and stress-tested.",
)
@click.option(
    "--future",
    type=click.IntRange(min=1000),
    default=500_000,
    show_default=True,
    metavar="CALLS",
    help="Length of the future: traffic like the trace's (heapwright trace resample).",
)
@click.option(
    "--current",
    metavar="NAME",
    help="The reference allocator that you use today, as freertos-heap4: it stands in every table.",
)
@click.option(
    "--same-device/--no-same-device",
    default=None,
    help="The traces are loads of one device: memory is the largest, accesses are summed. The default where they come "
    "from one program; else the worst ratio over each trace's best counts.",
)
@click.option(
    "--strategy",
    type=click.Choice(["exhaustive", "random", "search"]),
    help="Take the space's recipes in order, draw them with --seed, or search: the default of a space of more than "
    "100,000 combinations.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Try at most so many recipes beside the zoo.")
@seed_option
@click.option(
    "--warm",
    metavar="STUDY",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Begin a search near the front of this study, too. Repeat the flag for more.",
)
@click.option("--complete", is_flag=True, help="Finish every recipe, however long it takes.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Give recipes up that a front within this share of the best does not need; 0 for the exact front.",
)
@click.option(
    "--budget", type=Duration(), metavar="TIME", help="The best front that can be had in 90s, 5m or 1h; then go on."
)
@energy_option
@repair_option
@click.option("-o", "--output", metavar="STUDY", required=True, type=click.Path(path_type=Path), help="The study file.")
@json_option
def command(
    traces: tuple[Path, ...],
    space_path: Path | None,
    align: int | None,
    held_out: tuple[Path, ...],
    warm: tuple[Path, ...],
    energy_table: Path | None,
    repair: bool,
    output: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Try every recipe of a space on traces and keep the results as a study.

    Without --space the space is built from the traces. The zoo belongs to every space that does not leave it out. An
    exploration that was interrupted goes on where it stopped when the same command is given again.

    Every recipe is finished where that takes about a minute. Where it would take longer, those are given up that
    cannot come on a front which needs at most 1 % more than the best.

    All recipes have one alignment: 8 is what 32-bit ABIs want of malloc, 16 what 64-bit hosts want. Zoo heaps that have
    another of their own are also shown at that one, unranked.
    """
    from heapwright import _api as api
    from heapwright._replay.energy import EnergyTable
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.by_load import picks_by_load

    energies = EnergyTable.read(energy_table) if energy_table else None
    given = {key: value for key, value in options.items() if value is not None}
    requested = api.Options(energy_table=energies, command=command_line(), **given)
    read = read_traces(traces, repair)
    space = api.space_for(read, space_path, align)
    for trace in read:
        for info in trace.notes:
            note(f"{info}; explored at {space.align}")
    apart = read_traces(held_out, repair)
    with showing() as show:
        done = api.explore_with(requested, read, space, output, held_out=apart, warm=warm, progress=show)
    for info in space.notes:
        note(f"space: {info}")
    for info in done.short:
        note(f"{done.study}: {info}")
    with Analysis.open(done.study) as study:
        note_partial(study)
        by_load, question = picks_by_load(study, read), study.question
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
    said = {"study": called(done.study), "question": question, "seconds": round(done.seconds, 3)}
    print_json({**dataclasses.asdict(done), **said, **loads})
