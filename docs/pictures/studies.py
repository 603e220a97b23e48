"""Pictures of explorations: what was tried, the front, and the recommendations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

import heapwright as hw
from pictures.arenas import heap_map
from pictures.drawing import LINE, Picture
from pictures.plot import Named, Plot, Span, name_points, octaves, short, steps
from pictures.recordings import broker

PICKS = ("balanced", "smallest", "fastest")
ALTERNATIVES = ("all-round", "tlsf", "newlib-nano", "fast")
REACH = (1.35, 18.0)
"""How many times the least memory, and the fewest accesses, the plot shows."""
CELL = 4
"""Pixels within which recipes off the front are one mark."""


Points = Mapping[str, tuple[str, int, float]]
"""Recipes by id: the zoo's name, long-run need, accesses a call."""


def _points(study: hw.Study) -> Points:
    """Recipes that were replayed on the whole future and have a bounded need."""
    _, rows = study.sql(
        "SELECT recipe, name, long_run_bytes, long_run_accesses FROM replays "
        "WHERE ranked AND long_run_bytes IS NOT NULL"
    )
    return {id: (name or "", int(need), float(accesses)) for id, name, need, accesses in rows}


def trade_off(study: hw.Study) -> Picture:
    """The recipes of a study that were replayed on all of the future, by memory and accesses, and the front."""
    points = _points(study)
    front = [points[item.id][1:] for item in study.front()]
    low = min(footprint for footprint, _ in front), min(accesses for _, accesses in front)
    text = "Recipes by long-run need and accesses: the front, recommendations, alternatives"
    picture = Picture(text, 420)
    picture.text(16, 28, f"Best of {study.tried} recipes for an MQTT broker, by long-run need", bold=True)
    x = Span(low[1] * 0.9, low[1] * REACH[1], 76, 524, log=True)
    plot = Plot(picture, x, Span(low[0] * 0.84, low[0] * REACH[0], 362, 48))
    plot.grid_y(steps(plot.y.low, plot.y.high))
    plot.grid_x(octaves(x.low, x.high), short)
    picture.text(524, 402, "accesses a call", "soft", anchor="end")
    cells = set()
    for _, footprint, accesses in points.values():
        at = plot.place(accesses, footprint)
        if accesses < x.high and footprint < plot.y.high:
            cells.add((round(at[0] / CELL) * CELL, round(at[1] / CELL) * CELL))
    marks, last = "", (0, 0)
    for at_x, at_y in sorted(cells):
        marks += f"m{at_x - last[0]} {at_y - last[1]}h2"
        last = at_x + 2, at_y
    picture.path(f"M0 0{marks}", "pale", 2)
    shown = [(accesses, footprint) for footprint, accesses in sorted(front, key=lambda item: item[1])]
    plot.stairs(shown, "blue", 2)
    for point in shown:
        plot.dot(*point, 3, "blue")
    corners = [plot.place(*point) for point in shown]
    line = [(x, left[1]) for left, right in pairwise(corners) for x in np.arange(left[0], right[0], 6.0)]
    name_points(plot, _named(study, points), [*corners, *line])
    return picture


def _named(study: hw.Study, points: Points) -> list[Named]:
    """The recommendations and the alternatives."""
    picks: dict[str, list[str]] = {}
    for how in PICKS:
        picks.setdefault(study.pick(how).id, []).append(how)  # type: ignore[arg-type]
    by_name = {name: id for id, (name, _, _) in points.items() if name}
    names = picks | {by_name[name]: [name] for name in ALTERNATIVES if by_name[name] not in picks}
    return [Named(points[id][2], points[id][1], ", ".join(words), id in picks) for id, words in names.items()]


def pick(study: hw.Study) -> Picture:
    """The heap map of the balanced pick."""
    text = "Heap map of the balanced recommendation"
    return heap_map(broker(), study.pick("balanced").recipe, "The balanced recommendation on the MQTT broker", text)


def answer(study: hw.Study) -> Picture:
    """What the report begins with: the heap to ship, the arena to reserve, and what else one could take."""
    shipped = study.pick("balanced")
    members = [shipped, *(study[name] for name in ALTERNATIVES[:3])]
    reserves = dict(zip(study.combined.ids, study.reserves.tolist(), strict=True))
    picture = Picture("The heap to ship and its reserve, compared with all-round, TLSF and newlib-nano", 316)
    picture.text(16, 28, f"Ship {shipped.recipe.title()}:", bold=True)
    picture.text(16, 28 + LINE, f"reserve {reserves[shipped.id]:,.0f} bytes for the MQTT broker.", bold=True)
    heads = (
        ("reserve,", "bytes"),
        ("on the", "recording"),
        ("accesses", "a call"),
        ("worst-case", "malloc"),
    )
    ends = (230, 342, 436, 524)
    for end, words in zip(ends, heads, strict=True):
        picture.lines(end, 80, words, "soft", "end")
    span = Span(0, max(reserves[member.id] for member in members), 16, 524)
    for at, member in enumerate(members):
        y, colour = 126 + at * 48, "green" if member is shipped else "ink"
        values = (
            f"{reserves[member.id]:,.0f}",
            f"{member.metrics['footprint_bytes']:,}",
            f"{member.metrics['long_run_accesses']:.1f}",
            f"{member.metrics['long_run_malloc_max']:,}",
        )
        picture.text(16, y, "tailored" if member is shipped else member.label, colour, bold=member is shipped)
        for end, value in zip(ends, values, strict=True):
            picture.text(end, y, value, colour, "end", member is shipped)
        picture.box(16, y + 8, span.at(reserves[member.id]) - 16, 14, "green" if member is shipped else "pale")
    return picture
