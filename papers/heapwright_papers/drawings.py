"""What the drawings of the papers show, drawn from our own pools: the bytes of a heap after some calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import heapwright as hw
from heapwright import HEAP_MAP_STATES, Recipe, Trace
from heapwright_papers.measuring import Calls

Row = dict[str, Any]


def layout(recipe: Recipe, calls: Calls, moments: Mapping[str, int]) -> list[Row]:
    """Runs of bytes of the smallest heap that serves the calls, at moments by name: after so many calls, at least one.

    A row has `when`, the moment's name, `start` and `end` in bytes from the heap's base, its `middle`, the number of
    `bytes`, and `what` they are, one of `HEAP_MAP_STATES`; in order of address.
    """
    return [row for when, count in moments.items() for row in _runs(recipe, calls[:count], when)]


def _runs(recipe: Recipe, calls: Calls, when: str) -> list[Row]:
    op, id, size = zip(*calls, strict=True)
    blocks = hw.heap_map(Trace.from_columns(op=op, id=id, size=size), recipe, 2)["blocks"]
    last = blocks[blocks["column"] == blocks["column"].max()]
    return [
        {
            "when": when,
            "start": int(run["offset"]),
            "end": int(run["offset"] + run["size"]),
            "middle": float(run["offset"] + run["size"] / 2),
            "bytes": int(run["size"]),
            "what": HEAP_MAP_STATES[run["state"]],
        }
        for run in last
    ]
