"""The fronts of two studies in one picture, with what each says to ship."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import altair as alt

from heapwright._replay.metrics import METRICS, words
from heapwright._report.figure import BLUE, CLOUD, INK, SI, Figure, Row, inline
from heapwright._studies.study_diff import PER_CALL, Side

WIDE, HEIGHT = 720, 300
LOG_SPREAD = 4
"""From this ratio of its largest to its smallest value on an axis is logarithmic."""


def fronts(sides: Sequence[tuple[str, Side, str]], name: str = "fronts") -> Figure:
    """The fronts over the first two objectives, of one study or of two: each with what it is called, and its pick's id.

    Accesses are those of a call, as traces differ in length.
    """
    keys = sides[-1][1].objectives
    x, y = (keys[0], keys[1]) if len(keys) > 1 else (keys[0], PER_CALL if keys[0] != PER_CALL else "footprint_bytes")
    rows = [row for called, side, pick in sides for row in _rows(called, side, pick, x, y)]
    called = [item for item, _, _ in sides]
    colour = alt.Color(
        "study:N",
        scale=alt.Scale(domain=called, range=[CLOUD, BLUE][-len(called) :]),
        legend=alt.Legend() if len(called) > 1 else None,
    )
    dash = alt.StrokeDash(
        "study:N", scale=alt.Scale(domain=called, range=[[4, 3], [1, 0]][-len(called) :]), legend=None
    )
    axes = {"x": _axis(alt.X, "x", x, rows), "y": _axis(alt.Y, "y", y, rows)}
    on_front = inline([row for row in rows if row["front"]])
    step: Literal["step-after", "step-before"] = "step-after" if METRICS[x].direction == "min" else "step-before"
    lines = on_front.mark_line(interpolate=step, strokeWidth=2).encode(
        **axes, color=colour, strokeDash=dash, order=alt.Order("x:Q")
    )
    dots = on_front.mark_point(filled=True, size=26, opacity=1).encode(**axes, color=colour)
    picks = inline([row for row in rows if row["pick"]])
    marks = picks.mark_point(shape="diamond", filled=True, size=150, opacity=1, stroke="white").encode(
        **axes, color=colour
    )
    names = picks.mark_text(align="left", dx=10, dy=-9, fontSize=12, fontWeight=600, color=INK).encode(
        **axes, text="label:N"
    )
    both = " before and after" if len(called) > 1 else ""
    title = f"The front{both}: {_label(x)} and {_label(y)}"
    message = "; ".join(f"{row['label']}: {row['x']:,.5g} and {row['y']:,.5g}" for row in rows if row["pick"])
    note = "Each point is a recipe that nothing beats in both; a diamond is what to ship."
    chart = alt.layer(lines, dots, marks, names).properties(height=HEIGHT)
    return Figure(name, title, note, chart, WIDE, f"{message}.")


def _rows(called: str, side: Side, pick: str, x: str, y: str) -> list[Row]:
    def value(metrics: Row, key: str) -> float:
        return float(metrics[key]) / (max(side.calls, 1) if key == PER_CALL else 1)

    results: list[Row] = []
    for item, front in [(item, True) for item in side.front] + [(item, False) for item in side.picks]:
        if item.metrics[x] is None or item.metrics[y] is None:
            continue
        label = called if item.id == pick else ""
        row = {"x": value(item.metrics, x), "y": value(item.metrics, y), "study": called, "label": label}
        results.append({**row, "front": front, "pick": item.id == pick})
    return results


def _label(key: str) -> str:
    return f"{words(key)}{' a call' if key == PER_CALL else ''}"


def _axis(kind: type, field: str, key: str, rows: Sequence[Row]) -> alt.SchemaBase:
    values = [row[field] for row in rows]
    low, high = min(values, default=1), max(values, default=1)
    scale = alt.Scale(zero=False, nice=False, padding=18, type="log" if 0 < low * LOG_SPREAD <= high else "linear")
    unit = "" if key == PER_CALL else METRICS[key].unit
    title = f"{_label(key)}, {unit}" if unit else _label(key)
    result: alt.SchemaBase = kind(f"{field}:Q", scale=scale, axis=alt.Axis(labelExpr=SI, title=title, tickCount=6))
    return result
