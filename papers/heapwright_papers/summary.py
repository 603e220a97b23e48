"""The first page of a folder of reproduced papers: where each table and figure is, and how the statements stand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import heapwright as hw
from heapwright import HeapwrightError
from heapwright_papers.appendix import TITLE, Found, appendix, by_statement
from heapwright_papers.declared import parts
from heapwright_papers.documents import documents, tables
from heapwright_papers.page import anchor, html_of
from heapwright_papers.verdicts import Kind

_KINDS = tuple(kind.value for kind in Kind)


def write_summary(folder: Path, pages: Sequence[str]) -> list[Path]:
    """Write README as Markdown and as HTML, and the appendix as HTML, from what the pages in `folder` have left there.

    Returns the three. Raises HeapwrightError where a page's NAME.json is damaged or a file cannot be written.
    """
    found = {name: _read(folder / f"{name}.json") for name in pages if (folder / f"{name}.json").is_file()}
    names = {
        "index": _index(found),
        "found": found,
        "all_findings": [one for findings in by_statement(found).values() for one in findings],
        "KINDS": _KINDS,
    }
    told = tables("pages/summary")
    markdown, statements = "\n\n".join(map(str, parts(told["part"], names))) + "\n", appendix(found)
    with hw.writing.filling(folder) as put:
        return [
            put("README.md", markdown),
            put("README.html", html_of(told["title"], markdown)),
            put("appendix.html", html_of(TITLE, statements, _KINDS)),
        ]


def _index(found: Found) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each document with its tables and figures, in their order, and where they are."""
    rows = []
    for document in documents():
        places: dict[str, str] = {}
        for one in document.statements:
            for name in re.findall(r"(?:Table|Figure) (?:\d+|[IVX]+)\b", one.where):
                if not one.same_as and one.page in found:
                    places.setdefault(name, _place(name, one.page, found[one.page]["headings"]))
        order = sorted(places, key=lambda name: (name.startswith("F"), len(name), name))
        if order:
            rows.append((document.citation, [(name, places[name]) for name in order]))
    return rows


def _place(name: str, page: str, headings: Sequence[str]) -> str:
    """The heading of a page's details that names a table or a figure, or the page where none does."""
    kind, number = name.split()
    named = re.compile(rf"\b{kind}s? (?:\w+(?:, | and ))*{number}\b")
    heading = next((one for one in headings if named.search(one)), None)
    return f"{page}-details.html#{anchor(heading)}" if heading else f"{page}.md"


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["findings"], found["title"], found["headings"], found["traffic"], found["footnote"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeapwrightError(
            f"{file}: not what a page leaves behind ({error}); remove it, or write its page again"
        ) from error
    return dict(found)
