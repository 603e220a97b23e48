"""How long exploring takes, copies and stress tests apart: every recipe, the exact front, one within 1 %, and a budget.

    .venv/bin/python bench/explore.py                        # the examples, 600 recipes of the default space
    .venv/bin/python bench/explore.py --packets DIR --all    # drr on 15 packet tables, the whole default space
    .venv/bin/python bench/explore.py --budget 20 app.parquet

Fronts are compared by the hypervolume below ten times the best in both objectives, in ratios to the best of the
complete exploration, their logarithms taken; what it reaches there is its share of the complete one's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import heapwright as hw
from heapwright import Study

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = ("mosquitto_broker", "lighttpd_server")

TABLES, CALLS = 15, 150_000
"""Traces of the first packet tables, each cut after a number of calls."""

WORST = 10.0
"""What is this many times worse than the best counts for nothing."""

WAYS: dict[str, dict[str, Any]] = {
    "every recipe": {"complete": True},
    "exact front": {"tolerance": 0},
    "front within 1 %": {"tolerance": 0.01},
}


def traces_of(recordings: Sequence[Path], packets: Path | None) -> list[hw.Trace]:
    """The traces to explore on."""
    if recordings:
        return [hw.read_trace(path) for path in recordings]
    if packets is None:
        recorded = [hw.read_trace(EXAMPLES / f"{name}.parquet") for name in NAMES]
        return [*recorded, hw.workload("drr", EXAMPLES / "tcp_transfers.parquet")]
    tables = sorted(packets.glob("*.parquet"))[:TABLES]
    return [replace(hw.cut(hw.workload("drr", table), first=CALLS), name=table.stem) for table in tables]


def needs(study: Study, ids: Sequence[str] | None = None) -> np.ndarray:
    """What recipes need, float64[n, 2, traces]; of the front by default."""
    chosen = {member.id for member in study.front()} if ids is None else set(ids)
    rows = [row for row, id in enumerate(study.combined.ids) if id in chosen]
    return np.stack([study.combined.each[key][rows] for key in study.objectives], axis=1)


def hypervolume(points: np.ndarray) -> float:
    """The area that points (float64[n, 2], logarithms of ratios) leave below the worst corner, as a share of it."""
    corner = np.log(WORST)
    area, below = 0.0, corner
    for x, y in sorted(map(tuple, points)):
        if x < corner and y < below:
            area += (corner - x) * (below - y)
            below = y
    return float(area / corner**2)


def share_of_calls(study: Study, recipes: int) -> float:
    """Calls replayed, as a share of what all recipes take."""
    calls = {info.name: info.events for info in study.traces()}
    ended = sum(calls[name] for _, name in study.finished())
    begun = sum(so_far.calls for *_, so_far in study.partial())
    return (ended + begun) / (recipes * sum(calls.values()))


@click.command()
@click.argument("recordings", nargs=-1, type=click.Path(path_type=Path))
@click.option("--packets", type=click.Path(path_type=Path), help="A folder of packet tables.")
@click.option("--all", "whole", is_flag=True, help="The whole default space.")
@click.option("--recipes", default=600, show_default=True, help="Size of a random sample of it.")
@click.option("--budget", multiple=True, type=float, metavar="SECONDS", help="Also with a time limit.")
@click.option("--jobs", type=int, help="Threads; default one for every processor.")
def main(
    recordings: tuple[Path, ...],
    packets: Path | None,
    whole: bool,
    recipes: int,
    budget: tuple[float, ...],
    jobs: int | None,
) -> None:
    """Explore in every way, and print a line for each."""
    traces = traces_of(recordings, packets)
    click.echo(f"{len(traces)} traces, {sum(map(len, traces)):,} calls")
    drawn: dict[str, Any] = {} if whole else {"strategy": "random", "limit": recipes}
    ways = WAYS | {f"{seconds:g} s": {"budget": seconds, "tolerance": 0.01} for seconds in budget}
    best = area = tried = None
    click.echo(f"{'':18} {'seconds':>8} {'CPU s':>8} {'finished':>9} {'calls':>7} {'front':>6} {'reached':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for way, how in ways.items():
            start, cpu = time.perf_counter(), time.process_time()
            hw.explore(traces, Path(folder) / way, copies=0, stress_test=False, jobs=jobs, **drawn, **how)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            with Study.open(Path(folder) / way) as study:
                front = needs(study)
                if best is None:
                    tried = len(study.combined.ids)
                    served = np.flatnonzero(study.combined.ranked & (study.combined.columns["failed"] == 0))
                    best = needs(study, [study.combined.ids[row] for row in served]).min(axis=0)
                reached = hypervolume(np.log((front / best).max(axis=2)))
                area = area or reached
                row = (seconds, cpu, study.ranked, share_of_calls(study, tried or 1), len(front), reached / area)
            click.echo("{:18} {:8.1f} {:8.1f} {:9,} {:6.1%} {:6} {:8.4f}".format(way, *row))


if __name__ == "__main__":
    main()
