"""Small traces and packet tables whose profile is known by construction."""

from __future__ import annotations

from typing import Any

import numpy as np

from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.packets import PacketTable


def trace_of(*calls: tuple[int, int, int], **columns: Any) -> Trace:
    """A trace of (op, id, size)."""
    op, ids, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=ids, size=size, name="t", **columns)


def stack(depth: int) -> Trace:
    return trace_of(*((MALLOC, at, 10) for at in range(depth)), *((FREE, at, 0) for at in reversed(range(depth))))


def packets_of(ip_len: list[int], frame_len: list[int], flow: list[int]) -> PacketTable:
    count = len(ip_len)
    return PacketTable(
        ts_us=np.arange(count, dtype=np.int64) * 500_000,
        frame_len=np.array(frame_len, np.uint32),
        ip_len=np.array(ip_len, np.uint32),
        proto=np.zeros(count, np.uint8),
        flow=np.array(flow, np.uint32),
        dir=np.zeros(count, np.uint8),
    )
