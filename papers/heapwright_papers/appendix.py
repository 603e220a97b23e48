"""The appendix of a folder of reproduced papers: every statement of the documents, and what the pages are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heapwright_papers.answers import percent
from heapwright_papers.case_study import MUTANTS
from heapwright_papers.documents import Statement, documents
from heapwright_papers.page import AIM, table_of
from heapwright_papers.readings import sentences
from heapwright_papers.verdicts import Cause, Kind

Finding = Mapping[str, Any]
Found = Mapping[str, Mapping[str, Any]]

TITLE = "The source papers: every statement"
_INTRODUCTION = """\
Every table, figure and sentence that can be checked, in the order of its document; [the pages](README.md) say what they
come to. Statements that come twice are counted once. *Set-up*: what stands in for what the authors had. *Not tested*:
told from others, or beyond what this project can measure, with the reason."""
_READINGS = """\
## How the 2006 paper is read

Five of its sentences allow several meanings. The pages follow those under which most contests between allocators hold
jointly on [drr](drr.md), on which they were chosen; the others had no part in that, and judge them. Contests that
hold, and those in the paper's order with a difference that is larger than stated:"""
_AT_LEAST = """\
## What a bound on the other side refuses

A statement with a number holds on the pages within a band on both sides. With the paper's number as the least instead,
less a tenth, so many of the contests hold:"""
_MUTANTS = """\
## With another allocator in its place

With another allocator in the place of the one that a contest is about, on the first pages the proposed one, so many of
the contests that hold do not hold any more. What holds with each of them is set-up, and so is not counted here; what is
about traffic, or sets ways of one technique against each other, is no contest. Techniques proposes no allocator. The
aim is {aim} of a page's: else its statements would hold of any allocator."""
_WHY = """\
## Why statements do not hold

As far as it is known:"""
_TRAFFIC = """\
## What the pages are made of

With the first digits of the SHA-256 of the columns:"""


def by_statement(found: Found) -> dict[str, list[Finding]]:
    """What all pages found, by the ids of the statements."""
    by_id: dict[str, list[Finding]] = {}
    for page in found.values():
        for finding in page["findings"]:
            by_id.setdefault(finding["id"], []).append(finding)
    return by_id


def appendix(found: Found) -> str:
    """The appendix as Markdown, from what each page has left behind."""
    parts, by_id = [f"# {TITLE}", _INTRODUCTION], by_statement(found)
    for document in documents():
        where = {statement.id: statement.where for statement in document.statements}
        rows = [row for statement in document.statements for row in _rows(statement, where, by_id, found)]
        if rows:
            header = ("where", "the paper says", "the paper", "here", "verdict", "because", "page")
            parts += [f"## {document.citation}", table_of(header, rows, words=7)]
    parts += [*_readings(found), *_at_least(found), *_mutants(found)]
    causes = [(f"[{name}]({name}.md)", *_causes(page["findings"])) for name, page in found.items()]
    causes.append(("all", *_causes([one for findings in by_id.values() for one in findings])))
    parts += [_WHY, table_of(("page", *(cause.value for cause in Cause)), causes)]
    made = [
        (name, traffic, rows, seconds, f"`{digest}`")
        for name, page in found.items()
        for traffic, rows, seconds, digest in page["traffic"]
    ]
    parts += [_TRAFFIC, table_of(("page", "traffic", "rows", "seconds", "digest"), made, 2)]
    parts += dict.fromkeys(page["footnote"] for page in found.values() if page["footnote"])
    return "\n\n".join(parts) + "\n"


def _readings(found: Found) -> list[str]:
    """Each reading on each page that has readings."""
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
    return [_READINGS, table_of(("reading", *pages), rows)]


def _at_least(found: Found) -> list[str]:
    """Each contest of the pages with readings: whether it holds as the least, its verdict, and what refuses it."""
    says = {one.id: one.says for document in documents() for one in document.statements}
    rows, told = [], []
    for name, page in found.items():
        sides = page.get("at_least", ())
        verdicts = {(one["id"], one["on"]): one["verdict"] for one in page["findings"]}
        for one in sides:
            verdict = verdicts[one["id"], one["on"]]
            refused = _REFUSED.get((one["holds"], verdict), "–")
            rows.append((name, says[one["id"]], one["on"], "yes" if one["holds"] else "no", verdict, refused))
        if sides:
            hold = sum(verdicts[one["id"], one["on"]] in _HOLDING for one in sides)
            told.append(f"{name} {sum(one['holds'] for one in sides)} of {len(sides)}, {hold} within the band")
    header = ("page", "the paper says", "on", "as the least", "verdict", "refused by")
    return [f"{_AT_LEAST} {'; '.join(told)}.", table_of(header, rows, words=6)] if rows else []


_HOLDING = (Kind.HOLDS.value, Kind.NOISE.value)
_REFUSED = {
    (True, Kind.LARGER.value): "the upper bound",
    (True, Kind.FAILS.value): "the order to mean and median",
    (False, Kind.FAILS.value): "both",
    (False, Kind.HOLDS.value): "the least: short of it by more than a tenth",
    (False, Kind.NOISE.value): "the least: short of it by more than a tenth",
}
"""By whether a contest holds as the least, and its verdict."""


def _mutants(found: Found) -> list[str]:
    """On each page with contests that hold, how many do not with another allocator in the proposed one's place."""
    told = {name: page["mutants"] for name, page in found.items() if page.get("mutants", {}).get("holds")}
    shares = {name: sum(one["flipped"].values()) / len(one["flipped"]) / one["holds"] for name, one in told.items()}
    missed = ", ".join(name for name, share in shares.items() if share < AIM)
    aim = _MUTANTS.format(aim=percent(AIM)) + (f" Missed by {missed}." if missed else "")
    rows = [(name, one["holds"], *one["flipped"].values(), percent(shares[name])) for name, one in told.items()]
    return [aim, table_of(("page", "hold", *MUTANTS, "share"), rows)] if rows else []


def _causes(findings: Sequence[Finding]) -> tuple[str, ...]:
    count = Counter(finding["cause"] for finding in findings)
    return tuple(str(count[cause.value]) for cause in Cause)


def _rows(
    statement: Statement, where: Mapping[str, str], by_id: Mapping[str, Sequence[Finding]], found: Found
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
