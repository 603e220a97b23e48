"""The page: one HTML file with everything in it, made of a template, the plotting library and the content."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from heapwright._replay.metrics import METRICS, Value, words
from heapwright._report import glossary
from heapwright._report.animation import SnapshotPicture
from heapwright._report.figure import Figure, dark_style
from heapwright._studies.by_budget import Budgets
from heapwright._studies.comparison import HeapComparison
from heapwright._studies.study_diff import StudyDiff
from heapwright._traces.copies import Load

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.runtime import Context

TEMPLATE = Path(__file__).with_name("template")
SCRIPTS = ("terms.js", "choice.js", "trade_off.js", "tables.js", "view.js", "timeline.js", "animation.js", "page.js")
NARROW = 340
"""Width in pixels of a second drawing of a plot, so that its words can be read on a phone."""
HINT = "Details of the point under the pointer. Click a point to select it; arrow keys move along the front."


@dataclass(frozen=True)
class Fact:
    """One figure of the page's head: what it is, its value in words, what to compare it with."""

    words: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class HeapSection:
    """What one heap makes of one trace: two figures with the same axes, what they show in `detail` where scripts draw
    them, and the heap's hash.
    """

    timeline: Figure
    heap_map: Figure
    detail: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Holding:
    """Who holds the live bytes of a trace: the name of the figure, and its `detail` where scripts draw it."""

    figure: str
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class TraceSection:
    """One trace: figures of what it asks for, one of them of the bytes' holders, and what heaps make of it; `missing`
    says why there are none, `caveats` what it does not show, `traffic` what packets it was made of."""

    name: str
    figures: Sequence[Figure] = ()
    heaps: Sequence[HeapSection] = ()
    missing: str = ""
    animations: Sequence[SnapshotPicture] = ()
    holding: Holding | None = None
    caveats: Sequence[str] = ()
    traffic: Sequence[str] = ()


@dataclass(frozen=True)
class ReportTable:
    """A table: `columns` of (heading, unit, meaning), rows of cells, and a line below.

    The meaning of what the glossary explains is "".
    """

    columns: Sequence[tuple[str, str, str]]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class TargetSection:
    """What was measured of one trace on one processor: a line that says where, the heaps, and their calls."""

    title: str
    lead: str
    table: ReportTable
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Choice:
    """What a page lets its reader choose among.

    Attributes:
        recipes: each with "id", "kind", "name", "balanced", "summary", "toml" and "metrics".
        admitted: how many there are in all, those that would cover others counted.
        objectives: of the study.
        axes: the two metrics shown at first, of `offered`, those that can be chosen.
        `rivals`: ids that the axes always hold.
        selected: the id of the pick.
        says: the decision in sentences for the recipes that stand out, by id.
        tables: the tables of the alternatives, by id.
        reserves: what to give them for the recorded load, and for `Load.times` times that, bytes; None where not known.
        budgets: picks within bounds.
        source: name of the study's file.
    """

    recipes: Sequence[Mapping[str, Any]]
    admitted: int
    objectives: Sequence[str]
    axes: tuple[str, str]
    offered: Sequence[str]
    rivals: Sequence[str]
    selected: str
    says: Mapping[str, Sequence[str]]
    tables: Mapping[str, HeapComparison]
    reserves: Mapping[str, tuple[int | None, int | None]]
    budgets: Budgets
    source: str


@dataclass(frozen=True)
class Content:
    """All that a page shows. A trace's page has no answer, choice, trade-offs or tables; `changes` are those since an
    older study, `fronts` its front and this one's.

    The first of the `trade_offs` is for pages without scripts, in place of the one that moves; the others follow it.
    """

    title: str
    lead: str
    facts: Sequence[Fact]
    traces: Sequence[TraceSection]
    answer: str = ""
    beside: Sequence[str] = ()
    beside_others: HeapComparison | None = None
    reserve: Figure | None = None
    arena: Figure | None = None
    choice: Choice | None = None
    trade_offs: Sequence[Figure] = ()
    growth: Sequence[Figure] = ()
    front: ReportTable | None = None
    zoo: ReportTable | None = None
    held_out: ReportTable | None = None
    target: Sequence[TargetSection] = ()
    origin: Sequence[str] = field(default_factory=list)
    changes: StudyDiff | None = None
    fronts: Figure | None = None

    def figures(self) -> list[Figure]:
        """Every figure of the page, in its order."""
        results = [item for item in (self.reserve, self.fronts, self.arena) if item is not None]
        results += [*self.trade_offs, *self.growth]
        results += [figure for section in self.target for figure in section.figures]
        for trace in self.traces:
            results += trace.figures
            results += [figure for heap in trace.heaps for figure in (heap.timeline, heap.heap_map)]
        return results


@dataclass(frozen=True)
class Script:
    """A script of the page; its `digest` lets it, and no other, run."""

    text: str

    @property
    def digest(self) -> str:
        """SHA-256 in base64, as a content security policy wants it."""
        return base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode("ascii")


def render(content: Content) -> str:
    """The page as HTML. A content security policy in its head lets it load nothing, and run its own script alone."""
    return _page().render(
        content=content,
        style=_template("page.css") + _template("animation.css"),
        dark=dark_style(),
        stills={figure.name: figure.still() for figure in content.figures()},
        script=_script(),
        data=_packed(content),
        hint=HINT,
        known={recipe["id"] for recipe in content.choice.recipes} if content.choice else set(),
        told=set(),
    )


@cache
def _page() -> Template:
    """The page's template, compiled once; a page keeps in `told` the terms whose meaning it has explained."""
    import jinja2

    @jinja2.pass_context
    def terms(context: Context, text: str) -> Markup:
        return _terms(text, context["told"])

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"term": _term, "terms": terms}
    return environment.get_template("page.html.jinja")


def _meaning(words: str, meaning: str) -> str:
    """Meaning of a heading: its own, or the glossary's."""
    return meaning or glossary.terms().get(words, "")


def _term(words: str, meaning: str = "") -> Markup:
    """A heading that shows its meaning; see terms.js."""
    meaning = _meaning(words, meaning)
    mark = Markup('<abbr tabindex="0" title="{1}">{0}</abbr>')
    return mark.format(words, meaning) if meaning else escape(words)


def _terms(text: str, known: set[str]) -> Markup:
    """A heading whose terms show their meanings, unless the page has explained them before."""
    parts, end = [], 0
    for place, meaning in glossary.found(text, known):
        parts += [escape(text[end : place.start]), _term(text[place], meaning)]
        end = place.stop
    return Markup("").join([*parts, escape(text[end:])])


def _template(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


def _script() -> Script:
    """All scripts as one, so that none of their names is seen outside."""
    parts = [_template(name) for name in SCRIPTS]
    return Script("(() => {\n" + "\n".join(['"use strict";', *parts]) + "})();\n")


def _packed(content: Content) -> str:
    """What scripts need as JSON, gzip, base64: a fifth of the plain size, and browsers since 2023 unpack it
    themselves.
    """
    heaps = [
        {"animation": animation.name, "timeline": heap.timeline.name, "map": heap.heap_map.name, **heap.detail}
        for trace in content.traces
        for heap, animation in zip(trace.heaps, trace.animations, strict=True)
    ]
    holdings = [
        {"trace": trace.name, "plot": trace.holding.figure, **trace.holding.detail}
        for trace in content.traces
        if trace.holding
    ]
    # Scripts draw these themselves, as wide as the page is.
    apart = {figure.name for figure in content.trade_offs} | {
        item[key] for item in heaps for key in ("timeline", "map")
    }
    apart |= {holding["plot"] for holding in holdings}
    narrow = {figure.name: figure.still(NARROW) for figure in content.figures() if figure.name not in apart}
    # Pictures are in the page already, in the wide one.
    stills = {name: re.sub(r' (?:xlink:)?href="data:[^"]*"', "", still) for name, still in narrow.items()}
    animations = {animation.name: animation.data for trace in content.traces for animation in trace.animations}
    data: dict[str, Any] = {
        "stills": stills,
        "animations": animations,
        "heaps": heaps,
        "holdings": holdings,
        "selected": "",
    }
    if content.choice:
        data |= _choice(content.choice)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def _shortened(value: Value | None) -> Value | None:
    """A metric with four digits more than the page shows of it: noise in the last places does not pack."""
    return float(f"{value:.8g}") if isinstance(value, float) else value


def _choice(choice: Choice) -> dict[str, Any]:
    recipes, at = choice.recipes, {recipe["id"]: place for place, recipe in enumerate(choice.recipes)}
    keys = [key for key in METRICS if any(key in recipe["metrics"] for recipe in recipes)]
    columns = ("id", "kind", "name", "balanced", "summary", "toml")
    bounds = choice.budgets
    return {
        "metrics": {
            key: {
                "unit": METRICS[key].unit,
                "meaning": METRICS[key].meaning,
                "words": words(key),
                "direction": METRICS[key].direction,
            }
            for key in keys
        },
        # By column: equal values are neighbours, and pack twice as well.
        "recipes": {column: [recipe[column] for recipe in recipes] for column in columns},
        "values": {key: [_shortened(recipe["metrics"].get(key)) for recipe in recipes] for key in keys},
        "admitted": choice.admitted,
        "objectives": list(choice.objectives),
        "axes": list(choice.axes),
        "offered": list(choice.offered),
        "rivals": list(choice.rivals),
        "selected": choice.selected,
        "says": {id: list(said) for id, said in choice.says.items()},
        "tables": {id: _table(table) for id, table in choice.tables.items()},
        "reserves": choice.reserves,
        "times": Load().times,
        "budgets": {
            "memory": bounds.memory,
            "worst": bounds.worst,
            "picks": [[None if id is None else at[id] for id in row] for row in bounds.picks],
        },
        "source": choice.source,
    }


def _table(table: HeapComparison) -> dict[str, Any]:
    """The heaps' names and titles; rows of words, unit, meaning and cells: text, against the pick's, better or not."""
    return {
        "heaps": [[heap.candidate.label, heap.role, heap.title] for heap in table.heaps],
        "rows": [
            [row.words, row.unit, _meaning(row.words, row.meaning), [[c.text, c.against, c.better] for c in row.cells]]
            for row in table.rows
        ],
    }
