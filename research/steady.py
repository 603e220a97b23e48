"""Stability of recommendations: under bounds that they meet, with more memory, and with other perturbed traces.

Each device is explored on the zoo and a random sample of its default space, the same for every seed, so that only the
perturbed traces differ. For each recommendation at `STOPS` bounds on the footprint it prints how often a bound that was
met changed it, how often more memory gave more accesses, and how often a heap that is no worse in any printed figure,
and better in one, had no reason next to it. Then how many recommendations another seed changes.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
import numpy as np

import heapwright as hw

Pick = Literal["balanced", "smallest", "fastest"]
PICKS: tuple[Pick, ...] = ("balanced", "smallest", "fastest")

STOPS = 21
WITHIN = 1.01
"""More memory may give this many times the accesses: less is not reported of any heap."""


def devices(folder: Path) -> dict[str, list[Path]]:
    """Each trace by itself, and both of those that are named as two loads of one program."""
    results = {path.stem: [path] for path in sorted(folder.glob("*.parquet"))}
    for name, (path,) in list(results.items()):
        other = path.with_name(re.sub(r"_a$", "_b", name) + path.suffix)
        if other != path and other.exists():
            results[f"{name}+{other.stem}"] = [path, other]
    return results


def space_of(traces: Sequence[hw.Trace], recipes: int) -> hw.Space:
    """Recipes of the default space, and the zoo."""
    every = [item for item in hw.Space.default(traces).recipes() if not item.name]
    return hw.Space([random.Random(1).sample(every, min(recipes, len(every)))])


def stops(study: hw.Study) -> list[int]:
    """Bounds from the least footprint that serves all to the most of the front, evenly in their logarithms."""
    sizes = [int(item.metrics["footprint_bytes"] or 0) for item in study.front()]
    return [int(np.ceil(bound)) for bound in np.geomspace(min(sizes), max(sizes), STOPS)]


def faults(study: hw.Study, how: Pick) -> Counter[str]:
    """What is wrong with a pick along the bounds."""
    result: Counter[str] = Counter()
    bounds = stops(study)
    chosen = [picked(study, how, bound) for bound in bounds]
    wider = [*chosen[1:], study.pick(how)]
    result["none"] = chosen.count(None)
    for bound, pick, more in zip(bounds, chosen, wider, strict=True):
        if pick is None or more is None:
            result["lost"] += pick is not None
            continue
        size, accesses = (float(more.metrics[key] or 0) for key in ("footprint_bytes", "accesses"))
        result["changed"] += size <= bound and pick.id != more.id
        result["more accesses"] += accesses > WITHIN * float(pick.metrics["accesses"] or 0)
        result["beaten"] += beaten(study, pick, bound)
    result["picks"] = len(bounds)
    return result


def picked(study: hw.Study, how: Pick, bound: int) -> hw.Member | None:
    """The pick within a bound; None where nothing that may ship stays within."""
    try:
        return study.pick(how, where=f"footprint_bytes <= {bound}")
    except hw.HeapwrightError:
        return None


def beaten(study: hw.Study, pick: hw.Member, bound: int) -> bool:
    """Whether a heap that meets the bound and is fit to ship is better in the objectives as they are shown."""
    robustness, results = study.robustness(), study.combined
    shown = results.values(study.objectives)
    row = results.row(pick.id)
    better = (shown <= shown[row]).all(axis=1) & (shown < shown[row]).any(axis=1)
    better &= results.eligible(study.objectives) & (results.columns["footprint_bytes"] <= bound)
    ids = [results.ids[at] for at in np.flatnonzero(better)]
    return any(robustness.why_not(id) is None for id in ids)


@click.command()
@click.option("--traces", "folder", type=click.Path(path_type=Path), required=True, help="The traces in this folder.")
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--only", default="", help="Devices whose name this expression finds.")
@click.option("--recipes", type=click.IntRange(min=1), default=300, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def main(folder: Path, cache: Path, only: str, recipes: int, seeds: int, jobs: int) -> None:
    """Print what is wrong with picks along bounds, and how many of them other seeds change."""
    cache.mkdir(parents=True, exist_ok=True)
    total: Counter[str] = Counter()
    for name, paths in devices(folder).items():
        if not re.search(only, name):
            continue
        traces = [hw.read_trace(path) for path in paths]
        space, picks = space_of(traces, recipes), []
        for seed in range(seeds):
            study = hw.explore(
                traces, cache / f"{name}-{recipes}.duckdb", space=space, seed=seed, jobs=jobs, complete=True
            )
            picks.append([study.pick(how).id for how in PICKS])
            if not seed:
                result = sum((faults(study, how) for how in PICKS), Counter[str]())
        result["seeded"] = len(PICKS) * (seeds - 1)
        result["changed by the seed"] = sum(
            other != first for chosen in picks[1:] for first, other in zip(picks[0], chosen, strict=True)
        )
        total += result
        moved = [how for how, *ids in zip(PICKS, *picks, strict=True) if len(set(ids)) > 1]
        click.echo(f"{name}: {told(result)} {', '.join(moved)}".rstrip())
    click.echo(f"all: {told(total)}")


def told(result: Counter[str]) -> str:
    """The counts in words."""
    keys = ("none", "changed", "more accesses", "beaten", "lost")
    faults = ", ".join(f"{result[key]} {key}" for key in keys)
    return f"of {result['picks']} picks {faults}; seeds change {result['changed by the seed']} of {result['seeded']}"


if __name__ == "__main__":
    main()
