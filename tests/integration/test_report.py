"""Reports: the page in a real browser, the files beside it, and every input that is none."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from PIL import Image, ImageChops, ImageColor

from heapwright.explore.search import explore
from heapwright.explore.space import Space
from heapwright.explore.study import Measured, Study
from heapwright.recipes.recipe import Recipe
from heapwright.replay.pictures import HEAP_MAP_STATES
from heapwright.replay.replay import replay
from heapwright.report import raster, write_report
from heapwright.report.figure import Figure, inline
from heapwright.report.labels import CHARACTER, LINE_HEIGHT, Marker, place
from heapwright.report.trade_off import close_up
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC
from heapwright.zoo import catalogue as zoo

BROWSER_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
    "--dump-dom",
]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


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


def small_space() -> Space:
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
    return Space([found])


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


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page: the document after all scripts, and what the console said.

    The page forbids itself to load anything, so an attempt is a line on the console.
    """

    dom: str
    console: list[str]

    def text(self, identifier: str) -> str:
        """The text of an element without child elements."""
        (found,) = re.findall(rf'id="{identifier}"[^>]*>([^<]*)<', self.dom)
        return html.unescape(found)

    def attribute(self, name: str) -> str | None:
        """A data attribute of the document element."""
        found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', self.dom)
        return found and found[1]


@pytest.fixture(scope="session")
def browser() -> str:
    for name in CHROMIUM:
        path = shutil.which(name)
        if path:
            return path
    message = "no Chromium on the path: it opens the report for this test"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def visit(browser: str, page: Path, fragment: str = "", width: int = 1280) -> Visit:
    profile = page.parent / "browser"
    told = [f"--user-data-dir={profile}", f"--window-size={width},1600"]
    result = subprocess.run(
        [browser, *BROWSER_OPTIONS, *told, f"{page.as_uri()}{fragment}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    shutil.rmtree(profile, ignore_errors=True)
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return Visit(result.stdout, console)


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


@pytest.fixture(scope="module")
def seen(browser: str, made: Made) -> Visit:
    return visit(browser, made.page)


def test_page_draws_everything_without_network_or_complaint(seen: Visit, made: Made) -> None:
    assert seen.attribute("ready") == "true"
    assert seen.console == []
    figures = packed(made.page)["figures"]
    assert seen.dom.count('class="marks"') == len(figures)
    assert list(figures)[:5] == ["arena", "trade-off", "trade-off-close", "sizes-traffic", "histogram-traffic"]
    drawn = [f"{kind}-traffic-{heap}" for heap in ("balanced-pick", "enea-ose") for kind in ("timeline", "heap-map")]
    assert list(figures)[5:] == drawn


def test_page_begins_with_the_answer(made: Made) -> None:
    with Study.open(made.study) as study:
        pick = study.pick("balanced")
        needs = {need.trace: need for need in study.needs(pick.id)}
    most = max(need.bytes or 0 for need in needs.values())
    text = made.page.read_text(encoding="utf-8")
    assert (
        f"Ship {pick.label}: reserve {most:,} bytes, which served the recording, 6 perturbed copies "
        "(3 at 4 times the load) and 1 held-out trace." in text
    )
    assert text.index('class="answer"') < text.index('id="answer"') < text.index('id="trade-offs"')
    (rows,) = packed(made.page)["figures"]["arena"]["datasets"].values()
    shares = {row["arena"]: row["share"] for row in rows if row["heap"] == f"{pick.label} (pick)"}
    assert len(needs) == 8 and shares[most] == 1


def test_page_draws_every_recipe_that_stands_apart(seen: Visit, made: Made) -> None:
    recipes = packed(made.page)["recipes"]
    drawn = int(re.findall(r'id="trade-off"[^>]* data-points="(\d+)"', seen.dom)[0])
    with Study.open(made.study) as study:
        front = {candidate.id for candidate in study.front()}
        tried = len(study.combined.ids)
        standings = study.zoo_standings()
    assert drawn == len(recipes["id"]) <= tried
    assert {id for id, kind in zip(recipes["id"], recipes["kind"], strict=True) if kind == "front"} == front
    named = {name for name in recipes["name"] if name}
    refusing = {one.candidate.label for one in standings if one.ranked and not (one.on_front or one.dominated_by)}
    assert refusing <= {"sos", "fixed-pool", "variable-pool"}
    assert named == {one.candidate.label for one in standings if one.ranked} - refusing


def test_balanced_pick_is_selected_at_first(seen: Visit, made: Made) -> None:
    with Study.open(made.study) as study:
        pick = study.pick("balanced")
    assert seen.attribute("selected") == pick.id
    assert "balanced pick" in seen.text("details-kind")
    assert seen.text("details-command") == f"heapwright generate s.duckdb:{pick.id} -o heap/"


def test_address_selects_a_recipe_and_shows_metrics_and_toml(browser: str, made: Made) -> None:
    with Study.open(made.study) as study:
        chosen = study.front()[-1]
        recipe = study.recipe(chosen.id)
    seen = visit(browser, made.page, f"#{chosen.id}")
    assert seen.attribute("selected") == chosen.id
    assert Recipe.parse(seen.text("details-toml")).hash == recipe.hash
    assert seen.text("details-summary") == recipe.summary()
    assert f"<td>{chosen.metrics['footprint_bytes']:,} B</td>" in seen.dom


def test_address_may_be_a_zoo_name_and_nonsense_changes_nothing(browser: str, made: Made) -> None:
    assert visit(browser, made.page, "#tlsf").text("details-name") == "tlsf"
    with Study.open(made.study) as study:
        pick = study.pick("balanced").id
    assert visit(browser, made.page, "#no%20such%20recipe").attribute("selected") == pick


CLICK = """
<script>
addEventListener("load", async () => {
  while (document.documentElement.dataset.ready !== "true") await new Promise((done) => setTimeout(done, 50));
  const first = document.documentElement.dataset.selected;
  const canvas = document.querySelector("#trade-off canvas");
  const box = canvas.getBoundingClientRect();
  for (let at = 0; at < 40000 && document.documentElement.dataset.selected === first; at++) {
    const place = { clientX: box.left + (at % 200) / 200 * box.width, clientY: box.top + at / 200 / 200 * box.height };
    for (const kind of ["pointermove", "mousemove", "pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
      const Kind = kind.startsWith("pointer") ? PointerEvent : MouseEvent;
      canvas.dispatchEvent(new Kind(kind, { bubbles: true, ...place }));
    }
  }
});
</script>
"""


def test_click_on_a_point_selects_its_recipe(browser: str, made: Made) -> None:
    seen = visit(browser, with_script(made, "clicked.html", CLICK))
    with Study.open(made.study) as study:
        selected = seen.attribute("selected")
        assert selected not in (None, study.pick("balanced").id)
        assert Recipe.parse(seen.text("details-toml")).hash == study.recipe(str(selected)).hash


@pytest.mark.parametrize(
    "attempt",
    [
        '<img src="https://example.invalid/x.png">',
        '<script src="https://example.invalid/x.js"></script>',
        '<script>fetch("https://example.invalid/x").catch(() => 0)</script>',
    ],
)
def test_an_attempt_to_load_would_be_seen(browser: str, made: Made, attempt: str) -> None:
    seen = visit(browser, with_script(made, "loading.html", attempt))
    assert any("Content Security Policy" in line for line in seen.console)


def test_no_script_but_the_pages_own_runs(browser: str, made: Made) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made.page.read_text(encoding="utf-8"))
    assert policy is not None
    directives = dict(part.strip().partition(" ")[::2] for part in policy[1].split(";"))
    assert directives["default-src"] == "'none'"
    assert re.fullmatch(r"('sha256-[\w+/=]{44}' ?){2}", directives["script-src"])
    script = "<script>document.documentElement.dataset.foreign = 'ran'</script>"
    assert visit(browser, with_script(made, "allowed.html", script)).attribute("foreign") == "ran"
    seen = visit(browser, with_script(made, "foreign.html", script, allowed=False))
    assert (seen.attribute("ready"), seen.attribute("foreign")) == ("true", None)
    assert any("Content Security Policy" in line for line in seen.console)


def test_page_fits_a_phone(browser: str, made: Made) -> None:
    script = "const root = document.documentElement; root.dataset.overflow = root.scrollWidth - root.clientWidth;"
    script = f'<script>addEventListener("load", () => setTimeout(() => {{ {script} }}, 5000));</script>'
    seen = visit(browser, with_script(made, "phone.html", script), width=500)
    assert (seen.attribute("ready"), seen.attribute("overflow")) == ("true", "0")


def test_page_of_a_trace(browser: str, made: Made) -> None:
    page = made.folder / "trace.html"
    written = write_report(made.folder / "traffic.parquet", page, heaps=["tlsf", "kingsley"])
    assert written == [page]
    figures = set(packed(page)["figures"])
    drawn = {f"{kind}-traffic-{heap}" for kind in ("timeline", "heap-map") for heap in ("tlsf", "kingsley")}
    assert figures == {f"{kind}-traffic" for kind in ("sizes", "histogram", "live", "lifetimes")} | drawn
    seen = visit(browser, page)
    assert (seen.attribute("ready"), seen.console) == ("true", [])


# --- what was measured on a target ------------------------------------------------------------------------------------


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


def test_measured_calls_are_drawn_malloc_and_free_apart(browser: str, measured: Made) -> None:
    figures = packed(measured.page)["figures"]
    drawn = figures["instructions-malloc-1-traffic"]
    rows, ends = (drawn["datasets"][layer["data"]["name"]] for layer in drawn["layer"])
    nano = [(row["from"], row["to"], row["calls"]) for row in rows if row["heap"] == "lib:newlib-nano"]
    assert [calls for *_, calls in nano] == [990, 10]
    assert all(low <= value <= high for (low, high, _), value in zip(nano, (48, 960), strict=True))
    assert {row["worst"] for row in ends} == {150, 960, 1862}
    assert {"instructions-free-1-traffic", "trade-off-target"} <= set(figures)
    seen = visit(browser, measured.page, "#tlsf")
    assert (seen.attribute("ready"), seen.console) == ("true", [])
    assert seen.dom.count('class="marks"') == len(figures)


# --- the files --------------------------------------------------------------------------------------------------------


def test_page_refers_to_nothing_outside(made: Made) -> None:
    text = made.page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    markup = text[: text.index('<script id="data"')]
    assert re.findall(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=|url\(|@import", markup) == []
    assert len(text) < 1_500_000


def test_every_plot_is_written_as_png_and_svg(made: Made) -> None:
    figures = packed(made.page)["figures"]
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
    explore([Trace.read(path)], small_space(), study_path=study, jobs=1, limit=5)
    path.unlink()
    write_report(study, tmp_path / "gone.html")
    assert "not found, so there are no plots of it" in (tmp_path / "gone.html").read_text(encoding="utf-8")
    small_trace("gone", seed=9).write(path)
    write_report(study, tmp_path / "changed.html")
    assert "has changed since the exploration" in (tmp_path / "changed.html").read_text(encoding="utf-8")


def test_three_objectives_have_a_plot_for_each_pair(made: Made, tmp_path: Path) -> None:
    study, page = tmp_path / "s.duckdb", tmp_path / "three.html"
    trace = Trace.read(made.folder / "traffic.parquet")
    objectives = "footprint_bytes,accesses,accesses_malloc_max"
    explore([trace], small_space(), objectives, study, jobs=2, limit=40)
    write_report(study, page)
    pairs = {name for name in packed(page)["points"] if not name.endswith("-close")}
    assert pairs == {
        "trade-off-footprint-accesses",
        "trade-off-footprint-accesses-malloc-max",
        "trade-off-accesses-accesses-malloc-max",
    }


def test_one_objective_is_plotted_against_what_it_costs(made: Made, tmp_path: Path) -> None:
    study, page = tmp_path / "s.duckdb", tmp_path / "one.html"
    trace = Trace.read(made.folder / "traffic.parquet")
    explore([trace], small_space(), "footprint_bytes", study, jobs=2, limit=40)
    write_report(study, page)
    assert "footprint against accesses" in page.read_text(encoding="utf-8")


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<b>&x.parquet"
    small_trace(calls=100).write(path)
    write_report(path, tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<b>&x" not in text
    assert "&lt;b&gt;&amp;x" in text


# --- the command and what it refuses ----------------------------------------------------------------------------------


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = "from heapwright.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_command_writes_plots_beside_the_page_or_none(made: Made, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    result = run("report", made.folder / "traffic.parquet", "-o", page, "--json")
    told = json.loads(result.stdout)
    assert told["page"] == str(page)
    assert sorted(map(Path, told["plots"])) == sorted((tmp_path / "r_plots").iterdir())
    assert len(told["plots"]) == 12
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


def blocks_of(*runs: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
    return np.array(list(runs), np.dtype([("column", "u4"), ("offset", "u4"), ("size", "u4"), ("state", "u4")]))


def test_every_state_of_a_heap_map_has_a_colour_of_its_own() -> None:
    assert sorted(raster.COLOURS) == sorted(HEAP_MAP_STATES)
    assert len(set(raster.COLOURS.values())) == len(HEAP_MAP_STATES)


def test_shares_of_a_cell_add_up_by_bytes() -> None:
    blocks = blocks_of((0, 0, 15, 1), (0, 15, 5, 0), (0, 20, 80, 2), (1, 0, 100, 5))
    found = raster.shares([blocks], columns=2, extent=100, rows=10)
    assert found.shape == (6, 10, 2)
    assert found[:, :, :].sum(axis=0) == pytest.approx(1)
    assert found[1, :, 0] == pytest.approx([1, 0.5, 0, 0, 0, 0, 0, 0, 0, 0])
    assert found[0, :, 0] == pytest.approx([0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0])
    assert found[5, :, 1] == pytest.approx([1] * 10)


def test_a_block_within_one_cell_and_one_beyond_the_extent() -> None:
    found = raster.shares([blocks_of((0, 12, 3, 1), (0, 90, 50, 2))], columns=1, extent=100, rows=10)
    assert found[1, :, 0] == pytest.approx([0, 0.3, 0, 0, 0, 0, 0, 0, 0, 0])
    assert found[2, :, 0] == pytest.approx([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])


def test_picture_has_address_0_at_the_bottom() -> None:
    blocks = blocks_of((0, 0, 50, 1), (0, 50, 50, 2))
    content = raster.picture(raster.shares([blocks], columns=1, extent=100, rows=2))
    drawn = Image.open(io.BytesIO(content))
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


def test_labels_neither_overlap_nor_leave_the_plot() -> None:
    generator = np.random.default_rng(4)
    anchors = [Marker(float(x), float(y)) for x, y in generator.uniform(0, 300, (40, 2))]
    texts = [f"allocator-{at}" for at in range(40)]
    boxes = []
    for anchor, text, label in zip(anchors, texts, place(anchors, texts, anchors, 300, 300), strict=True):
        if label is not None:
            width = len(text) * CHARACTER
            left = anchor.x + label.dx - {"left": 0, "center": width / 2, "right": width}[label.align]
            boxes.append((left, anchor.y + label.dy - LINE_HEIGHT / 2, width))
    assert len(boxes) >= 10
    for at, (left, top, width) in enumerate(boxes):
        assert left >= 0 and left + width <= 300 and top >= 0 and top + LINE_HEIGHT <= 300
        for other_left, other_top, other_width in boxes[:at]:
            apart = left >= other_left + other_width or other_left >= left + width
            assert apart or abs(top - other_top) >= LINE_HEIGHT


def test_close_up_holds_the_front_and_only_where_it_shows_more() -> None:
    def row(x: float, y: float, kind: str = "front", balanced: bool = False) -> dict[str, Any]:
        return {"footprint_bytes": x, "accesses": y, "kind": kind, "balanced": balanced}

    front = [row(100 + at, 200 - at, balanced=at == 5) for at in range(10)]
    far = [row(10_000, 10_000, "cloud"), row(105, 196, "cloud")]
    assert close_up([*far, *front], "footprint_bytes", "accesses") == [far[1], *front]
    assert close_up(front, "footprint_bytes", "accesses") == []
