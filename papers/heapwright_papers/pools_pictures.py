"""The figures about pools of partitions and of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heapwright_papers import pools_runs as runs
from heapwright_papers.answers import percent
from heapwright_papers.traffic import marked

if TYPE_CHECKING:
    from heapwright import figure
    from heapwright_papers.pools_runs import OnPackets, Overhead, Results

WIDTH = 540
"""Pixels: at the width of a phone the words are still three quarters of their size."""
SHARES = "Utility: admission x utilisation of the pool. A replay of 1,000,000 requests a point."
THEIRS = "the paper"


def experiment(
    name: str, title: str, axis: str, results: Results, theirs: Mapping[str, Mapping[float, float]], log: bool = False
) -> figure.Figure:
    """A panel a pool, the first above the second as in the paper, with a line for each of SERIES.

    `theirs` has the paper's admission by pool and x.
    """
    import altair as alt

    from heapwright import figure

    scale = alt.Scale(type="log", base=2, nice=False) if log else alt.Scale(zero=False, nice=False)
    ticks = alt.Axis(values=list(results.x), format="~f" if results.x[0] < 1 else "d", labelOverlap=True)
    series_of = [*runs.SERIES, *([f"admission, {THEIRS}"] if theirs else [])]
    colour = alt.Scale(domain=series_of, range=[figure.BLUE, figure.INK, figure.SOFT, figure.CLOUD, figure.VERMILLION])
    shapes = alt.Scale(domain=series_of, range=["circle", "square", "triangle-up", "diamond", "circle"])
    panels = []
    for pool in [pool for pool in results.points if pool != runs.INDEXED]:
        rows = [
            {"x": x, "of": series, "share": point.of(series)}
            for x, point in zip(results.x, results.points[pool], strict=True)
            for series in runs.SERIES
        ]
        points = [{"x": x, "of": f"admission, {THEIRS}", "share": share} for x, share in theirs.get(pool, {}).items()]
        encoded: dict[str, Any] = {
            "x": alt.X("x:Q", title=axis, scale=scale, axis=ticks),
            "y": alt.Y(
                "share:Q",
                title=pool,
                axis=alt.Axis(format="%", tickCount=5),
                scale=alt.Scale(domain=[0, 1.02], nice=False),
            ),
            "color": alt.Color("of:N", sort=None, scale=colour, legend=alt.Legend(columns=3, labelLimit=200)),
            "shape": alt.Shape("of:N", sort=None, scale=shapes),
        }
        layers = [
            figure.inline(rows).mark_line(strokeWidth=1.5).encode(**{key: encoded[key] for key in ("x", "y", "color")}),
            figure.inline(rows).mark_point(filled=True, size=55, opacity=1).encode(**encoded),
        ]
        if points:
            layers.append(figure.inline(points).mark_point(filled=False, size=160, strokeWidth=2.5).encode(**encoded))
        panels.append(alt.layer(*layers).properties(height=190, width=WIDTH))
    note = f"{SHARES} Ringed in vermillion: the paper's numbers." if theirs else SHARES
    return figure.Figure(name, title, note, alt.vconcat(*panels), WIDTH)


def overheads(found: Sequence[Overhead]) -> figure.Figure:
    """Figure 9."""
    import altair as alt

    from heapwright import figure

    names = list(dict.fromkeys(one.pool for one in found))
    rows = [
        {"pool": one.pool, "total": f"{one.total // 1024} KB", "size": one.size, "share": one.share} for one in found
    ]
    ticks = [0.0001, 0.001, 0.01, 0.1, 1]
    chart = figure.inline(rows).encode(
        x=alt.X(
            "size:Q",
            title="partition or buffer, B (logarithmic)",
            scale=alt.Scale(type="log", base=2, nice=False),
            axis=alt.Axis(values=list(runs.SEGMENTS), format="d"),
        ),
        y=alt.Y(
            "share:Q",
            title="overhead, share of the usable bytes (logarithmic)",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~%", values=ticks),
        ),
        color=alt.Color(
            "pool:N",
            sort=None,
            scale=alt.Scale(domain=names, range=[figure.BLUE, figure.INK, figure.CLOUD]),
            legend=alt.Legend(columns=2, labelLimit=240),
        ),
        shape=alt.Shape("pool:N", sort=None, scale=alt.Scale(domain=names)),
        strokeDash=alt.StrokeDash("total:N", sort=None, legend=None),
    )
    line = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=50, opacity=1)
    title = "A partition costs its descriptor, a buffer next to nothing"
    note = (
        "Solid lines: pools of 64 KB; dashed: of 512 KB, most of them on the solid ones. The paper prints no numbers."
    )
    return figure.Figure("pools-overhead", title, note, line.properties(height=260), WIDTH)


def indexed(results: Results) -> figure.Figure:
    """Accesses of each pool by the load of experiment 1."""
    import altair as alt

    from heapwright import figure

    rows = [
        {"x": x, "pool": pool, "accesses": point.accesses}
        for pool, points in results.points.items()
        for x, point in zip(results.x, points, strict=True)
    ]
    names = list(results.points)
    chart = figure.inline(rows).encode(
        x=alt.X(
            "x:Q",
            title="mean time between requests, time units",
            scale=alt.Scale(zero=False, nice=False),
            axis=alt.Axis(values=list(results.x), format="~f", labelOverlap=True),
        ),
        y=alt.Y("accesses:Q", title="accesses a call", scale=alt.Scale(zero=True)),
        color=alt.Color(
            "pool:N",
            sort=None,
            scale=alt.Scale(domain=names, range=[figure.BLUE, figure.INK, figure.CLOUD]),
            legend=alt.Legend(columns=3, labelLimit=200),
        ),
        shape=alt.Shape("pool:N", sort=None, scale=alt.Scale(domain=names)),
    )
    line = chart.mark_line(strokeWidth=1.5) + chart.mark_point(filled=True, size=55, opacity=1)
    linked, listed = (sum(point.accesses for point in results.points[pool]) for pool in (runs.VARIABLE, runs.INDEXED))
    title = f"Lists by length take {percent(1 - listed / linked)} fewer accesses than one linked list"
    note = (
        "Loads and stores of metadata in a call, averages over 1,000,000 requests of experiment 1; the saving is that "
        "of all loads together."
    )
    return figure.Figure("pools-indexed", title, note, line.properties(height=230), WIDTH)


def real(found: Sequence[OnPackets]) -> figure.Figure:
    """Admission, utilisation and accesses on real packets, below each other."""
    import altair as alt

    from heapwright import figure

    names = list(found[0].points)
    shown = (
        ("admission", "admission", "%"),
        ("utilisation", "utilisation of all memory", "%"),
        ("accesses", "accesses a call", "~g"),
    )
    panels = []
    for series, axis, style in shown:
        rows = [
            {"network": marked(one.network), "pool": pool, "value": point.of(series)}
            for one in found
            for pool, point in one.points.items()
        ]
        panels.append(
            figure.inline(rows)
            .mark_point(filled=False, size=60, strokeWidth=2, opacity=1)
            .encode(
                x=alt.X("value:Q", title=axis, axis=alt.Axis(format=style, tickCount=6), scale=alt.Scale(zero=True)),
                y=alt.Y("network:N", title=None, sort=None, axis=alt.Axis(grid=True, labelLimit=190, labelFontSize=12)),
                color=alt.Color(
                    "pool:N",
                    sort=None,
                    scale=alt.Scale(domain=names, range=[figure.BLUE, figure.INK, figure.CLOUD]),
                    legend=alt.Legend(columns=2, labelLimit=200),
                ),
                shape=alt.Shape(
                    "pool:N", sort=None, scale=alt.Scale(domain=names, range=["circle", "square", "triangle-up"])
                ),
            )
            .properties(height=18 * len(found), width=WIDTH)
        )
    better = sum(one.points[runs.VARIABLE].admission > one.points[runs.FIXED].admission for one in found)
    title = f"On real packets variable pools admit more: {better} of {len(found)} networks"
    note = f"{runs.RATE} packets a second on average, each held for 1 s. † Captures laid end to end."
    return figure.Figure("pools-real", title, note, alt.vconcat(*panels), WIDTH)
