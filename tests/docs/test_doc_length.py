"""The manual stays as short as it was made: its words, and its sentences that run long, are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEVELOPING = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "developing").glob("*.md"))]
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {*DEVELOPING})]

MOST_WORDS = 60_000
"""Of the manual, without alternative texts of pictures."""
MOST_DEVELOPING = 6_000
"""Of CONTRIBUTING and the pages for developers."""
MOST_LONG = 30
"""Sentences of more than `LONG` words, in all pages."""
LONG = 38
WORDS_A_MINUTE = 200
LONGEST_ENTRY = 20
"""Words of an entry of the changelog."""


def paragraphs(page: str) -> Iterator[str]:
    """What is prose: no headings, tables, pictures, comments and code."""
    lines: list[str] = []
    for line in [*re.sub(r"```.*?```", "", page, flags=re.DOTALL).split("\n"), ""]:
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if item or not line.strip() or line.startswith(("#", "|", "!", "<!--")):
            yield from [" ".join(lines)] * bool(lines)
            lines = [line[item.end() :]] if item else []
        elif lines or not line.startswith("    "):
            lines.append(line.strip())


def long_sentences(page: str) -> list[str]:
    text = [re.sub(r"\]\([^)]*\)", "]", item) for item in paragraphs(page)]
    ends = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"`*(\[0-9])")
    return [item for paragraph in text for item in ends.split(paragraph) if len(item.split()) > LONG]


def test_a_long_sentence_is_found_and_a_table_is_none() -> None:
    words = " ".join(["Word"] * (LONG + 1))
    assert long_sentences(f"# Title\n\nShort. {words}.\n\n| {words} |\n\n    {words}\n- {words}") == [
        f"{words}.",
        words,
    ]
    assert long_sentences(f"{words[5:]}. Then `more`: 1 of\nthem.") == []


def words_of(page: str) -> int:
    return len(re.sub(r"!\[[^\]]*\]\([^)]*\)", "", page).split())


def test_the_pages_have_no_more_words_than_they_were_cut_to() -> None:
    assert words_of("Two words.\n\n![A picture of it](images/it.svg)\n") == 2
    assert sum(words_of(path.read_text(encoding="utf-8")) for path in PAGES) <= MOST_WORDS
    assert sum(words_of(path.read_text(encoding="utf-8")) for path in DEVELOPING) <= MOST_DEVELOPING


def part_words(link: str) -> int:
    """Of a page, or of the part below a heading of it."""
    name, _, anchor = link.partition("#")
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    if not anchor:
        return words_of(page)
    parts = re.split(r"^(?=#+ )", page, flags=re.MULTILINE)
    slugs = [re.sub(r"[^a-z0-9 -]", "", part.partition("\n")[0].lower()).strip().replace(" ", "-") for part in parts]
    return words_of(parts[slugs.index(anchor)])


def test_each_path_is_read_in_a_quarter_of_an_hour() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    paths = index.partition("## Four paths")[2].partition("\n## ")[0].split("\n**")[1:]
    assert len(paths) == 4
    for path in paths:
        assert sum(map(part_words, re.findall(r"\]\(([^)]+)\)", path))) <= 15 * WORDS_A_MINUTE, path


def test_few_sentences_run_long() -> None:
    results = [(path.name, item) for path in PAGES for item in long_sentences(path.read_text(encoding="utf-8"))]
    assert len(results) <= MOST_LONG, "\n".join(f"{name}: {item}" for name, item in results)


def long_entries(changelog: str) -> list[str]:
    """Of all that came after 0.1.0."""
    section = changelog.partition("\n## 0.1.0")[0]
    entries = re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)
    return [entry for entry in entries if len(entry.split()) > LONGEST_ENTRY]


def test_an_entry_of_the_changelog_is_read_in_one_glance() -> None:
    words = " ".join(["word"] * LONGEST_ENTRY)
    assert long_entries(f"## Unreleased\n\n- {words}\n- {words}\n  more\n\n## 0.1.0\n\n- {words} more") == [
        f"{words}\n  more"
    ]
    assert long_entries((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


MOST_CONTRIBUTING = 1_500


def test_contributing_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split()) <= MOST_CONTRIBUTING


def test_files_that_pages_for_developers_name_exist() -> None:
    folders = [ROOT, ROOT / "src" / "heapwright"]
    missing = []
    for page in DEVELOPING:
        for name in re.findall(r"`([\w.-]+/[\w./-]+)`", page.read_text(encoding="utf-8")):
            made = name.startswith(("build/", "hooks/")) or "NAME" in name
            if not made and not any((folder / name).exists() for folder in folders):
                missing.append(f"{page.name}: {name}")
    assert missing == []
