"""Snapshots of the arena: a replay that stops at given calls, and the blocks in the arena at each stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.pools import kind_of
from heapwright._replay.engine import explain, lent_memory
from heapwright._support.errors import HeapwrightError
from heapwright._traces.validation import CALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

Pieces = NDArray[Any]
"""Structured, see `PIECE_TYPE`."""

PIECE_TYPE = np.dtype([("offset", "u4"), ("size", "u4"), ("header", "u4"), ("state", "u4"), ("pool", "u4")])
_ALIVE_TYPE = np.dtype([("at", "u4"), ("slot", "u4"), ("size", "u4")])

SHOWN_STATES = [lib.HW_RUN_USED, lib.HW_RUN_FREE, lib.HW_RUN_CACHED, lib.HW_RUN_UNTOUCHED]
"""States of blocks: in use, free, cached, and memory that was never used."""

BLOCK_TYPE = np.dtype(
    [
        ("offset", "u4"),  # bytes from the arena's base
        ("size", "u4"),  # bytes, header included
        ("state", "u4"),  # HW_RUN_...
        ("pool", "u4"),  # HW_MAX_POOLS outside all blocks
        ("requested", "u4"),  # bytes; 0 if no object is live
        ("birth", "i4"),  # call; -1 if no object is live
        ("death", "i4"),  # call; -1 if it is never freed, or none is live
    ]
)


class Extent(NamedTuple):
    """Extent of the used part of the arena that pools share: below `low`, and from `high` on.

    `grown` is the last call that extended it, None if none has.
    """

    low: int
    high: int
    grown: int | None


class Snapshots:
    """Replay that stops at given calls; made by `filming`."""

    def __init__(self, handle: Any, trace: Trace) -> None:
        self._handle, self._trace = handle, trace
        self._pieces = np.empty(1 << 12, PIECE_TYPE)
        self.found = ffi.new("struct hw_metrics *")
        """The counts of the replay, once it is over."""

    def show(self, call: int) -> Pieces:
        """Contents of the arena after `call`, in the order of addresses, without gaps.

        They are overwritten when the replay continues. Calls may not fall from one snapshot to the next.
        """
        while (count := self._show(call)) > len(self._pieces):
            self._pieces = np.empty(count + count // 2, PIECE_TYPE)
        return self._pieces[:count]

    def _show(self, call: int) -> int:
        pieces = ffi.cast("struct hw_piece *", ffi.from_buffer(self._pieces))
        count = int(lib.hw_film_show(self._handle, call, pieces, len(self._pieces)))
        if count == lib.HW_NO_MEMORY:
            raise HeapwrightError("out of memory while replaying; replay fewer traces at a time")
        return count

    def go_on(self, call: int) -> None:
        """Make all calls up to `call`, without a snapshot."""
        lib.hw_film_show(self._handle, call, ffi.NULL, 0)

    def alive(self) -> NDArray[Any]:
        """The live objects in the order of address: fields at (of the payload), slot, size (bytes requested)."""
        alive = np.empty(max(self._trace.calls.slots, 1), _ALIVE_TYPE)
        result = alive[: lib.hw_film_alive(self._handle, ffi.cast("struct hw_alive *", ffi.from_buffer(alive)))]
        return result[np.argsort(result["at"])]

    def extent(self) -> Extent:
        """The extent of the arena used up to now."""
        low, high, grown = extent_of(self._handle)
        return Extent(low, high, None if grown == len(self._trace) else grown)


def extent_of(handle: Any) -> Extent:
    """The extent of the arena that the heap of an `hw_film` has used; `grown` is its number of calls if none has."""
    info = ffi.new("struct hw_extent *")
    lib.hw_film_extent(handle, info)
    return Extent(int(info.low), int(info.high), int(info.grown))


@contextmanager
def filming(trace: Trace, recipe: Recipe, size: int, without: tuple[int, int] | None = None) -> Iterator[Snapshots]:
    """Replay with snapshots in an arena of `size` bytes. Raises HeapwrightError if it cannot begin, or end.

    `without`: the calls that allocate and free (-1: none) an object that is left out.
    """
    struct = policy_struct(recipe)
    code = ffi.new("int *")
    calls = trace.calls_at(recipe.sites)
    with lent_memory(struct, calls, size) as memory:
        handle = lib.hw_film_open(struct, calls.struct, memory, size, code)
        explain(int(code[0]), recipe, struct, size)
        if without:
            birth, death = without
            lib.hw_film_leave_out(handle, birth, death if death >= 0 else len(trace))
        film = Snapshots(handle, trace)
        try:
            yield film
        finally:
            lost = lib.hw_film_close(handle, film.found)
        explain(lost, recipe, struct, size)


# --- frames -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """Frame of a heap after `call`: `blocks` (`BLOCK_TYPE`) cover the arena in the order of addresses."""

    call: int
    extent: Extent
    blocks: NDArray[Any]


class Region(NamedTuple):
    """A stretch of the arena, from byte `start` to `end`, with the numbers of the pools whose blocks lie there."""

    start: int
    end: int
    pools: tuple[int, ...]


def frames(trace: Trace, recipe: Recipe, size: int, calls: Iterable[int]) -> Iterator[Frame]:
    """The heap in an arena of `size` bytes after each of some calls, rising. O(calls) for all, O(blocks) for each."""
    death = trace.calls.deaths()
    born = np.zeros(max(trace.calls.slots, 1), np.int32)
    reached = 0
    with filming(trace, recipe, size) as film:
        for call in calls:
            births = np.flatnonzero(trace.op[reached : call + 1] <= CALLOC).astype(np.int32) + np.int32(reached)
            born[trace.calls.slot[births]] = births
            reached = call + 1
            blocks = _with_objects(film.show(call), film.alive(), born)
            lives = blocks["birth"] >= 0
            blocks["death"][lives] = death[blocks["birth"][lives]]
            yield Frame(call, film.extent(), blocks)


def _with_objects(pieces: Pieces, alive: NDArray[Any], born: NDArray[np.int32]) -> NDArray[Any]:
    blocks = np.zeros(len(pieces), BLOCK_TYPE)
    for key in ("offset", "size", "state", "pool"):
        blocks[key] = pieces[key]
    blocks["birth"] = blocks["death"] = -1
    used = np.flatnonzero(pieces["state"] == lib.HW_RUN_USED)
    objects = alive[np.searchsorted(alive["at"], pieces["offset"][used] + pieces["header"][used])]
    blocks["requested"][used] = objects["size"]
    blocks["birth"][used] = born[objects["slot"]]
    return blocks


def last_growth(trace: Trace, recipe: Recipe, size: int) -> int | None:
    """The call after which the heap has used all of the arena that it ever will; None if no part of it is shared."""
    with filming(trace, recipe, size) as film:
        film.go_on(len(trace) - 1)
        return film.extent().grown


def regions(recipe: Recipe, size: int) -> list[Region]:
    """The regions of an arena of `size` bytes, in the order of addresses; growing pools share the last one."""
    struct = policy_struct(recipe)
    result, sharing = [], []
    for at in range(struct.pool_count):
        pool = struct.pools[at]
        bounds = kind_of(pool).own_region(pool)
        if bounds:
            result.append(Region(*bounds, (at,)))
        elif kind_of(pool).owns_blocks:
            sharing.append(at)
    if sharing and size > struct.fixed_end:
        result.append(Region(int(struct.fixed_end), size, tuple(sharing)))
    return result  # pools lie in their order


# --- cells ------------------------------------------------------------------------------------------------------------


def cell_shares(pieces: Pieces, extent: int, rows: int, states: int = lib.HW_RUN_UNTOUCHED + 1) -> NDArray[np.float32]:
    """Share of each cell that each state takes: float32[states, rows], address 0 in row 0.

    The rows divide the first `extent` bytes evenly. A piece's header counts as HW_RUN_HEADER; bytes that no piece
    covers have no state.
    """
    result = np.zeros((states, rows), np.float32)
    given = ffi.cast("struct hw_piece *", ffi.from_buffer(pieces))
    lib.hw_cell_shares(given, len(pieces), extent, rows, ffi.cast("float *", ffi.from_buffer(result)))
    return result


# --- holes ------------------------------------------------------------------------------------------------------------

HOLE_TYPE = np.dtype([("offset", "u4"), ("size", "u4")])


def used_part(pieces: NDArray[Any], extent: Extent) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end of the used part of free pieces: the unused rest of an initial free block is no hole."""
    start = pieces["offset"].astype(np.int64)
    end = start + pieces["size"]
    end = np.where(start < extent.low, np.minimum(end, extent.low), end)
    start = np.where(start < extent.low, start, np.maximum(start, extent.high))
    return start, np.maximum(start, end)


def holes(blocks: NDArray[Any], extent: Extent, within: Iterable[Region]) -> NDArray[Any]:
    """Holes: contiguous free memory, merged or not, as far as it has ever been used.

    `blocks`: as of a `Frame` or a `Snapshots`. Returns fields offset and size (bytes), in the order of addresses; no
    hole reaches from one region into the next.
    """
    start, end = used_part(blocks[blocks["state"] == lib.HW_RUN_FREE], extent)
    results = [_holes_in(start, end, region) for region in within]
    return np.concatenate([*results, np.zeros(0, HOLE_TYPE)])


def _holes_in(start: NDArray[np.int64], end: NDArray[np.int64], region: Region) -> NDArray[Any]:
    start, end = np.maximum(start, region.start), np.minimum(end, region.end)
    start, end = start[start < end], end[start < end]
    apart = start[1:] != end[:-1]
    result = np.zeros(int(apart.sum()) + bool(len(start)), HOLE_TYPE)
    if len(start):
        result["offset"] = start[np.append(True, apart)]
        result["size"] = end[np.append(apart, True)] - result["offset"]
    return result
