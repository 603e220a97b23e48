"""Two threads on one heap: the lock, caches before it, and the libraries that programs are linked with, as CPU time.

    .venv/bin/python bench/threads.py [--quick] TRACE...

`make bench` has the same table over all its traces. Each thread makes all calls of the trace, for objects of its own; a
realloc is a free and a malloc. What counts is CPU time of the threads from their first call to their last, over the
calls; heaps in turn. bench/README.md says more.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean

import click
from contenders import libraries
from measuring import FULL, QUICK, times
from tables import print_json, print_table
from traces import cut, without_realloc

import heapwright as hw
from heapwright import Trace

THREADED = "victim-bins"
"""The recipe that is measured with a lock and with caches."""

THREADED_CALLS = 100_000
"""Longer traces are cut here."""

LOCKED, CACHED = "lock x2", "cached x2"


def threaded_programs(bench: hw.timing.Bench) -> dict[str, hw.timing.TimedProgram]:
    """Every heap that is there for two threads, and the recipe for one, too."""
    recipe = hw.zoo(THREADED)
    results = {"none x1": bench.generated(recipe, "-DTHREADS=1")}
    for threads in ("lock", "cached"):
        shared = recipe.from_dict(recipe.to_dict() | {"threads": threads})
        results |= {f"{threads} x{count}": bench.generated(shared, f"-DTHREADS={count}") for count in (1, 2)}
    for item in libraries()[0]:
        preload = item.heap.library or None
        results[f"{item.name} x2"] = bench.library(preload, "-DTHREADS=2")
    return results


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--quick", is_flag=True, help="A smoke test: one round.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON on stdout.")
def main(traces: tuple[Path, ...], quick: bool, as_json: bool) -> None:
    """Measure, and print nanoseconds of CPU time a call, and what caches make of the lock."""
    results = {}
    with hw.timing.Bench() as bench:
        programs = threaded_programs(bench)
        for path in traces:
            trace = cut(without_realloc(Trace.read(path)), THREADED_CALLS)
            results[trace.name] = times(bench, programs, trace, QUICK if quick else FULL)
    if as_json:
        print_json({"heap": THREADED, "ns_threads": results})
    else:
        print_threads(results)


def print_threads(result: Mapping[str, Mapping[str, float]]) -> None:
    """Print the times of one thread and of two, by trace and heap, and what caches make of the lock."""
    heaps = list(next(iter(result.values())))
    ratios = [ns[CACHED] / ns[LOCKED] for ns in result.values()]
    rows = [
        [trace, *(f"{ns[name]:.1f}" for name in heaps), f"{ratio:.3f}"]
        for (trace, ns), ratio in zip(result.items(), ratios, strict=True)
    ]
    foot = [["geometric mean", *[""] * len(heaps), f"{geometric_mean(ratios):.3f}"]]
    title = f"{THREADED} with several threads: CPU time of a call in ns"
    print_table(title, ["trace", *heaps, f"{CACHED} / {LOCKED}"], [rows, foot], left=("trace",))


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"threads: {error}")
