"""The papers' pages without packets: in long runs those that `papers/digests.txt` promises, else of fewer packets."""

from __future__ import annotations

import contextlib
from pathlib import Path

import papers_briefly
import pytest
from effort import LONG
from needed import absent
from papers_briefly import digests_of, promised

import heapwright_papers
from heapwright._explore import default_space
from heapwright_papers import measuring

DIGESTS = Path(__file__).resolve().parents[2] / "papers" / "digests.txt"
COMPILER = "12.2"
"""Of Debian 12, by which instructions and bytes of code on the pages were counted: `docs/artifact.md`."""


@pytest.mark.slow
def test_the_pages_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_space, "COUNTED_CALLS", 120_000)  # as installed: shorter futures make other recipes
    setting = measuring.session()
    if setting is None or COMPILER not in setting.setting:
        absent("the cross compiler of Debian 12", f"found: {setting and setting.setting}")
    with contextlib.nullcontext() if LONG else papers_briefly.briefly():
        heapwright_papers.reproduce("all", None, tmp_path / "papers")
    expected = promised(DIGESTS)
    if not LONG:
        whole = {name: digest for name, digest in expected.items() if name.startswith(papers_briefly.WHOLE)}
        assert len(whole) == 2
        expected = promised(papers_briefly.DIGESTS) | whole
    result = digests_of(tmp_path / "papers")
    assert sorted(result) == sorted(expected) == sorted(promised(DIGESTS))
    assert [name for name in result if result[name] != expected[name]] == [], "tests/papers_briefly.py makes short ones"
