"""How near a search of a wide space comes to the exact front of the default space, which joins it, and what it costs.

nice .venv/bin/python bench/search.py bench/wide.toml ../shared/data/heap/rec_lua.parquet examples/*.parquet
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

import heapwright as hw
from heapwright import Space, Study, Trace, WideSpace, pareto

Points = npt.NDArray[np.float64]
OBJECTIVES = ("footprint_bytes", "accesses")
CALLS = 8_000
"""The share of each trace that is replayed: its beginning."""

AFTER = (200, 500, 1000, 2000)
"""Recipes tried after which hypervolumes are printed."""


@click.command()
@click.argument("space", type=click.Path(path_type=Path))
@click.argument("traces", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--draws", default=AFTER[-1], show_default=True, help="Recipes drawn at random along the axes.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the exact fronts of the default space here.")
def command(space: Path, traces: tuple[Path, ...], seed: int, draws: int, keep: Path | None) -> None:
    """Print hypervolumes as shares of that of the exact front, up to the worst of the zoo, and CPU time a recipe.

    Also draws at random along the axes. CPU time of the search excludes that of replaying the same
    recipes alone.
    """
    click.echo(f"| trace | zoo | {' | '.join(f'{after:,}' for after in AFTER)} | {draws:,} drawn | ms of search |")
    click.echo(f"| --- |{' ---: |' * (len(AFTER) + 3)}")
    for path in traces:
        trace = hw.read_trace(path)
        trace = hw.cut(trace, first=CALLS) if len(trace) > CALLS else trace
        with tempfile.TemporaryDirectory() as folder:
            study, seconds = searched(trace, space, Path(folder), seed)
            zoo, front = exact(trace, keep or Path(folder))
            reference = zoo.max(axis=0)
            whole = pareto.hypervolume(np.concatenate([zoo, front]), reference)
            grown = {item.evaluations: item.hypervolume / whole for item in study.growth()}
            recipes = [recipe for recipe, _, ranked in study.recipes() if ranked]
            alone = in_a_process(trace, recipes)
        drawn = points(trace, draw(Space.load(space, [trace]), draws, seed))
        row = [pareto.hypervolume(zoo, reference) / whole]
        row += [max(share for tried, share in grown.items() if tried <= after) for after in AFTER]
        row += [pareto.hypervolume(np.concatenate([zoo, drawn]), reference) / whole]
        beside = 1000 * (seconds - alone) / len(recipes)
        click.echo(f"| {trace.name} | {' | '.join(f'{share:.3f}' for share in row)} | {beside:.2f} |")


def exact(trace: Trace, folder: Path) -> tuple[Points, Points]:
    """The zoo and the exact front of the default space, as `points`; the study stays in the folder."""
    path = folder / f"{trace.name}-default.duckdb"
    if not path.exists():
        begun = path.with_suffix(".part")
        hw.explore(trace, begun, objectives=OBJECTIVES, tolerance=0, copies=0, stress_test=False)
        begun.rename(path)
    with Study.open(path) as study:
        results = study.combined
        result = np.log(results.values(OBJECTIVES) + 1)
        zoo = np.array([name is not None for name in results.zoo_names]) & results.ranked
        return result[zoo & results.eligible(OBJECTIVES)], result[results.front_rows(OBJECTIVES)]


def searched(trace: Trace, space: Path, folder: Path, seed: int) -> tuple[Study, float]:
    """The study of a search, and its CPU seconds."""
    made = Space.load(space, [trace])
    begun = time.process_time()
    study = hw.explore(
        trace,
        folder / "searched.duckdb",
        space=made,
        objectives=OBJECTIVES,
        copies=0,
        stress_test=False,
        jobs=1,
        limit=AFTER[-1],
        seed=seed,
    )
    return study, time.process_time() - begun


def in_a_process(trace: Trace, recipes: Sequence[hw.Recipe]) -> float:
    """CPU seconds of replaying recipes alone, in a process that has not seen them."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(seconds_of, trace, recipes).result()


def seconds_of(trace: Trace, recipes: Sequence[hw.Recipe]) -> float:
    """The same in this process."""
    hw.replay(trace, "tlsf")
    begun = time.process_time()
    for recipe in recipes:
        hw.replay(trace, recipe)
    return time.process_time() - begun


def draw(space: Space | WideSpace, count: int, seed: int) -> list[hw.Recipe]:
    """Different recipes, drawn by their axes."""
    assert isinstance(space, WideSpace)
    random, result = np.random.default_rng(seed), dict[str, hw.Recipe]()
    while len(result) < count:
        recipe = space.recipe(random.integers(0, space.sizes))
        if recipe is not None:
            result[recipe.hash] = recipe
    return list(result.values())


def points(trace: Trace, recipes: Sequence[hw.Recipe]) -> Points:
    """Logarithms of the objectives of the recipes that served everything, float64[n, 2]."""
    replayed = (hw.replay(trace, recipe).metrics for recipe in recipes)
    info = [[float(item[key] or 0) + 1 for key in OBJECTIVES] for item in replayed if not item["failed"]]
    logarithms: Points = np.log(np.array(info, np.float64).reshape(-1, len(OBJECTIVES)))
    return logarithms


if __name__ == "__main__":
    command()
