"""Deficit round robin: Table 3, Figures 3 and 4, and the characteristics of section 5.

Mamagkakis et al. 2006, "Reducing memory fragmentation in network applications with dynamic memory allocators optimized
for performance".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from heapwright.papers.case_study import METRIC, PAPER, PROPOSED, Case, Run, add_tables, check, run_all, stand_ins
from heapwright.papers.held_out import PUBLISHED, RETUNED, Split, add_contest, retuned
from heapwright.papers.page import Page, percent
from heapwright.papers.traffic import packet_tables
from heapwright.traces.profile import profile
from heapwright.traces.validation import FREE
from heapwright.workloads.drr import drr
from heapwright.zoo.catalogue import load

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace
    from heapwright.traffic.packets import PacketTable

PACKETS, TRACES = 50_000, 5
EXPLORED_PACKETS = 8_000
LISTS = (16, 1476)
"""Sizes of the proposed allocator's freelists: an acknowledgement and a full packet, with 16 bytes beside each."""
LEAST_SHOWN = 0.7
"""Lower end of a logarithmic axis of counts, so that 1 is seen."""
EVEN_WITHIN = 0.1
"""The largest distance from an even distribution, in shares, that is still called even."""

CASE = Case(
    "drr",
    3,
    ("Ber.", "Br.", "Col.", "Sud.", "Whit."),
    {
        "Windows CE": ((83, 70, 13, 59, 251, 20), (1.78, 0.36, 0.78, 0.34, 5.17, 2.27)),
        "Windows XP": ((142, 169, 21, 183, 256, 80), (1.69, 0.28, 0.58, 0.31, 5.25, 2.03)),
        "Linux": ((66, 35, 8, 59, 206, 23), (2.19, 0.33, 0.79, 0.50, 6.58, 2.74)),
        "Enea OSE": ((93, 62, 8, 100, 212, 86), (7.91, 8.40, 10.88, 8.55, 8.04, 3.67)),
        "uClinux": ((152, 93, 49, 153, 350, 117), (2.40, 0.13, 0.51, 0.33, 6.68, 4.34)),
        "Avg. Alloc.": ((107, 86, 20, 111, 255, 65), (3.19, 1.90, 2.71, 2.01, 6.34, 3.01)),
        PROPOSED: ((55, 20, 1, 35, 183, 35), (1.62, 0.17, 0.46, 0.24, 5.13, 2.09)),
    },
    less_fragmentation=(97.82, 48.39),
    less_time=(97.20, 49.22),
)

_INTRODUCTION = """\
{paper} run deficit round robin on wireless traces of five buildings of the Dartmouth campus, {packets:,} packets each.
Those traces are not to be had; these stand in, the tables of the folder with most distinct sizes of IP packets:
{stand}. Networks whose frames hide their IP packets, as recordings of encrypted 802.11 do, cannot: the paper's sizes
are those of IP. Each is `heapwright workload drr --count {packets}` with its defaults: quantum 9 KB, every packet
looked for from the oldest queue on, 16 bytes beside each packet, 24 bytes a queue, a link busy 90 % of the time."""

_REASONS = (
    """\
- The freelists of the proposed allocator serve {lists} of the requests here (16 and 1476 bytes, in the order of the
  networks). An acknowledgement with time stamps has 28 bytes, and full packets come in many lengths: those go to the
  main pool. Freelists never
  give a block back, so what they hold at a peak of small packets is lost to the next peak of large ones.""",
    """\
- First fit walks a list that is as long as traffic is mixed: see the accesses. The paper does not say how long its
  lists were. `proposed` is slow on {slowest} for that reason alone.""",
    """\
- How much waits in the queues depends on the rate of the link, which the paper does not tell.""",
)


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Table 3, Figures 3 and 4, the claims of sections 5 and 6, and the best of the full space on networks held out.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table holds enough IP packets.
    """
    tables = packet_tables(packets)
    chosen = stand_ins(tables, PACKETS, TRACES)
    runs = run_all(CASE, {name: partial(drr, table, count=PACKETS) for name, table in chosen.items()}, progress)
    profiles = {run.name: profile(run.trace) for run in runs}
    made = Page("drr", "Deficit round robin under real traffic", PAPER)
    stand = ", ".join(f"{run.name} ({profiles[run.name]['mallocs']:,} blocks)" for run in runs)
    made.text(_INTRODUCTION.format(paper=PAPER, stand=stand, packets=PACKETS))
    made.text(METRIC)
    add_tables(made, CASE, runs, _reasons(runs))
    made.text("## Memory over time (the paper's Figure 3)")
    for run in runs:
        made.figure(_memory(run.name, profiles[run.name]))
    made.text("## Sizes of the requests (the paper's Figure 4)")
    for run in runs:
        made.figure(_sizes(run.name, profiles[run.name]))
    check(made, CASE, runs)
    _check_sizes(made, [profiles[run.name] for run in runs])
    _check_evenness(made, runs)
    _check_behaviour(made, runs, [profiles[run.name] for run in runs])
    _contest(made, tables, progress)
    return made


def _reasons(runs: Sequence[Run]) -> list[str]:
    lists = ", ".join(percent(1 - returned(run.trace)) for run in runs)
    slowest = max(runs, key=lambda run: run.metrics[PROPOSED]["accesses"] / len(run.trace)).name
    return [reason.format(lists=lists, slowest=slowest) for reason in _REASONS]


def returned(trace: Trace) -> float:
    """Share of the freed blocks that the proposed allocator returns to its main pool: those of other sizes."""
    number, count = trace.objects()
    size = np.zeros(count, np.int64)
    taken = trace.op != FREE
    size[number[taken]] = trace.size[taken]
    return float(1 - np.isin(size[number[~taken]], LISTS).mean())


# ---- figures ---------------------------------------------------------------------------------------------------------


def _memory(name: str, found: dict[str, Any]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, SI, Figure, inline, quantity

    live = found["live"]
    rows = [{"call": call, "bytes": size} for call, size in zip(live["event"], live["bytes"], strict=True)]
    area = inline(rows).mark_area(color=BLUE, opacity=0.25, line={"color": BLUE, "strokeWidth": 1})
    chart = area.encode(
        x=alt.X("call:Q", title="calls", axis=alt.Axis(labelExpr=SI)),
        y=alt.Y("bytes:Q", title="live, B", axis=alt.Axis(labelExpr=SI, tickCount=4)),
    ).properties(height=150)
    title = f"{name}: memory over time"
    note = f"What the scheduler has asked for and not freed; at most {quantity(found['requested_peak_bytes'])}."
    return Figure(f"drr-memory-{name}", title, note, chart, 620)


def _sizes(name: str, found: dict[str, Any]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, SI, Figure, inline

    rows = [{"size": row["size"], "count": row["count"]} for row in found["sizes"]]
    scale = alt.Scale(type="log", domainMin=LEAST_SHOWN, nice=False)
    axis = alt.Axis(labelExpr=SI, values=[10**power for power in range(7)])
    requests = alt.Y("count:Q", title="requests (log)", scale=scale, axis=axis)
    chart = (
        inline(rows)
        .mark_rule(color=BLUE, strokeWidth=1)
        .encode(
            x=alt.X("size:Q", title="size of the block, B", scale=alt.Scale(zero=False, nice=False, padding=6)),
            y=requests,
            y2=alt.datum(LEAST_SHOWN),
        )
        .properties(height=150)
    )
    two = percent(found["top_two_share"])
    title = f"{name}: {found['distinct_sizes']:,} sizes, two of them {two} of the requests"
    note = "Every size with its requests; the paper's two modes are 16 and 1476 bytes."
    return Figure(f"drr-sizes-{name}", title, note, chart, 620)


# ---- claims ----------------------------------------------------------------------------------------------------------


def _check_sizes(page: Page, profiles: Sequence[dict[str, Any]]) -> None:
    """Characteristics 1 and 3 of section 5."""
    two = [found["top_two_share"] for found in profiles]
    inside = all(0.3 <= share <= 0.7 for share in two)
    page.claim("two sizes are 30 to 70 % of the requests", "30–70 %", _span(two), inside)
    modes = [tuple(sorted(row["size"] for row in found["sizes"][:2])) for found in profiles]
    page.claim(
        "these two are the acknowledgement and the full packet",
        "16 and 1476 bytes",
        "; ".join(f"{small} and {large}" for small, large in modes) + " bytes",
        all(mode == LISTS for mode in modes),
    )
    rest = [1 - share for share in two]
    others = [found["distinct_sizes"] - 2 for found in profiles]
    page.claim(
        "30 to 70 % of the requests have 700 to 1500 other sizes",
        "30–70 %, 700–1500 sizes",
        f"{_span(rest)}, {min(others):,} to {max(others):,} sizes",
        all(0.3 <= share <= 0.7 for share in rest) and 700 <= min(others) <= max(others) <= 1500,
    )


def _check_evenness(page: Page, runs: Sequence[Run]) -> None:
    """Characteristic 1: how far the other sizes are from an even spread between the two, as Kolmogorov's distance."""
    distances = []
    for run in runs:
        sizes = run.trace.size[run.trace.op != FREE]
        rest = np.sort(sizes[(sizes > LISTS[0]) & (sizes < LISTS[1])])
        even = (rest - LISTS[0]) / (LISTS[1] - LISTS[0])
        distances.append(float(np.abs(even - np.arange(1, len(rest) + 1) / len(rest)).max()) if len(rest) else 1.0)
    page.claim(
        "the other sizes are evenly distributed between the two",
        "even",
        f"the share of sizes up to a bound is off an even one by {_span(distances)} at most",
        max(distances) <= EVEN_WITHIN,
    )


def _check_behaviour(page: Page, runs: Sequence[Run], profiles: Sequence[dict[str, Any]]) -> None:
    """Characteristics 2 and 4 of section 5, and what section 6 says of the trace with the ramp."""
    shares = [returned(run.trace) for run in runs]
    inside = all(0.3 <= share <= 0.7 for share in shares)
    page.claim("30 to 70 % of the blocks are returned to the main pool", "30–70 %", _span(shares), inside)
    full = [float(np.mean(run.trace.live_bytes)) / run.trace.peak_live_bytes for run in runs]
    page.claim(
        "memory use has many forms: thin and fat spikes, plateaus, a ramp",
        "five forms",
        f"the mean is {_span(full)} of the peak",
        max(full) >= 2 * min(full),
    )
    largest = max(runs, key=lambda run: run.trace.peak_live_bytes)
    worst = max(runs, key=lambda run: run.fragmentation(PROPOSED))
    page.claim(
        "fragmentation is worst where most traffic waits",
        "Sudikoff, 183 % (proposed)",
        f"most waits on {largest.name} ({percent(largest.fragmentation(PROPOSED), 1)}); worst is {worst.name} "
        f"({percent(worst.fragmentation(PROPOSED), 1)})",
        largest is worst,
    )
    together = [found["locality"][-1] for found in profiles]
    page.claim(
        "objects born together die together",
        "yes",
        f"neighbours within {together[0]['within_frees']} frees: {percent(mean(row['share'] for row in together))}; "
        f"by chance {percent(mean(row['by_chance'] for row in together))}",
        all(row["share"] > row["by_chance"] for row in together),
    )


def _span(shares: Sequence[float]) -> str:
    return f"{percent(min(shares))} to {percent(max(shares))}"


def _contest(page: Page, tables: dict[str, PacketTable], progress: Callable[[str], None]) -> None:
    split = Split.of_packets(drr, tables, EXPLORED_PACKETS, PACKETS)
    proposed = load(CASE.proposed)
    heaps = {PUBLISHED: proposed, RETUNED: retuned(proposed, list(split.explored.values()))}
    add_contest(page, split, (EXPLORED_PACKETS, PACKETS), heaps, progress)
