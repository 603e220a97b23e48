"""The picture of a sweep: the memory that admits a share, and how much of it is used, over the option's values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from heapwright._report.drawing import write_drawing
from heapwright._report.figure import CONFIG, inline
from heapwright._report.stress_picture import COLOURS

if TYPE_CHECKING:
    from heapwright._replay.admission import Admission

WIDTH, HEIGHT = 300, 200


def write_picture(result: Sequence[Admission], option: str, output: Path) -> None:
    """Draw as a file that ends in .svg or .html; errors as of `write_drawing`."""
    info = [
        f"{item.heap} at {item.swept:g}: {item.arena_bytes:,} bytes" for item in result if item.arena_bytes is not None
    ]
    title = f"Memory that admits {100 * result[0].share:g} % of what is asked for"
    write_drawing(_spec(result, option, title), title, f"{title}, by {option}. {'; '.join(info)}.", output)


def _spec(result: Sequence[Admission], option: str, title: str) -> dict[str, Any]:
    rows = [
        {"heap": item.heap, "at": item.swept, "KB": item.arena_bytes / 1000, "utilisation": item.utilisation}
        for item in result
        if item.arena_bytes is not None
    ]
    names = list(dict.fromkeys(item.heap for item in result))
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    panels = [
        inline(rows)
        .mark_line(point=True, strokeWidth=1.6)
        .encode(
            x=alt.X("at:Q", title=option, scale=alt.Scale(zero=False)),
            y=alt.Y(f"{key}:Q", title=name),
            color=alt.Color("heap:N", scale=alt.Scale(domain=names, range=colours), title=None),
        )
        .properties(width=WIDTH, height=HEIGHT)
        for key, name in (("KB", "KB of arena"), ("utilisation", "utilisation"))
    ]
    spec: dict[str, Any] = alt.hconcat(*panels).to_dict(validate=False)
    return {**spec, "config": CONFIG, "title": title}
