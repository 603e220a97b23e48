"""Where to write the names of points so that no two names overlap and none is nearer to another point: in pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LINE_HEIGHT = 13.0
CHARACTER = 6.1
"""Mean width in pixels of a character at 11 px in the fonts of the page."""
APART = 1.0
"""Pixels by which a name is nearer to its own point than to any other."""


class Marker(NamedTuple):
    """A point on the plot, in pixels from its upper left corner."""

    x: float
    y: float


class Label(NamedTuple):
    """Where a name stands: the offset in pixels of its anchor from the point, and which end of the text is the
    anchor.
    """

    dx: float
    dy: float
    align: str


class Box(NamedTuple):
    """An upright rectangle of the plot, in pixels from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether they share an area."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def distance(self, point: Marker) -> float:
        """Pixels from the point to the nearest part of the box; 0 inside."""
        across = max(self.left - point.x, 0.0, point.x - self.right)
        return math.hypot(across, max(self.top - point.y, 0.0, point.y - self.bottom))

    def distances(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """`distance` of many points, float64[n, 2]."""
        low, high = (self.left, self.top), (self.right, self.bottom)
        away: npt.NDArray[np.float64] = np.maximum(np.maximum(low - points, points - high), 0.0)
        return np.hypot(away[:, 0], away[:, 1])


def place(
    anchors: Sequence[Marker],
    texts: Sequence[str],
    markers: Sequence[Marker],
    width: float,
    height: float,
    taken: Sequence[Box] = (),
) -> list[Label | None]:
    """A place for each text next to its anchor, or None if there is no room.

    Texts are placed in their order, each at the first place near its anchor that does not leave the plot of
    `width` x `height` pixels, overlaps no other text and none of the boxes `taken`, and is nearer to the anchor than to
    any of the other `markers`.
    """
    full = list(taken)
    labels: list[Label | None] = []
    for anchor, text in zip(anchors, texts, strict=True):
        # Points that all but coincide may be as near; no other may be nearly so.
        others = [(marker, min(APART, math.dist(marker, anchor) / 2)) for marker in markers]
        result = None
        for label in _CANDIDATES:
            box = box_of(anchor, label, text)
            inside = box.left >= 0 and box.right <= width and box.top >= 0 and box.bottom <= height
            if not inside or any(box.overlaps(other) for other in full):
                continue
            own = box.distance(anchor)
            if all(box.distance(other) >= own + apart for other, apart in others):
                result = label
                full.append(box)
                break
        labels.append(result)
    return labels


def box_of(anchor: Marker, label: Label, text: str) -> Box:
    """What a text placed so covers."""
    width = len(text) * CHARACTER
    remaining = anchor.x + label.dx - {"left": 0.0, "center": width / 2, "right": width}[label.align]
    middle = anchor.y + label.dy
    return Box(remaining, middle - LINE_HEIGHT / 2, remaining + width, middle + LINE_HEIGHT / 2)


def _around(gap: float) -> list[Label]:
    beside = [Label(gap, 0, "left"), Label(-gap, 0, "right")]
    above = [Label(0, -gap - 5, "center"), Label(0, gap + 5, "center")]
    corners = [
        Label(0.7 * gap * side, (0.7 * gap + 5) * up, "left" if side > 0 else "right")
        for up in (-1, 1)
        for side in (1, -1)
    ]
    return [*beside, *above, *corners]


_CANDIDATES = [label for gap in (9, 20) for label in _around(gap)]
