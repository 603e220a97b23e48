"""What an exploration costs on many machines: what driver and scheduler of a Dask cluster take of a recipe, measured.

    .venv/bin/python bench/many_machines.py examples/lighttpd_server.parquet

Both are CPU time, which other programs on the machine hardly change: of this process, which is the driver, and of the
scheduler's, over explorations of two sizes on a trace of two calls with one worker; the difference is what the further
recipes took. Replays are timed on one thread. Driver, scheduler and workers work at once, so the slowest of them is
what is waited for.

`simulated` follows each batch of one exploration from the driver through the scheduler to a worker and back, where each
has a processor of its own: batches are made as in
`heapwright._explore.dask_workers`, and replays take the measured time.
"""

from __future__ import annotations

import heapq
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil
from tables import print_json

import heapwright as hw
from heapwright import Space, Trace

RECIPES = 10**8
WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SIMULATED = (1, 8, 32, 64, 128)
"""Workers of the exploration that is simulated, whose recipes are as many as the default space has."""

MESSAGE_SECONDS = 0.005
"""From one machine to another."""

BATCH_SECONDS, AHEAD = 1.5, 2
"""As `heapwright._explore.dask_workers` has them."""

FEW = 200
"""Recipes of the smaller exploration, and recipes timed."""


@dataclass(frozen=True)
class Overheads:
    """CPU seconds that driver and scheduler take of a recipe with one trace, storing it in the study among them."""

    driver: float
    scheduler: float


# ---- measuring -----------------------------------------------------------------------------------------------------


@contextmanager
def started() -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler and one worker; the address, and the scheduler's process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        dask = [str(Path(sys.executable).with_name("dask"))]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        scheduler = subprocess.Popen([*dask, *words], **quiet)
        worker = subprocess.Popen([*dask, "worker", "--scheduler-file", str(file), "--nthreads", "1"], **quiet)
        try:
            while not file.exists():
                time.sleep(0.2)
            yield file.read_text().partition('"address": "')[2].partition('"')[0], psutil.Process(scheduler.pid)
        finally:
            worker.terminate()
            scheduler.terminate()
            worker.wait()
            scheduler.wait()


def spent(space: Space, address: str, scheduler: psutil.Process, recipes: int) -> np.ndarray:
    """CPU seconds of this process and of the scheduler's for an exploration of some recipes; how many were tried."""
    tiny = Trace.from_columns(op=[hw.MALLOC, hw.FREE], id=[1, 1], size=[24, 0], name="tiny")
    with tempfile.TemporaryDirectory() as folder:
        before = time.process_time(), sum(scheduler.cpu_times()[:2])
        options: Any = {"strategy": "random", "limit": recipes, "complete": True, "copies": 0, "stress_test": False}
        study = hw.explore(tiny, Path(folder, "study.duckdb"), space=space, dask=address, **options)
        after = time.process_time(), sum(scheduler.cpu_times()[:2])
        tried = len(study.finished())
    return np.array([*np.subtract(after, before), tried])


def overheads(space: Space, recipes: int) -> Overheads:
    with started() as (address, scheduler):
        spent(space, address, scheduler, 1)  # modules are loaded
        few, many = (spent(space, address, scheduler, count) for count in (FEW, FEW + recipes))
    driver, on_scheduler, tried = many - few
    return Overheads(driver / tried, on_scheduler / tried)


def costs_of(trace: Trace, recipes: Sequence[hw.Recipe]) -> np.ndarray:
    """CPU seconds of one replay of each recipe, float64[n]."""
    results = []
    hw.replay(trace, recipes[0])
    for recipe in recipes:
        before = time.thread_time()
        hw.replay(trace, recipe)
        results.append(time.thread_time() - before)
    return np.array(results)


# ---- what follows --------------------------------------------------------------------------------------------------


def predicted(trace: str, cost: float, each: Overheads) -> list[dict[str, Any]]:
    """Recipes a second with a number of workers: the smallest rate of workers, driver and scheduler."""
    rows = []
    for workers in WORKERS:
        rate = min(workers / cost, 1 / each.driver, 1 / each.scheduler)
        share = rate * cost / workers
        row = {
            "trace": trace,
            "workers": workers,
            "recipes_per_second": round(rate, 1),
            "share_of_ideal": round(share, 3),
        }
        rows.append({**row, "days": RECIPES / rate / 86_400})
    return rows


def simulated(costs: np.ndarray, workers: int, each: Overheads, recipes: int) -> float:
    """Seconds until the last of a number of recipes is stored.

    The driver does one thing at a time: half of its time for a recipe before that is sent, half when it is back.
    """
    replays, mean = np.random.default_rng(0).choice(costs, recipes), float(costs.mean())
    at, driver, scheduler = 0, 0.0, 0.0
    free, back = [0.0] * workers, list[tuple[float, int]]()
    while at < recipes or back:
        while at < recipes and len(back) < AHEAD * workers:
            count = min(ceil((recipes - at) / (AHEAD * workers)), ceil(BATCH_SECONDS / mean))
            driver += count * each.driver / 2
            scheduler = max(scheduler, driver + MESSAGE_SECONDS) + count * each.scheduler
            ready = max(heapq.heappop(free), scheduler + MESSAGE_SECONDS)
            done = ready + float(replays[at : at + count].sum())
            heapq.heappush(free, done)
            heapq.heappush(back, (done + 2 * MESSAGE_SECONDS, count))
            at += count
        info, count = heapq.heappop(back)
        driver = max(driver, info) + count * each.driver / 2
    return driver


def near_linear(trace: str, costs: np.ndarray, each: Overheads, recipes: int) -> list[dict[str, Any]]:
    """Seconds of a simulated exploration with a number of workers, and how near that is to linear."""
    rows = []
    for workers in SIMULATED:
        seconds = simulated(costs, workers, each, recipes)
        share = recipes * float(costs.mean()) / workers / seconds
        row = {"trace": trace, "workers": workers, "recipes": recipes}
        rows.append({**row, "seconds": round(seconds, 2), "share_of_linear": round(share, 3)})
    return rows


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--recipes", default=5000, show_default=True, help="Recipes by which the larger exploration is larger.")
def command(traces: tuple[Path, ...], recipes: int) -> None:
    """Print, as JSON, overheads, costs and the rates that follow."""
    rows: list[dict[str, Any]] = []
    near: list[dict[str, Any]] = []
    info = {}
    read = [Trace.read(path) for path in traces]
    each = overheads(Space.default(read[:1]), recipes)
    for trace in read:
        space = [item for item in Space.default([trace]).recipes() if not item.name]
        costs = costs_of(trace, random.Random(0).sample(space, min(FEW, len(space))))
        info[trace.name] = {
            "calls": len(trace),
            "mean_ms": round(1000 * costs.mean(), 2),
            "median_ms": round(1000 * float(np.median(costs)), 2),
            "slowest_tenth_ms": round(1000 * np.sort(costs)[-len(costs) // 10 :].mean(), 2),
            "workers_until_one_waits": round(costs.mean() / max(each.driver, each.scheduler), 1),
        }
        rows += predicted(trace.name, float(costs.mean()), each)
        near += near_linear(trace.name, costs, each, len(space))
    results = {"overheads": asdict(each), "traces": info, "foretold": rows, "simulated": near}
    print_json({"machine": hw.machine(), **results})


if __name__ == "__main__":
    command()
