"""Heap maps as pictures: what each stretch of the arena held at each moment, address x time."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

from heapwright.replay.pictures import HEAP_MAP_STATES

COLOURS = {
    "payload in use": "#0072B2",
    "free": "#F2CB75",
    "cached": "#009E73",
    "header": "#1c2630",
    "control data": "#CC79A7",
    "untouched": "#eef1f3",
}
"""Of each of `replay.HEAP_MAP_STATES`, in the order of the legend; Okabe and Ito where they carry meaning."""

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
    than a cell still tint it. What no block covers is white.
    """
    colours = np.array([ImageColor.getrgb(COLOURS[state]) for state in HEAP_MAP_STATES])
    mixed = np.einsum("src,sk->rck", parts, colours) + (1 - parts.sum(axis=0).clip(0, 1))[:, :, np.newaxis] * 255
    # Steps of 5 (of 255) are below what the eye tells apart here, and make the file a third smaller.
    pixels = (mixed / 5).round().clip(0, 51).astype(np.uint8)[::-1] * np.uint8(5)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()
