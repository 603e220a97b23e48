"""The plots of what a trace asks for and of what a heap makes of it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from heapwright._replay.pictures import HEAP_MAP_STATES
from heapwright._report import raster
from heapwright._report.figure import BLUE, INK, PALE, VERMILLION, Figure, Row, counted, inline, quantity, ticks
from heapwright._report.figure import bytes_axis as _bytes
from heapwright._report.figure import calls_axis as _calls
from heapwright._traces.profile import FREQUENT_SHARE

TOP_SIZES = 12
HOVERS = 90
"""Places of a timeline that show their numbers under the pointer: as many as a pointer can hit."""
WIDTH, HEIGHT = 540, 250
"""Pixels of a plot as PNG and SVG; in the page two stand side by side."""

# --- what a trace asks for --------------------------------------------------------------------------------------------


def top_sizes(profile: Row, name: str) -> Figure:
    """Shares of the most frequent sizes of a `profile`, those of at least `FREQUENT_SHARE` in colour."""
    rows = [
        {"size": f"{row['size']:,} B", "share": row["share"], "frequent": row["share"] >= FREQUENT_SHARE}
        for row in profile["sizes"][:TOP_SIZES]
    ]
    others = profile["sizes"][TOP_SIZES:]
    if others:
        share = sum(row["share"] for row in others)
        rows.append({"size": counted(len(others), "other"), "share": share, "frequent": False})
    y = alt.Y("size:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=120))
    room = 1.25 * max(row["share"] for row in rows)  # for the words behind the longest bar
    scale = alt.Scale(domain=[0, room], nice=False)
    x = alt.X("share:Q", title="share of requests", scale=scale, axis=alt.Axis(format="%", tickCount=5))
    colour = alt.condition("datum.frequent", alt.value(BLUE), alt.value("#a9b2ba"))
    bars = inline(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=y, color=colour)
    text = inline(rows).mark_text(align="left", dx=4, fontSize=11, color=INK)
    frequent = sum(row["share"] >= FREQUENT_SHARE for row in profile["sizes"])
    return Figure(
        name,
        f"{counted(profile['distinct_sizes'], 'size')}, {frequent or 'none'} with 10 % of the requests or more",
        f"The two most frequent make up {profile['top_two_share']:.0%} of the requests, "
        f"{profile['sizes_for_90_percent']:,} make up 90 %. In colour: 10 % or more.",
        alt.layer(bars, text.encode(x=x, y=y, text=alt.Text("share:Q", format=".1%"))).properties(height=HEIGHT),
        WIDTH,
        listed(f"{row['size']}: {small_share(row['share'])}" for row in rows),
    )


def size_histogram(profile: Row, name: str) -> Figure:
    """Requests and requested bytes by size, in octaves, as shares of their sums."""
    octaves: dict[int, list[float]] = {}
    for row in profile["sizes"]:
        sums = octaves.setdefault(row["size"].bit_length(), [0, 0])
        sums[0] += row["count"]
        sums[1] += row["count"] * row["size"]
    sums_of_all = [sum(sums[at] for sums in octaves.values()) or 1 for at in (0, 1)]
    rows: list[dict[str, Any]] = [
        {"octave": _octave(bits), "of": of, "share": octaves.get(bits, [0, 0])[at] / sums_of_all[at]}
        for bits in range(min(octaves), max(octaves) + 1)
        for at, of in enumerate(("of the requests", "of the requested bytes"))
    ]
    colour = alt.Color("of:N", sort=None, scale=alt.Scale(range=[BLUE, PALE]))
    chart = (
        inline(rows)
        .mark_bar()
        .encode(
            x=alt.X("octave:O", sort=None, title="size, B", axis=alt.Axis(labelAngle=-45, domain=False, ticks=False)),
            xOffset=alt.XOffset("of:N", sort=None),
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%", tickCount=5)),
            color=colour,
            tooltip=[
                alt.Tooltip("octave:O", title="size, B"),
                alt.Tooltip("share:Q", format=".2%"),
                alt.Tooltip("of:N"),
            ],
        )
    )
    return Figure(
        name,
        "Where the requests are, and where the bytes are",
        "Sizes in octaves, powers of two.",
        chart.properties(height=HEIGHT),
        WIDTH,
        listed(f"{row['octave']} B: {small_share(row['share'])} {row['of']}" for row in rows if row["share"]),
    )


def lifetimes(profile: Row, name: str) -> Figure:
    """How many calls objects live, in octaves, as a share of the freed objects."""
    histogram = profile["lifetimes"]["events"]["histogram"]
    total = sum(row["count"] for row in histogram) or 1
    rows = [{"octave": _octave(int(row["from"]).bit_length()), "share": row["count"] / total} for row in histogram]
    chart = (
        inline(rows)
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("octave:O", sort=None, title="calls", axis=alt.Axis(labelAngle=-45, domain=False, ticks=False)),
            y=alt.Y("share:Q", title="share of freed objects", axis=alt.Axis(format="%", tickCount=5)),
            tooltip=[alt.Tooltip("octave:O", title="calls"), alt.Tooltip("share:Q", format=".2%")],
        )
    )
    median, never = profile["lifetimes"]["events"]["p50"], profile["never_freed"]
    remaining = f"{counted(never['objects'], 'object')}, {small_share(never['share'])}"
    half = "" if median is None else f"Half of the freed objects live for {counted(median, 'call')} or less"
    return Figure(
        name,
        half or "Nothing is freed",
        f"Calls between birth and death. Never freed: {remaining}.",
        chart.properties(height=HEIGHT),
        WIDTH,
        listed(f"{row['octave']} calls: {small_share(row['share'])}" for row in rows if row["share"]),
    )


def listed(parts: Iterable[str]) -> str:
    """Numbers in words, one after the other."""
    return f"{'; '.join(parts)}."


def sampled(events: Sequence[int], values: Sequence[int], what: str) -> str:
    """A curve in words: its values at every eighth of the calls."""
    at = np.unique(np.linspace(0, len(events) - 1, 9).round().astype(int)).tolist()
    return listed(f"{values[place]:,} {what} after call {events[place]:,}" for place in at)


def small_share(share: float) -> str:
    """A share in per cent that is 0 only for none: a share of a thousandth is not rounded to 0."""
    if not share or share >= 0.1:
        return f"{share:.0%}"
    return f"{share:.1%}" if share >= 0.0005 else "below 0.1%"


def _octave(bits: int) -> str:
    low, high = (1 << bits) >> 1, (1 << bits) - 1
    return f"{low:,}" if low >= high else f"{_short(low)}–{_short(high)}"


def _short(number: int) -> str:
    for unit, size in (("M", 1 << 20), ("K", 1 << 10)):
        if number >= size:
            return f"{(number + 1) // size}{unit}"
    return str(number)


# --- what a heap makes of it ------------------------------------------------------------------------------------------

SERIES = {"footprint": ("footprint", INK), "allocated": ("allocated", VERMILLION), "requested": ("requested", BLUE)}


STRETCHES = 180
"""Of a timeline, each three pixels wide: what comes and goes within one is a band, not a line that fills the plot."""


def timeline(samples: Mapping[str, npt.NDArray[np.int64]], heap: str, calls: int, extent: int, name: str) -> Figure:
    """Requested, allocated and footprint bytes after each call, of one heap: the most and the least in each stretch.

    `samples`: as `replay.timeline` gives them; `heap`: what to call the heap; `calls`: of the trace; `extent`: upper
    end of the axis in bytes, the same for heaps that are to be compared.
    """
    event = samples["event"]
    begins = np.unique(np.searchsorted(event, np.linspace(0, calls, STRETCHES, endpoint=False)))
    begins = begins[begins < len(event)]
    rows = [
        {"event": at, "series": words, "low": low, "high": high}
        for key, (words, _) in SERIES.items()
        for at, low, high in zip(
            [*event[begins].tolist(), calls],
            *(
                [*result.tolist(), int(samples[key][-1])]
                for result in (np.minimum.reduceat(samples[key], begins), np.maximum.reduceat(samples[key], begins))
            ),
            strict=True,
        )
    ]
    domain, colours = zip(*SERIES.values(), strict=True)
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(domain), range=list(colours)), legend=alt.Legend())
    scale = alt.Scale(domain=[0, extent])
    base = inline(rows).encode(x=_calls(calls), color=colour)
    ground = inline([row for row in rows if row["series"] == "requested"]).encode(x=_calls(calls))
    layers = [
        ground.mark_area(color=BLUE, opacity=0.15, interpolate="step-after").encode(y=_bytes("low", "bytes", scale)),
        ground.mark_area(color=BLUE, opacity=0.4, interpolate="step-after").encode(
            y=_bytes("low", "bytes", scale), y2="high:Q"
        ),
        base.mark_line(strokeWidth=1.5, interpolate="step-after").encode(y=_bytes("high", "bytes", scale)),
    ]
    peak, footprint = int(samples["requested"].max()), int(samples["footprint"].max())
    band = " Lines are the most at each place, the band reaches to the least." if calls > STRETCHES else ""
    return Figure(
        name,
        f"{heap}: footprint {quantity(footprint)}",
        f"{footprint / max(peak, 1) - 1:.1%} above the peak of the requested bytes, {quantity(peak)}.{band}",
        alt.layer(*layers).properties(height=170),
        WIDTH,
        f"At most: footprint {footprint:,}, allocated {int(samples['allocated'].max()):,}, requested {peak:,} bytes. "
        + sampled(event.tolist(), samples["requested"].tolist(), "bytes requested"),
    )


def heap_map(shares: npt.NDArray[np.floating[Any]], heap: str, calls: int, extent: int, name: str) -> Figure:
    """Address x time: what each stretch of the arena holds, of one heap.

    `shares`: as `raster.picture` takes them; the others as in `timeline`.
    """
    url = raster.url(raster.picture(shares))
    states = raster.present(shares)
    scale = alt.Scale(domain=states, range=[raster.COLOURS[state] for state in states])
    axes = {"x": _calls(calls), "y": _bytes("low", "address in the arena, B", alt.Scale(domain=[0, extent]))}
    image = inline([{"url": url, "event": 0, "last": calls, "low": 0, "high": extent}]).mark_image(aspect=False)
    # Squares that are there only for the legend: a picture has none.
    legend = alt.Legend(
        symbolType="square",
        symbolOpacity=1,
        symbolSize=110,
        symbolStrokeWidth=0,
        columns=alt.expr("width < 420 ? 2 : 3"),
    )
    key = inline([{"state": state, "event": 0, "low": 0} for state in states]).mark_point(opacity=0, filled=True)
    layers = [
        image.encode(**axes, x2="last:Q", y2="high:Q", url="url:N"),
        key.encode(**axes, color=alt.Color("state:N", scale=scale, legend=legend)),
    ]
    return Figure(
        name,
        f"{heap}: what lies where, over time",
        "Each pixel mixes the colours of all that lies in its stretch of the arena." + _patterns(states),
        alt.layer(*layers).properties(height=HEIGHT),
        WIDTH,
        f"Of {extent:,} bytes, at the middle and at the last call: {_contents(shares, calls)}",
    )


def _patterns(present: Collection[str]) -> str:
    info = [f"{pattern.words} on {state}" for state, pattern in raster.PATTERNS.items() if state in present]
    return f" For print: {', '.join(info)}." if info else ""


def _contents(shares: npt.NDArray[np.floating[Any]], calls: int) -> str:
    info = []
    for column in (shares.shape[2] // 2, shares.shape[2] - 1):
        parts = shares[:, :, column].mean(axis=1)
        named = [
            f"{small_share(part)} {state}" for state, part in zip(HEAP_MAP_STATES, parts.tolist(), strict=True) if part
        ]
        info.append(", ".join(named))
    return f"{'; '.join(info)}, over {calls:,} calls."


BINS_PER_OCTAVE = 4
LETTER = 7
"""Pixels of a letter at most, on average over a name."""


def instructions(
    histograms: Mapping[str, Sequence[Sequence[int]]], colours: Mapping[str, str], kind: str, name: str
) -> Figure:
    """A histogram of the instructions of calls, a row for each heap; both logarithmic, the worst-case call written out.

    `histograms`: heap -> [[instructions, calls], ...] rising, as `heapwright measure` prints them; `colours`: of the
    heaps; `kind`: of call.
    """
    binned = {heap: _binned(histogram) for heap, histogram in histograms.items()}
    most = max(max(bins.values()) for bins in binned.values())
    upwards = list(histograms)[::-1]
    bars = [
        _bar(heap, at, step, calls, most) for at, heap in enumerate(upwards) for step, calls in binned[heap].items()
    ]
    ends = [
        {"heap": heap, "base": at, "high": _edge(max(binned[heap]) + 1), "worst": histograms[heap][-1][0]}
        for at, heap in enumerate(upwards)
    ]
    extent = [min(bar["low"] for bar in bars), max(bar["high"] for bar in bars) * 4]
    scale = alt.Scale(type="log", base=2, domain=extent, nice=False)
    x = alt.X(
        "low:Q",
        scale=scale,
        axis=alt.Axis(title=f"instructions a {kind} (log)", format=",", values=ticks(extent[0], extent[1], log=True)),
    )
    names = f"{json.dumps(upwards)}[round(datum.value - 0.4)]"
    room = LETTER * max(map(len, upwards))  # Vega takes less, with the letters that it measures
    places = [at + 0.4 for at in range(len(upwards))]
    axis = alt.Axis(title=None, values=places, labelExpr=names, grid=False, minExtent=room)
    y = alt.Y("base:Q", scale=alt.Scale(domain=[0, len(upwards)], nice=False), axis=axis)
    palette = alt.Scale(domain=upwards, range=[colours[heap] for heap in upwards])
    tooltip = [alt.Tooltip("heap:N"), *(alt.Tooltip(f"{key}:Q", format=",") for key in ("from", "to", "calls"))]
    drawn = inline(bars).mark_rect(stroke="white", strokeWidth=0.5)
    worst = inline(ends).mark_text(align="left", baseline="bottom", dx=4, dy=-1, fontSize=11, color=INK)
    layers = [
        drawn.encode(
            x=x, x2="high:Q", y=y, y2="top:Q", tooltip=tooltip, color=alt.Color("heap:N", scale=palette, legend=None)
        ),
        worst.encode(x=alt.X("high:Q", scale=scale), y=y, text=alt.Text("worst:Q", format=",")),
    ]
    return Figure(
        name,
        f"How many instructions a {kind} takes",
        f"The height of a bar is the number of calls, logarithmic, up to {most:,}. Labelled: the worst-case call.",
        alt.layer(*layers).properties(height=40 + 34 * len(upwards)),
        WIDTH,
        listed(f"{heap} {histogram[-1][0]:,}" for heap, histogram in histograms.items()),
    )


def _bar(heap: str, at: int, step: int, calls: int, most: int) -> dict[str, Any]:
    """A bar of the row `at`, low but visible where it stands for a single call."""
    low, high = _edge(step), _edge(step + 1)
    height = 0.15 + 0.65 * (math.log(calls) / math.log(most) if most > 1 else 1.0)
    info = {"from": math.ceil(low), "to": math.ceil(high) - 1, "calls": calls}
    return {"heap": heap, "low": low, "high": high, "base": at, "top": at + height, **info}


def _edge(step: int) -> float:
    return float(2 ** (step / BINS_PER_OCTAVE))


def _binned(histogram: Sequence[Sequence[int]]) -> dict[int, int]:
    """Calls by bin, `BINS_PER_OCTAVE` of them from one power of two to the next."""
    results: dict[int, int] = {}
    for instructions, calls in histogram:
        results[_bin(instructions)] = results.get(_bin(instructions), 0) + calls
    return results


def _bin(instructions: int) -> int:
    return math.floor(math.log2(instructions) * BINS_PER_OCTAVE)
