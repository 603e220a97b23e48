"""heaptrack's files, version 1 to 3: raw (heaptrack --raw) and interpreted, as libheaptrack.cpp (1.4) writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.losses import Losses
from heapwright._traces.logs.scanner import Form, Scanner, event_of
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_LATEST_MS = 1 << 42

_START = re.compile(rb"v [0-9a-f]+(?: [0-9a-f]+)?\n[xX] ")


_RAW_FORMS = [
    Form(lib.HW_LOG_MALLOC, "+ {size:H} {number:H} {address:H}"),
    Form(lib.HW_LOG_FREE, "- {address:H}"),
    Form(lib.HW_LOG_NOTHING, "c {ms}"),
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    history.now_ns = 0
    if _is_interpreted(source):
        return _interpreted(source, LogHistory(source.folder, overlap=True))
    log = ScannedLog(source, lambda line: _read_line(history, line), history)
    log.read(lambda: Scanner(_RAW_FORMS, starts=b"+-c"))
    history.caveats.append("realloc is recorded as a free and a malloc")
    return history


def _is_interpreted(source: Source) -> bool:
    """Whether a file was interpreted: an allocation is described before any is made."""
    result = False
    for line in source.lines():
        result = line[:1] == b"a"
        if result or (line[:1] == b"+" and _is_allocation(line[2:].split())):
            break
    source.losses, source.cut = Losses(), None  # it is read from its begin again
    return result


def _is_allocation(fields: Sequence[bytes]) -> bool:
    try:
        return len([_number(field) for field in fields]) == 3
    except ValueError:
        return False


def _read_line(history: LogHistory, line: bytes) -> None:
    sign, fields = line[:1], line[2:].split()
    try:
        if sign == b"+":
            size, _, pointer = map(_number, fields)
            history.allocate(pointer, size)
        elif sign == b"-":
            history.release(_number(fields[0]))
        elif sign == b"c":
            history.now_ns = min(_number(fields[0]), _LATEST_MS) * 10**6
    except (ValueError, IndexError):
        history.skipped += 1


_INTERPRETED_FORMS = [
    Form(lib.HW_LOG_OF_KIND, "+ {address:H}"),
    Form(lib.HW_LOG_NEWEST, "- {address:H}"),
    Form(lib.HW_LOG_NOTHING, "c {ms}"),
    Form(lib.HW_LOG_KIND, "a {size:H} {number:H}"),
]
_KIND = np.dtype([("size", "u8"), ("newest", "u4")], align=True)
_SLOT = np.dtype([("born", "u8"), ("below", "u4")], align=True)


class _Interpreted(ScannedLog):
    """An interpreted file: it has sizes and call sites but no objects, so the newest object is freed first."""

    def __init__(self, source: Source, history: LogHistory) -> None:
        super().__init__(source, self._read_one_line, history)
        self.first = 0
        self._scanner = Scanner(_INTERPRETED_FORMS, starts=b"a+-c")
        self._newest = ffi.new("struct hw_log_newest *")
        self._kinds, self._slots = np.zeros(0, _KIND), np.zeros(0, _SLOT)
        self._begun = False
        self._history_ = history
        self.read(lambda: self._scanner)

    def make_calls(self, scanner: Scanner, events: NDArray[Any]) -> None:
        if not self._begun:  # what stands before the first description
            first = np.flatnonzero(events["kind"] == lib.HW_LOG_KIND)
            self._begun = len(first) > 0
            events = events[first[0] :] if self._begun else events[:0]
        if len(events):
            self._kinds = _with_room(self._kinds, int(self._newest.kinds) + len(events))
            self._slots = _with_room(self._slots, int(self._newest.slots) + len(events) + 1)
            self._newest.kind = ffi.cast("struct hw_log_kind_of *", self._kinds.ctypes.data)
            self._newest.slot = ffi.cast("struct hw_log_slot *", self._slots.ctypes.data)
            lib.hw_log_newest(self._newest, ffi.cast("struct hw_log_event *", events.ctypes.data), len(events))
            super().make_calls(scanner, events)

    def _read_one_line(self, line: bytes) -> None:
        sign, fields = line[:1], line[2:].split()
        try:
            if sign == b"a":
                self._make(lib.HW_LOG_KIND, size=_number(fields[0]))
            elif sign in (b"+", b"-"):
                self._make(lib.HW_LOG_OF_KIND if sign == b"+" else lib.HW_LOG_NEWEST, address=_number(fields[0]))
            elif sign == b"c":
                self._make(lib.HW_LOG_NOTHING, now_ns=min(_number(fields[0]), _LATEST_MS) * 10**6)
        except (ValueError, IndexError):
            self._history_.skipped += self._begun

    def _make(self, kind: int, **fields: int) -> None:
        self.make_calls(self._scanner, event_of(kind, **fields))


def _with_room(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """The array, with room for `rows` rows."""
    if rows <= len(array):
        return array
    return np.append(array, np.zeros(max(rows, 2 * len(array)) - len(array), array.dtype))


def _interpreted(source: Source, history: LogHistory) -> LogHistory:
    history.now_ns = 0
    _Interpreted(source, history)
    history.caveats += [
        "an interpreted file does not identify freed objects: the newest of the same size and call site is assumed",
        "realloc is recorded as a free and a malloc",
    ]
    return history


def _number(field: bytes) -> int:
    """A number as heaptrack writes it; raises ValueError for all else that int() takes."""
    if len(field) > 16 or not field.isalnum():
        raise ValueError(field)
    return int(field, 16)


FORMAT = Format(
    "heaptrack", lambda start: bool(_START.match(start)), _read, ("no threads", "times in whole milliseconds")
)
