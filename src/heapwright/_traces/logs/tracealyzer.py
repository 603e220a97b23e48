"""Percepio Tracealyzer's streams (.psf) of FreeRTOS, versions 10 to 14, as TraceRecorder 4.6 to 4.10 writes them.

trcStreamingRecorder.c writes the header, the clock and the table of names, trcEvent.h the events, trcHeap.c those of
the heap; their numbers stand in kernelports/FreeRTOS/include/trcKernelPort.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_MARKS = {b"\0FSP": "<", b"PSF\0": ">"}
_VERSIONS = (10, 12, 13, 14)
_FREERTOS = 0x1AA1

_HEADER_BYTES, _CLOCK_BYTES, _TABLE_BYTES = 32, 28, 12
_LARGEST_TABLE = 1 << 24
_BLOCK = 1 << 20

_START, _SWITCH_FIRST, _SWITCH_LAST, _MALLOC, _FREE = 0x01, 0x33, 0x37, 0x38, 0x39
_UP, _DOWN = (1, 5), (2, 6)
"""Types of clocks: counters of 32 bits that count up or down; 3 and 4 are the tick's timer, up and down."""
_TICK_DOWN = 4


class _Clock:
    """Time stamps of 32 bits, which wrap around, become nanoseconds."""

    def __init__(self, kind: int, frequency: int, period: int) -> None:
        self._kind, self._frequency, self._period = kind, frequency, period
        self._latest: int | None = None
        self._passed = 0

    def at(self, stamp: int) -> int:
        """Nanoseconds since the first stamp; -1 if the frequency of the clock is unknown."""
        latest = stamp if self._latest is None else self._latest
        self._latest = stamp
        if self._kind in _UP:
            self._passed += (stamp - latest) & 0xFFFFFFFF
            now = self._passed
        elif self._kind in _DOWN:
            self._passed += (latest - stamp) & 0xFFFFFFFF
            now = self._passed
        else:
            self._passed += ((stamp >> 24) - (latest >> 24)) & 0xFF
            count = stamp & 0xFFFFFF
            count = max(self._period - count, 0) if self._kind == _TICK_DOWN else count
            now = self._passed * self._period + count
        return now * 1_000_000_000 // self._frequency if self._frequency else -1


class _Event(NamedTuple):
    id: int
    core: int
    number: int
    stamp: int
    numbers: tuple[int, ...]


class _Stream:
    """A stream's header, its clock, and its events one by one; `lost` counts the missing ones."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.order = _MARKS.get(source.start(4), "<")
        self.lost = 0
        self._cores = 1
        self._next: dict[int, int] = {}

    def clock(self, start: bytes) -> _Clock:
        """The clock described by a stream's first bytes; raises HeapwrightError for streams of other kinds."""
        path = self._source.path
        _, version, kernel, _, cores = struct.unpack_from(f"{self.order}IHHII", start)
        if version not in _VERSIONS:
            raise HeapwrightError(
                f"{path}: version {version} of Tracealyzer's stream; 10, 12, 13 and 14 are known (TraceRecorder 4.6 to "
                "4.10)"
            )
        if kernel != _FREERTOS:
            raise HeapwrightError(
                f"{path}: a Tracealyzer stream of another kernel than FreeRTOS ({kernel:#06x}), whose events have "
                "other numbers; record with the hooks of its platform"
            )
        self._cores = cores & 0xFF
        kind, first, second = struct.unpack_from(f"{self.order}III", start, _HEADER_BYTES)
        frequency, period = (first, second) if version < 13 else (second, first)
        return _Clock(kind, frequency, period)

    def events(self) -> Iterator[_Event]:
        """The events; a gap in their counts reveals missing ones."""
        begin = _HEADER_BYTES + _CLOCK_BYTES + _TABLE_BYTES
        data = b""
        skip: int | None = None
        for block in self._source.blocks(_BLOCK):
            data += block
            if skip is None:
                if len(data) < begin:
                    continue
                skip = begin + self._table_bytes(data)
            at = min(skip, len(data))
            skip -= at
            while at + 8 <= len(data):
                code, count, stamp = struct.unpack_from(f"{self.order}HHI", data, at)
                end = at + 8 + (code >> 12) * 4
                if end > len(data):
                    break
                numbers = struct.unpack_from(f"{self.order}{code >> 12}I", data, at + 8)
                at = end
                yield self._counted(_Event(code & 0xFFF, 0, count, stamp, numbers))
            data = data[at:]
        if data or skip:
            self._source.cut = self._source.cut or "its last event has no end"

    def _table_bytes(self, data: bytes) -> int:
        entries, symbol, states = struct.unpack_from(f"{self.order}III", data, _HEADER_BYTES + _CLOCK_BYTES)
        size = int(entries) * (4 + 4 * int(states) + 4 + (int(symbol) + 3) // 4 * 4)
        if size > _LARGEST_TABLE:
            raise HeapwrightError(f"{self._source.path}: its table of names is damaged ({size} bytes)")
        return size

    def _counted(self, event: _Event) -> _Event:
        core, count, bits = 0, event.number, 16
        if self._cores > 1:
            core, count, bits = count >> 12, count & 0xFFF, 12
        self.lost += (count - self._next.get(core, count)) & ((1 << bits) - 1)
        self._next[core] = (count + 1) & ((1 << bits) - 1)
        return event._replace(core=core)


def _read(source: Source) -> LogHistory:
    history, stream = LogHistory(source.folder), _Stream(source)
    start = source.start(_HEADER_BYTES + _CLOCK_BYTES)
    if len(start) < _HEADER_BYTES + _CLOCK_BYTES:
        source.cut = "its header is not whole"
        return history
    clock = stream.clock(start)
    running: dict[int, int] = {}
    for event in stream.events():
        history.now_ns = clock.at(event.stamp)
        if event.id == _START or _SWITCH_FIRST <= event.id <= _SWITCH_LAST:
            running[event.core] = event.numbers[0] if event.numbers else 0
        elif event.id in (_MALLOC, _FREE) and len(event.numbers) == 2:
            history.set_thread(running.get(event.core))
            address, size = event.numbers
            if event.id == _MALLOC:
                history.allocate(address, size)
            else:
                history.release(address)
        elif event.id in (_MALLOC, _FREE):
            history.skipped += 1
    if stream.lost:
        history.caveats.append(f"{stream.lost} events are missing in the stream")
    return history


FORMAT = Format(
    "tracealyzer",
    lambda start: start[:4] in _MARKS,
    _read,
    ("sizes are as the heap reports them, which are block sizes in FreeRTOS's heap_2, heap_4 and heap_5",),
)
