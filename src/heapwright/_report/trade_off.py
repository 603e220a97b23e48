"""The plot of a study as it stands in files and where a page has no scripts; template/trade_off.js draws the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from heapwright._replay.metrics import METRICS, words
from heapwright._report.figure import BLUE, CLOUD, INK, SI, SOFT, VERMILLION, Figure, Row, inline, ticks
from heapwright._report.labels import Box, Marker, box_of, place
from heapwright._studies import pareto

LOG_SPREAD = 4
"""From this ratio of its largest to its smallest value on an axis is logarithmic."""
INSIDE, HEIGHT = 690, 480
"""Pixels between the axes."""
MARGIN = 24
"""Pixels between the outermost points and the edge."""
INSET = (0.3, 0.25, 0.2)
"""Shares of the plot, in each direction, that the small one of all recipes may take."""
AWAY = 8
"""Pixels that it keeps away from what stands out."""
GAP = 6
"""Pixels between the inset and the edge, and between its points and its frame."""
COVERED = 4.0
"""Pixels within which of two recipes off the front one is drawn."""
DOT, SMALL_DOT = 4.0, 2.0
"""Pixels across of a recipe off the front, and of one in the inset."""
NAMED = 12
"""Members of the front that are described in words."""

KINDS = {
    "cloud": "other recipe",
    "elsewhere": "on the study's front",
    "zoo": "zoo allocator",
    "front": "on the front of these two",
}
"""What a point can be, in the order of drawing."""


@dataclass(frozen=True)
class _Axis:
    """An axis of a number of pixels that shows all values from `low` to `high` and a margin."""

    low: float
    high: float
    pixels: int

    @classmethod
    def over(cls, values: Sequence[float], pixels: int) -> _Axis:
        low, high = min(values), max(values)
        if low < high:
            return cls(low, high, pixels)
        return cls(low - abs(low) / 10, high + abs(high) / 10, pixels) if low else cls(-1, 1, pixels)

    @property
    def log(self) -> bool:
        return self.low > 0 and self.high / self.low >= LOG_SPREAD

    def at(self, value: float) -> float:
        turn = math.log if self.log else float
        part = (turn(value) - turn(self.low)) / (turn(self.high) - turn(self.low))
        return MARGIN + part * (self.pixels - 2 * MARGIN)

    def edges(self) -> tuple[float, float]:
        """The values at both ends."""
        beyond = MARGIN / (self.pixels - 2 * MARGIN)
        if self.log:
            return self.low * (self.low / self.high) ** beyond, self.high * (self.high / self.low) ** beyond
        return self.low - beyond * (self.high - self.low), self.high + beyond * (self.high - self.low)


@dataclass(frozen=True)
class _Spot:
    """A recipe on the plot."""

    row: Row
    kind: str
    point: Marker


def front(rows: Sequence[Row], x: str, y: str) -> list[Row]:
    """The rows that no other beats in both metrics, the best in `x` first."""
    ways = [METRICS[key].direction for key in (x, y)]
    ordered = sorted(rows, key=lambda row: row["id"])
    best = pareto.front(np.array([[float(row[key]) for key in (x, y)] for row in ordered]), ways)
    results = [row for row, item in zip(ordered, best, strict=True) if item]
    return sorted(results, key=lambda row: row[x], reverse=ways[0] == "max")


def trade_off(name: str, title: str, rows: Sequence[Row], x: str, y: str, rivals: Collection[str] = ()) -> Figure:
    """Recipes over the metrics `x` and `y`, and all of them in small; front, zoo and balanced pick stand out.

    `rows`, one a recipe: "id", "kind" ("front": of the study), "name" (a zoo allocator's, else ""), "balanced" (bool),
    and both metrics. The axes hold the front of these two, the balanced pick, and the ids that are `rivals`.
    """
    members = front(rows, x, y)
    view = _view(rows, members, rivals)
    across, up = (_Axis.over([row[key] for row in view], size) for key, size in ((x, INSIDE), (y, HEIGHT)))
    on_front = {row["id"] for row in members}
    spots = [_Spot(row, _kind(row, on_front), Marker(across.at(row[x]), HEIGHT - up.at(row[y]))) for row in rows]
    inside = [spot for spot in spots if 0 <= spot.point.x <= INSIDE and 0 <= spot.point.y <= HEIGHT]
    marks = [spot for spot in inside if spot.kind != "cloud" or spot.row["balanced"]]
    inset = _inset_box(marks) if len(view) < len(rows) else None
    labels = _labels(marks, rivals, [inset] if inset else [])
    axes = {"x": _axis(alt.X, x, across), "y": _axis(alt.Y, y, up)}
    datasets = {"cloud": _stretches(_cloud(inside, labels, inset), DOT)}
    layers: list[alt.Chart | alt.LayerChart] = [
        _dots("cloud", DOT),
        _steps(members, x, y, axes),
        _marks(marks, x, y, axes),
    ]
    layers += _named(labels)
    note = "Each point is a recipe. Where points would cover each other, only one is drawn."
    if inset:
        note = f"{note} In small: all recipes, and the part shown."
        small = _Inset.over(rows, x, y, inset)
        datasets |= small.datasets(rows, on_front)
        layers += small.layers(across, up)
    chart = alt.layer(*layers).resolve_scale(x="independent", y="independent")
    chart = chart.properties(width=INSIDE, height=HEIGHT)
    return Figure(name, title, note, chart, INSIDE, _in_words(members, rows, x, y), datasets, fitted=False)


def _cloud(spots: Sequence[_Spot], labels: Sequence[tuple[_Spot, str, Box]], inset: Box | None) -> list[Marker]:
    """The points of unmarked recipes that neither a label nor the inset covers."""
    boxes = [(box, box.distance(spot.point) + 1) for spot, _, box in labels]
    if inset:
        boxes.append((inset, COVERED))
    return _clear([spot.point for spot in spots if spot.kind == "cloud" and not spot.row["balanced"]], boxes)


def _view(rows: Sequence[Row], members: Sequence[Row], rivals: Collection[str]) -> list[Row]:
    """The rows that the axes must show."""
    ids = {*rivals, *(row["id"] for row in members)}
    return [row for row in rows if row["balanced"] or row["id"] in ids]


def _clear(points: Sequence[Marker], boxes: Sequence[tuple[Box, float]]) -> list[Marker]:
    """The points outside each box and its margin in pixels."""
    if not points:
        return []
    places = np.array(points)
    clear = np.all([box.distances(places) > away for box, away in boxes], axis=0) if boxes else np.ones(len(points))
    return [point for point, far in zip(points, clear, strict=True) if far]


def _kind(row: Row, on_front: Collection[str]) -> str:
    if row["id"] in on_front:
        return "front"
    if row["name"]:
        return "zoo"
    return "elsewhere" if row["kind"] == "front" else "cloud"


def _in_words(members: Sequence[Row], rows: Sequence[Row], x: str, y: str) -> str:
    def values(row: Row) -> str:
        return f"{_label(row)} {row[x]:,.5g} and {row[y]:,.5g}"

    more = f" and {len(members) - NAMED} more" if len(members) > NAMED else ""
    picks = "".join(f" The pick: {values(row)}." for row in rows if row["balanced"])
    return f"On the front, by {words(x)} and {words(y)}: {'; '.join(map(values, members[:NAMED]))}{more}.{picks}"


def _label(row: Row) -> str:
    return str(row["name"] or row["id"])


def _name(row: Row) -> str:
    """The name next to a point: a zoo allocator's name, and which is the pick; its id would take too much room."""
    return " · ".join(filter(None, (row["name"], "the pick" if row["balanced"] else "")))


def _axis(channel: Any, key: str, axis: _Axis) -> Any:
    unit = "" if METRICS[key].unit in ("count", "ratio") else f", {METRICS[key].unit}"
    low, high = axis.edges()
    scale = alt.Scale(type="log" if axis.log else "linear", domain=[low, high], nice=False, zero=False)
    drawn = alt.Axis(
        title=f"{words(key)}{unit}{' (log)' if axis.log else ''}", labelExpr=SI, values=ticks(low, high, axis.log)
    )
    return channel(f"{key}:Q", scale=scale, axis=drawn)


def _marks(marks: Sequence[_Spot], x: str, y: str, axes: dict[str, Any]) -> Any:
    order = list(KINDS)
    rows = [
        {x: spot.row[x], y: spot.row[y], "kind": spot.kind, "label": _label(spot.row), "pick": spot.row["balanced"]}
        for spot in sorted(marks, key=lambda spot: order.index(spot.kind))
    ]
    colours = {"cloud": CLOUD, "elsewhere": CLOUD, "zoo": VERMILLION, "front": BLUE}
    shapes = {"cloud": "circle", "elsewhere": "circle", "zoo": "diamond", "front": "circle"}
    shown = [kind for kind in order if any(row["kind"] == kind for row in rows)]
    legend = alt.Legend(symbolOpacity=1, symbolSize=70, labelExpr=f"({KINDS})[datum.value]", columns=4)
    tooltip = [alt.Tooltip("label:N"), *(alt.Tooltip(f"{key}:Q", title=words(key), format=",") for key in (x, y))]
    points = inline(rows).mark_point(filled=True, size=64, opacity=1)
    drawn = points.encode(
        **axes,
        color=alt.Color(
            "kind:N", scale=alt.Scale(domain=shown, range=[colours[item] for item in shown]), legend=legend
        ),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=shown, range=[shapes[item] for item in shown])),
        tooltip=tooltip,
    )
    ring = inline([row for row in rows if row["pick"]]).mark_point(size=260, color=BLUE, strokeWidth=2)
    return alt.layer(drawn, ring.encode(**axes))


def _steps(members: Sequence[Row], x: str, y: str, axes: dict[str, Any]) -> alt.Chart:
    """The front joined by steps: beyond these no recipe was found."""
    rows = [{x: row[x], y: row[y], "n": number} for number, row in enumerate(members)]
    line = inline(rows).mark_line(interpolate="step-after", color=BLUE, strokeWidth=1.5, opacity=0.6)
    bare = {key: axes[key].copy() for key in axes}
    for channel in bare.values():
        channel.axis = None
    drawn: alt.Chart = line.encode(**bare, order="n:Q")
    return drawn


# --- in pixels of the plot, from its upper left corner ----------------------------------------------------------------


def _pixels(x: str = "x", y: str = "y", **others: str) -> dict[str, Any]:
    across = alt.X(f"{x}:Q", scale=alt.Scale(domain=[0, INSIDE], nice=False, zero=False), axis=None)
    down = alt.Y(f"{y}:Q", scale=alt.Scale(domain=[HEIGHT, 0], nice=False, zero=False), axis=None)
    return {"x": across, "y": down, **others}


def _dots(name: str, size: float, colour: str = CLOUD, opacity: float = 0.45) -> alt.Chart:
    """Points as one broken line of `_stretches`."""
    dots = alt.Chart(alt.NamedData(name)).mark_line(
        color=colour, strokeWidth=size, strokeCap="round", opacity=opacity, aria=False
    )
    drawn: alt.Chart = dots.encode(**_pixels(), order="n:Q")
    return drawn


def _stretches(points: Sequence[Marker], size: float) -> list[dict[str, float | None]]:
    """A stretch too short to see for each point, those once that would cover each other.

    A tenth of the size of as many marks.
    """
    kept = {(round(point.x / size), round(point.y / size)): point for point in points}.values()
    rows: list[dict[str, float | None]] = []
    for point in kept:
        rows += [{"x": point.x, "y": point.y}, {"x": point.x + 0.01, "y": point.y}, {"x": None, "y": None}]
    return [{**row, "n": number} for number, row in enumerate(rows)]


def _labels(marks: Sequence[_Spot], rivals: Collection[str], taken: Sequence[Box]) -> list[tuple[_Spot, str, Box]]:
    """The names for which there is room: of the pick, the incumbents, the zoo on the front, the rest of the zoo."""

    def weight(spot: _Spot) -> int:
        wanted = (spot.row["balanced"], spot.row["id"] in rivals, spot.kind == "front", True)
        return wanted.index(True)

    named = sorted((spot for spot in marks if spot.row["name"] or spot.row["balanced"]), key=weight)
    texts = [_name(spot.row) for spot in named]
    anchors = [spot.point for spot in named]
    placed = place(anchors, texts, [spot.point for spot in marks], INSIDE, HEIGHT, taken)
    return [
        (spot, text, box_of(spot.point, label, text))
        for spot, text, label in zip(named, texts, placed, strict=True)
        if label is not None
    ]


def _named(labels: Sequence[tuple[_Spot, str, Box]]) -> list[alt.Chart]:
    """Names, each over a white halo and as near to its point as its box."""
    rows = [
        {
            **_beside(spot.point, box),
            "y": (box.top + box.bottom) / 2,
            "text": text,
            "colour": INK if spot.row["balanced"] else "#9c4500",
        }
        for spot, text, box in labels
    ]
    style: dict[str, Any] = {"fontSize": 11, "baseline": "middle", "align": alt.expr("datum.align")}
    text, halo = inline(rows).mark_text(**style), inline(rows).mark_text(**style, stroke="white", strokeWidth=3)
    coloured = text.encode(**_pixels(), text="text:N", color=alt.Color("colour:N", scale=None))
    return [halo.encode(**_pixels(), text="text:N"), coloured]


def _beside(point: Marker, box: Box) -> dict[str, Any]:
    if box.left > point.x:
        return {"x": box.left, "align": "left"}
    if box.right < point.x:
        return {"x": box.right, "align": "right"}
    return {"x": (box.left + box.right) / 2, "align": "center"}


def _inset_box(marks: Sequence[_Spot]) -> Box | None:
    """The largest place that keeps away from all marks, the upper right first."""
    for share in INSET:
        wide, high = share * INSIDE, share * HEIGHT
        for remaining in np.linspace(INSIDE - GAP - wide, GAP, 21).tolist():
            for top in np.linspace(GAP, HEIGHT - GAP - high, 21).tolist():
                box = Box(remaining, top, remaining + wide, top + high)
                if all(box.distance(spot.point) >= AWAY for spot in marks):
                    return box
    return None


@dataclass(frozen=True)
class _Inset:
    """All recipes in small, and a frame around what the axes show."""

    x: str
    y: str
    box: Box
    across: _Axis
    up: _Axis

    @classmethod
    def over(cls, rows: Sequence[Row], x: str, y: str, box: Box) -> _Inset:
        # Their margins lie outside of the box.
        across, up = (
            _Axis.over([row[key] for row in rows], round(size) - 2 * GAP + 2 * MARGIN)
            for key, size in ((x, box.right - box.left), (y, box.bottom - box.top))
        )
        return cls(x, y, box, across, up)

    def datasets(self, rows: Sequence[Row], on_front: Collection[str]) -> dict[str, list[dict[str, float | None]]]:
        """The points: off the front of the two metrics, and on it."""
        points = [(row["id"] in on_front, self._spot(row[self.x], row[self.y])) for row in rows]
        return {
            "small": _stretches([point for front, point in points if not front], SMALL_DOT),
            "small-front": _stretches([point for front, point in points if front], SMALL_DOT),
        }

    def layers(self, across: _Axis, up: _Axis) -> list[alt.Chart]:
        """Ground, points and frame, for axes of the whole plot."""
        box = self.box
        low, high = (
            self._spot(_positive(self.across, right), _positive(self.up, above))
            for right, above in zip(across.edges(), up.edges(), strict=True)
        )
        ground = {"x": box.left, "x2": box.right, "y": box.top, "y2": box.bottom}
        frame = {"x": max(low.x, box.left), "x2": min(high.x, box.right)}
        frame |= {"y": max(high.y, box.top), "y2": min(low.y, box.bottom)}
        outline = inline([frame]).mark_rect(filled=False, stroke=INK, strokeWidth=1.5)
        return [
            inline([ground]).mark_rect(color="white", stroke=SOFT, strokeWidth=1).encode(**_pixels(x2="x2", y2="y2")),
            _dots("small", SMALL_DOT),
            _dots("small-front", 2 * SMALL_DOT, BLUE, 1.0),
            outline.encode(**_pixels(x2="x2", y2="y2")),
        ]

    def _spot(self, right: float, above: float) -> Marker:
        return Marker(
            self.box.left + GAP + self.across.at(right) - MARGIN, self.box.bottom - GAP - self.up.at(above) + MARGIN
        )


def _positive(axis: _Axis, value: float) -> float:
    """The value, or the least that a logarithmic axis has a place for."""
    return max(value, axis.low / 1e6) if axis.log else value
