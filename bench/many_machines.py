"""What an exploration costs on many machines: overheads of a Dask cluster, measured, and a simulation with them.

    .venv/bin/python bench/many_machines.py examples/lighttpd_server.parquet --svg docs/images/many-machines.svg

Overheads are CPU time, which other programs on the machine hardly change: of this process, which is the driver, and of
the scheduler's. Replays are timed on one thread.
"""

from __future__ import annotations

import heapq
import pickle
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil
from tables import print_json

from heapwright import Trace
from heapwright.decide.study import Study
from heapwright.explore.giving_up import Known
from heapwright.explore.on_dask import BATCH_SECONDS, cluster
from heapwright.explore.space import Space
from heapwright.explore.trial import Candidate, Found, Patience, Task, Trier
from heapwright.measure.host.machine import machine
from heapwright.measure.metrics import replay_for
from heapwright.replay.energy import default_energy_table
from heapwright.studies.records import Identity, Result

OBJECTIVES = ("footprint_bytes", "accesses")
RECIPES = 10**8
WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SIZES = (1, 10, 100)
"""Recipes of a batch at which overheads are measured."""

ROWS = 5000
"""Results that are stored to know what one takes."""

LATENCY = 0.001
"""Seconds on the way between two machines, each way: supposed, not measured."""


@dataclass(frozen=True)
class Overheads:
    """CPU seconds that a batch takes, and each recipe of it; bytes of a recipe there and back, and in the study."""

    driver_batch: float
    driver_recipe: float
    scheduler_batch: float
    scheduler_recipe: float
    sent_bytes: float
    returned_bytes: float
    row_seconds: float
    row_bytes: float


class Seen:
    """No interrupt."""

    seen = False


# ---- measuring -----------------------------------------------------------------------------------------------------


def tasks_of(recipes: Sequence[Any]) -> list[Task]:
    return [Task(Candidate(one.hash, one, None), Known(OBJECTIVES, 1)) for one in recipes]


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


def spread(size: int, _: Task) -> float:
    """Seconds of a recipe of which so many make a batch."""
    return BATCH_SECONDS / size


def of_batches(recipes: Sequence[Any], trace: Trace) -> tuple[list[list[int]], list[list[float]]]:
    """Of some runs: how many batches and recipes; CPU seconds of the driver, of the scheduler, and seconds in all."""
    trier = Trier([trace], replay_for(OBJECTIVES, default_energy_table()))
    counts, spent = [], []
    with started() as (address, scheduler), cluster(address, 1) as crew:
        batches: list[int] = []
        submit = crew._submit

        def counted(run: str, batch: list[Task], trier: Trier, patience: Patience) -> Any:
            batches.append(len(batch))
            return submit(run, batch, trier, patience)

        vars(crew)["_submit"] = counted
        list(crew.tried(tasks_of(recipes[:20]), trier, Patience(Seen()), lambda _: BATCH_SECONDS))
        for size in SIZES:
            tasks = tasks_of([recipes[at % len(recipes)] for at in range(max(300, 20 * size))])
            batches.clear()
            clocks = [(time.process_time(), sum(scheduler.cpu_times()[:2]), time.perf_counter())]
            list(crew.tried(tasks, trier, Patience(Seen()), partial(spread, size)))
            clocks.append((time.process_time(), sum(scheduler.cpu_times()[:2]), time.perf_counter()))
            counts.append([len(batches), sum(batches)])
            spent.append([after - before for before, after in zip(*clocks, strict=True)])
    return counts, spent


def of_rows(recipes: Sequence[Any], trace: Trace, metrics: Sequence[Any]) -> tuple[float, float]:
    """CPU seconds that a result takes to be stored, and its bytes in the study."""
    identity = Identity.of([trace], OBJECTIVES, "bench", len(recipes), default_energy_table(), 8)
    results = [Result(one.hash, one, None, trace.name, found) for one, found in zip(recipes, metrics, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.duckdb")
        with Study.create_or_resume(path, identity) as study:
            before = time.process_time()
            for at in range(0, len(results), 500):
                study.add(results[at : at + 500])
            seconds = time.process_time() - before
        return seconds / len(results), path.stat().st_size / len(results)


def overheads(recipes: Sequence[Any]) -> Overheads:
    tiny = Trace.from_columns(op=[0, 3], id=[1, 1], size=[24, 0], name="tiny")
    counts, spent = of_batches(recipes[:500], tiny)
    (driver_batch, scheduler_batch, _), (driver_recipe, scheduler_recipe, _) = np.linalg.lstsq(
        np.array(counts, float), np.array(spent), rcond=None
    )[0]
    measure = replay_for(OBJECTIVES, default_energy_table())
    metrics = [measure(tiny, one, None).metrics for one in recipes[:100]]
    tasks = tasks_of(recipes[:100])
    found = [Found(task.known, {0: one}, 1, False, 0.1, None) for task, one in zip(tasks, metrics, strict=True)]
    stored = [metrics[at % len(metrics)] for at in range(len(recipes))]
    row_seconds, row_bytes = of_rows(recipes, tiny, stored)
    return Overheads(
        float(driver_batch),
        max(float(driver_recipe), 0.0),
        float(scheduler_batch),
        max(float(scheduler_recipe), 0.0),
        len(pickle.dumps((tasks, Patience(Seen())))) / len(tasks),
        len(pickle.dumps(found)) / len(found),
        row_seconds,
        row_bytes,
    )


def costs_of(trace: Trace, recipes: Sequence[Any]) -> np.ndarray:
    """CPU seconds of one replay of each recipe, float64[n]."""
    measure, found = replay_for(OBJECTIVES, default_energy_table()), []
    measure(trace, recipes[0], None)
    for one in recipes:
        before = time.thread_time()
        measure(trace, one, None)
        found.append(time.thread_time() - before)
    return np.array(found)


# ---- simulating ----------------------------------------------------------------------------------------------------


def rate(workers: int, costs: np.ndarray, spent: Overheads, size: int, rounds: int = 40) -> float:
    """Recipes a second of so many workers with batches of `size`: a simulation of single events.

    Scheduler and driver serve one batch at a time, in the order in which they come; a worker has two batches, one of
    which it replays. What its recipes take is drawn from `costs`.
    """
    drawn = np.random.default_rng(0).choice(costs, (2000, size)).sum(axis=1).tolist()
    draw = random.Random(0).choice
    at_driver = spent.driver_batch + size * (spent.driver_recipe + spent.row_seconds)
    at_scheduler = spent.scheduler_batch + size * spent.scheduler_recipe
    scheduler = driver = 0.0
    waiting, busy = [0] * workers, [False] * workers
    events: list[tuple[float, bool, int]] = []
    for worker in [*range(workers)] * 2:
        driver += at_driver / 2
        scheduler = max(scheduler, driver) + at_scheduler / 2
        events.append((scheduler + LATENCY, True, worker))
    heapq.heapify(events)
    ended: list[float] = []
    while len(ended) < rounds * workers + 500:
        now, arrived, worker = heapq.heappop(events)
        if arrived:
            waiting[worker] += 1
        else:
            busy[worker] = False
            ended.append(now)
            scheduler = max(scheduler, now + LATENCY) + at_scheduler
            driver = max(driver, scheduler) + at_driver
            heapq.heappush(events, (driver + 2 * LATENCY, True, worker))
        if waiting[worker] and not busy[worker]:
            waiting[worker] -= 1
            busy[worker] = True
            heapq.heappush(events, (now + draw(drawn), False, worker))
    half = len(ended) // 2
    return size * (len(ended) - 1 - half) / (ended[-1] - ended[half])


def simulated(trace: str, costs: np.ndarray, spent: Overheads) -> list[dict[str, Any]]:
    size = max(round(BATCH_SECONDS / costs.mean()), 1)
    return [
        {
            "trace": trace,
            "workers": workers,
            "batch": size,
            "recipes_per_second": round(found := rate(workers, costs, spent, size), 1),
            "share_of_ideal": round(found * costs.mean() / workers, 3),
            "days": RECIPES / found / 86_400,
        }
        for workers in WORKERS
    ]


def drawing(rows: Sequence[dict[str, Any]], note: str) -> str | bytes:
    import altair as alt

    from heapwright.report.figure import BLUE, INK, VERMILLION, Figure, inline

    names = list(dict.fromkeys(row["trace"] for row in rows))
    base = inline(rows).encode(
        x=alt.X("workers:Q", title="workers", scale=alt.Scale(type="log", domain=[1, 1000])),
        y=alt.Y("days:Q", title="days for 100 million recipes", scale=alt.Scale(type="log")),
        color=alt.Color("trace:N", sort=names, scale=alt.Scale(domain=names, range=[BLUE, VERMILLION, INK, "#009E73"])),
    )
    ideal = [{**row, "days": row["days"] * row["share_of_ideal"]} for row in rows]
    straight = (
        inline(ideal)
        .mark_line(strokeDash=[3, 4], opacity=0.6)
        .encode(x="workers:Q", y="days:Q", color=alt.Color("trace:N", sort=names))
    )
    chart = alt.layer(straight, base.mark_line(point=True)).properties(height=340)
    figure = Figure("many-machines", "What 100 million recipes take, by the number of workers", note, chart, 640)
    return figure.files()["many-machines.svg"]


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--recipes", default=1000, show_default=True, help="Recipes drawn from the default space and timed.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the plot.")
def command(traces: tuple[Path, ...], recipes: int, svg: Path | None) -> None:
    """Print, as JSON, overheads, costs and simulated rates."""
    spent, rows, told = None, [], {}
    for trace in map(Trace.read, traces):
        space = [one for one in Space.default([trace]).recipes() if not one.name]
        drawn = random.Random(0).sample(space, min(recipes, len(space)))
        spent = spent or overheads(random.Random(0).sample(space, min(ROWS, len(space))))
        costs = costs_of(trace, drawn)
        packed = len(zlib.compress(pickle.dumps(Trier([trace], replay_for(OBJECTIVES, default_energy_table()))), 1))
        told[trace.name] = {
            "calls": len(trace),
            "bytes_sent_to_a_worker": packed,
            "mean_ms": round(1000 * costs.mean(), 2),
            "median_ms": round(1000 * float(np.median(costs)), 2),
            "slowest_tenth_ms": round(1000 * np.sort(costs)[-len(costs) // 10 :].mean(), 2),
        }
        rows += simulated(trace.name, costs, spent)
    assert spent
    limit = 1 / (spent.driver_recipe + spent.row_seconds)
    note = (
        "Simulated with measured overheads and costs of recipes; one trace each. Dotted: if driver and scheduler took "
        f"no time. The driver takes in at most {limit:,.0f} recipes a second."
    )
    if svg:
        drawn_plot = drawing(rows, note)
        svg.write_bytes(drawn_plot) if isinstance(drawn_plot, bytes) else svg.write_text(drawn_plot)
    print_json(
        {"machine": machine(), "overheads": asdict(spent), "driver_limit": limit, "traces": told, "simulated": rows}
    )


if __name__ == "__main__":
    command()
