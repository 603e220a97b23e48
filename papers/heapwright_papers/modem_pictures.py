"""The figures of the page about the modem concentrator."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

import altair as alt

from heapwright import figure
from heapwright_papers.modem_runs import (
    BEST_TREE,
    COALESCE,
    FIRST_FAST,
    FIRST_TREE,
    FITS,
    FOUR,
    SEEDS,
    TABLE_1,
    TABLE_2,
    Length,
    Results,
    Scaled,
)

if TYPE_CHECKING:
    from heapwright_papers.modem_runs import Response

_THEIRS, _OURS = "the paper", "here: mean and range"
_WIDTH = 560


def memory(results: Results) -> figure.Figure:
    """Figure 5: what is not the program's own."""
    rows: list[dict[str, Any]] = []
    for at, label in enumerate(FOUR):
        for part in ("headers", "fragments"):
            shares = [one.of(part) / one.physical for one in results.peaks[label]]
            what = {"heap": f"{label}: {part}"}
            rows.append({**what, "who": _THEIRS, "share": TABLE_1[part][at] / TABLE_1["physical size"][at]})
            rows.append({**what, "who": _OURS, "share": mean(shares), "low": min(shares), "high": max(shares)})
    order = [f"{label}: {part}" for part in ("headers", "fragments") for label in FOUR]
    scale = alt.Scale(domain=[_THEIRS, _OURS], range=[figure.VERMILLION, figure.BLUE])
    base = figure.inline(rows).encode(
        y=alt.Y("heap:N", title=None, sort=order, axis=alt.Axis(labelLimit=230)),
        yOffset=alt.YOffset("who:N", sort=None),
    )
    ranges = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=3, opacity=0.45, color=figure.BLUE)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("share:Q", title="share of the physical memory", axis=alt.Axis(format=".0%", tickCount=6)),
        color=alt.Color("who:N", sort=None, scale=scale),
    )
    drawn = ranges.encode(x=alt.X("low:Q", title="share of the physical memory"), x2="high:Q") + points
    title = "Headers are the paper's; fragments depend on the run"
    note = (
        f"Share of the smallest memory that serves the run, when most is live; {len(SEEDS)} seeds. What is neither "
        "header nor fragment is the program's own. Points of the paper: Table 1."
    )
    return figure.Figure("modem-memory", title, note, drawn.properties(height=230), _WIDTH)


def times(responses: dict[str, Response]) -> figure.Figure:
    """Table 2's totals as multiples of the fastest of the four."""
    base = responses[FIRST_FAST].total() or 1.0
    rows: list[dict[str, Any]] = []
    for label, response in responses.items():
        rows += [
            {"heap": label, "kind": kind, "value": (response.instructions(kind) or 0) / base}
            for kind in ("malloc", "free")
        ]
    theirs = TABLE_2["total"]
    marks = [
        {"heap": label, "kind": "the paper: both", "value": total / theirs[list(FOUR).index(FIRST_FAST)]}
        for label, total in zip(FOUR, theirs, strict=True)
    ]
    domain, colours = ["malloc", "free", "the paper: both"], [figure.BLUE, figure.CLOUD, figure.VERMILLION]
    color = alt.Color("kind:N", sort=None, scale=alt.Scale(domain=domain, range=colours))
    heap = alt.Y("heap:N", title=None, sort=list(responses), axis=alt.Axis(labelLimit=220))
    bars = (
        figure.inline(rows)
        .mark_bar(stroke="white")
        .encode(
            x=alt.X("value:Q", title="first fit with fast free = 1", stack="zero"),
            y=heap,
            color=color,
            order=alt.Order("kind:N", sort="descending"),
        )
    )
    points = (
        figure.inline(marks)
        .mark_point(filled=True, size=90, opacity=1, shape="diamond")
        .encode(x="value:Q", y=heap, color=color)
    )
    title = "Fast free saves most of a free, a tree most of a search"
    note = (
        "Time of a malloc and a free: instructions of a Cortex-M3, emulated, mean of all calls of seed 1; the paper's "
        "microseconds (Table 2), which its simulation took. Each as a multiple of first fit with fast free."
    )
    return figure.Figure("modem-times", title, note, (bars + points).properties(height=190), _WIDTH)


def deferred(lengths: Sequence[Length]) -> figure.Figure:
    """Fragments of immediate and of deferred coalescing by the length of the run."""
    rows: list[dict[str, Any]] = []
    for one in lengths:
        shares = one.share("fragments")
        way = f"{FITS[one.fit]}, {one.coalesce}"
        rows.append({"calls": one.calls, "way": way, "share": mean(shares), "low": min(shares), "high": max(shares)})
    ways = [f"{fit}, {merge}" for merge in COALESCE for fit in FITS.values()]
    color = alt.Color(
        "way:N",
        sort=None,
        scale=alt.Scale(domain=ways, range=[figure.BLUE, figure.INK, "#56B4E9", figure.CLOUD]),
        legend=alt.Legend(columns=2, symbolOpacity=1),
    )
    counts = sorted({one.calls for one in lengths})
    x = alt.X(
        "calls:Q",
        title="modem calls in the run",
        scale=alt.Scale(type="log", domain=[counts[0], counts[-1]], nice=False),
        axis=alt.Axis(values=counts, labelExpr=figure.SI),
    )
    base = figure.inline(rows).encode(x=x)
    bands = base.mark_area(opacity=0.15).encode(
        y=alt.Y("low:Q", title="fragments, share of the memory", axis=alt.Axis(format=".0%")),
        y2="high:Q",
        color=color,
    )
    lines = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=45)).encode(y="share:Q", color=color)
    low, high = (part / whole for part, whole in ((100, 30420), (144, 30464)))
    theirs = figure.inline([{"share": low}, {"share": high}]).mark_rule(
        color=figure.VERMILLION, strokeDash=[4, 3], strokeWidth=1.5
    )
    title = "Deferred coalescing leaves more fragments, the longer the run"
    note = (
        f"Mean and range over {len(SEEDS)} seeds, heaps without boundary tags. Broken lines: the paper's first fit and "
        "best fit (0.33 % and 0.47 %), whose run's length it does not tell."
    )
    return figure.Figure(
        "modem-deferred", title, note, (bands + lines + theirs.encode(y="share:Q")).properties(height=260), _WIDTH
    )


def trees(scaled: Sequence[Scaled], labels: Sequence[str]) -> figure.Figure:
    """Accesses a call by the number of instances."""
    rows = [{"instances": one.instances, "heap": one.heap, "accesses": one.accesses} for one in scaled]
    colours = {FIRST_TREE: figure.BLUE, BEST_TREE: figure.INK}
    counts = sorted({one.instances for one in scaled})
    chart = figure.inline(rows).encode(
        x=alt.X(
            "instances:Q",
            title="modem instances",
            scale=alt.Scale(type="log", domain=[counts[0], counts[-1]], nice=False),
            axis=alt.Axis(values=counts),
        ),
        y=alt.Y(
            "accesses:Q",
            title="accesses of metadata a call",
            scale=alt.Scale(type="log", domainMin=3),
            axis=alt.Axis(values=[3, 10, 30, 100, 300, 1000], labelExpr=figure.SI),
        ),
        color=alt.Color(
            "heap:N",
            sort=None,
            scale=alt.Scale(domain=list(labels), range=[colours.get(label, figure.CLOUD) for label in labels]),
            legend=alt.Legend(columns=2),
        ),
        shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=list(labels))),
    )
    drawn = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=60, opacity=1)
    title = "The paper's four walk further with every instance; a tree grows slowly"
    note = "Loads and stores of metadata, mean of all calls, seed 1; logarithmic axes. The paper has five instances."
    return figure.Figure("modem-trees", title, note, drawn.properties(height=260), _WIDTH)
