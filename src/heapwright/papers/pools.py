"""A pool of fixed-size buffers under Poisson requests.

Elsayed and Galal, "Building better memory management for high performance wired/wireless networks: Part 2", experiments
1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heapwright.papers.page import Page, percent
from heapwright.recipes import Recipe
from heapwright.replay import replay
from heapwright.workloads.poisson import poisson

BUFFERS, BUFFER_BYTES = 272, 2048
REQUESTS = 1_000_000
LOADS = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.0035)
SMALLEST = (100, 200, 400, 800, 1600)
LARGEST = (1000, 1200, 1400, 1600, 1800, 2000)
_CONTROL = 64
"""Bytes of arena beyond the buffers: the head of the free list and the limit of fresh buffers take less."""

_FIXED = f"""
name = "pool of {BUFFERS} x {BUFFER_BYTES}"
[[pool]]
kind = "fixed"
sizes = [{BUFFER_BYTES}]
counts = [{BUFFERS}]
header = 0
"""

_INTRODUCTION = f"""\
K. Elsayed and M. Galal compare a pool of {BUFFERS} buffers of {BUFFER_BYTES} bytes with a pool of partitions. This
page has the pool of buffers, in experiments 1 to 3; the paper prints its results as figures, so that only the
numbers in its text can stand beside ours. The pool of partitions is not on this page.

Each point is {{requests:,}} requests of `heapwright workload poisson` (seed 1), replayed in an arena of {BUFFERS}
buffers and {_CONTROL} bytes of control data. One time unit is one second; buffers are held for 1 s on average, in
experiments 2 and 3, too: the paper's 54 % is what theory gives for that. Refused requests are dropped. *Admission*
is bytes admitted / bytes requested; *pool utilisation* the mean of the bytes held / bytes of the buffers,
*utilisation* / all memory; *utility* is admission x pool utilisation, our definition, because the paper gives none.
Erlang's B formula gives the exact admission of this pool at every load."""


@dataclass(frozen=True)
class Point:
    """One scenario and what the pool made of it."""

    interarrival: float
    min_size: int
    max_size: int
    admission: float
    utilisation: float
    pool_utilisation: float

    @property
    def utility(self) -> float:
        """Admission x pool utilisation: the paper combines the two without telling how."""
        return self.admission * self.pool_utilisation

    @property
    def erlang(self) -> float:
        """The share that Erlang's B formula admits at one hold of mean 1."""
        return 1 - erlang_b(1 / self.interarrival, BUFFERS)


def erlang_b(load: float, servers: int) -> float:
    """Share of requests that find all servers busy, at `load` Erlang, by the recurrence over the servers."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


def run(interarrival: float, min_size: int, max_size: int, requests: int = REQUESTS) -> Point:
    """Replay one scenario on the fixed pool."""
    recipe = Recipe.parse(_FIXED)
    trace = poisson(interarrival=interarrival, min_size=min_size, max_size=max_size, requests=requests)
    metrics: dict[str, Any] = replay(trace, recipe, arena=BUFFERS * BUFFER_BYTES + _CONTROL)
    keys = ("admitted_fraction", "utilisation", "pool_utilisation")
    return Point(interarrival, min_size, max_size, *(float(metrics[key]) for key in keys))


def page(packets: Path | None, progress: Callable[[str], None], requests: int = REQUESTS) -> Page:
    """Experiments 1 to 3 of the paper with the fixed pool; no packets are needed."""
    found: dict[str, list[Point]] = {}
    scenarios: dict[str, list[tuple[float, int, int]]] = {
        "load": [(load, 80, 2000) for load in LOADS],
        "smallest": [(1 / 500, smallest, 2000) for smallest in SMALLEST],
        "largest": [(1 / 500, 100, largest) for largest in LARGEST],
    }
    for name, points in scenarios.items():
        progress(f"pools: {name}")
        found[name] = [run(*point, requests) for point in points]
    made = Page("pools", "Pools of fixed-size buffers under Poisson load", "Elsayed and Galal, Part 2")
    _introduce(made, requests)
    _experiments(made, found)
    _check(made, found)
    return made


def _introduce(page: Page, requests: int) -> None:
    page.text(_INTRODUCTION.format(requests=requests))


def _experiments(page: Page, found: dict[str, list[Point]]) -> None:
    page.text("## Experiment 1 (the paper's Figure 5): load\n\nSizes from 80 to 2000 bytes.")
    theirs = {0.003: "80 %"}
    head = ("mean time between requests, s", "the paper", "admission", "Erlang B")
    _table(
        page, head, found["load"], lambda point: f"{point.interarrival:g}", lambda p: theirs.get(p.interarrival, "–")
    )
    page.figure(_figure("pools-load", found["load"], "interarrival", "mean time between requests, s"))
    page.text("## Experiment 2 (the paper's Figure 6): smallest request\n\n500 requests a second, up to 2000 bytes.")
    head = ("smallest request, B", "the paper", "admission", "Erlang B")
    _table(page, head, found["smallest"], lambda point: str(point.min_size), lambda p: "“does not change much”")
    page.figure(_figure("pools-smallest", found["smallest"], "min_size", "smallest request, B"))
    page.text("## Experiment 3 (the paper's Figure 7): largest request\n\n500 requests a second, from 100 bytes.")
    head = ("largest request, B", "the paper", "admission", "Erlang B")
    _table(page, head, found["largest"], lambda point: str(point.max_size), lambda p: "54 %")
    page.figure(_figure("pools-largest", found["largest"], "max_size", "largest request, B"))


def _table(
    page: Page,
    head: Sequence[str],
    points: Sequence[Point],
    name: Callable[[Point], str],
    theirs: Callable[[Point], str],
) -> None:
    rows = [
        (
            name(point),
            theirs(point),
            percent(point.admission, 1),
            percent(point.erlang, 1),
            percent(point.pool_utilisation, 1),
            percent(point.utilisation, 1),
            f"{point.utility:.3f}",
        )
        for point in points
    ]
    page.table((*head, "pool utilisation", "utilisation", "utility"), rows)


def _figure(name: str, points: Sequence[Point], field: str, axis: str) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, INK, VERMILLION, Figure, inline

    series = ("admission", "pool utilisation", "utility")
    rows = [
        {"x": getattr(point, field), "of": of, "share": value}
        for point in points
        for of, value in zip(series, (point.admission, point.pool_utilisation, point.utility), strict=True)
    ]
    colour = alt.Color("of:N", sort=None, scale=alt.Scale(domain=series, range=[BLUE, VERMILLION, INK]))
    encoded = inline(rows).encode(
        x=alt.X("x:Q", title=axis, scale=alt.Scale(zero=False)),
        y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=colour,
        shape=alt.Shape("of:N", sort=None, scale=alt.Scale(domain=series)),
    )
    chart = encoded.mark_line(strokeWidth=1.5) + encoded.mark_point(filled=True, size=60, opacity=1)
    low, high = (percent(point.admission) for point in (points[0], points[-1]))
    title = f"{BUFFERS} buffers of {BUFFER_BYTES} B admit {low} to {high} of the bytes"
    note = "Admission, mean share of the buffers' bytes that is in use, and their product, the utility."
    return Figure(name, title, note, chart.properties(height=260), 620)


def _check(page: Page, found: dict[str, list[Point]]) -> None:
    by_load = {point.interarrival: point for point in found["load"]}
    at = by_load[0.003].admission
    page.claim("at 0.003 the fixed pool “is still at 80 %”", "80 %", percent(at, 1), abs(at - 0.8) < 0.01)
    utilities = [point.utility for point in found["load"]]
    best = LOADS[utilities.index(max(utilities))]
    inside = best not in (LOADS[0], LOADS[-1])
    page.claim(
        "utility has a maximum, after which memory is idle (experiment 1)",
        "a point inside the range",
        f"{max(utilities):.3f} at {best:g}, {utilities[-1]:.3f} at {LOADS[-1]:g}",
        inside,
    )
    small = [point.admission for point in found["smallest"]]
    spread = max(small) - min(small)
    page.claim(
        "admission “does not change much” with the smallest request",
        "constant",
        f"within {percent(spread, 1)}",
        spread < 0.02,
    )
    rising = [point.pool_utilisation for point in found["smallest"]]
    page.claim(
        "utilisation rises with the smallest request",
        "rises",
        f"{percent(rising[0])} to {percent(rising[-1])}",
        rising == sorted(rising),
    )
    large = [point.admission for point in found["largest"]]
    page.claim(
        "admission is “almost constant at 54 %” over the largest request",
        "54 %",
        f"{percent(min(large), 1)} to {percent(max(large), 1)}",
        all(abs(value - 0.54) < 0.01 for value in large),
    )
    furthest = max(abs(point.admission - point.erlang) for points in found.values() for point in points)
    page.claim(
        "(theory) admission follows Erlang B at every point", "exact", f"at most {furthest:.4f} off", furthest < 0.01
    )
