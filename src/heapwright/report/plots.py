"""The plots of a report: each a `Figure`, a Vega-Lite chart with its words, for the page and as PNG and SVG."""

from __future__ import annotations

import base64
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from heapwright.errors import HeapwrightError
from heapwright.metrics import METRICS
from heapwright.profile import FREQUENT_SHARE
from heapwright.report import raster
from heapwright.report.labels import Label, Marker, place

# Okabe and Ito, "Color universal design" (2008): told apart with every common colour blindness, and by lightness in
# print.
BLUE, VERMILLION = "#0072B2", "#D55E00"
INK, SOFT, CLOUD, PALE, GRID = "#1c2630", "#5b6670", "#8b949c", "#d5dade", "#e8ebee"

LOG_SPREAD = 4
"""From this ratio of its largest to its smallest value on an axis is logarithmic."""
TOP_SIZES = 12
WIDE, NARROW, HEIGHT = 760, 320, 520
"""Widths in pixels for which the labels of the trade-off are placed, a desktop page and a phone, and its height."""
SIDE = 540
"""Width in pixels of a plot that stands beside another."""
MAP_HEIGHT = 250
LEGEND_COLUMNS = alt.expr("width < 420 ? 2 : 6")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One plot: `name` (the stem of its files), `title` saying what one sees, a `note` on how to read it."""

    name: str
    title: str
    note: str
    chart: alt.TopLevelMixin
    width: int = WIDE

    def page_spec(self) -> dict[str, Any]:
        """The Vega-Lite specification for the page: as wide as its place there, its title left to the page."""
        return self._spec("container")

    def save(self, folder: Path) -> list[Path]:
        """Write `name`.png and `name`.svg into `folder`, with title and note; returns both paths.

        Raises HeapwrightError where the plot cannot be drawn, OSError where a file cannot be written.
        """
        import vl_convert

        title = {"text": self.title, "subtitle": textwrap.wrap(self.note, self.width // 6)}
        spec = json.dumps({**self._spec(self.width), "title": title})
        png, svg = folder / f"{self.name}.png", folder / f"{self.name}.svg"
        try:
            picture, drawing = vl_convert.vegalite_to_png(spec, scale=2), vl_convert.vegalite_to_svg(spec)
        except ValueError as error:
            raise HeapwrightError(f"{png}: the plot cannot be drawn: {error}") from error
        png.write_bytes(picture)
        svg.write_text(drawing, encoding="utf-8")
        return [png, svg]

    def _spec(self, width: int | str) -> dict[str, Any]:
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        return {**spec, "width": width, "config": CONFIG, "autosize": {"type": "fit-x", "contains": "padding"}}


CONFIG: Row = {
    "background": "white",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "gridColor": GRID,
        "domainColor": "#c5cbd1",
        "tickColor": "#c5cbd1",
        "titlePadding": 8,
    },
    "legend": {"labelColor": INK, "labelFontSize": 12, "orient": "top", "title": None},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 15,
        "fontWeight": 600,
        "subtitleColor": SOFT,
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
        "offset": 12,
    },
}


# --- the trade-off of a study -----------------------------------------------------------------------------------------

KINDS = {"cloud": "other recipe", "front": "on the front", "zoo": "zoo allocator"}


def trade_off(rows: Sequence[Row], x: str, y: str, recipes: int, name: str, staircase: bool) -> Figure:
    """Every recipe as a point over the metrics `x` and `y`; the front, the zoo and the balanced pick stand out.

    `rows`, one a point: "id", "kind" (a key of `KINDS`), "name" (a zoo allocator's, else ""), "balanced" (bool),
    "summary", and both metrics. `recipes`: how many the points stand for. `staircase`: join the front by steps, which
    is right where these two are all the objectives.
    """
    order = list(KINDS)
    points = [{**row, "what": KINDS[row["kind"]]} for row in sorted(rows, key=lambda row: order.index(row["kind"]))]
    axes = {"x": _axis(alt.X, x, rows), "y": _axis(alt.Y, y, rows)}
    front = [row for row in points if row["kind"] == "front"]
    layers = [
        _cloud(points, axes, (x, y)),
        _data([row for row in points if row["balanced"]])
        .mark_point(size=200, color=BLUE, strokeWidth=2)
        .encode(**axes),
        _data([row for row in points if row["balanced"]], "chosen")
        .mark_point(size=340, color=INK, strokeWidth=2.5)
        .encode(**axes),
        *_label_layers(rows, x, y, axes),
    ]
    fewer_is_better = METRICS[x].direction == METRICS[y].direction == "min"
    if staircase and fewer_is_better:
        steps = _data(front).mark_line(interpolate="step-after", color=BLUE, strokeWidth=1.5, opacity=0.6)
        layers.insert(0, steps.encode(**axes))
    note = "Nearer the lower left is better." if fewer_is_better else "The recipes on the front are the best."
    return Figure(
        name,
        f"{recipes:,} recipes: {words(x)} against {words(y)}",
        f"Each point is a recipe. {note}",
        alt.layer(*layers).properties(height=HEIGHT),
    )


def _cloud(points: Sequence[Row], axes: Row, keys: tuple[str, str]) -> alt.Chart:
    domain = list(KINDS.values())
    tooltip = [
        alt.Tooltip("summary:N", title="recipe"),
        *(alt.Tooltip(f"{key}:Q", title=key, format=_precise(key)) for key in keys),
        alt.Tooltip("what:N", title="is"),
        alt.Tooltip("id:N"),
    ]
    size = "datum.kind == 'cloud' ? 14 : datum.kind == 'front' ? 58 : 80"
    marks = _data(points, "points").mark_point(
        filled=True, cursor="pointer", size=alt.expr(size), opacity=alt.expr("datum.kind == 'cloud' ? 0.4 : 1")
    )
    legend = alt.Legend(symbolOpacity=1, symbolSize=70, columns=LEGEND_COLUMNS)
    encoded: alt.Chart = marks.encode(
        **axes,
        color=alt.Color("what:N", scale=alt.Scale(domain=domain, range=[CLOUD, BLUE, VERMILLION]), legend=legend),
        shape=alt.Shape("what:N", scale=alt.Scale(domain=domain, range=["circle", "circle", "diamond"])),
        tooltip=tooltip,
    )
    return encoded


def _label_layers(rows: Sequence[Row], x: str, y: str, axes: Row) -> list[alt.Chart]:
    shown = [row for row in rows if row["kind"] != "cloud"]
    named = sorted((row for row in shown if row["name"] or row["balanced"]), key=lambda row: not row["balanced"])
    texts = [" · ".join(filter(None, (row["name"], "balanced pick" if row["balanced"] else ""))) for row in named]
    placed = {}
    for key, width in (("wide", WIDE), ("narrow", NARROW)):
        across, up = _pixels(rows, x, width - 70), _pixels(rows, y, HEIGHT)
        markers = [Marker(across(row[x]), HEIGHT - up(row[y])) for row in shown]
        anchors = [Marker(across(row[x]), HEIGHT - up(row[y])) for row in named]
        placed[key] = place(anchors, texts, markers, width - 70, HEIGHT)
    data = [
        {
            x: row[x],
            y: row[y],
            "text": text,
            "balanced": row["balanced"],
            "wide": _offsets(wide),
            "narrow": _offsets(narrow),
        }
        for row, text, wide, narrow in zip(named, texts, placed["wide"], placed["narrow"], strict=True)
    ]

    def either(key: str) -> Any:
        return alt.expr(f"(width < {(WIDE + NARROW) // 2} ? datum.narrow : datum.wide).{key}")

    position = {"dx": either("dx"), "dy": either("dy"), "align": either("align"), "opacity": either("opacity")}
    encoding = {**axes, "text": "text:N"}
    marks = _data(data)
    return [
        marks.mark_text(fontSize=11, baseline="middle", stroke="white", strokeWidth=3, **position).encode(**encoding),
        marks.mark_text(fontSize=11, baseline="middle", **position).encode(
            **encoding, color=alt.condition("datum.balanced", alt.value(BLUE), alt.value("#9c4500"))
        ),
    ]


def _offsets(label: Label | None) -> dict[str, Any]:
    if label is None:
        return {"dx": 0, "dy": 0, "align": "left", "opacity": 0}
    return {"dx": label.dx, "dy": label.dy, "align": label.align, "opacity": 1}


AXIS_PADDING = 14
SI = "format(datum.value, '~s')"
"""Axis labels with the prefix that fits each number; a common prefix for all makes 200 calls into 0.2k."""


def _axis(channel: Any, key: str, rows: Sequence[Row]) -> Any:
    logarithmic = _is_log(rows, key)
    title = f"{words(key)}, {METRICS[key].unit}{' (log)' if logarithmic else ''}"
    form = {"type": "log"} if logarithmic else {"type": "linear", "zero": False}
    scale = alt.Scale(**form, nice=False, padding=AXIS_PADDING)
    axis = alt.Axis(title=title, labelExpr=SI, tickCount=6, labelOverlap="greedy")
    return channel(f"{key}:Q", scale=scale, axis=axis)


def _is_log(rows: Sequence[Row], key: str) -> bool:
    low, high = min(row[key] for row in rows), max(row[key] for row in rows)
    return bool(low > 0 and high / low >= LOG_SPREAD)


def _pixels(rows: Sequence[Row], key: str, length: int) -> Any:
    scale = math.log if _is_log(rows, key) else float
    low, high = scale(min(row[key] for row in rows)), scale(max(row[key] for row in rows))
    stretch = (length - 2 * AXIS_PADDING) / ((high - low) or 1)
    return lambda value: AXIS_PADDING + (scale(value) - low) * stretch


# --- what a trace asks for --------------------------------------------------------------------------------------------


def top_sizes(profile: Row, name: str) -> Figure:
    """Shares of the most frequent sizes of a `profile`, those of at least `FREQUENT_SHARE` in colour."""
    rows = [
        {"size": f"{row['size']:,} B", "share": row["share"], "frequent": row["share"] >= FREQUENT_SHARE}
        for row in profile["sizes"][:TOP_SIZES]
    ]
    others = profile["sizes"][TOP_SIZES:]
    if others:
        share = sum(row["share"] for row in others)
        rows.append({"size": f"{len(others):,} others", "share": share, "frequent": False})
    y = alt.Y("size:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=120))
    x = alt.X("share:Q", title="share of requests", axis=alt.Axis(format="%", tickCount=5))
    colour = alt.condition("datum.frequent", alt.value(BLUE), alt.value("#a9b2ba"))
    bars = _data(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=y, color=colour)
    text = _data(rows).mark_text(align="left", dx=4, fontSize=11, color=INK)
    frequent = sum(row["share"] >= FREQUENT_SHARE for row in profile["sizes"])
    return Figure(
        name,
        f"{profile['distinct_sizes']:,} sizes, {frequent or 'none'} with 10 % of the requests or more",
        f"The two most frequent make up {profile['top_two_share']:.0%} of the requests. "
        f"{profile['sizes_for_90_percent']:,} sizes make up 90 %.",
        alt.layer(bars, text.encode(x=x, y=y, text=alt.Text("share:Q", format=".1%"))).properties(height=MAP_HEIGHT),
        SIDE,
    )


def size_histogram(profile: Row, name: str) -> Figure:
    """Requests and requested bytes by size, in octaves, as shares of their sums."""
    octaves: dict[int, list[float]] = {}
    for row in profile["sizes"]:
        sums = octaves.setdefault(row["size"].bit_length(), [0, 0])
        sums[0] += row["count"]
        sums[1] += row["count"] * row["size"]
    sums_of_all = [sum(sums[at] for sums in octaves.values()) or 1 for at in (0, 1)]
    rows = [
        {"octave": _octave(bits), "of": of, "share": octaves.get(bits, [0, 0])[at] / sums_of_all[at]}
        for bits in range(min(octaves), max(octaves) + 1)
        for at, of in enumerate(("of the requests", "of the requested bytes"))
    ]
    colour = alt.Color("of:N", sort=None, scale=alt.Scale(range=[BLUE, PALE]))
    chart = (
        _data(rows)
        .mark_bar()
        .encode(
            x=alt.X("octave:O", sort=None, title="size, B", axis=alt.Axis(labelAngle=-45, domain=False, ticks=False)),
            xOffset=alt.XOffset("of:N", sort=None),
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%", tickCount=5)),
            color=colour,
            tooltip=[
                alt.Tooltip("octave:O", title="size, B"),
                alt.Tooltip("share:Q", format=".2%"),
                alt.Tooltip("of:N"),
            ],
        )
    )
    return Figure(
        name,
        "Where the requests are, and where the bytes are",
        "Sizes in octaves, powers of two.",
        chart.properties(height=MAP_HEIGHT),
        SIDE,
    )


def lifetimes(profile: Row, name: str) -> Figure:
    """How many calls objects live, in octaves, as a share of the freed objects."""
    histogram = profile["lifetimes"]["events"]["histogram"]
    total = sum(row["count"] for row in histogram) or 1
    rows = [{"octave": _octave(int(row["from"]).bit_length()), "share": row["count"] / total} for row in histogram]
    chart = (
        _data(rows)
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("octave:O", sort=None, title="calls", axis=alt.Axis(labelAngle=-45, domain=False, ticks=False)),
            y=alt.Y("share:Q", title="share of freed objects", axis=alt.Axis(format="%", tickCount=5)),
            tooltip=[alt.Tooltip("octave:O", title="calls"), alt.Tooltip("share:Q", format=".2%")],
        )
    )
    median, never = profile["lifetimes"]["events"]["p50"], profile["never_freed"]
    return Figure(
        name,
        "Nothing is freed" if median is None else f"Half of the freed objects live for {median:,} calls or less",
        f"Calls between birth and death. {never['objects']:,} objects ({never['share']:.0%}) are never freed.",
        chart.properties(height=MAP_HEIGHT),
        SIDE,
    )


def live_curve(profile: Row, name: str) -> Figure:
    """Live requested bytes after each call."""
    live = profile["live"]
    rows = [
        {"event": event, "bytes": size, "objects": objects}
        for event, size, objects in zip(live["event"], live["bytes"], live["objects"], strict=True)
    ]
    chart = _data(rows).mark_area(color=BLUE, opacity=0.25, line={"color": BLUE, "strokeWidth": 1.5})
    tooltip = [
        alt.Tooltip("event:Q", format=","),
        alt.Tooltip("bytes:Q", format=","),
        alt.Tooltip("objects:Q", format=","),
    ]
    peak = quantity(profile["requested_peak_bytes"])
    encoded = chart.encode(x=_calls(profile["events"]), y=_bytes("bytes", "live bytes requested, B"), tooltip=tooltip)
    return Figure(
        name,
        f"Live memory peaks at {peak} after call {profile['requested_peak_event']:,}",
        f"At most {profile['live_objects_peak']:,} objects are alive at once.",
        encoded.properties(height=MAP_HEIGHT),
        SIDE,
    )


def _octave(bits: int) -> str:
    low, high = (1 << bits) >> 1, (1 << bits) - 1
    return f"{low:,}" if low >= high else f"{_short(low)}–{_short(high)}"


def _short(number: int) -> str:
    for unit, size in (("M", 1 << 20), ("K", 1 << 10)):
        if number >= size:
            return f"{(number + 1) // size}{unit}" if number & 1 else f"{number // size}{unit}"
    return str(number)


# --- what a heap makes of it ------------------------------------------------------------------------------------------

SERIES = {"footprint": ("footprint", INK), "allocated": ("allocated", VERMILLION), "requested": ("requested", BLUE)}


def timeline(samples: Mapping[str, npt.NDArray[np.int64]], heap: str, calls: int, extent: int, name: str) -> Figure:
    """Requested, allocated and footprint bytes after each call, of one heap.

    `samples`: as `replay.timeline` gives them; `heap`: what to call the heap; `calls`: of the trace; `extent`: upper
    end of the axis in bytes, the same for heaps that are to be compared.
    """
    columns = {key: values.tolist() for key, values in samples.items()}
    rows = [{"event": event, **{key: columns[key][at] for key in SERIES}} for at, event in enumerate(columns["event"])]
    domain, colours = zip(*SERIES.values(), strict=True)
    base = _data(rows).encode(x=_calls(calls))
    scale = alt.Scale(domain=[0, extent])
    area = base.mark_area(color=BLUE, opacity=0.15).encode(y=_bytes("requested", "bytes", scale))
    lines = base.transform_fold(list(SERIES), as_=["series", "bytes"]).mark_line(
        strokeWidth=1.5, interpolate="step-after"
    )
    hover = base.mark_rule(opacity=0.001, strokeWidth=6).encode(
        tooltip=[alt.Tooltip(f"{key}:Q", format=",", title=key) for key in ("event", *SERIES)]
    )
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(domain), range=list(colours)), legend=alt.Legend())
    peak, footprint = int(samples["requested"].max()), int(samples["footprint"].max())
    return Figure(
        name,
        f"{heap}: footprint {quantity(footprint)}",
        f"{footprint / max(peak, 1) - 1:.1%} above the peak of the requested bytes, {quantity(peak)}.",
        alt.layer(area, lines.encode(y=_bytes("bytes", "bytes", scale), color=colour), hover).properties(height=170),
        SIDE,
    )


def heap_map(drawn: Mapping[str, Any], heap: str, calls: int, extent: int, name: str) -> Figure:
    """Address x time: what each stretch of the arena holds, of one heap.

    `drawn`: as `replay.heap_map` gives it; the others as in `timeline`.
    """
    picture = raster.picture(drawn["blocks"], len(drawn["event"]), extent)
    url = "data:image/png;base64," + base64.b64encode(picture).decode("ascii")
    present = set(np.unique(drawn["blocks"]["state"]).tolist())
    states = [raster.STATES[state] for state in raster.LEGEND_ORDER if state in present]
    scale = alt.Scale(domain=[state.words for state in states], range=[state.colour for state in states])
    axes = {"x": _calls(calls), "y": _bytes("low", "address in the arena, B", alt.Scale(domain=[0, extent]))}
    image = _data([{"url": url, "event": 0, "last": calls, "low": 0, "high": extent}]).mark_image(aspect=False)
    # Squares that are there only for the legend: a picture has none.
    legend = alt.Legend(
        symbolType="square", symbolOpacity=1, symbolSize=110, symbolStrokeWidth=0, columns=LEGEND_COLUMNS
    )
    key = _data([{"state": state.words, "event": 0, "low": 0} for state in states]).mark_point(opacity=0, filled=True)
    layers = [
        image.encode(**axes, x2="last:Q", y2="high:Q", url="url:N"),
        key.encode(**axes, color=alt.Color("state:N", scale=scale, legend=legend)),
    ]
    return Figure(
        name,
        f"{heap}: what lies where, over time",
        "Each pixel mixes the colours of all that lies in its stretch of the arena.",
        alt.layer(*layers).properties(height=MAP_HEIGHT),
        SIDE,
    )


# --- words and axes ---------------------------------------------------------------------------------------------------


def words(key: str) -> str:
    """A metric's key as words: without its unit, with spaces."""
    return key.removesuffix("_bytes").removesuffix("_nJ").replace("_", " ")


def quantity(size: int) -> str:
    """Bytes for people: exact below 10 KB, else three digits with a decimal prefix, as on the axes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale and size >= 10_000:
            return f"{size / scale:.3g} {unit}" if size < 999.5 * scale else f"{size / scale:,.0f} {unit}"
    return f"{size:,} B"


def _precise(key: str) -> str:
    return "," if METRICS[key].integer else ".4~g"


def _data(values: Sequence[Row], name: str | None = None) -> alt.Chart:
    data: dict[str, Any] = {"values": list(values)}
    return alt.Chart(alt.InlineData(**data, name=name) if name else alt.InlineData(**data))


def _calls(last: int) -> alt.X:
    axis = alt.Axis(labelExpr=SI, title="calls since the start", tickCount=6)
    return alt.X("event:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=axis)


def _bytes(field: str, title: str, scale: alt.Scale | None = None) -> alt.Y:
    axis = alt.Axis(labelExpr=SI, title=title, tickCount=5, minExtent=38)
    return alt.Y(f"{field}:Q", axis=axis, scale=scale or alt.Scale(zero=True))
