"""What a case study's page says of its readings: what holds under each, and with other heaps in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heapwright_papers.answers import judged, one_sided, percent
from heapwright_papers.case_claims import names
from heapwright_papers.case_study import MUTANTS, PROPOSED, Case, Trial, read_as
from heapwright_papers.case_tables import add_lead
from heapwright_papers.documents import statements_of
from heapwright_papers.page import Finding, Page
from heapwright_papers.readings import Joint, Sentence, all_joint, alternatives, leading, sentences
from heapwright_papers.verdicts import Cause, Kind, fails

CHOSEN_ON = "drr"
"""The page on which the leading readings were chosen; they are judged on the others."""
Found = Mapping[tuple[str, str], Finding]

_HEADING = "## How the paper is read"
_INTRODUCTION = """\
Five sentences of the paper allow several meanings. The tables above follow the first reading of each: of all {all}
combinations that under which most contests of the page about DRR hold *jointly*. {chosen} In each row below one
reading is taken, beside the leading ones of the other sentences."""
_CHOSEN = """\
So what holds on this page was fitted by that choice; [Easyport](easyport.md) and [URL](url.md) had no part in it, and
judge it."""
_NO_PART = "The choice was made on [DRR](drr.md); this page had no part in it, and judges it."
_AT_ONCE = """\
What one reading cannot give at once: of the contests that do not hold, these do under another combination, that under
which most others then hold."""
_MUTANTS = """\
With another allocator in the proposed one's place, of the {holds} contests about it that hold so many do not hold any
more: {told}. `{random}` is drawn once from the uses of the four techniques."""


def add_readings(page: Page, case: Case, trials: Sequence[Trial], base: Mapping[str, Any], joint: Joint) -> None:
    """Judge the page's statements under these readings and, where they lead, under the others and with other heaps.

    `base` is what the statements' expressions see beside the trials, which have every reading's heaps.
    """

    def under(heaps: Mapping[str, str], contests: bool = False) -> Found:
        return _judged(case.name, {**names(case, *(trial.under(heaps) for trial in trials)), **base}, contests)

    found = under(read_as(joint))
    counts = _counts(found)
    seen = [trial.under(read_as(joint)) for trial in trials]
    add_lead(page, case, seen, (_holding(found), counts[Kind.LARGER], counts.total()))
    if joint != leading():
        page.findings += found.values()
        page.text(f"{_HEADING}\n\nAs {', '.join(f'`{name}`' for name in _named(joint))}, which is not what leads.")
        return
    others = {name: under(read_as(one)) for name, one in alternatives().items()}
    page.findings += [_explained(key, one, others) for key, one in found.items()]
    mutants = {
        heap: under(read_as(joint) | {PROPOSED: heap}, contests=True)
        for heap in MUTANTS
        if all(trial.served(heap) for trial in trials)
    }
    _tell(page, others)
    if case.name == CHOSEN_ON:
        _tell_at_once(page, {_named(one): under(read_as(one), contests=True) for one in all_joint()})
    held = [key for key, one in found.items() if one.statement.contest == "proposed" and _holds(one)]
    flipped = {heap: sum(not _holds(of[key]) for key in held) for heap, of in mutants.items()}
    told = ", ".join(f"`{heap}` {count}" for heap, count in flipped.items())
    page.text(_MUTANTS.format(holds=len(held), told=told or "–", random=MUTANTS[-1]))
    page.readings = [
        {"reading": name, **{key: one.as_claim()[key] for key in ("id", "on", "verdict")}}
        for name, of in others.items()
        for one in of.values()
        if one.statement.contest
    ]
    page.mutants = {"holds": len(held), "flipped": flipped}
    seen_at_once = {**names(case, *seen), **base}
    page.at_least = [
        {"id": statement.id, "on": on, "holds": verdict.kind is Kind.HOLDS}
        for statement in statements_of(case.name).values()
        if statement.contest
        for answer in statement.answers
        for _, verdict, on in judged(one_sided(answer), seen_at_once)
    ]


def _judged(page: str, seen: Mapping[str, Any], contests: bool) -> Found:
    return {
        (statement.id, on): Finding(statement, here, verdict, on)
        for statement in statements_of(page).values()
        if statement.contest or not contests
        for answer in statement.answers
        for here, verdict, on in judged(answer, seen)
    }


def _holds(finding: Finding) -> bool:
    return finding.verdict.kind in (Kind.HOLDS, Kind.NOISE)


def _explained(key: tuple[str, str], finding: Finding, others: Mapping[str, Found]) -> Finding:
    """What does not hold, with another reading as the cause where it does under that."""
    by = [name for name, of in others.items() if _holds(of[key])]
    if finding.verdict.kind is not Kind.FAILS or not by:
        return finding
    return replace(finding, verdict=fails(Cause.READING, f"it holds read as {' or '.join(by)}; {finding.verdict.why}"))


def _counts(of: Found) -> Counter[Kind]:
    return Counter(one.verdict.kind for one in of.values() if one.statement.contest)


def _holding(of: Found) -> int:
    counts = _counts(of)
    return counts[Kind.HOLDS] + counts[Kind.NOISE]


def _tell(page: Page, others: Mapping[str, Found]) -> None:
    first = next(iter(others.values()))
    contests = sum(bool(one.statement.contest) for one in first.values())
    chosen = _CHOSEN if page.name == CHOSEN_ON else _NO_PART
    page.text(f"{_HEADING}\n\n{_INTRODUCTION.format(all=len(all_joint()), chosen=chosen)}")
    rows = []
    for sentence in sentences():
        for one in sorted(sentence.readings, key=lambda one: one.name != sentence.leads):
            counts, of = _counts(others[one.name]), others[one.name]
            mark = " (leads)" if one.name == sentence.leads else ""
            rows.append([f"`{one.name}`{mark}", one.says, _holding(of), counts[Kind.LARGER], contests])
    page.table(("reading", "what it takes the paper to say", "hold", "larger than stated", "of"), rows, words=2)
    page.text("The sentences, in the paper's own words, and what was fitted:")
    page.text("\n".join(_sentence(one) for one in sentences()))


def _sentence(sentence: Sentence) -> str:
    words = "; ".join(f"“{one}”" for one in sentence.words)
    fitted = [told for told in (sentence.fitted, *(one.fitted for one in sentence.readings)) if told]
    told = f" Fitted, and no evidence for that table: {'; '.join(fitted)}." if fitted else ""
    return f"- {sentence.where}: {words}. Open: {sentence.open}.{told}"


def _named(joint: Joint) -> tuple[str, ...]:
    return tuple(reading.name for reading in joint)


def _tell_at_once(page: Page, all_found: Mapping[tuple[str, ...], Found]) -> None:
    """What another combination would give, and that none gives more."""
    count = {one: _holding(of) for one, of in all_found.items()}
    own, most = _named(leading()), max(count.values())
    lead = all_found[own]
    page.most = {"leading": count[own], "most": most}
    rows = []
    for key, finding in lead.items():
        by = [one for one, of in all_found.items() if _holds(of[key])]
        if not _holds(finding) and by:
            best = max(by, key=lambda one: count[one])
            changed = ", ".join(f"`{name}`" for name in best if name not in own)
            rows.append([finding.statement.says, key[1], changed, f"{count[best]} of {len(lead)}"])
    never = sum(not any(_holds(of[key]) for of in all_found.values()) for key in lead)
    share = percent(sum(one == most for one in count.values()) / len(count), 1)
    page.text(
        f"The leading combination holds {count[own]} of {len(lead)}, no other more ({share} as many). {_AT_ONCE} "
        f"{never} hold under none."
    )
    page.table(("the paper says", "on", "read instead", "then hold"), rows, words=3)
