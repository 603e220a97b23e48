"""Reproduced papers: pages, figures and claims are written, and say what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from heapwright.cli.reproduce import command
from heapwright.errors import HeapwrightError
from heapwright.papers import measuring, reproduce
from heapwright.papers.page import Page
from heapwright.traffic.packets import PacketTable


def network(seed: int, with_ip: bool = True) -> PacketTable:
    """12,000 packets of 40, 1500 and other bytes."""
    draw = np.random.default_rng(seed)
    sizes = draw.choice([40, 1500, *range(100, 900)], 12_000, p=[0.4, 0.25, *[0.35 / 800] * 800])
    return PacketTable(
        ts_us=np.arange(12_000) * 700,
        frame_len=(sizes + 14).astype(np.uint32),
        ip_len=(sizes if with_ip else sizes * 0).astype(np.uint32),
        proto=np.full(12_000, 6, np.uint8),
        flow=draw.integers(1, 50, 12_000).astype(np.uint32),
        dir=np.zeros(12_000, np.uint8),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "packets").mkdir()
    for name, with_ip in (("campus", True), ("office", True), ("air", False)):
        network(len(name), with_ip).write(tmp_path / "packets" / f"{name}.parquet")
    return tmp_path / "packets"


@pytest.mark.parametrize("what", ["wifi"])
def test_the_command_writes_pages_figures_and_claims(
    folder: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    output = tmp_path / "papers"
    result = CliRunner().invoke(command, [what, "--packets", str(folder), "-o", str(output), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["pages"] == [str(output / f"{what}.md"), str(output / f"{what}.html")]
    assert all(set(claim) == {"paper", "claim", "paper_value", "our_value", "holds"} for claim in answer["claims"])
    text = (output / f"{what}.md").read_text()
    figures = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert figures and all((output / name).is_file() for name in figures)
    assert all((output / name).with_suffix(".png").is_file() for name in figures)
    assert "campus" in text and "<table>" in (output / f"{what}.html").read_text()


def test_what_cannot_be_reproduced_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="poker: cannot be reproduced; valid: drr, easyport, url, techniques, "):
        reproduce("poker", None, tmp_path)
    with pytest.raises(HeapwrightError, match="name a folder of packet tables"):
        reproduce("wifi", None, tmp_path)
    with pytest.raises(HeapwrightError, match="no such folder"):
        reproduce("drr", tmp_path / "missing", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(HeapwrightError, match="holds no packet table"):
        reproduce("drr", tmp_path / "empty", tmp_path)


def test_a_page_is_a_heading_tables_and_claims(tmp_path: Path) -> None:
    page = Page("p", "Title & more", "Someone 2006")
    page.text("Some *words*.")
    page.table(("name", "value"), [("a", 1), ("b", 2.5)])
    page.claim("it is so", "1", "2", False)
    markdown, html = page.write(tmp_path)
    assert markdown.read_text() == (
        "# Title & more\n\nSome *words*.\n\n| name | value |\n| --- | ---: |\n| a | 1 |\n| b | 2.5 |\n\n"
        "## What the paper claims, and what holds on this traffic\n\n"
        "| claim | the paper | here | holds |\n| --- | --- | --- | --- |\n| it is so | 1 | 2 | no |\n"
    )
    assert "<title>Title &amp; more</title>" in html.read_text()
    assert "<td>it is so</td>" in html.read_text()


def test_what_comes_from_a_file_is_no_html_of_the_page(tmp_path: Path) -> None:
    page = Page("p", "<b>Title", "Someone 2006")
    page.table(("network", "packets"), [("<script>alert(1)</script>", 1)])
    _, html = page.write(tmp_path)
    assert "<b>" not in html.read_text() and "<script>" not in html.read_text()
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in html.read_text()
