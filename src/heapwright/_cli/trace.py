"""`heapwright trace`: inspect, repair, cut, merge, compare, scale, export and perturb traces."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.group import Group
from heapwright._cli.options import (
    Bytes,
    heap_argument,
    live_option,
    read_traces,
    seed_option,
    trace_output_option,
)
from heapwright._cli.output import json_option, note, print_json, print_sentences, print_written, written
from heapwright._cli.pipes import called, from_stdin, to_stdout
from heapwright._cli.renamed import repairs_requested
from heapwright._cli.tables import print_table
from heapwright._cli.trace_map import map_command
from heapwright._support.names import printable
from heapwright._support.units import per_cent

if TYPE_CHECKING:
    from heapwright._traces.streams import Written

WORST_FOR = ("footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")

FORMATS = ("minimalloc", "malloclab", "c")

SHOWN_CHANGES = 16
"""Sizes and sites that `diff` prints."""
LONGEST_SITE = 28

LONG_FUTURE = 10_000_000
"""Calls of a future that takes so long that a line says what is done."""

KINDS = ("sizes+blocks", "load", "sizes", "lifetimes", "streams", "blocks")

_trace_argument = click.argument("path", metavar="TRACE", type=click.Path(path_type=Path), callback=from_stdin)
_width_option = partial(click.option, type=click.IntRange(4, 8), metavar="4|8")


_PLACE = r"\d+(?:\.\d+s|s)?"
_PART = re.compile(rf"-(?P<last>{_PLACE}):|(?P<start>{_PLACE})?:(?P<stop>{_PLACE})?")


class _Part(click.ParamType[Any]):
    """A stretch of a trace, FROM:TO, as the arguments of `heapwright.cut`; each end is calls, or with "s" seconds."""

    name = "part"

    def convert(
        self, value: str | dict[str, Any], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int | timedelta]:
        """See `click.ParamType.convert`."""
        if isinstance(value, dict):
            return value
        match = _PART.fullmatch(value)
        if match is None or value == ":":
            valid = "FROM:TO, as 2000:5000 (calls), :2.5s (the first), -5000: (the last)"
            self.fail(f"{value}: valid: {valid}", param, ctx)
        ends = {end: _length(text) for end, text in match.groupdict().items() if text}
        return {"first": ends["stop"]} if list(ends) == ["stop"] else ends


def _length(text: str) -> int | timedelta:
    return timedelta(seconds=float(text[:-1])) if text.endswith("s") else int(text)


@click.group(cls=Group)
def command() -> None:
    """Inspect, repair, cut, map, merge, compare, scale, export and perturb traces; search for the worst case."""


command.add_command(map_command)


@command.command()
@click.argument(
    "paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=from_stdin
)
@json_option
def info(paths: tuple[Path, ...], as_json: bool) -> None:
    """Print what is in TRACE: calls, threads, peaks, phases, metadata. `heapwright profile` prints more."""
    from heapwright import _api as api

    results = [api.trace_facts(path, repair=repairs_requested()) for path in paths]
    for facts in results:
        _note(facts["repairs"])
    if as_json:
        print_json(results)
        return
    for facts in results:
        seconds = "no times" if facts["seconds"] is None else f"{facts['seconds']:,.1f} s"
        labels = "".join(f", {len(facts[key])} {key}" for key in ("phases", "sites") if facts[key])
        head = f"{facts['trace']}: {facts['events']:,} calls, {seconds}, threads: {facts['threads']}{labels}"
        print_sentences([head])
        click.echo(f"  peak {facts['requested_peak_bytes']:,} B live, {facts['live_objects_peak']:,} objects")
        for key, value in facts["metadata"].items():
            for line in value.splitlines():
                print_sentences([f"  {'caveat' if key == 'caveats' else key}: {line}"])


@command.command()
@_trace_argument
@click.option(
    "--part",
    "parts",
    type=_Part(),
    metavar="FROM:TO",
    multiple=True,
    help="Keep the calls from FROM on that are before TO, in calls, as 2000:5000, or seconds, as 1s:2.5s; :5000 is the "
    "first, -5000: the last.",
)
@click.option(
    "--thread",
    "threads",
    type=click.IntRange(0, 65535),
    metavar="N",
    multiple=True,
    help="Keep objects that thread N allocates. Repeat the flag for more.",
)
@click.option(
    "--phase",
    "phases",
    metavar="NAME",
    multiple=True,
    help="Keep objects that are allocated in this phase; * stands for any letters. Repeat the flag for more.",
)
@click.option(
    "--site",
    "sites",
    metavar="NAME",
    multiple=True,
    help="Keep objects that are allocated at this site; * stands for any letters. Repeat the flag for more.",
)
@click.option("--live", is_flag=True, help="Begin with the objects that are live at the start of the part.")
@click.option("--leave-live", is_flag=True, help="Do not free the objects that are live at the end.")
@trace_output_option
@json_option
def cut(
    path: Path,
    parts: tuple[dict[str, Any], ...],
    threads: tuple[int, ...],
    phases: tuple[str, ...],
    sites: tuple[str, ...],
    live: bool,
    leave_live: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Write a part of TRACE: a stretch of its calls or of its time, or what a thread, phase or site allocates.

    A part begins with an empty heap: calls on earlier objects are left out. --live inserts these objects first.
    """
    from heapwright import _api as api

    if not (parts or threads or phases or sites):
        raise click.UsageError("Give a --part, --thread, --phase or --site.")
    stretch = {end: place for part in parts for end, place in part.items()}
    if "start" in stretch and "first" in stretch:
        stretch["stop"] = stretch.pop("first")
    part = api.cut(
        path,
        output,
        **stretch,
        threads=threads,
        phases=phases,
        sites=sites,
        live=live,
        close=not leave_live,
        repair=repairs_requested(),
    )
    _tell([part], as_json)


@command.command()
@_trace_argument
@trace_output_option
@json_option
def repair(path: Path, output: Path, as_json: bool) -> None:
    """Write TRACE without its invalid calls, such as a second free of an object.

    Each kind of dropped call is counted, and becomes a caveat of the new trace.
    """
    from heapwright import _api as api

    _tell([api.repair_trace(path, output)], as_json)


@command.command()
@click.argument(
    "paths", metavar="TRACE TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=from_stdin
)
@trace_output_option
@json_option
def merge(paths: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write one trace of several, their calls in the order of time; objects and threads stay apart.

    All begin at time 0, and have to have pointers of one width.
    """
    from heapwright import _api as api

    if len(paths) < 2:
        raise click.UsageError("Give two traces or more.")
    _tell([api.merge(paths, output, repair=repairs_requested())], as_json)


@command.command()
@click.argument("before", metavar="BEFORE", type=click.Path(path_type=Path))
@click.argument("after", metavar="AFTER", type=click.Path(path_type=Path))
@json_option
def diff(before: Path, after: Path, as_json: bool) -> None:
    """Compare the traces of two builds of a program: totals, peak, lifetimes, sizes and sites.

    Sizes and sites are in the order of what changed most: bytes at the peak of live bytes, then bytes requested.
    """
    from heapwright import _api as api

    result = api.diff(before, after, repair=repairs_requested())
    _note([*result["repairs"], *result["caveats"]])
    if as_json:
        print_json(result)
        return
    totals = [_changed(_words(key), *pair) for key, pair in result["totals"].items()]
    lifetimes = [_changed(f"lifetime {key}, calls", *pair) for key, pair in result["lifetimes"].items()]
    first, second = (printable(name) for name in result["traces"])
    print_table(f"{first} -> {second}", ["", "before", "after", "change"], [totals, lifetimes], left=("",))
    for key in ("size", "site"):
        if result[f"{key}s"]:
            _print_changes(key, result[f"{key}s"])


def _words(key: str) -> str:
    stem, unit, _ = key.replace("_bytes", "|, B").partition("|, B")
    return f"{stem.replace('_', ' ')}{unit and ', B'}"


def _changed(words: str, before: float | None, after: float | None) -> list[str]:
    change = "-" if before is None or after is None else _change(before, after)
    return [words, *("-" if item is None else _number(item) for item in (before, after)), change]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _change(before: float, after: float) -> str:
    """The difference, and in per cent where there was something; nothing where they are equal."""
    if before == after:
        return ""
    difference = f"+{_number(after - before)}" if after > before else _number(after - before)
    return f"{difference} ({per_cent(before, after)})" if before else difference


def _print_changes(key: str, rows: list[dict[str, Any]]) -> None:
    from heapwright._traces.holders import short_names

    changed = [row for row in rows if row["requests"][0] != row["requests"][1] or len(set(row["peak_bytes"])) > 1]
    short = short_names([row[key] for row in changed]) if key == "site" else {}
    cells = [
        [
            _label(short[row[key]]) if short else f"{row[key]:,} B",
            *map(_number, (*row["requests"], *row["peak_bytes"])),
            _change(*row["peak_bytes"]).partition(" ")[0],
        ]
        for row in changed[:SHOWN_CHANGES]
    ]
    rest = f"; the first {len(cells)}" if len(cells) < len(changed) else ""
    title = f"{len(changed):,} {key}s changed, {len(rows) - len(changed):,} did not{rest}"
    headings = [key, "requests\nbefore", "\nafter", "B at peak\nbefore", "\nafter", "\nchange"]
    print_table(title, headings, [cells], left=(key,))


def _label(site: str) -> str:
    return (site if len(site) <= LONGEST_SITE else f"{site[: LONGEST_SITE - 1]}…") or "(not named)"


@command.command()
@_trace_argument
@_width_option("--pointer-bytes", default=4, show_default=True, help="Width of a pointer in the new program.")
@_width_option(
    "--recorded-pointer-bytes",
    help="Width of a pointer in the recorded program, if TRACE does not contain it.",
)
@click.option(
    "--pointer-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Share of a struct's words that are as wide as pointers; 0 and 1 are the limits. Default 0.5.",
)
@click.option(
    "--peak",
    "peak_bytes",
    type=Bytes(),
    metavar="BYTES",
    help="Known peak of live bytes with the new width: the share is fitted to it.",
)
@trace_output_option
@json_option
def scale(
    path: Path,
    pointer_bytes: int,
    recorded_pointer_bytes: int | None,
    pointer_share: float | None,
    peak_bytes: int | None,
    output: Path,
    as_json: bool,
) -> None:
    """Write an estimate of TRACE for another pointer width.

    The sizes are an estimate, and everything that reads the trace says so. How they are found: docs/traces.md.
    """
    from heapwright import _api as api

    estimate = api.scale(
        path,
        output,
        pointer_bytes=pointer_bytes,
        recorded_pointer_bytes=recorded_pointer_bytes,
        pointer_share=pointer_share,
        peak_bytes=peak_bytes,
        repair=repairs_requested(),
    )
    _note([f"{output}: {estimate.metadata['caveats'].splitlines()[-1]}"])
    _tell([estimate], as_json)


@command.command()
@_trace_argument
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    required=True,
    help="Buffers for an offline planner (CSV), the lines of malloc labs (.rep), or an array in C.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    callback=to_stdout,
    help="The file to write; - is stdout.",
)
@json_option
def export(path: Path, format_name: str, output: Path, as_json: bool) -> None:
    """Write TRACE for another tool; notes list what the format cannot hold."""
    from heapwright import _api as api

    done = api.export_trace(path, output, format=format_name, repair=repairs_requested())
    _note([*done.repairs, *(f"{output}: {caveat}" for caveat in done.caveats)])
    _note([f"{output}: {done.format} cannot hold {', '.join(done.loses)}"] if done.loses else [])
    if as_json:
        print_json(dataclasses.asdict(done))
        return
    print_sentences([f"{called(output)}: {done.events:,} calls for {done.format}"])


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
@json_option
def copies(path: Path, kinds: tuple[str, ...], count: int, seed: int, output: Path, as_json: bool) -> None:
    """Write perturbed copies of TRACE, as estimates of other recordings of the program.

    What each kind changes and keeps: docs/traces.md. How well each predicts another recording: docs/robustness.md.
    """
    from heapwright import _api as api
    from heapwright._support.writing import making

    (trace,) = read_traces([path])
    traces = []
    with making(output):
        for copy in api.copies(trace, count, kinds=kinds or None, seed=seed):
            traces.append((copy, output / f"{copy.name}.parquet"))
            copy.write(traces[-1][1])
    if as_json:
        print_json([written(trace, path) for trace, path in traces])
        return
    for trace, path in traces:
        print_written(trace, path)


@command.command()
@_trace_argument
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    metavar="N",
    default=1_000_000,
    show_default=True,
    help="Calls of the future, beyond those of TRACE.",
)
@seed_option
@click.option(
    "--swing",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Swing of the load around its mean; 0 is a steady load. Default: twice that of TRACE.",
)
@click.option(
    "--stalls",
    type=click.FloatRange(0),
    metavar="TIMES",
    help="Memory of stalled consumers, as a multiple of that in TRACE; 0 is none. Default: 2.",
)
@live_option
@trace_output_option
@json_option
def resample(
    path: Path,
    calls: int,
    seed: int,
    swing: float | None,
    stalls: float | None,
    live: int | None,
    output: Path,
    as_json: bool,
) -> None:
    """Write a future of TRACE: the recording, then --calls more calls like it.

    A block bootstrap: blocks of the recording's allocations are drawn again and again, and each object lives as long
    as recorded. See docs/traces.md.
    """
    from heapwright import _api as api

    (trace,) = read_traces([path])
    if calls >= LONG_FUTURE:
        note(f"{trace.name}: drawing {calls:,} calls ...")
    future = api.resample(trace, calls, seed=seed, swing=swing, stalls=stalls, live=live)
    future.write(output)
    if as_json:
        print_json([written(future, output)])
        return
    print_written(future, output)


@command.command()
@_trace_argument
@heap_argument
@click.option(
    "--objective",
    type=click.Choice(WORST_FOR),
    default=WORST_FOR[0],
    show_default=True,
    help="The metric to maximise.",
)
@click.option("--tries", type=click.IntRange(min=1), metavar="N", default=200, show_default=True, help="Replays.")
@trace_output_option
@json_option
def worst(path: Path, heap: str, objective: str, tries: int, output: Path, as_json: bool) -> None:
    """Search for worst-case calls for HEAP, and write them as a trace.

    HEAP is a zoo NAME, a RECIPE.toml, or STUDY:ID. The calls have only the sizes of TRACE, and at most its number of
    calls and its live peak. The result is printed with the theoretical bound, if there is one.
    """
    from heapwright import _api as api

    (trace,) = read_traces([path])
    result = api.find_worst(trace, heap, objective, tries=tries)
    result.trace.write(output)
    if as_json:
        keys = ("heap", "objective", "value", "original_value", "worst_case_bytes", "worst_steps", "unbounded")
        print_json({**written(result.trace, output), **{key: getattr(result, key) for key in keys}})
        return
    print_written(result.trace, output)
    bound = "none known" if result.worst_case_bytes is None else f"{result.worst_case_bytes:,} bytes"
    if result.objective != "footprint_bytes":
        bound = f"unbounded, {result.unbounded}"
        if result.worst_steps is not None:
            bound = f"{result.worst_steps:,} accesses of a malloc or free, a realloc and what it copies apart"
    text = f"{result.objective} {result.value:,}, {result.original_value:,} on {trace.name}; worst case: {bound}"
    print_sentences([f"{result.heap}: {text}"])


def _tell(parts: Sequence[Written], as_json: bool) -> None:
    for part in parts:
        _note(part.repairs)
    if as_json:
        print_json([{key: value for key, value in vars(part).items() if key != "repairs"} for part in parts])
        return
    for part in parts:
        peak = f"peak {part.requested_peak_bytes:,} B in {part.live_objects_peak:,} objects"
        print_sentences([f"{called(part.path)}: {part.events:,} calls, {peak}"])


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        note(line)
