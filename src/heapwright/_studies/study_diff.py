"""Differences of two studies of a program: recommendations, reserve, metrics, front, and holders of the peak.

A reserve follows from the recordings alone, so for the same recordings any difference is a change. Two recordings of
one build differ, too; a difference up to `NOISE` counts as noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from heapwright._replay.metrics import METRICS, ON_RECORDING, Value
from heapwright._studies.analysis import Analysis, reserve_for
from heapwright._studies.comparison import HeapComparison, before_and_after
from heapwright._studies.decision import Deciding, Decision, change
from heapwright._studies.gate import MOST_CAUSES, Cause, caused
from heapwright._studies.originals import originals
from heapwright._studies.recommendations import EQUAL_WITHIN, PICKS, NoPickError, Pick
from heapwright._studies.results import Candidate
from heapwright._support.errors import HeapwrightError
from heapwright._traces.profile import profile
from heapwright._traces.trace import Trace

NOISE = 1.05
"""Factor by which another recording of the same build may change the need of a heap: 25 to 30 of 36 pairs of recordings
differ by no more for the same live bytes, with four heaps (docs/robustness.md).
"""

PER_CALL = "accesses"
"""Metric that is compared per call, because traces differ in their number of calls."""

Verdict = Literal["same", "noise", "change", "unknown"]
"""Kinds of a change; "unknown" is another recommendation if the old one has no results on the new traces."""


@dataclass(frozen=True)
class RecommendedHeap:
    """Heap of one of the studies, with its needs there.

    Attributes:
        id, label, title: as for `Decision`.
        reserve_bytes: the arena to reserve; None if none serves.
        metrics: over all traces of that study.
    """

    id: str
    label: str
    title: str
    reserve_bytes: int | None
    metrics: Mapping[str, Value]


@dataclass(frozen=True)
class PickChange:
    """A recommendation in both studies, None if one lacks it; "noise" if the old recipe does as well as the new one."""

    how: Pick
    before: RecommendedHeap | None
    after: RecommendedHeap | None
    verdict: Verdict


@dataclass(frozen=True)
class Side:
    """Side of the comparison: one of the studies.

    Attributes:
        study: its file.
        objectives: the objectives of the comparison.
        traces: number of calls by trace name.
        requested_peak_bytes: peak of live requested bytes.
        tried: number of recipes evaluated, in words.
        front: the recipes on it.
        picks: balanced, smallest and fastest recommendation, each heap once; they need not be on the front.
    """

    study: Path
    objectives: tuple[str, ...]
    traces: Mapping[str, int]
    requested_peak_bytes: int
    tried: str
    front: tuple[Candidate, ...]
    picks: tuple[Candidate, ...]

    @property
    def calls(self) -> int:
        """Number of calls of all traces together."""
        return sum(self.traces.values())

    def best(self, key: str) -> float | None:
        """The best value of an objective on the front, of accesses per call; None if none is known."""
        values = [float(value) for item in self.front if (value := item.metrics[key]) is not None]
        best = (min if METRICS[key].direction == "min" else max)(values, default=None)
        return best / max(self.calls, 1) if best is not None and key == PER_CALL else best

    def as_json(self) -> dict[str, Any]:
        """Plain values; of the front the ids."""
        return {
            **vars(self),
            "study": str(self.study),
            "front": [item.id for item in self.front],
            "picks": [pick.id for pick in self.picks],
        }


@dataclass(frozen=True)
class StudyDiff:
    """Comparison of two studies.

    Attributes:
        before, after: the studies.
        same_traces: whether both have the same calls.
        decision: the decision of the new study.
        picks: balanced, smallest and fastest recommendation.
        today: the old balanced recommendation in the new study; None if it has no results there. Its reserve is None if
            it lacks some of the new recommendation's results.
        reserve: kind of the difference between the reserves of the balanced recommendations.
        table: figures of the balanced recommendations before and after, and of the old one in the new study if they
            differ.
        causes: causes of a larger peak; empty if the traces are the same, or cannot be read.
        missing: a sentence about why causes are not known; "" if they are.
    """

    before: Side
    after: Side
    same_traces: bool
    decision: Decision
    picks: tuple[PickChange, ...]
    today: RecommendedHeap | None
    reserve: Verdict
    table: HeapComparison
    causes: tuple[Cause, ...]
    missing: str

    @property
    def balanced(self) -> tuple[RecommendedHeap, RecommendedHeap]:
        """The balanced pick before and after."""
        (result,) = (pick for pick in self.picks if pick.how == "balanced")
        assert result.before and result.after
        return result.before, result.after

    @property
    def front_in_both(self) -> int:
        """How many recipes are on both fronts."""
        before, after = ({item.id for item in side.front} for side in (self.before, self.after))
        return len(before & after)

    def sentences(self) -> list[str]:
        """What changed in words, the reserve first."""
        return [
            self.reserve_sentence(),
            *map(self.pick_sentence, self.picks),
            self.front_sentence(),
            *self.peak_sentences(),
            *(f"{cause}." for cause in self.causes[:MOST_CAUSES]),
            *filter(None, [self.missing]),
        ]

    def reserve_sentence(self) -> str:
        """Sentence about the difference of the reserves, and whether that is noise."""
        before, after = (item.reserve_bytes for item in self.balanced)
        if before is None or after is None:
            return f"Reserve: {_bytes(before)} before, {_bytes(after)} now."
        if before == after:
            return f"Reserve: {after:,} bytes, as before."
        noise = f", no more than another recording of the same build makes ({100 * (NOISE - 1):.0f} %)"
        text = f"Reserve: {before:,} bytes before, {after:,} now ({change(before, after)})"
        return f"{text}{noise if self.reserve == 'noise' else ''}."

    def pick_sentence(self, item: PickChange) -> str:
        """Sentence about the change of a recommendation."""
        name = item.how.capitalize()
        if item.before is None or item.after is None:
            return f"{name}: {_named(item.before)} before, {_named(item.after)} now."
        if item.verdict == "same":
            return f"{name}: {_named(item.after)}, as before."
        why = {
            "noise": "; the one before would still do as well",
            "change": "; the one before would no longer do as well",
            "unknown": "; the one before was not tried on all of today's traces",
        }[item.verdict]
        return f"{name}: {_named(item.before)} before, {_named(item.after)} now{why}."

    def front_sentence(self) -> str:
        """Sentence about the difference of the fronts."""
        before, after, keys = len(self.before.front), len(self.after.front), self.after.objectives
        best = [
            f", {_best(key)} {_shown(self.after.best(key))} (before {_shown(self.before.best(key))})" for key in keys
        ]
        return f"Front: {after} recipes, before {before}, {self.front_in_both} on both{''.join(best)}."

    def peak_sentences(self) -> list[str]:
        """Sentences about the difference of the live peaks; none for the same traces."""
        before, after = self.before.requested_peak_bytes, self.after.requested_peak_bytes
        if self.same_traces:
            return []
        return [f"Live at the peak: {after:,} bytes, before {before:,} ({change(before, after)})."]

    def as_json(self) -> dict[str, Any]:
        """Plain values: docs/commands.md names the keys."""
        return {
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "same_traces": self.same_traces,
            "reserve": self.reserve,
            "picks": {
                pick.how: {"before": _picked(pick.before), "after": _picked(pick.after), "verdict": pick.verdict}
                for pick in self.picks
            },
            "today": _picked(self.today),
            "front_in_both": self.front_in_both,
            "causes": [{**vars(cause), "told": str(cause)} for cause in self.causes],
            "missing": self.missing,
        }


def compare(old: Analysis, new: Analysis, *, moved: Sequence[Path] = ()) -> StudyDiff:
    """Compare two studies by the objectives of the new one, on the recordings if one of them has no futures.

    ``moved``: present paths of traces. Raises `HeapwrightError` if a front is empty, or the old study lacks an
    objective's values.
    """
    keys = _common_objectives(old, new)
    same = {info.digest for info in old.traces()} == {info.digest for info in new.traces()}
    traces = [] if same else [_read(study, moved) for study in (old, new)]
    missing = [trace for trace in traces if isinstance(trace, str)]
    decisions = [Deciding(study, keys).on(study.pick("balanced", keys)) for study in (old, new)]
    before, after = (_of(study, decision.pick) for study, decision in zip((old, new), decisions, strict=True))
    today = new.combined.find(before.id)
    balanced = PickChange("balanced", before, after, _moved(new, today, after))
    picks = [balanced, *(_pick_change(old, new, how, keys) for how in PICKS[1:])]
    then = None
    if today and today.id != after.id:
        then = replace(Deciding(new, keys).on(today), reserve_bytes=_reserve(new, today.id, after.id))
    return StudyDiff(
        side_of(old, keys),
        side_of(new, keys),
        same,
        decisions[1],
        tuple(picks),
        replace(_of(new, today), reserve_bytes=_reserve(new, today.id, after.id)) if today else None,
        verdict_of(before, after, same),
        before_and_after(decisions[0], decisions[1], then),
        _causes_of(traces),
        f"Who holds more is not known: {missing[-1]}." if missing else "",
    )


def _common_objectives(old: Analysis, new: Analysis) -> tuple[str, ...]:
    """The new study's objectives, on the recordings if one of both studies has no futures."""
    if old.combined.foreseen and new.combined.foreseen:
        return new.objectives
    return tuple(dict.fromkeys(ON_RECORDING.get(key, key) for key in new.objectives))


def _pick_change(old: Analysis, new: Analysis, how: Pick, keys: tuple[str, ...]) -> PickChange:
    """Change of one recommendation; a study may have none of its kind."""
    had, has = (None if (item := _pick(study, how, keys)) is None else _of(study, item) for study in (old, new))
    known = None if had is None else new.combined.find(had.id)
    return PickChange(how, had, has, _moved(new, known, has))


def _causes_of(traces: Sequence[Sequence[Trace] | str]) -> tuple[Cause, ...]:
    """Causes of a change between two traces; none if the studies share theirs, or one cannot be read."""
    readable = [trace for trace in traces if not isinstance(trace, str)]
    return tuple(_causes(*readable)) if readable and len(readable) == len(traces) else ()


def side_of(study: Analysis, objectives: tuple[str, ...]) -> Side:
    """The side of a comparison for a study."""
    front = study.front(objectives)
    peak = max((item.metrics["requested_peak_bytes"] or 0 for item in front), default=0)
    traces = {info.name: info.events for info in study.traces()}
    picks = {item.id: item for how in PICKS if (item := _pick(study, how, objectives)) is not None}
    return Side(study.path, objectives, traces, int(peak), study.tried, tuple(front), tuple(picks.values()))


def _read(study: Analysis, moved: Sequence[Path]) -> list[Trace] | str:
    """The traces, or why they cannot be read; paths of ``moved`` that belong to the other study are ignored."""
    why = ""
    for given in (moved, ()):
        try:
            return originals(study, given, repair=True)
        except HeapwrightError as error:
            why = why or str(error)
    return why


def verdict_of(before: RecommendedHeap, after: RecommendedHeap, same_traces: bool) -> Verdict:
    """Whether the reserve of one pick differs from another's by more than a recording of the same build makes."""
    had, has = before.reserve_bytes, after.reserve_bytes
    if had == has:
        return "same"
    if had is None or has is None or same_traces:
        return "change"
    return "noise" if max(had, has) <= NOISE * min(had, has) else "change"


def _moved(new: Analysis, old_pick: Candidate | None, pick: RecommendedHeap | None) -> Verdict:
    """Whether another recommendation is a change, and not noise.

    It is noise if the old recipe needs as little in the new study, memory within `NOISE` and the rest within
    `EQUAL_WITHIN`.
    """
    if old_pick is None or pick is None:
        return "unknown"
    if old_pick.id == pick.id:
        return "same"
    if old_pick.metrics["failed"]:
        return "change"
    reserve = _reserve(new, old_pick.id, pick.id)
    if reserve is None or pick.reserve_bytes is None:
        return "unknown"
    if new.robustness().why_not(old_pick.id) or reserve > max(NOISE, EQUAL_WITHIN) * pick.reserve_bytes:
        return "change"
    for key in new.objectives:
        own, other = float(pick.metrics[key] or 0), float(old_pick.metrics[key] or 0)
        worse = other > EQUAL_WITHIN * own if METRICS[key].direction == "min" else own > EQUAL_WITHIN * other
        if worse and not key.endswith("_bytes"):
            return "change"
    return "noise"


def _reserve(study: Analysis, id: str, pick: str) -> int | None:
    """The reserve of a recipe; None if it lacks some of the recommendation's results."""
    needs, requested = study.needs(id), study.needs(pick)
    tried = {(need.role, need.trace) for need in needs}
    return reserve_for(needs, proved=study.proved) if tried >= {(item.role, item.trace) for item in requested} else None


def _causes(old: Sequence[Trace], new: Sequence[Trace]) -> list[Cause]:
    """Causes of the larger peak of the trace with the highest peak, compared with its counterpart."""
    trace = max(new, key=lambda item: item.peak_live_bytes)
    named = [item for item in old if item.name == trace.name] or list(old)
    if len(named) != 1:
        return []
    before, after = (profile(item)["at_peak"] for item in (named[0], trace))
    return caused(before, after)


def _of(study: Analysis, candidate: Candidate) -> RecommendedHeap:
    title = study.recipe(candidate.id).title()
    reserve = study.reserve(candidate.id)
    return RecommendedHeap(candidate.id, candidate.label, title, reserve, candidate.metrics)


def _pick(study: Analysis, how: Pick, keys: Sequence[str]) -> Candidate | None:
    try:
        return study.pick(how, keys)
    except NoPickError:
        return None


def _picked(item: RecommendedHeap | None) -> dict[str, Any] | None:
    return None if item is None else dict(vars(item))


def _best(key: str) -> str:
    most = "most" if METRICS[key].direction == "max" else "least"
    return f"{most} {key.removesuffix('_bytes').replace('_', ' ')}{' a call' if key == PER_CALL else ''}"


def _named(item: RecommendedHeap | None) -> str:
    if item is None:
        return "none"
    return item.label if item.label != item.id else f"{item.title} ({item.id})"


def _bytes(value: int | None) -> str:
    return "no arena serves" if value is None else f"{value:,} bytes"


def _shown(value: Value) -> str:
    return (
        "-"
        if value is None
        else f"{value:,.0f}"
        if float(value) >= 1000 or float(value).is_integer()
        else f"{value:,.4g}"
    )
