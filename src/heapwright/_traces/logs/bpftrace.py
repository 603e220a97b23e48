"""What the program of `heapwright hooks bpftrace` prints, a line an event, the time first:

NANOSECONDS PROCESS THREAD + ADDRESS SIZE         malloc returns
NANOSECONDS PROCESS THREAD * ADDRESS SIZE         calloc returns
NANOSECONDS PROCESS THREAD ^ ADDRESS SIZE ALIGN   an aligned call returns
NANOSECONDS PROCESS THREAD - ADDRESS              free begins
NANOSECONDS PROCESS THREAD < ADDRESS              realloc of ADDRESS begins
NANOSECONDS PROCESS THREAD > ADDRESS SIZE         it returns

bpftrace prints what each processor saw in turns, so lines are put in the order of their times.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._traces.events import EVENT, ROOM
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Processes
from heapwright._traces.logs.scanner import Form, Scanner, event_of
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source
from heapwright._traces.validation import MAX_SIZE

_EVENT = re.compile(rb"(\d{1,19}) (\d{1,10}) (\d{1,10}) ([-+*^<>]) ([0-9a-f]{1,16})(?: (\d{1,20}))?(?: (\d{1,20}))?\s*")
_START = re.compile(
    rb"^\d{1,19} \d{1,10} \d{1,10} (?:[-<] [0-9a-f]{1,16}|[+*>] [0-9a-f]{1,16} \d{1,20})$", re.MULTILINE
)
_LOST = re.compile(rb"Lost (\d{1,18}) events?")
_WINDOW = 1 << 16
"""Lines among which one may be too early or too late."""


_KINDS = {
    b"+": lib.HW_LOG_MALLOC,
    b"*": lib.HW_LOG_CALLOC,
    b"^": lib.HW_LOG_MALLOC,
    b"-": lib.HW_LOG_FREE,
    b"<": lib.HW_LOG_BEGIN,
    b">": lib.HW_LOG_END,
}
_HEAD = "{ns} {process:9} {thread:9} "
_FORMS = [
    *(Form(_KINDS[sign.encode()], f"{_HEAD}{sign} {{address:h}} {{size:z}}{{ }}") for sign in "+*>"),
    *(Form(_KINDS[sign.encode()], f"{_HEAD}{sign} {{address:h}}{{ }}") for sign in "-<"),
    Form(lib.HW_LOG_MALLOC, f"{_HEAD}^ {{address:h}} {{size:z}} {{align:z}}{{ }}"),
]
_LARGEST = (1 << 63) - 1


class _Events(ScannedLog):
    """The events of a log, in the order of time as far as the window reaches."""

    def __init__(self, source: Source) -> None:
        self.processes = Processes(source)
        super().__init__(source, self._read_one_line, self.processes.history)
        self.first = self.lost = 0
        self._scanner = Scanner(_FORMS, needles=(b"Lost", *(b" %s " % sign for sign in _KINDS)))
        self._heap, self._places = np.empty(_WINDOW + 1, EVENT), np.empty(_WINDOW + 1, np.uint64)
        self._order = ffi.new("struct hw_log_order *", {"room": _WINDOW})
        self._order.heap = ffi.cast("struct hw_log_event *", self._heap.ctypes.data)
        self._order.place = ffi.cast("uint64_t *", self._places.ctypes.data)
        self._ordered = np.empty(ROOM, EVENT)
        self.read(lambda: self._scanner)
        while self._order.held:
            super().make_calls(self._scanner, self._ordered[: lib.hw_log_order_end(self._order, ROOM, self._to)])

    @property
    def late(self) -> int:
        """Events that came too late."""
        return int(self._order.late)

    @property
    def _to(self) -> Any:
        return ffi.cast("struct hw_log_event *", self._ordered.ctypes.data)

    def make_calls(self, scanner: Scanner, events: NDArray[Any]) -> None:
        some = ffi.cast("struct hw_log_event *", events.ctypes.data)
        if ordered := lib.hw_log_order(self._order, some, len(events), self._to):
            super().make_calls(scanner, self._ordered[:ordered])

    def _read_one_line(self, line: bytes) -> None:
        result = _EVENT.fullmatch(line)
        if result is None:
            if loss := _LOST.fullmatch(line):
                self.lost += int(loss[1])
            return
        now, process, thread, kind, address, size, align = result.groups()
        event = event_of(
            lib.HW_LOG_SKIPPED if size is None and kind not in b"-<" else _KINDS[kind],
            now_ns=min(int(now), _LARGEST),
            process=self._scanner.number(process),
            thread=self._scanner.number(thread),
            address=int(address, 16),
            size=min(int(size or b"0"), _LARGEST),
            align=int(align or b"0") if int(align or b"0") <= MAX_SIZE else 0,
        )
        self.make_calls(self._scanner, event)


def _read(source: Source) -> LogHistory:
    events = _Events(source)
    history = events.processes.largest()
    if events.lost:
        history.caveats.append(f"bpftrace lost {events.lost} events; give it more room (BPFTRACE_PERF_RB_PAGES)")
    if events.late:
        history.caveats.append(f"{events.late} events came too late to be put in order; `sort -n` the log first")
    return history


FORMAT = Format("bpftrace", lambda start: _START.search(start) is not None, _read)
