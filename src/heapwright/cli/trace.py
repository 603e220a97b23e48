"""`heapwright trace`: look at a trace, cut it, make perturbed copies of it, or find the worst that is like it."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright.cli.group import Group
from heapwright.cli.options import read_traces, repair_option, seed_option, trace_output_option
from heapwright.cli.output import json_option, print_json, print_written, written
from heapwright.files.names import printable

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace

WORST_FOR = ("footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")

KINDS = ("sizes+blocks", "load", "sizes", "lifetimes", "streams", "blocks")

_trace_argument = click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))


class _Length(click.ParamType[Any]):
    """A number of calls, or with "s" behind it a number of seconds."""

    name = "length"

    def convert(
        self, value: str | int | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | timedelta:
        """See `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"\d+", value):
            return int(value)
        if not re.fullmatch(r"\d+(\.\d+)?s", value):
            self.fail(f"{value}: give calls, as 5000, or seconds, as 2.5s", param, ctx)
        return timedelta(seconds=float(value[:-1]))


@click.group(cls=Group)
def command() -> None:
    """Look at a trace, cut it, make perturbed copies of it, or find the worst that is like it."""


@command.command()
@click.argument("paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@repair_option
@json_option
def info(paths: tuple[Path, ...], repair: bool, as_json: bool) -> None:
    """Print what is in TRACE: calls, threads, peaks, phases, metadata. `heapwright profile` tells more of one."""
    found = [_facts(trace) for trace in read_traces(paths, repair)]
    if as_json:
        print_json(found)
        return
    for facts in found:
        seconds = "no times" if facts["seconds"] is None else f"{facts['seconds']:,.1f} s"
        labels = "".join(f", {len(facts[key])} {key}" for key in ("phases", "sites") if facts[key])
        head = f"{facts['trace']}: {facts['events']:,} calls, {seconds}, threads: {facts['threads']}{labels}"
        click.echo(printable(head))
        click.echo(f"  peak {facts['requested_peak_bytes']:,} B live, {facts['live_objects_peak']:,} objects")
        for key, value in facts["metadata"].items():
            click.echo(printable(f"  {key}: {value}"))


def _facts(trace: Trace) -> dict[str, Any]:
    return {
        "trace": trace.name,
        "events": len(trace),
        "seconds": trace.seconds,
        "threads": len(set(trace.tid.tolist())),
        "requested_peak_bytes": trace.peak_live_bytes,
        "live_objects_peak": trace.peak_live_objects,
        "phases": [name for name in trace.phases if name],
        "sites": [name for name in trace.sites if name],
        "metadata": trace.metadata,
    }


@command.command()
@_trace_argument
@click.option("--first", type=_Length(), metavar="LENGTH", help="Keep the first LENGTH: calls, as 5000, or 2.5s.")
@click.option("--last", type=_Length(), metavar="LENGTH", help="Keep the last LENGTH.")
@click.option("--leave-live", is_flag=True, help="Leave live what is live at the end, rather than free it there.")
@trace_output_option
@repair_option
@json_option
def cut(
    path: Path,
    first: int | timedelta | None,
    last: int | timedelta | None,
    leave_live: bool,
    output: Path,
    repair: bool,
    as_json: bool,
) -> None:
    """Write the first or last calls of TRACE, or those of its first or last seconds.

    Calls on objects born before the part are left out: it begins with an empty heap.
    """
    from heapwright import api

    if (first is None) == (last is None):
        raise click.UsageError("Give either --first or --last.")
    (trace,) = read_traces([path], repair)
    part = api.cut(trace, first=first, last=last, close=not leave_live)
    part.write(output)
    _tell([(part, output)], as_json)


@command.command()
@_trace_argument
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="Copies of this kind; default sizes+blocks and load. Repeat the flag for more, which take turns.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", default=8, show_default=True, help="Copies in all.")
@seed_option
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to write to, made if missing.",
)
@repair_option
@json_option
def copies(
    path: Path, kinds: tuple[str, ...], count: int, seed: int, output: Path, repair: bool, as_json: bool
) -> None:
    """Write perturbed copies of TRACE: what the same program might have asked on another day.

    What each kind changes and keeps: docs/traces.md. How well each foretells another recording: docs/robustness.md.
    """
    from heapwright import api
    from heapwright.files.writing import making

    (trace,) = read_traces([path], repair)
    traces = []
    with making(output):
        for copy in api.copies(trace, count, kinds=kinds or None, seed=seed):
            traces.append((copy, output / f"{copy.name}.parquet"))
            copy.write(traces[-1][1])
    _tell(traces, as_json)


@command.command()
@_trace_argument
@click.argument("heap", metavar="HEAP")
@click.option(
    "--objective",
    type=click.Choice(WORST_FOR),
    default=WORST_FOR[0],
    show_default=True,
    help="What is to be as much as possible.",
)
@click.option("--tries", type=click.IntRange(min=1), metavar="N", default=200, show_default=True, help="Replays.")
@seed_option
@trace_output_option
@repair_option
@json_option
def worst(
    path: Path, heap: str, objective: str, tries: int, seed: int, output: Path, repair: bool, as_json: bool
) -> None:
    """Search for the calls that cost HEAP most, and write them as a trace.

    HEAP is a zoo NAME, a RECIPE.toml, or STUDY:ID. The calls ask for no other sizes than TRACE, have no more
    live at once, and are no more. What was found stands beside what theory says of any such calls, where it does.
    """
    from heapwright import api

    (trace,) = read_traces([path], repair)
    found = api.find_worst(trace, heap, objective, tries=tries, seed=seed)
    found.trace.write(output)
    if as_json:
        keys = ("heap", "objective", "value", "original_value", "worst_case_bytes")
        print_json({**written(found.trace, output), **{key: getattr(found, key) for key in keys}})
        return
    print_written(found.trace, output)
    bound = "none known" if found.worst_case_bytes is None else f"{found.worst_case_bytes:,} bytes"
    told = f"{found.objective} {found.value:,}, {found.original_value:,} on {trace.name}; worst case: {bound}"
    click.echo(printable(f"{found.heap}: {told}"))


def _tell(traces: list[tuple[Trace, Path]], as_json: bool) -> None:
    if as_json:
        print_json([written(trace, path) for trace, path in traces])
        return
    for trace, path in traces:
        print_written(trace, path)
