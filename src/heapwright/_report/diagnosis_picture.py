"""The picture of a diagnosis: memory over time, live bytes over calls, or the blocks of a snapshot by address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from heapwright._report.drawing import check_suffix, write_drawing
from heapwright._report.figure import BLUE, CONFIG, PALE, VERMILLION, inline
from heapwright._report.stress_picture import COLOURS
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._diagnose.model import Diagnosis, Picture

WIDTH, HEIGHT, MAP_HEIGHT = 520, 180, 40


def write_picture(diagnosis: Diagnosis, output: Path) -> None:
    """Draw each finding that can be drawn as a file that ends in .svg or .html; errors as of `write_drawing`.

    Raises HeapwrightError if none can.
    """
    check_suffix(output)
    drawn = [finding.picture for finding in diagnosis.findings if finding.picture is not None and finding.picture.rows]
    if not drawn:
        raise HeapwrightError(f"{output}: one reading of a heap gives no picture; leave it out", parameter="output")
    charts = alt.vconcat(*(_chart(picture) for picture in drawn)).resolve_scale(color="independent", x="independent")
    spec: dict[str, Any] = charts.to_dict(validate=False)
    title = f"{diagnosis.kind[0].upper()}{diagnosis.kind[1:]} ({diagnosis.confidence})"
    write_drawing({**spec, "config": CONFIG, "title": title}, title, f"{title}. {diagnosis.sentence}", output)


def _chart(picture: Picture) -> alt.Chart:
    return _map(picture) if picture.is_map else _lines(picture)


def _lines(picture: Picture) -> alt.Chart:
    rows: Sequence[Mapping[str, Any]] = picture.rows
    names = list(dict.fromkeys(str(row["line"]) for row in rows))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    chart: alt.Chart = (
        inline(rows)
        .mark_line(strokeWidth=1.6, point=len(rows) <= 200)
        .encode(
            x=alt.X("x:Q", title=picture.x, scale=alt.Scale(nice=False)),
            y=alt.Y("y:Q", title=picture.y, axis=alt.Axis(format="~s"), scale=alt.Scale(zero=True)),
            color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), title=None),
        )
        .properties(width=WIDTH, height=HEIGHT, title=picture.title)
    )
    return chart


def _map(picture: Picture) -> alt.Chart:
    first = min(int(row["start"]) for row in picture.rows)
    rows = [{**row, "start": row["start"] - first, "end": row["end"] - first} for row in picture.rows]
    colours = alt.Scale(domain=["in use", "free"], range=[BLUE, PALE])
    chart: alt.Chart = (
        inline(rows)
        .mark_rect(stroke=VERMILLION, strokeWidth=0.2)
        .encode(
            x=alt.X("start:Q", title=f"bytes from {first:#x}", scale=alt.Scale(nice=False), axis=alt.Axis(format="~s")),
            x2="end:Q",
            color=alt.Color("state:N", scale=colours, title=None),
        )
        .properties(width=WIDTH, height=MAP_HEIGHT, title=picture.title)
    )
    return chart
