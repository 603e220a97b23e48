"""What a page says of measurements on a target processor: a table of heaps, and how many instructions calls take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heapwright._report import plots
from heapwright._report.figure import BLUE, CLOUD, INK, VERMILLION, Figure
from heapwright._report.page import ReportTable, TargetSection
from heapwright._report.trace_content import slug
from heapwright._studies.analysis import Analysis
from heapwright._studies.results import Candidate

KINDS = ("malloc", "free")
COLOURS = {"front": BLUE, "zoo": VERMILLION, "cloud": CLOUD, "peer": INK}
"""Of a heap in the histograms, by what it is: as in the trade-off, and what is no recipe."""
HISTOGRAM_HEAPS = 8
"""Heaps in a histogram at most: more rows would be too low to read."""


@dataclass(frozen=True)
class _Row:
    """One heap on one trace; `id` is a recipe's in the study, or the name of a heap that is no recipe."""

    id: str
    label: str
    kind: str
    summary: str
    told: Mapping[str, Any]

    @property
    def mean(self) -> float:
        """Instructions of a malloc and a free."""
        return sum(self.told["calls"][kind]["instructions_mean"] or 0 for kind in KINDS)

    @property
    def worst(self) -> int:
        """Instructions of the worst-case malloc and the worst-case free."""
        return sum(self.told["calls"][kind]["instructions_max"] or 0 for kind in KINDS)


def measured_ids(study: Analysis) -> set[str]:
    """Recipes of the study that were measured on a target."""
    return {id for _, id, _, _ in study.measured()} & set(study.combined.ids)


def target_sections(study: Analysis, front: Sequence[Candidate], balanced: str) -> list[TargetSection]:
    """A section for each setting and trace that the study has measurements of, in the order of their names."""
    results: dict[tuple[str, str], list[_Row]] = {}
    members = {candidate.id for candidate in front}
    for setting, id, trace, info in study.measured():
        results.setdefault((setting, trace), []).append(_row(study, id, members, info))
    sections = []
    for number, ((setting, trace), rows) in enumerate(results.items(), 1):
        rows.sort(key=lambda row: row.mean)
        sections.append(
            TargetSection(
                f"On the target: {trace}",
                _lead(setting, rows[0].told),
                _table(rows, balanced),
                _histograms(_drawn(rows, balanced), balanced, f"{number}-{slug(trace)}"),
            )
        )
    return sections


def _row(study: Analysis, id: str, members: set[str], told: Mapping[str, Any]) -> _Row:
    candidate = study.combined.find(id)
    if candidate is None:
        return _Row(id, id, "peer", "not a recipe: its own code, compiled for the same processor", told)
    kind = "front" if id in members else "zoo" if candidate.zoo_name else "cloud"
    return _Row(id, candidate.label, kind, study.recipe(id).summary(), told)


def _lead(setting: str, told: Mapping[str, Any]) -> str:
    note = f" {told['note']}." if told["note"] else ""
    return f"Instructions a call on {setting}, counted by {told['backend']}.{note}"


# --- the table --------------------------------------------------------------------------------------------------------


_Heading = tuple[str, str, str]

_AFTERWARDS: tuple[tuple[_Heading, tuple[str, ...]], ...] = (
    (("code", "B", "code and constants of malloc, free and realloc with what they call"), ("code_bytes", "total")),
    (
        ("arena", "B", "a recipe's footprint; what a C library took from sbrk, and its static data"),
        ("footprint_bytes",),
    ),
    (("ratio", "", "loads and stores run in the arena / accesses counted on the host"), ("prediction", "ratio")),
)


def _columns() -> list[tuple[_Heading, tuple[str, ...]]]:
    """Headings, and the keys of their values in a measurement."""
    results: list[tuple[_Heading, tuple[str, ...]]] = []
    for kind in KINDS:
        for key, words, meaning in (
            ("mean", "mean", "mean over all calls"),
            ("p999", "p99.9", "what 99.9 % of the calls do not exceed"),
            ("max", "max", "the worst-case call"),
        ):
            heading = (f"{kind}, {words}", "", f"instructions of a {kind}: {meaning}")
            results.append((heading, ("calls", kind, f"instructions_{key}")))
    return [*results, *_AFTERWARDS]


def _value(told: Any, keys: Sequence[str]) -> float | int | None:
    """The value under these keys of a measurement, one inside the other; None if there is none."""
    for key in keys:
        if told is None:
            return None
        told = told[key]
    return told  # type: ignore[no-any-return]


def _cell(told: Mapping[str, Any], keys: Sequence[str]) -> str:
    if keys[0] == "prediction" and told["prediction"] and not told["prediction"]["metadata_equal"]:
        return "metadata differs"
    value = _value(told, keys)
    if value is None:
        return "\u2013"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _table(rows: Sequence[_Row], balanced: str) -> ReportTable:
    columns = _columns()
    drawn = [
        {
            "id": row.id,
            "label": row.label,
            "kind": row.kind,
            "mark": "balanced pick" if row.id == balanced else "",
            "summary": row.summary,
            "cells": [_cell(row.told, keys) for _, keys in columns],
        }
        for row in rows
    ]
    compared = sum(row.told["prediction"]["metadata_bytes"] for row in rows if row.told["prediction"])
    note = "In the order of the instructions of a malloc and a free."
    if compared:
        equal = all(row.told["prediction"]["metadata_equal"] for row in rows if row.told["prediction"])
        what = "equals the host's byte for byte" if equal else "differs from the host's where the table says so"
        note += f" After the last call the metadata in the target's arena ({compared:,} bytes over all heaps) {what}."
    return ReportTable([heading for heading, _ in columns], drawn, note)


# --- the histograms ---------------------------------------------------------------------------------------------------


def _drawn(rows: Sequence[_Row], balanced: str) -> list[_Row]:
    """The heaps worth a place: the balanced pick, the best in mean and in the worst case, the peers, the zoo's best."""
    zoo = [row for row in rows if row.kind == "zoo"]
    wanted = [
        *(row for row in rows if row.id == balanced),
        rows[0],
        min(rows, key=lambda row: row.worst),
        *(row for row in rows if row.kind == "peer"),
        *zoo[:1],
        *(row for row in rows if row.kind == "front"),
        *zoo,
    ]
    chosen = list({row.id: row for row in wanted}.values())[:HISTOGRAM_HEAPS]
    return sorted(chosen, key=lambda row: row.mean)


def _histograms(rows: Sequence[_Row], balanced: str, stem: str) -> list[Figure]:
    figures = []
    for kind in KINDS:
        known = [row for row in rows if row.told["calls"][kind]["instructions_histogram"]]
        names = {row.id: f"{row.label}, balanced" if row.id == balanced else row.label for row in known}
        histograms = {names[row.id]: row.told["calls"][kind]["instructions_histogram"] for row in known}
        colours = {names[row.id]: COLOURS[row.kind] for row in known}
        if known:
            figures.append(plots.instructions(histograms, colours, kind, f"instructions-{kind}-{stem}"))
    return figures
