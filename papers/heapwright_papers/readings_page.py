"""What a case study's page says of its readings: what holds under each, and with other heaps in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heapwright_papers.answers import judged, one_sided
from heapwright_papers.case_study import MUTANTS, PROPOSED, Case, Trial, read_as
from heapwright_papers.case_tables import names
from heapwright_papers.documents import statements_of
from heapwright_papers.page import Finding, Page
from heapwright_papers.readings import Joint, all_joint, alternatives, leading, sentences
from heapwright_papers.verdicts import Cause, Kind, Verdict

CHOSEN_ON = "drr"
"""The page on which the leading readings were chosen; they are judged on the others."""
EvaluationOutcome = Mapping[tuple[str, str], Finding]


def add_readings(
    page: Page, case: Case, trials: Sequence[Trial], base: Mapping[str, Any], joint: Joint
) -> dict[str, Any]:
    """Judge the page's statements under these readings and, where they lead, under the others and with other heaps.

    `base` is what the statements' expressions also see; the trials have every reading's heaps. Returns what the
    page's own expressions see of it: `ran`, the trials as they are read; how many contests `hold`, are `larger` than
    stated, and there are; `otherwise`, names of readings that do not lead; and for those that do `by_reading`, how many
    hold and are larger under each by its name, `at_once`, see `_at_once`, and `mutants`.
    """

    def under(heaps: Mapping[str, str], contests: bool = False) -> EvaluationOutcome:
        return _judged(case.name, {**names(case, *(trial.under(heaps) for trial in trials)), **base}, contests)

    result, seen = under(read_as(joint)), [trial.under(read_as(joint)) for trial in trials]
    hold, larger, contests = _counts(result)
    info: dict[str, Any] = {"ran": seen, "hold": hold, "larger": larger, "contests": contests, "otherwise": ()}
    if joint != leading():
        page.findings += result.values()
        return info | {"otherwise": _named(joint), "by_reading": {}, "at_once": {}, "mutants": {}}
    others = {name: under(read_as(item)) for name, item in alternatives().items()}
    page.findings += [_explained(key, item, others) for key, item in result.items()]
    mutants = {
        heap: under(read_as(joint) | {PROPOSED: heap}, contests=True)
        for heap in MUTANTS
        if all(trial.served(heap) for trial in trials)
    }
    held = [key for key, item in result.items() if item.statement.contest == "proposed" and item.holds]
    page.mutants = {
        "holds": len(held),
        "flipped": {heap: sum(not of[key].holds for key in held) for heap, of in mutants.items()},
    }
    page.readings = [
        {"reading": name, **{key: item.as_claim()[key] for key in ("id", "on", "verdict")}}
        for name, of in others.items()
        for item in of.values()
        if item.statement.contest
    ]
    seen_at_once = {**names(case, *seen), **base}
    page.at_least = [
        {"id": statement.id, "on": on, "holds": verdict.kind is Kind.HOLDS}
        for statement in statements_of(case.name).values()
        if statement.contest
        for answer in statement.answers
        for _, verdict, on in judged(one_sided(answer), seen_at_once)
    ]
    info |= {
        "by_reading": {name: _counts(of)[:2] for name, of in others.items()},
        "sentences": sentences(),
        "all_joint": len(all_joint()),
        "mutants": page.mutants,
        "at_once": {},
    }
    if case.name == CHOSEN_ON:
        info["at_once"] = _at_once({_named(item): under(read_as(item), contests=True) for item in all_joint()})
        page.most = {"leading": info["at_once"]["leading"], "most": info["at_once"]["most"]}
    return info


def _judged(page: str, seen: Mapping[str, Any], contests: bool) -> EvaluationOutcome:
    return {
        (statement.id, on): Finding(statement, here, verdict, on)
        for statement in statements_of(page).values()
        if statement.contest or not contests
        for answer in statement.answers
        for here, verdict, on in judged(answer, seen)
    }


def _explained(key: tuple[str, str], finding: Finding, others: Mapping[str, EvaluationOutcome]) -> Finding:
    """What does not hold, with another reading as the cause where it does under that."""
    by = [name for name, of in others.items() if of[key].holds]
    if finding.verdict.kind is not Kind.FAILS or not by:
        return finding
    why = f"it holds read as {' or '.join(by)}; {finding.verdict.why}"
    return replace(finding, verdict=Verdict(Kind.FAILS, Cause.READING, why))


def _counts(of: EvaluationOutcome) -> tuple[int, int, int]:
    """Of the contests, how many hold, how many are larger than stated, and how many there are."""
    count = Counter(item.verdict.kind for item in of.values() if item.statement.contest)
    return count[Kind.HOLDS] + count[Kind.NOISE], count[Kind.LARGER], count.total()


def _named(joint: Joint) -> tuple[str, ...]:
    return tuple(reading.name for reading in joint)


def _at_once(all_found: Mapping[tuple[str, ...], EvaluationOutcome]) -> dict[str, Any]:
    """How many contests hold under the leading combination and at most under any, and what another would give."""
    count = {item: _counts(of)[0] for item, of in all_found.items()}
    own, most = _named(leading()), max(count.values())
    rows, never = [], 0
    for key, finding in all_found[own].items():
        by = [item for item, of in all_found.items() if of[key].holds]
        never += not by
        if by and not finding.holds:
            best = max(by, key=lambda item: count[item])
            changed = ", ".join(f"`{name}`" for name in best if name not in own)
            rows.append([finding.statement.says, key[1], changed, f"{count[best]} of {len(all_found[own])}"])
    as_many = sum(item == most for item in count.values()) / len(count)
    return {"leading": count[own], "most": most, "as_many": as_many, "never": never, "rows": rows}
