"""The appendix of a folder of reproduced papers: every statement of the documents, and what the pages are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heapwright_papers.case_study import MUTANTS
from heapwright_papers.declared import parts
from heapwright_papers.documents import Document, documents, tables
from heapwright_papers.page import AIM
from heapwright_papers.readings import sentences
from heapwright_papers.verdicts import Cause, Kind

Finding = Mapping[str, Any]
Found = Mapping[str, Mapping[str, Any]]

TITLE = str(tables("pages/appendix")["title"])


def by_statement(found: Found) -> dict[str, list[Finding]]:
    """What all pages found, by the ids of the statements."""
    by_id: dict[str, list[Finding]] = {}
    for page in found.values():
        for finding in page["findings"]:
            by_id.setdefault(finding["id"], []).append(finding)
    return by_id


def appendix(found: Found) -> str:
    """The appendix as Markdown, from what each page has left behind."""
    by_id = by_statement(found)
    names = {
        "documents": documents(),
        "answered": lambda document: _answered(document, by_id, found),
        "read": {name: _read(page["readings"]) for name, page in found.items() if page.get("readings")},
        "sentences": sentences(),
        "sides": {name: _sides(page) for name, page in found.items() if page.get("at_least")},
        "says": {one.id: one.says for document in documents() for one in document.statements},
        "told": {name: page["mutants"] for name, page in found.items() if page.get("mutants", {}).get("holds")},
        "AIM": AIM,
        "MUTANTS": MUTANTS,
        "CAUSES": [cause.value for cause in Cause],
        "found": found,
        "by_id": by_id,
    }
    return "\n\n".join(map(str, parts(tables("pages/appendix")["part"], names))) + "\n"


def _read(readings: Sequence[Finding]) -> dict[str, tuple[int, int, int]]:
    """By the name of a reading how many contests hold, how many are larger than stated, and of how many."""
    counts: dict[str, Counter[str]] = {}
    for row in readings:
        counts.setdefault(row["reading"], Counter())[row["verdict"]] += 1
    return {
        name: (count[Kind.HOLDS.value] + count[Kind.NOISE.value], count[Kind.LARGER.value], count.total())
        for name, count in counts.items()
    }


def _sides(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each contest of a page with readings: whether it holds as the least, and its verdict."""
    verdicts = {(one["id"], one["on"]): one["verdict"] for one in page["findings"]}
    return [{**one, "verdict": verdicts[one["id"], one["on"]]} for one in page["at_least"]]


def _answered(document: Document, by_id: Mapping[str, Sequence[Finding]], found: Found) -> list[list[str]]:
    """A row for each verdict on each statement; those of the statement it repeats, where it repeats one."""
    where, rows = {statement.id: statement.where for statement in document.statements}, []
    for statement in document.statements:
        name = statement.page
        link = f"[{name}]({name}.md)" if name in found else name
        told = [statement.where, statement.says, statement.value]
        findings = by_id.get(statement.same_as or statement.id, ())
        rows += [[*told, *_verdict(finding, where.get(statement.same_as, "")), link] for finding in findings]
        if not findings:
            rows.append([*told, "", "", f"`heapwright reproduce {name}` answers it", link])
    return rows


def _verdict(finding: Finding, first: str) -> tuple[str, str, str]:
    """What was found, or where it stands already; the verdict; its cause."""
    on = f"{finding['on']}: " if finding["on"] else ""
    here = f"see {first}" if first else finding["our_value"]
    return on + here, finding["verdict"], ": ".join(word for word in (finding["cause"], finding["why"]) if word)
