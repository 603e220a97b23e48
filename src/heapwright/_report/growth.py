"""How a search came to its front: the hypervolume over the recipes tried."""

from __future__ import annotations

import altair as alt

from heapwright._report.figure import BLUE, Figure, inline
from heapwright._studies.analysis import Analysis

WIDE, HEIGHT = 760, 260


def growth(study: Analysis) -> list[Figure]:
    """The figure of a study of a space that was searched; none of one that was tried in order."""
    result = study.growth()
    if len(result) < 2 or not result[-1].hypervolume:
        return []
    last = result[-1]
    rows = [
        {"recipes": item.evaluations, "share": item.hypervolume / last.hypervolume, "minutes": item.seconds / 60}
        for item in result
    ]
    line = inline(rows).mark_line(interpolate="step-after", color=BLUE, point=alt.OverlayMarkDef(size=18, color=BLUE))
    chart = line.encode(
        x=alt.X("recipes:Q", title="recipes tried, without the zoo", axis=alt.Axis(format=",d")),
        y=alt.Y(
            "share:Q", title="hypervolume, share of the last", scale=alt.Scale(zero=False), axis=alt.Axis(format="%")
        ),
        tooltip=[
            alt.Tooltip("recipes:Q", format=","),
            alt.Tooltip("share:Q", title="share", format=".2%"),
            alt.Tooltip("minutes:Q", format=".1f"),
        ],
    )
    late = next(row for row in rows if row["share"] >= 0.99)
    title = f"Search, seed {last.seed}: {last.evaluations:,} recipes"
    note = (
        f"99 % of what the front dominates at the end was reached after {late['recipes']:,}. The space holds more "
        "recipes than can be tried; what is left may be better."
    )
    text = "; ".join(f"{row['share']:.1%} after {row['recipes']:,}" for row in rows[:: max(1, len(rows) // 8)])
    return [Figure("search", title, note, chart.properties(height=HEIGHT), WIDE, f"{text}.")]
