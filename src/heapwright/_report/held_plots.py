"""The plots of who holds the live bytes of a trace: over time, and at the peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from heapwright._report.figure import (
    Figure,
    Row,
    bytes_axis,
    calls_axis,
    counted,
    inline,
    quantity,
)
from heapwright._report.plots import HEIGHT, HOVERS, WIDTH, listed, sampled
from heapwright._traces.holders import FRAME_SEPARATOR, OTHERS, short_names, size_class

# Colours of sites are distinct (Okabe and Ito), sizes rise from light to dark (ColorBrewer's YlGnBu).
SITE_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
SIZE_COLOURS = ("#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#253494", "#081d58")

# Letters stand on these and on the colours above, on a dark page, too: none of them is turned into another there.
WHOLE, CALLER, REST = "#e7eaed", "#eef1f3", "#d4d9dd"
DARK_LETTERS, LIGHT_LETTERS = "#1b252f", "#ffffff"

_LEGEND: dict[str, dict[str, Any]] = {
    "size": {"columns": alt.expr("width < 420 ? 2 : 4")},
    "site": {"columns": alt.expr("width < 420 ? 1 : 2"), "labelLimit": 220},
}
_ROW = 28
"""Pixels of a level of the icicle."""
_LETTER = 6.8
"""Pixels of a letter in it."""
TOLD = 12
"""Rows of the icicle that are described in words, too."""
_LEAST_SHARE = 0.002
"""Of the peak: what holds less is not drawn."""


def live_by(profile: Row, name: str) -> Figure:
    """Live requested bytes over the calls, stacked by who holds them."""
    info = profile["live_by"]
    colours = group_colours(info)
    label = short_names(info["groups"])
    rows = [
        {"event": event, "group": label[group], "order": at, "bytes": size}
        for at, (group, sizes) in enumerate(zip(info["groups"], info["bytes"], strict=True))
        for event, size in zip(info["event"], sizes, strict=True)
    ]
    sums = [sum(sizes) for sizes in zip(*info["bytes"], strict=True)]
    curve = [{"event": event, "bytes": size} for event, size in zip(info["event"], sums, strict=True)]
    scale = alt.Scale(domain=[label[group] for group in info["groups"]], range=list(colours.values()))
    numbers = [alt.Tooltip(f"{key}:Q", format=",") for key in ("event", "bytes")]
    x, y = calls_axis(profile["events"]), bytes_axis("bytes", "live bytes requested, B")
    area = (
        inline(rows)
        .mark_area(strokeWidth=0)
        .encode(
            x=x,
            y=y.stack("zero"),
            order="order:Q",
            color=alt.Color("group:N", scale=scale, legend=alt.Legend(**_LEGEND[info["key"]])),
            tooltip=[alt.Tooltip("group:N", title=info["key"]), *numbers],
        )
    )
    curve = curve[:: max(1, len(curve) // HOVERS)]
    hover = inline(curve).mark_rule(opacity=0.001, strokeWidth=6).encode(x=x, tooltip=numbers)
    by = "the call site of its latest request" if info["key"] == "site" else "its size"
    return Figure(
        name,
        f"Live memory peaks at {quantity(profile['requested_peak_bytes'])} "
        f"after call {profile['requested_peak_event']:,}",
        f"Each object by {by}. At most {counted(profile['live_objects_peak'], 'object')} live at once.",
        alt.layer(area, hover).properties(height=HEIGHT),
        WIDTH,
        sampled(info["event"], sums, "live bytes"),
    )


def at_peak(profile: Row, name: str) -> Figure:
    """Who holds the peak of the live bytes, as an icicle: callers above what they call, sizes below sites."""
    info = profile["live_by"]
    colours = group_colours(info)
    peak = max(profile["requested_peak_bytes"], 1)
    root = _Node(f"{quantity(profile['requested_peak_bytes'])} at the peak")
    for row in profile["at_peak"]:
        path, colour = _path(row, info["key"], colours)
        root.add(row["bytes"], row["objects"], path, colour)
    drawn = list(root.drawn(0, 0, peak))
    deepest = max(row["level"] for row in drawn) + 1
    x = alt.X("from:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    y = alt.Y("level:Q", scale=alt.Scale(domain=[deepest, 0], nice=False), axis=None)
    base = inline(drawn).encode(
        x=x,
        tooltip=[
            alt.Tooltip("name:N"),
            *(alt.Tooltip(f"{key}:Q", format=",") for key in ("bytes", "objects")),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    bars = base.mark_rect(stroke="white", strokeWidth=1).encode(
        x2="to:Q", y=y, y2="below:Q", color=alt.Color("colour:N", scale=None)
    )
    fits = alt.expr(f"datum.share * width > {_LETTER} * length(datum.label) ? 1 : 0")  # in a narrow page
    words = base.mark_text(align="left", baseline="middle", dx=4, fontSize=11, opacity=fits).encode(
        y=alt.Y("middle:Q", scale=alt.Scale(domain=[deepest, 0], nice=False), axis=None),
        text="label:N",
        color=alt.Color("ink:N", scale=None),
    )
    return Figure(
        name,
        _who(profile, peak),
        "The width is the share of the peak's bytes: "
        + ("sites, their callers above them, and below them sizes." if info["key"] == "site" else "classes of sizes.")
        + " The colours are those of the bytes over time.",
        alt.layer(bars, words).properties(height=_ROW * deepest),
        WIDTH,
        listed(f"{row['name']}: {row['bytes']:,} B" for row in drawn[1 : TOLD + 1]),
    )


def group_colours(told: Mapping[str, Any]) -> dict[str, str]:
    """The colour of each group of a profile's `live_by`."""
    palette = SITE_COLOURS if told["key"] == "site" else SIZE_COLOURS
    return {group: REST if group == OTHERS else palette[at % len(palette)] for at, group in enumerate(told["groups"])}


def _who(profile: Row, peak: int) -> str:
    """How few sites, or sizes, hold nine tenths of the peak."""
    key = profile["live_by"]["key"]
    held: dict[Any, int] = {}
    for row in profile["at_peak"]:
        held[row[key]] = held.get(row[key], 0) + row["bytes"]
    covered, count = 0, 0
    for size in sorted(held.values(), reverse=True):
        if covered >= 0.9 * peak:
            break
        covered, count = covered + size, count + 1
    return f"{count:,} of {len(held):,} {key}s {'holds' if count == 1 else 'hold'} 90 % of the peak"


def _path(row: Row, key: str, colours: Mapping[str, str]) -> tuple[Sequence[tuple[str, str]], str]:
    """The levels that lead to a row of `at_peak`, each with its colour, and the colour of the last."""
    if key == "size":
        group = size_class(row["size"])
        colour = colours.get(group, REST)
        return [(group, colour), (f"{row['size']:,} B", colour)], colour
    colour = colours.get(row["site"] or "(not named)", REST)
    *callers, site = (row["site"] or "(not named)").split(FRAME_SEPARATOR)
    return [*((caller, CALLER) for caller in callers), (site, colour), (f"{row['size']:,} B", colour)], colour


@dataclass
class _Node:
    """What has a name at one level of the icicle, with all below it."""

    name: str
    colour: str = WHOLE
    bytes: int = 0
    objects: int = 0
    below: dict[str, _Node] = field(default_factory=dict)

    def add(self, size: int, objects: int, path: Sequence[tuple[str, str]], colour: str) -> None:
        self.bytes += size
        self.objects += objects
        if path:
            (name, own), *rest = path
            self.below.setdefault(name, _Node(name, own)).add(size, objects, rest, colour)

    def drawn(self, level: int, at: int, peak: int) -> Any:
        """A row for this one, from byte `at` on, and for each visible one below it; the largest first."""
        share = self.bytes / peak
        yield {
            "name": self.name,
            "label": _fitting(self.name, share * WIDTH, whole=not self.below),
            "from": at / peak,
            "to": (at + self.bytes) / peak,
            "level": level,
            "middle": level + 0.5,
            "below": level + 1,
            "bytes": self.bytes,
            "objects": self.objects,
            "share": share,
            "colour": self.colour,
            "ink": _ink(self.colour),
        }
        for node in sorted(self.below.values(), key=lambda node: -node.bytes):
            if node.bytes >= _LEAST_SHARE * peak:
                yield from node.drawn(level + 1, at, peak)
            at += node.bytes


def _ink(colour: str) -> str:
    """Black or white, the one that is read better on a colour (luma of ITU-R BT.601)."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return DARK_LETTERS if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else LIGHT_LETTERS


def _fitting(text: str, width: float, *, whole: bool) -> str:
    """The text, or as much of it as fits; a number that is cut would be another one."""
    letters = int((width - 6) / _LETTER)
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…" if letters > 3 and not whole else ""
