"""`heapwright fit`: find the smallest arena that serves a whole trace."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.options import (
    heap_option,
    read_heaps,
    read_traces,
    repair_option,
    replayed_argument,
    word_size_option,
)
from heapwright.cli.output import json_option, print_json


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
    word_size: str | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Find the smallest arena that serves a whole trace, control data counted."""
    from heapwright.heaps import fit_each

    named = read_heaps(heaps, word_size)
    found = {trace.name: fit_each(trace, named, step=step) for trace in read_traces(traces, repair)}
    rows = [(trace, heap, *fitted) for trace, sizes in found.items() for heap, fitted in sizes.items()]
    if as_json:
        keys = ("trace", "heap", "smallest_arena_bytes", "error")
        print_json([dict(zip(keys, row if row[-1] else row[:-1], strict=False)) for row in rows])
        return
    from heapwright.cli.tables import number, print_table

    cells = [[trace, heap, number("smallest_arena_bytes", size)] for trace, heap, size, _ in rows]
    print_table("Smallest arenas", ["trace", "heap", "bytes"], [cells], left=("trace", "heap"))
    for *_, error in rows:
        if error:
            click.echo(f"No arena: {error}")
