"""The pages build as a site: every link leads somewhere, no one is kept out, a search finds the page that guides."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from axe import axe_source, faults
from c_programs import kept_once
from chromium import Chromium, chromium
from run_length import some
from tool_requirements import absent

from heapwright._report import glossary

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once in a run, without a warning."""
    if not find_spec("mkdocs") or not find_spec("material"):
        absent("mkdocs", "it builds the pages (pip install 'heapwright[docs]')")
    with kept_once(tmp_path_factory.mktemp("site"), "the site") as kept:
        if not kept.is_dir():
            command = ["make", "-o", ".venv/.docs", "docs", f"BIN={Path(sys.executable).parent}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            shutil.copytree(ROOT / "build/site", kept)
    return kept


@pytest.fixture(scope="module")
def served(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, at its place on the public host, as the page for missing ones wants it.

    What searches it, and its index, are empty: a browser would start and make them again for every page.
    """
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    folder = tmp_path_factory.mktemp("served")
    (empty := folder / "index.json").write_text(json.dumps({**index, "docs": []}), encoding="utf-8")
    (idle := folder / "idle.js").write_text("")

    class Serving(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            whole = super().translate_path(path.removeprefix("/heapwright"))
            return str(empty if whole.endswith("search_index.json") else idle if "/workers/" in whole else whole)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Serving, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/heapwright/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as result:
        result.call("Emulation.setFocusEmulationEnabled", enabled=True)
        yield result


# --- for everyone -----------------------------------------------------------------------------------------------------

WIDE, NARROW = 1280, 360
OWN_COLOURS = "article :is(svg, [color], [bgcolor], [style]:not([style^='text-align:']))"


@pytest.mark.slow
def test_axe_finds_nothing_serious_on_any_page_wide_and_narrow(browser: Chromium, site: Path, served: str) -> None:
    """Long runs test all; the usual one a sixth of the pages, and how wide half are, but for some that are the same.

    Colours are those of the style sheet, which some pages show, but for what a page draws or colours itself.
    """
    axe = axe_source()
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert len(pages) > 90
    papers = [name for name in pages if re.match(r"docs/papers/[\w-]+\.html", name)]  # all made by one program
    zoo = [name for name in pages if re.match(r"docs/zoo/.+/", name)]  # all of one shape
    left_out = {*papers, *zoo} - {*some(papers, 9), *some(zoo, 10)}
    asked, whole, coloured = some(pages, 6), some(pages, 42), some(pages, 12)
    results: dict[str, list[str]] = {}
    for name in (name for name in some(pages, 3) if name not in left_out):
        browser.look(width=WIDE, height=300)
        browser.open(served + name)
        if name in asked:
            browser.run(axe)
            every = name in coloured or browser.run(f"document.querySelector({OWN_COLOURS!r}) !== null")
            results[f"{name}, wide"] = faults(browser, without=() if every else ["color-contrast"])
        browser.look(width=NARROW, height=300)
        # The theme fades its navigation in and out: colours half way have no contrast.
        browser.run("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 400))")
        if name in asked:
            results[f"{name}, narrow"] = faults(browser, () if name in whole else ["scrollable-region-focusable"])
        assert browser.run("document.documentElement.scrollWidth") <= NARROW, name
    assert {name: item for name, item in results.items() if item} == {}


@pytest.mark.parametrize("page", ["index.html", "docs/choosing/index.html"])
def test_nor_in_the_dark(browser: Chromium, served: str, page: str) -> None:
    browser.look(width=WIDE, dark=True)
    browser.open(served + page)
    browser.run(axe_source())
    assert faults(browser) == []
    browser.run("document.querySelector('.md-content p a').style.textDecoration = 'none'")
    assert [item.partition(":")[0] for item in faults(browser)] == ["link-in-text-block"]


def test_a_term_tells_what_it_means_to_pointers_and_keys(browser: Chromium, site: Path, served: str) -> None:
    browser.look(width=WIDE)
    browser.open(f"{served}docs/metrics/")
    marked = browser.run("[...document.querySelectorAll('abbr')].map((one) => [one.textContent, one.title])")
    terms = glossary.terms()
    of = {next(term for term in (text.lower(), text.lower()[:-1]) if term in terms): output for text, output in marked}
    assert len(of) == len(marked) > 9, "each once"
    assert of.items() <= terms.items()
    assert browser.run("document.querySelectorAll(':is(h1, h2, h3, a, code, pre) abbr').length") == 0
    browser.run("document.querySelector('abbr').focus()")
    browser.wait("document.querySelector('[role=tooltip]') !== null")
    assert browser.run("document.querySelector('[role=tooltip]').textContent.trim()") == marked[0][1]
    assert "<abbr" not in (site / "docs/glossary/index.html").read_text(encoding="utf-8")


# --- the search -------------------------------------------------------------------------------------------------------

GUIDES = {
    "ESP32": "docs/platforms/",
    "FreeRTOS": "docs/platforms/",
    "MISRA": "docs/generated-code/",
    "TLSF": "docs/zoo/tlsf/",
    "Zephyr": "docs/platforms/",
    "embedded malloc benchmark": "docs/benchmark/",
    "fragmentation": "docs/metrics/",
    "how much RAM": "docs/choosing/",
    "jitter": "docs/metrics/",
    "leak": "docs/long-run/",
    "out of memory": "docs/diagnose/",
    "realloc": "docs/recipes/",
    "record": "docs/recording/",
    "thread": "docs/generated-code/",
}
"""What users type, and the page that guides them."""

ASK = """
new Promise((done) => {
  searching.onmessage = (answer) => done(answer.data);
  searching.postMessage(QUESTION);
})
"""


@pytest.fixture
def searching(browser: Chromium, site: Path) -> Chromium:
    """The browser with the worker that searches the site, and its index; again if another page was opened since."""
    if browser.run("typeof searching") == "object":
        return browser
    (worker,) = (site / "assets/javascripts/workers").glob("search.*.min.js")
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    browser.open(site / "docs/index.html")
    source = json.dumps(worker.read_text(encoding="utf-8"))
    browser.run(f"globalThis.searching = new Worker(URL.createObjectURL(new Blob([{source}]))); 0")
    assert asked(browser, 0, {**index, "options": {"suggest": False}})["type"] == 1
    return browser


def asked(browser: Chromium, kind: int, data: Any) -> dict[str, Any]:
    answer: dict[str, Any] = browser.run(ASK.replace("QUESTION", json.dumps({"type": kind, "data": data})))
    return answer


@pytest.mark.parametrize("words", GUIDES)
def test_a_search_finds_the_page_that_guides_first(searching: Chromium, words: str) -> None:
    result = asked(searching, 2, words)["data"]["items"]
    assert result[0][0]["location"].partition("#")[0] == GUIDES[words]


# --- the sources ------------------------------------------------------------------------------------------------------


def test_every_page_is_listed() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)\)", listed))


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (DOCS / "images").rglob("*") if path.is_file()}
    assert {name: size for name, size in sizes.items() if size > 300_000} == {}
