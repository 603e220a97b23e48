"""The gate: whether a heap still fits a program, by rules that fail, and what changed since a version that is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heapwright._replay.metrics import METRICS
from heapwright._studies.recommendations import COMPARE
from heapwright._support.errors import ParameterError, did_you_mean
from heapwright._support.units import number_of, per_cent

ARENAS = ("smallest_arena_bytes", "safe_arena_bytes", "reserve_bytes")
"""What rules may bound beside metrics: arenas as `fit` finds them."""

MOST_CAUSES = 3
"""Causes that are told."""

HOLDERS = 200
"""So many of those who hold the peak are kept for a later comparison, those with most bytes."""

_RULE = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S.*?)\s*")


@dataclass(frozen=True)
class Rule:
    """What fails: a value above or below a bound, or that has changed by more than a share since the baseline.

    Attributes:
        key: a metric, or one of `ARENAS`.
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
        if key not in METRICS and key not in ARENAS:
            near = did_you_mean(key, [*METRICS, *ARENAS])
            raise ParameterError(f"{key!r}: no metric; {near}", parameter="fail_if")
        relative = bound.endswith("%")
        try:
            value = number_of(bound.removesuffix("%"))
        except ValueError:
            raise ParameterError(f"{bound!r}: no number; valid: 131072, 128K, +5%", parameter="fail_if") from None
        return cls(key, comparison, value / 100 if relative else value, relative)

    def limit(self, before: float | None) -> float | None:
        """The bound as a number; None where it is relative and there is no baseline's value."""
        if not self.relative:
            return self.bound
        return None if before is None else before * (1 + self.bound)

    def __str__(self) -> str:
        bound = f"{100 * self.bound:+g}%" if self.relative else _shown(self.bound)
        return f"{self.key} {self.comparison} {bound}"


@dataclass(frozen=True)
class Cause:
    """Objects that hold more at the peak than before.

    Attributes:
        site: where they are asked for; "" where no trace names any.
        size: bytes of each; None for all of a site, whose sizes differ.
        objects: how many there are now, and `bytes` in all.
        more_bytes: how many more bytes than in the baseline.
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
    """A rule, and how it came out.

    Attributes:
        rule: it.
        value: what it bounds; None where the heap serves the trace in no arena.
        limit: the bound as a number.
        before: the baseline's value; None where there is none.
        broken: whether the rule is: then the gate is shut.
    """

    rule: Rule
    value: float | None
    limit: float
    before: float | None
    broken: bool

    def __str__(self) -> str:
        key = self.rule.key
        if self.value is None:
            return f"{key}: no arena serves the trace"
        than = f", {_change(self.before, self.value)} than the baseline's {_shown(self.before)}" if self.before else ""
        share = f" ({self.value / self.limit:.1%})" if self.limit > 0 else ""
        side = "is beyond" if self.broken else "of"
        return f"{key} {_shown(self.value)} {side} {_shown(self.limit)}{share}{than}"


@dataclass(frozen=True)
class Checked:
    """A trace at the gate.

    Attributes:
        trace, heap: their names.
        values: metrics and `ARENAS` by key; None where not known.
        before: those of the baseline; empty without one.
        verdicts: one for each rule.
        causes: `caused` since the baseline.
        holders: who holds the peak, as `heapwright._traces.holders` tells it, at most `HOLDERS`.
    """

    trace: str
    heap: str
    values: Mapping[str, float | int | None]
    before: Mapping[str, float | int | None] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    causes: tuple[Cause, ...] = ()
    holders: Sequence[Mapping[str, Any]] = ()

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return not any(verdict.broken for verdict in self.verdicts)

    def sentences(self) -> list[str]:
        """A line for each rule, and for what is broken who caused it."""
        info = [
            f"{'FAIL' if verdict.broken else 'ok'} {self.trace} on {self.heap}: {verdict}" for verdict in self.verdicts
        ]
        if not self.passed:
            info += [f"  {cause}" for cause in self.causes[:MOST_CAUSES]]
        return info


def judged(
    trace: str,
    heap: str,
    values: Mapping[str, float | int | None],
    holders: Sequence[Mapping[str, Any]],
    rules: Sequence[Rule],
    baseline: Checked | None = None,
) -> Checked:
    """Put a trace's values to the rules.

    Raises `ParameterError` where a rule asks for a baseline, and there is none, or for what the baseline does not know.
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
    return Checked(trace, heap, values, before, tuple(verdicts), causes, tuple(holders[:HOLDERS]))


def caused(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[Cause]:
    """Who holds more at the peak than before, most first: by site where both name any, else by size."""
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
