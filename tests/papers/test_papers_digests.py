"""The papers' pages without packets: their digests, links and length.

Long runs make them as `papers/digests.txt` has them. Usual ones make three pages, two of them of fewer packets;
`test_papers_pages.py` makes each page of small inputs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import papers_briefly
import pytest
from papers_briefly import digests_of, promised
from run_length import LONG, brief
from tool_requirements import absent

import heapwright_papers
from heapwright._explore import default_space
from heapwright_papers import PAGES, measuring

MADE = brief(("url", "wifi", "pools"), PAGES)
DIGESTS = Path(__file__).resolve().parents[2] / "papers" / "digests.txt"
COMPILER = "12.2"
"""Of Debian 12, by which instructions and bytes of code on the pages were counted: `docs/artifact.md`."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    setting = measuring.session()
    if setting is None or COMPILER not in setting.setting:
        absent("the cross compiler of Debian 12", f"found: {setting and setting.setting}")
    folder = tmp_path_factory.mktemp("papers")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(default_space, "COUNTED_CALLS", 120_000)  # as installed: shorter futures make other recipes
        with contextlib.nullcontext() if LONG else papers_briefly.briefly():
            for name in MADE:
                heapwright_papers.reproduce(name, None, folder)
    yield folder


@pytest.mark.slow
def test_the_pages_are_the_same_bytes(pages: Path) -> None:
    expected = promised(DIGESTS)
    if not LONG:
        expected = {name: digest for name, digest in expected.items() if name.startswith(papers_briefly.WHOLE)}
        assert len(expected) == 2
    result = {name: digest for name, digest in digests_of(pages).items() if LONG or name in expected}
    assert result == expected


@pytest.mark.slow
def test_links_and_figures_of_the_pages_exist_and_every_file_is_linked(pages: Path) -> None:
    linked: set[str] = set()
    for page in (*MADE, *(f"{name}-details" for name in MADE), "README", "appendix"):
        html = (pages / f"{page}.html").read_text()
        leads = re.findall(r'(?:src|href)="([^"]+)"', html)
        shown = {link.partition("#")[0] for link in leads} - {""}
        assert [link for link in shown if not (pages / link).is_file()] == [], page
        for target, _, anchor in (link.partition("#") for link in leads if "#" in link and ".md" not in link):
            assert f'id="{anchor}"' in (pages / (target or f"{page}.html")).read_text(), (page, anchor)
        linked |= shown | {f"{page}.html"}
    for page in (*MADE, "README"):
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (pages / f"{page}.md").read_text())
        assert [link for link in links if not (pages / link).is_file()] == [], page
        linked |= set(links) | {f"{page}.md", f"{page}.json"}
    figures = {name for name in linked if name.endswith(".png")}
    assert figures
    expected = {name for name in linked if "/" not in name} | {f"{Path(name).stem}.svg" for name in figures}
    expected -= {"README.json"}
    assert {file.name for file in pages.iterdir()} == expected


@pytest.mark.slow
def test_a_page_is_one_screen_and_all_together_are_short(pages: Path) -> None:
    words = {name: len((pages / f"{name}.md").read_text().split()) for name in (*MADE, "README")}
    assert sum(words.values()) <= 6000, words
    for name in MADE:
        table = (pages / f"{name}.md").read_text().split("| --- |")[1].split("\n\n")[0]
        assert table.count("\n") == 6, name
