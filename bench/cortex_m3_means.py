"""Mean instructions of a malloc and its free on an emulated Cortex-M3, over the second recordings of programs.

    .venv/bin/python bench/cortex_m3_means.py [--recommend] [--calls N] [--programs NAME,...] [FOLDER...]

docs/zoo/all-round.md and docs/robustness.md quote such means. A FOLDER holds pairs of recordings, NAME_a.parquet and
NAME_b.parquet; bench/pairs is the default. Each allocator is replayed on the second recording of each program, cut
after N calls. A realloc is replayed as a free and a malloc, as in bench/target.py. With --recommend the balanced
recommendation of an exploration of the first recording is measured, too: minutes a program. Each counts once.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean

import click
from tables import print_table
from traces import without_realloc

import heapwright as hw
from heapwright import Trace

HEAPS = ("all-round", "fast", "small-lists")
RECOMMENDED = "recommendation"
CPU = "cortex-m3"
KINDS = ("malloc", "free")
PAIRS = Path(__file__).with_name("pairs")


def pairs(folders: tuple[Path, ...], names: set[str]) -> Iterator[tuple[str, Path, Path]]:
    """Program, first and second recording."""
    for folder in folders or (PAIRS,):
        for first in sorted(folder.glob("*_a.parquet")):
            name = first.stem.removesuffix("_a")
            if (second := first.with_name(f"{name}_b.parquet")).exists() and (not names or name in names):
                yield name, first, second


def recommended(trace: Trace) -> hw.Recipe:
    """The balanced recommendation of an exploration of a recording."""
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as folder:
        return hw.explore(trace, Path(folder) / "study.duckdb").pick("balanced").recipe


def instructions(heap: hw.Recipe, trace: Trace) -> tuple[float, int]:
    """Mean of a malloc and a free together, and the most of one malloc."""
    calls = hw.measure(heap, trace, cpu=CPU)["calls"]
    return sum(float(calls[kind]["instructions_mean"]) for kind in KINDS), int(calls["malloc"]["instructions_max"])


def rows(measured: Mapping[str, Mapping[str, tuple[float, int]]]) -> list[list[str]]:
    """A row for each allocator: the mean over the programs, the most of one malloc, and each program's mean."""
    table = []
    for heap, by_program in measured.items():
        pair = [item for item, _ in by_program.values()]
        most = max(item for _, item in by_program.values())
        table.append([heap, f"{mean(pair):.1f}", f"{most:,}", *(f"{item:.1f}" for item in pair)])
    return table


@click.command()
@click.option("--recommend", is_flag=True, help="Measure the recommendation for the first recording, too.")
@click.option("--calls", type=click.IntRange(min=1), default=100_000, show_default=True, help="Of each recording.")
@click.option("--programs", default="", help="Names, separated by commas; default all.")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(recommend: bool, calls: int, programs: str, folders: tuple[Path, ...]) -> None:
    """Print the table."""
    measured: dict[str, dict[str, tuple[float, int]]] = {heap: {} for heap in HEAPS}
    if recommend:
        measured[RECOMMENDED] = {}
    names = []
    for name, first, second in pairs(folders, set(filter(None, programs.split(",")))):
        names.append(name)
        trace = without_realloc(hw.cut(Trace.read(second), first=calls))
        for heap in HEAPS:
            measured[heap][name] = instructions(hw.zoo(heap), trace)
        if recommend:
            measured[RECOMMENDED][name] = instructions(recommended(Trace.read(first)), trace)
    if not names:
        raise hw.HeapwrightError("no pairs of recordings of these names")
    headings = ["allocator", f"mean of {len(names)}, instructions a malloc and free", "most of a malloc", *names]
    print_table(f"On a {CPU}, second recordings", headings, [rows(measured)])


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"bench: {error}")
