"""Where to write the names of points so that no two names overlap: greedy, in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LINE_HEIGHT = 13.0
CHARACTER = 6.1
"""Mean width in pixels of a character at 11 px in the fonts of the page."""
MARKER_RADIUS = 5.0


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


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def place(
    anchors: Sequence[Marker], texts: Sequence[str], markers: Sequence[Marker], width: float, height: float
) -> list[Label | None]:
    """A place for each text beside its anchor, or None where all near places are taken.

    Texts are placed in their order, each where it covers the fewest `markers`, then nearest to its anchor. None
    leaves the plot of `width` x `height` pixels or overlaps another text.
    """
    taken: list[_Box] = []
    points = [_around(marker) for marker in markers]
    labels: list[Label | None] = []
    for anchor, text in zip(anchors, texts, strict=True):
        best: tuple[int, float, Label, _Box] | None = None
        for distance, label in _candidates():
            box = _box(anchor, label, len(text) * CHARACTER)
            if box.left < 0 or box.right > width or box.top < 0 or box.bottom > height:
                continue
            if any(box.overlaps(other) for other in taken):
                continue
            covered = sum(box.overlaps(point) for point in points)
            if best is None or (covered, distance) < best[:2]:
                best = (covered, distance, label, box)
        if best is not None:
            taken.append(best[3])
        labels.append(None if best is None else best[2])
    return labels


def _candidates() -> list[tuple[float, Label]]:
    near = [Label(9, 0, "left"), Label(-9, 0, "right"), Label(0, -13, "center"), Label(0, 13, "center")]
    corners = [Label(7 * side, 11 * up, "left" if side > 0 else "right") for up in (-1, 1) for side in (1, -1)]
    far = [Label(12 * side, 22 * up, "left" if side > 0 else "right") for up in (-1, 1) for side in (1, -1)]
    return [(rank, label) for rank, group in enumerate((near, corners, far)) for label in group]


def _box(anchor: Marker, label: Label, width: float) -> _Box:
    left = anchor.x + label.dx - {"left": 0.0, "center": width / 2, "right": width}[label.align]
    middle = anchor.y + label.dy
    return _Box(left, middle - LINE_HEIGHT / 2, left + width, middle + LINE_HEIGHT / 2)


def _around(marker: Marker) -> _Box:
    return _Box(marker.x - MARKER_RADIUS, marker.y - MARKER_RADIUS, marker.x + MARKER_RADIUS, marker.y + MARKER_RADIUS)
