"""`heapwright profile`: characterise what a trace or a packet table asks of memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright.cli.options import repair_option
from heapwright.cli.output import json_option, note, print_json
from heapwright.cli.pipes import from_stdin
from heapwright.files.names import printable

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_SIZES = 20
BAR_WIDTH = 24
CURVE_WIDTH = 60
HOLDER_WIDTH = 28
CURVE_LEVELS = " ▁▂▃▄▅▆▇█"


@click.command()
@click.argument("table", metavar="TRACE|PACKETS", type=click.Path(path_type=Path), callback=from_stdin)
@repair_option
@json_option
def command(table: Path, repair: bool, as_json: bool) -> None:
    """Characterise what a trace or a packet table asks of memory.

    Shows the sizes asked for and their shares (those of at least 10 % are marked), how long objects live, the curve of
    live bytes, and whether objects that are born together die together.
    """
    from heapwright import api

    result = api.profile(table, repair=repair)
    for told in (*result.get("repairs", ()), *result.get("caveats", ())):
        note(f"{table}: {told}")
    if as_json:
        print_json(result)
        return
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        if "packets" in result:
            _show_packets(console, result)
        else:
            _show_trace(console, result)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _show_packets(console: Console, result: dict[str, Any]) -> None:
    seconds, flows = _time(result["seconds"]), result["flows"]
    synthetic = ", synthetic" if result["synthetic"] else ""
    console.print(f"{_name(result)}: {result['packets']:,} packets, {seconds}, {flows:,} flows{synthetic}")
    console.print(f"{result['bytes']:,} B ({result['size_column']})")
    _show_sizes(console, result, "packets")
    _show_stability(console, result["stability"])
    _show_arrivals(console, result["burstiness"])


def _name(result: dict[str, Any]) -> str:
    from rich.markup import escape

    return f"[bold]{escape(printable(result['name']))}[/]"


def _show_stability(console: Console, stability: list[dict[str, Any]]) -> None:
    from rich.table import Table

    if not stability:
        return
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for heading in ("share in samples of", "samples", *(f"{share['size']:,} B" for share in stability[0]["shares"])):
        table.add_column(heading, justify="right")
    for row in stability:
        shares = (f"{share['mean']:.1%} ± {share['deviation']:.1%}" for share in row["shares"])
        table.add_row(f"{row['packets']:,}", f"{row['samples']:,}", *shares)
    console.print(table)


def _show_arrivals(console: Console, burstiness: dict[str, Any]) -> None:
    if burstiness["interarrival_cv"] is None:
        console.print("arrivals: too few to tell")
        return
    gaps = f"{burstiness['interarrival_mean_us']:,.0f} us apart on average"
    console.print(f"arrivals: {gaps}, coefficient of variation {burstiness['interarrival_cv']:.3g} (Poisson: 1)")
    windows = ", ".join(f"{row['index']:.3g} in {row['window_us'] / 1e6:g} s" for row in burstiness["dispersion"])
    if windows:
        console.print(f"variance / mean of the packets in a window (Poisson: 1): {windows}")


def _show_trace(console: Console, result: dict[str, Any]) -> None:
    calls = ", ".join(
        f"{result[call]:,} {call}" for call in ("mallocs", "callocs", "reallocs", "frees") if result[call]
    )
    threads = "1 thread" if result["threads"] == 1 else f"{result['threads']} threads"
    never = result["never_freed"]
    console.print(f"{_name(result)}: {result['events']:,} calls, {threads}, {_time(result['seconds'])}")
    console.print(calls)
    console.print(f"peak: {result['requested_peak_bytes']:,} B live, after call {result['requested_peak_event']:,}")
    console.print(f"most objects alive: {result['live_objects_peak']:,}")
    console.print(f"never freed: {never['objects']:,} objects ({never['share']:.1%}), {never['bytes']:,} B")
    _show_sizes(console, result, "requests")
    console.print(f"\nlive bytes, first call to last\n│{_curve(result['live']['bytes'])}│\n")
    _show_holders(console, result)
    _show_lifetimes(console, result["lifetimes"])
    _show_locality(console, result["locality"])
    _show_order(console, result["free_order"])


def _show_sizes(console: Console, result: dict[str, Any], unit: str) -> None:
    from rich.table import Table

    from heapwright.traces.profile import FREQUENT_SHARE

    console.print(f"\n{result['distinct_sizes']:,} distinct sizes; the two most frequent make up", end=" ")
    console.print(f"{result['top_two_share']:.1%}, {result['sizes_for_90_percent']:,} make up 90 %")
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for heading in ("size, B", unit, "share"):
        table.add_column(heading, justify="right")
    table.add_column("")
    largest = max((row["share"] for row in result["sizes"]), default=1)
    for row in result["sizes"][:SHOWN_SIZES]:
        frequent = row["share"] >= FREQUENT_SHARE
        bar = "█" * max(1, round(BAR_WIDTH * row["share"] / largest)) + ("  ≥ 10 %" if frequent else "")
        cells = (f"{row['size']:,}", f"{row['count']:,}", f"{row['share']:.1%}", bar)
        table.add_row(*cells, style="bold" if frequent else "")
    console.print(table)
    if len(result["sizes"]) > SHOWN_SIZES:
        rest = sum(row["share"] for row in result["sizes"][SHOWN_SIZES:])
        console.print(f" and {len(result['sizes']) - SHOWN_SIZES:,} more sizes with {rest:.1%} (all with --json)")


def _show_holders(console: Console, result: dict[str, Any]) -> None:
    """Who holds the live bytes: a line over the calls each, at one scale, and what it holds at the peak."""
    from rich.table import Table
    from rich.text import Text

    from heapwright.traces.held import short_names

    told = result["live_by"]
    at_peak = dict(zip(told["groups"], _at(result["requested_peak_event"], told), strict=True))
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column(f"held by {told['key']}", no_wrap=True, overflow="ellipsis", max_width=26)
    for heading in ("at peak, B", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("first call to last", no_wrap=True)
    peak, short = result["requested_peak_bytes"] or 1, short_names(told["groups"])
    for group, row in zip(told["groups"], told["bytes"], strict=True):
        held = at_peak[group]
        line = _curve(row, HOLDER_WIDTH, max(map(max, told["bytes"])))
        table.add_row(Text(printable(short[group])), f"{held:,}", f"{held / peak:.1%}", f"│{line}│")
    if told["groups"]:
        console.print(table)
        console.print()


def _at(event: int, told: dict[str, Any]) -> list[int]:
    """What each group holds after a call, which is one of those that are told."""
    place = told["event"].index(event)
    return [row[place] for row in told["bytes"]]


def _show_lifetimes(console: Console, lifetimes: dict[str, Any]) -> None:
    from rich.table import Table

    columns = ("p10", "p50", "p90", "p99", "max")
    if lifetimes["events"]["max"] is None:
        console.print("lifetimes: nothing is freed")
        return
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("lifetime of freed objects")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_row("in calls", *(f"{lifetimes['events'][column]:,}" for column in columns))
    table.add_row("in bytes requested meanwhile", *(f"{lifetimes['bytes'][column]:,}" for column in columns))
    console.print(table)


def _show_locality(console: Console, locality: list[dict[str, Any]]) -> None:
    console.print()
    for row in locality:
        if row["share"] is not None:
            within = f"born side by side, dead within {row['within_frees']:>2} frees of each other"
            console.print(f"{within}: {row['share']:6.1%} (by chance {row['by_chance']:.1%})")


def _show_order(console: Console, order: dict[str, Any]) -> None:
    if order["score"] is None:
        console.print("order of frees: no free had a choice")
        return
    console.print(f"order of frees: {order['score']:.2f} (1 like a stack, 0 like a queue, 0.5 without order)")
    console.print(f"the youngest goes in {order['youngest_share']:.1%}, the oldest in {order['oldest_share']:.1%}")


def _curve(values: list[int], width: int = CURVE_WIDTH, peak: int | None = None) -> str:
    stretch = max(1, -(-len(values) // width))
    peak = peak or max(values, default=0) or 1
    tops = [max(values[start : start + stretch]) for start in range(0, len(values), stretch)]
    return "".join(CURVE_LEVELS[round(top / peak * (len(CURVE_LEVELS) - 1))] for top in tops)


def _time(seconds: float | None) -> str:
    return "no times" if seconds is None else f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
