"""The replay files of bytehound: records of four native 64-bit words, as its `strip` and `replay` tools use them."""

from __future__ import annotations

import numpy as np

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_ALLOCATE, _FREE, _REALLOCATE, _PUSH, _POP = range(1, 6)
_BLOCK = 1 << 16


def _matches(start: bytes) -> bool:
    words = np.frombuffer(start[: len(start) // 32 * 32], np.uint64).reshape(-1, 4)
    return len(words) > 0 and bool(((words[:, 0] >= _ALLOCATE) & (words[:, 0] <= _POP)).all())


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder, overlap=True)
    for block in source.blocks(32 * _BLOCK):
        words = np.frombuffer(block[: len(block) // 32 * 32], np.uint64).reshape(-1, 4)
        for kind, slot, microseconds, size in words.tolist():
            history.now_ns = min(microseconds, 1 << 50) * 1000
            if kind == _ALLOCATE:
                history.allocate(slot + 1, size)
            elif kind == _FREE:
                history.release(slot + 1)
            elif kind == _REALLOCATE:
                history.resize(slot + 1, slot + 1, size)
            else:
                history.skipped += kind not in (_PUSH, _POP)
    return history


FORMAT = Format("bytehound", _matches, _read, ("no threads",))
