"""ltrace's output, with or without process numbers (-f) and times (-r, -t, -tt, -ttt), as ltrace 0.7.3 prints it."""

from __future__ import annotations

import re
from typing import NamedTuple

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.functions import note_call, plain_name
from heapwright._traces.logs.history import LogHistory
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


def _read(source: Source) -> LogHistory:
    history, clock = LogHistory(source.folder, overlap=True), _Clock()
    begun: dict[bytes, tuple[str, list[int], int | None]] = {}
    for line in map(_parsed, source.lines()):
        if line is None:
            continue
        name, thread = plain_name(line.function.decode()), line.thread
        now = clock.at(line.time)
        if name is None:
            continue
        history.set_thread(thread)
        history.now_ns = now
        if line.arguments is None:
            if thread in begun:
                _end(history, begun.pop(thread), _number(line.result or b"0"))
        elif line.unfinished and name != "free":
            numbers = _numbers(line.arguments)
            resized = history.begin_resize(numbers[0]) if name.startswith("realloc") and numbers else None
            begun[thread] = (name, numbers, resized)
        elif line.result is not None or name == "free":
            history.skipped += not note_call(history, name, _numbers(line.arguments), _number(line.result or b"0"))
    if clock.missing:
        history.now_ns = -1
    return history


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
