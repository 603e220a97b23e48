"""The page: one HTML file with everything in it, made of a template, the plotting library and the content."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from heapwright.replay.metrics import METRICS, Value
from heapwright.report.figure import Figure
from heapwright.report.film import Film

TEMPLATE = Path(__file__).with_name("template")


@dataclass(frozen=True)
class Fact:
    """One figure of the page's head: what it is, its value in words, and what to compare it with."""

    words: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Heap:
    """What one heap makes of one trace: two figures with the same axes."""

    timeline: Figure
    heap_map: Figure


@dataclass(frozen=True)
class TraceSection:
    """One trace: figures of what it asks for, and what heaps make of it; `missing` says why there are none."""

    name: str
    figures: Sequence[Figure] = ()
    heaps: Sequence[Heap] = ()
    missing: str = ""
    films: Sequence[Film] = ()


@dataclass(frozen=True)
class Table:
    """A table: `columns` of (heading, unit, meaning), rows of cells, and a line below."""

    columns: Sequence[tuple[str, str, str]]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class TargetSection:
    """What was measured of one trace on one processor: a line that says where, the heaps, and their calls."""

    title: str
    lead: str
    table: Table
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Content:
    """All that a page shows. A trace's page has no answer, trade-offs, tables or recipes."""

    title: str
    lead: str
    facts: Sequence[Fact]
    traces: Sequence[TraceSection]
    answer: str = ""
    beside: Sequence[str] = ()
    arena: Figure | None = None
    trade_offs: Sequence[Figure] = ()
    front: Table | None = None
    zoo: Table | None = None
    held_out: Table | None = None
    target: Sequence[TargetSection] = ()
    recipes: Sequence[Mapping[str, Any]] = ()
    objectives: Sequence[str] = ()
    selected: str = ""
    source: str = ""
    origin: Sequence[str] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """Every figure of the page, in its order."""
        found = [*([self.arena] if self.arena else []), *self.trade_offs]
        found += [figure for section in self.target for figure in section.figures]
        for trace in self.traces:
            found += trace.figures
            found += [figure for heap in trace.heaps for figure in (heap.timeline, heap.heap_map)]
        return found


@dataclass(frozen=True)
class Script:
    """A script of the page; its `digest` lets it, and no other, run."""

    text: str

    @property
    def digest(self) -> str:
        """SHA-256 in base64, as a content security policy wants it."""
        return base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode("ascii")


def render(content: Content) -> str:
    """The page as HTML. A content security policy in its head lets it load nothing, and run its own scripts alone."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html.jinja").render(
        content=content,
        style=_template("page.css") + _template("film.css"),
        scripts=[Script(_library()), Script(_template("film.js") + _template("page.js"))],
        data=_packed(content),
    )


def _shortened(value: Value | None) -> Value | None:
    """A metric with two digits more than the page shows of it: noise in the last places does not pack."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _template(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


def _packed(content: Content) -> str:
    """Plots and recipes as JSON, gzip, base64: a fifth of the plain size, and browsers since 2023 unpack it
    themselves.
    """
    at = {recipe["id"]: position for position, recipe in enumerate(content.recipes)}
    keys = [key for key in METRICS if any(key in recipe["metrics"] for recipe in content.recipes)]
    columns = ("id", "kind", "name", "balanced", "summary", "toml")
    data = {
        "figures": {figure.name: figure.page_spec() for figure in content.figures()},
        "films": {film.name: film.data for trace in content.traces for film in trace.films},
        "points": {
            figure.name: [at[row["id"]] for row in figure.datasets["points"]]
            for figure in content.trade_offs
            if figure.datasets
        },
        "metrics": {key: {"unit": METRICS[key].unit, "meaning": METRICS[key].meaning} for key in keys},
        # By column: like stands beside like, and packs twice as well.
        "recipes": {column: [recipe[column] for recipe in content.recipes] for column in columns},
        "values": {key: [_shortened(recipe["metrics"].get(key)) for recipe in content.recipes] for key in keys},
        "objectives": list(content.objectives),
        "selected": content.selected,
        "source": content.source,
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines vegaEmbed."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script")
