"""The picture of a stress test: footprint over calls, a line per heap, a panel per loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from heapwright._report.drawing import write_drawing
from heapwright._report.figure import CONFIG, inline

if TYPE_CHECKING:
    from heapwright._assure.stress_test import StressTestResult

WIDTH, HEIGHT = 190, 130
COLOURS = ("#0072B2", "#E69F00", "#101820", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8a8a8a")
TITLE = "Footprint at constant live memory"


def write_picture(result: Sequence[StressTestResult], output: Path) -> None:
    """Draw as a file that ends in .svg or .html; errors as of `write_drawing`."""
    info = [f"{item.heap} on {item.trace}: {item.growth_ratio:.3f} times ({item.worst})" for item in result]
    write_drawing(_spec(result), TITLE, f"{TITLE}. Growth: {'; '.join(info)}.", output)


def _spec(result: Sequence[StressTestResult]) -> dict[str, Any]:
    several = len({item.trace for item in result}) > 1
    rows = [
        {
            "heap": f"{item.heap}, {item.trace}" if several else item.heap,
            "loop": loop,
            "calls": calls,
            "KB": bytes_ / 1000,
        }
        for item in result
        for loop, footprints in item.footprint_bytes.items()
        for calls, bytes_ in footprints.items()
    ]
    names = list(dict.fromkeys(str(row["heap"]) for row in rows))
    loops = list(dict.fromkeys(str(row["loop"]) for row in rows))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    chart = (
        inline(rows)
        .mark_line(interpolate="step-after", strokeWidth=1.6)
        .encode(
            x=alt.X("calls:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s", tickCount=4)),
            y=alt.Y("KB:Q", title="footprint, KB"),
            color=alt.Color("heap:N", scale=alt.Scale(domain=names, range=colours), title=None),
        )
        .properties(width=WIDTH, height=HEIGHT)
        .facet(facet=alt.Facet("loop:N", sort=loops, title=None, header=alt.Header(labelFontSize=12)), columns=4)
        .resolve_scale(y="independent", x="independent")
    )
    spec: dict[str, Any] = chart.to_dict(validate=False)
    return {**spec, "config": CONFIG, "title": TITLE}
