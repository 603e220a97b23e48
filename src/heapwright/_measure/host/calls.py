"""A trace as the C drivers read it: one file for all programs, without a name, so that nothing can be left behind."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace

STDIN = "/dev/stdin"
"""The path by which a driver reads the file that is its standard input; each opens it again, from its start."""

_files: weakref.WeakKeyDictionary[Trace, int] = weakref.WeakKeyDictionary()


def calls_file(trace: Trace) -> int:
    """The descriptor of the trace's file, to be a driver's standard input; it is open as long as the trace lives.

    Number of calls and of slots (uint32); a record a call (`Calls.records`); and each call's weight (int64),
    microseconds until the next one, or 1 where the trace has no times.
    """
    if trace not in _files:
        slots, records = trace.calls.slots, trace.calls.records()
        with tempfile.TemporaryFile(prefix="heapwright-calls-") as file:
            np.array([len(trace), slots], np.uint32).tofile(file)
            records.tofile(file)
            _weights(trace).tofile(file)
            _files[trace] = os.dup(file.fileno())
        weakref.finalize(trace, os.close, _files[trace])
    return _files[trace]


def _weights(trace: Trace) -> NDArray[np.int64]:
    times = trace.ts_us
    if not ((times >= 0).all() and times[-1] > times[0]):
        return np.ones(len(trace), np.int64)
    return np.append(np.diff(times), 0).astype(np.int64)
