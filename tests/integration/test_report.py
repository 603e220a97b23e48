"""Reports: the page in a real browser, the files beside it, and every input that is none."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from axe import axe_source, faults
from chromium import CUT_LABELS, Chromium, chromium
from effort import LONG, some
from exploring import explore
from in_process import run_here
from made_studies import identity
from made_studies import metrics as plain_metrics
from PIL import Image, ImageChops, ImageColor

from heapwright.decide import pareto
from heapwright.decide.budgets import budgets
from heapwright.decide.candidate import Candidate
from heapwright.decide.decision import decide
from heapwright.decide.side_by_side import side_by_side
from heapwright.decide.study import Study, reserve_for
from heapwright.explore.space import Space
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue as zoo
from heapwright.replay.metrics import METRICS
from heapwright.replay.pictures import HEAP_MAP_STATES
from heapwright.replay.replay import replay
from heapwright.report import glossary, held_plots, plots, raster, write_report
from heapwright.report.answer import served_by_arena
from heapwright.report.figure import Figure, inline, ticks
from heapwright.report.labels import CHARACTER, LINE_HEIGHT, Marker, box_of, place
from heapwright.report.target_content import target_sections
from heapwright.report.trade_off import front, trade_off
from heapwright.studies.records import Measured, Result
from heapwright.traces.profile import profile
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC
from heapwright_papers.page import Page, html_of, table_of


def small_trace(name: str = "traffic", seed: int = 1, calls: int = 3000) -> Trace:
    """Packets of two frequent sizes and some others, queued and freed in no strict order."""
    generator = np.random.default_rng(seed)
    live: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for identifier in range(calls // 2):
        size = int(generator.choice([40, 1500, int(generator.integers(8, 1500))], p=[0.45, 0.3, 0.25]))
        rows.append((MALLOC, identifier, size))
        live.append(identifier)
        while live and generator.random() < (0.3 if len(live) < 40 else 0.55):
            rows.append((FREE, live.pop(int(generator.integers(len(live)))), 0))
    op, ids, sizes = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=ids, size=sizes, name=name)


def small_recipes() -> list[Recipe]:
    """A few hundred recipes of one quick and one general pool."""
    found = []
    for sizes in ([], [40], [40, 1500]):
        for order in ("lifo", "address"):
            for fit in ("first", "best", "worst"):
                for split in ("always", "never", 64):
                    for coalesce in ("immediate", "never", "deferred"):
                        general = {"kind": "general", "order": order, "fit": fit, "split": split}
                        pools = [{"kind": "quick", "sizes": sizes}] if sizes else []
                        found.append(Recipe.from_dict({"pool": [*pools, {**general, "coalesce": coalesce}]}))
    return found


def small_space() -> Space:
    return Space([small_recipes()])


@dataclass(frozen=True)
class Made:
    """A study with its report."""

    folder: Path
    study: Path
    page: Path
    written: list[Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "traffic.parquet"
    small_trace().write(path)
    study, page = folder / "s.duckdb", folder / "report.html"
    held_out = small_trace("later", seed=2)
    explore([Trace.read(path)], small_space(), study_path=study, jobs=2, held_out=[held_out])
    return Made(folder, study, page, write_report(study, page, plots=folder / "plots"))


def packed(page: Path) -> dict[str, Any]:
    """The data that a page carries."""
    (text,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text(encoding="utf-8"))
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return found


# --- the page in a browser --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


READY = "document.documentElement.dataset.ready === 'true'"


def opened(browser: Chromium, page: Path, fragment: str = "", **look: Any) -> Chromium:
    """The browser after all scripts of the page, which forbids itself to load anything: attempts are on the console."""
    browser.look(**look)
    browser.open(page, fragment, READY)
    return browser


def text(browser: Chromium, identifier: str) -> str:
    found: str = browser.run(f"document.getElementById('{identifier}').textContent")
    return found


def selected(browser: Chromium) -> str:
    found: str = browser.run("document.documentElement.dataset.selected")
    return found


def with_script(made: Made, name: str, addition: str, allowed: bool = True) -> Path:
    """A copy of the page with something more at its end, which its policy lets run if it is `allowed`."""
    before, end, after = made.page.read_text(encoding="utf-8").rpartition("</body>")
    if allowed:
        scripts = re.findall(r"<script>(.*?)</script>", addition, re.DOTALL)
        digests = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
        before = before.replace("script-src ", "script-src " + "".join(f"'sha256-{one}' " for one in digests), 1)
    path = made.folder / name
    path.write_text(before + addition + end + after, encoding="utf-8")
    return path


def test_page_shows_everything_without_network_or_complaint(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    assert browser.console == []
    drawn = browser.run(
        "[...document.querySelectorAll('.chart')].filter((one) => one.querySelector('svg')).map((one) => one.id)"
    )
    heaps = [f"{kind}-traffic-{heap}" for heap in ("balanced-pick", "tlsf") for kind in ("timeline", "heap-map")]
    assert drawn == ["reserve", "arena", "trade-off", *heaps, "sizes-traffic", "histogram-traffic"]
    assert {file.stem for file in made.written[1:]} == set(drawn)


def study_name(made: Made, one: Candidate) -> str:
    """What a page calls a heap that it says to ship."""
    with Study.open(made.study) as study:
        return one.zoo_name or f"{study.recipe(one.id).title()} ({one.id})"


def test_page_has_the_pick_beside_what_else_one_could_take(browser: Chromium, made: Made) -> None:
    with Study.open(made.study) as study:
        told = side_by_side(decide(study))
    assert [one.candidate.label for one in told.heaps[1:]] == ["all-round", "tlsf", "newlib-nano"]
    cells = (
        "[...document.querySelectorAll('#others tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))"
    )
    still = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", made.page.read_text(encoding="utf-8").split('id="others"')[1])
    opened(browser, made.page)
    for row, found in zip(told.rows, browser.run(cells), strict=True):
        shown = [row.words + f" {row.unit}".rstrip(), *(f"{one.text} {one.against}".rstrip() for one in row.cells)]
        assert found == shown
        assert all(any(part in one for one in still) for cell in row.cells for part in (cell.text, cell.against))
    marked = browser.run("[...document.querySelectorAll('#others .worse, #others .better')].length")
    assert marked == sum(cell.better is not None for row in told.rows for cell in row.cells) > 9


def test_page_begins_with_the_answer(made: Made) -> None:
    with Study.open(made.study) as study:
        pick = study.pick("balanced")
        needs = study.needs(pick.id)
    most, served = (
        max(one.bytes or 0 for one in needs if keep(one)) for keep in (lambda one: one.role != "copy", bool)
    )
    reserve = reserve_for(needs)
    page = made.page.read_text(encoding="utf-8")
    assert (
        f"Ship {study_name(made, pick)}: reserve {reserve:,} bytes, 20 % more than the {most:,} that the recording and "
        "1 held-out trace need." in page
    )
    assert page.index('class="answer"') < page.index('id="answer"') < page.index('id="trade-offs"')
    with Study.open(made.study) as study:
        arena = served_by_arena(study, pick)
    assert arena is not None and len(needs) == 8
    (rows,) = arena.whole_spec()["datasets"].values()
    shares = {row["arena"]: row["share"] for row in rows if row["heap"] == f"{pick.label} (pick)"}
    assert shares[served] == 1


def test_page_holds_every_recipe_that_stands_apart(made: Made) -> None:
    recipes = packed(made.page)["recipes"]
    with Study.open(made.study) as study:
        front = {candidate.id for candidate in study.front()}
        tried = len(study.combined.ids)
        standings = study.zoo_standings()
    assert len(recipes["id"]) <= tried
    assert {id for id, kind in zip(recipes["id"], recipes["kind"], strict=True) if kind == "front"} == front
    named = {name for name in recipes["name"] if name}
    refusing = {one.candidate.label for one in standings if one.ranked and not (one.on_front or one.dominated_by)}
    assert refusing <= {"sos", "fixed-pool", "variable-pool"}
    assert named == {one.candidate.label for one in standings if one.ranked} - refusing


def test_balanced_pick_is_selected_at_first(browser: Chromium, made: Made) -> None:
    with Study.open(made.study) as study:
        pick = study.pick("balanced")
    opened(browser, made.page)
    assert selected(browser) == pick.id
    assert "balanced pick" in text(browser, "details-kind")
    assert text(browser, "details-command") == f"heapwright generate s.duckdb:{pick.id} -o heap/"
    assert browser.run("document.getElementById('selection').hidden")


def test_address_selects_a_recipe_and_everything_follows(browser: Chromium, made: Made) -> None:
    with Study.open(made.study) as study:
        robustness = study.robustness()
        chosen = next(one for one in reversed(study.front()) if robustness.lasts(one.id))
        recipe = study.recipe(chosen.id)
        reserve = reserve_for(study.needs(chosen.id))
    opened(browser, made.page, f"#{chosen.id}")
    assert selected(browser) == chosen.id
    assert Recipe.parse(text(browser, "details-toml")).hash == recipe.hash
    assert text(browser, "details-summary") == recipe.summary()
    assert f"{chosen.metrics['footprint_bytes']:,} B" in text(browser, "details-objectives")
    assert text(browser, "answer-text").startswith(f"Ship {study_name(made, chosen)}: reserve {reserve:,} bytes, ")
    assert text(browser, "selection-name") == chosen.label
    first = "[...document.querySelectorAll('#others tr')].map((row) => row.cells[1].textContent)"
    told = browser.run(first)
    assert told[0].startswith(f"{chosen.label} ship{recipe.title()}") and told[1] == f"{reserve:,}"
    marked = browser.run("[...document.querySelectorAll('tr.selected')].map((row) => row.dataset.id)")
    assert set(marked) == {chosen.id} and len(marked) >= 2
    assert browser.run(f"document.querySelector('#trade-off [data-id=\"{chosen.id}\"] .chosen') !== null")
    note = text(browser, "trade-offs") and browser.run("document.querySelector('.no-map').textContent")
    assert f"heapwright report s.duckdb --heap {chosen.id}" in note


def test_a_row_selects_its_recipe_and_its_pictures(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    with Study.open(made.study) as study:
        tlsf = study.candidate("tlsf").id
    browser.run(f"document.querySelector('#zoo a[href=\"#{tlsf}\"]').click()")
    browser.wait(f"document.documentElement.dataset.selected === '{tlsf}'")
    drawn = browser.run("[...document.querySelectorAll('[data-heap].selected')].map((one) => one.dataset.heap)")
    assert drawn == [tlsf]
    assert browser.run("document.querySelector('.no-map').hidden")
    assert browser.run("document.getElementById('selection').getBoundingClientRect().bottom <= innerHeight")


def test_every_link_to_a_recipe_selects_it(made: Made) -> None:
    data, page = packed(made.page), made.page.read_text(encoding="utf-8")
    links = set(re.findall(r'<th scope="row"><a href="#([^"]+)"', page))
    assert len(links) > 60 and links <= set(data["recipes"]["id"])
    with Study.open(made.study) as study:
        beside = {one.candidate.label for one in study.zoo_standings() if not one.ranked}
    assert beside and all(f"</i>{label}<span>" in page.replace(" <b>", "<b>") for label in beside)


def test_address_may_be_a_zoo_name_and_nonsense_changes_nothing(browser: Chromium, made: Made) -> None:
    opened(browser, made.page, "#tlsf")
    assert text(browser, "details-name") == "tlsf"
    with Study.open(made.study) as study:
        pick = study.pick("balanced").id
    opened(browser, made.page, "#no%20such%20recipe")
    assert selected(browser) == pick


def test_a_click_on_a_point_and_arrow_keys_select(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    browser.run("document.getElementById('trade-off').scrollIntoView()")
    members = browser.run("document.getElementById('trade-off').dataset.front").split()
    for id in (members[0], members[-1]):
        box = f"document.querySelector('#trade-off [data-id=\"{id}\"]').getBoundingClientRect()"
        browser.click(
            *browser.run(f"(({{left, right, top, bottom}}) => [(left + right) / 2, (top + bottom) / 2])({box})")
        )
        assert selected(browser) == id
    browser.run("document.getElementById('trade-off').focus()")
    for id in members[-2:0:-1]:
        browser.press("ArrowLeft")
        assert selected(browser) == id


@pytest.mark.parametrize(
    "attempt",
    [
        '<img src="https://example.invalid/x.png">',
        '<script src="https://example.invalid/x.js"></script>',
        '<script>fetch("https://example.invalid/x").catch(() => 0)</script>',
    ],
)
def test_an_attempt_to_load_would_be_seen(browser: Chromium, made: Made, attempt: str) -> None:
    opened(browser, with_script(made, "loading.html", attempt))
    assert any("Content Security Policy" in line for line in browser.console)


def test_no_script_but_the_pages_own_runs(browser: Chromium, made: Made) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made.page.read_text(encoding="utf-8"))
    assert policy is not None
    directives = dict(part.strip().partition(" ")[::2] for part in policy[1].split(";"))
    assert directives["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/=]{44}'", directives["script-src"])
    script = "<script>document.documentElement.dataset.foreign = 'ran'</script>"
    foreign = "document.documentElement.dataset.foreign"
    assert opened(browser, with_script(made, "allowed.html", script)).run(foreign) == "ran"
    assert opened(browser, with_script(made, "foreign.html", script, allowed=False)).run(foreign) is None
    assert any("Content Security Policy" in line for line in browser.console)


def test_page_of_a_trace(browser: Chromium, made: Made) -> None:
    page = made.folder / "trace.html"
    written = write_report(made.folder / "traffic.parquet", page, heaps=["tlsf", "kingsley"])
    assert written == [page]
    data = packed(page)
    assert set(data["stills"]) == {f"{kind}-traffic" for kind in ("sizes", "histogram", "lifetimes", "peak")}
    assert [one["plot"] for one in data["holdings"]] == ["live-traffic"]
    drawn = [(f"timeline-traffic-{heap}", f"heap-map-traffic-{heap}") for heap in ("tlsf", "kingsley")]
    assert [(heap["timeline"], heap["map"]) for heap in data["heaps"]] == drawn
    assert opened(browser, page).console == []


def test_the_peak_is_drawn_by_callers_sites_and_sizes(browser: Chromium, tmp_path: Path) -> None:
    sites = ("main;parse;node", "main;read", "")
    trace = Trace.from_columns(
        op=[0] * 6 + [3],
        id=[*range(6), 0],
        size=[500, 100, 100, 200, 99, 1, 0],
        site=[0, 0, 0, 1, 2, 2, 0],
        sites=sites,
        name="app",
        metadata={"caveats": "no times\nno threads"},
    )
    trace.write(tmp_path / "app.parquet")
    write_report(tmp_path / "app.parquet", tmp_path / "app.html")
    figure = held_plots.at_peak(profile(trace), "peak-app")
    (rows,) = figure.chart.to_dict()["datasets"].values()
    assert [(row["level"], row["name"], row["bytes"]) for row in rows] == [
        (0, "1,000 B at the peak", 1000),
        (1, "main", 900),
        (2, "parse", 700),
        (3, "node", 700),
        (4, "500 B", 500),
        (4, "100 B", 200),
        (2, "read", 200),
        (3, "200 B", 200),
        (1, "(not named)", 100),
        (2, "99 B", 99),
    ]
    ends = {row["name"]: (row["from"], row["to"]) for row in rows}
    assert ends["read"] == (0.7, 0.9)
    assert ends["100 B"] == (0.5, 0.7)
    assert "Mind: no times; no threads." in (tmp_path / "app.html").read_text(encoding="utf-8")
    assert "main: 900 B; parse: 700 B; node: 700 B; 500 B: 500 B" in figure.described
    assert opened(browser, tmp_path / "app.html").console == []


@pytest.mark.parametrize("calls", [1, 50, 10_000])
def test_a_timeline_shows_the_most_and_the_least_of_each_stretch(calls: int) -> None:
    """What comes and goes at each call is a band, not bars that alias."""
    event = np.arange(calls)
    samples = {"event": event, "requested": event % 2 * 100, "allocated": event % 2 * 120, "footprint": event + 200}
    figure = plots.timeline(samples, "tlsf", calls, 20_000, "t")
    drawn = figure.chart.to_dict()["datasets"].values()
    rows = next(rows for rows in drawn if {row.get("series") for row in rows} >= {"requested", "footprint"})
    found = {words: [row for row in rows if row["series"] == words] for words in ("requested", "footprint")}
    assert all(len(one) <= plots.STRETCHES + 1 for one in found.values())
    assert max(row["high"] for row in found["requested"]) == (100 if calls > 1 else 0)
    assert [row["event"] for row in found["requested"]][:: len(found["requested"]) - 1] == [0, calls]
    if calls > 2 * plots.STRETCHES:
        assert {(row["low"], row["high"]) for row in found["requested"][:-1]} == {(0, 100)}
        assert "the most at each place" in figure.note
    highs = [row["high"] for row in found["footprint"]]
    assert highs == sorted(highs) and highs[-1] == calls + 199


# --- the trade-off ----------------------------------------------------------------------------------------------------


# --- the trade-off ----------------------------------------------------------------------------------------------------


MADE_UP = ("footprint_bytes", "accesses", "accesses_malloc_max", "energy_nJ", "utilisation")


def made_up(folder: Path, name: str, values: Callable[[np.random.Generator, int], Any]) -> Path:
    """A study of random metrics, a fifth of its recipes with names; its trace is nowhere: its page has no pictures."""
    generator = np.random.default_rng(len(name))
    recipes = sorted(small_recipes(), key=lambda one: one.hash)
    metrics = {key: values(generator, len(recipes)) for key in MADE_UP}
    path = folder / f"{name}.duckdb"
    with Study.create_or_resume(path, identity(ids=[one.hash for one in recipes])) as study:
        study.add(
            [
                Result(
                    recipe.hash,
                    recipe,
                    f"heap-{at}" if at % 5 == 0 else None,
                    "busy",
                    {**plain_metrics(0, 0), **{key: METRICS[key].plain(float(metrics[key][at])) for key in MADE_UP}},
                )
                for at, recipe in enumerate(recipes)
            ]
        )
    return path


@pytest.fixture(scope="module")
def four(made: Made, tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    """Studies with their pages: a real one; metrics over five decades; many that are equal; all on one front."""
    folder = tmp_path_factory.mktemp("four")
    found = [made]
    for name, values in {
        "wide": lambda generator, count: generator.lognormal(8, 2.5, count),
        "equal": lambda generator, count: generator.integers(1, 9, count),
        "one-front": lambda generator, count: generator.permutation(np.arange(1, count + 1) ** 2),
    }.items():
        study, page = made_up(folder, name, values), folder / f"{name}.html"
        found.append(Made(folder, study, page, write_report(study, page)))
    return found


LOOK = r"""
(() => {
  const svg = document.querySelector("#trade-off svg");
  const place = (mark) => /\(([-\d.]+) ([-\d.]+)\)/.exec(mark.getAttribute("transform")).slice(1).map(Number);
  const marks = [...svg.querySelectorAll(".mark")].map((mark) => ({ id: mark.dataset.id, at: place(mark) }));
  const dots = svg.querySelector("path.cloud").getAttribute("d").matchAll(/M([-\d.]+) ([-\d.]+)h0/g);
  const points = [...marks, ...[...dots].map((one) => ({ at: [Number(one[1]), Number(one[2])] }))];
  const wrong = [];
  for (const name of svg.querySelectorAll("text.name")) {
    const { x, y, width, height } = name.getBBox();
    const beyond = (low, length, at) => Math.max(low - at, 0, at - low - length);
    const far = ({ at }) => Math.hypot(beyond(x, width, at[0]), beyond(y, height, at[1]));
    const own = far(marks.find((mark) => mark.id === name.dataset.names));
    if (points.some((other) => far(other) < own - 0.2)) wrong.push(name.textContent); // places are told in tenths
    if (x < 0 || x + width > svg.clientWidth) wrong.push(`${name.textContent} leaves the plot`);
  }
  const blue = [...svg.querySelectorAll(".mark.front")].map((mark) => mark.dataset.id);
  return { blue, wrong, names: svg.querySelectorAll("text.name").length };
})()
"""


def choose_axes(browser: Chromium, x: str, y: str) -> None:
    browser.run(
        f"for (const [id, key] of [['axis-x', '{x}'], ['axis-y', '{y}']]) document.getElementById(id).value = key;"
        "document.getElementById('axis-y').dispatchEvent(new Event('change'))"
    )


@pytest.mark.parametrize("width", [1440, 390])
def test_no_dominated_recipe_is_drawn_as_front_and_no_name_at_another_point(
    browser: Chromium, four: list[Made], width: int
) -> None:
    for one in four:
        opened(browser, one.page, width=width)
        offered = browser.run("[...document.getElementById('axis-x').options].map((one) => one.value)")
        with Study.open(one.study) as study:
            results, rows = study.combined, np.flatnonzero(study.combined.eligible(study.objectives))
        assert {"footprint_bytes", "accesses", "energy_nJ"} <= set(offered)
        title = f"{len(rows):,} recipes: footprint against accesses"
        assert browser.run("document.querySelector('#trade-offs h3').textContent") == title
        names = 0
        pairs = list(combinations(offered, 2)) if width > 600 else list(combinations(offered[:4], 2))
        for x, y in some(pairs, 3, four.index(one) % 3):
            choose_axes(browser, x, y)
            found = browser.run(LOOK)
            known = rows[~np.isnan(results.values([x, y])[rows]).any(axis=1)]
            best = pareto.front(results.values([x, y])[known], [METRICS[key].direction for key in (x, y)])
            assert sorted(found["blue"]) == sorted(results.ids[row] for row in known[best]), (one.study.name, x, y)
            assert found["wrong"] == [], (one.study.name, x, y)
            names += found["names"]
        assert names > 3


def test_the_still_trade_off_has_the_front_of_its_metrics() -> None:
    generator = np.random.default_rng(5)
    values = generator.integers(1, 30, (200, 2))
    rows = [
        {"id": f"{at:03}", "kind": "cloud", "name": "", "balanced": at == 0, "accesses": int(x), "utilisation": int(y)}
        for at, (x, y) in enumerate(values)
    ]
    found = front(rows, "accesses", "utilisation")
    assert all(
        not (
            row["accesses"] <= member["accesses"]
            and row["utilisation"] >= member["utilisation"]
            and (row["accesses"], row["utilisation"]) != (member["accesses"], member["utilisation"])
        )
        for member in found
        for row in rows
    )
    assert [row["accesses"] for row in found] == sorted(row["accesses"] for row in found)
    figure = trade_off("t", "A title", rows, "accesses", "utilisation")
    assert f"{found[0]['id']} {found[0]['accesses']} and {found[0]['utilisation']}" in figure.described


def test_decades_are_written_out_and_narrow_axes_have_steps() -> None:
    assert ticks(3e3, 4e7, log=True) == [1e4, 1e5, 1e6, 1e7]
    assert ticks(900, 6e4, log=True) == [1e3, 2e3, 5e3, 1e4, 2e4, 5e4]
    assert ticks(128_000, 131_000, log=False) == [128_000, 128_500, 129_000, 129_500, 130_000, 130_500, 131_000]


# --- the budget -------------------------------------------------------------------------------------------------------


def test_a_budget_moves_the_pick_by_keys_and_the_sentence_follows(browser: Chromium, made: Made) -> None:
    with Study.open(made.study) as study:
        bounds = budgets(study)
        unbound = study.pick("balanced").id
        assert bounds.picks[-1][-1] == unbound
        memory = bounds.memory[-3]
        pick = study.pick("balanced", where=f"reserve_bytes <= {memory}")
        evidence = decide(study, where=[f"reserve_bytes <= {memory}"]).evidence()
        worst = bounds.worst[-2]
        conditions = [f"accesses_{kind}_max <= {worst}" for kind in ("malloc", "free")]
        both = study.pick("balanced", where=[f"reserve_bytes <= {memory}", *conditions])
    opened(browser, made.page)
    browser.run("document.getElementById('budget-memory').focus()")
    for _ in range(3):
        browser.press("ArrowLeft")
    assert selected(browser) == pick.id
    assert text(browser, "answer-text") == f"Within {memory:,} bytes: {evidence[0].lower()}{evidence[1:]}"
    assert " times the recorded load." in evidence
    assert browser.run("document.getElementById('budget-memory').getAttribute('aria-valuetext')") == f"{memory:,} bytes"
    browser.press("Tab")
    for _ in range(2):
        browser.press("ArrowLeft")
    assert selected(browser) == both.id
    assert f"Within {memory:,} bytes and with at most {worst:,} loads and stores a call:" in text(
        browser, "answer-text"
    )
    browser.run("location.hash = '#kingsley'")
    browser.wait("document.getElementById('details-name').textContent === 'kingsley'")
    assert text(browser, "answer-text").startswith("Do not ship kingsley: ")  # it does not stay within, nor last
    browser.run("document.querySelector('#budget button').click()")
    browser.wait(f"document.documentElement.dataset.selected === '{unbound}'")
    assert text(browser, "answer-text").startswith("Ship ")
    role = "document.querySelector('#others thead b').textContent"
    assert browser.run(role) == "ship"
    browser.run("location.hash = '#tlsf'")
    browser.wait("document.documentElement.dataset.selected !== '" + unbound + "'")
    assert text(browser, "answer-text").startswith("You chose tlsf: reserve "), "a click is no recommendation"
    assert browser.run(role) == "chosen"
    for slider in ("memory", "worst"):
        browser.run(f"document.getElementById('budget-{slider}').focus()")
        browser.press("Home")
    assert bounds.picks[0][0] is None
    assert text(browser, "answer-text").startswith("Nothing that may ship serves what was explored within ")


def test_the_address_has_all_that_was_chosen(browser: Chromium, made: Made) -> None:
    """Bounds, axes, order of a table and a recipe: a page opened by it shows the same, and bad keys do no harm."""
    told = """[...document.querySelectorAll('#budget input, #axis-x, #axis-y, #whole')]
        .map((one) => one.checked || one.value)
        .concat(document.documentElement.dataset.selected)
        .concat(document.getElementById('answer-text').textContent)
        .concat([...document.querySelectorAll('#front tbody tr')].map((row) => row.dataset.id))"""
    opened(browser, made.page)
    before = browser.run(told)
    browser.run("document.getElementById('budget-memory').focus()")
    browser.press("ArrowLeft")
    browser.run("document.getElementById('whole').click()")
    y = browser.run(
        "((axis) => { axis.value = [...axis.options].at(-1).value; axis.dispatchEvent(new Event('change'));"
        "return axis.value })(document.getElementById('axis-y'))"
    )
    for _ in range(2):
        browser.run("document.querySelectorAll('#front thead button')[2].click()")
    browser.run("document.querySelector('#front tbody tr:last-child a').click()")
    after, address = browser.run(told), browser.run("location.hash")
    assert after != before
    browser.run("document.querySelector('#selection a').click()")
    assert browser.run("location.hash") == address
    with Study.open(made.study) as study:
        assert f"&memory={budgets(study).memory[-1]}&" in address
    assert f"&y={y}" in address and "&whole=1" in address and "=2-descending" in address
    opened(browser, made.page, address)
    assert browser.run(told) == after
    opened(browser, made.page, "#&memory=x&worst=-1&y=no&sort-0=length&sort-1=999&call-traffic=-5")
    assert browser.console == []


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tables_sort_filter_and_show_the_pick(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    cells = "[...document.querySelectorAll('#front tbody tr:not([hidden])')].map((row) => row.cells[2].textContent)"
    browser.run("document.querySelectorAll('#front thead button')[2].click()")
    rising = [int(cell.replace(",", "")) for cell in browser.run(cells)]
    assert rising == sorted(rising) and len(rising) > 9
    browser.run("document.querySelectorAll('#front thead button')[2].click()")
    assert [int(cell.replace(",", "")) for cell in browser.run(cells)] == rising[::-1]
    fits = "(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.querySelector('#front .scroll'))"
    assert browser.run(fits) <= 1
    assert browser.run("document.querySelector('#front tr.selected') !== null")
    browser.run(
        "for (const input of document.querySelectorAll('#front input')) {"
        "input.value = 'enea'; input.dispatchEvent(new Event('input')) }"
    )
    assert browser.run(
        "[...document.querySelectorAll('#front tbody tr:not([hidden]) a')].map((one) => one.textContent)"
    ) == ["enea-ose"]


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
    assert known["reserve"] == told["reserve"] and "dearest malloc" in told
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
    assert browser.run(f"{TIP}.textContent") == told["grows by"]


@pytest.mark.parametrize("width", [360, 1200])
def test_no_label_of_a_chart_is_cut(browser: Chromium, pages: list[Path], width: int) -> None:
    for page in pages[:2]:
        assert opened(browser, page, width=width).run(CUT_LABELS) == [], page.name


def test_axe_would_find_what_is_wrong(browser: Chromium, axe: str, pages: list[Path]) -> None:
    opened(browser, pages[1])
    browser.run("document.querySelector('.chart').removeAttribute('aria-label')")
    browser.run("document.querySelector('h1').style.color = '#ccc'")
    browser.run(axe)
    assert {one.partition(":")[0] for one in faults(browser)} == {"role-img-alt", "color-contrast"}


def test_every_plot_stands_without_javascript(browser: Chromium, made: Made) -> None:
    browser.look(scripts=False)
    browser.open(made.page)
    drawn = (
        "[...document.querySelectorAll('.chart svg')].filter((one) => one.getBoundingClientRect().height > 100).length"
    )
    assert browser.run(drawn) == 9
    assert browser.run("document.querySelector('#axes').getBoundingClientRect().height") == 0
    browser.look()


def test_every_plot_tells_its_numbers(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    with Study.open(made.study) as study:
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
    assert f"The pick: {pick.label} {pick.metrics['footprint_bytes']:,} B" in plot


# --- what was measured on a target ---------------------------------------------------------------------------------


def told(heap: str, malloc: list[list[int]], recipe: bool = True) -> dict[str, Any]:
    """What `heapwright measure` tells of a heap whose mallocs took so many instructions, its frees one of 20."""
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
    with Study.open(path, write=True) as study:
        pick, tlsf = study.pick("balanced"), study.candidate("tlsf")
        rows = [
            (pick.id, told(pick.label, [[20, 900], [40, 99], [150, 1]])),
            (tlsf.id, told("tlsf", [[90, 500], [130, 499], [1862, 1]])),
            ("lib:newlib-nano", told("lib:newlib-nano", [[48, 990], [960, 10]], recipe=False)),
        ]
        found = []
        for id, detail in rows:
            pair = {"instructions_pair_mean": detail["calls"]["malloc"]["instructions_mean"] + 20}
            found.append(Measured(id, "traffic", pair, detail))
        study.add_measured("cortex-m3, gcc 12 -Os", found)
    return Made(made.folder, path, page, write_report(path, page))


def test_measured_heaps_stand_side_by_side(measured: Made) -> None:
    text = measured.page.read_text(encoding="utf-8")
    part = text[text.index("On the target: traffic") :]
    part = part[: part.index("</section>")]
    assert "cortex-m3, gcc 12 -Os, counted by unicorn 2.1.3" in part
    rows = re.findall(r'<tr class="(\w+)" data-id="([^"]+)">(.*?)</tr>', part, re.DOTALL)
    cells = {id: re.findall(r"<td>([^<]*)</td>", row) for _, id, row in rows}
    with Study.open(measured.study) as study:
        pick, tlsf = study.pick("balanced").id, study.candidate("tlsf").id
    assert list(cells) == [pick, "lib:newlib-nano", tlsf]
    assert cells[pick] == ["22.1", "150", "150", "20.0", "20", "20", "777", "54,321", "1.25"]
    assert cells["lib:newlib-nano"][2] == "960" and cells["lib:newlib-nano"][-1] == "\u2013"
    assert 'href="#lib:newlib-nano"' not in part
    assert "(2,000 bytes over all heaps) equals the host&#39;s byte for byte" in part


def test_measured_calls_are_drawn_malloc_and_free_apart(browser: Chromium, measured: Made) -> None:
    with Study.open(measured.study) as study:
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
    found = {malloc.name, free.name, "trade-off-target"}
    assert found <= set(browser.run("[...document.querySelectorAll('.chart')].map((one) => one.id)"))
    assert "instructions_pair_mean" in browser.run(
        "[...document.getElementById('axis-x').options].map((one) => one.value)"
    )


# --- the files --------------------------------------------------------------------------------------------------------


def test_page_refers_to_nothing_outside(made: Made) -> None:
    text = made.page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    markup = text[: text.index('<script id="data"')]
    assert re.findall(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=|url\((?!#)|@import", markup) == []
    assert len(text) < 900_000


def test_every_plot_is_written_as_png_and_svg(made: Made) -> None:
    data = packed(made.page)
    figures = {"trade-off", *data["stills"], *(heap[key] for heap in data["heaps"] for key in ("timeline", "map"))}
    names = {f"{name}.{kind}" for name in figures for kind in ("png", "svg")}
    assert {path.name for path in (made.folder / "plots").iterdir()} == names
    assert set(made.written) == {made.page, *(made.folder / "plots" / name for name in names)}
    for path in made.written[1:]:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"<svg")
        assert len(content) > 2000
    assert "against accesses" in (made.folder / "plots" / "trade-off.svg").read_text(encoding="utf-8")


def test_metrics_in_the_page_are_those_of_a_replay(made: Made) -> None:
    data = packed(made.page)
    at = data["recipes"]["name"].index("tlsf")
    fresh = replay(Trace.read(made.folder / "traffic.parquet"), zoo.load("tlsf").at_alignment(8))
    for key in ("footprint_bytes", "accesses", "header_bytes"):
        assert data["values"][key][at] == fresh[key]


def test_held_out_traces_have_a_table_and_the_zoo_says_by_how_much(made: Made) -> None:
    text = made.page.read_text(encoding="utf-8")
    assert '<section id="held-out">' in text
    assert "Held out: later." in text
    zoo_part = text[text.index('<section id="zoo">') : text.index("</main>")]
    assert all(recipe.name in zoo_part for recipe in zoo.staying())
    assert re.search(r"\d× accesses of [0-9a-f]{6}", zoo_part)


def test_a_trace_that_is_gone_or_changed_is_said_so(made: Made, tmp_path: Path) -> None:
    path, study = tmp_path / "gone.parquet", tmp_path / "s.duckdb"
    small_trace("gone").write(path)
    explore([Trace.read(path)], small_space(), study_path=study, jobs=1, limit=5, copies=0, endurance=False)
    path.unlink()
    write_report(study, tmp_path / "gone.html")
    assert "not found, so there are no plots of it" in (tmp_path / "gone.html").read_text(encoding="utf-8")
    small_trace("gone", seed=9).write(path)
    write_report(study, tmp_path / "changed.html")
    assert "has changed since the exploration" in (tmp_path / "changed.html").read_text(encoding="utf-8")


def test_three_objectives_have_a_plot_for_each_pair(tmp_path: Path) -> None:
    study, page = tmp_path / "s.duckdb", tmp_path / "three.html"
    trace = small_trace(calls=300)
    objectives = "footprint_bytes,accesses,accesses_malloc_max"
    explore([trace], small_space(), objectives, study, jobs=2, limit=20, copies=0, endurance=False)
    written = write_report(study, page, plots=tmp_path / "plots")
    assert {file.stem for file in written if file.stem.startswith("trade-off")} == {
        "trade-off",
        "trade-off-footprint-accesses-malloc-max",
        "trade-off-accesses-accesses-malloc-max",
    }


def test_one_objective_is_plotted_against_what_it_costs(tmp_path: Path) -> None:
    study, page = tmp_path / "s.duckdb", tmp_path / "one.html"
    trace = small_trace(calls=300)
    explore([trace], small_space(), "footprint_bytes", study, jobs=2, limit=20, copies=0, endurance=False)
    write_report(study, page)
    assert "footprint against accesses" in page.read_text(encoding="utf-8")


def test_a_page_tells_its_terms_whatever_was_written_before(tmp_path: Path) -> None:
    path, told = tmp_path / "a.parquet", []
    small_trace(calls=100).write(path)
    for page in (tmp_path / "one.html", tmp_path / "two.html"):
        write_report(path, page)
        parts = re.findall(r"<(h2|h3|dt)>(.*?)</\1>", page.read_text(encoding="utf-8"))
        told.append(re.findall(r"<abbr[^>]*>([^<]+)</abbr>", " ".join(part for _, part in parts)))
    assert told[0] == told[1] != []


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<b>&x.parquet"
    small_trace(calls=100).write(path)
    write_report(path, tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<b>&x" not in text
    assert "&lt;b&gt;&amp;x" in text


# --- the command and what it refuses ----------------------------------------------------------------------------------


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_here(*arguments)


def test_command_writes_plots_beside_the_page_or_none(made: Made, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    result = run("report", made.folder / "traffic.parquet", "-o", page, "--json")
    told = json.loads(result.stdout)
    assert told["page"] == str(page)
    assert sorted(map(Path, told["plots"])) == sorted((tmp_path / "r_plots").iterdir())
    assert len(told["plots"]) == 14
    quiet = tmp_path / "alone" / "q.html"
    quiet.parent.mkdir()
    assert run("report", made.folder / "traffic.parquet", "-o", quiet, "--no-plots").returncode == 0
    assert list(quiet.parent.iterdir()) == [quiet]


def test_command_refuses_contradicting_flags(made: Made, tmp_path: Path) -> None:
    result = run("report", made.study, "-o", tmp_path / "r.html", "--plots", tmp_path, "--no-plots")
    assert result.returncode == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "neither a study nor a trace"),
        (b"hello", "neither a study nor a trace"),
        (b"PAR1" + bytes(50), "broken"),
        (bytes(8) + b"DUCK" + bytes(5000), "broken"),
    ],
)
def test_what_is_neither_study_nor_trace_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    source, page = tmp_path / "broken", tmp_path / "r.html"
    source.write_bytes(content)
    result = run("report", source, "-o", page)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert says in result.stderr
    assert not page.exists()


def test_missing_source_folder_and_heap_are_one_line(made: Made, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    commands = {
        "none.duckdb": ("report", tmp_path / "none.duckdb", "-o", page),
        "no folder": ("report", made.study, "-o", tmp_path / "nowhere" / "r.html"),
        "no-such-heap": ("report", made.study, "-o", page, "--heap", "no-such-heap"),
    }
    for says, command in commands.items():
        result = run(*command)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        assert says in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_whole_leaves_the_old_one(made: Made, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("old", encoding="utf-8")
    limited = f"ulimit -f 200; exec '{sys.executable}' -c 'from heapwright.cli import main; main()' \"$@\""
    trace = made.folder / "traffic.parquet"
    result = subprocess.run(
        ["bash", "-c", limited, "bash", "report", str(trace), "-o", str(page), "--no-plots"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert page.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [page]


# --- pictures and labels ----------------------------------------------------------------------------------------------


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
    for one, other in combinations(raster.COLOURS, 2):
        light, dark = sorted((lightness[one], lightness[other]), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3 or raster.PATTERNS.get(one) != raster.PATTERNS.get(other)
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
    assert all(one.startswith("bar-1-") for one in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", still)) <= set(ids)


def test_labels_neither_overlap_nor_leave_the_plot_nor_stand_at_another_point() -> None:
    generator = np.random.default_rng(4)
    anchors = [Marker(float(x), float(y)) for x, y in generator.uniform(0, 300, (40, 2))]
    texts = [f"allocator-{at}" for at in range(40)]
    boxes = []
    for anchor, text, label in zip(anchors, texts, place(anchors, texts, anchors, 300, 300), strict=True):
        if label is not None:
            width = len(text) * CHARACTER
            left = anchor.x + label.dx - {"left": 0, "center": width / 2, "right": width}[label.align]
            boxes.append((left, anchor.y + label.dy - LINE_HEIGHT / 2, width))
            box = box_of(anchor, label, text)
            assert all(box.distance(anchor) < box.distance(other) for other in anchors if other != anchor)
    assert len(boxes) >= 10
    for at, (left, top, width) in enumerate(boxes):
        assert left >= 0 and left + width <= 300 and top >= 0 and top + LINE_HEIGHT <= 300
        for other_left, other_top, other_width in boxes[:at]:
            apart = left >= other_left + other_width or other_left >= left + width
            assert apart or abs(top - other_top) >= LINE_HEIGHT
