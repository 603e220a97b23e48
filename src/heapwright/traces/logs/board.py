"""What the hooks of a platform recorded (src/heapwright/platforms/trace): a dump of their ring, or its lines.

A record is a word, and one of kind (2 bits), ticks since the record before (10) and size (20).
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict

from heapwright.traces.logs.formats import Format
from heapwright.traces.logs.history import History
from heapwright.traces.logs.source import Source

_MAGIC = 0x48577472
_HEADER = 8
"""Words before the records: magic, room, ticks a second, lost, begin, end, time, thread."""
_MOST_RECORDS = 1 << 26
_MARKS = {"<": struct.pack("<I", _MAGIC), ">": struct.pack(">I", _MAGIC)}
_LINE = re.compile(rb"hw([:#])([0-9a-f]{8})([0-9a-f]{8})\s*$")
_START = re.compile(rb"hw[:#][0-9a-f]{16}")

_MALLOC, _CALLOC, _OTHER, _WIDE = range(4)
_FREED, _RESIZING, _RESIZED, _THREAD = range(4)
_TICK_BITS, _SIZE_BITS = 10, 20


class _Records:
    """Records become calls, one by one."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.ticks_per_second = self.lost = 0
        self._ticks = self._more_ticks = self._more_size = 0
        self._from: int | None = None
        self._resizing: dict[int, list[int | None]] = defaultdict(list)

    def put(self, word: int, rest: int) -> None:
        kind = rest & 3
        if kind == _WIDE:
            self._more_ticks, self._more_size = word >> _TICK_BITS, word & ((1 << _TICK_BITS) - 1)
            return
        self._ticks += (rest >> 2) & ((1 << _TICK_BITS) - 1) | self._more_ticks << _TICK_BITS
        size = rest >> (32 - _SIZE_BITS) | self._more_size << _SIZE_BITS
        self._more_ticks = self._more_size = 0
        if self.ticks_per_second:
            self.history.now_ns = self._ticks * 1_000_000_000 // self.ticks_per_second
        moved, self._from = self._from, None
        if kind != _OTHER:
            self._give(moved, word, size, cleared=kind == _CALLOC)
        elif size == _FREED:
            self.history.release(word)
        elif size == _RESIZING:
            self._resizing[word].append(self.history.begin_resize(word))
        elif size == _RESIZED:
            self._from = word
        elif size == _THREAD:
            self.history.set_thread(word)
        else:
            self.history.skipped += 1

    def _give(self, moved: int | None, word: int, size: int, *, cleared: bool) -> None:
        if moved is None:
            self.history.allocate(word, size, cleared=cleared)
            return
        begun = self._resizing.pop(moved, [])
        number = begun.pop(0) if begun else self.history.begin_resize(moved)
        if begun:
            self._resizing[moved] = begun
        self.history.end_resize(moved, number, word, size)

    def done(self) -> History:
        if self.lost:
            self.history.caveats.append(f"{self.lost} calls were lost on the board, whose ring was full")
        return self.history


def _read(source: Source) -> History:
    records = _Records(source.history())
    if (order := _order(source.start(4))) is None:
        _of_lines(source, records)
    else:
        _of_dump(source, order, records)
    return records.done()


def _of_lines(source: Source, records: _Records) -> None:
    for line in source.lines():
        found = _LINE.search(line)
        if found is None:
            records.history.skipped += _START.search(line) is not None
        elif found[1] == b"#":
            records.put(int(found[2], 16), int(found[3], 16))
        else:
            records.ticks_per_second, records.lost = int(found[2], 16), int(found[3], 16)


def _of_dump(source: Source, order: str, records: _Records) -> None:
    dump = b"".join(source.blocks(1 << 20))
    words = struct.unpack(f"{order}{len(dump) // 4}I", dump[: len(dump) // 4 * 4])
    if len(words) < _HEADER:
        source.cut = "the ring is not whole"
        return
    _, room, records.ticks_per_second, records.lost, begin, end, *_ = words
    count = (end - begin) & 0xFFFFFFFF
    if not 0 < room <= _MOST_RECORDS or count > room:
        records.history.skipped += 1
        return
    for number in range(begin, begin + count):
        place = _HEADER + 2 * (number % room)
        if place + 1 >= len(words):
            source.cut = "the ring is not whole"
        else:
            records.put(words[place], words[place + 1])


def _order(start: bytes) -> str | None:
    return next((order for order, mark in _MARKS.items() if start[:4] == mark), None)


def _matches(start: bytes) -> bool:
    return _order(start) is not None or _START.search(start) is not None


FORMAT = Format("board", _matches, _read)
