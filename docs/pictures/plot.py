"""Axes on a picture: where values lie, lines through them, and bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import heapwright as hw
from pictures.drawing import SIZE, Picture, line_path, number


def short(value: float) -> str:
    """A number for an axis: with K or M where it has more than three digits."""
    for unit, scale in (("M", 1e6), ("K", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def kilobytes(value: float) -> str:
    """Bytes for an axis, in units of 1,000."""
    return f"{value / 1000:.4g} KB" if value else "0"


def steps(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round values between two, about `wanted` of them."""
    power = 10.0 ** math.floor(math.log10((high - low) / wanted))
    step = next(item * power for item in (1, 2, 5, 10) if (high - low) / (item * power) <= wanted)
    return [at * step for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def octaves(low: float, high: float) -> list[float]:
    """Values 1, 2 and 5 of each power of ten between two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [item for power in powers for item in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= item <= high]


@dataclass(frozen=True)
class Span:
    """The values from `low` to `high` along pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; those outside lie at the edge."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (self.end - self.start) * (value - low) / (high - low)


class Named(NamedTuple):
    """A point with a name."""

    x: float
    y: float
    words: str
    stands_out: bool = False


@dataclass(frozen=True)
class Plot:
    """Two spans that cross on a picture."""

    picture: Picture
    x: Span
    y: Span

    def grid_x(self, values: Sequence[float], words: Callable[[float], str] = short, title: str = "") -> None:
        """Draw upright lines at values, with numbers below, and a title below these."""
        foot = max(self.y.start, self.y.end)
        for value in values:
            self.picture.line([(self.x.at(value), self.y.start), (self.x.at(value), self.y.end)], "grid")
            self.picture.text(self.x.at(value), foot + 20, words(value), "soft", anchor="middle")
        if title:
            self.picture.text(self.x.end, foot + 42, title, "soft", anchor="end")

    def grid_y(self, values: Sequence[float], words: Callable[[float], str] = kilobytes) -> None:
        """Draw level lines at values, with numbers on the left."""
        for value in values:
            self.picture.line([(self.x.start, self.y.at(value)), (self.x.end, self.y.at(value))], "grid")
            self.picture.text(self.x.start - 8, self.y.at(value) + 5, words(value), "soft", anchor="end")

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixels of a point."""
        return self.x.at(x), self.y.at(y)

    def line(self, points: Iterable[tuple[float, float]], colour: str, width: float = 2, dashes: str = "") -> None:
        """Draw straight from point to point."""
        self.picture.line([self.place(*point) for point in points], colour, width, dashes)

    def stairs(self, points: Sequence[tuple[float, float]], colour: str, width: float = 2) -> None:
        """Draw level from each point to below or above the next."""
        self.picture.path(_stairs([self.place(*point) for point in points]), colour, width)

    def ground(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """Fill what lies between stairs and the foot of the plot."""
        foot = number(self.y.start)
        placed = [self.place(*point) for point in points]
        end, start = number(placed[-1][0]), number(placed[0][0])
        self.picture.area(f"{_stairs(placed)}H{end}V{foot}H{start}Z", colour)

    def dot(self, x: float, y: float, radius: float, colour: str, edge: str = "") -> None:
        """Mark a point."""
        self.picture.dot(*self.place(x, y), radius, colour, edge)


def name_points(plot: Plot, points: Sequence[Named], taken: Sequence[tuple[float, float]] = ()) -> None:
    """Mark points, with names that cover neither one another nor the places `taken` (pixels)."""
    scale = 11 / SIZE  # labels are placed for letters of 11 pixels
    remaining, top = plot.x.start, plot.y.end
    places = [plot.place(point.x, point.y) for point in points]
    markers = [hw.labels.Marker((x - remaining) * scale, (y - top) * scale) for x, y in places]
    boxes = [
        hw.labels.Box(
            (x - remaining - 5) * scale, (y - top - 5) * scale, (x - remaining + 5) * scale, (y - top + 5) * scale
        )
        for x, y in taken
    ]
    room = (plot.x.end - remaining) * scale, (plot.y.start - top) * scale
    result = hw.labels.place(markers, [point.words for point in points], markers, *room, boxes)
    for point, (x, y), label in zip(points, places, result, strict=True):
        colour = "red" if point.stands_out else "ink"
        label = label or hw.labels.Label(0, 14, "center")
        anchor = {"left": "start", "right": "end", "center": "middle"}[label.align]
        plot.picture.dot(x, y, 5, colour, "paper")
        plot.picture.text(
            x + label.dx / scale, y + label.dy / scale + 5, point.words, colour, anchor, bold=point.stands_out
        )


def _stairs(points: Sequence[tuple[float, float]]) -> str:
    first, *others = points
    return line_path([first]) + "".join(f"H{number(x)}V{number(y)}" for x, y in others)
