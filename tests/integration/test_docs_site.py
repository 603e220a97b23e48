"""The pages build as a site: every page has its place, every link and anchor leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from needed import absent

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning() -> None:
    if not find_spec("mkdocs") or not find_spec("material"):
        absent("mkdocs", "it builds the pages (pip install 'heapwright[docs]')")
    binaries = Path(sys.executable).parent
    done = subprocess.run(
        ["make", "-o", ".venv/.docs", "docs", f"BIN={binaries}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "build/site/docs/choosing/index.html").is_file()


def test_every_page_is_listed() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)\)", listed))


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (DOCS / "images").rglob("*") if path.is_file()}
    assert {name: size for name, size in sizes.items() if size > 300_000} == {}
