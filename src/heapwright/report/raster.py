"""Heap maps as pictures: what each stretch of the arena held at each moment, address x time. And PNG files."""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class State(NamedTuple):
    """What a byte of the arena can be: words for the legend, and a colour (Okabe and Ito where it carries meaning)."""

    words: str
    colour: str


STATES = (
    State("header", "#1c2630"),
    State("in use", "#0072B2"),
    State("free", "#F2CB75"),
    State("cached in a quick list", "#009E73"),
    State("control data", "#CC79A7"),
    State("never touched", "#eef1f3"),
)
"""By the state number of `replay.heap_map`."""

LEGEND_ORDER = (1, 2, 3, 0, 4, 5)
ROWS = 240


def shares(blocks: npt.NDArray[Any], columns: int, extent: int, rows: int = ROWS) -> npt.NDArray[np.float64]:
    """Share of each cell that each state takes: float64 of shape (states, rows, columns), row 0 at address 0.

    `blocks`: structured array with fields column, offset, size, state, as `replay.heap_map` gives it; `extent`: bytes
    of arena that the rows divide evenly. What no block covers belongs to no state.
    """
    cover = np.zeros((len(STATES), rows + 1, columns))
    edge = np.zeros_like(cover)
    state, column = blocks["state"].astype(np.intp), blocks["column"].astype(np.intp)
    start = blocks["offset"].astype(np.float64) * rows / extent
    end = start + blocks["size"].astype(np.float64) * rows / extent
    # The part of row r below t is 1 for r < floor(t), t - r for r = floor(t), 0 above: a step and an edge for each
    # bound.
    for bound, sign in ((np.minimum(start, rows), 1), (np.minimum(end, rows), -1)):
        row = bound.astype(np.intp)
        np.add.at(cover, (state, row, column), sign)
        np.add.at(edge, (state, row, column), -sign * (bound - row))
    return np.asarray((cover.cumsum(axis=1) + edge)[:, :rows].clip(0, 1))


def picture(blocks: npt.NDArray[Any], columns: int, extent: int, rows: int = ROWS) -> bytes:
    """The heap map as a PNG of `columns` x `rows` pixels, address 0 at the bottom.

    A pixel mixes the colours of all that lies in its cell by their shares, so that headers and holes much smaller
    than a cell still tint it. What no block covers is white.
    """
    parts = shares(blocks, columns, extent, rows)
    colours = np.array([[int(state.colour[at : at + 2], 16) for at in (1, 3, 5)] for state in STATES], dtype=np.float64)
    mixed = np.einsum("src,sk->rck", parts, colours) + (1 - parts.sum(axis=0).clip(0, 1))[:, :, np.newaxis] * 255
    # Steps of 5 (of 255) are below what the eye tells apart here, and make the file a third smaller.
    return png((mixed / 5).round().clip(0, 51).astype(np.uint8)[::-1] * np.uint8(5))


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """An RGB picture, uint8 of shape (rows, columns, 3), as a PNG file (ISO/IEC 15948)."""
    rows, columns, _ = pixels.shape
    unfiltered = np.zeros((rows, 1 + columns * 3), dtype=np.uint8)
    unfiltered[:, 1:] = pixels.reshape(rows, columns * 3)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return _file((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)), (b"IEND", b""))


def smaller(picture: bytes) -> bytes:
    """The same PNG, with its pixels compressed as far as zlib can and nothing beside them."""
    pieces: dict[bytes, bytes] = {}
    at = 8
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        pieces[kind] = pieces.get(kind, b"") + data
        at += 12 + length
    pixels = zlib.compress(zlib.decompress(pieces[b"IDAT"]), 9)
    return _file((b"IHDR", pieces[b"IHDR"]), (b"IDAT", pixels), (b"IEND", b""))


def _file(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
