"""ltrace's output, with or without process numbers (-f) and times (-r, -t, -tt, -ttt), as ltrace 0.7.3 prints it."""

from __future__ import annotations

import re
from typing import NamedTuple

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call, plain_name
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_DAY_NS = 86_400 * 10**9
_HEAD = rb"(?:\[pid (\d+)\] |(\d+) )?(?: *((?:\d{1,4}:\d\d:)?\d{1,10}(?:\.\d{1,9}|:\d\d)) )?(?:[\w.+/-]+->)?"
_NAME = rb"([A-Za-z_]\w*|operator (?:new|delete)(?:\[\])?(?:\([\w ,:*]*\))?)"
_CALL = re.compile(_HEAD + _NAME + rb"\((.*?)(?:\) += (\S+)|( <unfinished \.\.\.>)| <no return .*)\s*")
_RESUMED = re.compile(_HEAD + rb"<\.\.\. " + _NAME + rb" resumed>.*\) += (\S+)\s*")
_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|\d{1,19}|nil")
_START = re.compile(
    rb"^" + _HEAD + rb"(?:malloc|calloc|realloc|free|_Zn[wa][mj]|operator new)\S*\(.*\) += ", re.MULTILINE
)


class _Line(NamedTuple):
    """A call, or the rest of one that another thread interrupted: then without `arguments`."""

    thread: bytes
    time: bytes | None
    function: bytes
    arguments: bytes | None
    result: bytes | None
    unfinished: bool


def _parsed(line: bytes) -> _Line | None:
    """The parts of a line; None if it is about no call."""
    if call := _CALL.fullmatch(line):
        in_brackets, first, time, function, arguments, result, unfinished = call.groups()
        return _Line(in_brackets or first or b"", time, function, arguments, result, unfinished is not None)
    if resumed := _RESUMED.fullmatch(line):
        in_brackets, first, time, function, result = resumed.groups()
        return _Line(in_brackets or first or b"", time, function, None, result, unfinished=False)
    return None


_THREADS = "[\\[pid {thread:9}\\] ][{thread:9} ]"
_TIME = "[{*}[{hour}:{minute}:]{second}.{fraction} ]"
_FORMS = (
    (lib.HW_LOG_MALLOC, "malloc({size:d}){+}= {address:x}{ }"),
    (lib.HW_LOG_FREE, "free({address:xdn}){+}= <void>{ }"),
    (lib.HW_LOG_RESIZE, "realloc({old:xdn}, {size:d}){+}= {address:x}{ }"),
    (lib.HW_LOG_CALLOC, "calloc({count:d}, {size:d}){+}= {address:x}{ }"),
    *((lib.HW_LOG_MALLOC, name + "({size:d}, {...}){+}= {address:x}{ }") for name in ("_Znwm", "_Znam")),
    *(
        (lib.HW_LOG_FREE, name + "({address:xd}, {...}){+}= <void>{ }")
        for name in ("_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
    ),
)
_NAMES = (b"alloc", b"free", b"memalign", b"_Z", b"operator", b"builtin")
"""What the names of functions that allocate hold."""


class _Reader:
    """Reads the lines one by one."""

    def __init__(self, history: LogHistory) -> None:
        self.history, self.clock = history, _Clock()
        self._begun: dict[bytes, tuple[str, list[int], int | None]] = {}

    def read(self, line: bytes) -> None:
        parsed = _parsed(line)
        if parsed is None:
            return
        history, begun = self.history, self._begun
        name, thread = plain_name(parsed.function.decode()), parsed.thread
        now = self.clock.at(parsed.time)
        if name is None:
            return
        history.set_thread(thread)
        history.now_ns = now
        if parsed.arguments is None:
            if thread in begun:
                _end(history, begun.pop(thread), _number(parsed.result or b"0"))
        elif parsed.unfinished and name != "free":
            numbers = _numbers(parsed.arguments)
            resized = history.begin_resize(numbers[0]) if name.startswith("realloc") and numbers else None
            begun[thread] = (name, numbers, resized)
        elif parsed.result is not None or name == "free":
            numbers = _numbers(parsed.arguments)
            history.skipped += not note_call(history, name, numbers, _number(parsed.result or b"0"))

    def scanner(self) -> Scanner | None:
        """A scanner of the other lines; None if their times are relative, which sum up all lines."""
        if self.clock.relative:
            return None
        before = _THREADS + ("" if self.clock.missing else _TIME) + "[{lib}>]"
        forms = [Form(kind, before + text, {"thread": b"", "now_ns": -1}) for kind, text in _FORMS]
        return Scanner(forms, needles=_NAMES)


def _read(source: Source) -> LogHistory:
    reader = _Reader(LogHistory(source.folder, overlap=True))
    ScannedLog(source, reader.read, reader.history).read(reader.scanner)
    if reader.clock.missing:
        reader.history.now_ns = -1
    return reader.history


def _end(history: LogHistory, call: tuple[str, list[int], int | None], result: int) -> None:
    name, numbers, taken = call
    if name == "realloc" and len(numbers) > 1:
        history.end_resize(numbers[0], taken, result, numbers[1])
    elif name == "reallocarray" and len(numbers) > 2:
        history.end_resize(numbers[0], taken, result, numbers[1] * numbers[2])
    else:
        history.skipped += not note_call(history, name, numbers, result)


class _Clock:
    """Times of lines: of day, of the epoch, or since the line before."""

    def __init__(self) -> None:
        self.now = 0
        self.relative: bool | None = None

    @property
    def missing(self) -> bool:
        return self.relative is None

    def at(self, text: bytes | None) -> int:
        if text is None:
            return -1
        *rest, seconds = text.split(b":")
        whole, _, part = seconds.partition(b".")
        parsed = int(whole) * 10**9 + int((part + b"000000000")[:9])
        parsed += sum(int(item) * 60**power * 10**9 for power, item in enumerate(reversed(rest), 1))
        if self.relative is None:
            self.relative = not rest and parsed < _DAY_NS
        self.now = self.now + parsed if self.relative else parsed
        return self.now


def _numbers(arguments: bytes) -> list[int]:
    return [_number(item.encode()) for item in _NUMBER.findall(arguments.decode(errors="replace"))]


def _number(text: bytes) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


FORMAT = Format(
    "ltrace",
    lambda start: bool(_START.search(start)),
    _read,
    (
        "calls of libraries among themselves may be missing",
        "posix_memalign is logged without its address, so its objects are missing",
        "processes that share a log count as threads",
    ),
)
