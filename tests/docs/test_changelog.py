"""The changelog is short: at most 20 entries a version, of at most 20 words, and fragments for the next version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHANGES = ROOT / "changes"
MOST_ENTRIES = 20
MOST_WORDS = 20
NAME = re.compile(r"[a-z0-9][a-z0-9-]*\.(added|changed|deprecated|removed|fixed|security)\.md")


def entries(section: str) -> list[str]:
    return re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)


def fragments() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8").strip() for path in CHANGES.glob("*.md")}


def test_no_version_has_more_than_twenty_entries() -> None:
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(versions) >= 2
    counts = {text.partition("\n")[0]: len(entries(text)) for text in versions} | {"changes/": len(fragments())}
    assert {
        name: count for name, count in counts.items() if not 1 <= count <= MOST_ENTRIES and name != "changes/"
    } == {}
    assert counts["changes/"] <= MOST_ENTRIES


def test_an_entry_is_one_sentence_of_at_most_twenty_words() -> None:
    listed = [*entries((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), *fragments().values()]
    assert [text for text in listed if len(text.split()) > MOST_WORDS or text[-1] != "."] == []


def test_a_fragment_is_named_after_its_change_and_type() -> None:
    assert [name for name in fragments() if not NAME.fullmatch(name)] == []


def test_towncrier_renders_the_next_version_from_the_fragments() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "99.0", "--date", "2030-01-01"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("## 99.0 - 2030-01-01\n")
    assert sorted(entries(run.stdout)) == sorted(fragments().values())
