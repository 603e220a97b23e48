"""A report for everyone: keys, screen readers, dark and narrow screens, no scripts; measured heaps in it."""

from __future__ import annotations

import re
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from axe import axe_source, faults
from chromium import CUT_LABELS, Chromium
from run_length import LONG
from sample_report import READY, Made, opened, reported

from heapwright._report import glossary, write_report
from heapwright._report.figure import Figure, inline
from heapwright._report.target_content import target_sections
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Measured
from heapwright_papers.page import Page, html_of, table_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return reported(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("report"))


# --- for everyone -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.fixture(scope="module")
def pages(made: Made, measured: Made) -> list[Path]:
    """A page of a measured study, of a trace, and of a paper."""
    trace = made.folder / "for-everyone.html"
    write_report(made.folder / "traffic.parquet", trace)
    paper = Page("drr", "A paper", "Its authors")
    paper.text("Some words, `code`, and\n\n    a listing " + "that is far too long " * 20)
    paper.text(table_of([f"a column with words {at}" for at in range(12)], [["value"] * 12]))
    figure = Figure(
        "falls", "It falls", "By two.", inline([{"x": 1, "y": 2}]).mark_point().encode(x="x:Q", y="y:Q"), 900
    )
    paper.figure(figure)
    drawn = figure.files()["falls.png"]
    assert isinstance(drawn, bytes)
    (made.folder / "falls.png").write_bytes(drawn)
    page = made.folder / "paper.html"
    page.write_text(html_of("A paper", "\n\n".join(["# A paper", *paper._parts])), encoding="utf-8")
    return [measured.page, trace, page]


SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(
    browser: Chromium, axe: str, pages: list[Path], dark: bool
) -> None:
    """Long runs open each page at each width, for all rules; in the usual one it becomes narrower."""
    for page, width in product(pages, (1440, 1024, 390)):
        browser.look(width=width, dark=dark)
        if LONG or width == 1440:
            browser.open(page, "", f"{READY} || !document.getElementById('data')")
            browser.run(axe)
        else:
            browser.run(SETTLED)
        every = LONG or width == 1440 or (width == 390 and not dark)
        assert faults(browser, () if every else ["scrollable-region-focusable"]) == [], (page.name, width)
        sizes = browser.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert sizes[0] <= sizes[1], (page.name, width)
        ground = browser.run("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 25, 30)" if dark else "rgb(255, 255, 255)")


TIP = "document.getElementById('tip')"


def test_terms_tell_their_meaning_to_keys_and_pointers(browser: Chromium, axe: str, made: Made) -> None:
    browser.call("Emulation.setFocusEmulationEnabled", enabled=True)  # else another window may have the keys
    opened(browser, made.page, width=390)
    told = dict(browser.run("[...document.querySelectorAll('abbr')].map((one) => [one.textContent, one.title])"))
    known = glossary.terms()
    assert known["reserve"] == told["reserve"] and "worst-case malloc" in told
    spoken = {word: meaning for word, meaning in told.items() if word.lower().removesuffix("s") in known}
    assert len(spoken) > 5 and {known[word.lower().removesuffix("s")] for word in spoken} == set(spoken.values())
    heads = "[...document.querySelectorAll('#front thead button, #zoo thead button')].map((one) => one.title)"
    assert all(browser.run(heads))
    browser.run("document.querySelector('#others abbr').focus({ focusVisible: true })")
    assert browser.run(f"[{TIP}.hidden, {TIP}.textContent, document.activeElement.title]") == [
        False,
        told["reserve"],
        "",
    ]
    assert browser.run("document.activeElement.getAttribute('aria-describedby')") == "tip"
    browser.run(axe)
    assert faults(browser) == []
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    browser.press("Escape")
    assert browser.run(f"[{TIP}.hidden, document.activeElement.title]") == [True, told["reserve"]]
    box = "document.querySelector('#others tbody tr:last-child abbr').getBoundingClientRect()"
    browser.click(*browser.run(f"(({{left, top}}) => [left + 5, top + 5])({box})"))
    assert browser.run(f"{TIP}.textContent") == told["growth, long run"]


@pytest.mark.parametrize("width", [360, 1200])
def test_no_label_of_a_chart_is_cut(browser: Chromium, pages: list[Path], width: int) -> None:
    for page in pages[:2]:
        assert opened(browser, page, width=width).run(CUT_LABELS) == [], page.name


def test_axe_would_find_what_is_wrong(browser: Chromium, axe: str, pages: list[Path]) -> None:
    opened(browser, pages[1])
    browser.run("document.querySelector('.chart').removeAttribute('aria-label')")
    browser.run("document.querySelector('h1').style.color = '#ccc'")
    browser.run(axe)
    assert {item.partition(":")[0] for item in faults(browser)} == {"role-img-alt", "color-contrast"}


def test_every_plot_stands_without_javascript(browser: Chromium, made: Made) -> None:
    browser.look(scripts=False)
    browser.open(made.page)
    drawn = (
        "[...document.querySelectorAll('.chart svg')].filter((one) => one.getBoundingClientRect().height > 100).length"
    )
    assert browser.run(drawn) == 8
    assert browser.run("document.querySelector('#axes').getBoundingClientRect().height") == 0
    browser.look()


def test_every_plot_tells_its_numbers(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    with Analysis.open(made.study) as study:
        pick, tlsf = study.pick("balanced"), study.candidate("tlsf")
        most = max(need.bytes or 0 for need in study.needs(tlsf.id))
    told = browser.run(
        "Object.fromEntries([...document.querySelectorAll('.chart')]"
        ".map((one) => [one.id, one.getAttribute('aria-label')]))"
    )
    assert f"tlsf {most:,}" in told["arena"]
    assert "40 B" in told["sizes-traffic"] and "%" in told["histogram-traffic"]
    assert f"{pick.metrics['footprint_bytes']:,}" in told["timeline-traffic-balanced-pick"]
    assert "payload in use" in told["heap-map-traffic-balanced-pick"]
    plot = browser.run("document.querySelector('#trade-off svg').getAttribute('aria-label')")
    assert f"The pick: {pick.label} {pick.metrics['long_run_bytes']:,} B" in plot


# --- what was measured on a target ---------------------------------------------------------------------------------


def told(heap: str, malloc: list[list[int]], recipe: bool = True) -> dict[str, Any]:
    """What `heapwright measure` reports of a heap whose mallocs took these instructions, its frees one of 20."""
    calls = {}
    for kind, histogram in (("malloc", malloc), ("free", [[20, 1]])):
        count = sum(calls for _, calls in histogram)
        mean = sum(instructions * calls for instructions, calls in histogram) / count
        calls[kind] = {
            "count": count,
            "instructions_mean": mean,
            "instructions_p999": histogram[-1][0],
            "instructions_max": histogram[-1][0],
            "instructions_histogram": histogram,
        }
    prediction = {"metadata_bytes": 1000, "metadata_equal": True, "ratio": 1.25} if recipe else None
    return {
        "heap": heap,
        "backend": "unicorn 2.1.3",
        "note": None,
        "code_bytes": {"total": 777},
        "footprint_bytes": 54321,
        "calls": calls,
        "prediction": prediction,
    }


@pytest.fixture(scope="module")
def measured(made: Made) -> Made:
    """The study again, with three heaps measured: the balanced pick, one of the zoo, a C library."""
    path, page = made.folder / "measured.duckdb", made.folder / "measured.html"
    shutil.copy(made.study, path)
    with Analysis.open(path, write=True) as study:
        pick, tlsf = study.pick("balanced"), study.candidate("tlsf")
        rows = [
            (pick.id, told(pick.label, [[20, 900], [40, 99], [150, 1]])),
            (tlsf.id, told("tlsf", [[90, 500], [130, 499], [1862, 1]])),
            ("lib:newlib-nano", told("lib:newlib-nano", [[48, 990], [960, 10]], recipe=False)),
        ]
        results = []
        for id, detail in rows:
            pair = {"instructions_pair_mean": detail["calls"]["malloc"]["instructions_mean"] + 20}
            results.append(Measured(id, "traffic", pair, detail))
        study.add_measured("cortex-m3, gcc 12 -Os", results)
    return Made(made.folder, path, page, write_report(path, page))


def test_measured_heaps_stand_side_by_side(measured: Made) -> None:
    text = measured.page.read_text(encoding="utf-8")
    part = text[text.index("On the target: traffic") :]
    part = part[: part.index("</section>")]
    assert "cortex-m3, gcc 12 -Os, counted by unicorn 2.1.3" in part
    rows = re.findall(r'<tr class="(\w+)" data-id="([^"]+)">(.*?)</tr>', part, re.DOTALL)
    cells = {id: re.findall(r"<td>([^<]*)</td>", row) for _, id, row in rows}
    with Analysis.open(measured.study) as study:
        pick, tlsf = study.pick("balanced").id, study.candidate("tlsf").id
    assert list(cells) == [pick, "lib:newlib-nano", tlsf]
    assert cells[pick] == ["22.1", "150", "150", "20.0", "20", "20", "777", "54,321", "1.25"]
    assert cells["lib:newlib-nano"][2] == "960" and cells["lib:newlib-nano"][-1] == "\u2013"
    assert 'href="#lib:newlib-nano"' not in part
    assert "(2,000 bytes over all heaps) equals the host&#39;s byte for byte" in part


def test_measured_calls_are_drawn_malloc_and_free_apart(browser: Chromium, measured: Made) -> None:
    with Analysis.open(measured.study) as study:
        (section,) = target_sections(study, study.front(), study.pick("balanced").id)
    malloc, free = section.figures
    drawn = malloc.whole_spec()
    rows, ends = (drawn["datasets"][layer["data"]["name"]] for layer in drawn["layer"])
    nano = [(row["from"], row["to"], row["calls"]) for row in rows if row["heap"] == "lib:newlib-nano"]
    assert [calls for *_, calls in nano] == [990, 10]
    assert all(low <= value <= high for (low, high, _), value in zip(nano, (48, 960), strict=True))
    assert {row["worst"] for row in ends} == {150, 960, 1862}
    assert "tlsf 1,862" in malloc.described
    opened(browser, measured.page, "#tlsf")
    assert browser.console == []
    result = {malloc.name, free.name, "trade-off-target"}
    assert result <= set(browser.run("[...document.querySelectorAll('.chart')].map((one) => one.id)"))
    assert "instructions_pair_mean" in browser.run(
        "[...document.getElementById('axis-x').options].map((one) => one.value)"
    )
