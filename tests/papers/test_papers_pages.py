"""Pages of the reproduced papers, made from small inputs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from networks import five_networks, network
from tool_requirements import absent

from heapwright._cli import heapwright
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._traffic.workloads.drr import drr as drr_workload
from heapwright._traffic.workloads.easyport import easyport as queue_workload
from heapwright._traffic.workloads.modem import modem as workload
from heapwright_papers import (
    drr,
    easyport,
    measuring,
    mixes,
    modem,
    own_space,
    pools,
    sensor,
    techniques,
    url,
)
from heapwright_papers.case_study import MIX, PROPOSED, REAL, SYSTEMS, Case
from heapwright_papers.page import Page
from heapwright_papers.verdicts import HOLDS, Kind

pytestmark = pytest.mark.usefixtures("small_pictures")

CASES: dict[str, tuple[ModuleType, Case]] = {
    "drr": (drr, drr.CASE),
    "easyport": (easyport, easyport.CASE),
    "url": (url, url.CASE),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return five_networks(tmp_path / "packets")


@pytest.mark.parametrize("what", ["wifi"])
def test_the_command_writes_pages_figures_and_claims(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "packets"
    folder.mkdir()
    for name, with_ip in (("campus", True), ("office", True), ("air", False)):
        network(len(name), with_ip).write(folder / f"{name}.parquet")
    monkeypatch.setattr(measuring, "session", lambda: None)
    output = tmp_path / "papers"
    result = CliRunner().invoke(heapwright, ["reproduce", what, "--packets", str(folder), "-o", str(output), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    written = [f"{what}.md", f"{what}.html", f"{what}-details.html", "README.md", "README.html", "appendix.html"]
    assert answer["pages"] == [str(output / name) for name in written]
    assert all({"paper", "claim", "paper_value", "our_value", "holds"} <= set(claim) for claim in answer["claims"])
    text, short = ((output / name).read_text() for name in (f"{what}-details.html", f"{what}.md"))
    assert short.count("\n| ") == 8 and "| – | – |" in short  # six numbers of the paper, some without tools
    figures = re.findall(r'<img src="([^"]+)"', text)
    assert figures and all((output / name).is_file() for name in figures)
    assert all((output / name).with_suffix(".png").is_file() for name in figures)
    assert "campus" in text and "<table>" in (output / f"{what}.html").read_text()


RECIPES = 40
SHORT = {"explored_packets": 300, "grid_packets": 300}


def silent(line: str) -> None:
    """Progress that is not shown."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few packets, few recipes, one seed, and no tools that count instructions."""
    monkeypatch.setattr(measuring, "session", lambda: None)
    monkeypatch.setattr(mixes, "SEEDS", (1,))
    for module, packets in ((drr, 12_000), (url, 12_000), (easyport, 1_000)):
        few = {"packets": packets, "traces": 1, "explored_recipes": RECIPES}
        few |= {"explored_packets": 1_000, "grid_packets": 1_000} if module is easyport else SHORT
        monkeypatch.setattr(module, "CASE", replace(module.CASE, **few))
    monkeypatch.setattr(drr, "CROSSED_PACKETS", 300)
    monkeypatch.setattr(own_space, "STEP", 4)
    monkeypatch.setattr(easyport, "CLOUD", {**easyport.CLOUD, "limit": RECIPES})


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.usefixtures("small")
def test_a_page_has_both_tables_figures_and_an_answer_to_every_statement(
    folder: Path, tmp_path: Path, name: str
) -> None:
    module, case = CASES[name]
    page = module.page(folder, silent)
    output = tmp_path / "out"
    output.mkdir()
    page.write(output)
    text = page.details()
    assert f"## Table {case.table}" in text and "The paper's arithmetic, done again" in text
    for heap, (wasted, times) in case.rows.items():
        row = " | ".join([heap, *map(str, wasted), *(f"{time:.2f}" for time in times)])
        assert f"| {row} |" in text
    ours = text[text.index("| here |") :]
    assert all(f"| {heap} |" in ours for heap in (*SYSTEMS, "Avg. Alloc.", PROPOSED, "kingsley"))
    assert "## How the paper is read" in text and text.count(" (leads) |") == 5
    assert "not to be had" in text and "## The best of the full space on networks that it was not tuned on" in text
    figures = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert len(figures) == {"drr": 3, "easyport": 2, "url": 0}[name]
    files = [output / Path(figure).with_suffix(end) for figure in figures for end in (".png", ".svg")]
    assert all(file.is_file() for file in files)
    on = {finding.on for finding in page.findings if finding.statement.id == f"{name}-balanced"}
    assert on == {"real networks", "the paper's mix"}
    if name == "easyport":
        assert_is_the_cloud((output / "easyport-cloud.svg").read_text(), page)


def assert_is_the_cloud(drawing: str, page: Page) -> None:
    """Every recipe that was tried, the paper's with names."""
    (explored,) = (finding for finding in page.findings if finding.statement.id == "easyport-explored")
    assert int(explored.here.split()[0].replace(",", "")) == len(zoo.staying()) + RECIPES
    assert explored.verdict.kind is Kind.FAILS
    assert ">Proposed<" in drawing and ">uClinux<" in drawing and "kingsley" not in drawing
    dots = max(path.count("M") for path in drawing.split("<path"))
    assert RECIPES - 8 <= dots <= RECIPES  # but for those on the front, and that failed requests


def test_instructions_told_from_a_part_are_near_those_of_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = measuring.session()
    if setting is None:
        absent("a cross compiler or an emulator", "instructions are counted with them")
    (mix,) = mixes.mixes((40, 1500), 1)
    trace, recipe = queue_workload(mix.packets(3_000, seed=1), rate=mixes.RATE), zoo.load("windows-ce")
    accesses = float(replay(trace, recipe)["accesses"] or 0)
    (whole,) = measuring.instructions(recipe, [trace], [accesses]) or [None]
    full = setting.measure(recipe, [trace], ("Os",))[0]["calls"]
    counted = sum(full[kind]["instructions_mean"] * full[kind]["count"] for kind in ("malloc", "free"))
    assert whole is not None and whole.exact and whole.total == pytest.approx(counted)
    monkeypatch.setattr(measuring, "MOST_ACCESSES", accesses / 3)
    (part,) = measuring.instructions(recipe, [trace], [accesses]) or [None]
    assert part is not None and not part.exact and part.total == pytest.approx(whole.total, rel=0.1)


def test_the_page_of_the_techniques(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PACKETS", 60), ("NETWORKS", 1), ("FORMS", 1), ("WORKLOADS", {"drr": drr_workload})):
        monkeypatch.setattr(techniques, name, value)
    page = techniques.page(folder, silent)
    page.write(tmp_path)
    text = page.details()
    assert "## Table 1" in text and "## Table 2" in text
    assert (tmp_path / "techniques-drr.png").is_file()
    cells = [finding for finding in page.findings if finding.statement.id.startswith("techniques-table-2-")]
    assert len(cells) == 2 * 12 and {cell.on for cell in cells} == {REAL, MIX}
    faster = [cell.verdict.kind for cell in cells if cell.statement.id == "techniques-table-2-freelists-performance"]
    assert faster == [Kind.HOLDS] * 2


def test_the_page_of_modems_without_a_toolchain_has_dashes_and_all_sections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    page = modem.page(None, lambda line: None, calls=60, most=2)
    page.write(tmp_path)
    text = page.details()
    assert "| instructions: free | – | – | – | – | – | – |" in text
    assert "| instructions: swap of a connected call, copy | – | – | – | – | – | – |" in text
    assert "| the paper: malloc, µs | 2.80 | 2.89 | 2.72 | 3.24 | – | – |" in text
    assert (tmp_path / "modem-memory.png").is_file() and not (tmp_path / "modem-times.png").exists()
    results = {finding.statement.id: finding for finding in page.findings}
    assert results["modem-first-same"].verdict.kind is Kind.SET_UP, "both take the same blocks: it cannot fail"
    assert results["modem-deferred-memory"].verdict == HOLDS
    assert results["modem-fastest"].verdict.kind is Kind.NOT_TESTED


def test_fast_free_takes_few_instructions_and_slow_free_many() -> None:
    if measuring.session() is None:
        absent("a cross compiler or emulator", "instructions are counted with them")
    trace = workload(calls=30)
    slow, fast = (measuring.on_target(zoo.load(name), trace) for name in ("first-fit-slow-free", "first-fit-fast-free"))
    assert slow is not None and fast is not None
    assert slow[0]["calls"]["free"]["instructions_mean"] > 3 * fast[0]["calls"]["free"]["instructions_max"]


# Admission of the variable pool by an independent simulation of the paper's rules, in experiments 1 to 3.
VARIABLE_POOL = {
    "load": (0.17, 0.36, 0.55, 0.75, 0.92, 0.999, 1.0),
    "smallest": (0.744, 0.727, 0.679, 0.608, 0.512),
    "largest": (1.0, 0.998, 0.964, 0.891, 0.811, 0.744),
}


def test_pools_admit_what_theory_and_an_independent_simulation_expect() -> None:
    # A tenth of the paper's requests: three times as much is left to chance as on the page.
    result = pools.experiments(requests=100_000)
    for name, expected in VARIABLE_POOL.items():
        assert result[name].of(pools.VARIABLE, "admission") == pytest.approx(list(expected), abs=0.03)
    theory = [pools.exact_admission(load) for load in pools.LOADS]
    assert result["load"].of(pools.FIXED, "admission") == pytest.approx(theory, abs=0.02)
    assert result["load"].of(pools.FIXED, "utilisation") == pytest.approx([0.50] * 7, abs=0.02)


def test_the_page_of_pools_has_all_five_experiments_and_real_packets(tmp_path: Path) -> None:
    packets, output = tmp_path / "packets", tmp_path / "pages"
    packets.mkdir()
    output.mkdir()
    for name, with_ip in (("campus", True), ("air", False)):
        network(len(name), with_ip).write(packets / f"{name}.parquet")
    page = pools.page(packets, silent, requests=10_000)
    page.write(output)
    text = page.details()
    for figure in ("load", "smallest", "largest", "partition", "overhead", "indexed", "real"):
        assert (output / f"pools-{figure}.png").is_file()
    results = {(finding.statement.id, finding.on): finding.verdict.kind for finding in page.findings}
    assert results["pools-overhead-fixed", ""] is Kind.SET_UP
    assert results["pools-maximum", pools.VARIABLE] is Kind.HOLDS
    assert results["pools-maximum", pools.FIXED] is Kind.FAILS
    real = text[text.index("## Real packets") :]
    assert "| campus |" in real and "| air |" not in text, "frames without IP lengths are no packets"
    assert not any(part.startswith("## Real packets") for part in pools.page(None, silent, requests=2_000)._parts)


def test_the_page_of_sensors_without_a_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    given = {"xml": sensor.traces()["xml"], "random": [sensor.synthetic(1, 128, calls=500)]}
    monkeypatch.setattr(sensor, "traces", lambda calls: given)
    page = sensor.page(None, lambda line: None)
    page.write(tmp_path)
    text = page.details()
    assert "| heapLib | – | – |" in text, "no time without tools"
    assert "| ST_COMPACT_MEMMGR, with handles |" in text
    assert (tmp_path / "sensor-memory.svg").is_file() and not (tmp_path / "sensor-code.svg").exists()
    verdicts = {finding.statement.id: finding.verdict.kind for finding in page.findings}
    assert verdicts["sensor-table-1"] is verdicts["sensor-33"] is Kind.SET_UP
    assert verdicts["sensor-table-1-external"] is Kind.HOLDS
    assert verdicts["sensor-33-abstract"] is Kind.FAILS
    assert verdicts["sensor-figure-6"] is verdicts["sensor-compact-least-code"] is Kind.NOT_TESTED


def test_times_and_code_are_told_where_the_tools_are() -> None:
    if measuring.session() is None:
        absent("a cross compiler or an emulator", "the page reports what they measure")
    trace = sensor.synthetic(1, 64, calls=600)
    results = sensor.measure({"random": [trace]}, silent)
    for heap in sensor.FIVE:
        (size,) = results.memory(heap, "random")
        assert size % sensor.UNIT == 0
        assert (results.instructions(heap, "random", "malloc") or 0) > 0
        assert results.worst is not None
        for kind in sensor.KINDS:
            assert results.worst[heap][kind] >= (results.most(heap, kind) or 0) / 2
        assert (measuring.code_bytes(results.sizes[heap], "O0") or 0) > (
            measuring.code_bytes(results.sizes[heap], "Os") or 0
        )
    assert 5 <= (results.most(sensor.ST, "free") or 0) <= 7, "resets a bit: 7 instructions of gcc, 5 of zig"
    assert results.found[sensor.ST]["random"][0].handles == 0
    assert results.found[sensor.MMEM]["random"][0].handles > 0
