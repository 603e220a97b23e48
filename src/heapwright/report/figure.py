"""A plot of a report: a Vega-Lite chart with its words, for the page and as PNG and SVG; and the looks that all
share.
"""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
from PIL import Image

from heapwright.errors import HeapwrightError

# Okabe and Ito, "Color universal design" (2008): told apart with every common colour blindness, by lightness in print.
BLUE, VERMILLION = "#0072B2", "#D55E00"
INK, SOFT, CLOUD, PALE, GRID = "#1c2630", "#5b6670", "#8b949c", "#d5dade", "#e8ebee"

SI = "format(datum.value, '~s')"
"""Axis labels with the prefix that fits each number; a common prefix for all makes 200 calls into 0.2k."""
LEGEND_COLUMNS = alt.expr("width < 420 ? 2 : 6")

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
        datasets: rows by name of those data that the page holds once for all its plots.
    """

    name: str
    title: str
    note: str
    chart: alt.TopLevelMixin
    width: int
    datasets: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    def page_spec(self) -> dict[str, Any]:
        """The Vega-Lite specification for the page, without title and `datasets`, which the page adds."""
        return self._spec("container")

    def files(self) -> dict[str, str | bytes]:
        """The plot as `name`.png and `name`.svg, with its words; raises HeapwrightError where it cannot be drawn."""
        import vl_convert

        spec = json.dumps(self.whole_spec())
        try:
            picture, drawing = vl_convert.vegalite_to_png(spec, scale=2), vl_convert.vegalite_to_svg(spec)
        except ValueError as error:
            raise HeapwrightError(f"{self.name}: the plot cannot be drawn: {error}") from error
        # Without transparency and well compressed it is a fifth of the size.
        png = io.BytesIO()
        Image.open(io.BytesIO(picture)).convert("RGB").save(png, "PNG", optimize=True)
        return {f"{self.name}.png": png.getvalue(), f"{self.name}.svg": drawing}

    def whole_spec(self) -> dict[str, Any]:
        """The Vega-Lite specification with title, note and data, `width` pixels wide."""
        title = {"text": self.title, "subtitle": textwrap.wrap(self.note, self.width // 6)}
        drawn = self._spec(self.width)
        return {**drawn, "title": title, "datasets": {**drawn.get("datasets", {}), **self.datasets}}

    def standalone(self) -> alt.TopLevelMixin:
        """The plot as an Altair chart that holds all its data: what a notebook shows."""
        return alt.LayerChart.from_dict(self.whole_spec(), validate=False)

    def _spec(self, width: int | str) -> dict[str, Any]:
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        return {**spec, "width": width, "config": CONFIG, "autosize": {"type": "fit-x", "contains": "padding"}}


def inline(values: Sequence[Row]) -> alt.Chart:
    """An empty chart over these rows."""
    return alt.Chart(alt.InlineData(values=list(values)))


def words(key: str) -> str:
    """A metric's key as words: without its unit, with spaces."""
    return key.removesuffix("_bytes").removesuffix("_nJ").replace("_", " ")


def quantity(size: int) -> str:
    """Bytes for people: exact below 10 KB, else three digits with a decimal prefix, as on the axes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale and size >= 10_000:
            return f"{size / scale:.3g} {unit}" if size < 999.5 * scale else f"{size / scale:,.0f} {unit}"
    return f"{size:,} B"


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
