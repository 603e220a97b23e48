"""Do recommendations hold on another recording of the same program, and are they better than untuned allocators?

    .venv/bin/python bench/recommendations.py --cache FOLDER [--long FOLDER]

Each program's first recording is explored as a user would. What is recommended, and the reference allocators that one
would use without a recording, are then replayed on the second recording, which had no part in it. Printed are memory
and accesses over those of `fast`, per program and as geometric means, and on how many programs a heap is better or
worse in both. With --long the second recording of NAME_a.parquet is NAME_long.parquet (bench/long).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import click
import numpy as np
from universal import split

import heapwright as hw

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared" / "data" / "pairs"
PICKS: tuple[Literal["balanced", "smallest", "fastest"], ...] = ("balanced", "smallest", "fastest")
UNTUNED = ("all-round", "small-lists", "small", "exact-bins", "lea-2.7.2", "tlsf")
BASE = "fast"


class MemoryNeed(NamedTuple):
    """What a heap takes to serve a recording: bytes, accesses a call, and the accesses of its worst-case call."""

    memory: float
    accesses: float
    worst: int


def pairs(learnt: bool) -> dict[str, tuple[Path, Path]]:
    """The two recordings of each program: those that rules were chosen on, or those that had no part."""
    learning, _ = split()
    paths = sorted(path for folder in (HERE / "pairs", SHARED) for path in folder.glob("*_a.parquet"))
    firsts = {path.stem.removesuffix("_a"): path for path in paths if (path.stem in learning) == learnt}
    return {name: (path, path.with_name(f"{name}_b.parquet")) for name, path in firsts.items()}


def long_runs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """A short recording and a long one of each program."""
    firsts = {path.stem.removesuffix("_a"): path for path in sorted(folder.glob("*_a.parquet"))}
    results = {name: (path, path.with_name(f"{name}_long.parquet")) for name, path in firsts.items()}
    return {name: both for name, both in results.items() if both[1].exists()}


def needs(first: Path, second: Path, study_path: Path, jobs: int) -> dict[str, MemoryNeed | None]:
    """Of each recommendation and untuned allocator, by name; None if requests fail on the second recording."""
    study = hw.explore(first, study_path, jobs=jobs)
    heaps: dict[str, hw.Recipe] = {how: study.pick(how).recipe for how in PICKS}
    heaps |= {name: hw.zoo(name).at_alignment(study.align) for name in (*UNTUNED, BASE)}
    trace, result = hw.read_trace(second), dict[str, MemoryNeed | None]()
    for name, recipe in heaps.items():
        metrics = hw.replay(trace, recipe).metrics
        values = [float(metrics[key] or 0) for key in ("footprint_bytes", "accesses")]
        worst = max(int(metrics[key] or 0) for key in ("accesses_malloc_max", "accesses_free_max"))
        result[name] = None if metrics["failed"] else MemoryNeed(values[0], values[1] / len(trace), worst)
    return result


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--long", "folder", type=click.Path(path_type=Path), help="Judge on the long runs in this folder.")
@click.option("--learnt", is_flag=True, help="Judge on the pairs that rules were chosen on.")
@click.option("--only", multiple=True, help="Programs by name; all by default.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def main(cache: Path, folder: Path | None, learnt: bool, only: tuple[str, ...], jobs: int) -> None:
    """Print what recommendations and untuned allocators need on second recordings, over `fast`."""
    cache.mkdir(parents=True, exist_ok=True)
    both = long_runs(folder) if folder else pairs(learnt)
    ratios: dict[str, list[tuple[float, float]]] = {}
    for name, (first, second) in both.items():
        if only and name not in only:
            continue
        result = needs(first, second, cache / f"{name}.duckdb", jobs)
        base, shown = result[BASE], list[str]()
        for heap, need in result.items():
            if base is None or need is None:
                shown.append(f"{heap} -")
                continue
            ratio = (need.memory / base.memory, need.accesses / base.accesses)
            ratios.setdefault(heap, []).append(ratio)
            shown.append(f"{heap} {ratio[0]:.3f}/{ratio[1]:.2f} worst {need.worst}")
        click.echo(f"{name:12} " + "  ".join(shown))
    click.echo("\nover fast: memory, accesses (geometric means), better in both, worse in both, of")
    for heap, some in ratios.items():
        memory, accesses = np.exp(np.log(some).mean(axis=0))
        better = sum(item[0] <= 1 and item[1] <= 1 for item in some)
        worse = sum(item[0] > 1 and item[1] > 1 for item in some)
        click.echo(f"{heap:12} {memory:.3f} {accesses:.3f} {better:3} {worse:3} {len(some):3}")


if __name__ == "__main__":
    main()
