"""Pictures of a report: timelines, trade-offs, heap maps, their files, and labels that keep apart."""

from __future__ import annotations

import base64
import io
import re
from itertools import combinations
from typing import Any

import altair as alt
import numpy as np
import pytest
import vl_convert
from PIL import Image, ImageChops, ImageColor

from heapwright._replay.pictures import HEAP_MAP_STATES
from heapwright._report import plots, raster, study_content
from heapwright._report import trade_off as trade_off_module
from heapwright._report.figure import Figure, inline, ticks
from heapwright._report.labels import CHARACTER, LINE_HEIGHT, Marker, box_of, place
from heapwright._report.trade_off import front, trade_off


@pytest.mark.parametrize("calls", [1, 50, 10_000])
def test_a_timeline_shows_the_most_and_the_least_of_each_stretch(calls: int) -> None:
    """What comes and goes at each call is a band, not bars that alias."""
    event = np.arange(calls)
    samples = {"event": event, "requested": event % 2 * 100, "allocated": event % 2 * 120, "footprint": event + 200}
    figure = plots.timeline(samples, "tlsf", calls, 20_000, "t")
    drawn = figure.chart.to_dict()["datasets"].values()
    rows = next(rows for rows in drawn if {row.get("series") for row in rows} >= {"requested", "footprint"})
    results = {words: [row for row in rows if row["series"] == words] for words in ("requested", "footprint")}
    assert all(len(item) <= plots.STRETCHES + 1 for item in results.values())
    assert max(row["high"] for row in results["requested"]) == (100 if calls > 1 else 0)
    assert [row["event"] for row in results["requested"]][:: len(results["requested"]) - 1] == [0, calls]
    if calls > 2 * plots.STRETCHES:
        assert {(row["low"], row["high"]) for row in results["requested"][:-1]} == {(0, 100)}
        assert "the most at each place" in figure.note
    highs = [row["high"] for row in results["footprint"]]
    assert highs == sorted(highs) and highs[-1] == calls + 199


def test_the_still_trade_off_has_the_front_of_its_metrics() -> None:
    generator = np.random.default_rng(5)
    values = generator.integers(1, 30, (200, 2))
    rows = [
        {"id": f"{at:03}", "kind": "cloud", "name": "", "balanced": at == 0, "accesses": int(x), "utilisation": int(y)}
        for at, (x, y) in enumerate(values)
    ]
    result = front(rows, "accesses", "utilisation")
    assert all(
        not (
            row["accesses"] <= member["accesses"]
            and row["utilisation"] >= member["utilisation"]
            and (row["accesses"], row["utilisation"]) != (member["accesses"], member["utilisation"])
        )
        for member in result
        for row in rows
    )
    assert [row["accesses"] for row in result] == sorted(row["accesses"] for row in result)
    figure = trade_off("t", "A title", rows, "accesses", "utilisation")
    assert f"{result[0]['id']} {result[0]['accesses']} and {result[0]['utilisation']}" in figure.described


def test_decades_are_written_out_and_narrow_axes_have_steps() -> None:
    assert ticks(3e3, 4e7, log=True) == [1e4, 1e5, 1e6, 1e7]
    assert ticks(900, 6e4, log=True) == [1e3, 2e3, 5e3, 1e4, 2e4, 5e4]
    assert ticks(128_000, 131_000, log=False) == [128_000, 128_500, 129_000, 129_500, 130_000, 130_500, 131_000]


def shares_of(*states: str) -> np.ndarray[Any, Any]:
    """A column of cells, each wholly of one state."""
    shares = np.zeros((len(HEAP_MAP_STATES), len(states), 1))
    for row, state in enumerate(states):
        shares[HEAP_MAP_STATES.index(state), row] = 1
    return shares


def test_every_state_of_a_heap_map_has_a_colour_of_its_own() -> None:
    assert sorted(raster.COLOURS) == sorted(HEAP_MAP_STATES)
    assert len(set(raster.COLOURS.values())) == len(HEAP_MAP_STATES)


def test_states_of_a_heap_map_differ_in_grey_print() -> None:
    lightness = {state: luminance(colour) for state, colour in raster.COLOURS.items()}
    for item, other in combinations(raster.COLOURS, 2):
        light, dark = sorted((lightness[item], lightness[other]), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3 or raster.PATTERNS.get(item) != raster.PATTERNS.get(other)
    for state, pattern in raster.PATTERNS.items():
        pixels = {bytes(pixel) for pixel in raster.picture(shares_of(*[state] * 48)).reshape(-1, 3)}
        light, dark = sorted((luminance(f"#{pixel.hex()}") for pixel in pixels), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, pattern


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1, as the Web Content Accessibility Guidelines define it."""
    parts = [value / 255 for value in ImageColor.getrgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_picture_has_address_0_at_the_bottom() -> None:
    url = raster.url(raster.picture(shares_of("payload in use", "free")))
    drawn = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert (drawn.format, drawn.size) == ("PNG", (1, 2))
    for row, state in enumerate(("free", "payload in use")):
        assert drawn.getpixel((0, row)) == pytest.approx(ImageColor.getrgb(raster.COLOURS[state]), abs=3)


def test_a_png_is_the_drawing_well_compressed() -> None:
    chart = inline([{"x": 1, "y": 2}, {"x": 3, "y": 1}]).mark_line().encode(x="x:Q", y="y:Q")
    files = Figure("line", "A line", "It falls.", chart, 400).files()
    png, svg = files["line.png"], files["line.svg"]
    assert isinstance(png, bytes) and isinstance(svg, str)
    drawn = vl_convert.svg_to_png(svg, scale=2)
    difference = ImageChops.difference(Image.open(io.BytesIO(png)), Image.open(io.BytesIO(drawn)).convert("RGB"))
    assert difference.getbbox() is None
    assert len(png) < len(drawn) / 2


def test_a_plot_in_a_page_escapes_what_it_tells_of_its_marks() -> None:
    chart = inline([{"x": "<b>&x", "y": 2}]).mark_bar().encode(x="x:N", y="y:Q")
    still = Figure("bar-1", "A bar", "It stands.", chart, 400).still()
    assert "<title>" in still and "&lt;b&gt;&amp;x" in still and "<b>" not in still
    ids = re.findall(r'\bid="([^"]*)"', still)
    assert all(item.startswith("bar-1-") for item in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", still)) <= set(ids)


def test_labels_neither_overlap_nor_leave_the_plot_nor_stand_at_another_point() -> None:
    generator = np.random.default_rng(4)
    anchors = [Marker(float(x), float(y)) for x, y in generator.uniform(0, 300, (40, 2))]
    texts = [f"allocator-{at}" for at in range(40)]
    boxes = []
    for anchor, text, label in zip(anchors, texts, place(anchors, texts, anchors, 300, 300), strict=True):
        if label is not None:
            width = len(text) * CHARACTER
            remaining = anchor.x + label.dx - {"left": 0, "center": width / 2, "right": width}[label.align]
            boxes.append((remaining, anchor.y + label.dy - LINE_HEIGHT / 2, width))
            box = box_of(anchor, label, text)
            assert all(box.distance(anchor) < box.distance(other) for other in anchors if other != anchor)
    assert len(boxes) >= 10
    for at, (remaining, top, width) in enumerate(boxes):
        assert remaining >= 0 and remaining + width <= 300 and top >= 0 and top + LINE_HEIGHT <= 300
        for other_left, other_top, other_width in boxes[:at]:
            apart = remaining >= other_left + other_width or other_left >= remaining + width
            assert apart or abs(top - other_top) >= LINE_HEIGHT


def test_of_points_in_one_spot_the_first_is_drawn() -> None:
    """On axes that are logarithms where all numbers are above 0."""
    rows, near = np.arange(4), trade_off_module.INSIDE / 20
    ratios = np.array([[1.0, 1.0], [2.0, 2.0], [2.02, 2.02], [1000.0, 1000.0]])
    assert study_content._spots(ratios, rows, near).tolist() == [0, 1, 3]
    assert study_content._spots(ratios - 1, rows, near).tolist() == [0, 3]
    assert study_content._spots(ratios, rows[:0], near).tolist() == []


def test_a_figure_is_described_by_title_note_and_numbers() -> None:
    item = Figure("memory", "Memory over time", "In bytes.", alt.Chart(), 100, words="At most 7.")
    assert item.described == "Memory over time. In bytes. At most 7."
    assert Figure("memory", "Memory over time", "", alt.Chart(), 100).described == "Memory over time."
