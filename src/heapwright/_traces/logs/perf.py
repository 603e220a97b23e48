"""Calls of a C library that uprobes saw, as `perf script` (Linux 6.1) prints them.

The probes are those of `heapwright hooks perf`: each function's begin with its arguments, and the return of those that
allocate with the address. tools/perf/builtin-script.c prints who and when, the format that the kernel's
kernel/trace/trace_probe.c makes of a probe the rest.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Processes
from heapwright._traces.logs.source import Source

_EVENT = re.compile(
    rb"(?<!\d)(?:(\d{1,10})/)?(\d{1,10}) {1,16}(?:\[\d{1,5}\] {1,4})?(\d{1,10})\.(\d{6,9}): {1,40}(?:\w{1,64}:)?"
    rb"(malloc|calloc|realloc|memalign|aligned_alloc|free)(?:_\d{1,4})?(?:__return)?: "
    rb"\([0-9a-fx]{1,18}( <- [0-9a-fx]{1,18})?\)((?: \w{1,64}=(?:0x[0-9a-f]{1,16}|\d{1,20}))*)\s*$"
)
_VALUE = re.compile(rb"=(?:0x([0-9a-f]+)|(\d+))")
_LOST = re.compile(rb"PERF_RECORD_LOST lost (\d{1,18})")
_MOST_NESTED = 2
"""Calls that glibc's functions make of one another at most; where more follow, a return was lost."""


class _Call(NamedTuple):
    """A call of which the return is awaited."""

    name: str
    numbers: list[int]
    taken: int | None


class _Thread:
    """What a thread is in the midst of: one call, in which glibc may make others."""

    def __init__(self, history: LogHistory) -> None:
        self.history = history
        self._call: _Call | None = None
        self._nested: list[str] = []
        self._seen = 0

    def begin(self, name: str, numbers: list[int]) -> None:
        """Note that a function is called."""
        if self._call == (name, numbers, None) and name == "memalign":
            return  # two names of one function, on which both probes are
        if self._call is not None and name != self._call.name and self._seen < _MOST_NESTED:
            self._seen += 1
            if name != "free":
                self._nested.append(name)
            return
        self._lose()
        if name == "free":
            note_call(self.history, name, numbers, 0)
            return
        taken = self.history.begin_resize(numbers[0]) if name == "realloc" else None
        self._call = _Call(name, numbers, taken)

    def end(self, name: str, result: int) -> None:
        """Note that a function returns."""
        if self._nested and self._nested[-1] == name:
            self._nested.pop()
        elif self._call is None or self._call.name != name:
            self.history.skipped += name != "memalign"
        else:
            call, self._call = self._call, None
            self._nested, self._seen = [], 0
            if name == "realloc":
                self.history.end_resize(call.numbers[0], call.taken, result, call.numbers[1])
            else:
                note_call(self.history, name, call.numbers, result)

    def _lose(self) -> None:
        """Forget a call whose return was lost."""
        if self._call is None:
            return
        if self._call.name == "realloc":
            self.history.cancel_resize(self._call.numbers[0], self._call.taken)
        self.history.skipped += 1
        self._call, self._nested, self._seen = None, [], 0


_ARGUMENTS = {"malloc": 1, "free": 1, "calloc": 2, "realloc": 2, "memalign": 2}


def _read(source: Source) -> LogHistory:
    processes = Processes(source)
    threads: dict[tuple[bytes, bytes], _Thread] = {}
    lost = 0
    for line in source.lines():
        result = _EVENT.search(line)
        if result is None:
            if loss := _LOST.search(line):
                lost += int(loss[1])
            continue
        process, number, seconds, part, function, returned, rest = result.groups()
        key = process or b"", number
        thread = threads.get(key)
        if thread is None:
            thread = threads[key] = _Thread(processes.history(key[0]))
        history, name = thread.history, "memalign" if function == b"aligned_alloc" else function.decode()
        history.set_thread(number)
        history.now_ns = int(seconds) * 10**9 + int((part + b"000")[:9])
        numbers = [int(hexadecimal, 16) if hexadecimal else int(value) for hexadecimal, value in _VALUE.findall(rest)]
        if len(numbers) < (1 if returned else _ARGUMENTS[name]):
            history.skipped += 1
        elif returned:
            thread.end(name, numbers[0])
        else:
            thread.begin(name, numbers)
    history = processes.largest()
    if lost:
        history.caveats.append(f"{lost} events were lost while they were recorded; give perf record more room (-m)")
    return history


FORMAT = Format(
    "perf",
    lambda start: any(_EVENT.search(line) for line in start.splitlines()),
    _read,
    ("posix_memalign is logged without its address, so its objects are missing",),
)
