"""Zoom in the timeline: plots, map, animation and free memory of a trace show one part of it, in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import CUT_LABELS, Chromium
from PIL import ImageColor
from run_length import brief

from heapwright._heaps.names import resolve_recipe
from heapwright._native import lib
from heapwright._replay.pictures import HEAP_MAP_STATES, timeline
from heapwright._replay.snapshots import frames
from heapwright._report import raster, write_report
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

READY = "document.documentElement.dataset.ready === 'true'"
HEAPS = ("victim-bins", "tlsf")
FIRST, SECOND = (f"busy-{heap}" for heap in HEAPS)


def busy_trace(calls: int = 6000) -> Trace:
    """Objects of all ages, twice as slow in its second half."""
    draw = np.random.default_rng(8)
    live: list[int] = []
    rows: list[tuple[int, int, int]] = []
    while len(rows) < calls:
        if live and draw.random() < (0.35 if len(live) < 80 else 0.55):
            rows.append((FREE, live.pop(int(draw.integers(len(live)))), 0))
        else:
            rows.append((MALLOC, len(rows), int(draw.choice([16, 100, int(draw.integers(8, 900))]))))
            live.append(len(rows) - 1)
    op, ids, sizes = zip(*rows, strict=True)
    steps = np.where(np.arange(calls) < calls // 2, 100, 200)
    return Trace.from_columns(op=op, id=ids, size=sizes, ts_us=np.cumsum(steps), name="busy")


@dataclass(frozen=True)
class Made:
    """A trace's page of two heaps."""

    trace: Trace
    page: Path
    data: dict[str, Any]

    @property
    def kept(self) -> list[int]:
        """The moments that the first animation keeps."""
        result: list[int] = self.data["animations"][f"animation-{FIRST}"]["frames"]["call"]
        return result


def packed(page: Path) -> dict[str, Any]:
    (text,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text(encoding="utf-8"))
    result: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("zoom")
    trace = busy_trace()
    trace.write(folder / "busy.parquet")
    page = folder / "report.html"
    write_report(folder / "busy.parquet", page, heaps=HEAPS)
    return Made(trace, page, packed(page))


class Shown:
    """The page as it is shown."""

    def __init__(self, browser: Chromium, page: Path, fragment: str = "", **look: Any) -> None:
        self.browser = browser
        browser.look(**look)
        browser.open(page, fragment, READY)
        assert browser.console == []

    def text(self, selector: str) -> str:
        return str(self.browser.run(f"document.querySelector('{selector}').textContent"))

    def range(self) -> str:
        return self.text(".zoom .range")

    def address(self) -> str:
        return str(self.browser.run("location.hash"))

    def picture(self, selector: str) -> str:
        return str(self.browser.run(f"document.querySelector('{selector} canvas').toDataURL()"))

    def all_drawn(self) -> list[str]:
        """The plots, maps and strips of both heaps, and who holds the live bytes."""
        line = "document.querySelector('#timeline-{} .series.requested').getAttribute('d')"
        results = [str(self.browser.run(line.format(item))) for item in (FIRST, SECOND)]
        for item in (FIRST, SECOND):
            results += [self.picture(f"#heap-map-{item}"), self.picture(f"#animation-{item} .around")]
        return [*results, str(self.browser.run("document.querySelector('#live-busy .held').getAttribute('d')"))]

    def moments(self, animation: str) -> list[int]:
        """The calls that the slider of an animation stops at."""
        calls = self.browser.run(
            f"""((animation) => {{
              const slider = animation.querySelector('.time');
              return Array.from({{ length: Number(slider.max) + 1 }}, (_, at) => {{
                slider.value = at;
                slider.dispatchEvent(new Event('input'));
                return Number(animation.dataset.call);
              }});
            }})(document.getElementById('animation-{animation}'))"""
        )
        return [int(call) for call in calls]

    def box(self, selector: str) -> tuple[float, float, float, float]:
        remaining, top, width, height = self.browser.run(
            f"""((place) => {{
              place.scrollIntoView({{ block: 'center' }});
              const {{ left, top, width, height }} = place.getBoundingClientRect();
              return [left, top, width, height];
            }})(document.querySelector('{selector}'))"""
        )
        return remaining, top, width, height

    def drag(self, selector: str, begin: float, end: float) -> None:
        """Over a part of what calls run across, by shares of its width."""
        remaining, top, width, height = self.box(selector)
        x, y = [remaining + share * width for share in (begin, (begin + end) / 2, end)], top + height / 2
        for kind, at in (("mouseMoved", 0), ("mousePressed", 0), ("mouseMoved", 1), ("mouseMoved", 2)):
            self.browser.call(
                "Input.dispatchMouseEvent", type=kind, x=x[at], y=y, button="left", buttons=1, clickCount=1
            )
        self.browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=x[2], y=y, button="left", clickCount=1)

    def swipe(self, selector: str, begin: float, end: float) -> None:
        """The same by touch."""
        remaining, top, width, height = self.box(selector)
        x, y = [remaining + share * width for share in (begin, (begin + end) / 2, end)], top + height / 2
        for kind, at in (("touchStart", 0), ("touchMove", 1), ("touchMove", 2)):
            self.browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x[at], "y": y}])
        self.browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def bounds(self) -> tuple[int, int]:
        """The first and last call in view."""
        if result := re.match(r"Calls ([\d,]+) to ([\d,]+) of", self.range()):
            first, last = (int(item.replace(",", "")) for item in result.groups())
            return first, last
        whole = re.match(r"All ([\d,]+) calls", self.range())
        assert whole
        return 0, int(whole[1].replace(",", "")) - 1


# Across these calls run from one edge to the other.
MAP, STRIP = f"#heap-map-{FIRST} .frame canvas", f"#animation-{FIRST} .strip"


@pytest.mark.parametrize("place", [MAP, STRIP])
def test_a_drag_shows_that_part_in_plots_maps_animations_and_strips_and_the_address_has_it(
    browser: Chromium, made: Made, place: str
) -> None:
    shown = Shown(browser, made.page)
    before, calls = shown.all_drawn(), len(made.trace)
    shown.drag(place, 0.25, 0.5)
    first, last = shown.bounds()
    assert [first, last] == pytest.approx([calls / 4, calls / 2], rel=0.01)
    assert all(item != other for item, other in zip(before, shown.all_drawn(), strict=True))
    assert shown.address() == f"#&view-busy={first}-{last}"
    for heap in (FIRST, SECOND):
        moments = shown.moments(heap)
        assert (moments[0], moments[-1]) == (first, last)
        assert set(made.kept) & set(range(first, last + 1)) <= set(moments) or heap == SECOND
        assert len(moments) > 120 and moments == sorted(set(moments))
    after = shown.all_drawn()
    again = Shown(browser, made.page, f"#&view-busy={first}-{last}&call-busy={last}")
    assert (again.bounds(), again.all_drawn()) == ((first, last), after)


def test_two_drags_and_keys_lead_in_and_out(browser: Chromium, made: Made) -> None:
    shown, calls = Shown(browser, made.page), len(made.trace)
    whole = shown.all_drawn()
    browser.run(f"document.getElementById('timeline-{FIRST}').focus()")
    browser.press("+")
    first, last = shown.bounds()
    assert last - first == pytest.approx((calls - 1) / 4, abs=1)
    browser.press("ArrowRight")
    assert shown.bounds() == (first + round((last - first) / 4), last + round((last - first) / 4))
    browser.press("ArrowLeft")
    assert shown.bounds() == (first, last)
    browser.press("-")
    assert shown.bounds() == (0, calls - 1)
    for button, expected in (("in", (first, last)), ("out", (0, calls - 1)), ("on", (0, calls - 1))):
        browser.run(f"document.querySelector('.zoom .{button}').click()")
        assert shown.bounds() == expected
    shown.drag(STRIP, 0.0, 0.1)
    shown.drag(STRIP, 0.0, 0.2)
    assert list(shown.bounds()) == pytest.approx([0, 0.02 * calls], abs=3)
    browser.press("Escape")
    browser.run("document.querySelector('.zoom .all').click()")
    drawn = shown.all_drawn()
    drawn[3], drawn[5] = whole[3], whole[5]  # the strips mark the moment, which stayed in view
    assert drawn == whole
    assert shown.address() == ""


def test_a_finger_does_the_same(browser: Chromium, made: Made) -> None:
    shown, calls = Shown(browser, made.page, width=360), len(made.trace)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        shown.swipe(f"#timeline-{FIRST} .frame svg", 0.5, 0.9)
        first, last = shown.bounds()
    finally:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    assert 0.3 * calls < last - first < 0.6 * calls and last < calls - 1


def test_time_on_the_axis_makes_slow_calls_wider(browser: Chromium, made: Made) -> None:
    shown = Shown(browser, made.page)
    axis = f"[...document.querySelectorAll('#timeline-{FIRST} .axes text')].map((one) => one.textContent)"
    calls = shown.all_drawn()
    assert {"calls since the start", "3,000"} <= set(browser.run(axis))
    browser.run(
        "((choice) => { choice.value = 'time'; choice.dispatchEvent(new Event('change')) })"
        "(document.querySelector('.zoom .across'))"
    )
    assert {"seconds since the start", "0.4"} <= set(browser.run(axis))
    assert all(item != other for item, other in zip(calls, shown.all_drawn(), strict=True))
    shown.drag(STRIP, 0.0, 1 / 3)
    first, last = shown.bounds()
    # The first half of the calls takes a third of the time.
    assert [first, last] == pytest.approx([0, len(made.trace) / 2], rel=0.02)
    seconds = re.search(r", ([\d.]+) to ([\d.]+) s\.", shown.range())
    assert seconds and [float(item) for item in seconds.groups()] == pytest.approx(made.trace.ts_us[[0, last]] / 1e6)
    assert shown.address() == f"#&across-busy=time&view-busy=0-{last}"
    drawn = shown.all_drawn()
    again = Shown(browser, made.page, shown.address())
    assert again.all_drawn() == drawn


def test_a_trace_without_times_offers_none(browser: Chromium, made: Made, tmp_path: Path) -> None:
    plain = Trace.from_columns(op=made.trace.op, id=made.trace.id, size=made.trace.size, name="plain")
    plain.write(tmp_path / "plain.parquet")
    write_report(tmp_path / "plain.parquet", tmp_path / "plain.html")
    shown = Shown(browser, tmp_path / "plain.html", "#&across-plain=time&view-plain=9-3")
    assert browser.run("document.querySelector('.zoom .by').hidden")
    assert shown.range() == f"All {len(plain):,} calls."


def test_a_plot_tells_the_bytes_of_a_replay(browser: Chromium, made: Made) -> None:
    (result,) = (heap for heap in made.data["heaps"] if heap["animation"] == f"animation-{FIRST}")
    samples = timeline(made.trace, resolve_recipe(HEAPS[0]), points=len(result["samples"]["call"]))
    at = len(samples["event"]) // 2
    shown = Shown(browser, made.page)
    remaining, top, width, height = shown.box(MAP)
    share = (int(samples["event"][at]) + 0.5) / (len(made.trace) - 1)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=remaining + share * width, y=top - 200)
    remaining, top, width, height = shown.box(f"#timeline-{FIRST} .frame")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=remaining + width / 2, y=top + height / 2)
    output = re.fullmatch(
        r"After call ([\d,]+): footprint ([\d,]+), allocated ([\d,]+), requested ([\d,]+) bytes\.",
        shown.text(f"#timeline-{FIRST} .readout"),
    )
    assert output
    call, *numbers = (int(item.replace(",", "")) for item in output.groups())
    assert call == pytest.approx(len(made.trace) / 2, rel=0.1)
    (frame,) = frames(made.trace, resolve_recipe(HEAPS[0]), 1 << 20, [call])
    lives = frame.blocks[frame.blocks["birth"] >= 0]
    assert numbers[1:] == [lives["size"].sum(), lives["requested"].sum()]
    assert numbers[0] == frame.extent.low


def test_a_click_on_the_map_tells_block_lifetime_and_neighbours(browser: Chromium, made: Made) -> None:
    animation = made.data["animations"][f"animation-{FIRST}"]
    shown = Shown(browser, made.page)
    remaining, top, width, height = shown.box(MAP)
    call = made.kept[80]
    (frame,) = frames(made.trace, resolve_recipe(HEAPS[0]), animation["arena"], [call])
    (heap,) = (heap for heap in made.data["heaps"] if heap["animation"] == f"animation-{FIRST}")
    lives = frame.blocks[frame.blocks["birth"] >= 0]
    block = lives[lives["size"].argmax()]
    middle = int(block["offset"]) + int(block["size"]) / 2
    browser.click(remaining + call / (len(made.trace) - 1) * width, top + (1 - middle / heap["extent"]) * height)
    assert int(browser.run(f"document.getElementById('animation-{FIRST}').dataset.call")) == call
    output = shown.text(f"#heap-map-{FIRST} .readout")
    assert output.startswith(f"Object {made.trace.id[block['birth']]}: {block['requested']:,} bytes in a block of ")
    assert "Right " in output and output == shown.text(f"#animation-{FIRST} .reading")
    assert shown.address() == f"#&call-busy={call}"
    remaining, top, *_ = shown.box(f"#heap-map-{FIRST} .readout")
    browser.click(remaining + 20, top + 5)
    assert shown.address() == f"#&call-busy={call}", "words can be copied"


def test_between_two_moments_an_animation_shows_what_lived_then_and_nothing_else(browser: Chromium, made: Made) -> None:
    animation = made.data["animations"][f"animation-{FIRST}"]
    kept = made.kept
    first, last = kept[60] + 1, kept[61] - 1
    call = (first + last) // 2
    shown = Shown(browser, made.page, f"#&view-busy={first}-{last}&call-busy={call}")
    assert shown.text(f"#animation-{FIRST} .moment").startswith(
        f"After call {call:,}: what lived after call {kept[60]:,}, or will after call {kept[61]:,}."
    )
    output = browser.run(
        f"""((animation) => {{
          const [slider, readout] = [animation.querySelector('.block'), animation.querySelector('.reading')];
          return Array.from({{ length: Number(slider.max) + 1 }}, (_, at) => {{
            slider.value = at;
            slider.dispatchEvent(new Event('input'));
            return readout.textContent;
          }});
        }})(document.getElementById('animation-{FIRST}'))"""
    )
    objects = (
        re.match(r"Object \d+: ([\d,]+) bytes in a block of ([\d,]+) at address ([\d,]+);", item) for item in output
    )
    drawn = {tuple(int(part.replace(",", "")) for part in object_.groups()) for object_ in objects if object_}
    (frame,) = frames(made.trace, resolve_recipe(HEAPS[0]), animation["arena"], [call])
    lives = frame.blocks[frame.blocks["birth"] >= 0]
    there = {(int(live["requested"]), int(live["size"]), int(live["offset"])): live for live in lives}
    assert drawn <= set(there)
    for key in set(there) - drawn:
        assert there[key]["birth"] > kept[60] and 0 <= there[key]["death"] <= kept[61]
    assert len(drawn) > 40


COLUMNS = """
((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return [canvas.width, canvas.height, [...data]];
})(document.querySelector('%s'))
"""


@pytest.mark.parametrize("part", [None, (100, 700), (3000, 3050)])
@pytest.mark.parametrize("heap", HEAPS)
def test_a_map_has_the_colours_of_what_lies_there(
    browser: Chromium, made: Made, heap: str, part: tuple[int, int] | None
) -> None:
    first, last = part or (0, len(made.trace) - 1)
    shown = Shown(browser, made.page, "" if part is None else f"#&view-busy={first}-{last}")
    assert shown.bounds() == (first, last)
    (output,) = (item for item in made.data["heaps"] if item["animation"] == f"animation-busy-{heap}")
    recipe, arena = resolve_recipe(heap), made.data["animations"][f"animation-busy-{heap}"]["arena"]
    most = max(int(np.cumsum(item["samples"]["footprint"])[last_up_to(item, last)]) for item in made.data["heaps"])
    width, height, data = browser.run(COLUMNS % f"#heap-map-busy-{heap} .frame canvas")
    pixels = np.array(data, np.uint8).reshape(height, width, 4)
    events = np.cumsum(output["looks"]["event"])
    columns = np.linspace(3, width - 3, 12).astype(int)
    wanted = first + (columns + 0.5) / width * (last - first)
    calls = events[np.searchsorted(events, np.floor(wanted + 0.5), side="right") - 1]
    colours = {state: ImageColor.getrgb(raster.COLOURS[name]) for state, name in enumerate(HEAP_MAP_STATES)}
    checked = {lib.HW_RUN_USED: 0, lib.HW_RUN_FREE: 0}
    for column, frame in zip(columns, frames(made.trace, recipe, arena, calls.tolist()), strict=True):
        for block in frame.blocks:
            state, middle = int(block["state"]), block["offset"] + block["size"] / 2
            row = int(height * (1 - middle / most))
            # What fills its cell by far, header and all.
            if state in checked and block["size"] > 3 * most / height and 0 <= row < height:
                assert pixels[row, column, :3].tolist() == pytest.approx(colours[state], abs=12)
                checked[state] += 1
    assert min(checked.values()) > 12


def last_up_to(heap: dict[str, Any], call: int) -> int:
    """The place of the last sample that is not after a call."""
    return int(np.searchsorted(np.cumsum(heap["samples"]["call"]), call, side="right")) - 1


@pytest.mark.parametrize("width", [360, 1200])
def test_no_label_of_a_chart_is_cut(browser: Chromium, made: Made, width: int) -> None:
    shown = Shown(browser, made.page, width=width)
    assert browser.run(CUT_LABELS) == []
    shown.drag(STRIP, 0.3, 0.5)
    assert shown.bounds()[0] > 0 and browser.run(CUT_LABELS) == []
    browser.run("document.querySelector('.chart text').style.fontSize = '200px'")
    assert browser.run(CUT_LABELS) != []


# --- a long trace -----------------------------------------------------------------------------------------------------

EVERY = ("kmem_loopback_all", "rec_zopfli", "rec_xmllint", "android_systemui")
PARTS, CALLS = brief((EVERY[:2], 1_053_909), (EVERY[:], 2_452_154))
KEYS = ("+", "ArrowLeft", "ArrowRight", "ArrowRight", "+", "-", "+", "-", "-", "-", "+", "0")


def milliseconds(browser: Chromium) -> float:
    """CPU time of the page's own thread so far."""
    metrics = browser.call("Performance.getMetrics")["metrics"]
    (seconds,) = (metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    return 1000 * float(seconds)


def cost_of(browser: Chromium, key: str) -> float:
    """CPU time until a key has turned the view, laid out again."""
    before = milliseconds(browser)
    browser.run(
        f"""((place) => {{
          place.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }}));
          return place.getBoundingClientRect().height;
        }})(document.querySelector('[id^=timeline]'))"""
    )
    return milliseconds(browser) - before


def cost_of_counting(browser: Chromium) -> float:
    """CPU time of a million steps of arithmetic, just now: machines are twice as fast at one time as at another."""
    before = milliseconds(browser)
    browser.run("(() => { let sum = 0; for (let i = 1; i <= 1e6; i++) sum += Math.sin(i) / i; return sum; })()")
    return milliseconds(browser) - before


def test_the_first_fiftieth_of_a_long_trace_fills_the_plots_after_one_drag(
    browser: Chromium, shared_data: Path, tmp_path: Path
) -> None:
    parts = [Trace.read(shared_data / "heap" / f"{name}.parquet") for name in PARTS]
    first = np.cumsum([0, *(int(part.id.max()) + 1 for part in parts[:-1])])
    ids = [part.id.astype(np.int64) + at for part, at in zip(parts, first, strict=True)]
    op, size = np.concatenate([part.op for part in parts]), np.concatenate([part.size for part in parts])
    trace = Trace.from_columns(op=op, id=np.concatenate(ids), size=size, name="long")
    assert len(trace) == CALLS
    trace.write(tmp_path / "long.parquet")
    page = tmp_path / "long.html"
    write_report(tmp_path / "long.parquet", page)
    assert page.stat().st_size <= 1_600_000
    shown = Shown(browser, page, width=1200)
    shown.drag("#animation-long-victim-bins .strip", 0, 0.02)
    assert list(shown.bounds()) == pytest.approx([0, 0.02 * len(trace)], rel=0.05)
    path = browser.run("document.querySelector('.series.requested').getAttribute('d')")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path)]
    assert len(set(heights)) > 100, "each of the pixels across shows bytes of its own"
    columns = browser.run(
        """((canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return new Set(Array.from({ length: canvas.width }, (_, x) =>
            Array.from({ length: canvas.height }, (_, y) => data[4 * (y * canvas.width + x)]).join())).size;
        })(document.querySelector('[id^=heap-map] canvas'))"""
    )
    assert columns > 80
    browser.call("Performance.enable", timeDomain="threadTicks")
    ratio = np.median([cost_of(browser, key) / cost_of_counting(browser) for key in KEYS])
    assert 0.1 < ratio <= 2.5, "some 1.8: 25 ms on a quiet machine"
