"""Recordings by the tracing shims of a platform (src/heapwright/_platforms/trace): a dump of their ring, or lines.

A record of the ring is a word, and a word of kind (2 bits), ticks since the previous record (10) and size (20).
`board_lines.py` reads the lines; earlier shims printed each record as hexadecimal digits.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from pathlib import Path

from heapwright._traces.logs import board_lines
from heapwright._traces.logs.board_lines import COUNTS, BoardLine, Code, DamagedError, Lost
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_MAGIC = 0x48577472
_HEADER = 8
"""Words before the records: magic, room, ticks a second, lost, begin, end, time, thread."""
_MOST_RECORDS = 1 << 26
_MARKS = {"<": struct.pack("<I", _MAGIC), ">": struct.pack(">I", _MAGIC)}
_LINE = re.compile(rb"hw([:#])([0-9a-f]{8})([0-9a-f]{8})((?<=hw:.{16})[0-9a-f]{8})?\s*$")
_START = re.compile(rb"hw(?:[:#][0-9a-f]{16}|[!*][$-~]{12})")

_MALLOC, _CALLOC, _OTHER, _WIDE = range(4)
_FREED, _RESIZING, _RESIZED, _THREAD, *_LOST_EARLY = range(8)
*_LOST, _STRAY, _SITE = range(8, 16)
"""The lowest four bits of "size" in a record of `_OTHER`; `_LOST_EARLY` is written by earlier shims."""
_SIGNED = (_LOST[1], _LOST[2])
_CROWDED = 1 << 31
"""Flag in the number of calls: the board's table was too small for all objects."""
_TICK_BITS, _SIZE_BITS = 10, 20
_TIMES = 1 << 32


class _Records:
    """The converter of records and codes to calls, one by one."""

    def __init__(self, history: LogHistory, elf: Path | None) -> None:
        self.history, self._elf = history, elf
        self._ticks_per_second = self._lost = self._lost_before = 0
        self._marked = self._lost_in_transit = self._restarts = 0
        self._ticks = self._more_ticks = self._more_size = 0
        self._from: int | None = None
        self._resizing: dict[int, list[int | None]] = defaultdict(list)
        self._time = 0  # in a line's units
        self._reported: tuple[int, int] | None = None  # calls, and mallocs more than frees, modulo COUNTS
        self._waiting: BoardLine | None = None
        self._crowded = False
        self._lost_numbers: list[int] = []
        self._site = 0  # address of the call site of the next calls
        self._caller = 0  # call site of the mallocs of a dump
        self._site_names = {0: ""}
        self._places: dict[int, int] = {}  # number: address of a site

    def head(self, ticks_per_second: int, lost: int) -> None:
        """Set the board's clock, and the number of calls that it has lost since it was started."""
        self._lost_before += self._lost if lost < self._lost else 0
        self._ticks_per_second, self._lost = ticks_per_second, lost

    def put(self, word: int, rest: int) -> None:
        """Process a record."""
        kind = rest & 3
        if kind == _WIDE:
            self._more_ticks, self._more_size = word >> _TICK_BITS, word & ((1 << _TICK_BITS) - 1)
            return
        self._later((rest >> 2) & ((1 << _TICK_BITS) - 1) | self._more_ticks << _TICK_BITS)
        size = rest >> (32 - _SIZE_BITS) | self._more_size << _SIZE_BITS
        self._more_ticks = self._more_size = 0
        moved, self._from = self._from, None
        self._set_site(self._caller if kind != _OTHER else 0)
        if kind != _OTHER:
            self._give(moved, word, size, cleared=kind == _CALLOC)
        else:
            self._put_other(word, size & 15, size >> 4)

    def _put_other(self, word: int, what: int, size: int) -> None:
        if what in (_FREED, _STRAY):
            self.history.release(word, size or None)
        elif what == _RESIZING:
            self._resizing[word].append(self.history.begin_resize(word))
        elif what == _RESIZED:
            self._from = word
        elif what == _THREAD:
            self.history.set_thread(word)
        elif what == _SITE:
            self._caller = word
        else:
            self._put_lost(word, what)

    def _put_lost(self, word: int, what: int) -> None:
        numbers = _LOST if what in _LOST else _LOST_EARLY
        if what == _LOST[0]:
            self._crowded, word = self._crowded or bool(word & _CROWDED), word & ~_CROWDED
        elif what in _SIGNED:
            word -= word >> 31 << 32
        self._lost_numbers = [*self._lost_numbers, word] if what > numbers[0] else [word]
        if what == numbers[-1] and len(self._lost_numbers) == len(numbers):
            self._lose(Lost(*self._lost_numbers))

    def put_line(self, mark: bytes, text: bytes) -> None:
        """Process a line, given as its mark and the characters behind it.

        If calls are missing, the line waits for the next one, which reports the peak of live bytes up to there.
        """
        try:
            line = board_lines.line_of(mark, text)
        except DamagedError:
            self.history.skipped += 1
            return
        self._take_waiting(line)
        if self.history.lossy or self._reported not in (None, (line.calls, line.objects)):
            self._waiting = line
        else:
            self._take_line(line)

    def _take_waiting(self, following: BoardLine | None) -> None:
        if self._waiting is not None:
            line, self._waiting = self._waiting, None
            has_peak = following is not None and following.live is not None and not self._has_restarted(following)
            self._take_line(line, following.peak if following is not None and has_peak else None)

    def _has_restarted(self, line: BoardLine) -> bool:
        return (line.time - self._time) % _TIMES >= _TIMES // 2

    def _take_line(self, line: BoardLine, most: int | None = None) -> None:
        if self._has_restarted(line):
            self._restarts += 1
            self._time = line.time
            self.history.release_all()
        elif self._reported and self._reported != (line.calls, line.objects):
            missing = (line.calls - self._reported[0]) % COUNTS
            more = (line.objects - self._reported[1] + COUNTS // 2) % COUNTS - COUNTS // 2
            self._lost_in_transit += missing
            self._forget_reallocs()
            self.history.lose(missing, more)
        self._reported = line.after()
        self._set_site(0)
        self._crowded = self._crowded or line.crowded
        if line.live is not None:
            self.history.count(line.live, line.peak)
        else:
            self.history.stop_counting()
        self.history.most = most
        if line.thread is not None:
            self.history.set_thread(line.thread)
        for code in line.codes:
            self._put_code(code)

    def _put_code(self, code: Code) -> None:
        if code.kind == board_lines.THREAD:
            self.history.set_thread(code.word)
            return
        if code.kind == board_lines.LOST:
            self._lose(code.lost)
            return
        if code.kind == board_lines.SITE:
            self._places[code.size or 0] = code.word
            return
        self._set_site(self._places.get(code.site, 0))
        units = (code.time - self._time) % _TIMES
        self._time = code.time
        self._later(units << board_lines.unit_bits(self._ticks_per_second))
        if code.kind == board_lines.FREED:
            self.history.release(code.word, code.size)
        elif code.kind == board_lines.RESIZING:
            self._resizing[code.word].append(self.history.begin_resize(code.word))
        else:
            moved = code.moved_from if code.kind == board_lines.RESIZED else None
            self._give(moved, code.word, code.size or 0, cleared=code.kind == board_lines.CALLOC)

    def _set_site(self, address: int) -> None:
        if address == self._site:
            return
        self._site = address
        if address not in self._site_names:
            self._site_names[address] = f"{address:#x}" if self._elf is None else _name_in(self._elf, address)
        self.history.set_site(self._site_names[address])

    def _later(self, ticks: int) -> None:
        self._ticks += ticks
        if self._ticks_per_second:
            self.history.now_ns = self._ticks * 1_000_000_000 // self._ticks_per_second

    def _lose(self, lost: Lost) -> None:
        self._marked += lost.calls
        self._set_site(0)
        self._forget_reallocs()
        if lost.freed_bytes is None or self._crowded:
            each = max(lost.bytes, 0) // max(lost.objects, 1)
            self.history.lose(lost.calls, lost.objects - lost.frees, each)
        else:
            came, freed = (lost.objects, lost.bytes), (lost.frees, lost.freed_bytes)
            self.history.lose_counted(lost.calls, came, freed, lost.rise)

    def _forget_reallocs(self) -> None:
        """Cancel the reallocs in progress: their ends may be missing, so their objects keep their addresses."""
        for address, numbers in self._resizing.items():
            for number in numbers:
                self.history.cancel_resize(address, number)
        self._resizing.clear()

    def _give(self, moved: int | None, word: int, size: int, *, cleared: bool) -> None:
        if moved is None:
            self.history.allocate(word, size, cleared=cleared)
            return
        begun = self._resizing.pop(moved, [])
        number = begun.pop(0) if begun else self.history.begin_resize(moved)
        if begun:
            self._resizing[moved] = begun
        self.history.end_resize(moved, number, word, size)

    def done(self) -> LogHistory:
        """Finish the history, and add its caveats."""
        self._take_waiting(None)
        caveats = self.history.caveats
        if lost := max(self._lost_before + self._lost, self._marked):
            caveats.append(_singular(f"{lost} calls were lost on the board, whose ring was full"))
        if self._lost_in_transit:
            caveats.append(_singular(f"{self._lost_in_transit} calls were lost on the way from the board"))
        if self.history.lossy and self._crowded:
            caveats.append("more objects were live than APP_TRACE_OBJECTS has room for: their bytes are estimated")
        if self._restarts:
            times = "once" if self._restarts == 1 else f"{self._restarts} times"
            caveats.append(f"the board was started again {times}; all live objects are freed there")
        return self.history


def _singular(text: str) -> str:
    return text.replace("1 calls were", "1 call was") if text.startswith("1 ") else text


def _name_in(elf: Path, address: int) -> str:
    from heapwright._traces.sites import name_in

    return name_in(elf, address)


def _read(source: Source) -> LogHistory:
    records = _Records(source.history(), source.elf)
    if (order := _order(source.start(4))) is None:
        _of_lines(source, records)
    else:
        _of_dump(source, order, records)
    return records.done()


def _of_lines(source: Source, records: _Records) -> None:
    for line in source.lines():
        if result := board_lines.LINE.search(line):
            records.put_line(result[1], result[2])
        elif (result := _LINE.search(line)) is None:
            records.history.skipped += _START.search(line) is not None
        elif result[1] == b"#":
            records.put(int(result[2], 16), int(result[3], 16))
        else:
            records.head(int(result[2], 16), int(result[3], 16))
            if result[4]:
                records.history.arena = int(result[4], 16)


def _of_dump(source: Source, order: str, records: _Records) -> None:
    dump = b"".join(source.blocks(1 << 20))
    words = struct.unpack(f"{order}{len(dump) // 4}I", dump[: len(dump) // 4 * 4])
    if len(words) < _HEADER:
        source.cut = "the ring is not whole"
        return
    _, room, ticks_per_second, lost, begin, end, *_ = words
    records.head(ticks_per_second, lost)
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
