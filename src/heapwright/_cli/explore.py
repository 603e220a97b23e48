"""`heapwright explore`: the search of a design space."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import (
    OBJECTIVES,
    ByteList,
    Duration,
    align_option,
    explored_for_option,
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


class ToleranceSetting(click.ParamType[float]):
    """A share from 0 to 1, or `none`, which is -1: nothing is pruned."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        return -1.0 if value == "none" else click.FloatRange(0, 1).convert(value, param, ctx)


@click.command(epilog=OBJECTIVES)
@traces_argument
@click.option("--space", "space_path", metavar="SPACE.toml", type=click.Path(path_type=Path), help="The design space.")
@align_option
@explored_for_option
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
    metavar="HEAP",
    help="Your current allocator, as freertos-heap4, or its system, as nuttx, which is shown in every table; or a C "
    "file or an adapter, on which the traces are fitted.",
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
    "--tolerance",
    type=ToleranceSetting(),
    metavar="SHARE",
    help="Prune recipes that a Pareto front within this share of the best does not need; 0: the exact front; none: "
    "finish every recipe, however long it takes.",
)
@click.option(
    "--budget",
    type=Duration(),
    metavar="TIME",
    help="Find the best front within this time, as 90s, 5m or 1h; the same command then continues.",
)
@click.option(
    "--regions",
    type=ByteList(),
    metavar="BYTES,...",
    help="Choose a heap for 2 to 4 memory regions of these sizes, too, and write its recipe next to the study.",
)
@click.option("-o", "--output", metavar="STUDY", required=True, type=click.Path(path_type=Path), help="The study file.")
@json_option
def command(
    traces: tuple[Path, ...],
    space_path: Path | None,
    align: int | None,
    platform: str | None,
    held_out: tuple[Path, ...],
    output: Path,
    long_run: int,
    tolerance: float | None,
    regions: tuple[int, ...] | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Explore a design space: replay its recipes on traces and keep the results as a study, a database file.

    Without --space the space is built from the traces. Every space includes the zoo unless it says otherwise. The same
    command continues an exploration that was interrupted.

    If all recipes would take more than about a minute, recipes are pruned that cannot come on a Pareto front within
    1 % of the best.

    With --regions the recommendations, the front and well-known heaps are placed in regions of memory, in every order.
    The first that serves the recordings, and the future of --long-run, is printed with what each region holds. Its
    recipe is written next to the study, as app.regions.toml, for generate.

    All recipes have one alignment: 8 is malloc's on 32-bit ABIs, 16 on 64-bit hosts. Zoo heaps with another alignment
    of their own are also shown at that one, unranked.
    """
    from heapwright import _api as api
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.by_load import picks_by_load

    settings = _settings(options, tolerance, long_run)
    from heapwright._cli.current import measure_current, own_heap, print_current

    own = own_heap(settings)
    requested = api.Options(command=command_line(), **settings)
    recordings = read_traces(traces)
    if regions is not None:
        from heapwright._cli.regions import pick_data, place_pick, print_pick

        api.require_regions(regions)
    space = api.space_for(recordings, space_path, align, platform)
    for trace in recordings:
        for text in trace.notes:
            note(f"{text}; explored at {space.align}")
    apart = read_traces(held_out)
    needs = {} if own is None else measure_current(own, recordings)
    with exploration_progress() as report:
        done = api.explore_with(requested, recordings, space, output, held_out=apart, progress=report)
    for text in space.notes:
        note(f"space: {text}")
    for text in done.short:
        note(f"{done.study}: {text}")
    with Analysis.open(done.study) as study:
        note_partial(study)
        by_load, question = picks_by_load(study, recordings), study.question
        facts = {"leaks": study.meta.get("leaks", {}), "failures": study.failures}
        pick = None if regions is None else place_pick(study, recordings, regions, (long_run, options["seed"]))
        if not as_json:
            from heapwright._cli.front import print_front
            from heapwright._cli.tables import print_by_load

            decision = print_front(study, study.objectives)
            print_by_load(by_load)
            click.echo(f"{done.evaluations:,} replays in {done.seconds:,.1f} s")
            if decision:
                print_sentences([decision.evidence()])
            if own is not None:
                print_current(own, needs, decision)
            if pick is not None:
                print_pick(pick)
            return
    loads = {"by_load": list(map(dataclasses.asdict, by_load))} if by_load else {}
    head = {"study": called(done.study), "question": question, "seconds": round(done.seconds, 3)}
    facts |= {} if own is None else {"current": {"heap": own, "smallest_arena_bytes": needs}}
    placed = {} if pick is None else {"regions": pick_data(pick)}
    print_json({**dataclasses.asdict(done), **head, **facts, **loads, **placed})


def _settings(options: dict[str, Any], tolerance: float | None, long_run: int) -> dict[str, Any]:
    """The arguments of `api.Options`. Raises click.UsageError for those that exclude each other."""
    settings = {key: value for key, value in options.items() if value is not None}
    if tolerance is not None:
        if tolerance < 0 and (options["budget"] or options["limit"]):
            other = "--budget" if options["budget"] else "--limit"
            raise click.UsageError(f"--tolerance none finishes every recipe, which excludes {other}; give one of them")
        settings |= {"complete": True} if tolerance < 0 else {"tolerance": tolerance}
    settings["stress_test"] = long_run > 0
    if long_run:
        settings["future"] = long_run
    return settings
