"""Pictures of a heap over time: bytes call by call, what every byte of the arena is, and its metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._replay.engine import (
    arena_bytes_of,
    arena_holding,
    control_bytes,
    explain,
    least_arena,
    memory_of,
    run,
)
from heapwright._replay.snapshots import Pieces, filming
from heapwright._traces.calls import pointer

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


_STATES = {
    lib.HW_RUN_HEADER: "header",
    lib.HW_RUN_USED: "payload in use",
    lib.HW_RUN_FREE: "free",
    lib.HW_RUN_CACHED: "cached",
    lib.HW_RUN_CONTROL: "control data",
    lib.HW_RUN_UNTOUCHED: "untouched",
}
HEAP_MAP_STATES = tuple(_STATES[number] for number in range(len(_STATES)))
"""Meaning of the numbers in the `state` of a heap map's blocks."""

BLOCK_TYPE = np.dtype([("column", "u4"), ("offset", "u4"), ("size", "u4"), ("state", "u4")])


MOMENT_TYPE = np.dtype([("call", "u8"), ("requested", "u4"), ("allocated", "u4"), ("covered", "u4"), ("unused", "u4")])


def timeline(trace: Trace, recipe: Recipe, points: int = 1000) -> dict[str, NDArray[np.int64]]:
    """Bytes over time, thinned to about `points` calls so that peaks survive.

    Returns int64 arrays of one length: `event` (index of the call), `ts_us` (-1 where unknown), `requested` (live
    requested bytes), `allocated` (live blocks with their headers), `footprint` (control data and all bytes that
    blocks have covered so far), each after that call.
    """
    struct = policy_struct(recipe)
    calls = trace.calls_at(recipe.sites)
    size = arena_bytes_of(struct, None)
    ends = _ends(len(trace), points)
    moments = np.empty((len(ends), 2), MOMENT_TYPE)
    requested = ffi.new("struct hw_timeline *")
    requested.ends, requested.moments = pointer("uint64_t", ends), pointer("struct hw_moment", moments)
    result = ffi.new("struct hw_metrics *")
    memory = memory_of(struct, calls, size)
    options = ffi.new("struct hw_options *", (lib.HW_CHECK_NOTHING, ffi.NULL, requested))
    code = lib.hw_replay(struct, calls.struct, memory, size, options, result)
    explain(code, recipe, struct, size)
    picked = np.unique(moments)
    return {
        "event": picked["call"].astype(np.int64),
        "ts_us": trace.ts_us[picked["call"]].astype(np.int64),
        "requested": picked["requested"].astype(np.int64),
        "allocated": picked["allocated"].astype(np.int64),
        "footprint": picked["covered"].astype(np.int64) + control_bytes(struct),
    }


def _ends(count: int, points: int) -> NDArray[np.uint64]:
    """Ends of the stretches of which a timeline shows the minimum and the maximum; first and last call are alone."""
    if count <= points:
        return np.arange(1, count + 1, dtype=np.uint64)
    inner = np.linspace(1, count - 1, max(points // 2, 2)).astype(np.uint64)
    return np.unique(np.append(inner, np.uint64(count)))


def heap_map(trace: Trace, recipe: Recipe, columns: int = 300) -> dict[str, Any]:
    """State of every byte of the smallest arena, after each of about `columns` calls.

    Returns `event` (int64, the calls), `footprint` (bytes described), and `blocks`, a structured array with the fields
    `column` (index into `event`), `offset`, `size` (bytes) and `state` (index into HEAP_MAP_STATES): runs that cover
    [0, footprint) in every column, in order. Raises HeapwrightError as `replay` does.
    """
    struct = policy_struct(recipe)
    result, _ = run(trace, recipe, struct, None)
    held = arena_holding(struct, int(struct.fixed_end + result.shared))
    size = min(max(held, least_arena(struct)), arena_bytes_of(struct, None))
    event = np.unique(np.linspace(0, max(len(trace) - 1, 0), columns).astype(np.int64))
    with filming(trace, recipe, size) as film:
        blocks = [_runs(film.show(call), at) for at, call in enumerate(event.tolist())]
    return {"event": event, "footprint": size, "blocks": np.concatenate(blocks)}


def _runs(pieces: Pieces, column: int) -> NDArray[Any]:
    """Contents of the arena as runs of bytes in the same state."""
    halves = np.zeros((len(pieces), 2), BLOCK_TYPE)
    headers, bodies = halves[:, 0], halves[:, 1]
    headers["offset"], headers["size"], headers["state"] = pieces["offset"], pieces["header"], lib.HW_RUN_HEADER
    bodies["offset"] = pieces["offset"] + pieces["header"]
    bodies["size"], bodies["state"] = pieces["size"] - pieces["header"], pieces["state"]
    runs = halves.ravel()
    runs = runs[runs["size"] > 0]
    first = np.flatnonzero(np.append(True, runs["state"][1:] != runs["state"][:-1]))
    merged = runs[first]
    merged["size"] = np.add.reduceat(runs["size"], first)
    merged["column"] = column
    return merged


def metadata(trace: Trace, recipe: Recipe, arena: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The arena's bytes after the trace, and which of them are metadata; both end behind the last such byte.

    The same recipe in the same arena has the same bytes there on every machine.
    """
    struct = policy_struct(recipe)
    size = arena_bytes_of(struct, arena)
    calls = trace.calls_at(recipe.sites)
    memory = memory_of(struct, calls, size)
    marks = np.zeros(size, np.uint8)
    end = lib.hw_metadata(struct, calls.struct, memory, size, ffi.cast("unsigned char *", ffi.from_buffer(marks)))
    if end < 0:
        explain(int(end), recipe, struct, size)
    content = np.frombuffer(ffi.buffer(memory, int(end)), np.uint8).copy()
    return content, marks[: int(end)].astype(bool)
