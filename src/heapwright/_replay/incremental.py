"""Incremental replay: a heap that takes calls in pieces, and can be inspected between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct, require_no_sites, require_one_memory
from heapwright._replay.arena_sizes import high_water_mark
from heapwright._replay.engine import explain
from heapwright._replay.reserve import with_margin
from heapwright._replay.snapshots import PIECE_TYPE, extent_of, used_part
from heapwright._support.errors import HeapwrightError
from heapwright._traces.calls import pointer
from heapwright._traces.validation import Columns

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

AMPLE = 1 << 28
"""Default bytes of the arena."""

MOST_OBJECTS = 1 << 20
"""Most objects that are live at once."""

_THREADS = 1 << 16


class HeapUsage(NamedTuple):
    """Memory use of a running heap.

    Attributes:
        used_bytes: its high-water mark: the bytes of the arena that it has used so far, control data counted.
        reserve_bytes: `used_bytes` with the margin of `heapwright._replay.reserve`; None if a request has failed.
        largest_free_bytes: its largest free block now, header included: in the arena, or without a given size, in the
            part that it has used so far.
        refused: number of failed requests.
    """

    used_bytes: int
    reserve_bytes: int | None
    largest_free_bytes: int
    refused: int


class RunningHeap:
    """Heap that runs incrementally; made by `running`."""

    def __init__(self, handle: Any, struct: Any, whole: bool, reach: int) -> None:
        self._handle, self._struct, self._whole, self._reach = handle, struct, whole, reach
        self._pieces = np.empty(1 << 12, PIECE_TYPE)
        self._kept: tuple[Any, ...] = ()

    def take(self, columns: Columns, slots: NDArray[np.uint32]) -> None:
        """Make the calls that follow, in the columns of a trace; `slots` as in `struct hw_calls`.

        Raises HeapwrightError if more than `MOST_OBJECTS` objects are live at once.
        """
        if slots.max(initial=0) >= MOST_OBJECTS:
            raise HeapwrightError(f"more than {MOST_OBJECTS:,} objects live at once; follow a shorter log")
        given: dict[str, NDArray[Any]] = {
            "op": np.ascontiguousarray(columns["op"], np.uint8),
            "slot": slots,
            "size": np.ascontiguousarray(columns["size"], np.uint32),
            "align": np.ascontiguousarray(columns["align"], np.uint32),
            "thread": np.ascontiguousarray(columns["tid"], np.uint32),
        }
        calls = _calls(len(slots))
        for name, values in given.items():
            setattr(calls, name, pointer("uint8_t" if name == "op" else "uint32_t", values))
        lib.hw_film_follow(self._handle, calls)
        lib.hw_film_show(self._handle, len(slots), ffi.NULL, 0)
        self._kept = (calls, given)  # the engine still points to them

    def standing(self) -> HeapUsage:
        """Its memory use now. O(slots) and O(blocks)."""
        counts = ffi.new("struct hw_metrics *")
        lib.hw_film_counts(self._handle, counts)
        used = high_water_mark(self._struct, counts)
        return HeapUsage(
            used_bytes=used,
            reserve_bytes=None if counts.failed else min(with_margin(used), self._reach),
            largest_free_bytes=int(self._free().max(initial=0)),
            refused=int(counts.failed),
        )

    def _free(self) -> NDArray[np.int64]:
        """Sizes of the free blocks in bytes."""
        while (count := self._show()) > len(self._pieces):
            self._pieces = np.empty(count + count // 2, PIECE_TYPE)
        if count < 0:
            raise HeapwrightError("out of memory while replaying; follow fewer heaps at a time")
        pieces = self._pieces[:count]
        states = (lib.HW_RUN_FREE, lib.HW_RUN_UNTOUCHED) if self._whole else (lib.HW_RUN_FREE,)
        free = pieces[np.isin(pieces["state"], states)]
        if self._whole:
            return free["size"].astype(np.int64)
        start, end = used_part(free, extent_of(self._handle))
        return end - start

    def _show(self) -> int:
        pieces = ffi.cast("struct hw_piece *", ffi.from_buffer(self._pieces))
        return int(lib.hw_film_show(self._handle, 0, pieces, len(self._pieces)))


@contextmanager
def running(recipe: Recipe, arena: int | None = None) -> Iterator[RunningHeap]:
    """A fresh heap in an arena of this size, by default `AMPLE`, but no more than the recipe's reach.

    Raises HeapwrightError if the arena cannot hold the heap's control data, or the recipe uses several memories.
    """
    require_one_memory(recipe)
    require_no_sites(recipe)
    struct = policy_struct(recipe)
    size = int(min(AMPLE if arena is None else arena, struct.reach))
    calls = _calls(0)
    front = int(lib.hw_front_bytes(struct, calls))
    memory = lib.hw_reserve(front, size)
    if memory == ffi.NULL:
        raise HeapwrightError(f"cannot reserve {size:,} bytes of address space", parameter="arena")
    code = ffi.new("int *")
    try:
        handle = lib.hw_film_open(struct, calls, memory, size, code)
        explain(int(code[0]), recipe, struct, size)
        heap = RunningHeap(handle, struct, arena is not None, int(struct.reach))
        try:
            yield heap
        finally:
            lib.hw_film_close(handle, ffi.new("struct hw_metrics *"))
    finally:
        lib.hw_unreserve(memory, front, size)


def _calls(count: int) -> Any:
    """Native calls structure (`struct hw_calls *`) for `count` calls, without their columns."""
    calls = ffi.new("struct hw_calls *")
    calls.count, calls.slots, calls.threads = count, MOST_OBJECTS, _THREADS
    return calls
