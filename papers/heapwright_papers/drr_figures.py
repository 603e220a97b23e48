"""Figures 3 and 4 of Mamagkakis et al. 2006: memory of deficit round robin over time, and the sizes it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heapwright import figure, sample_events, size_table
from heapwright_papers.traffic import marked

if TYPE_CHECKING:
    from heapwright import Trace

WIDTH, HEIGHT = 555, 92
_LABELS = 34
"""Pixels for the labels of each y axis, so that panels stand in line."""
POINTS = 500
LEAST_SHOWN = 0.7
"""Lower end of a logarithmic axis of counts, so that 1 is seen."""
_TITLE: dict[str, Any] = {"fontSize": 12, "anchor": "start", "offset": 4, "fontWeight": "normal", "frame": "group"}


def memory(name: str, title: str, note: str, traces: Mapping[str, Trace]) -> figure.Figure:
    """Requested bytes that are live, over time; a panel for each trace."""
    last = list(traces)[-1]
    panels = [_memory(called, trace, called == last) for called, trace in traces.items()]
    return figure.Figure(name, title, note, alt.vconcat(*panels, spacing=8), 620)


def _memory(name: str, trace: Trace, with_title: bool) -> alt.Chart:
    live, at = trace.live_bytes, sample_events(trace.live_bytes, POINTS)
    rows = [
        {"s": second, "bytes": size}
        for second, size in zip((trace.ts_us[at] / 1e6).round(3).tolist(), live[at].tolist(), strict=True)
    ]
    heading = f"{marked(name)}: at most {figure.quantity(trace.peak_live_bytes)}"
    drawn: alt.Chart = (
        figure.inline(rows)
        .mark_area(
            color=figure.BLUE, opacity=0.25, line={"color": figure.BLUE, "strokeWidth": 1}, interpolate="step-after"
        )
        .encode(
            x=alt.X(
                "s:Q",
                title="time, s" if with_title else None,
                scale=alt.Scale(domain=[0, rows[-1]["s"]], nice=False),
                axis=alt.Axis(tickCount=6),
            ),
            y=alt.Y(
                "bytes:Q",
                title="live, B",
                stack=None,
                axis=alt.Axis(labelExpr=figure.SI, tickCount=3, minExtent=_LABELS),
            ),
        )
        .properties(width=WIDTH, height=HEIGHT, title={"text": heading, **_TITLE})
    )
    return drawn


def sizes(
    name: str, title: str, note: str, found: Mapping[str, NDArray[np.int64]], modes: Sequence[int]
) -> figure.Figure:
    """Requests of each size; a panel for each network, the paper's two modes in vermillion."""
    last = list(found)[-1]
    panels = [_sizes(called, some, modes, called == last) for called, some in found.items()]
    return figure.Figure(name, title, note, alt.vconcat(*panels, spacing=8), 620)


def _sizes(name: str, found: NDArray[np.int64], modes: Sequence[int], with_title: bool) -> alt.Chart:
    table = size_table(found)
    rows = [{"size": row["size"], "count": row["count"], "mode": row["size"] in modes} for row in table]
    two = 100 * sum(row["share"] for row in table[:2])
    heading = f"{marked(name)}: {len(table):,} sizes, the two most frequent {two:.0f} % of the requests"
    axis = alt.Axis(labelExpr=figure.SI, values=[1, 10, 100, 1000, 10_000, 100_000], minExtent=_LABELS)
    drawn: alt.Chart = (
        figure.inline(rows)
        .mark_rule()
        .encode(
            x=alt.X(
                "size:Q",
                title="size of the block, B" if with_title else None,
                scale=alt.Scale(domain=[0, 1600], nice=False, clamp=True),
                axis=alt.Axis(values=list(range(0, 1601, 200))),
            ),
            y=alt.Y(
                "count:Q",
                title="requests (log)",
                scale=alt.Scale(type="log", domainMin=LEAST_SHOWN, nice=False),
                axis=axis,
            ),
            y2=alt.datum(LEAST_SHOWN),
            color=alt.condition("datum.mode", alt.value(figure.VERMILLION), alt.value(figure.BLUE)),
            strokeWidth=alt.condition("datum.mode", alt.value(3), alt.value(1)),
        )
        .properties(width=WIDTH, height=HEIGHT, title={"text": heading, **_TITLE})
    )
    return drawn
