"""The picture of an attack: what came of each fault at each level of checks, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from heapwright._report.drawing import write_drawing
from heapwright._report.figure import CONFIG, Row, inline

SHADES = {"at_once": "#0072B2", "later": "#b5d8ee", "harmless": "#f3f5f6", "silent": "#E69F00", "crashed": "#101820"}
"""Colours of the outcomes, from the best to the worst; in grey their lightness of 46, 84, 96, 70 and 8 differs."""
WIDTH, STEP = 190, 17


def _words(name: str) -> str:
    return name.replace("_", " ")


def write_picture(result: Sequence[Row], output: Path) -> None:
    """Draw what `heapwright attack --json` prints as a file that ends in .svg or .html.

    Raises ParameterError for any other name, HeapwrightError where the file cannot be written or drawn.
    """
    write_drawing(_spec(result), _title(result), _description(result), output)


def _spec(result: Sequence[Row]) -> dict[str, Any]:
    rows = [
        {
            "panel": _panel(level),
            "fault": _words(fault),
            "outcome": _words(outcome),
            "order": place,
            "share": counts[outcome] / counts["runs"],
        }
        for level in result
        for fault, counts in level["faults"].items()
        for place, outcome in enumerate(SHADES)
    ]
    panels = list(dict.fromkeys(map(_panel, result)))
    outcomes = [_words(outcome) for outcome in SHADES]
    colour = alt.Color("outcome:N", scale=alt.Scale(domain=outcomes, range=list(SHADES.values())), title=None)
    chart = (
        inline(rows)
        .mark_bar(stroke="white", strokeWidth=0.6, height={"band": 0.82})
        .encode(
            x=alt.X("share:Q", title="share of runs", axis=alt.Axis(format="%", values=[0, 0.5, 1])),
            y=alt.Y("fault:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=120)),
            color=colour,
            order=alt.Order("order:Q"),
        )
        .properties(width=WIDTH, height=alt.Step(STEP))
        .facet(facet=alt.Facet("panel:N", sort=panels, title=None, header=alt.Header(labelFontSize=12)), columns=4)
    )
    spec: dict[str, Any] = chart.to_dict(validate=False)
    return {**spec, "config": CONFIG, "title": _title(result)}


def _panel(level: Row) -> str:
    parts = level["heap"], level["checks"], level["cpu"]
    return ", ".join(part for part in parts if part)


def _title(result: Sequence[Row]) -> str:
    runs = max((counts["runs"] for level in result for counts in level["faults"].values()), default=0)
    return f"What came of {runs:,} runs of each fault"


def _description(result: Sequence[Row]) -> str:
    """The numbers in words, for those who do not see the picture."""
    panels = []
    for level in result:
        faults = [f"{_words(fault)} {_shares(counts)}" for fault, counts in level["faults"].items()]
        panels.append(f"{_panel(level)}: {'; '.join(faults)}.")
    return " ".join([f"{_title(result)}.", *panels])


def _shares(counts: Row) -> str:
    return ", ".join(f"{counts[item] / counts['runs']:.1%} {_words(item)}" for item in SHADES)
