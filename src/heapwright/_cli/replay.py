"""`heapwright replay`: run traces on heaps and print the metrics."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Literal

import click

from heapwright._cli.options import (
    arena_option,
    heap_option,
    read_traces,
    replayed_argument,
    word_size_option,
)
from heapwright._cli.output import check_errors, json_option, print_rows, print_sentences


@click.command()
@replayed_argument
@heap_option
@arena_option
@click.option("--time", "timed", is_flag=True, help="Measure host time too (ns_per_event).")
@word_size_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    arena: int | None,
    timed: bool,
    word_size: Literal[32, 64] | None,
    as_json: bool,
) -> None:
    """Replay traces on heaps and print the metrics. Failed requests are counted, and the replay continues.

    Foreign heaps are programs: the file of --heap, and the adapter next to it, is compiled and run with your rights.
    """
    from heapwright import _api as api

    recordings = read_traces(traces)
    result = api.replay(recordings, heaps, arena=arena, time=timed, word_size=word_size)
    assert isinstance(result, list)
    check_errors(result)
    if as_json:
        print_rows(result)
        return
    from heapwright._cli.tables import print_metrics, short_names

    names = short_names(item.heap for item in result)

    for trace, rows in groupby(result, lambda item: item.trace):
        shown = list(rows)
        columns = {}
        for item in shown:
            columns[names[item.heap]] = item.metrics
            columns |= {f"{names[item.heap]}, {name}": metrics for name, metrics in item.memories.items()}
        print_metrics(f"Metrics on {trace}", columns)
        for item in shown:
            if item.error:
                print_sentences([f"No metrics: {item.error}"])
            elif item.failed_low is not None:
                low, failed = item.failed_low, int(item.metrics["failed"] or 0)
                print_sentences([f"{item.heap}: {low:,} requests of low priority failed, and {failed - low:,} others."])
