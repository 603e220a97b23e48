"""How the zoo's all-round heap was chosen: designs on one half of the traces, and the same table for the other half.

    .venv/bin/python bench/all_round.py [DIR]

Traces: the Parquet files of DIR/heap and DIR/synthetic, ../shared/data by default, cut as in traces.py. Of all names in
alphabetical order every other one, from the first, is for choosing; nothing was tried on those between.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click
from contenders import Contender, generated, original
from measuring import FULL, times
from tables import print_table
from traces import DEFAULT_TRACES, cut, trace_files, without_realloc

import heapwright as hw
from heapwright import RECOMMENDED, Trace

REFERENCE = "dlmalloc"


def halves(folder: Path) -> dict[str, list[Trace]]:
    """The traces to choose by, and those that were kept back."""
    paths = sorted([*trace_files(folder / "heap"), *trace_files(folder / "synthetic")], key=lambda path: path.name)
    traces = [cut(Trace.read(path)) for path in paths]
    return {"chosen on": traces[0::2], "kept back": traces[1::2]}


def designs() -> Iterator[tuple[str, hw.Recipe]]:
    """The chosen heap, and others: lists before it, kept or flushed, and pools that search otherwise."""
    chosen = hw.zoo(RECOMMENDED)
    (general,) = chosen.to_dict()["pool"]
    quick = {"kind": "quick", "keep": "apart"}
    growing = {"flush": "before-growing"}

    def built(*pools: Mapping[str, Any]) -> hw.Recipe:
        return chosen.from_dict({"align": chosen.align, "pool": list(pools)})

    yield RECOMMENDED, chosen
    yield "fast", hw.zoo("fast")
    for up_to in (64, 128, 256):
        yield f"lists up to {up_to}", built(quick | {"up_to": up_to}, general)
        yield f"lists up to {up_to}, emptied as it grows", built(quick | growing | {"up_to": up_to}, general)
    for key, value in (("close_bins", 4), ("close_bins", 12), ("linear_up_to", 1024), ("victim_up_to", 500)):
        yield f"{key} {value}", built(general | {key: value})


def measured(bench: hw.timing.Bench, trace: Trace, heaps: Sequence[Contender]) -> dict[str, tuple[float, float]]:
    """Arena and time of each heap over the reference's."""
    timed = without_realloc(trace)
    programs = {heap.name: result[0] for heap in heaps if (result := heap.programs(bench, timed))}
    taken = times(bench, programs, timed, FULL)
    arenas = {heap.name: heap.smallest_arena(trace) or 0 for heap in heaps}
    return {
        name: (arenas[name] / arenas[REFERENCE], time / taken[REFERENCE])
        for name, time in taken.items()
        if name != REFERENCE
    }


def rows(result: Sequence[Mapping[str, tuple[float, float]]]) -> list[list[str]]:
    table = []
    for name in result[0]:
        arenas, times = zip(*(item[name] for item in result), strict=True)
        numbers = (geometric_mean(arenas), max(arenas), geometric_mean(times), max(times))
        table.append([name, *(f"{number:.3f}" for number in numbers)])
    return table


@click.command()
@click.argument("folder", default=DEFAULT_TRACES, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print arenas and times of the designs over dlmalloc's, for each half of the traces."""
    with hw.timing.Bench() as bench:
        heaps = [original(REFERENCE), *(generated(name, recipe, bench.folder) for name, recipe in designs())]
        for half, traces in halves(folder).items():
            table = rows([measured(bench, trace, heaps) for trace in traces])
            headings = ["design", "arena", "at most", "time", "at most"]
            print_table(f"{half} ({', '.join(trace.name for trace in traces)}), over {REFERENCE}", headings, [table])


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"bench: {error}")
