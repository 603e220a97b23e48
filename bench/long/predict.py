"""How well a short recording predicts the memory that heaps need in a long run.

For each program NAME there is a short recording FOLDER/NAME_a.parquet and a long run FOLDER/NAME_long.parquet of
another seed. The need of a recipe is its footprint on the long run. It is predicted by its footprint on the recording,
on perturbed copies of it, by the stress test's growth, and on resampled futures. Compared by Spearman's rank
correlation: over all recipes, and over those that need at most `NEAR` times the least.

Recipes: the zoo at alignment 8, exact bins with six last remainders, and recipes of the default space near the Pareto
front of footprint and accesses on the recording. Recipes that refuse a request on the recording or on the long run, or
need more than `FAR` times the least on the recording, are left out: no one would choose them.

    python bench/long/predict.py FOLDER NAME... --cache FOLDER

Needs are kept in the cache, so that another predictor costs its own replays only.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import heapwright as hw

NEAR = 1.3
FAR = 2.2
TRIED = 500
"""Recipes of the default space that are replayed on the recording to find some near the front."""
NEAREST, FURTHER = 22, 12
"""How many recipes nearest to the front are compared, and how many at random of the 120 that follow."""
REMAINDERS = (0, 68, 260, 516, 1004, 2000)
EXACT = 'align = 8\n[[pool]]\nkind = "general"\nbins = "exact"\nbins_per_octave = 2\nfit = "best"\nsearch_most = 16\n'

Needs = dict[str, float]
Floats = NDArray[np.float64]


class Pair:
    """A short recording and a long run of one program, with what recipes need on them.

    Attributes:
        name: the program.
        recipes: by name or id.
        kept: needs by the label of what they were found on.
    """

    def __init__(self, folder: Path, name: str, cache: Path) -> None:
        self.name = name
        self._paths = {kind: folder / f"{name}_{kind}.parquet" for kind in ("a", "long")}
        self._file = cache / f"{name}.json"
        self.kept: dict[str, Needs] = {}
        if self._file.exists():
            stored = json.loads(self._file.read_text(encoding="utf-8"))
            self.kept = stored["needs"]
            self.recipes = {key: hw.Recipe.parse(text) for key, text in stored["recipes"].items()}
        else:
            self.recipes = recipes_near(self.trace("a"))
            self._store()
        self._traces: dict[str, hw.Trace] = {}

    def trace(self, kind: str) -> hw.Trace:
        """The recording or the long run."""
        return hw.read_trace(self._paths[kind])

    def needs(self, label: str, trace: Callable[[], hw.Trace]) -> Needs:
        """Footprint of each recipe on a trace; infinite where a request is refused. Kept under the label."""
        kept = self.kept.setdefault(label, {})
        if missing := [key for key in self.recipes if key not in kept]:
            made = trace()
            kept[".peak"] = float(made.peak_live_bytes)
            for key in missing:
                kept[key] = need(made, self.recipes[key])
                self._store()
        return kept

    def keep(self, label: str, needs: Needs) -> None:
        """Keep needs that were found otherwise."""
        self.kept[label] = needs
        self._store()

    def _store(self) -> None:
        recipes = {key: recipe.to_toml() for key, recipe in self.recipes.items()}
        text = json.dumps({"recipes": recipes, "needs": self.kept}, indent=0)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, encoding="utf-8")


def need(trace: hw.Trace, recipe: hw.Recipe) -> float:
    """Footprint in bytes; infinite where a request is refused."""
    metrics = hw.replay(trace, recipe).metrics
    return float("inf") if metrics["failed"] else float(metrics["footprint_bytes"] or 0)


def recipes_near(trace: hw.Trace) -> dict[str, hw.Recipe]:
    """The recipes that are compared."""
    space = hw.Space.default([trace])
    zoo = {recipe.name or id: recipe for id, recipe in space.zoo.items()}
    zoo |= {f"remainder {size}": hw.Recipe.parse(f"{EXACT}victim_up_to = {size}\n") for size in REMAINDERS}
    draw = random.Random(7)
    others = [recipe for recipe in space.recipes() if recipe.hash not in space.zoo]
    costs: list[tuple[hw.Recipe, float, float]] = []
    for recipe in draw.sample(others, min(TRIED, len(others))):
        metrics = hw.replay(trace, recipe).metrics
        if not metrics["failed"]:
            costs.append((recipe, float(metrics["footprint_bytes"] or 0), float(metrics["accesses"] or 0)))
    bytes_, accesses = (np.array([cost[at] for cost in costs]) for at in (1, 2))
    # how far another one is ahead in both: 15 % of memory count as much as twice the accesses
    behind = [
        np.max(np.minimum(np.log(memory / bytes_) / np.log(1.15), np.log(cost / accesses) / np.log(2)))
        for memory, cost in zip(bytes_, accesses, strict=True)
    ]
    order = [int(at) for at in np.argsort(behind, kind="stable") if bytes_[at] <= 1.5 * bytes_.min()]
    chosen = [*order[:NEAREST], *draw.sample(order[NEAREST : NEAREST + 120], min(FURTHER, len(order) - NEAREST))]
    served = {key: cost for key, recipe in zoo.items() if np.isfinite(cost := need(trace, recipe))}
    near = {key: zoo[key] for key, cost in served.items() if cost <= FAR * min(served.values())}
    return near | {costs[at][0].hash: costs[at][0] for at in chosen}


def ranks(values: Floats) -> Floats:
    """Ranks, the mean of their ranks for equal values."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[which], np.float64)


def correlation(predicted: Floats, real: Floats) -> float:
    """Spearman's rank correlation."""
    return float(np.corrcoef(ranks(predicted), ranks(real))[0, 1])


def future(pair: Pair, calls: int, seeds: Sequence[int]) -> list[Needs]:
    """Needs on futures of the recording."""
    return [
        pair.needs(f"future {calls} {seed}", lambda seed=seed: hw.resample(pair.trace("a"), calls, seed=seed))  # type: ignore[misc]
        for seed in seeds
    ]


def copies(pair: Pair, count: int) -> list[Needs]:
    """Needs on perturbed copies of the recording."""
    made = hw.copies(pair.trace("a"), count)
    return [pair.needs(f"copy {number}", lambda copy=copy: copy) for number, copy in enumerate(made)]  # type: ignore[misc]


def stressed(pair: Pair) -> list[Needs]:
    """Needs on the recording, times the growth in the worst loop of the stress test."""
    label, needs = "stress test", pair.needs("a", lambda: pair.trace("a"))
    if label not in pair.kept:
        (trace, grown) = pair.trace("a"), dict[str, float]()
        for key, recipe in pair.recipes.items():
            (result,) = hw.stress(trace, recipe, calls=300_000)
            grown[key] = needs[key] * result.growth_ratio
        pair.keep(label, {".peak": needs[".peak"], **grown})
    return [pair.kept[label]]


PREDICTORS: dict[str, Callable[[Pair], list[Needs]]] = {
    "recording": lambda pair: [pair.needs("a", lambda: pair.trace("a"))],
    "8 copies": lambda pair: copies(pair, 8),
    "stress test": stressed,
    "future, 300,000": lambda pair: future(pair, 300_000, [0]),
    "future, 500,000": lambda pair: future(pair, 500_000, [0]),
    "future, 1,000,000": lambda pair: future(pair, 1_000_000, [0]),
    "future, 2 x 1,000,000": lambda pair: future(pair, 1_000_000, [0, 1]),
}
"""What predicts the need: the most that a recipe needs on any of these traces."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.argument("names", nargs=-1, required=True)
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Where needs are kept.")
@click.option("--predictor", "chosen", type=click.Choice(list(PREDICTORS)), multiple=True, help="Default: all.")
@click.option("--real-only", is_flag=True, help="Replay the long runs, and predict nothing.")
def main(folder: Path, names: tuple[str, ...], cache: Path, chosen: tuple[str, ...], real_only: bool) -> None:
    """Print the rank correlation of each predictor for each program, and the means."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        pair = Pair(folder, name, cache)
        real = pair.needs("long", lambda pair=pair: pair.trace("long"))  # type: ignore[misc]
        keys = [key for key in pair.recipes if np.isfinite(real[key])]
        needed = np.array([real[key] for key in keys])
        near = needed <= NEAR * needed.min()
        click.echo(f"{name}: {len(keys)} recipes, {np.count_nonzero(near)} within {NEAR} x the least")
        for label in () if real_only else chosen or PREDICTORS:
            made = PREDICTORS[label](pair)
            predicted = np.array([max(needs[key] for needs in made) for key in keys])
            peak = max(needs[".peak"] for needs in made) / pair.needs("a", lambda: pair.trace("a"))[".peak"]  # noqa: B023
            score = correlation(predicted, needed), correlation(predicted[near], needed[near])
            scores.setdefault(label, []).append(score)
            remainders = [
                predicted[keys.index(f"remainder {size}")] for size in REMAINDERS if f"remainder {size}" in keys
            ]
            text = " ".join(f"{size / min(remainders):.3f}" for size in remainders)
            click.echo(f"  {label:24} all {score[0]:.3f}  near {score[1]:.3f}  peak x {peak:.2f}  rests {text}")
        if all(f"remainder {size}" in keys for size in REMAINDERS):
            remainders = [real[f"remainder {size}"] for size in REMAINDERS]
            click.echo(
                f"  {'long run':24} {'':38} rests {' '.join(f'{size / min(remainders):.3f}' for size in remainders)}"
            )
    for label, result in scores.items():
        every, near_ = np.array(result).T
        means = f"all {every.mean():.3f} (least {every.min():.2f})  near {near_.mean():.3f} (least {near_.min():.2f})"
        click.echo(f"mean  {label:24} {means}")


if __name__ == "__main__":
    main()
