"""The findings of readings: their sentences, numbers and cures."""

from __future__ import annotations

from heapwright._diagnose.model import Confidence, Cure, Finding, Kind, number
from heapwright._diagnose.readings import HEAP
from heapwright._diagnose.series import Series
from heapwright._diagnose.series_picture import picture_of
from heapwright._diagnose.wording import Quantity

FULL = 0.05
"""A heap is full if that share of it is free."""

CALLS_NEXT = "every heap call until a request fails: replayed, it shows what pins the holes, and what cures it"


def cures_of_fragmentation(size: float) -> tuple[Cure, ...]:
    """What helps if a request of `size` bytes finds no hole."""
    return (
        Cure(f"allocate what takes {number(size)} B or more once, at start, and keep it; or give it a static buffer"),
        Cure("a place of its own for each large size: a fixed pool in front of the heap", command="heapwright explore"),
        Cure("another allocator: record the calls, and have it chosen by replay", command="heapwright fit"),
    )


def is_full(series: Series) -> bool:
    """Whether little of a heap is free; not if its size is not known."""
    free, size = series.last("free"), series.size
    return free is not None and bool(size) and free <= FULL * (size or 0)


def finding_of(
    series: Series,
    kind: Kind,
    confidence: Confidence,
    sentence: str,
    *,
    cures: tuple[Cure, ...] = (),
    record_next: str = "",
) -> Finding:
    """A finding with the first, last, lowest and highest of each counter, and their picture."""
    heads = ("", "first", "last", "lowest", "highest")
    names: dict[Quantity, str] = {
        "free": "free",
        "largest": "largest free block",
        "minimum": "minimum-ever free",
        "used": "used",
        "peak": "most ever used",
        "total": "size",
        "failed": "failed requests",
    }
    rows = []
    for name, text in names.items():
        column = series.known(name)
        if len(column):
            unit = "" if name == "failed" else f", {series.unit}"
            shown = (column[0], column[-1], column.min(), column.max())
            rows.append((f"{text}{unit}", *(number(value) for value in shown)))
    return Finding(
        "" if series.memory == HEAP else series.memory,
        kind,
        confidence,
        sentence[0].upper() + sentence[1:],
        heads,
        tuple(rows),
        cures,
        record_next,
        picture_of(series),
    )


def prefix(series: Series) -> str:
    """The name of a memory before a sentence; empty if it has none."""
    return "" if series.memory == HEAP else f"{series.memory}: "


def time_in_words(hours: float) -> str:
    """Hours as minutes, hours or days."""
    if hours < 2:
        return f"{hours * 60:,.0f} min"
    return f"{hours:,.3g} h" if hours < 72 else f"{hours / 24:,.0f} days"
