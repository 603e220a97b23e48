"""Deficit round robin: Table 3, Figures 3 and 4, and the characteristics of section 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from heapwright.errors import HeapwrightError
from heapwright.host_timing import Bench
from heapwright.packets import PacketTable
from heapwright.papers import packet_tables
from heapwright.papers.page import Page, percent
from heapwright.profile import profile
from heapwright.recipes import Quick
from heapwright.replay import replay
from heapwright.traces import FREE, Trace
from heapwright.workloads.drr import drr
from heapwright.zoo import load

PAPER = "Mamagkakis et al. 2006"
PACKETS, TRACES = 50_000, 5
LEAST_PACKETS = 10_000
PROPOSED = "drr-proposed"
HEAPS = (PROPOSED, "kingsley", "tlsf", "exact-bins", "victim-bins")
"""The allocators of the zoo that are for such traffic: those that walk all blocks take minutes for a trace."""

BUILDINGS = ("Ber.", "Br.", "Col.", "Sud.", "Whit.")
TABLE_3: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "Windows CE": ((83, 70, 13, 59, 251, 20), (1.78, 0.36, 0.78, 0.34, 5.17, 2.27)),
    "Windows XP": ((142, 169, 21, 183, 256, 80), (1.69, 0.28, 0.58, 0.31, 5.25, 2.03)),
    "Linux": ((66, 35, 8, 59, 206, 23), (2.19, 0.33, 0.79, 0.50, 6.58, 2.74)),
    "Enea OSE": ((93, 62, 8, 100, 212, 86), (7.91, 8.40, 10.88, 8.55, 8.04, 3.67)),
    "uClinux": ((152, 93, 49, 153, 350, 117), (2.4, 0.13, 0.51, 0.33, 6.68, 4.34)),
    "Proposed": ((55, 20, 1, 35, 183, 35), (1.62, 0.17, 0.46, 0.24, 5.13, 2.09)),
}
"""Table 3: fragmentation in per cent and execution time in seconds, each the average and the five buildings."""

_INTRODUCTION = """\
{paper} run deficit round robin on wireless traces of five buildings of the Dartmouth campus, {packets:,} packets
each. Those traces are not to be had; these stand in, the tables of the folder with most distinct sizes of IP
packets: {stand}. Each is `heapwright workload drr --packets {packets}` with its defaults: quantum 9 KB, every
packet looked for from the oldest queue on, 16 bytes beside each packet, 24 bytes a queue, a link that is busy 90 %
of the time.

Fragmentation is the paper's cost function, memory used / memory requested - 1, each at its peak and without
headers. The paper's times are those of a whole run on a Pentium IV; ours are CPU time of the generated code on this
host, in milliseconds for all calls. Accesses are loads and stores of the allocator's own data, which no machine
changes. `–`: the allocator refused requests. The allocators of operating systems that the paper compares with are
not on this page."""


@dataclass(frozen=True)
class Run:
    """One network under the scheduler, and what each heap made of it."""

    name: str
    profile: dict[str, Any]
    trace: Trace
    metrics: dict[str, dict[str, Any]]
    ns: dict[str, float]

    @property
    def returned(self) -> float:
        """Share of the freed blocks that the proposed allocator returns to its main pool: those of other sizes."""
        kept = {size for pool in load(PROPOSED).pools if isinstance(pool, Quick) for size in pool.sizes or ()}
        number, count = self.trace.objects()
        size = np.zeros(count, np.int64)
        taken = self.trace.op != FREE
        size[number[taken]] = self.trace.size[taken]
        freed = size[number[~taken]]
        return float(1 - np.isin(freed, list(kept)).mean())


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Table 3 with the allocators of HEAPS, Figures 3 and 4, and the claims of sections 5 and 6.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table holds enough IP packets.
    """
    runs = []
    with Bench() as bench:
        for name, table in stand_ins(packet_tables(packets)).items():
            progress(f"drr: {name}")
            runs.append(_run(name, table, bench))
    made = Page("drr", "Deficit round robin under real traffic", PAPER)
    _introduce(made, runs)
    _table_3(made, runs)
    made.text("## Memory over time (the paper's Figure 3)")
    for run in runs:
        made.figure(_memory(run))
    made.text("## Sizes of the requests (the paper's Figure 4)")
    for run in runs:
        made.figure(_sizes(run))
    _check(made, runs)
    return made


def stand_ins(tables: dict[str, PacketTable]) -> dict[str, PacketTable]:
    """The TRACES tables with most distinct sizes among their first packets: networks of people, as the paper's are."""
    fit: dict[str, int] = {}
    for name, table in tables.items():
        sizes = table.ip_len[:PACKETS]
        sizes = sizes[sizes > 0]
        if len(sizes) >= LEAST_PACKETS:
            fit[name] = len(np.unique(sizes))
    if not fit:
        raise HeapwrightError(f"no packet table has {LEAST_PACKETS:,} IP packets among its first {PACKETS:,}")
    return {name: tables[name] for name in sorted(fit, key=lambda name: -fit[name])[:TRACES]}


def _run(name: str, table: PacketTable, bench: Bench) -> Run:
    trace = drr(table, count=PACKETS)
    heaps = {heap: load(heap) for heap in HEAPS}
    metrics: dict[str, dict[str, Any]] = {heap: dict(replay(trace, recipe)) for heap, recipe in heaps.items()}
    served = {heap: bench.generated(recipe) for heap, recipe in heaps.items() if not metrics[heap]["failed"]}
    return Run(name, profile(trace), trace, metrics, bench.measure(served, trace, rounds=3, passes=1))


def _introduce(page: Page, runs: list[Run]) -> None:
    stand = ", ".join(f"{run.name} ({run.profile['mallocs']:,} blocks)" for run in runs)
    page.text(_INTRODUCTION.format(paper=PAPER, stand=stand, packets=PACKETS))


def _table_3(page: Page, runs: list[Run]) -> None:
    page.text("## Table 3: fragmentation and execution time")
    header = ("the paper", "average, %", *(f"{building} %" for building in BUILDINGS), "average, s", *BUILDINGS)
    rows: list[list[object]] = [
        [name, *wasted, *(f"{time:.2f}" for time in times)] for name, (wasted, times) in TABLE_3.items()
    ]
    page.table(header, rows)
    short = [run.name for run in runs]
    header = ("here", "average, %", *(f"{name} %" for name in short), "average, ms", *short)
    page.table(header, [_row(heap, runs) for heap in HEAPS])
    page.text("Accesses of the allocator to its own data, per call:")
    rows = [
        [heap, *(_served(run, heap, lambda r, h: f"{r.metrics[h]['accesses'] / len(r.trace):.1f}") for run in runs)]
        for heap in HEAPS
    ]
    page.table(("here", *short), rows)


def _row(heap: str, runs: list[Run]) -> list[object]:
    wasted = [_served(run, heap, lambda r, h: f"{100 * r.metrics[h]['fragmentation']:.1f}") for run in runs]
    times = [_served(run, heap, lambda r, h: f"{r.ns[h] * len(r.trace) / 1e6:.2f}") for run in runs]
    whole = all(heap in run.ns for run in runs)
    average = f"{100 * _wasted(heap, runs):.1f}" if whole else "–"
    time = f"{mean(run.ns[heap] * len(run.trace) / 1e6 for run in runs):.2f}" if whole else "–"
    return [heap, average, *wasted, time, *times]


def _served(run: Run, heap: str, cell: Callable[[Run, str], str]) -> str:
    return cell(run, heap) if heap in run.ns else "–"


def _wasted(heap: str, runs: list[Run]) -> float:
    return mean(float(run.metrics[heap]["fragmentation"]) for run in runs)


def _memory(run: Run) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, Figure, inline, quantity

    live = run.profile["live"]
    rows = [{"call": call, "bytes": size} for call, size in zip(live["event"], live["bytes"], strict=True)]
    area = inline(rows).mark_area(color=BLUE, opacity=0.25, line={"color": BLUE, "strokeWidth": 1})
    chart = area.encode(
        x=alt.X("call:Q", title="calls", axis=alt.Axis(format="~s")),
        y=alt.Y("bytes:Q", title="live bytes, B", axis=alt.Axis(format="~s", tickCount=4)),
    ).properties(height=150)
    title = f"{run.name}: memory over time"
    note = f"What the scheduler has asked for and not freed; at most {quantity(run.profile['requested_peak_bytes'])}."
    return Figure(f"drr-memory-{run.name}", title, note, chart, 620)


def _sizes(run: Run) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, Figure, inline

    rows = [{"size": row["size"], "count": row["count"]} for row in run.profile["sizes"]]
    chart = (
        inline(rows)
        .mark_rule(color=BLUE, strokeWidth=1)
        .encode(
            x=alt.X("size:Q", title="size of the block, B"),
            y=alt.Y(
                "count:Q", title="requests", scale=alt.Scale(type="symlog"), axis=alt.Axis(format="~s", tickCount=4)
            ),
        )
        .properties(height=150)
    )
    two = percent(run.profile["top_two_share"])
    title = f"{run.name}: {run.profile['distinct_sizes']:,} sizes, two of them {two} of the requests"
    note = "Every size with its requests, logarithmic; the paper's two modes are 16 and 1476 bytes."
    return Figure(f"drr-sizes-{run.name}", title, note, chart, 620)


def _check(page: Page, runs: list[Run]) -> None:
    whole = [heap for heap in HEAPS if all(heap in run.ns for run in runs)]
    wasted = {heap: _wasted(heap, runs) for heap in whole}
    times = {heap: mean(run.ns[heap] for run in runs) for heap in whole}
    for what, values, theirs in (
        ("has the least fragmentation", wasted, "55 %, next 66 %"),
        ("is the fastest", times, "1.62 s, next 1.69 s"),
    ):
        best = min(values, key=lambda heap: values[heap])
        show = percent if values is wasted else (lambda value, digits: f"{value:.{digits}f} ns a call")
        ours = f"{show(values[PROPOSED], 1)}; best is {best} with {show(values[best], 1)}"
        page.claim(f"the proposed allocator {what} on average", theirs, ours, best == PROPOSED)
    two = [run.profile["top_two_share"] for run in runs]
    _range(page, "two sizes are 30 to 70 % of the requests", two)
    sizes = [run.profile["distinct_sizes"] for run in runs]
    page.claim(
        "the rest are 700 to 1500 sizes",
        "700–1500",
        f"{min(sizes):,}–{max(sizes):,}",
        min(sizes) >= 700 and max(sizes) <= 1500,
    )
    _range(page, "30 to 70 % of the blocks are returned to the main pool", [run.returned for run in runs])
    together = [run.profile["locality"][-1] for run in runs]
    shares = [row["share"] for row in together]
    chance = [row["by_chance"] for row in together]
    page.claim(
        "objects born together die together",
        "yes",
        f"neighbours within {together[0]['within_frees']} frees: {percent(mean(shares))}; by chance "
        f"{percent(mean(chance))}",
        all(share > luck for share, luck in zip(shares, chance, strict=True)),
    )


def _range(page: Page, claim: str, shares: list[float]) -> None:
    inside = all(0.3 <= share <= 0.7 for share in shares)
    page.claim(claim, "30–70 %", f"{percent(min(shares))} to {percent(max(shares))}", inside)
