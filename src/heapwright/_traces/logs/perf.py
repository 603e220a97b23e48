"""Calls of a C library that uprobes saw, as `perf script` (Linux 6.1) prints them.

The probes are those of `heapwright hooks perf`: each function's begin with its arguments, and the return of those that
allocate with the address. tools/perf/builtin-script.c prints who and when, the format that the kernel's
kernel/trace/trace_probe.c makes of a probe the rest.
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

_EVENT = re.compile(
    rb"(?<!\d)(?:(\d{1,10})/)?(\d{1,10}) {1,16}(?:\[\d{1,5}\] {1,4})?(\d{1,10})\.(\d{6,9}): {1,40}(?:\w{1,64}:)?"
    rb"(malloc|calloc|realloc|memalign|aligned_alloc|free)(?:_\d{1,4})?(?:__return)?: "
    rb"\([0-9a-fx]{1,18}( <- [0-9a-fx]{1,18})?\)((?: \w{1,64}=(?:0x[0-9a-f]{1,16}|\d{1,20}))*)\s*$"
)
_VALUE = re.compile(rb"=(?:0x([0-9a-f]+)|(\d+))")
_LOST = re.compile(rb"PERF_RECORD_LOST lost (\d{1,18})")

_FUNCTIONS = {
    b"malloc": lib.HW_LOG_MALLOC_OF,
    b"calloc": lib.HW_LOG_CALLOC_OF,
    b"realloc": lib.HW_LOG_REALLOC,
    b"memalign": lib.HW_LOG_MEMALIGN,
    b"aligned_alloc": lib.HW_LOG_MEMALIGN,
    b"free": lib.HW_LOG_FREES,
}
_ARGUMENTS = {
    lib.HW_LOG_MALLOC_OF: ("size",),
    lib.HW_LOG_CALLOC_OF: ("count", "size"),
    lib.HW_LOG_REALLOC: ("address", "size"),
    lib.HW_LOG_MEMALIGN: ("align", "size"),
    lib.HW_LOG_FREES: ("address",),
}
_HEAD = "{ }{process:9}/{thread:9}{+16}[\\[{cpu}\\]{+4}]{second}.{fraction6}:{+40}[{word:w}:]"
_FORMS = [
    *(
        Form(
            lib.HW_LOG_CALL,
            f"{_HEAD}{name.decode()}: ({{number:xh}})"
            + "".join(f" {{word:w}}={{{argument}:xz}}" for argument in _ARGUMENTS[function])
            + "{ }",
            old=function,
        )
        for name, function in _FUNCTIONS.items()
    ),
    *(
        Form(
            lib.HW_LOG_RETURN,
            f"{_HEAD}{name.decode()}__return: ({{number:xh}} <- {{number:xh}}) {{word:w}}={{address:xz}}{{ }}",
            old=function,
        )
        for name, function in _FUNCTIONS.items()
        if name != b"free"
    ),
]
_CALL = np.dtype(
    [("size", "u8"), ("function", "u4"), ("align", "u4"), ("nested", "u4", 2), ("depth", "u4"), ("seen", "u4")]
)
_LARGEST = (1 << 63) - 1


class _Probes(ScannedLog):
    """The begins and returns of functions, which become calls."""

    def __init__(self, source: Source) -> None:
        self.processes = Processes(source)
        super().__init__(source, self._read_one_line, self.processes.history)
        self.first = self.lost = 0
        self._scanner = Scanner(_FORMS, needles=(b"alloc", b"memalign", b"free", b"LOST"))
        self._threads: dict[int, int] = {}
        self._calls = np.zeros(0, _CALL)
        self._made = np.empty(3 * ROOM, EVENT)
        self.read(lambda: self._scanner)

    def make_calls(self, scanner: Scanner, events: NDArray[Any]) -> None:
        of_event = self._threads_of(events)
        made = lib.hw_log_calls(
            ffi.cast("struct hw_log_call *", self._calls.ctypes.data),
            ffi.cast("uint32_t *", of_event.ctypes.data),
            ffi.cast("struct hw_log_event *", events.ctypes.data),
            len(events),
            ffi.cast("struct hw_log_event *", self._made.ctypes.data),
        )
        for begin in range(0, made, ROOM):
            super().make_calls(scanner, self._made[begin : min(made, begin + ROOM)])

    def _threads_of(self, events: NDArray[Any]) -> NDArray[np.uint32]:
        """The places of the events' threads in `_calls`."""
        pairs = events["process"].astype(np.uint64) << np.uint64(32) | events["thread"]
        begins = np.flatnonzero(pairs[1:] != pairs[:-1]) + 1
        of_run = [self._threads.setdefault(pair, len(self._threads)) for pair in pairs[np.append(0, begins)].tolist()]
        if len(self._threads) > len(self._calls):
            self._calls = np.append(self._calls, np.zeros(len(self._threads), _CALL))
        return np.repeat(np.array(of_run, np.uint32), np.diff(np.concatenate([[0], begins, [len(pairs)]])))

    def _read_one_line(self, line: bytes) -> None:
        result = _EVENT.search(line)
        if result is None:
            if loss := _LOST.search(line):
                self.lost += int(loss[1])
            return
        process, number, seconds, part, name, returned, rest = result.groups()
        function = _FUNCTIONS[name]
        numbers = [int(hexadecimal, 16) if hexadecimal else int(value) for hexadecimal, value in _VALUE.findall(rest)]
        arguments = ("address",) if returned else _ARGUMENTS[function]
        fields = {key: min(value, _LARGEST) for key, value in zip(arguments, numbers, strict=False)}
        size = min(fields.pop("count", 1) * fields.get("size", 0), _LARGEST)
        kind = lib.HW_LOG_RETURN if returned else lib.HW_LOG_CALL
        event = event_of(
            kind if len(numbers) >= len(arguments) else lib.HW_LOG_SKIPPED,
            **{key: value if value <= MAX_SIZE or key != "align" else 0 for key, value in fields.items()}
            | {"size": size},
            old=function,
            now_ns=min(int(seconds) * 10**9 + int((part + b"000")[:9]), _LARGEST),
            process=self._scanner.number(process or b""),
            thread=self._scanner.number(number),
        )
        self.make_calls(self._scanner, event)


def _read(source: Source) -> LogHistory:
    probes = _Probes(source)
    history = probes.processes.largest()
    if probes.lost:
        history.caveats.append(
            f"{probes.lost} events were lost while they were recorded; give perf record more room (-m)"
        )
    return history


FORMAT = Format(
    "perf",
    lambda start: any(_EVENT.search(line) for line in start.splitlines()),
    _read,
    ("posix_memalign is logged without its address, so its objects are missing",),
)
