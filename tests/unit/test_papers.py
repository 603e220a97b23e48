"""Reproduced papers: pages, figures and claims are written, and say what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright.errors import HeapwrightError
from heapwright.papers import reproduce
from heapwright.papers.page import Page


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
        "# Title & more\n\n"
        "Recipes have alignment 4 on this page, a word of the paper's 32-bit systems; allocators whose source says "
        "another\nkeep theirs.\n\nSome *words*.\n\n| name | value |\n| --- | ---: |\n| a | 1 |\n| b | 2.5 |\n\n"
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
