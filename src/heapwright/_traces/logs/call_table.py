"""Tables of heap calls as CSV: a header line that names an operation, an address and a size."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_OPERATIONS = ("op", "operation", "action", "event", "call", "function", "type", "kind")
_ADDRESSES = ("address", "addr", "ptr", "pointer", "block", "result", "ret")
_OLD = ("old", "old_address", "old_ptr", "from", "old_pointer")
_SIZES = ("size", "bytes", "length", "len", "nbytes", "request", "requested")
_THREADS = ("thread", "tid", "task", "thread_id")
_SITES = ("site", "caller", "where", "function_name", "location", "file")
_TIMES = {
    **dict.fromkeys(("time", "seconds", "time_s", "t", "timestamp", "ts"), 10**9),
    **dict.fromkeys(("ms", "time_ms", "ts_ms", "milliseconds"), 10**6),
    **dict.fromkeys(("us", "time_us", "ts_us", "microseconds"), 10**3),
    **dict.fromkeys(("ns", "time_ns", "ts_ns", "nanoseconds"), 1),
}
"""Names of time columns (case does not matter), with the nanoseconds in their unit."""
_EVENTS = {
    **dict.fromkeys(("malloc", "alloc", "allocate", "allocated", "new", "m", "a", "+"), "malloc"),
    **dict.fromkeys(("calloc", "zalloc", "c"), "calloc"),
    **dict.fromkeys(("realloc", "resize", "r"), "realloc"),
    **dict.fromkeys(("free", "freed", "delete", "del", "release", "dealloc", "f", "-"), "free"),
    **dict.fromkeys(("fail", "failed", "failure", "alloc_failed", "malloc_failed"), "fail"),
}


class CallColumns(NamedTuple):
    """Positions of the columns of a table of heap calls; -1 for one that it lacks."""

    operation: int
    address: int
    size: int
    old: int
    time: int
    nanoseconds: int
    thread: int
    site: int

    @classmethod
    def find(cls, header: Sequence[str]) -> CallColumns | None:
        """The columns that a header names; None unless it has an operation, an address and a size."""
        names = [name.strip().strip("\ufeff").lower() for name in header]

        def at(valid: Sequence[str]) -> int:
            return next((position for position, name in enumerate(names) if name in valid), -1)

        time = at(tuple(_TIMES))
        result = cls(
            at(_OPERATIONS),
            at(_ADDRESSES),
            at(_SIZES),
            at(_OLD),
            time,
            _TIMES[names[time]] if time >= 0 else 0,
            at(_THREADS),
            at(_SITES),
        )
        return result if min(result.operation, result.address, result.size) >= 0 else None


def is_call_table(start: bytes) -> bool:
    """Whether a file that begins with these bytes is a CSV table of heap calls."""
    lines = start.split(b"\n", 2)
    if len(lines) < 2 or b"\0" in lines[0]:
        return False
    columns = CallColumns.find(_cells(lines[0].decode("utf-8-sig", "replace")))
    if columns is None:
        return False
    first = _cells(lines[1].decode(errors="replace"))
    return len(first) > columns.operation and first[columns.operation].strip().lower() in _EVENTS


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.strip("\r")], delimiter=_delimiter(line)), [])
    except csv.Error:
        return []


_KINDS = {
    "malloc": lib.HW_LOG_MALLOC,
    "calloc": lib.HW_LOG_CALLOC,
    "realloc": lib.HW_LOG_RESIZE,
    "free": lib.HW_LOG_FREE,
}


class _Table(ScannedLog):
    """A table that is read row by row; its first rows give the words for its operations."""

    def __init__(self, source: Source, history: LogHistory) -> None:
        super().__init__(source, self._read_row, history)
        self._to = history
        self._columns: CallColumns | None = None
        self._number = 0
        self._delimiter = ","
        self._words: dict[str, None] = {}
        self.first = 500
        self.read(self._scanner)

    def _read_row(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        cells = _cells(text)
        if self._columns is None:
            self._columns = CallColumns.find(cells)
            self._number, self._delimiter = len(cells), _delimiter(text)
        elif cells:
            cells = [cell.strip() for cell in cells]
            self._to.skipped += not _note(self._to, self._columns, cells)
            if self._columns.operation < len(cells):
                self._words[cells[self._columns.operation]] = None

    def _scanner(self) -> Scanner | None:
        if self._columns is None or self._delimiter == "\t":
            return None
        words = dict.fromkeys([*self._words, *_EVENTS])
        forms = [self._form(word) for word in words if _EVENTS.get(word.lower()) in _KINDS]
        default = {"thread": b"", "site": b""}
        return Scanner([form._replace(default=default) for form in forms], thread_name=lambda name: name.decode())

    def _form(self, word: str) -> Form:
        """The form of rows whose operation is this word: each cell is what it must be."""
        event, columns = _EVENTS[word.lower()], self._columns
        assert columns is not None
        cells = ["{word:c}"] * self._number
        cells[columns.operation] = re.sub(r"([\\{\[\]])", r"\\\1", word)
        cells[columns.address] = "{address:xz}"
        if event != "free":
            cells[columns.size] = "{size:xz}"
        if columns.old >= 0 and event == "realloc":
            cells[columns.old] = "{old:xz}"
        if columns.time >= 0:
            cells[columns.time] = f"{{float:{columns.nanoseconds}}}"
        if columns.thread >= 0:
            cells[columns.thread] = "{thread:c}"
        if columns.site >= 0:
            cells[columns.site] = "{site:c}"
        itself = event == "realloc" and columns.old < 0
        return Form(lib.HW_LOG_RESIZE_SELF if itself else _KINDS[event], self._delimiter.join(cells))


def _read(source: Source) -> LogHistory:
    # What such a table calls an address may be a name, or lie in several memories: objects may overlap.
    history = LogHistory(source.folder, overlap=True)
    _Table(source, history)
    return history


def _note(history: LogHistory, columns: CallColumns, cells: Sequence[str]) -> bool:
    """Note the call of a row; False for a row that is none."""
    try:
        event = _EVENTS[cells[columns.operation].lower()]
        address = _number(cells[columns.address]) if event != "fail" else 0
        size = _number(cells[columns.size]) if event != "free" else 0
        old = _number(cells[columns.old]) if event == "realloc" and columns.old >= 0 else address
        now = float(cells[columns.time]) if columns.time >= 0 else -1.0
        thread = cells[columns.thread] if columns.thread >= 0 else ""
        site = cells[columns.site] if columns.site >= 0 else ""
    except (KeyError, IndexError, ValueError):
        return False
    if 0 <= now * columns.nanoseconds < 1 << 62:
        history.now_ns = round(now * columns.nanoseconds)
    history.set_thread(thread)
    history.set_site(site)
    if event == "free":
        history.release(address)
    elif event == "realloc":
        history.resize(old, address, size)
    elif event == "fail":
        history.fail(size)
    else:
        history.allocate(address, size, cleared=event == "calloc")
    return True


def _number(text: str) -> int:
    """A number of C; "(nil)", "NULL" and nothing are 0. Raises ValueError."""
    if text.lower() in ("", "(nil)", "null", "nil", "none"):
        return 0
    value = int(text, 16 if text.lower().startswith("0x") else 10)
    if value < 0:
        raise ValueError(value)
    return value


FORMAT = Format("calls-csv", is_call_table, _read)
