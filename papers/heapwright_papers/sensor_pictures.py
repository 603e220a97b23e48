"""The figures about allocators for sensor nodes: instructions, memory, code, and the worst calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heapwright_papers import sensor_runs as runs
from heapwright_papers.measuring import CPU
from heapwright_papers.sensor_runs import FIVE, KINDS, LEVELS, MANTIS, Results

if TYPE_CHECKING:
    from heapwright import figure

WIDTH = 540
"""Pixels: at the width of a phone the words are still three quarters of their size."""
ROW, PLACE = 26, 68
MARKS = ("circle", "square", "triangle-up", "cross", "diamond")
OWN = "Blue: the paper's own two."


def times(results: Results, kind: str) -> figure.Figure | None:
    """Figures 6 and 7; None without tools."""
    words = {"malloc": "allocates", "free": "frees"}[kind]
    values = {heap: {name: [results.instructions(heap, name, kind) or 0.0] for name in results.traces} for heap in FIVE}
    if not all(value for of in values.values() for one in of.values() for value in one):
        return None
    fastest = {min(FIVE, key=lambda heap: values[heap][name][0]) for name in results.traces}
    title = f"{' or '.join(sorted(fastest))} {words} in the fewest instructions on every trace"
    note = f"Average instructions of a {kind} on a {CPU}; random traces: of {runs.SEEDS} seeds. {OWN}"
    return _points(f"sensor-{kind}", title, note, values, f"instructions of a {kind} (logarithmic)", log=True)


def memory(results: Results) -> figure.Figure:
    """Figure 8, as a ratio: in bytes the differences between allocators vanish beside those between traces."""
    live = {name: [trace.peak_live_bytes for trace in some] for name, some in results.traces.items()}
    values = {
        heap: {
            name: [
                one.memory / live[name][at]
                for at, one in enumerate(results.found[heap][name])
                if one.memory is not None
            ]
            for name in results.traces
        }
        for heap in FIVE
    }
    title = "mmem needs the least memory for each kind of trace, memmgr the most"
    note = (
        f"The smallest arena in steps of {runs.UNIT} B, over the most bytes that live at once; of random traces one "
        f"mark for each seed. Handles, which callers keep, are not counted, as in the paper. {OWN}"
    )
    return _points("sensor-memory", title, note, values, "memory / most live bytes", log=False)


def code(results: Results) -> figure.Figure | None:
    """Figure 9; None without a compiler."""
    sizes = {heap: results.codes[heap] for heap in FIVE}
    if any(one is None for one in sizes.values()):
        return None
    values = {
        heap: {f"-{level}": [float(one[level].text + one[level].data)] for level in LEVELS}
        for heap, one in sizes.items()
    }
    least = {level: min(FIVE, key=lambda heap: values[heap][f"-{level}"][0]) for level in LEVELS}
    at = {heap: " and ".join(f"-{level}" for level in LEVELS if least[level] == heap) for heap in least.values()}
    title = "Least code: " + ", ".join(f"{heap} at {levels}" for heap, levels in at.items())
    note = f"Bytes of malloc and free with what they call, for a {CPU}, by level of optimisation. {OWN}"
    return _points("sensor-code", title, note, values, "bytes of code", log=False, zero=True)


def _points(
    name: str,
    title: str,
    note: str,
    values: Mapping[str, Mapping[str, Sequence[float]]],
    axis: str,
    log: bool,
    zero: bool = False,
) -> figure.Figure:
    """A mark for each heap and value, heaps below each other in the band of their trace."""
    import altair as alt

    from heapwright import figure

    rows = [
        {"place": place, "heap": heap, "value": value}
        for heap, of in values.items()
        for place, some in of.items()
        for value in some
    ]
    every = [float(row["value"]) for row in rows if isinstance(row["value"], float)]
    places = list(dict.fromkeys(str(row["place"]) for row in rows))
    colours = alt.Scale(domain=list(FIVE), range=[figure.CLOUD, figure.INK, figure.BLUE, figure.INK, figure.BLUE])
    if log:
        x = _logarithmic(axis, every, figure.SI)
    else:
        domain = [0 if zero else 0.98, 1.03 * max(every)]
        x = alt.X("value:Q", title=axis, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=7))
    legend = alt.Legend(columns=3, labelLimit=200)
    chart = (
        figure.inline(rows)
        .mark_point(filled=True, size=75, opacity=0.85)
        .encode(
            x=x,
            y=alt.Y(
                "place:N",
                title=None,
                sort=places,
                scale=alt.Scale(paddingInner=0.3, paddingOuter=0.1),
                axis=alt.Axis(grid=True, labelLimit=200, labelFontSize=12),
            ),
            yOffset=alt.YOffset("heap:N", sort=list(FIVE)),
            color=alt.Color("heap:N", sort=None, scale=colours, legend=legend),
            shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=list(FIVE), range=list(MARKS))),
        )
        .properties(height=PLACE * len(places))
    )
    return figure.Figure(name, title, note, chart, WIDTH)


def _logarithmic(axis: str, values: Sequence[float], labels: str) -> Any:
    import altair as alt

    powers = [10.0**exponent for exponent in range(7)]
    domain = [0.7 * min(values), 1.4 * max(values)]
    ticks = [power for power in powers if domain[0] <= power <= domain[1]]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    return alt.X("value:Q", title=axis, scale=scale, axis=alt.Axis(values=ticks, labelExpr=labels))


def worst(results: Results) -> figure.Figure | None:
    """The average, the dearest and the worst found call of each allocator; None without tools."""
    import altair as alt

    from heapwright import figure

    if results.worst is None:
        return None
    labels = ("average", "dearest on the trace", "worst found by search")
    rows = []
    for kind in KINDS:
        for heap in (*FIVE, MANTIS):
            first = results.found[heap][runs.SEARCHED][0].instructions
            assert first is not None
            numbers = (*first[kind], results.worst[heap].instructions[kind])
            rows += [
                {"call": f"{kind}, {heap}", "what": what, "value": float(value)}
                for what, value in zip(labels, numbers, strict=True)
            ]
    calls = list(dict.fromkeys(str(row["call"]) for row in rows))
    x = _logarithmic("instructions of a call (logarithmic)", [float(str(row["value"])) for row in rows], figure.SI)
    y = alt.Y("call:N", title=None, sort=calls, axis=alt.Axis(grid=True, labelLimit=220, labelFontSize=12))
    colours = alt.Scale(domain=list(labels), range=[figure.CLOUD, figure.INK, figure.BLUE])
    shapes = alt.Scale(domain=list(labels), range=["circle", "square", "diamond"])
    base = figure.inline(rows)
    lines = base.mark_line(color=figure.SOFT, strokeWidth=1).encode(x=x, y=y, detail="call:N")
    legend = alt.Legend(columns=3, labelLimit=200)
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color("what:N", sort=None, scale=colours, legend=legend),
        shape=alt.Shape("what:N", sort=None, scale=shapes),
    )
    title = "Only a free that sets a flag costs the same whatever the program does"
    note = (
        f"Instructions on a {CPU}: random requests of 1 to 128 bytes, and the worst calls that a search finds with no "
        "other sizes and no more live."
    )
    chart = alt.layer(lines, points).properties(height=ROW * len(calls))
    return figure.Figure("sensor-worst", title, note, chart, WIDTH)
