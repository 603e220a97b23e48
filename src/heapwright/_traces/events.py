"""Events of a heap on addresses, as the engine takes them to make the rows of a trace (``native/logs.h``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib

EVENT = np.dtype(
    [
        ("now_ns", "i8"),
        ("address", "u8"),
        ("old", "u8"),
        ("size", "u8"),
        ("thread", "u4"),
        ("site", "u4"),
        ("process", "u4"),
        ("align", "u4"),
        ("kind", "u4"),
        ("form", "u4"),
        ("at", "u8"),
    ]
)
"""struct hw_log_event."""

AS_BEFORE = int(lib.HW_LOG_AS_BEFORE)
NO_TIME = -(1 << 63)
ROOM = 1 << 14
"""Events that are scanned at once."""


class EventRows:
    """Room for the rows that events become (struct hw_log_rows)."""

    def __init__(self) -> None:
        self.struct = ffi.new("struct hw_log_rows *")
        types = {
            "op": (np.uint8, "uint8_t *"),
            "id": (np.uint32, "uint32_t *"),
            "size": (np.uint32, "uint32_t *"),
            "now_ns": (np.int64, "int64_t *"),
            **{f"{name}_row": (np.uint64, "uint64_t *") for name in ("thread", "site", "align")},
            **dict.fromkeys(("thread", "site", "align"), (np.uint32, "uint32_t *")),
        }
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, (dtype, pointer) in types.items():
            self.arrays[name] = np.empty(2 * ROOM, dtype)
            setattr(self.struct, name, ffi.cast(pointer, self.arrays[name].ctypes.data))


PENDING = np.dtype([("old", "u8"), ("block", "u8"), ("state", "u8"), ("now_ns", "i8")])
"""struct hw_log_pending: a realloc of a thread."""

KNOWN = 2
"""`state` of a realloc whose block is live."""


def new_blocks() -> Any:
    """An empty table of blocks by address."""
    table = lib.hw_blocks_new()
    if table == ffi.NULL:
        raise MemoryError
    return ffi.gc(table, lib.hw_blocks_delete)


def blocks_of(table: Any) -> list[NDArray[np.uint64]]:
    """Addresses of all blocks of a table, the blocks, and numbers that grow in the order in which they were put."""
    columns = [np.empty(lib.hw_blocks_count(table), np.uint64) for _ in range(3)]
    lib.hw_blocks_list(table, *(ffi.cast("uint64_t *", column.ctypes.data) for column in columns))
    return columns
