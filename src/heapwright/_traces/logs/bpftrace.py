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

import heapq
import re
from collections.abc import Iterator

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Processes
from heapwright._traces.logs.source import Source

_EVENT = re.compile(rb"(\d{1,19}) (\d{1,10}) (\d{1,10}) ([-+*^<>]) ([0-9a-f]{1,16})(?: (\d{1,20}))?(?: (\d{1,20}))?\s*")
_START = re.compile(
    rb"^\d{1,19} \d{1,10} \d{1,10} (?:[-<] [0-9a-f]{1,16}|[+*>] [0-9a-f]{1,16} \d{1,20})$", re.MULTILINE
)
_LOST = re.compile(rb"Lost (\d{1,18}) events?")
_WINDOW = 1 << 16
"""Lines among which one may be too early or too late."""


class _Lines:
    """The events of a log, in the order of time as far as the window reaches."""

    def __init__(self, source: Source) -> None:
        self.lost = self.late = 0
        self._source = source

    def __iter__(self) -> Iterator[tuple[int, re.Match[bytes]]]:
        waiting: list[tuple[int, int, re.Match[bytes]]] = []
        latest = 0
        for place, line in enumerate(self._source.lines()):
            result = _EVENT.fullmatch(line)
            if result is None:
                if loss := _LOST.fullmatch(line):
                    self.lost += int(loss[1])
                continue
            now = int(result[1])
            self.late += now < latest
            if len(waiting) < _WINDOW:
                heapq.heappush(waiting, (now, place, result))
            else:
                latest, _, result = heapq.heappushpop(waiting, (now, place, result))
                yield latest, result
        for now, _, result in sorted(waiting):
            yield now, result


def _read(source: Source) -> LogHistory:
    processes = Processes(source)
    resizing: dict[tuple[bytes, bytes], tuple[int, int | None]] = {}
    lines = _Lines(source)
    for now, result in lines:
        _, process, thread, kind, address, size, align = result.groups()
        history, pointer = processes.history(process), int(address, 16)
        history.now_ns = now
        history.set_thread(thread)
        if kind == b"-":
            history.release(pointer)
        elif kind == b"<":
            resizing[process, thread] = pointer, history.begin_resize(pointer)
        elif size is None:
            history.skipped += 1
        elif kind == b">":
            old, block = resizing.pop((process, thread), (0, None))
            history.end_resize(old, block, pointer, int(size))
        else:
            history.allocate(pointer, int(size), cleared=kind == b"*", align=int(align or b"0"))
    history = processes.largest()
    if lines.lost:
        history.caveats.append(f"bpftrace lost {lines.lost} events; give it more room (BPFTRACE_PERF_RB_PAGES)")
    if lines.late:
        history.caveats.append(f"{lines.late} events came too late to be put in order; `sort -n` the log first")
    return history


FORMAT = Format("bpftrace", lambda start: _START.search(start) is not None, _read)
