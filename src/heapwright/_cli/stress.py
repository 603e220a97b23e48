"""`heapwright stress`: whether a heap lasts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from heapwright._cli.options import heap_option, read_traces, replayed_argument
from heapwright._cli.output import json_option, print_json, print_sentences


@click.command()
@replayed_argument
@heap_option
@click.option(
    "--calls",
    type=click.IntRange(min=10_000),
    metavar="N",
    default=10_000_000,
    show_default=True,
    help="Most calls of each loop.",
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Picture to draw: FILE.svg or FILE.html."
)
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    calls: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Try whether a heap lasts.

    Loops at constant live bytes, made from a trace's sizes, and the trace again and again, go on until what a heap
    covers is flat, or for so many calls. A heap lasts where it grows by no more than 15 %, or 15 % more than best fit,
    after the first 100,000 (a tenth of fewer), and refuses nothing in twice the memory that its live blocks take,
    unless best fit refuses about as early there.
    """
    from heapwright import _api as api

    result = api.stress(read_traces(traces), heaps, calls=calls, output=output)
    if as_json:
        print_json([asdict(item) for item in result])
        return
    from heapwright._cli.tables import print_table
    from heapwright._replay.stress_test import GUARD

    for trace in dict.fromkeys(item.trace for item in result):
        shown = [item for item in result if item.trace == trace]
        loops = list(dict.fromkeys(loop for item in shown for loop in item.footprint_bytes))
        rows = [
            [item.heap, "yes" if item.lasts else "no", f"{item.growth_ratio:.3f}", item.worst]
            + [_grown(item.footprint_bytes.get(loop)) for loop in loops]
            for item in shown
        ]
        headings = ["heap", "lasts", "grows", "most in", *loops]
        print_table(f"KB covered at the end, {trace}", headings, [rows], ["heap", "lasts", "most in"])
        for item in shown:
            if item.lasts_as_best_fit is not None:
                more = f"{100 * (GUARD - 1):.0f} % more"
                text = f"best fit grows {item.lasts_as_best_fit:.3f} times there, and a heap may {more}"
                print_sentences([f"{item.heap} lasts: {text}."])
            if item.refused:
                loops_ = ", ".join(item.refused)
                print_sentences([f"{item.heap} refuses requests where its live blocks fit twice: {loops_}."])


def _grown(footprints: object) -> str:
    return f"{list(footprints.values())[-1] / 1000:,.1f}" if isinstance(footprints, dict) else "-"
