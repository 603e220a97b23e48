"""Files of a report: the page, the plots next to it, what the command says of them, and every input that is none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_runner import run_here
from keyword_explorations import explore
from sample_report import Made, packed, reported, small_space, small_trace

from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._report import figure, write_report
from heapwright._report.figure import SCALE, Figure, inline
from heapwright._traces.trace import Trace

pytestmark = pytest.mark.usefixtures("small_pictures")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return reported(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("report"))


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
    assert "against accesses a call" in (made.folder / "plots" / "trade-off.svg").read_text(encoding="utf-8")


def test_a_png_has_twice_the_pixels_of_the_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "SCALE", SCALE)
    chart = inline([{"x": 1, "y": 2}]).mark_point().encode(x="x:Q", y="y:Q")
    files = Figure("two", "Two", "By two.", chart, 400).files()
    png, svg = files["two.png"], files["two.svg"]
    assert isinstance(png, bytes) and isinstance(svg, str)
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    (wide,) = re.findall(r'^<svg[^>]* width="(\d+)', svg)
    assert width == 2 * int(wide) == 800 and height > 200


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
    assert re.search(r"\d× accesses a call of [0-9a-f]{6}", zoo_part)


def test_a_trace_that_is_gone_or_changed_is_said_so(made: Made, tmp_path: Path) -> None:
    path, study = tmp_path / "gone.parquet", tmp_path / "s.duckdb"
    small_trace("gone").write(path)
    explore([Trace.read(path)], small_space(), study_path=study, jobs=1, limit=5, copies=0, stress_test=False)
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
    explore([trace], small_space(), objectives, study, jobs=2, limit=20, copies=0, stress_test=False)
    written = write_report(study, page, plots=tmp_path / "plots")
    assert {file.stem for file in written if file.stem.startswith("trade-off")} == {
        "trade-off",
        "trade-off-footprint-accesses-malloc-max",
        "trade-off-accesses-accesses-malloc-max",
    }


def test_one_objective_is_plotted_against_what_it_costs(tmp_path: Path) -> None:
    study, page = tmp_path / "s.duckdb", tmp_path / "one.html"
    trace = small_trace(calls=300)
    explore([trace], small_space(), "footprint_bytes", study, jobs=2, limit=20, copies=0, stress_test=False)
    write_report(study, page)
    assert "footprint against accesses" in page.read_text(encoding="utf-8")


def test_a_page_tells_its_terms_whatever_was_written_before(tmp_path: Path) -> None:
    path, output = tmp_path / "a.parquet", []
    small_trace(calls=100).write(path)
    for page in (tmp_path / "one.html", tmp_path / "two.html"):
        write_report(path, page)
        parts = re.findall(r"<(h2|h3|dt)>(.*?)</\1>", page.read_text(encoding="utf-8"))
        output.append(re.findall(r"<abbr[^>]*>([^<]+)</abbr>", " ".join(part for _, part in parts)))
    assert output[0] == output[1] != []


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
    output = json.loads(result.stdout)
    assert output["page"] == str(page)
    assert sorted(map(Path, output["plots"])) == sorted((tmp_path / "r_plots").iterdir())
    assert len(output["plots"]) == 14
    quiet = tmp_path / "alone" / "q.html"
    quiet.parent.mkdir()
    assert run("report", made.folder / "traffic.parquet", "-o", quiet, "--no-plots").returncode == 0
    assert list(quiet.parent.iterdir()) == [quiet]


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
    limited = f"ulimit -f 200; exec '{sys.executable}' -c 'from heapwright._cli import main; main()' \"$@\""
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
