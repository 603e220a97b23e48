"""What stands over all pages of a folder: the first page and the appendix.

The first lists where each table and figure is, and how the statements stand; the appendix has every statement of the
documents, and what the pages are made of.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import heapwright as hw
from heapwright import HeapwrightError
from heapwright_papers.case_study import MUTANTS
from heapwright_papers.declared import parts, seen
from heapwright_papers.documents import Document, documents, tables
from heapwright_papers.likeness import APPLICATIONS, WEIGHT, WHOLE_PROGRAM, held_out
from heapwright_papers.page import AIM, anchor, html_of
from heapwright_papers.readings import sentences
from heapwright_papers.verdicts import Cause, Kind

Finding = Mapping[str, Any]
EvaluationOutcome = Mapping[str, Mapping[str, Any]]
_KINDS = tuple(kind.value for kind in Kind)


def write_summary(folder: Path, pages: Sequence[str]) -> list[Path]:
    """Write README as Markdown and as HTML, and the appendix as HTML, from what the pages in `folder` have left there.

    Returns the three. Raises HeapwrightError where a page's NAME.json is damaged or a file cannot be written.
    """
    results = {name: _left(folder / f"{name}.json") for name in pages if (folder / f"{name}.json").is_file()}
    names = {
        "index": _index(results),
        "found": results,
        "all_findings": [finding for findings in by_statement(results).values() for finding in findings],
        "KINDS": _KINDS,
    }
    markdown, statements = _filled("summary", names), appendix(results)
    with hw.writing.filling(folder) as put:
        return [
            put("README.md", markdown),
            put("README.html", html_of(tables("pages/summary")["title"], markdown)),
            put("appendix.html", html_of(tables("pages/appendix")["title"], statements, _KINDS)),
        ]


def _index(result: EvaluationOutcome) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each document with its tables and figures, in their order, and where they are."""
    rows = []
    for document in documents():
        places: dict[str, str] = {}
        for statement in document.statements:
            for name in re.findall(r"(?:Table|Figure) (?:\d+|[IVX]+)\b", statement.where):
                if not statement.same_as and statement.page in result:
                    places.setdefault(name, _place(name, statement.page, result[statement.page]["headings"]))
        order = sorted(places, key=lambda name: (name.startswith("F"), len(name), name))
        if order:
            rows.append((document.citation, [(name, places[name]) for name in order]))
    return rows


def _place(name: str, page: str, headings: Sequence[str]) -> str:
    """The heading of a page's details that names a table or a figure, or the page where none does."""
    kind, number = name.split()
    named = re.compile(rf"\b{kind}s? (?:\w+(?:, | and ))*{number}\b")
    heading = next((item for item in headings if named.search(item)), None)
    return f"{page}-details.html#{anchor(heading)}" if heading else f"{page}.md"


def _left(file: Path) -> dict[str, Any]:
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        result["findings"], result["title"], result["headings"], result["traffic"], result["footnote"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeapwrightError(
            f"{file}: not what a page leaves behind ({error}); remove it, or write its page again"
        ) from error
    return dict(result)


# ---- the appendix ----------------------------------------------------------------------------------------------------


def by_statement(result: EvaluationOutcome) -> dict[str, list[Finding]]:
    """What all pages found, by the ids of the statements."""
    by_id: dict[str, list[Finding]] = {}
    for page in result.values():
        for finding in page["findings"]:
            by_id.setdefault(finding["id"], []).append(finding)
    return by_id


def appendix(result: EvaluationOutcome) -> str:
    """The appendix as Markdown, from what each page has left behind."""
    by_id = by_statement(result)
    names = {
        "documents": documents(),
        "answered": lambda document: _answered(document, by_id, result),
        "read": {name: _read(page["readings"]) for name, page in result.items() if page.get("readings")},
        "held_out": _held_out(result),
        "WEIGHT": WEIGHT,
        "WHOLE_PROGRAM": WHOLE_PROGRAM,
        "sentences": sentences(),
        "AIM": AIM,
        "MUTANTS": MUTANTS,
        "CAUSES": [cause.value for cause in Cause],
        "found": result,
        "by_id": by_id,
    }
    return _filled("appendix", names)


def _held_out(result: EvaluationOutcome) -> dict[str, Any]:
    """See `likeness.held_out`; nothing where an application has no page, or no times."""
    found = {name: result.get(name, {}).get("likeness", {}) for name in APPLICATIONS}
    return held_out(found) if all(found.values()) and all(v for of in found.values() for v in of.values()) else {}


def _filled(name: str, names: Mapping[str, Any]) -> str:
    return "\n\n".join(map(str, parts(tables(f"pages/{name}")["part"], seen(name, {}, names)))) + "\n"


def _read(readings: Sequence[Finding]) -> dict[str, tuple[int, int, int]]:
    """By the name of a reading how many contests hold, how many are larger than stated, and of how many."""
    counts: dict[str, Counter[str]] = {}
    for row in readings:
        counts.setdefault(row["reading"], Counter())[row["verdict"]] += 1
    return {
        name: (count[Kind.HOLDS.value] + count[Kind.NOISE.value], count[Kind.LARGER.value], count.total())
        for name, count in counts.items()
    }


def _answered(document: Document, by_id: Mapping[str, Sequence[Finding]], result: EvaluationOutcome) -> list[list[str]]:
    """A row for each verdict on each statement; those of the statement it repeats, where it repeats one."""
    where, rows = {statement.id: statement.where for statement in document.statements}, []
    for statement in document.statements:
        name = statement.page
        link = f"[{name}]({name}.md)" if name in result else name
        info = [statement.where, statement.says, statement.value]
        findings = by_id.get(statement.same_as or statement.id, ())
        rows += [[*info, *_verdict(finding, where.get(statement.same_as, "")), link] for finding in findings]
        if not findings:
            rows.append([*info, "", "", f"`heapwright reproduce {name}` answers it", link])
    return rows


def _verdict(finding: Finding, first: str) -> tuple[str, str, str]:
    """What was found, or where it stands already; the verdict; its cause."""
    on = f"{finding['on']}: " if finding["on"] else ""
    here = f"see {first}" if first else finding["our_value"]
    return on + here, finding["verdict"], ": ".join(word for word in (finding["cause"], finding["why"]) if word)
