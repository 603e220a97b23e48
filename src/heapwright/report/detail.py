"""A heap on a trace at many moments: what the plots draw that a reader can zoom, and what the still ones show less of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import ImageColor

from heapwright.recipes.recipe import Recipe
from heapwright.replay.film import Region, cell_shares, filming, holes
from heapwright.report import raster
from heapwright.traces.trace import Trace

MOMENTS, LEAST_MOMENTS = 9000, 360
"""Moments that all heaps of a page are looked at together, and each at least: a fiftieth of 9,000 still has one for
three pixels."""
SAMPLES = 2
"""Times as many are the bytes over time: the least and the most of each."""
MOST_BLOCKS = 300_000_000
"""Blocks that are looked at for one heap; where more are alive there are fewer moments."""
ROWS = 240


def moments(alive: float, plots: int) -> int:
    """How many moments of a heap are looked at, with so many objects alive on average, on a page of so many plots."""
    bearable = int(MOST_BLOCKS / max(alive, 1))
    return max(min(MOMENTS // plots, bearable), LEAST_MOMENTS)


@dataclass(frozen=True)
class Detail:
    """What lies in the arena after each of the calls `event`.

    Attributes:
        shares: of each cell that each state takes, in 255ths: uint8[states, rows, events].
        free, largest: bytes of all free memory that has been used, and of the largest hole.
    """

    event: npt.NDArray[np.int64]
    shares: npt.NDArray[np.uint8]
    free: npt.NDArray[np.int64]
    largest: npt.NDArray[np.int64]

    def thinned(self, count: int) -> npt.NDArray[np.float64]:
        """The shares, 0 to 1, at some of the moments."""
        at = np.unique(np.linspace(0, len(self.event) - 1, count).round().astype(int))
        return self.shares[:, :, at] / 255


def look(trace: Trace, recipe: Recipe, arena: int, within: Sequence[Region], extent: int, count: int) -> Detail:
    """A heap in an arena of so many bytes, at `count` moments; the cells divide `extent` bytes evenly."""
    event = np.unique(np.linspace(0, len(trace) - 1, count).astype(np.int64))
    shares = np.empty((len(event), len(raster.COLOURS), ROWS), np.uint8)
    free, largest = np.zeros((2, len(event)), np.int64)
    with filming(trace, recipe, arena) as film:
        for at, call in enumerate(event.tolist()):
            pieces = film.show(call)
            shares[at] = np.rint(cell_shares(pieces, extent, ROWS).clip(0, 1) * 255)
            told = holes(pieces, film.extent(), within)["size"]
            free[at], largest[at] = told.sum(), told.max(initial=0)
    return Detail(event, shares.transpose(1, 2, 0), free, largest)


def packed(detail: Detail, samples: Mapping[str, npt.NDArray[np.int64]], extent: int) -> dict[str, Any]:
    """What timeline.js draws: numbers as differences from one moment to the next, which pack well.

    `samples`: as `replay.timeline` gives them; `extent`: as in `look`.
    """
    timed = bool((samples["ts_us"] >= 0).all() and samples["ts_us"][-1] > samples["ts_us"][0])
    states = raster.present(detail.shares)
    return {
        "samples": {
            "call": _steps(samples["event"]),
            "time": _steps(samples["ts_us"]) if timed else None,
            "requested": _steps(samples["requested"]),
            "spare": _steps(samples["allocated"] - samples["requested"]),
            "footprint": _steps(samples["footprint"]),
        },
        "looks": {"call": _steps(detail.event), "free": _steps(detail.free), "largest": _steps(detail.largest)},
        "extent": extent,
        "picture": raster.url(raster.picture(detail.shares / np.float32(255), patterns=False)),
        "states": [[state, raster.COLOURS[state]] for state in states],
        "patterns": [
            {
                "of": ImageColor.getrgb(raster.COLOURS[state]),
                "colour": [*ImageColor.getrgb(pattern.colour), 255],
                "diagonal": pattern.diagonal,
                "every": pattern.every,
            }
            for state, pattern in raster.PATTERNS.items()
            if state in states
        ],
    }


def _steps(values: npt.NDArray[np.int64]) -> list[int]:
    """The first value, then what each is above the one before."""
    found: list[int] = np.diff(values, prepend=0).tolist()
    return found
