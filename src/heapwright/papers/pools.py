"""Pools of partitions and of buffers under Poisson requests: Figures 5 to 9, all five experiments.

Elsayed and Galal, "Building better memory management for high performance wired/wireless networks: Part 2".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from heapwright.papers.page import Page, percent
from heapwright.recipes.policy import policy
from heapwright.recipes.pools import Fixed, Partition
from heapwright.recipes.recipe import Recipe
from heapwright.replay.replay import replay
from heapwright.workloads.poisson import poisson
from heapwright.zoo.catalogue import load

REQUESTS = 1_000_000
LOADS = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.0035)
SMALLEST = (100, 200, 400, 800, 1600)
LARGEST = (1000, 1200, 1400, 1600, 1800, 2000)
RATE = 500
"""Requests a second in experiments 2 and 3."""
PARTITIONS = (256, 512, 1024, 2048, 4096)
MANY = 4096
"""Partitions of experiment 4's second configuration."""
SEGMENTS = (16, 32, 64, 128, 256, 512, 1024)
TOTALS = (64 * 1024, 512 * 1024)
"""Usable bytes of experiment 5's pools; the second is also that of experiment 4's first configuration."""
BUFFER_HEADERS = (0, 8)
"""Bytes of data that a fixed pool keeps for each buffer, in experiment 5; the paper does not tell."""

SAMPLING = 0.002
"""Shares closer than this are taken for equal: what REQUESTS leave to chance."""

VARIABLE, FIXED = "variable pool", "fixed pool"
SERIES = ("admission", "pool utilisation", "utilisation", "utility")

_INTRODUCTION = """\
K. Elsayed and M. Galal compare a pool of {partitions}, of which a request takes as many as it needs side by side
(`heapwright zoo variable-pool`), with a pool of {buffers} (`heapwright zoo fixed-pool`). The paper prints its results
as figures that its text does not repeat: only the numbers in its text can stand beside ours.

Each point is {requests:,} requests of `heapwright workload poisson` (seed 1), the same for both pools, in an arena
that is just the pool: {variable_memory:,} bytes with the partitions' descriptors, {fixed_memory:,} with the buffers'
free list. One time unit is one second; at equal times releases come first; refused requests are dropped. Buffers are
held for 1 s on average in all experiments: the paper says so for the first, and its 54 % in the third is what theory
gives for that. Its “increments of 0.005” are taken for a slip of 0.0005. No real traffic is used here.

- *Admission* is the paper's bandwidth admission probability, bytes admitted / bytes requested.
- *Pool utilisation* is the mean of the bytes held / bytes usable for requests, *utilisation* / all memory of the pool.
- *Utility* is admission x pool utilisation: the paper shows a combined utility and does not define it.
- *Erlang B* is the exact admission of the fixed pool: requests of any size take one of its buffers.

What Part 1 says of the variable pool could not be had; its list of free groups is in order of address here, the first
that is large enough is taken, and released groups merge at once. A descriptor of {descriptor} bytes a partition makes
the memory of the two pools equal, as the paper says it is."""


@dataclass(frozen=True)
class Scenario:
    """The requests of one point: mean seconds between them, and the range of their sizes in bytes."""

    interarrival: float
    min_size: int
    max_size: int


@dataclass(frozen=True)
class Point:
    """What one pool made of one scenario; shares of 1."""

    admission: float
    utilisation: float
    pool_utilisation: float

    @property
    def utility(self) -> float:
        """Admission x pool utilisation: the paper combines the two without telling how."""
        return self.admission * self.pool_utilisation

    def of(self, series: str) -> float:
        """The value that a figure names so."""
        return float(getattr(self, series.replace(" ", "_")))


@dataclass(frozen=True)
class Results:
    """One experiment: x, and each pool's point at each x."""

    x: tuple[float, ...]
    points: dict[str, list[Point]]

    def of(self, pool: str, series: str) -> list[float]:
        """One line of a figure."""
        return [point.of(series) for point in self.points[pool]]


def memory_bytes(recipe: Recipe) -> int:
    """All memory of a pool of a fixed number of blocks: data, descriptors or headers, and control data."""
    return int(policy(recipe)["fixed_end"])


def usable_bytes(recipe: Recipe) -> int:
    """Bytes of such a pool that requests can use."""
    pool = recipe.pools[0]
    if isinstance(pool, Partition) and isinstance(pool.count, int):
        return pool.size * pool.count
    if isinstance(pool, Fixed) and not isinstance(pool.counts, str):
        return sum(size * count for size, count in zip(pool.sizes, pool.counts, strict=True))
    raise ValueError(f"{recipe.name}: a pool without a fixed number of blocks")


def erlang_b(load: float, servers: int) -> float:
    """Share of requests that find all servers busy, at `load` Erlang, by the recurrence over the servers."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


def partitions(size: int, count: int) -> Recipe:
    """The zoo's variable pool with partitions of another size or number."""
    variable = load("variable-pool")
    return variable.model_copy(update={"pools": (variable.pools[0].model_copy(update={"size": size, "count": count}),)})


def buffers(size: int, count: int, header: int) -> Recipe:
    """The zoo's fixed pool with buffers of another size, number and data about each."""
    fixed = load("fixed-pool")
    changed = fixed.pools[0].model_copy(update={"sizes": (size,), "counts": (count,), "header": header})
    return fixed.model_copy(update={"pools": (changed,)})


def run(scenario: Scenario, pools: Sequence[Recipe], requests: int = REQUESTS) -> list[Point]:
    """Replay one scenario on each pool, in an arena that is the pool and nothing else."""
    trace = poisson(
        interarrival=scenario.interarrival,
        min_size=scenario.min_size,
        max_size=scenario.max_size,
        requests=requests,
        seed=1,
    )
    points = []
    for recipe in pools:
        memory = memory_bytes(recipe)
        metrics: dict[str, Any] = replay(trace, recipe, arena=memory)
        utilisation = float(metrics["utilisation"])
        pool_utilisation = utilisation * memory / usable_bytes(recipe)
        points.append(Point(float(metrics["admitted_fraction"]), utilisation, pool_utilisation))
    return points


def experiments(requests: int = REQUESTS, progress: Callable[[str], None] = lambda line: None) -> dict[str, Results]:
    """Experiments 1 to 3 with both pools, as "load", "smallest" and "largest"."""
    scenarios = {
        "load": (LOADS, [Scenario(load, 80, 2000) for load in LOADS]),
        "smallest": (SMALLEST, [Scenario(1 / RATE, smallest, 2000) for smallest in SMALLEST]),
        "largest": (LARGEST, [Scenario(1 / RATE, 100, largest) for largest in LARGEST]),
    }
    found: dict[str, Results] = {}
    for name, (x, points) in scenarios.items():
        progress(f"pools: {name}")
        pairs = [run(scenario, (load("variable-pool"), load("fixed-pool")), requests) for scenario in points]
        found[name] = Results(x, {VARIABLE: [pair[0] for pair in pairs], FIXED: [pair[1] for pair in pairs]})
    return found


def page(packets: Path | None, progress: Callable[[str], None], requests: int = REQUESTS) -> Page:
    """All five experiments of the paper; no packets are needed."""
    found = experiments(requests, progress)
    progress("pools: partition size")
    sized = partition_sizes(requests)
    made = Page("pools", "Pools of partitions and of buffers under Poisson load", "Elsayed and Galal, Part 2")
    _introduce(made, requests)
    _experiments(made, found)
    _partition_sizes(made, sized)
    _overheads(made)
    _check_load(made, found["load"])
    _check_smallest(made, found["smallest"])
    _check_largest(made, found["largest"])
    _check_erlang(made, found)
    _check_partition_sizes(made, sized)
    _check_overheads(made)
    return made


# ---- experiments 1 to 3 --------------------------------------------------------------------------------------------


def _introduce(page: Page, requests: int) -> None:
    variable, fixed = load("variable-pool"), load("fixed-pool")
    group, buffer = variable.pools[0], fixed.pools[0]
    assert isinstance(group, Partition) and isinstance(buffer, Fixed)
    page.text(
        _INTRODUCTION.format(
            partitions=f"{group.count} partitions of {group.size} bytes",
            buffers=f"{buffer.counts[0]} buffers of {buffer.sizes[0]} bytes",
            requests=requests,
            variable_memory=memory_bytes(variable),
            fixed_memory=memory_bytes(fixed),
            descriptor=group.descriptor_bytes,
        )
    )


def _erlang(interarrival: float) -> float:
    """Share that Erlang's B formula admits to the fixed pool, at one hold of mean 1 s."""
    buffer = load("fixed-pool").pools[0]
    assert isinstance(buffer, Fixed)
    return 1 - erlang_b(1 / interarrival, int(buffer.counts[0]))


def _experiments(page: Page, found: dict[str, Results]) -> None:
    page.text("## Experiment 1 (the paper's Figure 5): load\n\nSizes from 80 to 2000 bytes.")
    theirs = {0.003: "variable 100 %, fixed 80 %"}
    axis = "mean time between requests, s"
    _table(page, axis, found["load"], [theirs.get(load, "–") for load in LOADS], [_erlang(load) for load in LOADS])
    page.figure(_figure("pools-load", "load", axis, found["load"]))
    exact = _erlang(1 / RATE)
    page.text(
        f"## Experiment 2 (the paper's Figure 6): smallest request\n\n{RATE} requests a second, up to 2000 bytes."
    )
    axis = "smallest request, B"
    _table(page, axis, found["smallest"], ["–"] * len(SMALLEST), [exact] * len(SMALLEST))
    page.figure(_figure("pools-smallest", "smallest request", axis, found["smallest"]))
    page.text(f"## Experiment 3 (the paper's Figure 7): largest request\n\n{RATE} requests a second, from 100 bytes.")
    axis = "largest request, B"
    _table(page, axis, found["largest"], ["fixed 54 %"] * len(LARGEST), [exact] * len(LARGEST))
    page.figure(_figure("pools-largest", "largest request", axis, found["largest"]))


def _table(page: Page, axis: str, results: Results, theirs: Sequence[str], exact: Sequence[float]) -> None:
    page.text("Admission, and Erlang B for the fixed pool:")
    rows: list[list[object]] = []
    for at, x in enumerate(results.x):
        variable, fixed = results.points[VARIABLE][at], results.points[FIXED][at]
        ours = [f"{share:.4f}" for share in (variable.admission, fixed.admission, exact[at])]
        rows.append([f"{x:g}", theirs[at], *ours])
    page.table((axis, "the paper: admission", VARIABLE, FIXED, "Erlang B"), rows)
    page.text("Utilisation of the pool and of all memory, and the combined utility:")
    header = [axis]
    for series in SERIES[1:]:
        header += [f"{series}, variable", "fixed"]
    rows = []
    for at, x in enumerate(results.x):
        values = [results.points[pool][at].of(series) for series in SERIES[1:] for pool in (VARIABLE, FIXED)]
        rows.append([f"{x:g}", *(f"{value:.4f}" for value in values)])
    page.table(header, rows)


def _figure(name: str, what: str, axis: str, results: Results, log: bool = False) -> Any:
    """A panel a pool, the first above the second as in the paper, with a line for each of SERIES."""
    import altair as alt

    from heapwright.report.figure import BLUE, CLOUD, INK, VERMILLION, Figure, inline

    rows = [
        {"x": x, "pool": pool, "of": series, "share": point.of(series)}
        for pool, points in results.points.items()
        for x, point in zip(results.x, points, strict=True)
        for series in SERIES
    ]
    scale = alt.Scale(type="log", base=2) if log else alt.Scale(zero=False)
    ticks = alt.Axis(values=list(results.x), format="~g", labelOverlap=False)
    colour = alt.Scale(domain=SERIES, range=[BLUE, VERMILLION, CLOUD, INK])
    panels = []
    for pool in results.points:
        chart = inline([row for row in rows if row["pool"] == pool]).encode(
            x=alt.X("x:Q", title=axis, scale=scale, axis=ticks),
            y=alt.Y("share:Q", title=f"{pool}: share", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("of:N", sort=None, scale=colour),
            shape=alt.Shape("of:N", sort=None, scale=alt.Scale(domain=SERIES)),
        )
        drawn = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=60, opacity=1)
        panels.append(drawn.properties(height=190, width=560))
    low, high = results.points.values()
    best, other = max(low, key=lambda p: p.utility), max(high, key=lambda p: p.utility)
    first, second = results.points
    title = f"{what.capitalize()}: utility at most {best.utility:.2f} ({first}), {other.utility:.2f} ({second})"
    note = "Admission, mean share of the usable and of all bytes in use, and utility: admission x pool utilisation."
    return Figure(name, title, note, alt.vconcat(*panels), 620)


# ---- experiments 4 and 5 -------------------------------------------------------------------------------------------


SAME_MEMORY, SAME_COUNT = f"{TOTALS[1] // 1024} KB usable", f"{MANY} partitions"


def partition_sizes(requests: int = REQUESTS) -> Results:
    """Experiment 4: both configurations at each of PARTITIONS."""
    scenario = Scenario(1 / 1000, 1000, 3000)
    same = run(scenario, [partitions(size, TOTALS[1] // size) for size in PARTITIONS], requests)
    many = run(scenario, [partitions(size, MANY) for size in PARTITIONS], requests)
    return Results(PARTITIONS, {SAME_MEMORY: same, SAME_COUNT: many})


def _partition_sizes(page: Page, sized: Results) -> None:
    page.text(
        "## Experiment 4 (the paper's Figure 8): partition size\n\n"
        "1000 requests a second of 1000 to 3000 bytes. “Total pool memory fixed” is read as "
        f"{TOTALS[1]:,} bytes of partitions, those of the other experiments; the descriptors come on top. Were they "
        "inside, 256-byte partitions would admit less than 512-byte ones, against the paper's text. The caption of the "
        "paper's figure speaks of fixed-size pools; its text of these two configurations."
    )
    rows = []
    for at, size in enumerate(sized.x):
        cells: list[str] = []
        for name, points in sized.points.items():
            count = TOTALS[1] // int(size) if name == SAME_MEMORY else MANY
            memory = memory_bytes(partitions(int(size), count))
            values = (points[at].of(series) for series in SERIES)
            cells += [f"{memory:,}", *(f"{value:.4f}" for value in values)]
        rows.append([f"{size:g}", *cells])
    page.table(("partition, B", f"{SAME_MEMORY}: memory, B", *SERIES, f"{SAME_COUNT}: memory, B", *SERIES), rows)
    page.figure(_figure("pools-partition", "partition size", "partition, B", sized, log=True))


@dataclass(frozen=True)
class Overhead:
    """Experiment 5 at one size: bytes about the blocks / bytes usable, of one kind of pool."""

    pool: str
    total: int
    size: int
    share: float


def overheads() -> list[Overhead]:
    """Experiment 5: from the layout of the pools themselves."""
    found = []
    for total in TOTALS:
        for size in SEGMENTS:
            kinds = {f"{FIXED}, {header} B a buffer": buffers(size, total // size, header) for header in BUFFER_HEADERS}
            for name, recipe in {VARIABLE: partitions(size, total // size), **kinds}.items():
                usable = usable_bytes(recipe)
                found.append(Overhead(name, total, size, memory_bytes(recipe) / usable - 1))
    return found


def _overheads(page: Page) -> None:
    page.text(
        "## Experiment 5 (the paper's Figure 9): overheads\n\n"
        "Bytes of descriptors, headers and control data / bytes usable, as the pools are laid out. The fixed pool "
        f"links its free buffers inside them and needs nothing else; a version with {BUFFER_HEADERS[1]} bytes a buffer "
        "stands for an implementation that keeps a pointer and a state."
    )
    found = overheads()
    columns = [(pool, total) for total in TOTALS for pool in dict.fromkeys(one.pool for one in found)]
    values = {(one.pool, one.total, one.size): one.share for one in found}
    rows = [[size, *(percent(values[pool, total, size], 2) for pool, total in columns)] for size in SEGMENTS]
    page.table(("size, B", *(f"{pool}: {total // 1024} KB" for pool, total in columns)), rows)
    page.figure(_overhead_figure(found))


def _overhead_figure(found: list[Overhead]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, INK, VERMILLION, Figure, inline

    names = list(dict.fromkeys(one.pool for one in found))
    rows = [
        {"pool": one.pool, "total": f"{one.total // 1024} KB", "size": one.size, "share": one.share} for one in found
    ]
    chart = inline(rows).encode(
        x=alt.X("size:Q", title="partition or buffer, B", scale=alt.Scale(type="log", base=2)),
        y=alt.Y(
            "share:Q",
            title="overhead, share of the usable bytes",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~%", tickCount=6),
        ),
        color=alt.Color("pool:N", sort=None, scale=alt.Scale(domain=names, range=[BLUE, INK, VERMILLION])),
        shape=alt.Shape("pool:N", sort=None, scale=alt.Scale(domain=names)),
        strokeDash=alt.StrokeDash("total:N", sort=None, legend=None),
    )
    line = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=50, opacity=1)
    title = "A partition costs its descriptor, a buffer next to nothing"
    note = "Solid lines: pools of 64 KB; dashed: of 512 KB, most of them on the solid ones. Logarithmic."
    return Figure("pools-overhead", title, note, line.properties(height=260), 620)


# ---- claims --------------------------------------------------------------------------------------------------------


def _check_load(page: Page, found: Results) -> None:
    for series in SERIES:
        variable, fixed = found.of(VARIABLE, series), found.of(FIXED, series)
        least = min(ours - theirs for ours, theirs in zip(variable, fixed, strict=True))
        page.claim(
            f"experiment 1: {series} of the variable pool is consistently better",
            "at every load",
            f"by {100 * least:.1f} points or more" if least > 0 else f"up to {-100 * least:.1f} points worse",
            least > 0,
        )
    at = LOADS.index(0.003)
    full, still = found.of(VARIABLE, "admission")[at], found.of(FIXED, "admission")[at]
    page.claim("at 0.003 the variable pool admits 100 % of requests", "100 %", percent(full, 1), full > 0.995)
    page.claim("at 0.003 the fixed pool “is still at 80 %”", "80 %", percent(still, 1), abs(still - 0.8) < 0.01)
    faster, slower = (
        (values[at] - values[0]) / (LOADS[at] - LOADS[0])
        for values in (found.of(VARIABLE, "admission"), found.of(FIXED, "admission"))
    )
    page.claim(
        "its admission rises faster",
        "larger slope",
        f"{faster / 1000:.2f} and {slower / 1000:.2f} a millisecond",
        faster > slower,
    )
    for pool in (VARIABLE, FIXED):
        for series in ("utility", "pool utilisation"):
            _check_maximum(page, found, pool, series)
    memory = [memory_bytes(load(name)) for name in ("variable-pool", "fixed-pool")]
    page.claim(
        "memory with overheads is almost equal",
        "almost equal",
        f"{memory[0]:,} and {memory[1]:,} bytes",
        abs(memory[0] - memory[1]) < 0.01 * memory[0],
    )


def _check_maximum(page: Page, found: Results, pool: str, series: str) -> None:
    values = found.of(pool, series)
    best = values.index(max(values))
    page.claim(
        f"{series} has a maximum, after which memory is idle ({pool})",
        "a point inside the range",
        f"{values[best]:.3f} at {LOADS[best]:g}, {values[-1]:.3f} at {LOADS[-1]:g}",
        values[best] > max(values[0], values[-1]) + SAMPLING,
    )


def _check_smallest(page: Page, found: Results) -> None:
    small = found.of(FIXED, "admission")
    spread = max(small) - min(small)
    page.claim(
        "experiment 2: admission of the fixed pool “does not change much”",
        "constant",
        f"within {percent(spread, 1)}",
        spread < 0.02,
    )
    for pool in (FIXED, VARIABLE):
        _check_trend(page, f"utilisation of the {pool} rises with the smallest request", found, pool, "utilisation", 1)
    _check_trend(
        page, "admission of the variable pool falls with the smallest request", found, VARIABLE, "admission", -1
    )
    for series in ("admission", "utilisation"):
        worse = [
            size
            for size, ours, theirs in zip(SMALLEST, found.of(VARIABLE, series), found.of(FIXED, series), strict=True)
            if theirs > ours
        ]
        page.claim(
            f"from some smallest request on, {series} of the fixed pool is better",
            "after a certain size",
            f"at {', '.join(map(str, worse))} B" if worse else "nowhere",
            bool(worse) and worse == [size for size in SMALLEST if size >= worse[0]] and worse[0] > SMALLEST[0],
        )


def _check_trend(page: Page, claim: str, found: Results, pool: str, series: str, sign: int) -> None:
    values = found.of(pool, series)
    page.claim(
        claim,
        "rises" if sign > 0 else "falls",
        f"{percent(values[0], 1)} to {percent(values[-1], 1)}",
        _monotone(values, sign),
    )


def _monotone(values: Sequence[float], sign: int) -> bool:
    return all(sign * (later - earlier) > -SAMPLING for earlier, later in pairwise(values))


def _check_largest(page: Page, found: Results) -> None:
    for series in ("admission", "utilisation"):
        gains = [a - b for a, b in zip(found.of(VARIABLE, series), found.of(FIXED, series), strict=True)]
        page.claim(
            f"experiment 3: {series} of the variable pool is always better",
            "always",
            f"by {100 * min(gains):.1f} to {100 * max(gains):.1f} points",
            min(gains) > 0,
        )
    large = found.of(FIXED, "admission")
    page.claim(
        "admission of the fixed pool is “almost constant at 54 %”",
        "54 %",
        f"{percent(min(large), 1)} to {percent(max(large), 1)}",
        all(abs(value - 0.54) < 0.01 for value in large),
    )
    full = [
        (size, used)
        for size, admitted, used in zip(
            LARGEST, found.of(VARIABLE, "admission"), found.of(VARIABLE, "utilisation"), strict=True
        )
        if admitted > 0.995
    ]
    page.claim(
        "where the variable pool admits 100 %, 50 to 60 % of the memory are used",
        "50–60 %",
        ", ".join(f"{percent(used, 1)} at {size} B" for size, used in full) or "it admits less everywhere",
        bool(full) and all(0.45 <= used <= 0.65 for _, used in full),
    )


def _check_erlang(page: Page, found: dict[str, Results]) -> None:
    exact = {"load": [_erlang(load) for load in LOADS]}
    furthest = max(
        abs(value - theory)
        for name, results in found.items()
        for value, theory in zip(
            results.of(FIXED, "admission"), exact.get(name, [_erlang(1 / RATE)] * len(results.x)), strict=True
        )
    )
    page.claim(
        "(theory) admission of the fixed pool follows Erlang B at every point",
        "exact",
        f"at most {furthest:.4f} off",
        furthest < 0.01,
    )


def _check_partition_sizes(page: Page, sized: Results) -> None:
    claim = "experiment 4: with the memory fixed, smaller partitions give better admission"
    _check_trend(page, claim, sized, SAME_MEMORY, "admission", -1)
    used = sized.of(SAME_MEMORY, "utilisation")
    page.claim(
        "and better utilisation, but for a drop at 256 B, where overheads are large",
        "drop at 256 B",
        f"{percent(used[0], 2)} at 256 B, {percent(used[1], 2)} at 512 B, {percent(used[-1], 1)} at 4096 B",
        used[0] < used[1] and _monotone(used[1:], -1),
    )
    _check_trend(page, f"with {MANY} partitions, larger ones admit more", sized, SAME_COUNT, "admission", 1)
    used = sized.of(SAME_COUNT, "utilisation")
    page.claim(
        "and use memory less efficiently",
        "falls",
        f"{percent(used[0], 1)} at 256 B, {percent(used[1], 1)} at 512 B, {percent(used[-1], 1)} at 4096 B",
        _monotone(used, -1),
    )


def _check_overheads(page: Page) -> None:
    found = overheads()
    variable = [one for one in found if one.pool == VARIABLE]
    for total in TOTALS:
        shares = [one.share for one in variable if one.total == total]
        page.claim(
            f"experiment 5: the smaller the partition, the larger the overhead ({total // 1024} KB)",
            "falls with size",
            f"{percent(shares[0], 1)} at {SEGMENTS[0]} B to {percent(shares[-1], 1)} at {SEGMENTS[-1]} B",
            shares == sorted(shares, reverse=True),
        )
    by_place = {(one.total, one.size): one.share for one in variable}
    ratios = [one.share / by_place[one.total, one.size] for one in found if one.pool != VARIABLE]
    page.claim(
        "fixed-size pools always have the smaller overhead",
        "always",
        f"at most {percent(max(ratios))} of the variable pool's",
        max(ratios) < 1,
    )
