"""`heapwright stress`: whether a heap lasts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from heapwright._cli.options import heap_option, read_traces, repair_option, replayed_argument, seed_option
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
@seed_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    calls: int,
    output: Path | None,
    seed: int,
    repair: bool,
    as_json: bool,
) -> None:
    """Try whether a heap lasts.

    Loops at constant live bytes, made from a trace's sizes, and the trace again and again, go on until what a heap
    covers is flat, or for so many calls. A heap lasts where it grows by no more than 15 %, or 15 % more than best fit,
    after the first 100,000 (a tenth of fewer), and refuses nothing in twice the memory that its live blocks take,
    unless best fit refuses about as early there.
    """
    from heapwright import _api as api

    found = api.stress(read_traces(traces, repair), heaps, calls=calls, seed=seed, output=output)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    from heapwright._cli.tables import print_table
    from heapwright._replay.stress_test import GUARD

    for trace in dict.fromkeys(one.trace for one in found):
        shown = [one for one in found if one.trace == trace]
        loops = list(dict.fromkeys(loop for one in shown for loop in one.footprint_bytes))
        rows = [
            [one.heap, "yes" if one.lasts else "no", f"{one.growth_ratio:.3f}", one.worst]
            + [_grown(one.footprint_bytes.get(loop)) for loop in loops]
            for one in shown
        ]
        headings = ["heap", "lasts", "grows", "most in", *loops]
        print_table(f"KB covered at the end, {trace}", headings, [rows], ["heap", "lasts", "most in"])
        for one in shown:
            if one.lasts_as_best_fit is not None:
                more = f"{100 * (GUARD - 1):.0f} % more"
                told = f"best fit grows {one.lasts_as_best_fit:.3f} times there, and a heap may {more}"
                print_sentences([f"{one.heap} lasts: {told}."])
            if one.refused:
                loops_ = ", ".join(one.refused)
                print_sentences([f"{one.heap} refuses requests where its live blocks fit twice: {loops_}."])


def _grown(footprints: object) -> str:
    return f"{list(footprints.values())[-1] / 1000:,.1f}" if isinstance(footprints, dict) else "-"
