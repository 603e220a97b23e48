"""The first page of a folder of reproduced papers: every statement of the documents, in order, with its verdicts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heapwright import HeapwrightError
from heapwright.files.writing import filling
from heapwright_papers.documents import Statement, documents
from heapwright_papers.page import html_of, table_of
from heapwright_papers.readings import sentences
from heapwright_papers.verdicts import Cause, Kind

_TITLE = "The source papers, beside Heapwright"
_INTRODUCTION = """\
Written by `heapwright reproduce`: the papers' tables and figures, ours on the same rows and columns, and what becomes
of each of their statements here. The same command on the same packet tables writes the same pages."""
_ORDER = """\
Every table, figure and sentence that can be checked, in the order of its document. Statements that come twice are
counted once. *Set-up*: what stands in for what the authors had. *Not tested*: told from others, or beyond what this
project can measure, with the reason."""

Finding = Mapping[str, Any]


def write_summary(folder: Path, pages: Sequence[str]) -> list[Path]:
    """Write README.md and README.html from what the pages in `folder` have left there; returns both.

    Raises HeapwrightError where a page's NAME.json is damaged or a file cannot be written.
    """
    found = {name: _read(folder / f"{name}.json") for name in pages if (folder / f"{name}.json").is_file()}
    by_id: dict[str, list[Finding]] = {}
    for page in found.values():
        for finding in page["findings"]:
            by_id.setdefault(finding["id"], []).append(finding)
    links = [(f"[{name}]({name}.md)", page["title"], *_counted(page["findings"])) for name, page in found.items()]
    links.append(("all", "", *_counted([one for findings in by_id.values() for one in findings])))
    causes = [(f"[{name}]({name}.md)", *_causes(page["findings"])) for name, page in found.items()]
    causes.append(("all", *_causes([one for findings in by_id.values() for one in findings])))
    parts = [
        f"# {_TITLE}",
        _INTRODUCTION,
        _INDEX,
        table_of(("document", "its tables and figures here"), _index(found), 2),
    ]
    parts += [_PAGES, table_of(("page", "what it reproduces", *_COUNTED), links, words=2)]
    parts += _readings(found)
    parts += [_WHY, table_of(("page", *(cause.value for cause in Cause)), causes)]
    parts += ["## Every statement", _ORDER]
    for document in documents():
        where = {statement.id: statement.where for statement in document.statements}
        rows = [row for statement in document.statements for row in _rows(statement, where, by_id, found)]
        if rows:
            header = ("where", "the paper says", "the paper", "here", "verdict", "because", "page")
            parts += [f"### {document.citation}", table_of(header, rows, words=7)]
    markdown = "\n\n".join(parts) + "\n"
    with filling(folder) as put:
        return [put("README.md", markdown), put("README.html", html_of(_TITLE, markdown))]


_INDEX = "## Tables and figures"
_PAGES = "## Pages\n\nHow many statements of each stand how:"


def _index(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each document with links to the pages that have its tables and figures, in their order."""
    rows = []
    for document in documents():
        numbers: dict[str, str] = {}
        for one in document.statements:
            for name in re.findall(r"(?:Table|Figure) (?:\d+|[IVX]+)\b", one.where):
                if not one.same_as and one.page in found:
                    numbers.setdefault(name, one.page)
        order = sorted(numbers, key=lambda name: (name.startswith("F"), len(name), name))
        if order:
            rows.append((document.citation, ", ".join(f"[{name}]({numbers[name]}.md)" for name in order)))
    return rows


_READINGS = """\
## How the 2006 paper is read

Five of its sentences allow several meanings. The pages follow those under which most contests between allocators hold
jointly on [drr](drr.md), on which they were chosen; the others had no part in that, and judge them. Contests that
hold, and those in the paper's order with a difference that is larger than stated:"""
_MUTANTS = """\
With another allocator in the proposed one's place, so many of the contests about it that hold do not hold any more:"""


def _readings(found: Mapping[str, Any]) -> list[str]:
    """Each reading on each page that has readings, and the mutation test."""
    pages = {name: page for name, page in found.items() if page.get("readings")}
    if not pages:
        return []
    rows = []
    for sentence in sentences():
        for one in sorted(sentence.readings, key=lambda one: one.name != sentence.leads):
            row = [f"`{one.name}`" + " (leads)" * (one.name == sentence.leads)]
            for page in pages.values():
                count = Counter(row["verdict"] for row in page["readings"] if row["reading"] == one.name)
                hold = count[Kind.HOLDS.value] + count[Kind.NOISE.value]
                row.append(f"{hold} + {count[Kind.LARGER.value]} of {count.total()}")
            rows.append(row)
    mutants = [
        (name, page["mutants"]["holds"], *page["mutants"]["flipped"].values())
        for name, page in pages.items()
        if page["mutants"]["holds"]
    ]
    told = ["", "hold", *next(iter(pages.values()))["mutants"]["flipped"]]
    return [_READINGS, table_of(("reading", *pages), rows), _MUTANTS, table_of(told, mutants)]


_COUNTED = tuple(kind.value for kind in Kind)
_WHY = "Why statements do not hold, as far as it is known:"


def _counted(findings: Sequence[Finding]) -> tuple[str, ...]:
    count = Counter(finding["verdict"] for finding in findings)
    return tuple(str(count[kind]) for kind in _COUNTED)


def _causes(findings: Sequence[Finding]) -> tuple[str, ...]:
    count = Counter(finding["cause"] for finding in findings)
    return tuple(str(count[cause.value]) for cause in Cause)


def _rows(
    statement: Statement, where: Mapping[str, str], by_id: Mapping[str, Sequence[Finding]], found: Mapping[str, Any]
) -> list[list[str]]:
    """A row for each verdict on the statement; those of the statement it repeats, where it repeats one."""
    findings = by_id.get(statement.same_as or statement.id, ())
    first = where.get(statement.same_as, "")
    link = f"[{statement.page}]({statement.page}.md)" if statement.page in found else statement.page
    told = [statement.where, statement.says, statement.value]
    if not findings:
        return [[*told, "", "", f"`heapwright reproduce {statement.page}` answers it", link]]
    return [[*told, *_verdict(finding, first), link] for finding in findings]


def _verdict(finding: Finding, first: str) -> tuple[str, str, str]:
    """What was found, or where it stands already; the verdict; its cause."""
    on = f"{finding['on']}: " if finding["on"] else ""
    here = f"see {first}" if first else finding["our_value"]
    return on + here, finding["verdict"], ": ".join(word for word in (finding["cause"], finding["why"]) if word)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["findings"], found["title"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeapwrightError(
            f"{file}: not what a page leaves behind ({error}); remove it, or write its page again"
        ) from error
    return dict(found)
