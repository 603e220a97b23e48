"""`heapwright replay`: run traces on heaps and print the metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright.cli.options import (
    energy_option,
    heap_option,
    read_energy_table,
    read_heaps,
    read_traces,
    repair_option,
    replayed_argument,
    word_size_option,
)
from heapwright.cli.output import json_option, print_json

if TYPE_CHECKING:
    from heapwright.heaps import Outcome


@click.command()
@replayed_argument
@heap_option
@click.option("--arena", type=click.IntRange(min=1), metavar="BYTES", help="Size of the arena; default is ample.")
@click.option("--time", "timed", is_flag=True, help="Measure host time too (ns_per_event).")
@click.option("--fit", "fitted", is_flag=True, help="Find the smallest arena too (smallest_arena_bytes).")
@word_size_option
@energy_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    arena: int | None,
    timed: bool,
    fitted: bool,
    word_size: str | None,
    energy_table: Path | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Run traces on heaps and print the metrics. Requests that a heap refuses are counted, and the replay goes on."""
    from heapwright.heaps import replay_each

    table = read_energy_table(energy_table)
    named = read_heaps(heaps, word_size)
    results = {
        trace.name: replay_each(trace, named, arena=arena, time=timed, fit=fitted, energy=table)
        for trace in read_traces(traces, repair)
    }
    if as_json:
        print_json([_row(trace, heap, found) for trace, rows in results.items() for heap, found in rows.items()])
        return
    from heapwright.cli.tables import print_metrics

    for trace, rows in results.items():
        print_metrics(f"Metrics on {trace}", {heap: found.metrics for heap, found in rows.items()})
        for found in rows.values():
            if found.error:
                click.echo(f"No metrics: {found.error}")


def _row(trace: str, heap: str, found: Outcome) -> dict[str, object]:
    row: dict[str, object] = {"trace": trace, "heap": heap, "metrics": found.metrics}
    return row if found.error is None else {**row, "error": found.error}
