"""The picture of an exploration: every allocator as a point, the front drawn through, the zoo named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from heapwright import figure, labels

WIDTH, HEIGHT = 620, 440
_AXIS_WIDTH, _PADDING = 64, 16
_TICKS = [step * 10**power for power in range(-3, 7) for step in (1, 2, 5)]
X, Y = "overhead", "accesses"
_DOT = 1.0001
"""How far a dot of the cloud reaches, as a factor: too short to see, so that its round ends make it a dot."""

KINDS = {"cloud": "other allocator", "zoo": "of the zoo", "front": "on the front"}


def cloud(
    name: str, title: str, note: str, points: Sequence[Mapping[str, Any]], named: Mapping[str, str], proposed: str
) -> figure.Figure:
    """Draw allocators over memory beyond what is requested, in per cent, and accesses a call, both logarithmic.

    Each point has "kind" (a key of KINDS), "name" (the zoo's, else ""), "overhead" and "accesses" (both above 0).
    `named` are those of the zoo that are labelled, with what is written; `proposed` is the one that stands out.
    """
    spans = {key: (min(point[key] for point in points), max(point[key] for point in points)) for key in (X, Y)}
    axes = {
        "x": _axis(alt.X, X, "memory beyond what is requested, % (log)", spans[X]),
        "y": _axis(alt.Y, Y, "accesses a call (log)", spans[Y]),
    }
    front = sorted((point for point in points if point["kind"] == "front"), key=lambda point: point[X])
    shown = [point for point in points if point["kind"] != "cloud"]
    steps = (
        figure.inline(front)
        .mark_line(interpolate="step-after", color=figure.BLUE, strokeWidth=1.5, opacity=0.7)
        .encode(**axes)
    )
    layers = [_dots(points, axes), steps, _markers(shown, axes), *_labels(shown, spans, named, proposed, axes)]
    return figure.Figure(name, title, note, alt.layer(*layers).properties(height=HEIGHT), WIDTH)


def _axis(channel: Any, key: str, title: str, span: tuple[float, float]) -> Any:
    scale = alt.Scale(type="log", domain=span, nice=False, padding=_PADDING)
    return channel(f"{key}:Q", scale=scale, axis=alt.Axis(title=title, labelExpr=figure.SI, values=_TICKS))


def _dots(points: Sequence[Mapping[str, Any]], axes: Mapping[str, Any]) -> alt.Chart:
    """The cloud as one broken line with a stretch for each point: a tenth of the size of as many marks."""
    rows: list[dict[str, float | None]] = []
    for point in points:
        if point["kind"] == "cloud":
            rows += [{X: point[X], Y: point[Y]}, {X: point[X] * _DOT, Y: point[Y]}, {X: None, Y: None}]
    for number, row in enumerate(rows):
        row["n"] = number
    dots = figure.inline(rows).mark_line(color=figure.CLOUD, strokeWidth=3, strokeCap="round", opacity=0.55, aria=False)
    drawn: alt.Chart = dots.encode(**axes, order="n:Q")
    return drawn


def _markers(shown: Sequence[Mapping[str, Any]], axes: Mapping[str, Any]) -> alt.Chart:
    kinds = list(KINDS)
    legend = alt.Legend(symbolOpacity=1, symbolSize=70, labelExpr=f"({KINDS})[datum.value]")
    colour = alt.Scale(domain=kinds, range=[figure.CLOUD, figure.VERMILLION, figure.BLUE])
    shape = alt.Scale(domain=kinds, range=["circle", "diamond", "circle"])
    drawn: alt.Chart = (
        figure.inline(shown)
        .mark_point(filled=True, size=64, opacity=1)
        .encode(
            **axes,
            color=alt.Color("kind:N", scale=colour, legend=legend),
            shape=alt.Shape("kind:N", scale=shape, legend=legend),
        )
    )
    return drawn


def _labels(
    shown: Sequence[Mapping[str, Any]],
    spans: Mapping[str, tuple[float, float]],
    names: Mapping[str, str],
    proposed: str,
    axes: Mapping[str, Any],
) -> list[alt.Chart]:
    """Names where there is room for them, the proposed allocator's first, each over a white halo."""
    width = WIDTH - _AXIS_WIDTH
    across, up = (_pixels(spans[key], length) for key, length in ((X, width), (Y, HEIGHT)))
    named = sorted((point for point in shown if point["name"] in names), key=lambda point: point["name"] != proposed)
    markers = [labels.Marker(across(point[X]), HEIGHT - up(point[Y])) for point in shown]
    anchors = [labels.Marker(across(point[X]), HEIGHT - up(point[Y])) for point in named]
    rows = [
        {
            X: point[X],
            Y: point[Y],
            "text": names[point["name"]],
            "proposed": point["name"] == proposed,
            **_offset(label),
        }
        for point, label in zip(
            named, labels.place(anchors, [names[point["name"]] for point in named], markers, width, HEIGHT), strict=True
        )
        if label
    ]
    data = figure.inline(rows)
    where: dict[str, Any] = {key: alt.expr(f"datum.{key}") for key in ("dx", "dy", "align")}
    halo = data.mark_text(fontSize=11, baseline="middle", stroke="white", strokeWidth=3, **where)
    weight = alt.expr("datum.proposed ? 'bold' : 'normal'")
    text = data.mark_text(fontSize=11, baseline="middle", fontWeight=weight, **where)
    colour = alt.condition("datum.proposed", alt.value(figure.INK), alt.value("#9c4500"))
    return [halo.encode(**axes, text="text:N"), text.encode(**axes, text="text:N", color=colour)]


def _offset(label: Any) -> dict[str, Any]:
    return {"dx": label.dx, "dy": label.dy, "align": label.align} if label else {}


def _pixels(span: tuple[float, float], length: int) -> Any:
    low, high = map(math.log, span)
    stretch = (length - 2 * _PADDING) / ((high - low) or 1)
    return lambda value: _PADDING + (math.log(value) - low) * stretch
