"""Reports: the page in a real browser, what it shows first, and what a reader selects, bounds and sorts there."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import Chromium
from run_length import some
from sample_report import Made, opened, packed, reported, selected, small_recipes, text
from sample_studies import identity
from sample_studies import metrics as plain_metrics

from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import METRICS
from heapwright._report import held_plots, write_report
from heapwright._report.answer import served_by_arena
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis, reserve_for
from heapwright._studies.by_budget import budgets
from heapwright._studies.comparison import side_by_side
from heapwright._studies.decision import decide
from heapwright._studies.recommendations import WELL_KNOWN
from heapwright._studies.records import Result
from heapwright._studies.results import Candidate
from heapwright._traces.profile import profile
from heapwright._traces.trace import Trace


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return reported(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("report"))


def with_script(made: Made, name: str, addition: str, allowed: bool = True) -> Path:
    """A copy of the page with something more at its end, which its policy lets run if it is `allowed`."""
    before, end, after = made.page.read_text(encoding="utf-8").rpartition("</body>")
    if allowed:
        scripts = re.findall(r"<script>(.*?)</script>", addition, re.DOTALL)
        digests = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
        before = before.replace("script-src ", "script-src " + "".join(f"'sha256-{digest}' " for digest in digests), 1)
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
    assert drawn == ["arena", "trade-off", *heaps, "sizes-traffic", "histogram-traffic"]
    assert {file.stem for file in made.written[1:]} == set(drawn)


def study_name(made: Made, one: Candidate) -> str:
    """What a page calls a heap that it says to ship."""
    with Analysis.open(made.study) as study:
        return one.zoo_name or f"{study.recipe(one.id).title()} ({one.id})"


def test_page_has_the_pick_beside_what_else_one_could_take(browser: Chromium, made: Made) -> None:
    with Analysis.open(made.study) as study:
        output = side_by_side(decide(study))
    assert [heap.candidate.label for heap in output.heaps[1:]] == ["all-round", "tlsf", "newlib-nano"]
    cells = (
        "[...document.querySelectorAll('#others tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))"
    )
    still = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", made.page.read_text(encoding="utf-8").split('id="others"')[1])
    opened(browser, made.page)
    for row, result in zip(output.rows, browser.run(cells), strict=True):
        shown = [row.words + f" {row.unit}".rstrip(), *(f"{item.text} {item.against}".rstrip() for item in row.cells)]
        assert result == shown
        assert all(any(part in item for item in still) for cell in row.cells for part in (cell.text, cell.against))
    marked = browser.run("[...document.querySelectorAll('#others .worse, #others .better')].length")
    assert marked == sum(cell.better is not None for row in output.rows for cell in row.cells) > 9


def test_page_begins_with_the_answer(made: Made) -> None:
    with Analysis.open(made.study) as study:
        pick = study.pick("balanced")
        needs = study.needs(pick.id)
    recorded, future, served = (
        max(need.bytes or 0 for need in needs if need.role in roles)
        for roles in (("explored", "held out"), ("future",), ("explored", "held out", "copy", "future"))
    )
    reserve = reserve_for(needs)
    page = made.page.read_text(encoding="utf-8")
    assert (
        f"Ship {study_name(made, pick)}: reserve {reserve:,} bytes. It needs {recorded:,} on the recordings and "
        f"{future:,} in the long run" in page
    )
    assert page.index('class="answer"') < page.index('id="answer"') < page.index('id="trade-offs"')
    with Analysis.open(made.study) as study:
        arena = served_by_arena(study, pick)
    assert arena is not None and len(needs) == 3
    (rows,) = arena.whole_spec()["datasets"].values()
    shares = {row["arena"]: row["share"] for row in rows if row["heap"] == f"{pick.label} (pick)"}
    assert shares[served] == 1


def test_page_holds_every_recipe_that_stands_apart(made: Made) -> None:
    recipes = packed(made.page)["recipes"]
    with Analysis.open(made.study) as study:
        front = {candidate.id for candidate in study.front()}
        tried = len(study.combined.ids)
        standings = study.zoo_standings()
    assert len(recipes["id"]) <= tried
    assert {id for id, kind in zip(recipes["id"], recipes["kind"], strict=True) if kind == "front"} == front
    named = {name for name in recipes["name"] if name}
    refusing = {
        standing.candidate.label
        for standing in standings
        if standing.ranked and not (standing.on_front or standing.dominated_by)
    }
    assert "variable-pool" in refusing and not refusing & {*WELL_KNOWN}
    assert named == {standing.candidate.label for standing in standings if standing.ranked} - refusing


def test_balanced_pick_is_selected_at_first(browser: Chromium, made: Made) -> None:
    with Analysis.open(made.study) as study:
        pick = study.pick("balanced")
    opened(browser, made.page)
    assert selected(browser) == pick.id
    assert "balanced pick" in text(browser, "details-kind")
    assert text(browser, "details-command") == f"heapwright generate s.duckdb:{pick.id} -o heap/"
    assert browser.run("document.getElementById('selection').hidden")


def test_address_selects_a_recipe_and_everything_follows(browser: Chromium, made: Made) -> None:
    with Analysis.open(made.study) as study:
        robustness = study.robustness()
        chosen = next(item for item in reversed(study.front()) if robustness.stable(item.id))
        recipe = study.recipe(chosen.id)
        reserve = reserve_for(study.needs(chosen.id))
    opened(browser, made.page, f"#{chosen.id}")
    assert selected(browser) == chosen.id
    assert Recipe.parse(text(browser, "details-toml")).hash == recipe.hash
    assert text(browser, "details-summary") == recipe.summary()
    assert f"{chosen.metrics['long_run_bytes']:,} B" in text(browser, "details-objectives")
    assert f"{study_name(made, chosen)}: reserve {reserve:,} bytes. It needs " in text(browser, "answer-text")
    assert text(browser, "selection-name") == chosen.label
    first = "[...document.querySelectorAll('#others tr')].map((row) => row.cells[1].textContent)"
    output = browser.run(first)
    assert output[0] in [f"{chosen.label} {role}{recipe.title()}" for role in ("ship", "chosen")]
    assert output[1] == f"{reserve:,}"
    marked = browser.run("[...document.querySelectorAll('tr.selected')].map((row) => row.dataset.id)")
    assert set(marked) == {chosen.id} and len(marked) >= 2
    assert browser.run(f"document.querySelector('#trade-off [data-id=\"{chosen.id}\"] .chosen') !== null")
    note = text(browser, "trade-offs") and browser.run("document.querySelector('.no-map').textContent")
    assert f"heapwright report s.duckdb --heap {chosen.id}" in note


def test_a_row_selects_its_recipe_and_its_pictures(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    with Analysis.open(made.study) as study:
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
    assert len(links) > 30 and links <= set(data["recipes"]["id"])
    with Analysis.open(made.study) as study:
        beside = {item.candidate.label for item in study.zoo_standings() if not item.ranked}
    assert beside and all(f"</i>{label}<span>" in page.replace(" <b>", "<b>") for label in beside)


def test_address_may_be_a_zoo_name_and_nonsense_changes_nothing(browser: Chromium, made: Made) -> None:
    opened(browser, made.page, "#tlsf")
    assert text(browser, "details-name") == "tlsf"
    with Analysis.open(made.study) as study:
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
    assert [item["plot"] for item in data["holdings"]] == ["live-traffic"]
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


# --- the trade-off ----------------------------------------------------------------------------------------------------


MADE_UP = ("footprint_bytes", "accesses", "accesses_malloc_max", "energy_nJ", "utilisation")


def made_up(folder: Path, name: str, values: Callable[[np.random.Generator, int], Any]) -> Path:
    """A study of random metrics, a fifth of its recipes with names; its trace is nowhere: its page has no pictures."""
    generator = np.random.default_rng(len(name))
    recipes = sorted(small_recipes(), key=lambda item: item.hash)
    metrics = {key: values(generator, len(recipes)) for key in MADE_UP}
    path = folder / f"{name}.duckdb"
    with Analysis.create_or_resume(path, identity(ids=[item.hash for item in recipes])) as study:
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
    results = [made]
    for name, values in {
        "wide": lambda generator, count: generator.lognormal(8, 2.5, count),
        "equal": lambda generator, count: generator.integers(1, 9, count),
        "one-front": lambda generator, count: generator.permutation(np.arange(1, count + 1) ** 2),
    }.items():
        study, page = made_up(folder, name, values), folder / f"{name}.html"
        results.append(Made(folder, study, page, write_report(study, page)))
    return results


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
    if (points.some((other) => far(other) < own - 0.2)) wrong.push(name.textContent); // places are printed in tenths
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
    for item in four:
        opened(browser, item.page, width=width)
        offered = browser.run("[...document.getElementById('axis-x').options].map((one) => one.value)")
        with Analysis.open(item.study) as study:
            results, rows = study.combined, np.flatnonzero(study.combined.eligible(study.objectives))
        assert {"footprint_bytes", "accesses", "energy_nJ"} <= set(offered)
        axes = "long-run need against accesses a call" if results.foreseen else "footprint against accesses"
        title = f"{len(rows):,} recipes: {axes}"
        assert browser.run("document.querySelector('#trade-offs h3').textContent") == title
        names = 0
        pairs = list(combinations(offered, 2)) if width > 600 else list(combinations(offered[:4], 2))
        for x, y in some(pairs, 3, four.index(item) % 3):
            choose_axes(browser, x, y)
            result = browser.run(LOOK)
            known = rows[~np.isnan(results.values([x, y])[rows]).any(axis=1)]
            best = pareto.front(results.values([x, y])[known], [METRICS[key].direction for key in (x, y)])
            assert sorted(result["blue"]) == sorted(results.ids[row] for row in known[best]), (item.study.name, x, y)
            assert result["wrong"] == [], (item.study.name, x, y)
            names += result["names"]
        assert names > 3


# --- the budget -------------------------------------------------------------------------------------------------------


def test_a_budget_moves_the_pick_by_keys_and_the_sentence_follows(browser: Chromium, made: Made) -> None:
    with Analysis.open(made.study) as study:
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
    assert browser.run("document.getElementById('budget-memory').getAttribute('aria-valuetext')") == f"{memory:,} bytes"
    browser.press("Tab")
    for _ in range(2):
        browser.press("ArrowLeft")
    assert selected(browser) == both.id
    assert f"Within {memory:,} bytes and with at most {worst:,} loads and stores a call:" in text(
        browser, "answer-text"
    )
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
    output = """[...document.querySelectorAll('#budget input, #axis-x, #axis-y, #whole')]
        .map((one) => one.checked || one.value)
        .concat(document.documentElement.dataset.selected)
        .concat(document.getElementById('answer-text').textContent)
        .concat([...document.querySelectorAll('#front tbody tr')].map((row) => row.dataset.id))"""
    opened(browser, made.page)
    before = browser.run(output)
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
    after, address = browser.run(output), browser.run("location.hash")
    assert after != before
    browser.run("document.querySelector('#selection a').click()")
    assert browser.run("location.hash") == address
    with Analysis.open(made.study) as study:
        assert f"&memory={budgets(study).memory[-1]}&" in address
    assert f"&y={y}" in address and "&whole=1" in address and "=2-descending" in address
    opened(browser, made.page, address)
    assert browser.run(output) == after
    opened(browser, made.page, "#&memory=x&worst=-1&y=no&sort-0=length&sort-1=999&call-traffic=-5")
    assert browser.console == []


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tables_sort_filter_and_show_the_pick(browser: Chromium, made: Made) -> None:
    opened(browser, made.page)
    cells = "[...document.querySelectorAll('#front tbody tr:not([hidden])')].map((row) => row.cells[2].textContent)"
    browser.run("document.querySelectorAll('#front thead button')[2].click()")
    rising = [float(cell.replace(",", "")) for cell in browser.run(cells)]
    assert rising == sorted(rising) and len(rising) > 9
    browser.run("document.querySelectorAll('#front thead button')[2].click()")
    assert [float(cell.replace(",", "")) for cell in browser.run(cells)] == rising[::-1]
    fits = "(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.querySelector('#front .scroll'))"
    assert browser.run(fits) <= 1
    assert browser.run("document.querySelector('#front tr.selected') !== null")
    browser.run(
        "for (const input of document.querySelectorAll('#front input')) {"
        "input.value = 'small-lists'; input.dispatchEvent(new Event('input')) }"
    )
    assert browser.run(
        "[...document.querySelectorAll('#front tbody tr:not([hidden]) a')].map((one) => one.textContent)"
    ) == ["small-lists"]
