"""The terms of the manual's glossary, for readers who point at one in a report or on the site."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PAGE = Path(__file__).with_name("glossary.md")
"""`docs/glossary.md` itself."""


@cache
def terms() -> Mapping[str, str]:
    """Each term with its meaning in plain text: those of the page's first table.

    The words of its others are those of headings and summaries, and mean something else in a sentence.
    """
    table = PAGE.read_text(encoding="utf-8").split("\n## ")[1]
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", table, re.MULTILINE)[2:]
    return {term: re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", meaning) for term, meaning in rows}


@cache
def _pattern() -> re.Pattern[str]:
    longest_first = "|".join(map(re.escape, sorted(terms(), key=len, reverse=True)))
    return re.compile(rf"\b({longest_first})s?\b(?! of\b)", re.IGNORECASE)  # "in front of" is no front


def found(text: str, known: set[str]) -> Iterator[tuple[slice, str]]:
    """Where terms stand in a text, each with its meaning; those `known` are passed over, and those found join them."""
    for match in _pattern().finditer(text):
        term = match[1].lower()
        if term not in known:
            known.add(term)
            yield slice(*match.span()), terms()[term]
