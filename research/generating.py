"""What writing the C of a recipe costs: CPU time for the first recipe of a process, and for each further one.

    PYTHONPATH=bench .venv/bin/python research/generating.py [TRACE.parquet...] [--recipes 60] [--seed 1]

Recipes: a random sample of the traces' default space, then the zoo, then the first ones again, all in one
process. What is kept of one recipe serves the next where both leave the same of a function; only the last row has whole
recipes again.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from tables import print_table

import heapwright as hw
from heapwright import Recipe, Space, Trace, generated_files

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = ("mosquitto_broker", "lighttpd_server")

FIRST = """
import time
import heapwright as hw
recipe, generated_files = hw.zoo("tlsf"), hw.generated_files
start = time.process_time()
generated_files(recipe)
print(1000 * (time.process_time() - start))
"""


def first(times: int) -> list[float]:
    """CPU milliseconds of the first recipe in processes of their own: the generator is loaded, and the core read."""
    command = [sys.executable, "-c", FIRST]
    return [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(times)]


def each(recipes: Sequence[Recipe]) -> list[float]:
    """CPU milliseconds of each recipe, one after the other."""
    results = []
    for recipe in recipes:
        start = time.process_time()
        generated_files(recipe)
        results.append(1000 * (time.process_time() - start))
    return results


def row(name: str, times: Sequence[float]) -> list[str]:
    tenth = sorted(times)[-max(len(times) // 10, 1)]
    numbers = [statistics.median(times), statistics.fmean(times), tenth, max(times)]
    return [name, str(len(times)), *(f"{number:.1f}" for number in numbers)]


@click.command()
@click.argument("paths", metavar="[TRACE...]", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--recipes", "count", default=60, show_default=True, help="Recipes drawn from the default space.")
@click.option("--seed", default=1, show_default=True)
def main(paths: Sequence[Path], count: int, seed: int) -> None:
    """Time the generator and print a table."""
    traces = [Trace.read(path) for path in paths or [EXAMPLES / f"{name}.parquet" for name in NAMES]]
    space = list(Space.default(traces).recipes())
    drawn = random.Random(seed).sample(space, min(count, len(space)))
    rows = [row("first of a process", first(5))]
    generated_files(hw.zoo("tlsf"))
    rows.append(row("default space", each(drawn)))
    rows.append(row("zoo", each(hw.zoo())))
    rows.append(row("default space, again", each(drawn)))
    headings = ["recipes", "number", "median", "mean", "slowest tenth from", "longest"]
    print_table("Milliseconds of CPU time to write the C of a recipe", headings, [rows])


if __name__ == "__main__":
    main()
