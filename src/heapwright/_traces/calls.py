"""Traces as the native engine, and programs without Python, take them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._support.errors import HeapwrightError

_NONE_LOW = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class Calls:
    """The calls of a trace with objects numbered densely: a number is given to another object after a free.

    Attributes:
        struct: the calls as the engine takes them (`struct hw_calls *`).
        op, slot, size, align, ts_us, low: the columns that it points to, one entry a call.
        thread: the same of the calling thread's number; empty where there is one thread.
        site: the same of the class of call sites, from 1, 0 for none; empty if all sites share one class.
    """

    struct: Any
    op: NDArray[np.uint8]
    slot: NDArray[np.uint32]
    size: NDArray[np.uint32]
    align: NDArray[np.uint32]
    ts_us: NDArray[np.int64]
    thread: NDArray[np.uint32]
    low: NDArray[np.uint8]
    site: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    @classmethod
    def of(
        cls,
        op: NDArray[np.uint8],
        id: NDArray[np.uint32],
        size: NDArray[np.uint32],
        align: NDArray[np.uint32],
        ts_us: NDArray[np.int64],
        tid: NDArray[np.integer[Any]],
        low: NDArray[np.uint8] = _NONE_LOW,
    ) -> Calls:
        """Number the objects, which ids name from their birth to their free, and hand out pointers. O(calls)."""
        op, ts_us = np.ascontiguousarray(op, np.uint8), np.ascontiguousarray(ts_us, np.int64)
        size = np.ascontiguousarray(size, np.uint32)
        names, count = dense(id)
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
            struct.op, pointer("uint32_t", names), len(op), count, pointer("uint32_t", scratch), struct.slot
        )
        struct.align = ffi.NULL
        if align.any():
            align = np.ascontiguousarray(align, np.uint32)
            struct.align = pointer("uint32_t", align)
        struct.low = ffi.NULL
        if low.any():
            low = np.ascontiguousarray(low, np.uint8)
            struct.low = pointer("uint8_t", low)
        has_times = len(ts_us) > 0 and bool((ts_us >= 0).all()) and ts_us[-1] > ts_us[0]
        struct.ts_us = pointer("int64_t", ts_us) if has_times else ffi.NULL
        thread = np.zeros(0, np.uint32)
        struct.threads = 1
        if (tid != tid[:1]).any():
            threads, numbers = np.unique(tid, return_inverse=True)
            thread = np.ascontiguousarray(numbers, np.uint32)
            struct.threads, struct.thread = len(threads), pointer("uint32_t", thread)
        lib.hw_total(struct, len(op), ffi.addressof(struct, "totals"))
        return cls(struct, op, slot, size, align, ts_us, thread, low)

    def at_sites(self, site: NDArray[np.uint8]) -> Calls:
        """Copy of the calls with a class of call sites for each. O(calls)."""
        site = np.ascontiguousarray(site, np.uint8)
        struct = ffi.new("struct hw_calls *", self.struct[0])
        struct.site = pointer("uint8_t", site)
        return replace(self, struct=struct, site=site)

    @property
    def slots(self) -> int:
        """How many numbers there are: the most objects that are alive at once."""
        return int(self.struct.slots)

    def largest_live_sum(
        self,
        bytes_: NDArray[np.int64] | None = None,
        *,
        align: int = 0,
        both: bool = False,
        after: NDArray[np.int64] | None = None,
    ) -> int:
        """Largest sum of the live objects' bytes, if each request sets its object to `bytes_` (frees are ignored).

        By default these are the sizes, each rounded up to a multiple of `align` if that is above 0.
        `both` counts an object twice while realloc changes it. `after` takes the sum after each call. O(calls).
        """
        result = lib.hw_live_bytes(
            self.struct,
            ffi.NULL if bytes_ is None else pointer("int64_t", bytes_),
            align,
            both,
            ffi.NULL if after is None else pointer("int64_t", after),
        )
        if result == lib.HW_NO_MEMORY:
            raise HeapwrightError("out of memory while summing up live objects; cut the trace")
        return int(result)

    def deaths(self) -> NDArray[np.int32]:
        """Call that frees what each call makes, -1 where none does or the call makes nothing. O(calls)."""
        death = np.empty(len(self.op), np.int32)
        latest = np.empty(max(self.slots, 1), np.int32)
        lib.hw_deaths(self.struct, pointer("int32_t", latest), pointer("int32_t", death))
        return death

    def records(self) -> NDArray[np.uint32]:
        """The calls as flat records, for programs that replay them without Python.

        Returns uint32[calls, 3]: operation << 30 | slot, size, alignment (0 is the heap's own).
        """
        return np.column_stack([self.op.astype(np.uint32) << np.uint32(30) | self.slot, self.size, self.align])


def dense(id: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], int]:
    """Ids, replaced by smaller ones if they far exceed the number of calls, and a bound above all of them."""
    bound = int(id.max(initial=0)) + 1
    if bound <= 2 * len(id) + 1024:
        return np.ascontiguousarray(id, np.uint32), bound
    known, others = np.unique(id, return_inverse=True)
    return others.astype(np.uint32), len(known)


def is_orderly(op: NDArray[np.uint8], id: NDArray[np.uint32]) -> bool:
    """Whether every id lives before it is resized or freed, and is dead before it lives again. O(calls)."""
    names, bound = dense(id)
    op, live = np.ascontiguousarray(op), np.zeros(bound, np.uint8)
    return bool(
        lib.hw_is_orderly(pointer("uint8_t", op), pointer("uint32_t", names), len(op), pointer("unsigned char", live))
    )


def number_objects(op: NDArray[np.uint8], id: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], int]:
    """The number of each call's object in order of birth from 0, and how many there are. O(calls)."""
    names, bound = dense(id)
    latest = np.empty(bound, np.uint32)
    result = np.empty(len(op), np.uint32)
    count = lib.hw_number_objects(
        pointer("uint8_t", np.ascontiguousarray(op)),
        pointer("uint32_t", names),
        len(op),
        pointer("uint32_t", latest),
        pointer("uint32_t", result),
    )
    return result, int(count)


def pointer(type_: str, array: NDArray[Any]) -> Any:
    """A C pointer to the elements of an array, which must outlive it."""
    return ffi.cast(f"{type_} *", ffi.from_buffer(array))
