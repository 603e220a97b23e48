"""The plot of a study: every recipe by two metrics, the front, the zoo, and a close-up of where the choice is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from heapwright.replay.metrics import METRICS
from heapwright.report.figure import (
    BLUE,
    CLOUD,
    INK,
    LEGEND_COLUMNS,
    SI,
    VERMILLION,
    Figure,
    Row,
    inline,
    words,
)
from heapwright.report.labels import Label, Marker, place

LOG_SPREAD = 4
"""From this ratio of its largest to its smallest value on an axis is logarithmic."""
WIDE, NARROW, HEIGHT = 760, 320, 520
"""Widths in pixels for which labels are placed, a desktop page and a phone, and the height."""
AXIS_PADDING = 14
AXIS_WIDTH = 70
CLOSE_UP_MEMBERS = 0.9
"""Share of the front that a close-up reaches over, on each axis: what is left out is a far end of the trade-off."""
CLOSE_UP_AT_MOST = 0.6
"""A close-up is worth drawing where it takes at most this share of an axis."""

KINDS = {"cloud": "other recipe", "zoo": "zoo allocator", "front": "on the front"}
"""What a point can be, in the order of drawing."""


def trade_off(name: str, title: str, rows: Sequence[Row], x: str, y: str, staircase: bool) -> Figure:
    """Every recipe as a point over the metrics `x` and `y`; the front, the zoo and the balanced pick stand out.

    `rows`, one a point, in the order of `KINDS`: "id", "kind" (a key of `KINDS`), "name" (a zoo allocator's, else ""),
    "balanced" (bool), "summary", and both metrics. `staircase`: join the front by steps, which is right where these two
    are all the objectives.
    """
    axes = {"x": _axis(alt.X, x, rows), "y": _axis(alt.Y, y, rows)}
    balanced = [row for row in rows if row["balanced"]]
    layers = [
        _points(axes, (x, y)),
        inline(balanced).mark_point(size=200, color=BLUE, strokeWidth=2).encode(**axes),
        alt.Chart(alt.NamedData("chosen")).mark_point(size=340, color=INK, strokeWidth=2.5, clip=True).encode(**axes),
        *_label_layers(rows, x, y, axes),
    ]
    if staircase and _both_smaller(x, y):
        front = [{x: row[x], y: row[y]} for row in rows if row["kind"] == "front"]
        steps = inline(front).mark_line(interpolate="step-after", color=BLUE, strokeWidth=1.5, opacity=0.6)
        layers.insert(0, steps.encode(**axes))
    note = "Nearer the lower left is better." if _both_smaller(x, y) else "Those on the front are the best."
    datasets = {"points": rows, "chosen": balanced}
    chart = alt.layer(*layers).properties(height=HEIGHT)
    return Figure(name, title, f"Each point is a recipe. {note}", chart, WIDE, datasets)


def close_up(rows: Sequence[Row], x: str, y: str) -> list[Row]:
    """The rows of the corner where most of the front is; none where the whole plot shows it well enough."""
    front = [row for row in rows if row["kind"] == "front"]
    if len(front) < 3 or not _both_smaller(x, y) or min(min(row[x], row[y]) for row in rows) <= 0:
        return []
    (pick,) = (row for row in rows if row["balanced"])
    limits = {key: reach([row[key] for row in front], pick[key]) for key in (x, y)}
    parts = [_part(limits[key], [row[key] for row in rows]) for key in (x, y)]
    if min(parts) > CLOSE_UP_AT_MOST:
        return []
    return [row for row in rows if row[x] <= limits[x] and row[y] <= limits[y]]


def reach(front: Sequence[float], balanced: float) -> float:
    """How far a close-up goes on an axis: what `CLOSE_UP_MEMBERS` of the front's values and the balanced pick do not
    exceed, and some room.
    """
    values = sorted(front)
    limit = max(values[math.ceil(len(values) * CLOSE_UP_MEMBERS) - 1], balanced)
    return float(limit * (limit / values[0]) ** 0.2) if values[0] > 0 else limit


def _part(limit: float, values: Sequence[float]) -> float:
    low, high = min(values), max(values)
    return math.log(limit / low) / math.log(high / low) if high > low else 1.0


def _both_smaller(x: str, y: str) -> bool:
    return METRICS[x].direction == METRICS[y].direction == "min"


def _points(axes: dict[str, Any], keys: tuple[str, str]) -> alt.Chart:
    tooltip = [
        alt.Tooltip("label:N", title="recipe"),
        *(alt.Tooltip(f"{key}:Q", title=key, format="," if METRICS[key].integer else ".4~g") for key in keys),
        alt.Tooltip("summary:N", title="is"),
    ]
    marks = alt.Chart(alt.NamedData("points")).mark_point(
        filled=True,
        cursor="pointer",
        size=alt.expr("datum.kind == 'cloud' ? 14 : datum.kind == 'front' ? 58 : 80"),
        opacity=alt.expr("datum.kind == 'cloud' ? 0.4 : 1"),
    )
    kinds = list(KINDS)
    legend = alt.Legend(symbolOpacity=1, symbolSize=70, columns=LEGEND_COLUMNS, labelExpr=f"({KINDS})[datum.value]")
    scale = alt.Scale(domain=kinds, range=[CLOUD, VERMILLION, BLUE])
    encoded: alt.Chart = marks.encode(
        **axes,
        color=alt.Color("kind:N", scale=scale, legend=legend),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond", "circle"])),
        tooltip=tooltip,
    )
    return encoded


def _label_layers(rows: Sequence[Row], x: str, y: str, axes: dict[str, Any]) -> list[alt.Chart]:
    """The names of zoo and balanced pick: a white halo, then the text, each where there is room for it."""
    shown = [row for row in rows if row["kind"] != "cloud"]
    named = sorted((row for row in shown if row["name"] or row["balanced"]), key=lambda row: not row["balanced"])
    texts = [" · ".join(filter(None, (row["name"], "balanced pick" if row["balanced"] else ""))) for row in named]
    placed = {}
    for key, width in (("wide", WIDE - AXIS_WIDTH), ("narrow", NARROW - AXIS_WIDTH)):
        across, up = _pixels(rows, x, width), _pixels(rows, y, HEIGHT)
        markers = [Marker(across(row[x]), HEIGHT - up(row[y])) for row in shown]
        anchors = [Marker(across(row[x]), HEIGHT - up(row[y])) for row in named]
        placed[key] = [_offsets(label) for label in place(anchors, texts, markers, width, HEIGHT)]
    data = inline(
        [
            {x: row[x], y: row[y], "text": text, "balanced": row["balanced"], "wide": wide, "narrow": narrow}
            for row, text, wide, narrow in zip(named, texts, placed["wide"], placed["narrow"], strict=True)
        ]
    )
    where = f"(width < {(WIDE + NARROW) // 2} ? datum.narrow : datum.wide)"
    position: dict[str, Any] = {key: alt.expr(f"{where}.{key}") for key in ("dx", "dy", "align", "opacity")}
    halo = data.mark_text(fontSize=11, baseline="middle", stroke="white", strokeWidth=3, **position)
    text = data.mark_text(fontSize=11, baseline="middle", **position)
    colour = alt.condition("datum.balanced", alt.value(BLUE), alt.value("#9c4500"))
    return [halo.encode(**axes, text="text:N"), text.encode(**axes, text="text:N", color=colour)]


def _offsets(label: Label | None) -> dict[str, Any]:
    if label is None:
        return {"dx": 0, "dy": 0, "align": "left", "opacity": 0}
    return {"dx": label.dx, "dy": label.dy, "align": label.align, "opacity": 1}


def _axis(channel: Any, key: str, rows: Sequence[Row]) -> Any:
    logarithmic = _is_log(rows, key)
    unit = "" if METRICS[key].unit in ("count", "ratio") else f", {METRICS[key].unit}"
    # Without a domain of its own the axis would stretch to a selected point that lies outside a close-up.
    domain = [min(row[key] for row in rows), max(row[key] for row in rows)]
    scale = alt.Scale(type="log" if logarithmic else "linear", domain=domain, nice=False, padding=AXIS_PADDING)
    title = f"{words(key)}{unit}{' (log)' if logarithmic else ''}"
    axis = alt.Axis(title=title, labelExpr=SI, tickCount=6, labelOverlap="greedy", labelSeparation=8)
    return channel(f"{key}:Q", scale=scale, axis=axis)


def _is_log(rows: Sequence[Row], key: str) -> bool:
    low, high = min(row[key] for row in rows), max(row[key] for row in rows)
    return bool(low > 0 and high / low >= LOG_SPREAD)


def _pixels(rows: Sequence[Row], key: str, length: int) -> Callable[[float], float]:
    """The scale of an axis of `length` pixels, as Vega-Lite will draw it."""
    scale: Callable[[float], float] = math.log if _is_log(rows, key) else float
    low, high = scale(min(row[key] for row in rows)), scale(max(row[key] for row in rows))
    stretch = (length - 2 * AXIS_PADDING) / ((high - low) or 1)
    return lambda value: AXIS_PADDING + (scale(value) - low) * stretch
