"""Decision that a study leads to: the recipe to ship, the memory to reserve, the evidence, and the alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from heapwright._recipes.worst_steps import WorstSteps, worst_steps
from heapwright._replay.metrics import METRICS, Value, words
from heapwright._replay.reserve import MARGIN, with_margin
from heapwright._studies import pareto
from heapwright._studies.analysis import Analysis, MemoryNeed, load_served, reserve_for, reserve_for_more
from heapwright._studies.recommendations import EQUAL_WITHIN, MEMORY, RESERVE, WELL_KNOWN, WORST_CALL, Condition, Pick
from heapwright._studies.results import ADMITTED, AS_MUCH, Candidate
from heapwright._traces.copies import Load
from heapwright._traces.failures import CHANGE_LIFE
from heapwright._traces.leaks import Leak, leak_sentence
from heapwright._traces.live_bound import LiveBound

STEP = 1.01
"""Factor by which an alternative has to be better in an objective; recipes within it in all are equivalent."""

MOST_EQUIVALENT = 3
"""Most recipes that are named as equivalent to the recommendation."""

_NOUNS = {
    "long_run_bytes": "bytes",
    "long_run_accesses": "accesses a call",
    "footprint_bytes": "bytes",
    "accesses": "accesses",
    "code_bytes": "bytes of code",
    "instructions_pair_mean": "instructions a pair",
}


Why = Literal["yours", "reference", "step"]


@dataclass(frozen=True)
class Alternative:
    """Alternative to the recommendation.

    Attributes:
        heap: it, with its metrics over all traces.
        why: "yours", the current allocator; "reference", a well-known allocator; or "step", the nearest member of the
            front that is better in `better`.
        better: the objective in which a step is better, or "".
        title: its design in a few words (`Recipe.title`).
        needs: its memory need on each trace with a result.
        steps: the bound on its calls by construction.
        reserve_bytes: as `Decision.reserve_bytes`; None also if it lacks results on some of the same traces.
        why_not: why it has no bounded long-run need; None if it has, and if that was not tested.
    """

    heap: Candidate
    why: Why
    better: str
    title: str
    needs: list[MemoryNeed]
    steps: WorstSteps
    reserve_bytes: int | None
    why_not: str | None = None


@dataclass(frozen=True)
class Decision:
    """Decision for a recipe to ship.

    Attributes:
        pick: the heap.
        title: its design in a few words (`Recipe.title`).
        objectives: the objectives by which it was chosen.
        calls: number of calls of all traces explored on.
        needs: its memory need on each trace with a result.
        reserve_bytes: the arena to reserve for a load like the recorded one (`heapwright._replay.arena_sizes`); None if
            no recording was served.
        equivalent: the number of other recipes within `STEP` of it in every objective, and the nearest
            `MOST_EQUIVALENT` of them.
        others: the current allocator, well-known ones, and the next step to less of each of the first two objectives.
        steps: the bound on its calls by construction; None if not requested.
        why_not: why it is not fit to ship; None if it is.
        worst_call: accesses of its worst-case malloc or free, on the future if it was replayed there.
        keep: whether the current allocator is within the noise of it in every objective, and in the worst-case call.
        most_admitted: the largest share of the bytes that any recipe admits; None if that is no objective.
        arena: the bound on its reserve, bytes; None if there was none.
        leaks: by trace, what grows in a straight line in it (`heapwright._traces.leaks`).
        failures: by trace, the requests that failed while it was recorded, in words.
        bounds: by trace, what bounds its live objects; the reserve then serves any order of these.
    """

    pick: Candidate
    title: str
    objectives: tuple[str, ...]
    calls: int
    needs: list[MemoryNeed]
    reserve_bytes: int | None
    equivalent: tuple[int, list[Candidate]]
    others: list[Alternative]
    steps: WorstSteps | None = None
    why_not: str | None = None
    worst_call: float = float("nan")
    keep: bool = False
    most_admitted: float | None = None
    arena: int | None = None
    leaks: Mapping[str, Sequence[Leak]] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, LiveBound] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Sentences of the decision: leaks, the recipe to ship, the evidence, then remarks on alternatives."""
        return [self.evidence(), *self.remarks()]

    def remarks(self) -> list[str]:
        """Sentences of the decision after the evidence."""
        bound = [f"By construction {self.steps.sentence()}."] if self.steps else []
        return [
            *self._admitted(),
            *bound,
            *self.long_run(),
            *(info for other in self.others if (info := self._compared(other))),
            *self._equivalent_sentences(),
        ]

    def _admitted(self) -> list[str]:
        if self.most_admitted is None:
            return []
        share = _number(self.pick, ADMITTED)
        most = f"and another recipe {100 * self.most_admitted:.4g} %"
        info = "as much as any" if share >= AS_MUCH * self.most_admitted else most
        return [f"It admits {100 * share:.4g} % of the requested bytes, {info}."]

    def long_run(self) -> list[str]:
        """Sentence about its results on the future and in the stress test."""
        metrics = self.pick.metrics
        if metrics["long_run_calls"] is None:
            return ["Its need in the long run was not estimated: explore with a long run estimates it."]
        calls, grown = int(metrics["long_run_calls"]), float(metrics["long_run_growth"] or 1)
        text = f"On a future of {calls:,} calls its footprint grows by {max(0.0, 100 * (grown - 1)):.1f} % in the last"
        text += f" nine tenths beyond best fit's; its worst-case malloc or free makes {self.worst_call:,.0f} accesses"
        stress = metrics["growth_ratio"]
        more = "" if stress is None else f"; stress test: {100 * (float(stress) - 1):.1f} % growth in the worst loop"
        return [f"{text}{more}."]

    def evidence(self) -> str:
        """Sentences about leaks, the recipe to ship, the memory to reserve, and the traces behind both."""
        return " ".join([*self._leak_sentences(), self._shipped(), *self._failure_sentences()])

    def _leak_sentences(self) -> list[str]:
        """A sentence for each trace that leaks: no reserve is enough for it."""
        needs = {need.trace: need.bytes for need in self.needs if need.role == "explored"}
        return [leak_sentence(leaks, name, self.reserve_bytes, needs.get(name)) for name, leaks in self.leaks.items()]

    def _failure_sentences(self) -> list[str]:
        """A sentence for each trace with requests that failed while it was recorded."""
        return [f"{name}: {text}; {CHANGE_LIFE}." for name, text in self.failures.items()]

    def _shipped(self) -> str:
        """Sentences about the recipe to ship, the memory to reserve, and the traces behind both."""
        if self.reserve_bytes is None:
            return f"No arena serves {self.named}: requests fail on every trace."
        explored, held_out, futures, copies = (
            [need for need in self.needs if need.role == role and not need.loaded]
            for role in ("explored", "held out", "future", "copy")
        )
        many = len(explored) > 1 or bool(held_out)
        recorded = "the recordings" if many else "the recording"
        most, of_future = most_needed([*explored, *held_out]), most_needed(futures)
        text = f"Ship {self.named}: reserve {self.reserve_bytes:,} bytes. It needs {most:,} on {recorded}"
        if self.bounds:
            largest = max(self.bounds.values(), key=lambda bound: bound.payload_bytes)
            text += f"; the reserve is proved for any order of at most {largest}"
        elif of_future:
            text += f" and {of_future:,} in the long run"
        if not self.bounds and self.reserve_bytes == with_margin(most):
            text += f"; the reserve is {100 * (MARGIN - 1):.0f} % above the {'former' if of_future else 'need'}"
        text = self._kept_or_shipped(f"{text}.") + self._on_copies(copies)
        served = "" if self.arena is None else f" {self.served(self.arena)}".rstrip()
        return f"{text}{self._loaded()}{served}{self._one_recording(explored, held_out)}"

    def _kept_or_shipped(self, text: str) -> str:
        """The sentence about shipping, turned into one about the current allocator or one against shipping."""
        if self.why_not:
            text = f"Do not ship {self.named}: it {self.why_not}."
        elif self.worst_call > WORST_CALL:
            text += f" A call may make {self.worst_call:,.0f} accesses, and nothing with less serves."
        yours = next((other for other in self.others if other.why == "yours"), None)
        if self.keep and yours is None:  # the current allocator is the recommendation itself
            return text.replace("Ship", "Keep", 1)
        if self.keep and yours:
            noise = f"{100 * (EQUAL_WITHIN - 1):.0f} %"
            return f"Keep {yours.heap.label}: no recipe needs less by more than {noise}. Else: {text}"
        return text

    @staticmethod
    def _on_copies(copies: Sequence[MemoryNeed]) -> str:
        """The need on perturbed copies, if there are any."""
        if not copies:
            return ""
        many = _counted(copies, "perturbed copy needs", "perturbed copies need")
        text = f" {many} up to {most_needed(copies):,}."
        if failed := sum(need.bytes is None for need in copies):
            text += f" On {failed} of them requests failed."
        return text

    def _one_recording(self, explored: Sequence[MemoryNeed], held_out: Sequence[MemoryNeed]) -> str:
        """Sentence about the limits of a single recording; "" for more."""
        if len(explored) > 1 or held_out or self.bounds:
            return ""
        return (
            " One recording shows one load, and minutes do not show the plateau of years: record a second with other "
            "clients, or let fit reserve for the live peak that you know."
        )

    @property
    def more_bytes(self) -> int | None:
        """The reserve for `Load.times` times the load (`reserve_for_more`)."""
        return reserve_for_more(self.needs)

    def served(self, arena: int) -> str:
        """Sentence about the load that an arena of this size serves; "" if that is not known."""
        load = None if self.reserve_bytes is None else load_served(arena, self.reserve_bytes, self.more_bytes)
        if load is None:
            return ""
        about = f"some {load:.1f} times" if load < Load().times else f"{Load().times} times"
        return f"{arena:,} bytes serve {about} the recorded load."

    def _loaded(self) -> str:
        """Sentence about its need on copies under more load."""
        loaded = [need for need in self.needs if need.loaded]
        if not loaded:
            return ""
        times = f" At {Load().times} times the load"
        if refused := sum(need.bytes is None for need in loaded):
            return f"{times} it refused requests on {refused} of {_counted(loaded, 'copy', 'copies')}."
        return f"{times} it needs {most_needed(loaded):,}."

    @property
    def named(self) -> str:
        """Name of the recommendation in sentences: its name as a reference allocator, or its design and id."""
        return self.pick.zoo_name or f"{self.title} ({self.pick.id})"

    def _compared(self, other: Alternative) -> str:
        """Sentence about an alternative; "" for a stable one without failed requests: the table has its figures."""
        if other.why != "step":
            name = f"{other.heap.label}{', your current heap,' if other.why == 'yours' else ''}"
            if other.heap.metrics["failed"]:
                return f"{name} fails {other.heap.metrics['failed']:,} requests."
            return f"{name} {other.why_not}." if other.why_not else ""
        changes = ", ".join(
            f"{_amount(key, other.heap.metrics[key])} ({change(self.pick.metrics[key], other.heap.metrics[key])})"
            for key in self.objectives
        )
        what = "memory" if other.better in MEMORY else words(other.better)
        return f"{_comparative(other.better)} {what}: {other.heap.label}, {changes}."

    def _equivalent_sentences(self) -> list[str]:
        count, named = self.equivalent
        if not count:
            return []
        labels = ", ".join(item.label for item in named)
        info = f"{labels} and {count - len(named)} more are" if count > len(named) else labels
        verb = "" if count > len(named) else " is" if count == 1 else " are"
        return [f"{info}{verb} within 1 % of it in every objective."]


def decide(
    study: Analysis,
    how: Pick = "balanced",
    objectives: Sequence[str] | None = None,
    where: Sequence[str] = (),
    against: str | None = None,
) -> Decision:
    """The decision that a study leads to.

    ``how``, ``objectives`` and ``where`` as for `Analysis.pick`; ``against``: the current allocator, a heap of the
    study by its id or its name among the reference allocators.

    Raises `HeapwrightError` if the front is empty, or the study has no such heap.
    """
    keys = tuple(objectives or study.objectives)
    with study.at_once():
        pick = study.pick(how, keys, where)
        return Deciding(study, keys, where, against).on(pick)


class Deciding:
    """Common data of decisions on recipes of one study."""

    def __init__(
        self, study: Analysis, objectives: tuple[str, ...], where: Sequence[str] = (), against: str | None = None
    ) -> None:
        """Look up well-known allocators, front and calls; arguments and errors as for `decide`."""
        names = {name: id for id, name in zip(study.combined.ids, study.combined.zoo_names, strict=True) if name}
        self._study, self._objectives = study, objectives
        against = against or (study.current if study.current in names else None)
        self.yours = study.resolve(against) if against is not None else None
        self.well_known = [names[name] for name in WELL_KNOWN if name in names]
        """The ids of well-known allocators with results."""
        bounds = [
            item.bound for item in map(Condition.parse, where) if item.key == RESERVE and item.comparison in ("<", "<=")
        ]
        self._arena = int(min(bounds)) if bounds else None
        self._known: dict[str, Alternative] = {}
        self._robustness = study.robustness(objectives)
        self._calls = sum(trace.events for trace in study.traces())
        rows = np.flatnonzero(study.combined.eligible(objectives) & study.within(where))
        shares = study.combined.columns[ADMITTED][rows]
        self._most_admitted = float(shares.max()) if ADMITTED in objectives and len(rows) else None
        self._rows = rows
        self._front = study.front(objectives, where)
        points = study.combined.points(objectives)[self._rows]
        self._ratios = pareto.ratios_to_best(points, study.combined.directions_of(objectives))

    def on(self, pick: Candidate) -> Decision:
        """The decision for this recipe, which has to be one that the conditions admit."""
        study = self._study
        needs = study.needs(pick.id)
        recipe = study.recipe(pick.id)
        beside = dict.fromkeys(id for id in (self.yours, *self.well_known) if id not in (None, pick.id))
        others = [
            self._other(id, "yours" if id == self.yours else "reference", asked=needs)
            for id in beside
            if id is not None
        ]
        return Decision(
            pick,
            recipe.title(),
            self._objectives,
            self._calls,
            needs,
            _reserve(needs, needs, study.proved),
            self._equivalent(pick),
            others + self._steps(pick),
            worst_steps(recipe),
            self._robustness.why_not(pick.id),
            self._robustness.worst_call(pick.id),
            self._may_keep(pick),
            self._most_admitted,
            self._arena,
            study.leaks,
            study.failures,
            study.live_bounds if study.proved else {},
        )

    def _may_keep(self, pick: Candidate) -> bool:
        """Whether the current allocator is fit to ship and within `EQUAL_WITHIN` of the recommendation in all needs."""
        if self.yours is None or self.yours == pick.id or self._robustness.why_not(self.yours) is not None:
            return self.yours is not None and self.yours == pick.id
        yours = self._study.candidate(self.yours)
        if self._robustness.worst_call(yours.id) > max(WORST_CALL, EQUAL_WITHIN * self._robustness.worst_call(pick.id)):
            return False
        return all(_is_equal(key, pick, yours) for key in self._objectives)

    def _other(self, id: str, why: Why, better: str = "", asked: Sequence[MemoryNeed] = ()) -> Alternative:
        if id not in self._known:
            recipe = self._study.recipe(id)
            info = recipe.title(), self._study.needs(id), worst_steps(recipe)
            self._known[id] = Alternative(
                self._study.candidate(id),
                why,
                better,
                *info,
                reserve_bytes=None,
                why_not=self._robustness.why_not_stable(id),
            )
        known = self._known[id]
        reserve = _reserve(known.needs, asked, self._study.proved) if asked else None
        return replace(known, why=why, better=better, reserve_bytes=reserve)

    def _equivalent(self, pick: Candidate) -> tuple[int, list[Candidate]]:
        results, rows, ratios = self._study.combined, self._rows, self._ratios
        at = np.flatnonzero(rows == results.row(pick.id))
        if not len(at):
            return 0, []
        own = ratios[at[0]]
        near = (ratios <= STEP * own) & (own <= STEP * ratios)
        result = np.flatnonzero(near.all(axis=1) & (rows != results.row(pick.id)))
        nearest = result[np.argsort(ratios[result].max(axis=1), kind="stable")][:MOST_EQUIVALENT]
        return len(result), [results.candidate(int(rows[at])) for at in nearest]

    def _steps(self, pick: Candidate) -> list[Alternative]:
        """For each of the first two objectives the member of the front that is the next better than the pick in it."""
        steps: dict[str, Alternative] = {}
        for key in self._objectives[:2]:
            best = 1 if METRICS[key].direction == "min" else -1
            value = _number(pick, key)
            better = [
                item for item in self._front if (_number(item, key) * STEP - value) * best < 0 and item.id != pick.id
            ]
            if better:
                step = max(better, key=lambda item: (best * _number(item, key), item.id))
                steps.setdefault(step.id, self._other(step.id, "step", key))
        return list(steps.values())


def change(base: Value, value: Value) -> str:
    """Difference of a value from another, as text."""
    if base is None or value is None or not float(base):
        return "-"
    ratio = float(value) / float(base)
    if ratio >= 2:
        return f"{ratio:,.1f} x"
    percent = f"{100 * (ratio - 1):+.1f} %"
    return percent[1:] if percent[1:] == "0.0 %" else percent


def _reserve(needs: Sequence[MemoryNeed], asked: Sequence[MemoryNeed], proved: bool) -> int | None:
    """The reserve for the recorded load; None if results on some of the traces are missing."""
    if {(need.role, need.trace) for need in needs} < {(item.role, item.trace) for item in asked}:
        return None
    return reserve_for(needs, proved=proved)


def _is_equal(key: str, pick: Candidate, other: Candidate) -> bool:
    """Whether the other is no more than `EQUAL_WITHIN` times worse than the recommendation in an objective."""
    base, value = _number(pick, key), _number(other, key)
    return value <= EQUAL_WITHIN * base if METRICS[key].direction == "min" else EQUAL_WITHIN * value >= base


def _number(item: Candidate, key: str) -> float:
    value = item.metrics[key]
    return float("nan") if value is None else float(value)


def _amount(key: str, value: Value) -> str:
    if value is None:
        return f"no {words(key)}"
    shown = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"
    if key in _NOUNS or METRICS[key].unit == "count":
        return f"{shown} {_NOUNS.get(key, words(key))}"
    return f"{words(key)} {shown} {METRICS[key].unit.replace('ratio', '')}".rstrip()


def _comparative(key: str) -> str:
    if METRICS[key].direction == "max":
        return "More"
    return "Fewer" if METRICS[key].unit == "count" else "Less"


def _counted(needs: Sequence[MemoryNeed], item: str, many: str) -> str:
    return f"{len(needs)} {item if len(needs) == 1 else many}"


def most_needed(needs: Sequence[MemoryNeed]) -> int:
    """The largest of the needs, in bytes; 0 if there is none."""
    return max((need.bytes for need in needs if need.bytes is not None), default=0)
