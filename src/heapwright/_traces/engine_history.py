"""Calls of a recording that the engine makes: those that need only the live blocks (``native/log_apply.c``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._traces.events import AS_BEFORE, EVENT, KNOWN, PENDING, ROOM, EventRows, blocks_of, new_blocks

_KINDS = np.full(8, lib.HW_LOG_LINE, np.uint32)
_KINDS[[lib.RAW_MALLOC, lib.RAW_CALLOC, lib.RAW_FREE]] = lib.HW_LOG_MALLOC, lib.HW_LOG_CALLOC, lib.HW_LOG_FREE
_KINDS[[lib.RAW_REALLOC_BEGIN, lib.RAW_REALLOC_END]] = lib.HW_LOG_BEGIN, lib.HW_LOG_END
_SIZE_BITS = np.uint64(32)
_COLUMNS = ("op", "id", "size", "now_ns")


class EngineHistory:
    """The live blocks of a process, and the reallocs that its threads are in the midst of.

    Attributes:
        state: struct hw_log_state, whose numbers the owner sets and reads.
    """

    def __init__(self, pointers: NDArray[np.uint64], sizes: NDArray[np.uint64], objects: NDArray[np.int64]) -> None:
        """Begin with some live objects."""
        self.state = ffi.new("struct hw_log_state *", {"overlap": 1, "thread": AS_BEFORE, "site": AS_BEFORE})
        self._live, self._ended, self._rows = new_blocks(), new_blocks(), EventRows()
        self._pending = np.zeros(0, PENDING)
        self._events = np.zeros(ROOM, EVENT)
        self._events["site"] = self._events["process"] = AS_BEFORE
        blocks = objects.astype(np.uint64) << _SIZE_BITS | sizes
        for pointer, block in zip(pointers.tolist(), blocks.tolist(), strict=True):
            if lib.hw_blocks_put(self._live, pointer, block):
                raise MemoryError
        self.state.live, self.state.ended, self.state.to = self._live, self._ended, self._rows.struct

    def feed(self, records: NDArray[Any]) -> tuple[list[dict[str, NDArray[Any]]], int]:
        """Make the calls of some records as far as possible: rows, each piece with its threads, and how many."""
        most = int(records["thread"].max(initial=0)) + 1
        if most > len(self._pending):
            self._pending = np.append(self._pending, np.zeros(most - len(self._pending), PENDING))
        self.state.pending = ffi.cast("struct hw_log_pending *", self._pending.ctypes.data)
        pieces, made = [], 0
        while made < len(records):
            some = records[made : made + ROOM]
            done = self._make(some)
            pieces.append(self._taken())
            made += done
            if done < len(some):
                break
        return pieces, made

    def carried(self, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64], int]:
        """Records of the reallocs in progress, then of the live blocks; their objects; and how many are the former."""
        begun = np.flatnonzero(self._pending["state"])
        known = self._pending["state"][begun] == KNOWN
        moving = np.zeros(2 * len(begun), dtype)
        moving["pointer"] = np.repeat(self._pending["old"][begun], 2)
        moving["thread"] = np.repeat(begun, 2)
        moving["time_ns"] = np.repeat(self._pending["now_ns"][begun], 2)
        moving["kind"] = np.tile([lib.RAW_MALLOC, lib.RAW_REALLOC_BEGIN], len(begun))
        blocks = np.repeat(self._pending["block"][begun], 2)
        moving["size"] = blocks & np.uint64(0xFFFFFFFF)
        numbers = np.where(moving["kind"] == lib.RAW_MALLOC, (blocks >> _SIZE_BITS).astype(np.int64), -1)
        kept = np.repeat(known, 2) | (moving["kind"] == lib.RAW_REALLOC_BEGIN)
        pointers, of_live, _ = blocks_of(self._live)
        live = np.zeros(len(pointers), dtype)
        live["pointer"], live["size"], live["kind"] = pointers, of_live & np.uint64(0xFFFFFFFF), lib.RAW_MALLOC
        objects = np.concatenate([numbers[kept], (of_live >> _SIZE_BITS).astype(np.int64)])
        return np.concatenate([moving[kept], live]), objects, int(np.count_nonzero(kept))

    def _make(self, records: NDArray[Any]) -> int:
        events, kind = self._events[: len(records)], records["kind"]
        events["kind"] = np.where((records["align_log2"] > 0) & (kind > lib.RAW_CALLOC), lib.HW_LOG_LINE, _KINDS[kind])
        events["address"], events["size"], events["thread"] = records["pointer"], records["size"], records["thread"]
        aligned = records["align_log2"].astype(np.uint32)
        events["align"] = np.where(aligned > 0, np.uint32(1) << aligned, np.uint32(0)) if aligned.any() else 0
        events["now_ns"] = np.minimum(records["time_ns"], np.uint64(1 << 62)).view(np.int64)
        self.state.rows = self.state.threads = self.state.sites = self.state.aligns = 0
        self.state.room = 2 * ROOM
        return int(
            lib.hw_log_apply(self.state, ffi.cast("struct hw_log_event *", events.ctypes.data), ffi.NULL, len(events))
        )

    def _taken(self) -> dict[str, NDArray[Any]]:
        arrays, rows = self._rows.arrays, int(self.state.rows)
        piece = {name: arrays[name][:rows].copy() for name in _COLUMNS}
        for name, changes in (("thread", self.state.threads), ("align", self.state.aligns)):
            piece[name], piece[f"{name}_row"] = (arrays[key][:changes].copy() for key in (name, f"{name}_row"))
        return piece


def column_of(pieces: list[dict[str, NDArray[Any]]], name: str, before: int) -> tuple[NDArray[np.uint32], int]:
    """A column that seldom changes, of some pieces of rows, and its last value; `before` is its value at first."""
    values, counts = [before], []
    at = 0
    for piece in pieces:
        for row, value in zip(piece[f"{name}_row"].tolist(), piece[name].tolist(), strict=True):
            counts.append(at + row)
            values.append(value)
        at += len(piece["op"])
    bounds = np.array([0, *counts, at], np.int64)
    return np.repeat(np.array(values, np.uint32), bounds[1:] - bounds[:-1]), values[-1]
