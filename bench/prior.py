"""Do picks hold on another load of the same program, and do they beat heaps taken blind? bench/robustness.md shows it.

Each program's first recording is explored as a user would; picks and heaps taken blind are replayed on the second,
which had no part in it, and set against the least that anything explored on the second itself needs.
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
BLIND = ("all-round", "victim-bins", "fast", "small-lists", "lea-2.7.2")
EQUAL = 1.001
"""Within so many times, a need is no worse."""


class Needs(NamedTuple):
    """Memory and accesses on the second recording, over the least; infinite where requests were refused."""

    arena: float
    accesses: float

    def no_worse(self, other: Needs) -> bool:
        """Whether neither is more than the other's."""
        return self.arena <= EQUAL * other.arena and self.accesses <= EQUAL * other.accesses


def pairs(learnt: bool) -> dict[str, tuple[Path, Path]]:
    """The two recordings of each program: those that were learnt on, or those that had no part (`universal.split`)."""
    learning, _ = split()
    paths = sorted(path for folder in (HERE / "pairs", SHARED) for path in folder.glob("*_a.parquet"))
    firsts = {path.stem.removesuffix("_a"): path for path in paths if (path.stem in learning) == learnt}
    return {name: (path, path.with_name(f"{name}_b.parquet")) for name, path in firsts.items()}


def judged(name: str, tuned: Path, test: Path, cache: Path, jobs: int) -> dict[str, Needs]:
    """What each pick, and each heap taken blind, needs on the test, by its name."""
    study = hw.explore(tuned, cache / f"{name}-{tuned.stem}.duckdb", jobs=jobs)
    own = hw.explore(test, cache / f"{name}-{test.stem}-own.duckdb", copies=0, endurance=False, jobs=jobs)
    heaps = {how: study.pick(how).recipe for how in PICKS} | {blind: study[blind].recipe for blind in BLIND}
    trace = hw.read_trace(test)
    results = [hw.replay(trace, heap) for heap in heaps.values()]
    front = np.array([[one.metrics["footprint_bytes"], one.metrics["accesses"]] for one in own.front()], float)
    found = np.array([[one.metrics["footprint_bytes"], one.metrics["accesses"]] for one in results], float)
    served = np.array([one.metrics["failed"] == 0 for one in results])
    least = np.minimum(front.min(axis=0), found[served].min(axis=0))
    ratios = np.where(served[:, np.newaxis], found / least, np.inf)
    return {heap: Needs(*map(float, one)) for heap, one in zip(heaps, ratios, strict=True)}


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Keep studies here.")
@click.option("--only", default="", help="Programs whose name holds this.")
@click.option("--learnt", is_flag=True, help="The pairs that were learnt on, both ways.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def main(cache: Path, only: str, learnt: bool, jobs: int) -> None:
    """Print what picks of each first recording need on the second: memory / accesses over the least there."""
    cache.mkdir(parents=True, exist_ok=True)
    columns = (*PICKS, *BLIND)
    click.echo(f"| program | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    rows: list[dict[str, Needs]] = []
    for name, both in pairs(learnt).items():
        if only in name:
            for tuned, test in (both, both[::-1]) if learnt else (both,):
                rows.append(judged(name, tuned, test, cache, jobs))
                cells = [f"{needs.arena:.3f} / {needs.accesses:.2f}" for needs in rows[-1].values()]
                click.echo(
                    f"| {name}{f', {tuned.stem[-1]} to {test.stem[-1]}' if learnt else ''} | {' | '.join(cells)} |"
                )
    for summary, of in (("mean", np.mean), ("largest", np.max), ("median", np.median)):
        cells = [
            f"{of([row[column].arena for row in rows]):.3f} / {of([row[column].accesses for row in rows]):.2f}"
            for column in columns
        ]
        click.echo(f"| **{summary}** | {' | '.join(cells)} |")
    for blind in BLIND:
        count = sum(row["balanced"].no_worse(row[blind]) for row in rows)
        click.echo(f"\n`balanced` is no worse than {blind} in both on {count} of {len(rows)}.")


if __name__ == "__main__":
    main()
