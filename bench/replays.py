"""What a replay costs with the index of long walks and without it: CPU time a call, side by side, recipe by recipe.

    .venv/bin/python bench/replays.py TRACE.parquet... [--recipes 100] [--seed 1] [--slowest 5]

Recipes: a random sample of the traces' default space, and the zoo. Without the index (docs/core.md) the engine
walks lists as a device does.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from tables import print_table

import heapwright as hw
from heapwright import Recipe, Space, Trace


@dataclass(frozen=True)
class Cost:
    """What one recipe costs on a trace: CPU nanoseconds a call."""

    name: str
    before: float
    after: float


def recipes(trace: Trace, count: int, seed: int) -> list[tuple[str, str, Recipe]]:
    """(set, name, recipe): some of the default space, and the zoo."""
    space = list(Space.default([trace]).recipes())
    drawn = random.Random(seed).sample(space, min(count, len(space)))
    zoo = [("zoo", recipe.name, recipe) for recipe in hw.zoo()]
    return [("space", recipe.summary(), recipe) for recipe in drawn] + zoo


def nanoseconds(trace: Trace, recipe: Recipe, index: str) -> float:
    """CPU time a call."""
    os.environ["HEAPWRIGHT_INDEX"] = index
    start = time.thread_time_ns()
    hw.replay(trace, recipe)
    return (time.thread_time_ns() - start) / len(trace)


def cost(trace: Trace, name: str, recipe: Recipe) -> Cost:
    return Cost(name, nanoseconds(trace, recipe, "never"), nanoseconds(trace, recipe, ""))


def row(trace: Trace, name: str, costs: Sequence[Cost]) -> list[str]:
    tenth = max(len(costs) // 10, 1)
    slowest = [statistics.fmean(sorted(times)[-tenth:]) for times in _times(costs)]
    before, after = (statistics.fmean(times) for times in _times(costs))
    slower = sum(item.after > 1.2 * item.before for item in costs)
    numbers = [before, after, statistics.median(item.after for item in costs), *slowest]
    return [trace.name, name, str(len(costs)), *(f"{number:,.0f}" for number in numbers), str(slower)]


def _times(costs: Sequence[Cost]) -> tuple[list[float], list[float]]:
    return [item.before for item in costs], [item.after for item in costs]


@click.command()
@click.argument("paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--recipes", "count", default=100, show_default=True, help="Recipes drawn from the default space.")
@click.option("--seed", default=1, show_default=True)
@click.option("--slowest", default=0, help="Number of recipes to show that take longest with the index.")
def main(paths: Sequence[Path], count: int, seed: int, slowest: int) -> None:
    """Time replays on traces and print tables."""
    sections = []
    for path in paths:
        trace = Trace.read(path)
        costs: dict[str, list[Cost]] = {}
        for kind, name, recipe in recipes(trace, count, seed):
            costs.setdefault(kind, []).append(cost(trace, name, recipe))
        sections.append([row(trace, kind, result) for kind, result in costs.items()])
        every = [item for result in costs.values() for item in result]
        for item in sorted(every, key=lambda item: -item.after)[:slowest]:
            click.echo(f"{item.after:10,.0f} ns, before {item.before:10,.0f}: {item.name}", err=True)
    headings = ["trace", "set", "recipes", "without", "with", "median", "slowest tenth without", "with"]
    print_table("Nanoseconds of CPU time a call", [*headings, "> 1.2 x slower"], sections)


if __name__ == "__main__":
    main()
