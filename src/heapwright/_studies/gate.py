"""Gate for continuous integration: rules that a heap has to meet on a trace, and changes since a baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from heapwright._replay.metrics import METRICS
from heapwright._replay.reserve import with_margin
from heapwright._studies.field import FieldVerdict
from heapwright._studies.recommendations import COMPARE
from heapwright._support.errors import ParameterError, did_you_mean
from heapwright._support.units import number_of, per_cent
from heapwright._traces.leaks import Leak, leak_sentence

ARENAS = ("smallest_arena_bytes", "safe_arena_bytes", "reserve_bytes")
"""Keys that rules may bound in addition to metrics: arena sizes of `fit`."""

LEAKS = "leaks"
"""Key that rules may bound: how many sizes or call sites leak in the trace (`heapwright._traces.leaks`)."""

MOST_CAUSES = 3
"""Most causes that are reported."""

HOLDERS = 200
"""Most holders of the peak that are kept for later comparisons, the largest first."""

_RULE = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S.*?)\s*")


@dataclass(frozen=True)
class Rule:
    """Condition that fails the gate: a value beyond a bound, or changed by more than a share since the baseline.

    Attributes:
        key: a metric, one of `ARENAS`, or `LEAKS`.
        comparison: ">", ">=", "<" or "<=".
        bound: a number, or a share of the baseline's value.
        relative: whether it is the latter.
    """

    key: str
    comparison: str
    bound: float
    relative: bool = False

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read "reserve_bytes > 128K", or "accesses > +5%" against a baseline. Raises `ParameterError`."""
        match = _RULE.fullmatch(text)
        if match is None:
            raise ParameterError(
                f"{text!r}: no rule; write one as 'reserve_bytes > 128K', or 'reserve_bytes > +5%' with a baseline",
                parameter="fail_if",
            )
        key, comparison, bound = match.groups()
        if key not in METRICS and key not in (*ARENAS, LEAKS):
            near = did_you_mean(key, [*METRICS, *ARENAS, LEAKS])
            raise ParameterError(f"{key!r}: no metric; {near}", parameter="fail_if")
        relative = bound.endswith("%")
        try:
            value = number_of(bound.removesuffix("%"))
        except ValueError:
            raise ParameterError(f"{bound!r}: no number; valid: 131072, 128K, +5%", parameter="fail_if") from None
        return cls(key, comparison, value / 100 if relative else value, relative)

    def limit(self, before: float | None) -> float | None:
        """The bound as a number; None if it is relative and the baseline has no value."""
        if not self.relative:
            return self.bound
        return None if before is None else before * (1 + self.bound)

    def __str__(self) -> str:
        bound = f"{100 * self.bound:+g}%" if self.relative else _shown(self.bound)
        return f"{self.key} {self.comparison} {bound}"


@dataclass(frozen=True)
class Cause:
    """Cause of a larger peak: objects that hold more bytes than before.

    Attributes:
        site: their call site; "" if a trace has none.
        size: bytes of each; None for objects of one site with several sizes.
        objects: their number now, and `bytes` in total.
        more_bytes: bytes above the baseline's.
    """

    site: str
    size: int | None
    objects: int
    bytes: int
    more_bytes: int

    def __str__(self) -> str:
        what = f"{self.objects:,} object{'s' * (self.objects != 1)}"
        what += "" if self.size is None else f" of {self.size:,} bytes"
        where = f"{self.site}: " if self.site else ""
        return f"{where}{what} hold{'s' * (self.objects == 1)} {self.more_bytes:,} bytes more at the peak"


@dataclass(frozen=True)
class Verdict:
    """Result of a rule.

    Attributes:
        rule: the rule.
        value: the bounded value; None if no arena serves the trace.
        limit: the bound as a number.
        before: the baseline's value; None if there is none.
        broken: whether the rule fails, and so the gate.
        text: what it is printed as; "" for the rule with its numbers.
    """

    rule: Rule
    value: float | None
    limit: float
    before: float | None
    broken: bool
    text: str = ""

    def __str__(self) -> str:
        key = self.rule.key
        if self.text:
            return self.text
        if self.value is None:
            return f"{key}: no arena serves the trace"
        than = f", {_change(self.before, self.value)} than the baseline's {_shown(self.before)}" if self.before else ""
        share = f" ({self.value / self.limit:.1%})" if self.limit > 0 else ""
        side = "is beyond" if self.broken else "of"
        return f"{key} {_shown(self.value)} {side} {_shown(self.limit)}{share}{than}"


@dataclass(frozen=True)
class Checked:
    """Result of the gate for a trace.

    Attributes:
        trace, heap: their names.
        values: metrics and `ARENAS` by key; None if not known.
        before: values of the baseline; empty without one.
        verdicts: one for each rule.
        causes: `caused` since the baseline.
        holders: holders of the peak (`heapwright._traces.holders`), at most `HOLDERS`.
        leaks: what grows in a straight line in the trace.
        field: what a device's block says; None for a trace.
    """

    trace: str
    heap: str
    values: Mapping[str, float | int | None]
    before: Mapping[str, float | int | None] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    causes: tuple[Cause, ...] = ()
    holders: Sequence[Mapping[str, Any]] = ()
    leaks: tuple[Leak, ...] = ()
    field: FieldVerdict | None = None

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return not any(verdict.broken for verdict in self.verdicts)

    def sentences(self) -> list[str]:
        """A line for each rule, and the leaks and the causes if one fails; the classes that a device has more of."""
        info = [
            f"{'FAIL' if verdict.broken else 'ok'} {self.trace} on {self.heap}: {verdict}" for verdict in self.verdicts
        ]
        info += [f"  {item}" for item in (self.field.classes[:MOST_CAUSES] if self.field else ())]
        if not self.passed:
            info += [f"  {text}" for text in self.leak_sentences()]
            info += [f"  {cause}" for cause in self.causes[:MOST_CAUSES]]
        return info

    def leak_sentences(self) -> list[str]:
        """What leaks and when it has used up the recommended arena, as one sentence; none without a leak."""
        reserve, need = self.values.get("reserve_bytes"), self.values.get("smallest_arena_bytes")
        known = (None, None) if reserve is None or need is None else (int(reserve), int(need))
        return [leak_sentence(self.leaks, self.trace, *known)] if self.leaks else []


def judged(
    trace: str,
    heap: str,
    values: Mapping[str, float | int | None],
    holders: Sequence[Mapping[str, Any]],
    rules: Sequence[Rule],
    baseline: Checked | None = None,
    leaks: tuple[Leak, ...] = (),
) -> Checked:
    """Check a trace's values against the rules.

    Args:
        trace, heap: their names.
        values: metrics, `ARENAS` and `LEAKS` by key; None if not known.
        holders: holders of the peak, the largest first.
        rules: the conditions that fail the gate.
        baseline: an earlier result, which relative rules refer to.
        leaks: of the trace.

    Raises `ParameterError` if a rule needs a baseline value and there is none.
    """
    before = baseline.values if baseline else {}
    verdicts = []
    for rule in rules:
        value, old = values.get(rule.key), before.get(rule.key)
        limit = rule.limit(old)
        if limit is None:
            raise ParameterError(f"{rule}: {trace} has no baseline with {rule.key}; give one", parameter="baseline")
        broken = value is None or bool(COMPARE[rule.comparison](value, limit))
        verdicts.append(Verdict(rule, value, limit, old, broken))
    causes = tuple(caused(baseline.holders, holders)) if baseline else ()
    return Checked(trace, heap, values, before, tuple(verdicts), causes, tuple(holders[:HOLDERS]), leaks)


def judged_field(name: str, heap: str, verdict: FieldVerdict, rules: Sequence[Rule]) -> Checked:
    """Check what a device says: a heap that is too small fails, and so do rules. Relative ones refer to the recording.

    Args:
        name, heap: of the dump and the heap.
        verdict: what the dump says.
        rules: on "footprint_bytes", the device's peak, "failed" and "reserve_bytes", the arena that its load needs.

    Raises `ParameterError` for a rule on another key, or a relative one without a recording.
    """
    values = {
        "footprint_bytes": verdict.peak_bytes,
        "failed": verdict.refused,
        "reserve_bytes": verdict.needed_bytes,
    }
    for rule in rules:
        if rule.key not in values:
            raise ParameterError(f"{rule}: a device does not know it; valid: {', '.join(values)}", parameter="fail_if")
    recorded = verdict.recorded_peak_bytes
    before = {"footprint_bytes": recorded, "failed": 0, "reserve_bytes": with_margin(recorded)} if recorded else {}
    checked = judged(name, heap, values, (), rules, Checked(name, heap, before) if before else None)
    first = Verdict(Rule("failed", ">", 0), verdict.refused, 0, 0, verdict.kind == "too small", verdict.sentence())
    return replace(checked, verdicts=(first, *checked.verdicts), field=verdict)


def caused(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[Cause]:
    """Causes of a larger peak, the largest first: by call site if both have them, or else by size."""
    key = "site" if all(any(item["site"] for item in held) for held in (before, after)) else "size"
    had: dict[Any, int] = {}
    for item in before:
        had[item[key]] = had.get(item[key], 0) + item["bytes"]
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for item in after:
        groups.setdefault(item[key], []).append(item)
    results = []
    for name, held in groups.items():
        sizes, total = {item["size"] for item in held}, sum(item["bytes"] for item in held)
        size = sizes.pop() if len(sizes) == 1 else None
        objects = sum(item["objects"] for item in held)
        results.append(Cause(name if key == "site" else "", size, objects, total, total - had.get(name, 0)))
    return sorted((item for item in results if item.more_bytes > 0), key=lambda item: (-item.more_bytes, item.site))


def _change(before: float, value: float) -> str:
    if value == before:
        return "no more"
    return f"{_shown(abs(value - before))} {'more' if value > before else 'less'} ({per_cent(before, value)})"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.4g}"
