"""`heapwright fit`: find the smallest arena that serves a whole trace."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.options import ListOptionCommand, heap_option, read_traces, repair_option, traces_argument
from heapwright.cli.output import json_option, print_json


@click.command(cls=ListOptionCommand)
@traces_argument
@heap_option
@click.option("--step", type=click.IntRange(min=1), metavar="BYTES", help="Precision; default one alignment unit.")
@repair_option
@json_option
def command(traces: tuple[Path, ...], heaps: tuple[str, ...], step: int | None, repair: bool, as_json: bool) -> None:
    """Find the smallest arena that serves a whole trace, control data counted."""
    from heapwright.recipes import resolve_heap
    from heapwright.replay import fit

    recipes = {heap: resolve_heap(heap) for heap in heaps}
    traces_read = read_traces(traces, repair)
    smallest = {
        (trace.name, heap): fit(trace, recipe, step=step) for trace in traces_read for heap, recipe in recipes.items()
    }
    if as_json:
        keys = ("trace", "heap", "smallest_arena_bytes")
        print_json([dict(zip(keys, (*names, size), strict=True)) for names, size in smallest.items()])
        return
    from heapwright.cli.tables import number, print_table

    rows = [[*names, number("smallest_arena_bytes", size)] for names, size in smallest.items()]
    print_table("Smallest arenas", ["trace", "heap", "bytes"], [rows], left=("trace", "heap"))
