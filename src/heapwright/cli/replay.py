"""`heapwright replay`: run traces on heaps and print the metrics."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.options import (
    ListOptionCommand,
    energy_option,
    heap_option,
    read_energy_table,
    read_traces,
    repair_option,
    traces_argument,
)
from heapwright.cli.output import json_option, print_json


@click.command(cls=ListOptionCommand)
@traces_argument
@heap_option
@click.option("--arena", type=click.IntRange(min=1), metavar="BYTES", help="Size of the arena; default is ample.")
@click.option("--time", "timed", is_flag=True, help="Measure host time too (ns_per_event).")
@click.option("--fit", "fitted", is_flag=True, help="Find the smallest arena too (smallest_arena_bytes).")
@energy_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    arena: int | None,
    timed: bool,
    fitted: bool,
    energy_table: Path | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Run traces on heaps and print the metrics. Requests that a heap refuses are counted, and the replay goes on."""
    from heapwright.metrics import with_energy
    from heapwright.recipes import resolve_heap
    from heapwright.replay import replay

    table = read_energy_table(energy_table)
    recipes = {heap: resolve_heap(heap) for heap in heaps}
    traces_read = read_traces(traces, repair)
    results = {
        (trace.name, heap): with_energy(replay(trace, recipe, arena=arena, time=timed, fit=fitted), table)
        for trace in traces_read
        for heap, recipe in recipes.items()
    }
    if as_json:
        print_json([{"trace": name, "heap": heap, "metrics": found} for (name, heap), found in results.items()])
        return
    from heapwright.cli.tables import print_metrics

    for trace in traces_read:
        print_metrics(f"Metrics on {trace.name}", {heap: results[trace.name, heap] for heap in recipes})
