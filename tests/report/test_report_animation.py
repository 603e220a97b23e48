"""The heap as an animation: the page in a real browser, and its words and data against replays."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import Chromium
from metric_values import known
from PIL import Image, ImageColor

from heapwright._heaps.names import resolve_recipe
from heapwright._recipes.recipe import Recipe
from heapwright._replay.peak_blockers import Relocation
from heapwright._replay.replay import replay
from heapwright._replay.snapshots import frames, holes, regions
from heapwright._report import animation as content
from heapwright._report import write_report
from heapwright._report.page import TEMPLATE
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

READY = "document.documentElement.dataset.ready === 'true'"
SITES = ("parse", "queue_add", "session_new")
POOLS = """
align = 8
[[pool]]
kind = "quick"
sizes = [40]
[[pool]]
kind = "fixed"
sizes = [16, 64]
counts = [40, 30]
max_size = 64
[[pool]]
kind = "general"
region = 4096
max_size = 128
[[pool]]
kind = "general"
"""


def busy_trace(calls: int = 1200, name: str = "busy") -> Trace:
    """Objects of all ages and of three sites; a session that holds on between two holes when most is alive."""
    draw = np.random.default_rng(5)
    live: list[int] = []
    rows: list[tuple[int, int, int, int]] = []
    for number in range(calls // 2):
        size = int(draw.choice([16, 40, 100, int(draw.integers(8, 900))]))
        rows.append((MALLOC, number, size, int(draw.integers(3))))
        live.append(number)
        while live and draw.random() < (0.2 if len(live) < 60 else 0.55):
            rows.append((FREE, live.pop(int(draw.integers(len(live)))), 0, 0))
    first = calls
    ends = [(MALLOC, first, 6000, 0), (MALLOC, first + 1, 500, 2), (MALLOC, first + 2, 6000, 0)]
    ends += [(FREE, first, 0, 0), (FREE, first + 2, 0, 0), (MALLOC, first + 3, 15000, 1)]
    middle = len(rows) // 2
    op, ids, sizes, site = zip(*rows[:middle], *ends, *rows[middle:], strict=True)
    return Trace.from_columns(op=op, id=ids, size=sizes, site=site, sites=SITES, name=name)


@dataclass(frozen=True)
class Made:
    """A trace's page with the animations of two heaps, the first with pools of their own regions."""

    trace: Trace
    recipe: Recipe
    page: Path
    animations: dict[str, dict[str, Any]]

    @property
    def name(self) -> str:
        return next(iter(self.animations))

    @property
    def animation(self) -> dict[str, Any]:
        return self.animations[self.name]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("animation")
    heap = folder / "pools.toml"
    heap.write_text(POOLS, encoding="utf-8")
    trace = busy_trace()
    trace.write(folder / "busy.parquet")
    page = folder / "report.html"
    write_report(folder / "busy.parquet", page, heaps=[str(heap), "victim-bins"])
    (text,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text(encoding="utf-8"))
    animations = json.loads(gzip.decompress(base64.b64decode(text)))["animations"]
    return Made(trace, Recipe.load(heap), page, animations)


class Shown:
    """The first animation of the page, as it is shown."""

    def __init__(self, browser: Chromium, made: Made, **look: Any) -> None:
        self.browser, self.name = browser, made.name
        browser.look(**look)
        browser.open(made.page, "", READY)
        assert browser.console == []
        browser.run(f"{self.part('figcaption')}.scrollIntoView()")

    def part(self, selector: str) -> str:
        return f"document.querySelector('#{self.name} {selector}')"

    def text(self, selector: str) -> str:
        return str(self.browser.run(f"{self.part(selector)}.textContent"))

    def picture(self, selector: str = ".region:last-child canvas") -> str:
        return str(self.browser.run(f"{self.part(selector)}.toDataURL()"))

    def call(self) -> int:
        return int(self.browser.run(f"document.getElementById('{self.name}').dataset.call"))


# --- the page in a browser --------------------------------------------------------------------------------------------


def test_the_animation_begins_where_the_arena_is_fullest_and_scrubbing_changes_the_frame(
    browser: Chromium, made: Made
) -> None:
    shown, calls, peak = Shown(browser, made), made.animation["frames"]["call"], made.animation["peak"]
    assert shown.call() == calls[peak]
    assert f"fullest after call {calls[peak]:,}:" in shown.text(".cap")
    before = shown.picture(), shown.picture(".strip"), shown.text(".moment")
    browser.run(f"{shown.part('.time')}.focus()")
    browser.press("ArrowLeft")
    assert shown.call() == calls[peak - 1]
    after = shown.picture(), shown.picture(".strip"), shown.text(".moment")
    assert all(item != other for item, other in zip(before, after, strict=True))
    assert browser.run(f"{shown.part('.time')}.getAttribute('aria-valuetext')") == shown.text(".moment")
    browser.press("Home")
    assert shown.call() == 0
    assert shown.text(".moment").startswith("After call 0: ")
    assert " bytes live in 1 object, " in shown.text(".moment")
    browser.run(f"{shown.part('.fullest')}.click()")
    assert (shown.picture(), shown.picture(".strip"), shown.text(".moment")) == before


def test_a_click_on_the_strip_goes_to_that_moment(browser: Chromium, made: Made) -> None:
    shown = Shown(browser, made)
    x, y = browser.run(
        f"(({{left, top, width, height}}) => [left + width * 0.25, top + height / 2])"
        f"({shown.part('.strip')}.getBoundingClientRect())"
    )
    browser.click(x, y)
    calls = made.animation["frames"]["call"]
    assert shown.call() == calls[round(0.25 * (len(calls) - 1))]


def test_animations_of_a_trace_move_together_and_the_address_has_the_moment(browser: Chromium, made: Made) -> None:
    shown = Shown(browser, made)
    calls = made.animation["frames"]["call"]
    second = f"document.getElementById({[*made.animations][1]!r})"
    assert browser.run("location.hash") == ""
    browser.run(f"{shown.part('.time')}.focus()")
    browser.press("Home")
    for _ in range(3):
        browser.press("ArrowRight")
    others = [*made.animations.values()][1]["frames"]["call"]
    assert shown.call() == calls[3]
    assert int(browser.run(f"{second}.dataset.call")) == max(other for other in others if other <= calls[3])
    assert browser.run("location.hash") == f"#&call-busy={calls[3]}"
    browser.run("location.hash = '#'")
    browser.open(made.page, f"#&call-busy={calls[5] + 1}", READY)
    assert (browser.console, shown.call()) == ([], calls[5])


def test_it_plays_to_the_end_and_from_the_begin_again(browser: Chromium, made: Made) -> None:
    shown, last = Shown(browser, made), len(made.animation["frames"]["call"]) - 1
    play, moment = f"{shown.part('.play')}.click()", f"{shown.part('.time')}.value"
    browser.run(f"{shown.part('.time')}.value = {last - 1}; {shown.part('.time')}.dispatchEvent(new Event('input'))")
    browser.run(play)
    assert shown.text(".play") == "Pause"
    browser.wait(f"{shown.part('.play')}.textContent === 'Play'")
    assert int(browser.run(moment)) == last
    assert browser.run("location.hash") == f"#&call-busy={made.animation['frames']['call'][last]}"
    browser.run(play)
    assert int(browser.run(moment)) < last
    browser.run(play)
    assert shown.text(".play") == "Play"


@pytest.mark.parametrize(("width", "rows"), [(1440, 24), (390, 44)])
def test_the_pointer_tells_the_block_its_size_age_and_site(
    browser: Chromium, made: Made, width: int, rows: int
) -> None:
    shown, animation = Shown(browser, made, width=width), made.animation
    call = animation["frames"]["call"][animation["peak"]]
    (frame,) = frames(made.trace, made.recipe, animation["arena"], [call])
    lives = frame.blocks[frame.blocks["birth"] >= 0]
    across = -(-animation["arena"] // rows)
    for at, region in enumerate(animation["regions"]):
        inside = lives[(lives["offset"] >= region["start"]) & (lives["offset"] < region["end"])]
        block = inside[inside["size"].argmax()]
        row, byte = divmod(int(block["offset"]) - region["start"] + 3, across)
        canvas = f"document.querySelectorAll('#{made.name} .region canvas')[{at}]"
        browser.run(f"{canvas}.scrollIntoView({{block: 'center'}})")
        remaining, top, wide = browser.run(
            f"(({{left, top, width}}) => [left, top, width])({canvas}.getBoundingClientRect())"
        )
        browser.call(
            "Input.dispatchMouseEvent", type="mouseMoved", x=remaining + byte / across * wide, y=top + row * 15 + 7
        )
        birth, death = int(block["birth"]), int(block["death"])
        output = shown.text(".reading")
        assert output.startswith(
            f"Object {made.trace.id[birth]}: {block['requested']:,} bytes in a block of {block['size']:,} "
            f"at address {block['offset']:,}; "
        )
        assert ("never freed" if death < 0 else f"calls {birth:,} to {death:,}") in output
        assert f", age {call - birth:,} calls; site: {SITES[made.trace.site[birth]]}. Right " in output
        beside = [(item["offset"], item["size"], item["birth"]) for item in frame.blocks if item["birth"] >= 0]
        for offset, size, other in beside:
            if offset + size == block["offset"]:
                assert f"below it object {made.trace.id[other]} ({size:,} bytes)" in output
            if offset == block["offset"] + block["size"]:
                assert f"above it object {made.trace.id[other]} ({size:,} bytes)" in output


def test_every_pool_has_a_frame_of_its_own(browser: Chromium, made: Made) -> None:
    shown, within = Shown(browser, made), regions(made.recipe, made.animation["arena"])
    assert len(within) == 3
    kinds = ("fixed", "general", "general")
    assert browser.run(f"[...document.querySelectorAll('#{made.name} .region p')].map((one) => one.textContent)") == [
        f"Pool {number}: {kind}, addresses {region.start:,} to {region.end:,}"
        for number, kind, region in zip((2, 3, 4), kinds, within, strict=True)
    ]
    labels = browser.run(
        f"[...document.querySelectorAll('#{made.name} .region canvas')].map((one) => one.getAttribute('aria-label'))"
    )
    assert all(shown.text(".moment") in label for label in labels)
    assert len({shown.picture(f".region:nth-child({at})" + " canvas") for at in (1, 2, 3)}) == 3


def test_everything_is_reached_and_done_by_keyboard(browser: Chromium, made: Made) -> None:
    shown = Shown(browser, made)
    focused = "document.activeElement.className || document.activeElement.value"
    browser.run(f"{shown.part('.time')}.focus()")
    reached = []
    for _ in range(4):
        browser.press("Tab")
        reached.append(browser.run(focused))
    assert reached == ["play", "fullest", "life", "block"]
    browser.press("Home")
    first = shown.text(".reading")
    assert f"at address {made.animation['regions'][0]['start']:,}" in first
    seen = [first]
    for _ in range(4):
        browser.press("ArrowRight")
        seen.append(shown.text(".reading"))
        assert browser.run(f"{shown.part('.block')}.getAttribute('aria-valuetext')") == seen[-1]
    assert len(set(seen)) == 5
    browser.press("End")
    items = int(browser.run(f"document.getElementById('{made.name}').dataset.items"))
    assert int(browser.run(f"{shown.part('.block')}.value")) == items - 1
    browser.run(f"{shown.part('input[value=life]')}.focus()")
    by_life = shown.picture()
    browser.press("ArrowRight")
    assert browser.run(focused) == "site"
    assert shown.picture() != by_life


def test_the_key_names_lifetimes_or_sites(browser: Chromium, made: Made) -> None:
    shown = Shown(browser, made)
    assert {"Static: never freed", "Long-lived", "Short-lived"} & set(
        re.split(r"(?<=[a-z])(?=[A-Z])", shown.text(".key"))
    )
    assert not any(site in shown.text(".key") for site in SITES)
    browser.run(f"{shown.part('input[value=site]')}.click()")
    assert all(site in shown.text(".key") for site in SITES)


def test_without_scripts_a_still_shows_the_fullest_moment(browser: Chromium, made: Made) -> None:
    browser.look(scripts=False)
    try:
        browser.open(made.page)
        still = f"document.querySelector('#{made.name} svg')"
        words, high = browser.run(f"[{still}.getAttribute('aria-label'), {still}.getBoundingClientRect().height]")
        picture = browser.run(f"{still}.querySelector('image').href.baseVal")
    finally:
        browser.look()
    peak = made.animation["frames"]["call"][made.animation["peak"]]
    assert f"after call {peak:,}: {made.animation['arena']:,} bytes, " in words
    assert high > 200
    drawn = Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2]))).convert("RGB")
    colours = {colour for _, colour in drawn.getcolors() or []}
    assert {ImageColor.getrgb(content.STILL[kind]) for kind in (content.SHORT, content.FREE)} <= colours


def test_the_page_fits_a_phone(browser: Chromium, made: Made) -> None:
    Shown(browser, made, width=390)
    assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


# --- the words and the data -------------------------------------------------------------------------------------------


def said(trace: Trace, heap: str) -> tuple[str, Recipe]:
    recipe = resolve_recipe(heap)
    return content.animation(trace, recipe, heap, "animation", 0).cap, recipe


@pytest.mark.parametrize("heap", ["victim-bins", "freertos-heap4", "newlib-nano"])
def test_the_numbers_of_the_sentence_are_those_of_replays(heap: str) -> None:
    trace = busy_trace()
    sentence, recipe = said(trace, heap)
    number = r"([\d,]+)"
    result = re.search(rf"What caps it is object {number} \({number} bytes, (?:calls|from call) {number}", sentence)
    without = re.search(rf"without it the trace needs {number} bytes, {number} with its {number}", sentence)
    assert result and without
    name, size, birth = (int(item.replace(",", "")) for item in result.groups())
    least, whole, its = (int(item.replace(",", "")) for item in without.groups())
    assert (trace.id[birth], trace.op[birth], trace.size[birth]) == (name, MALLOC, size)
    needed = replay(trace, recipe)["footprint_bytes"]
    kept = trace.id != name
    rest = Trace.from_columns(op=trace.op[kept], id=trace.id[kept], size=trace.size[kept])
    assert least == replay(rest, recipe)["footprint_bytes"]
    assert its == -(-size // recipe.align) * recipe.align
    assert whole == least + its
    assert f": {needed:,} bytes," in sentence
    gain = (needed or 0) - whole
    if gain > 0:
        assert f"saves {gain:,} bytes ({gain / (needed or 1):.1%})" in sentence
    else:
        assert "saves nothing" in sentence


def test_a_small_gain_is_not_worth_it_and_a_refusal_says_nothing() -> None:
    result = Relocation(birth=0, death=None, bytes=8, requested=8, arena=9900, footprint=10_000)
    trace = busy_trace()
    recipe = resolve_recipe("victim-bins")
    (frame,) = frames(trace, recipe, int(known(replay(trace, recipe)["footprint_bytes"])), [5])
    output = holes(frame.blocks, frame.extent, regions(recipe, 10_000))

    def sentence(**changes: int) -> str:
        return content._sentence(trace, frame, output, replace(result, **changes), 10_000, 0)

    assert sentence().endswith("Not worth it.")
    assert "saves 92 bytes (0.9%)" in sentence()
    assert "saves 992 bytes (9.9%)" in sentence(arena=9000) and "worth" not in sentence(arena=9000)
    assert sentence(arena=9000, chance=1200, picked=8).endswith("one of 8 objects picked evenly it saves 1,200.")
    assert "saves nothing" in sentence(arena=9999)
    assert "3 requests failed" in content._sentence(trace, frame, output, None, 10_000, 3)


def blocks_of(animation: dict[str, Any], frame: int) -> set[tuple[int, ...]]:
    """(offset, size, requested, birth, death) of the objects of a frame, unpacked as animation.js does."""
    packed, calls = animation["blocks"], animation["frames"]["call"]
    first, offset = np.cumsum(packed["first"]), np.cumsum(packed["offset"])
    results: set[tuple[int, ...]] = set()
    for at in np.flatnonzero((first <= frame) & (frame < first + packed["frames"])).tolist():
        if packed["birth"][at] >= 0:
            birth = calls[first[at]] - packed["birth"][at]
            death = birth + packed["life"][at] if packed["life"][at] >= 0 else -1
            requested = packed["requested"][at]
            results.add((int(offset[at]), requested + packed["spare"][at], requested, int(birth), int(death)))
    return results


def test_the_data_holds_every_block_of_every_frame(made: Made) -> None:
    animation = made.animation
    assert animation["least"] == 0
    for at, frame in enumerate(frames(made.trace, made.recipe, animation["arena"], animation["frames"]["call"])):
        lives = frame.blocks[frame.blocks["birth"] >= 0]
        keys = ("offset", "size", "requested", "birth", "death")
        assert blocks_of(animation, at) == {tuple(int(block[key]) for key in keys) for block in lives}
        free = holes(frame.blocks, frame.extent, regions(made.recipe, animation["arena"]))
        assert animation["frames"]["free"][at] == free["size"].sum()
        assert animation["frames"]["largest"][at] == free["size"].max(initial=0)


def test_an_animation_of_too_many_blocks_says_what_it_leaves_out(made: Made) -> None:
    heap = resolve_recipe("victim-bins")
    animation = content.animation(
        busy_trace(), heap, "victim-bins", "animation", 0, animations=content.MOST_BLOCKS // 100
    )
    least = animation.data["least"]
    assert len(animation.data["blocks"]["first"]) <= 100 < len(made.animation["blocks"]["first"])
    assert f"Blocks below {least:,} bytes are too many to be drawn one by one" in animation.note
    assert min(size for _, size, *_ in blocks_of(animation.data, animation.data["peak"])) >= least
    cells = animation.data["cells"]
    ninths = np.array([[[int(digit) for digit in frame] for frame in cells[kind]] for kind in cells])
    assert ninths.shape[1:] == (len(animation.data["frames"]["call"]), content.LEAST_CELLS)
    used = ninths[:, animation.data["peak"]].sum() / 9 / content.LEAST_CELLS
    free = animation.data["frames"]["free"][animation.data["peak"]] / animation.data["arena"]
    assert used == pytest.approx(1 - free, abs=0.02)


def test_an_animation_of_an_example_is_small() -> None:
    trace = Trace.read(Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet")
    animation = content.animation(trace, resolve_recipe("victim-bins"), "victim-bins", "animation", 0)
    assert animation.data["least"] == 0
    assert len(base64.b64encode(gzip.compress(json.dumps(animation.data).encode()))) < 50_000
    assert len(animation.still) < 10_000


def lightness(colour: str) -> float:
    """CIE L* of a colour: how light it is in grey print."""
    parts = (part / 255 for part in ImageColor.getrgb(colour))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return float(116 * np.cbrt(light) - 16)


def test_colours_of_an_animation_differ_in_lightness_light_dark_and_printed() -> None:
    style = (TEMPLATE / "animation.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--animation-([\w-]+): (#\w+)", part)) for part in style.split("prefers-color-scheme")
    )
    assert {content.KINDS[kind]: ImageColor.getrgb(colour) for kind, colour in content.STILL.items()} == {
        kind: ImageColor.getrgb(light[kind]) for kind in content.KINDS
    }
    for palette in (light, dark):
        steps = np.diff(sorted(lightness(palette[kind]) for kind in content.KINDS))
        assert steps.min() > 5, {kind: lightness(palette[kind]) for kind in content.KINDS}
