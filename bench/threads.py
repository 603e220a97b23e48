"""Two threads on one heap: the lock, caches before it, and the libraries that programs are linked with, as CPU time.

    .venv/bin/python bench/threads.py TRACE...

Each thread makes all calls of the trace, for objects of its own; a realloc is a free and a malloc. What counts is CPU
time of the threads from their first call to their last, over the calls; heaps in turn. bench/README.md says more.
"""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from statistics import geometric_mean

import click
from run import cut, without_realloc

import heapwright as hw
from heapwright.cli.tables import print_table
from heapwright.host.timing import Bench, Program
from heapwright.recipes.recipe import Recipe
from heapwright.traces.trace import Trace

HEAP = "victim-bins"
LIBRARIES = {"mimalloc": "libmimalloc.so*", "jemalloc": "libjemalloc.so*", "tcmalloc": "libtcmalloc_minimal.so*"}
CALLS = 100_000
"""A heap makes at least so many calls in a round, so that what a short trace starts with does not count."""


def programs(bench: Bench) -> dict[str, Program]:
    """Every heap that is there, for one thread and for two."""
    data = hw.zoo(HEAP).to_dict()
    found = {"none x1": bench.generated(Recipe.from_dict(data), "-DTHREADS=1")}
    for threads in ("lock", "cached"):
        recipe = Recipe.from_dict(data | {"threads": threads})
        found |= {f"{threads} x{count}": bench.generated(recipe, f"-DTHREADS={count}") for count in (1, 2)}
    libraries = {name: sorted(glob.glob(f"/usr/lib/*/{pattern}")) for name, pattern in LIBRARIES.items()}
    for name, paths in {"glibc": [None], **libraries}.items():
        for path in paths[:1]:
            found |= {f"{name} x{count}": bench.library(path, f"-DTHREADS={count}") for count in (1, 2)}
    return found


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(traces: tuple[Path, ...]) -> None:
    """Measure, and print nanoseconds of CPU time a call, and what caches make of the lock."""
    with Bench() as bench:
        heaps = programs(bench)
        rows, ratios = [], []
        for path in traces:
            trace = without_realloc(cut(Trace.read(path)))
            times = bench.measure(heaps, trace, 3, max(3, CALLS // len(trace)))
            ratios.append(times["cached x2"] / times["lock x2"])
            rows.append([trace.name, *(f"{time:.1f}" for time in times.values()), f"{ratios[-1]:.3f}"])
    foot = [["geometric mean", *[""] * len(heaps), f"{geometric_mean(ratios):.3f}"]]
    title = f"{HEAP}: CPU time of a call in ns, one thread and two"
    print_table(title, ["trace", *heaps, "cached / lock x2"], [rows, foot], left=("trace",))


if __name__ == "__main__":
    try:
        main()
    except hw.HeapwrightError as error:
        sys.exit(f"threads: {error}")
