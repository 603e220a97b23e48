"""A heap on a trace at many moments: what plots draw that a reader can zoom, and still ones show less of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import ImageColor

from heapwright._recipes.recipe import Recipe
from heapwright._replay.pictures import HEAP_MAP_STATES
from heapwright._replay.snapshots import cell_shares, filming, holes, regions
from heapwright._report import raster
from heapwright._traces.holders import holders_of, short_names
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace

MOMENTS, LEAST_MOMENTS = 9000, 360
"""Moments that all heaps of a page are looked at together, and each at least: a fiftieth of 9,000 still has one for
three pixels."""
SAMPLES = 2
"""Times as many are the bytes over time: the least and the most of each."""
MOST_BLOCKS = 500_000_000
"""Blocks that are looked at for one heap; where more are alive there are fewer moments."""
HOLDERS = 4500
"""Moments with the holders of the live bytes, for a trace that has a page of its own."""
MOST_PICTURE = 360_000
"""Characters of the heap maps of a page together; noise takes them, and has fewer columns then."""
ROWS, COLUMNS = 240, 360
"""Cells of a heap map, the columns of one that stands still."""


class Share(NamedTuple):
    """What one heap may take of a page: moments, and characters of its map."""

    moments: int
    characters: int


def share_of(alive: float, heaps: int) -> Share:
    """The share of a heap with this many live objects on average, on a page of `heaps` heaps."""
    bearable = int(MOST_BLOCKS / max(alive, 1))
    return Share(max(min(MOMENTS // heaps, bearable), LEAST_MOMENTS), MOST_PICTURE // heaps)


@dataclass(frozen=True)
class Detail:
    """What lies in the arena after each of the calls `event`.

    Attributes:
        reach: the bytes that the rows of `shares` divide evenly; what lies beyond is all of the state of the last row.
        shares: of each cell that each state takes, in 255ths: uint8[states, rows, events].
        still: the same in rows of one size, 0 to 1, at some of the calls, for a picture that stands still.
        free, largest: bytes of all free memory that has been used, and of the largest hole.
    """

    event: npt.NDArray[np.int64]
    reach: npt.NDArray[np.int64]
    shares: npt.NDArray[np.uint8]
    still: npt.NDArray[np.float32]
    free: npt.NDArray[np.int64]
    largest: npt.NDArray[np.int64]


def look(trace: Trace, recipe: Recipe, arena: int, extent: int, count: int) -> Detail:
    """A heap in an arena of this size, in bytes, at `count` moments; the still picture shows `extent` bytes."""
    event = np.unique(np.linspace(0, len(trace) - 1, count).astype(np.int64))
    thinned = np.unique(np.linspace(0, len(event) - 1, COLUMNS).round().astype(int)).tolist()
    stands = {at: column for column, at in enumerate(thinned)}
    states = len(HEAP_MAP_STATES)
    shares, still = np.empty((len(event), states, ROWS), np.uint8), np.empty((len(stands), states, ROWS), np.float32)
    free, largest, reach = np.zeros((3, len(event)), np.int64)
    within = regions(recipe, arena)
    with filming(trace, recipe, arena) as animation:
        for at, call in enumerate(event.tolist()):
            pieces, used = animation.show(call), animation.extent()
            upward = len(within) == 1 and used.high == arena
            reach[at] = min(_beyond(used.low), extent) if upward else extent
            shares[at] = np.rint(cell_shares(pieces, int(reach[at]), ROWS).clip(0, 1) * 255)
            info = holes(pieces, used, within)["size"]
            free[at], largest[at] = info.sum(), info.max(initial=0)
            if at in stands:
                still[stands[at]] = cell_shares(pieces, extent, ROWS).clip(0, 1)
    return Detail(event, reach, shares.transpose(1, 2, 0), still.transpose(1, 2, 0), free, largest)


def holders(trace: Trace, peak_event: int) -> dict[str, Any]:
    """The `live_by` of a profile at more moments: who holds the live bytes."""
    event = np.linspace(0, len(trace) - 1, HOLDERS).astype(np.int64)
    result: dict[str, Any] = holders_of(Stream.of(trace), np.unique(np.append(event, peak_event)), peak_event)[
        "live_by"
    ]
    return result


def fewer(told: Mapping[str, Any], peak_event: int, count: int) -> dict[str, Any]:
    """A `live_by` at about `count` of its moments, including the peak."""
    at = np.linspace(0, len(told["event"]) - 1, count).astype(int)
    at = np.unique(np.append(at, told["event"].index(peak_event)))
    return {
        **told,
        "event": [told["event"][item] for item in at],
        "bytes": [[row[item] for item in at] for row in told["bytes"]],
    }


def packed_holders(told: Mapping[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    """What timeline.js draws of a `live_by`."""
    label = short_names(told["groups"])
    return {
        "event": _steps(np.array(told["event"])),
        "bytes": [_steps(np.array(row)) for row in told["bytes"]],
        "groups": [[label[group], colours[group]] for group in told["groups"]],
    }


def _beyond(used: int) -> int:
    """Extent of the map in bytes: its last row lies beyond the bytes used and a header that follows them."""
    return max(used * ROWS // (ROWS - 2) + 1, 16 * ROWS)


def packed(detail: Detail, samples: Mapping[str, npt.NDArray[np.int64]], extent: int, most: int) -> dict[str, Any]:
    """What timeline.js draws: numbers as differences from one moment to the next, which pack well.

    `samples`: as `replay.timeline` gives them; `extent`: as in `look`; `most`: characters of the map.
    """
    every, picture = _picture(detail.shares, most)
    timed = bool((samples["ts_us"] >= 0).all() and samples["ts_us"][-1] > samples["ts_us"][0])
    states = raster.present(detail.still)
    return {
        "samples": {
            "call": _steps(samples["event"]),
            "time": _steps(samples["ts_us"]) if timed else None,
            "requested": _steps(samples["requested"]),
            "spare": _steps(samples["allocated"] - samples["requested"]),
            "footprint": _steps(samples["footprint"]),
        },
        "looks": {key: _steps(getattr(detail, key)) for key in ("event", "reach", "free", "largest")},
        "extent": extent,
        "picture": picture,
        "every": every,
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


def _picture(shares: npt.NDArray[np.uint8], most: int) -> tuple[int, str]:
    """A picture of at most `most` characters, with every first, second, fourth ... of the moments; and which."""
    every = 1
    while True:
        result = raster.url(raster.picture(shares[:, :, ::every] / np.float32(255), patterns=False, step=15))
        if len(result) <= most or shares.shape[2] <= 2 * every:
            return every, result
        every *= 2


def _steps(values: npt.NDArray[np.int64]) -> list[int]:
    """The first value, then what each is above the one before."""
    result: list[int] = np.diff(values, prepend=0).tolist()
    return result
