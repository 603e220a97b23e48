"""How near a search comes to a large random sample of the same space: hypervolumes, by seed, beside the baselines.

nice .venv/bin/python bench/search.py examples/lighttpd_server.parquet bench/wide.toml
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import click
import numpy as np
import numpy.typing as npt
from tables import print_json

import heapwright as hw
from heapwright import Space, Study, Trace, WideSpace, pareto

Points = npt.NDArray[np.float64]
Strategy = Literal["search", "latin-hypercube", "random"]
OBJECTIVES = ("footprint_bytes", "accesses")


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("space", type=click.Path(path_type=Path))
@click.option("--sample", default=100_000, show_default=True, help="Recipes drawn at random.")
@click.option("--limit", default=5000, show_default=True, help="Recipes that a search tries.")
@click.option("--seeds", default=5, show_default=True, help="Searches of each kind.")
@click.option("--keep", type=click.Path(path_type=Path), help="Points are kept in this folder, and not made again.")
@click.option(
    "--strategy", "strategies", type=click.Choice(get_args(Strategy)), multiple=True, default=get_args(Strategy)
)
def command(
    trace: Path, space: Path, sample: int, limit: int, seeds: int, keep: Path | None, strategies: tuple[Strategy, ...]
) -> None:
    """Print, as JSON, hypervolumes as shares of that of the sample's front, the zoo belonging to it."""
    read = Trace.read(trace)
    wide = Space.load(space, [read])
    assert isinstance(wide, WideSpace)
    zoo = points(read, wide.recipes())
    drawn = kept(keep, f"sample-{sample}", lambda: points(read, draw(wide, sample)))
    everything = np.concatenate([zoo, drawn])
    found = {
        strategy: [
            kept(keep, f"{strategy}-{limit}-{seed}", partial(searched, read, space, strategy, limit, seed))
            for seed in range(seeds)
        ]
        for strategy in strategies
    }
    told: dict[str, Any] = {
        "trace": read.name,
        "calls": len(read),
        "combinations": len(wide),
        "drawn": len(drawn),
        "limit": limit,
    }
    scales: dict[str, Callable[[Points], Points]] = {"logarithms": np.log, "plain": lambda values: values}
    for name, scale in scales.items():
        scaled = scale(everything)
        front = scaled[pareto.front(scaled, ["min", "min"])]
        reference = scale(zoo).max(axis=0) if name == "logarithms" else front.max(axis=0) * 1.1
        whole = pareto.hypervolume(scaled, reference)
        shares: dict[str, list[float]] = {
            strategy: [round(pareto.hypervolume(scale(one), reference) / whole, 4) for one in each]
            for strategy, each in found.items()
        }
        medians = {strategy: float(np.median(each)) for strategy, each in shares.items()}
        told[name] = {"zoo": round(pareto.hypervolume(scale(zoo), reference) / whole, 4), "median": medians, **shares}
    print_json(told)


def kept(folder: Path | None, name: str, make: Callable[[], Points]) -> Points:
    """What `make` returns, from the folder where it is there."""
    path = folder / f"{name}.npy" if folder else None
    if path and path.exists():
        return np.asarray(np.load(path))
    made = make()
    if path:
        np.save(path, made)
    return made


def draw(space: WideSpace, count: int) -> list[hw.Recipe]:
    """So many different recipes, drawn by their axes."""
    random, tries = np.random.default_rng(12345), 0
    found: dict[str, hw.Recipe] = {}
    while len(found) < count:
        recipe = space.recipe(random.integers(0, space.sizes))
        tries += 1
        if recipe is not None:
            found[recipe.hash] = recipe
    click.echo(f"{count:,} recipes in {tries:,} draws", err=True)
    return list(found.values())


def points(trace: Trace, recipes: Iterable[hw.Recipe]) -> Points:
    """The objectives of the recipes that served everything, float64[n, 2]."""
    replayed = (hw.replay(trace, recipe).metrics for recipe in recipes)
    return np.array([[one[key] for key in OBJECTIVES] for one in replayed if not one["failed"]], float)


def searched(trace: Trace, space: Path, strategy: Strategy, limit: int, seed: int) -> Points:
    """The same of what a search tried."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.duckdb")
        made = Space.load(space, [trace])
        hw.explore(
            trace, path, space=made, objectives=OBJECTIVES, jobs=1, copies=0, strategy=strategy, limit=limit, seed=seed
        )
        with Study.open(path) as study:
            return study.combined.values(OBJECTIVES)[study.combined.eligible(OBJECTIVES)]


if __name__ == "__main__":
    command()
