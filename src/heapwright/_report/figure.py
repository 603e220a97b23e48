"""A plot of a report: a Vega-Lite chart with its words, for the page and as PNG and SVG; and the looks that all
share.
"""

from __future__ import annotations

import html
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode
from PIL import Image

from heapwright._report.drawing import svg_of
from heapwright._support.errors import HeapwrightError

# Okabe and Ito, "Color universal design" (2008): distinct with every common colour blindness, by lightness in print.
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, SOFT, CLOUD, PALE, GRID = "#1c2630", "#5b6670", "#8b949c", "#d5dade", "#e8ebee"

DARK = {
    "white": "#14191e",
    INK: "#e4e9ed",
    SOFT: "#a7b2bb",
    CLOUD: "#76828c",
    PALE: "#46525c",
    GRID: "#262e35",
    "#c5cbd1": "#46525c",
    "#a9b2ba": "#66727c",
    "#9c4500": "#f5a877",
    BLUE: "#3f9fd8",
    VERMILLION: "#ee7f38",
    GREEN: "#2fbf96",
}
"""What colours of plots become on a dark page."""

SI = "format(datum.value, '~s')"
"""Axis labels with the prefix that fits each number; a common prefix for all makes 200 calls into 0.2k."""
LEGEND_COLUMNS = alt.expr("width < 420 ? 2 : 6")

SCALE = 2
"""Pixels of a PNG for each of the plot's, so that it is sharp on dense screens."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One plot.

    Attributes:
        name: the stem of its files, and its place in the page.
        title: what one sees.
        note: how to read it.
        chart: of any Altair kind; what it names in `datasets` it does not hold.
        width: of the PNG and SVG, in pixels; in the page a plot is as wide as its place.
        words: the numbers in words, for readers who do not see the plot.
        datasets: rows by the names by which the chart knows them: Altair takes seconds to check thousands that a chart
            holds itself.
        fitted: whether the whole plot is to be `width` pixels wide; else its inside is, and the axes come on top.
    """

    name: str
    title: str
    note: str
    chart: alt.TopLevelMixin
    width: int
    words: str = ""
    datasets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    fitted: bool = True

    @property
    def described(self) -> str:
        """Title, note and numbers: what stands for the plot where it is not seen."""
        return " ".join(filter(None, (f"{self.title}.", self.note, self.words)))

    def still(self, width: int | None = None) -> str:
        """The plot as SVG for a page that has its words, `width` pixels wide (`self.width` by default).

        Raises HeapwrightError where it cannot be drawn.
        """
        # A browser's letters may be wider than those that the plot was laid out with.
        spec = {**self._spec(width or self.width), "padding": {"left": 12, "right": 12, "top": 5, "bottom": 5}}
        return _embedded(_drawn(self.name, spec), self.name)

    def files(self) -> dict[str, str | bytes]:
        """The plot as `name`.png and `name`.svg, with its words; raises HeapwrightError where it cannot be drawn."""
        import vl_convert

        drawing = self.drawing()
        picture = vl_convert.svg_to_png(drawing, scale=SCALE)
        # Without transparency and compressed again it is a fifth of the size; best compressed, 2 % less in four times.
        png = io.BytesIO()
        Image.open(io.BytesIO(picture)).convert("RGB").save(png, "PNG")
        return {f"{self.name}.png": png.getvalue(), f"{self.name}.svg": drawing}

    def drawing(self) -> str:
        """The plot as SVG, with its words; raises HeapwrightError where it cannot be drawn."""
        return _drawn(self.name, self.whole_spec())

    def whole_spec(self) -> dict[str, Any]:
        """The Vega-Lite specification with title, note and data, `width` pixels wide."""
        title = {"text": self.title, "subtitle": textwrap.wrap(self.note, self.width // 6)}
        return {**self._spec(self.width), "title": title}

    def standalone(self) -> alt.TopLevelMixin:
        """The plot as an Altair chart that holds all its data: what a notebook shows."""
        return alt.LayerChart.from_dict(self.whole_spec(), validate=False)

    @cached_property
    def _unsized(self) -> dict[str, Any]:
        """The chart's own specification: Altair takes a hundredth of a second to write it, each time."""
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        return spec

    def _spec(self, width: int) -> dict[str, Any]:
        spec = self._unsized
        fitted = {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        datasets = {**spec.get("datasets", {}), **self.datasets}
        return {**spec, **(fitted if self.fitted else {}), "config": CONFIG, "datasets": datasets}


def unvalidated() -> AbstractContextManager[None]:
    """Charts made within are not validated one part at a time: drawing them reports the same faults."""
    return debug_mode(False)


def _drawn(name: str, spec: Mapping[str, Any]) -> str:
    try:
        drawing = svg_of(spec)
    except ValueError as error:
        raise HeapwrightError(f"{name}: the plot cannot be drawn: {error}") from error
    return drawing


def _embedded(drawing: str, name: str) -> str:
    """An SVG as a part of a page: the page sets its size, its ids are unique, its words are elsewhere on the page."""
    head, end, rest = drawing.partition(">")
    size = re.search(r'viewBox="[^"]*"', head)
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size[0] if size else ""} aria-hidden="true"{end}{rest}'
    # Vega's description of a mark becomes a title, which a browser shows under the pointer.
    marks = r'<(\w+) aria-label="([^"]*)" role="graphics-symbol"([^>]*)/>'
    drawing = re.sub(marks, lambda mark: f"<{mark[1]}{mark[3]}><title>{_escaped(mark[2])}</title></{mark[1]}>", drawing)
    drawing = re.sub(r' (?:role|aria-roledescription|aria-label)="[^"]*"', "", drawing)
    drawing = re.sub(r'(\bid="|url\(#)(?=\w)', rf"\1{name}-", drawing)
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), drawing)


def _escaped(attribute: str) -> str:
    """The value of an attribute as the text of an element: there `<` has to be escaped, too."""
    return html.escape(html.unescape(attribute), quote=False)


def dark_style() -> str:
    """CSS that turns the colours of embedded plots into those of a dark page; one with a picture stays as it is."""
    return "\n".join(
        f'.chart:not(.picture) svg [{what}="{light}"] {{ {what}: {dark}; }}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Values worth writing on an axis: powers of ten, what lies between where there are too few, else round steps."""
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1) if log else ()
    for steps in ((1,), (1, 2, 5), range(1, 10)):
        results = [float(f"{step}e{power}") for power in powers for step in steps]
        results = [value for value in results if low <= value <= high]
        if len(results) >= 3:
            return results
    power = 10 ** math.floor(math.log10((high - low) / 6))
    step = next(item * power for item in (1, 2, 2.5, 5, 10) if item * power >= (high - low) / 6)
    return [at * step for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def inline(values: Sequence[Row]) -> alt.Chart:
    """An empty chart over these rows."""
    # Altair copies the rows of a list for each layer and each encoding, those of a tuple never.
    return alt.Chart(alt.InlineData(values=tuple(values)))


def calls_axis(last: int) -> alt.X:
    """The axis of the calls of a trace of `last` calls."""
    axis = alt.Axis(labelExpr=SI, title="calls since the start", tickCount=6)
    return alt.X("event:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=axis)


def bytes_axis(field: str, title: str, scale: alt.Scale | None = None) -> alt.Y:
    """The axis of a field that holds bytes, from 0 on if nothing else is said."""
    axis = alt.Axis(labelExpr=SI, title=title, tickCount=5, minExtent=38)
    return alt.Y(f"{field}:Q", axis=axis, scale=scale or alt.Scale(zero=True))


def quantity(size: int) -> str:
    """Bytes for people: exact below 10 KB, else three digits with a decimal prefix, as on the axes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale and size >= 10_000:
            return f"{size / scale:.3g} {unit}" if size < 999.5 * scale else f"{size / scale:,.0f} {unit}"
    return f"{size:,} B"


def counted(number: int, noun: str) -> str:
    """Number with its noun, in the plural if need be: "1 object", "2 objects"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


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
    "legend": {"labelColor": INK, "labelFontSize": 12, "orient": "top", "title": None, "columnPadding": 28},
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
