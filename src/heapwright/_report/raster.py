"""Heap maps as pictures: what each stretch of the arena held at each moment, address x time."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

from heapwright._replay.pictures import HEAP_MAP_STATES

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
    """What distinguishes a state in grey: cells of another colour, at a fixed step along the rows and the columns."""

    words: str
    colour: str
    diagonal: int
    every: int = 1

    def cells(self, rows: int, columns: int) -> npt.NDArray[np.bool_]:
        """Mask of the cells that have it, bool[rows, columns]."""
        row, column = np.mgrid[:rows, :columns]
        result: npt.NDArray[np.bool_] = ((row + column) % self.diagonal == 0) & (row % self.every == 0)
        return result


PATTERNS = {
    "cached": Pattern("white lines", "#ffffff", 4),
    "control data": Pattern("dark dots", "#1c2630", 4, 2),
    "untouched": Pattern("thin grey lines", "#7f8890", 12),
}
"""Of the states that are as light as others: in grey, states differ by 3 : 1 in lightness, or by these."""


def picture(shares: npt.NDArray[np.floating[Any]], patterns: bool = True, step: int = 5) -> npt.NDArray[np.uint8]:
    """The heap map as a pixel for each cell: uint8[rows, columns, 3], address 0 at the bottom.

    `shares`: of each state in each cell, as `_replay.snapshots.cell_shares` returns them, [states, rows, columns]. A
    pixel mixes the colours of all that lies in its cell by their shares, so that headers and holes much smaller than a
    cell still tint it. Where a state of `PATTERNS` takes most of a cell, its pattern lies over it. What no block covers
    is white. Colours differ by `step` or more: the eye sees no steps of 5 (of 255) here, and files are a
    third smaller.
    """
    colours = np.array([ImageColor.getrgb(COLOURS[state]) for state in HEAP_MAP_STATES], np.float32)
    mixed = np.einsum("src,sk->rck", shares, colours) + (1 - shares.sum(axis=0).clip(0, 1))[:, :, np.newaxis] * 255
    for state, pattern in PATTERNS.items() if patterns else ():
        most = shares[HEAP_MAP_STATES.index(state)] > 0.5
        mixed[most & pattern.cells(*most.shape)] = ImageColor.getrgb(pattern.colour)
    result: npt.NDArray[np.uint8] = (mixed / step).round().clip(0, 255 // step).astype(np.uint8)[::-1] * np.uint8(step)
    return result


def present(shares: npt.NDArray[Any]) -> list[str]:
    """The states that take some of any cell, in the order of the legend."""
    results = {state for state, share in zip(HEAP_MAP_STATES, shares, strict=True) if share.any()}
    return [state for state in COLOURS if state in results]


def url(pixels: npt.NDArray[np.uint8]) -> str:
    """A picture as a PNG in a URL of its own."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
