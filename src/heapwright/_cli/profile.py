"""`heapwright profile`: sizes, lifetimes and live memory of a trace or packet table."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from heapwright._cli.cells import Column, Rules, cut, table, wrapped
from heapwright._cli.output import json_option, note, print_json
from heapwright._cli.pipes import from_stdin
from heapwright._cli.renamed import repairs_requested
from heapwright._cli.tables import styled
from heapwright._support.names import printable

SHOWN_SIZES = 20
BAR_WIDTH = 24
CURVE_WIDTH = 60
HOLDER_WIDTH = 28
NAME_WIDTH = 26
CURVE_LEVELS = " ▁▂▃▄▅▆▇█"


@click.command()
@click.argument("table", metavar="TRACE|PACKETS", type=click.Path(path_type=Path), callback=from_stdin)
@json_option
def command(table: Path, as_json: bool) -> None:
    """Summarise a trace or packet table: sizes, lifetimes, live memory, locality and order of frees.

    Sizes with a share of at least 10 % are marked.
    """
    from heapwright import _api as api

    result = api.profile(table, repair=repairs_requested())
    for info in (*result.get("repairs", ()), *result.get("caveats", ())):
        note(f"{table}: {info}")
    if as_json:
        print_json(result)
        return
    if "packets" in result:
        _show_packets(result)
    else:
        _show_trace(result)


def _show_packets(result: dict[str, Any]) -> None:
    name = printable(result["name"])
    seconds, flows = _time(result["seconds"]), result["flows"]
    synthetic = ", synthetic" if result["synthetic"] else ""
    _say(f"{name}: {result['packets']:,} packets, {seconds}, {flows:,} flows{synthetic}", strong=name)
    _say(f"{result['bytes']:,} B ({result['size_column']})")
    _show_sizes(result, "packets")
    _show_stability(result["stability"])
    _show_arrivals(result["burstiness"])


def _show_stability(stability: list[dict[str, Any]]) -> None:
    if not stability:
        return
    rows = [
        [
            f"{row['packets']:,}",
            f"{row['samples']:,}",
            *(f"{share['mean']:.1%} ± {share['deviation']:.1%}" for share in row["shares"]),
        ]
        for row in stability
    ]
    _print_table(
        ["share in samples of", "samples", *(f"{share['size']:,} B" for share in stability[0]["shares"])], rows
    )


def _show_arrivals(burstiness: dict[str, Any]) -> None:
    if burstiness["interarrival_cv"] is None:
        _say("arrivals: too few packets")
        return
    gaps = f"{burstiness['interarrival_mean_us']:,.0f} us apart on average"
    _say(f"arrivals: {gaps}, coefficient of variation {burstiness['interarrival_cv']:.3g} (Poisson: 1)")
    windows = ", ".join(f"{row['index']:.3g} in {row['window_us'] / 1e6:g} s" for row in burstiness["dispersion"])
    if windows:
        _say(f"variance / mean of the packets in a window (Poisson: 1): {windows}")


def _show_trace(result: dict[str, Any]) -> None:
    calls = ", ".join(
        f"{result[call]:,} {call}" for call in ("mallocs", "callocs", "reallocs", "frees") if result[call]
    )
    name = printable(result["name"])
    threads = "1 thread" if result["threads"] == 1 else f"{result['threads']} threads"
    never = result["never_freed"]
    for text in _trouble(result):
        _say(text)
    _say(f"{name}: {result['events']:,} calls, {threads}, {_time(result['seconds'])}", strong=name)
    _say(calls)
    _say(f"peak: {result['requested_peak_bytes']:,} B live, after call {result['requested_peak_event']:,}")
    _say(f"peak of live objects: {result['live_objects_peak']:,}")
    _say(f"never freed: {never['objects']:,} objects ({never['share']:.1%}), {never['bytes']:,} B")
    _show_sizes(result, "requests")
    _say(f"\nlive bytes, first call to last\n│{_curve(result['live']['bytes'])}│\n")
    _show_live_by(result)
    _show_lifetimes(result["lifetimes"])
    _show_locality(result["locality"])
    _show_order(result["free_order"])


def _trouble(result: dict[str, Any]) -> list[str]:
    """What leaks in a trace, and which requests failed while it was recorded, a sentence each."""
    from heapwright._traces.failures import Failures
    from heapwright._traces.leaks import Leak, leak_sentence

    leaks = [Leak.of(leak) for leak in result["leaks"]]
    texts = [leak_sentence(leaks, result["name"])] if leaks else []
    if result["failures"]:
        texts.append(f"{Failures(**result['failures'])}.")
    return [printable(text) for text in texts]


def _show_sizes(result: dict[str, Any], unit: str) -> None:
    from heapwright._traces.profile import FREQUENT_SHARE

    most = f"{result['top_two_share']:.1%}, {result['sizes_for_90_percent']:,} make up 90 %"
    _say(f"\n{result['distinct_sizes']:,} distinct sizes; the two most frequent make up", most)
    rows, frequent = [], []
    largest = max((row["share"] for row in result["sizes"]), default=1)
    for row in result["sizes"][:SHOWN_SIZES]:
        frequent.append(row["share"] >= FREQUENT_SHARE)
        bar = "█" * max(1, round(BAR_WIDTH * row["share"] / largest)) + ("  ≥ 10 %" if frequent[-1] else "")
        rows.append([f"{row['size']:,}", f"{row['count']:,}", f"{row['share']:.1%}", bar])
    _print_table(["size, B", unit, "share", ""], rows, {3}, frequent)
    if len(result["sizes"]) > SHOWN_SIZES:
        rest = sum(row["share"] for row in result["sizes"][SHOWN_SIZES:])
        _say(f" and {len(result['sizes']) - SHOWN_SIZES:,} more sizes with {rest:.1%} (all with --json)")


def _show_live_by(result: dict[str, Any]) -> None:
    """Print live memory by allocation site or size: its curve, all at one scale, and its bytes at the peak."""
    from heapwright._traces.holders import short_names

    info = result["live_by"]
    at_peak = dict(zip(info["groups"], _at(result["requested_peak_event"], info), strict=True))
    peak, short = result["requested_peak_bytes"] or 1, short_names(info["groups"])
    rows = []
    for group, row in zip(info["groups"], info["bytes"], strict=True):
        held = at_peak[group]
        line = _curve(row, HOLDER_WIDTH, max(map(max, info["bytes"])))
        rows.append([cut(printable(short[group]), NAME_WIDTH), f"{held:,}", f"{held / peak:.1%}", f"│{line}│"])
    if rows:
        heads = [cut(f"live by {info['key']}", NAME_WIDTH), "at peak, B", "share", "first call to last"]
        _print_table(heads, rows, {0, 3}, wraps=False)
        click.echo()


def _at(event: int, live_by: dict[str, Any]) -> list[int]:
    """Live bytes of each group after a sampled call."""
    place = live_by["event"].index(event)
    return [row[place] for row in live_by["bytes"]]


def _show_lifetimes(lifetimes: dict[str, Any]) -> None:
    columns = ("p10", "p50", "p90", "p99", "max")
    if lifetimes["events"]["max"] is None:
        _say("lifetimes: nothing is freed")
        return
    rows = [
        ["in calls", *(f"{lifetimes['events'][column]:,}" for column in columns)],
        ["in bytes requested", *(f"{lifetimes['bytes'][column]:,}" for column in columns)],
    ]
    _print_table(["lifetime of freed objects", *columns], rows, {0})


def _show_locality(locality: list[dict[str, Any]]) -> None:
    click.echo()
    for row in locality:
        if row["share"] is not None:
            within = f"consecutive allocations freed within {row['within_frees']:>2} frees"
            _say(f"{within}: {row['share']:6.1%} (by chance {row['by_chance']:.1%})")


def _show_order(order: dict[str, Any]) -> None:
    if order["score"] is None:
        _say("order of frees: at most one object is live")
        return
    _say(f"order of frees: {order['score']:.2f} (1 = LIFO, 0 = FIFO, 0.5 = random)")
    _say(
        f"the newest object is freed first in {order['youngest_share']:.1%}, the oldest in {order['oldest_share']:.1%}"
    )


def _say(*texts: str, strong: str = "") -> None:
    """Print texts on one line, each wrapped for itself; on a terminal `strong`, with which they begin, stands out."""
    lines = " ".join("\n".join(wrapped(text, _columns(), fold=True)) for text in texts).split("\n")
    for line in lines:
        line = line.rstrip()
        if strong and line.startswith(strong):
            line = styled(strong, bold=True) + line.removeprefix(strong)
        click.echo(line)


def _print_table(
    heads: list[str],
    rows: list[list[str]],
    left: Collection[int] = (),
    strong: Sequence[bool] = (),
    wraps: bool = True,
) -> None:
    """Print rows under headings, which are dim on a terminal, some rows to stand out; all a blank from the margin."""
    columns = [Column(at in left, wraps, 1) for at in range(len(heads))]
    for line in table(heads, [rows], columns, _columns() - 2, Rules()):
        if line.row >= 0:
            stands_out = line.row > 0 and any(strong[line.row - 1 : line.row])
            click.echo(styled(f" {line.text}", bold=stands_out, dim=line.row == 0))


def _columns() -> int:
    """How long a line may be: as the variable COLUMNS says, else as the terminal is wide that any stream is."""
    if (requested := os.environ.get("COLUMNS", "")).isdecimal():
        return int(requested) or 80
    for stream in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or 80
    return 80


def _curve(values: list[int], width: int = CURVE_WIDTH, peak: int | None = None) -> str:
    stretch = max(1, -(-len(values) // width))
    peak = peak or max(values, default=0) or 1
    tops = [max(values[start : start + stretch]) for start in range(0, len(values), stretch)]
    return "".join(CURVE_LEVELS[round(top / peak * (len(CURVE_LEVELS) - 1))] for top in tops)


def _time(seconds: float | None) -> str:
    return "no times" if seconds is None else f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
