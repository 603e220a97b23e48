"""Traces as the native engine, and programs without Python, take them."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib

if TYPE_CHECKING:
    from heapwright.traces.trace import Trace


@dataclass(frozen=True)
class Calls:
    """A trace as the engine wants it, and the arrays that keep its pointers alive."""

    struct: Any
    arrays: tuple[NDArray[Any], ...]


_calls: weakref.WeakKeyDictionary[Trace, Calls] = weakref.WeakKeyDictionary()

_calls_lock = threading.Lock()


def calls_of(trace: Trace) -> Calls:
    """The trace as the engine wants it, made once. O(calls)."""
    with _calls_lock:
        found = _calls.get(trace)
        if found is None:
            found = _calls[trace] = _prepare(trace)
        return found


def _prepare(trace: Trace) -> Calls:
    """Number the objects densely and hand out pointers. O(calls)."""
    object_, objects = trace.objects()
    object_ = np.ascontiguousarray(object_, np.uint32)
    op = np.ascontiguousarray(trace.op, np.uint8)
    size = np.ascontiguousarray(trace.size, np.uint32)
    align = np.ascontiguousarray(trace.align, np.uint32)
    ts_us = np.ascontiguousarray(trace.ts_us, np.int64)
    slot = np.empty(len(trace), np.uint32)
    scratch = np.empty(2 * max(objects, 1), np.uint32)
    slots = lib.hw_assign_slots(
        pointer("uint8_t", op), pointer("uint32_t", object_), len(trace), objects, pointer("uint32_t", scratch),
        pointer("uint32_t", slot),
    )  # fmt: skip
    struct = ffi.new("struct hw_calls *")
    struct.count, struct.slots = len(trace), slots
    struct.op, struct.slot, struct.size = (
        pointer("uint8_t", op),
        pointer("uint32_t", slot),
        pointer("uint32_t", size),
    )
    struct.align = pointer("uint32_t", align) if align.any() else ffi.NULL
    has_times = len(ts_us) > 0 and bool((ts_us >= 0).all()) and ts_us[-1] > ts_us[0]
    struct.ts_us = pointer("int64_t", ts_us) if has_times else ffi.NULL
    return Calls(struct, (op, slot, size, align, ts_us))


def call_records(trace: Trace) -> tuple[int, NDArray[np.uint32]]:
    """The trace as flat records, for programs that replay it without Python.

    Returns the number of slots and uint32[calls, 3]: operation << 30 | slot, size, alignment (0 is the heap's own).
    """
    calls = calls_of(trace)
    op, slot, size, align, _ = calls.arrays
    return int(calls.struct.slots), np.column_stack([op.astype(np.uint32) << np.uint32(30) | slot, size, align])


def pointer(type_: str, array: NDArray[Any]) -> Any:
    """A C pointer to the elements of an array, which must outlive it."""
    return ffi.cast(f"{type_} *", ffi.from_buffer(array))
