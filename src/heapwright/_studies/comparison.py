"""Comparison of the recommendation with alternatives: a table for the report and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heapwright._recipes.worst_steps import WorstSteps
from heapwright._replay.metrics import WORST_CALLS, Value
from heapwright._studies.analysis import MemoryNeed
from heapwright._studies.decision import Alternative, Decision, change, most_needed
from heapwright._studies.results import Candidate
from heapwright._traces.copies import Load


@dataclass(frozen=True)
class ComparedHeap:
    """A heap of the table.

    Attributes:
        candidate: it, with its metrics over all traces.
        role: "ship", "yours", or "" for a well-known allocator; of `before_and_after`, its place there.
        title: its design in a few words.
    """

    candidate: Candidate
    role: str
    title: str


@dataclass(frozen=True)
class Cell:
    """Figure as text, compared with the recommendation's: less is better in every row.

    Attributes:
        text: the figure; a dash if it is not known.
        against: its difference from the recommendation's figure; "" in the recommendation's own column, if either is
            not known, and for a figure that is a share.
        better: whether it is less; None if both are equal, or either is not known.
    """

    text: str
    against: str = ""
    better: bool | None = None


@dataclass(frozen=True)
class Row:
    """Row of the table: the figure's name, its unit, its meaning ("" for a term of the glossary), a cell a heap."""

    words: str
    unit: str
    meaning: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class HeapComparison:
    """Table of heaps, the recommendation first, and rows of figures."""

    heaps: tuple[ComparedHeap, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _One:
    """Figures of one heap."""

    candidate: Candidate
    reserve_bytes: int | None
    needs: Sequence[MemoryNeed]
    steps: WorstSteps | None
    calls: int

    def need(self, loaded: bool) -> int | None:
        """The largest need on explored traces, or on copies under more load; None if there are none, or if requests
        failed on one.
        """
        results = [item for item in self.needs if (item.loaded if loaded else item.role == "explored")]
        return None if any(item.bytes is None for item in results) else most_needed(results) or None


_Figure = Callable[[_One], Value]


def side_by_side(decision: Decision) -> HeapComparison:
    """The recommendation, the current allocator, and well-known allocators, as far as the study has results of them.

    Worst-case calls are in instructions if these were measured for every heap, or else in loads and stores. Rows
    without any figure are left out.
    """
    beside = [other for other in decision.others if other.why != "step"]
    ones = [
        _picked(decision),
        *(_One(item.heap, item.reserve_bytes, item.needs, item.steps, decision.calls) for item in beside),
    ]
    return HeapComparison(
        (ComparedHeap(decision.pick, "ship", decision.title), *map(_heap, beside)), _rows(ones, bool(decision.bounds))
    )


def before_and_after(before: Decision, after: Decision, then: Decision | None = None) -> HeapComparison:
    """The recommendations of an older and of a newer study, and ``then`` the older one on the newer study's traces."""
    info = {"before": before, "after": after} | ({"before, tried now": then} if then else {})
    heaps = tuple(ComparedHeap(item.pick, role, item.title) for role, item in info.items())
    proved = all(item.bounds for item in info.values())
    return HeapComparison(heaps, _rows([*map(_picked, info.values())], proved))


def _picked(decision: Decision) -> _One:
    return _One(decision.pick, decision.reserve_bytes, decision.needs, decision.steps, decision.calls)


def _rows(ones: Sequence[_One], proved: bool) -> tuple[Row, ...]:
    return (
        *_memory(ones, proved),
        *_costs(ones),
        _bounds(ones),
        *_row(
            "growth, long run",
            "",
            "the footprint over the last nine tenths of the future, beyond best fit's",
            ones,
            _metric("long_run_growth"),
            _growth,
        ),
        *_row("code", "bytes", "of malloc, free and what they need, as measured", ones, _metric("code_bytes"), _whole),
    )


def _heap(item: Alternative) -> ComparedHeap:
    return ComparedHeap(item.heap, "yours" if item.why == "yours" else "", item.title)


def _memory(ones: Sequence[_One], proved: bool) -> list[Row]:
    end = ("need, long run", "the footprint at the end of the future")
    any_order = ("any order, proved", "what is proved to serve any order of the objects")
    words, meaning = any_order if proved else end
    return [
        *_row(
            "reserve",
            "bytes",
            "",
            ones,
            lambda item: item.reserve_bytes,
            _whole,
        ),
        *_row(
            "need, recording",
            "bytes",
            "the largest footprint on what was recorded",
            ones,
            lambda item: item.need(loaded=False),
            _whole,
        ),
        *_row(
            words,
            "bytes",
            meaning,
            ones,
            _metric("long_run_bytes"),
            _whole,
        ),
        *_row(
            f"at {Load().times} x the load",
            "bytes",
            f"the largest footprint on copies at {Load().times} times the load",
            ones,
            lambda item: item.need(loaded=True),
            _whole,
        ),
    ]


def _costs(ones: Sequence[_One]) -> list[Row]:
    measured = all(item.candidate.metrics["instructions_pair_mean"] is not None for item in ones)
    foreseen = all(item.candidate.metrics["long_run_accesses"] is not None for item in ones)
    rows = _row(
        "accesses a call",
        "",
        f"loads and stores of the heap's own data, mean over {'the future' if foreseen else 'all calls explored on'}",
        ones,
        _metric("long_run_accesses")
        if foreseen
        else lambda item: float(item.candidate.metrics["accesses"] or 0) / max(item.calls, 1),
        _tenths,
    )
    if measured:
        rows += _row(
            "malloc and free",
            "instructions",
            "of a malloc and its free, mean",
            ones,
            _metric("instructions_pair_mean"),
            _tenths,
        )
        worst = {kind: f"instructions_{kind}_max" for kind in ("malloc", "calloc", "realloc", "free")}
        unit, what = "instructions", "instructions of the worst-case call"
    else:
        worst, unit, what = dict(WORST_CALLS), "accesses", "loads and stores of the worst-case call"
        if foreseen:
            worst |= {"malloc": "long_run_malloc_max", "free": "long_run_free_max"}
    for kind, key in worst.items():
        rows += _row(f"worst-case {kind}", unit, f"{what}, copies of realloc left out", ones, _metric(key), _whole)
    return rows


def _bounds(ones: Sequence[_One]) -> Row:
    texts = ["-" if item.steps is None else item.steps.short() for item in ones]
    bounded = [item.steps is not None and item.steps.most is not None for item in ones]
    cells = [Cell(text, "", None if here == bounded[0] else here) for text, here in zip(texts, bounded, strict=True)]
    return Row("bounded by design", "accesses", "what bounds a malloc or a free on any program", tuple(cells))


def _row(
    words: str, unit: str, meaning: str, ones: Sequence[_One], figure: _Figure, show: Callable[[float], str]
) -> list[Row]:
    values = [figure(item) for item in ones]
    if not any(values):
        return []
    return [Row(words, unit, meaning, tuple(_cell(values[0], value, show, at) for at, value in enumerate(values)))]


def _cell(base: Value, value: Value, show: Callable[[float], str], at: int) -> Cell:
    if value is None:
        return Cell("-")
    text = show(float(value))
    if not at or base is None or not float(base) or show(float(base)) == text:
        return Cell(text)
    return Cell(text, "" if show is _growth else change(base, value), float(value) < float(base))


def _metric(key: str) -> _Figure:
    return lambda item: item.candidate.metrics[key]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _tenths(value: float) -> str:
    return f"{value:,.1f}"


def _growth(value: float) -> str:
    return f"{100 * (value - 1):.1f} %"
