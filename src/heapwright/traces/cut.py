"""Parts of a trace: its first or last calls, or those of its first or last seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import numpy as np

from heapwright.errors import HeapwrightError, ParameterError
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE


def cut(
    trace: Trace, *, first: int | timedelta | None = None, last: int | timedelta | None = None, close: bool = True
) -> Trace:
    """Return the first or last calls of a trace; all of it where it is no longer.

    A part begins with an empty heap: calls on objects born before it are left out.

    Args:
        trace: the whole.
        first, last: how many calls, or how long a time; one of the two.
        close: free what is live at the end, in order of birth and at the time of the last call; else it stays live.

    The name is the trace's with ``~first`` or ``~last``; the metadata is the trace's and ``cut_of``, its name, and
    ``cut_calls``, such as ``4000-7999``, counted from 0. Times start at 0. O(calls).

    Raises HeapwrightError where no call is left, or a time is asked of a trace whose calls have none.
    """
    if (first is None) == (last is None):
        raise HeapwrightError("cut: give either first or last")
    end: Literal["first", "last"] = "last" if first is None else "first"
    length = last if first is None else first
    assert length is not None
    start, stop = _bounds(trace, end, length)
    row = np.arange(start, stop)
    objects, count = trace.objects()
    live = np.zeros(count, bool)
    live[objects[row[trace.op[row] <= CALLOC]]] = True
    row = row[live[objects[row]]]
    if not len(row):
        raise HeapwrightError(f"{trace.name}: calls {start} to {stop - 1} are all on objects born before; take more")
    live[objects[row[trace.op[row] == FREE]]] = False
    closed = np.flatnonzero(live) if close else np.empty(0, np.intp)
    kept = len(row)
    row = np.append(row, np.full(len(closed), row[-1]))
    op, id_, size, align = trace.op[row], objects[row], trace.size[row], trace.align[row]
    op[kept:], id_[kept:], size[kept:], align[kept:] = FREE, closed, 0, 0
    times = trace.ts_us[row]
    known = times[times >= 0]
    return Trace.from_columns(
        op=op,
        id=id_,
        size=size,
        ts_us=np.where(times >= 0, times - known[0], -1) if len(known) else times,
        tid=trace.tid[row],
        align=align,
        phase=trace.phase[row],
        phases=trace.phases,
        site=trace.site[row],
        sites=trace.sites,
        name=f"{trace.name}~{end}",
        metadata={**trace.metadata, "cut_of": trace.name, "cut_calls": f"{start}-{stop - 1}"},
    )


def _bounds(trace: Trace, end: Literal["first", "last"], length: int | timedelta) -> tuple[int, int]:
    """The first call of the part and the one after its last."""
    if isinstance(length, int):
        if length < 1:
            raise ParameterError(f"{length} calls; must be 1 or more", parameter=end)
        count = min(length, len(trace))
        return (0, count) if end == "first" else (len(trace) - count, len(trace))
    span = length // timedelta(microseconds=1)
    if span < 0:
        raise ParameterError(f"{length.total_seconds():g} s; must be 0 or more", parameter=end)
    if trace.ts_us.min() < 0:
        raise HeapwrightError(f"{trace.name}: some calls have no time; give a number of calls", parameter=end)
    if end == "first":
        return 0, int(np.searchsorted(trace.ts_us, trace.ts_us[0] + span, side="right"))
    return int(np.searchsorted(trace.ts_us, trace.ts_us[-1] - span, side="left")), len(trace)
