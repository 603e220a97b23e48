"""Which pairs of a recipe and a trace does the engine replay slowly? Random recipes of every kind on random traces.

    .venv/bin/python bench/cliffs.py [--pairs 5000] [--seed 1] [--slowest 10] [--bound 1000] [--most N] [TRACE]...

CPU nanoseconds a call, of a pair above the bound the least of two replays. Random traces have a few calls
or some thousands, small objects, large ones, or many alive; those that are named are drawn, too.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from tables import print_table

import heapwright as hw
from heapwright import Recipe, Trace

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from recipes_random import random_recipe  # noqa: E402


@dataclass(frozen=True)
class Cost:
    """What a pair costs: CPU nanoseconds and metadata accesses a call."""

    nanoseconds: float
    accesses: float
    trace: str
    recipe: Recipe


def random_trace(draw: random.Random) -> Trace:
    """A valid trace of mallocs, frees and some reallocs; objects live long or short, and are small or large."""
    calls, live = draw.choice([3_000, 10_000, 30_000]), draw.choice([20, 200, 2_000, 5_000])
    least, most = draw.choice([(0, 8), (3, 11), (0, 16), (12, 20)])  # as powers of two
    resized = draw.choice([0.0, 0.1, 0.3])
    alive: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for number in range(calls):
        kind, size = draw.random(), int(2 ** draw.uniform(least, most))
        if alive and kind < resized:
            rows.append((hw.REALLOC, draw.choice(alive), size))
        elif alive and draw.random() < len(alive) / (2 * live):
            at = draw.randrange(len(alive))
            alive[at], alive[-1] = alive[-1], alive[at]
            rows.append((hw.FREE, alive.pop(), 0))
        else:
            rows.append((hw.MALLOC, number, size))
            alive.append(number)
    op, id_, size = np.array(rows).T
    name = f"{calls} calls, {live} live, 2^{least} to 2^{most} bytes, {resized:.0%} resized"
    return Trace.from_columns(op=op, id=id_, size=size, name=name)


def pairs(count: int, seed: int, named: Sequence[Trace]) -> Iterator[tuple[Trace, Recipe]]:
    """Pairs of which ten recipes in a row meet one trace."""
    draw = random.Random(seed)
    for at in range(count):
        if at % 10 == 0:
            trace = draw.choice(named) if named and draw.random() < 0.5 else random_trace(draw)
        yield trace, random_recipe(draw)


def cost(trace: Trace, recipe: Recipe, bound: float) -> Cost | None:
    """What the pair costs, the least of two times where one exceeds the bound; None where the recipe cannot begin."""
    best, accesses = float("inf"), 0.0
    for _ in range(2):
        if best <= bound:
            break
        start = time.thread_time_ns()
        try:
            accesses = float(hw.replay(trace, recipe).metrics["accesses"] or 0)
        except hw.HeapwrightError:
            return None
        best = min(best, (time.thread_time_ns() - start) / len(trace))
    return Cost(best, accesses / len(trace), trace.name, recipe)


@click.command()
@click.argument("paths", metavar="[TRACE]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--pairs", "count", default=5000, show_default=True, help="Pairs of a recipe and a trace.")
@click.option("--seed", default=1, show_default=True)
@click.option("--bound", default=1000.0, show_default=True, help="Nanoseconds a call that no pair is to exceed.")
@click.option("--most", type=int, help="Fail where more pairs do.")
@click.option("--slowest", default=10, show_default=True, help="Number of slowest pairs to show.")
def main(paths: Sequence[Path], count: int, seed: int, bound: float, most: int | None, slowest: int) -> None:
    """Time pairs and print the slowest; status 1 where too many exceed the bound."""
    named = [Trace.read(path) for path in paths]
    costs = []
    for trace, recipe in pairs(count, seed, named):
        if result := cost(trace, recipe, bound):
            costs.append(result)
            if result.nanoseconds > bound:
                click.echo(f"{result.nanoseconds:10,.0f} ns: {trace.name}: {recipe.summary()}", err=True)
    costs.sort(key=lambda item: -item.nanoseconds)
    over = sum(item.nanoseconds > bound for item in costs)
    rows = [
        [f"{item.nanoseconds:,.0f}", f"{item.accesses:,.0f}", item.trace, item.recipe.summary()]
        for item in costs[:slowest]
    ]
    title = f"{len(costs):,} pairs, {over:,} of them above {bound:,.0f} ns a call: the slowest"
    print_table(title, ["ns a call", "accesses", "trace", "recipe"], [rows], left=["trace", "recipe"])
    if most is not None and over > most:
        sys.exit(1)


if __name__ == "__main__":
    main()
