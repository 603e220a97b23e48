"""`heapwright fit`: find the arena to reserve for a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from heapwright._cli.options import (
    Bytes,
    Numbers,
    fitted_argument,
    growth_option,
    heap_option,
    live_option,
    read_traces,
    repair_option,
    reserved_for_option,
    seed_option,
    word_size_option,
)
from heapwright._cli.output import check_errors, json_option, note, print_rows, print_sentences

if TYPE_CHECKING:
    from heapwright._api import Admission, Fit, Trace


class _Clients(click.ParamType[tuple[float, float]]):
    """HAD:WANTED, both above 0."""

    name = "clients"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        try:
            had, wanted = (float(part) for part in value.split(":"))
        except ValueError:
            self.fail(f"{value!r} is no pair of numbers; valid: the clients recorded and wanted, as 20:50", param, ctx)
        if not (0 < had < math.inf and 0 < wanted < math.inf):
            self.fail(f"{value!r}: both must be above 0", param, ctx)
        return had, wanted


class _Sweep(click.ParamType[tuple[str, tuple[float, ...]]]):
    """OPTION=NUMBERS."""

    name = "sweep"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, ...]]:
        if isinstance(value, tuple):
            return value
        option, _, numbers = value.partition("=")
        valid = "interarrival=0.001,0.002, or a range as interarrival=0.0005:0.0035:0.0005, above 0"
        return option.replace("-", "_"), Numbers(valid).convert(numbers, param, ctx)


class _Setting(click.ParamType[tuple[str, float]]):
    """OPTION=NUMBER."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        option, _, number = value.partition("=")
        try:
            return option.replace("-", "_"), int(number) if number.isdecimal() else float(number)
        except ValueError:
            self.fail(f"{value!r}: valid: an option of the workload and a number, as requests=100000", param, ctx)


@click.command()
@fitted_argument
@heap_option
@click.option(
    "--admit",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Find the least memory in which so large a share of the requests, and of their bytes, is served.",
)
@click.option(
    "--workload", type=click.Choice(["modem", "poisson"]), help="Make the traces, with the workload's own options."
)
@click.option(
    "--set",
    "settings",
    metavar="OPTION=NUMBER",
    type=_Setting(),
    multiple=True,
    help="An option of the workload, as requests=100000. Repeat the flag for more.",
)
@click.option(
    "--sweep",
    metavar="OPTION=NUMBERS",
    type=_Sweep(),
    help="A trace for each value of one of its options: interarrival=0.001,0.002 or interarrival=0.0005:0.0035:0.0005.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw what --admit finds over --sweep: FILE.svg or FILE.html.",
)
@click.option("--step", type=Bytes(), metavar="BYTES", help="Precision; default one alignment unit.")
@click.option(
    "--copies",
    type=click.IntRange(min=0),
    metavar="N",
    help="Perturbed copies at the recorded load that the reserved arena must serve, too; default none.",
)
@reserved_for_option
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    default=1.0,
    show_default=True,
    help="Share of the copies that it must serve.",
)
@growth_option
@live_option
@click.option(
    "--clients",
    type=_Clients(),
    metavar="HAD:WANTED",
    help="The same as a number of clients, calls or connections, recorded and wanted: 20:50.",
)
@seed_option
@word_size_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    admit: float | None,
    workload: str | None,
    settings: tuple[tuple[str, float], ...],
    sweep: tuple[str, tuple[float, ...]] | None,
    output: Path | None,
    step: int | None,
    copies: int | None,
    held_out: tuple[Path, ...],
    share: float,
    growth: float,
    live: int | None,
    clients: tuple[float, float] | None,
    seed: int,
    word_size: Literal[32, 64] | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Find the arena to reserve.

    The smallest serves the trace; the safe one and every larger one do; the reserved one is a fifth more than the trace
    and held-out traces need, for other recordings of a load like that, unless --live, --growth or --clients names
    another. All count control data. If nothing proves that larger arenas serve, many are tried.

    With --admit a heap may refuse requests: of a heap that grows the least arena is found, of a pool with counts how
    many blocks it has and how large.

    Foreign heaps are programs: what --heap names, and the adapter beside it, is compiled and run with your rights.
    """
    from heapwright import _api as api

    read = _traces(traces, repair, workload, dict(settings), sweep)
    for info in (info for trace in read for info in trace.notes):
        note(info)
    if admit is not None:
        if step or copies is not None or held_out or share != 1 or word_size or growth != 1 or live or clients:
            raise click.UsageError(
                "--admit looks at the traces and at recipes alone: leave out what reserves and steps"
            )
        _tell_admitted(api.admit(read, heaps, admit, output=output), as_json)
        return
    if output is not None:
        raise click.UsageError("a picture is drawn of what --admit finds; give it, and a --sweep")
    if (clients is not None) + (growth != 1) + (live is not None) > 1:
        raise click.UsageError("--growth, --clients and --live say the same: give one of them")
    result = api.fit(
        read,
        heaps,
        growth=clients[1] / clients[0] if clients else growth,
        live=live,
        step=step,
        copies=copies,
        held_out=read_traces(held_out, repair),
        share=share,
        seed=seed,
        word_size=word_size,
    )
    assert isinstance(result, list)
    check_errors(result)
    if as_json:
        print_rows(result)
        return
    _print_arenas(result)
    print_sentences(_tell_tried(result))
    if any(fit.reserve_bytes is not None for fit in result):
        _tell_reserve(copies or 0, share, len(held_out))
    for fit in {fit.trace: fit for fit in result if fit.reserve_bytes is not None}.values():
        print_sentences([_tell_load(fit, clients)])
    for fit in result:
        if fit.error:
            print_sentences([f"No arena: {fit.error}"])
        elif fit.smallest_arena_bytes is None and fit.reserve_bytes is not None:
            print_sentences([f"{fit.heap}: gets its memory from the system; its reserve is the most that it took."])
        elif fit.failed:
            print_sentences([_why_none(fit)])
        elif fit.refused:
            print_sentences([f"{fit.heap}: refused in any arena that it reaches: {', '.join(fit.refused)}"])


def _print_arenas(result: Sequence[Fit]) -> None:
    """One table: the trace in the title, or, of several, above its rows; without columns of which nothing is known."""
    from heapwright._cli.tables import number, print_table, short_names

    names = short_names(fit.heap for fit in result)
    traces = list(dict.fromkeys(fit.trace for fit in result))
    headings = ["heap", "smallest\narena", "safe\narena", "how\nsure", "reserve", "worst\ncase"]
    keys = {1: "smallest_arena_bytes", 2: "safe_arena_bytes", 4: "reserve_bytes", 5: "worst_case_bytes"}
    shown = [at for at, _ in enumerate(headings) if at not in keys or any(getattr(fit, keys[at]) for fit in result)]

    def row(fit: Fit) -> list[str]:
        name = ("  " if len(traces) > 1 else "") + names[fit.heap]
        return [
            number(keys[at], getattr(fit, keys[at])) if at in keys else _how_sure(fit) if at else name for at in shown
        ]

    sections = []
    for trace in traces:
        rows = [row(fit) for fit in result if fit.trace == trace]
        sections.append(rows if len(traces) == 1 else [[trace, *[""] * (len(shown) - 1)], *rows])
    where = f" for {traces[0]}" if len(traces) == 1 else ""
    print_table(f"Arenas in bytes{where}", [headings[at] for at in shown], sections, left=("heap", "how\nsure"))


def _traces(
    paths: tuple[Path, ...],
    repair: bool,
    workload: str | None,
    settings: dict[str, Any],
    sweep: tuple[str, tuple[float, ...]] | None,
) -> list[Trace]:
    """Traces read from the paths, or generated by the workload."""
    from heapwright import _api as api

    if bool(paths) == bool(workload):
        raise click.UsageError("give traces, or a --workload that makes them")
    if workload is None:
        if settings or sweep:
            raise click.UsageError("--set and --sweep are options of a workload; give it as --workload poisson")
        return read_traces(paths, repair)
    if sweep is None:
        return [api.workload(workload, **settings)]
    return api.sweep(workload, *sweep, **settings)


def _tell_admitted(result: Sequence[Admission], as_json: bool) -> None:
    if as_json:
        print_rows(result)
        return
    from heapwright._cli.tables import number, print_table

    cells = [
        [
            item.trace,
            item.heap,
            " + ".join(f"{n:,} x {size:,}" for n, size in zip(item.counts, item.sizes, strict=True)) or "-",
            number("footprint_bytes", item.arena_bytes),
            *(number("admitted_fraction", share) for share in (item.admitted_requests, item.admitted_fraction)),
            number("utilisation", item.utilisation),
        ]
        for item in result
    ]
    headings = ["trace", "heap", "blocks", "arena", "requests", "bytes", "utilisation"]
    share = f"{100 * result[0].share:g} %"
    title = f"The least memory in bytes that admits {share} of the requests and of their bytes"
    print_table(title, headings, [cells], left=("trace", "heap", "blocks"))
    if none := [f"{item.heap} on {item.trace}" for item in result if item.arena_bytes is None]:
        print_sentences([f"Admit less than {share} in any memory: {', '.join(none)}."])


def _why_none(fit: Fit) -> str:
    """Why no arena serves a trace, by how far the heap reaches."""
    bounds = [
        f"holds {fit.reach_objects:,} objects at most" if fit.reach_objects is not None else "",
        f"uses {fit.reach_bytes:,} bytes at most" if fit.reach_bytes is not None else "",
        f"serves no request above {fit.reach_request_bytes:,} bytes" if fit.reach_request_bytes is not None else "",
    ]
    why = ", ".join(filter(None, bounds)) or "does not grow as these need"
    return f"{fit.heap} refuses {fit.failed:,} requests of {fit.trace} however large the arena is: it {why}."


def _tell_reserve(copies: int, share: float, held_out: int) -> None:
    from heapwright._replay.reserve import MARGIN

    most = f" and {held_out} held-out trace{'s need' if held_out > 1 else ' need'}" if held_out else " needs"
    text = f"The reserve is {100 * (MARGIN - 1):.0f} % more than the trace{most}"
    serves = f"serves {copies if share == 1 else f'{share:.0%} of {copies}'} perturbed copies of it"
    more = "The long run is not in it: explore covers that."
    print_sentences([f"{text}, and {serves}. {more}" if copies else f"{text}. {more}"])


def _tell_load(fit: Fit, clients: tuple[float, float] | None) -> str:
    """What is live all along, what comes with the load, and how much of that the reserve is for."""
    each = f" ({fit.varying_bytes / clients[0]:,.0f} a client)" if clients else ""
    text = f"{fit.trace}: {fit.fixed_bytes:,} bytes are permanent, {fit.varying_bytes:,} depend on the load{each}"
    grown = f"{clients[1]:g} clients" if clients else f"{fit.growth:.3g} times what depends on the load"
    return f"{text}." if fit.growth == 1 else f"{text}; the reserve is for {grown}."


def _how_sure(fit: Fit) -> str:
    return "-" if fit.safe_arena_bytes is None else "proved" if fit.safe_proved else "tried"


def _tell_tried(result: Sequence[Fit]) -> list[str]:
    """What "tried" stands for, and how far heaps reach that reach less than twice their reserve."""
    most = max((fit.safe_tried or 0 for fit in result if not fit.safe_proved), default=0)
    info = [f"Tried: it served the trace, and so did {most:,} larger ones."] if most else []
    for fit in result:
        if fit.reach_bytes is not None and fit.reserve_bytes is not None and fit.reach_bytes < 2 * fit.reserve_bytes:
            info.append(f"{fit.heap} uses {fit.reach_bytes:,} bytes at most.")
    return list(dict.fromkeys(info))
