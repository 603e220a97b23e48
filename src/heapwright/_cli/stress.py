"""`heapwright stress`: growth and failures of heaps in long loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright._cli.options import heap_option, read_traces, replayed_argument
from heapwright._cli.output import json_option, print_json, print_sentences

if TYPE_CHECKING:
    from heapwright._api import StressTestResult


@click.command()
@replayed_argument
@heap_option
@click.option(
    "--calls",
    type=click.IntRange(min=10_000),
    metavar="N",
    default=10_000_000,
    show_default=True,
    help="Maximum calls of each loop.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw the footprints: FILE.svg or FILE.html.",
)
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    calls: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Stress-test heaps: long loops at constant live memory, which show leaks and fragmentation.

    Nine loops made from the sizes of a trace, and the trace again and again, run until the footprint is flat, or for
    --calls calls. A heap is stable if its footprint grows by at most 15 %, or by 15 % more than that of best fit, after
    the first 100,000 calls (of shorter loops after the first tenth), and if no allocation fails in twice the live
    memory, unless best fit fails about as early.
    """
    from heapwright import _api as api

    result = api.stress(read_traces(traces), heaps, calls=calls, output=output)
    if as_json:
        print_json([{**asdict(item), "lasts": item.stable} for item in result])
        return
    for trace in dict.fromkeys(item.trace for item in result):
        of_trace = [item for item in result if item.trace == trace]
        _print_table(trace, of_trace)
        for item in of_trace:
            print_sentences(_remarks(item))


def _print_table(trace: str, result: Sequence[StressTestResult]) -> None:
    from heapwright._cli.tables import print_table

    loops = list(dict.fromkeys(loop for item in result for loop in item.footprint_bytes))
    rows = [
        [item.heap, "yes" if item.stable else "no", f"{item.growth_ratio - 1:.1%}", item.worst]
        + [_last_footprint(item.footprint_bytes.get(loop)) for loop in loops]
        for item in result
    ]
    headings = ["heap", "stable", "growth", "worst loop", *loops]
    print_table(f"Stress test of {trace}: footprint at the end, KB", headings, [rows], ["heap", "stable", "worst loop"])


def _remarks(item: StressTestResult) -> list[str]:
    from heapwright._replay.stress_test import GUARD

    remarks = []
    if item.growth_of_best_fit is not None:
        limit = f"{100 * (GUARD - 1):.0f} % more than best fit, which grows {item.growth_of_best_fit - 1:.1%} there"
        remarks.append(f"{item.heap} is stable: it may grow {limit}.")
    if item.refused:
        loops = ", ".join(item.refused)
        remarks.append(f"{item.heap} fails allocations in twice the live memory, in: {loops}.")
    return remarks


def _last_footprint(footprints: Mapping[int, int] | None) -> str:
    return f"{list(footprints.values())[-1] / 1000:,.1f}" if footprints else "-"
