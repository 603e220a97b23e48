"""Traces as the native engine, and programs without Python, take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib


@dataclass(frozen=True)
class Calls:
    """The calls of a trace with objects numbered densely: a number is given to another object after a free.

    Attributes:
        struct: the calls as the engine takes them (`struct hw_calls *`).
        op, slot, size, align, ts_us: the columns that it points to, one entry a call.
        thread: the same of the calling thread's number; empty where there is one thread.
    """

    struct: Any
    op: NDArray[np.uint8]
    slot: NDArray[np.uint32]
    size: NDArray[np.uint32]
    align: NDArray[np.uint32]
    ts_us: NDArray[np.int64]
    thread: NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        op: NDArray[np.uint8],
        objects: tuple[NDArray[np.uint32], int],
        size: NDArray[np.uint32],
        align: NDArray[np.uint32],
        ts_us: NDArray[np.int64],
        tid: NDArray[np.integer[Any]],
    ) -> Calls:
        """Number the objects, given as `Trace.objects` has them, and hand out pointers. O(calls)."""
        object_, count = objects
        object_ = np.ascontiguousarray(object_, np.uint32)
        op, ts_us = np.ascontiguousarray(op, np.uint8), np.ascontiguousarray(ts_us, np.int64)
        size, align = np.ascontiguousarray(size, np.uint32), np.ascontiguousarray(align, np.uint32)
        slot = np.empty(len(op), np.uint32)
        scratch = np.empty(2 * max(count, 1), np.uint32)
        struct = ffi.new("struct hw_calls *")
        struct.count = len(op)
        struct.op, struct.slot, struct.size = (
            pointer("uint8_t", op),
            pointer("uint32_t", slot),
            pointer("uint32_t", size),
        )
        struct.slots = lib.hw_assign_slots(
            struct.op, pointer("uint32_t", object_), len(op), count, pointer("uint32_t", scratch), struct.slot
        )
        struct.align = pointer("uint32_t", align) if align.any() else ffi.NULL
        has_times = len(ts_us) > 0 and bool((ts_us >= 0).all()) and ts_us[-1] > ts_us[0]
        struct.ts_us = pointer("int64_t", ts_us) if has_times else ffi.NULL
        thread = np.zeros(0, np.uint32)
        struct.threads = 1
        if (tid != tid[:1]).any():
            threads, numbers = np.unique(tid, return_inverse=True)
            thread = np.ascontiguousarray(numbers, np.uint32)
            struct.threads, struct.thread = len(threads), pointer("uint32_t", thread)
        return cls(struct, op, slot, size, align, ts_us, thread)

    @property
    def slots(self) -> int:
        """How many numbers there are: the most objects that are alive at once."""
        return int(self.struct.slots)

    def records(self) -> NDArray[np.uint32]:
        """The calls as flat records, for programs that replay them without Python.

        Returns uint32[calls, 3]: operation << 30 | slot, size, alignment (0 is the heap's own).
        """
        return np.column_stack([self.op.astype(np.uint32) << np.uint32(30) | self.slot, self.size, self.align])


def pointer(type_: str, array: NDArray[Any]) -> Any:
    """A C pointer to the elements of an array, which must outlive it."""
    return ffi.cast(f"{type_} *", ffi.from_buffer(array))
