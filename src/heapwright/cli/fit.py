"""`heapwright fit`: find the smallest arena that serves a whole trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright.cli.options import (
    heap_option,
    read_traces,
    repair_option,
    replayed_argument,
    word_size_option,
)
from heapwright.cli.output import check_errors, json_option, print_rows
from heapwright.files.names import printable

if TYPE_CHECKING:
    from heapwright.api import Fit


@click.command()
@replayed_argument
@heap_option
@click.option("--step", type=click.IntRange(min=1), metavar="BYTES", help="Precision; default one alignment unit.")
@word_size_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    step: int | None,
    word_size: Literal[32, 64] | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Find the arena to reserve: the smallest that serves a whole trace, and the least from which on every one does.

    Both count control data. Where nothing proves that larger arenas serve, many are tried.

    Foreign heaps are programs: what --heap names, and the adapter beside it, is compiled and run with your rights.
    """
    from heapwright import api

    found = api.fit(read_traces(traces, repair), heaps, step=step, word_size=word_size)
    assert isinstance(found, list)
    check_errors(found)
    if as_json:
        print_rows(found)
        return
    from heapwright.cli.tables import number, print_table

    cells = [
        [
            fit.trace,
            fit.heap,
            number("smallest_arena_bytes", fit.smallest_arena_bytes),
            number("safe_arena_bytes", fit.safe_arena_bytes),
            _how_sure(fit),
            "-" if fit.reach_bytes is None else f"{fit.reach_bytes:,}",
        ]
        for fit in found
    ]
    headings = ["trace", "heap", "smallest arena", "safe arena", "how sure", "reach"]
    print_table("Arenas in bytes", headings, [cells], left=("trace", "heap", "how sure"))
    for fit in found:
        if fit.error:
            click.echo(printable(f"No arena: {fit.error}"))


def _how_sure(fit: Fit) -> str:
    if fit.safe_arena_bytes is None:
        return "-"
    return "proved" if fit.safe_proved else f"{fit.safe_tried:,} larger ones tried"
