"""Heap maps as pictures: what each stretch of the arena held at each moment, address x time."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

from heapwright.replay.pictures import HEAP_MAP_STATES

COLOURS = {
    "payload in use": "#0072B2",
    "free": "#F2CB75",
    "cached": "#009E73",
    "header": "#101820",
    "control data": "#CC79A7",
    "untouched": "#eef1f3",
}
"""Of each of `replay.HEAP_MAP_STATES`, in the order of the legend; Okabe and Ito where they carry meaning."""


@dataclass(frozen=True)
class Pattern:
    """What tells a state apart in grey: cells of another colour, every so many along the rows and the columns."""

    words: str
    colour: str
    diagonal: int
    every: int = 1

    def cells(self, rows: int, columns: int) -> npt.NDArray[np.bool_]:
        """Mask of the cells that have it, bool[rows, columns]."""
        row, column = np.mgrid[:rows, :columns]
        found: npt.NDArray[np.bool_] = ((row + column) % self.diagonal == 0) & (row % self.every == 0)
        return found


PATTERNS = {
    "cached": Pattern("white lines", "#ffffff", 4),
    "control data": Pattern("dark dots", "#1c2630", 4, 2),
    "untouched": Pattern("thin grey lines", "#7f8890", 12),
}
"""Of the states that are as light as others: in grey, states differ by 3 : 1 in lightness, or by these."""

ROWS = 240

SLICE = 1 << 17
"""Blocks drawn at a time."""


def shares(
    parts: Iterable[npt.NDArray[Any]], columns: int, extent: int, rows: int = ROWS, states: int = len(HEAP_MAP_STATES)
) -> npt.NDArray[np.float64]:
    """Share of each cell that each state takes: float64 of shape (states, rows, columns), row 0 at address 0.

    `parts`: structured arrays with fields column, offset, size, state, as `replay.heap_map_parts` gives them; `extent`:
    bytes of arena that the rows divide evenly. What no block covers belongs to no state.
    """
    cover = np.zeros((states, rows + 1, columns))
    edge = np.zeros_like(cover)
    for blocks in parts:
        # The part of row r below t is 1 for r < floor(t), t - r for r = floor(t), 0 above: a step and an edge for each
        # bound.
        for sign, reach in ((1, 0), (-1, 1)):
            for first in range(0, len(blocks), SLICE):
                some = blocks[first : first + SLICE]
                bound = some["offset"].astype(np.float64) * rows / extent
                bound += reach * (some["size"].astype(np.float64) * rows / extent)
                bound = np.minimum(bound, rows)
                row = bound.astype(np.intp)
                cell = some["state"].astype(np.intp), row, some["column"].astype(np.intp)
                np.add.at(cover, cell, sign)
                np.add.at(edge, cell, -sign * (bound - row))
    return np.asarray((cover.cumsum(axis=1) + edge)[:, :rows].clip(0, 1))


def picture(parts: npt.NDArray[np.float64]) -> bytes:
    """The heap map as a PNG of a pixel for each cell of `shares`, address 0 at the bottom.

    A pixel mixes the colours of all that lies in its cell by their shares, so that headers and holes much smaller
    than a cell still tint it. Where a state of `PATTERNS` takes most of a cell, its pattern lies over it. What no block
    covers is white.
    """
    colours = np.array([ImageColor.getrgb(COLOURS[state]) for state in HEAP_MAP_STATES])
    mixed = np.einsum("src,sk->rck", parts, colours) + (1 - parts.sum(axis=0).clip(0, 1))[:, :, np.newaxis] * 255
    for state, pattern in PATTERNS.items():
        most = parts[HEAP_MAP_STATES.index(state)] > 0.5
        mixed[most & pattern.cells(*most.shape)] = ImageColor.getrgb(pattern.colour)
    # Steps of 5 (of 255) are below what the eye tells apart here, and make the file a third smaller.
    pixels = (mixed / 5).round().clip(0, 51).astype(np.uint8)[::-1] * np.uint8(5)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()
