"""What a case study's page says of its readings: what holds under each, and with other heaps in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heapwright_papers.answers import judged, one_sided
from heapwright_papers.case_study import MUTANTS, PROPOSED, Case, Trial, fragmentation, millions, read_as
from heapwright_papers.case_tables import names
from heapwright_papers.documents import statements_of
from heapwright_papers.likeness import ROWS, Likeness, Values, likeness, values_of
from heapwright_papers.page import Finding, Page
from heapwright_papers.readings import Joint, all_joint, alternatives, chosen_without, leading, sentences
from heapwright_papers.verdicts import Cause, Kind, Verdict

EvaluationOutcome = Mapping[tuple[str, str], Finding]


def add_readings(
    page: Page, case: Case, trials: Sequence[Trial], base: Mapping[str, Any], joint: Joint
) -> dict[str, Any]:
    """Judge the page's statements under these readings and, where they lead, under the others and with other heaps.

    `base` is what the statements' expressions also see; the trials have every reading's heaps. Returns what the
    page's own expressions see of it: `ran`, the trials as they are read; how many contests `hold`, are `larger` than
    stated, and were decided; `likenesses`, of its tables; `otherwise`, names of readings that do not lead; `others`, of
    those that the other applications choose, the ones that do not lead, and `apart`, its likeness under these; and for
    readings that lead `by_reading`, how many hold and are larger under each by its name, `like`, its likeness, and
    `mutants`.
    """

    def under(heaps: Mapping[str, str], contests: bool = False) -> EvaluationOutcome:
        return _judged(case.name, {**names(case, *(trial.under(heaps) for trial in trials)), **base}, contests)

    result, seen = under(read_as(joint)), [trial.under(read_as(joint)) for trial in trials]
    hold, larger, contests = _counts(result)
    values = {trial.on: values_of(trial) for trial in trials}
    page.tables = [_table(case, trial) for trial in seen]
    info: dict[str, Any] = {
        "ran": seen,
        "hold": hold,
        "larger": larger,
        "contests": contests,
        "otherwise": (),
        "others": [reading.name for reading in chosen_without(case.name) if reading not in leading()],
        "apart": _likeness(case, chosen_without(case.name), values),
        "likenesses": [one["likeness"] for one in page.tables if one["likeness"]],
    }
    if joint != leading():
        page.findings += result.values()
        return info | {"otherwise": _named(joint), "by_reading": {}, "mutants": {}}
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
        if item.statement.contest and item.decided
    ]
    seen_at_once = {**names(case, *seen), **base}
    page.at_least = [
        {"id": statement.id, "on": on, "holds": verdict.kind is Kind.HOLDS}
        for statement in statements_of(case.name).values()
        if statement.contest
        for answer in statement.answers
        for _, verdict, on in judged(one_sided(answer), seen_at_once)
        if result[statement.id, on].decided
    ]
    page.likeness = values
    info |= {
        "by_reading": {name: _counts(of)[:2] for name, of in others.items()},
        "like": {name: _likeness(case, item, values) for name, item in alternatives().items()},
        "sentences": sentences(),
        "all_joint": len(all_joint()),
        "mutants": page.mutants,
    }
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


def _likeness(case: Case, joint: Joint, values: Mapping[str, Values]) -> list[Likeness]:
    """Of the table on each kind of traffic, of those whose times are known."""
    found = (likeness(case, read_as(joint), info) for info in values.values())
    return [item for item in found if item is not None]


def _table(case: Case, trial: Trial) -> dict[str, Any]:
    """The paper's six allocators beside ours on a kind of traffic, as `reproduce` prints it in JSON."""
    timed = trial.counted
    wasted = {row: trial.average(row, fragmentation) for row in ROWS if trial.served(row)}
    times = {row: timed.average(row, millions) for row in ROWS if timed.timed(row)}
    known = {row: [wasted[row], times[row]] for row in ROWS if row in wasted and row in times}
    like = likeness(case, {row: row for row in ROWS}, known)
    return {
        "table": case.table,
        "on": trial.on,
        "rows": [
            {
                "allocator": row,
                "paper_fragmentation_percent": case.rows[row][0][0],
                "fragmentation_percent": wasted.get(row),
                "paper_seconds": case.rows[row][1][0],
                "instructions_millions": times.get(row),
            }
            for row in ROWS
        ],
        "likeness": like and like._asdict(),
    }


def _counts(of: EvaluationOutcome) -> tuple[int, int, int]:
    """Of the contests that are decided, how many hold, how many are larger than stated, and how many there are."""
    count = Counter(item.verdict.kind for item in of.values() if item.statement.contest and item.decided)
    return count[Kind.HOLDS] + count[Kind.NOISE], count[Kind.LARGER], count.total()


def _named(joint: Joint) -> tuple[str, ...]:
    return tuple(reading.name for reading in joint)
