"""SEGGER SystemView's recordings: the stream of SEGGER_SYSVIEW.c (3.32), with or without a header of lines.

Packets are an id, for ids from 24 on a length, data, and the ticks since the packet before, all of them numbers of 7
bits a byte. Heaps report their calls in packet 31, and ESP-IDF in those of a module of its own
(components/app_trace/sys_view/ext/heap_trace_module.c), whose dual cores set a bit of the id
(tools/esp_app_trace/espytrace/sysview.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_SYNC = bytes(10)
_HEADER = re.compile(rb";\r?\n; Version     SEGGER SystemView")
_ESP_HEADER = b"; ESP_Extension\n"
_ESP_MODULE = b"ESP32 SystemView Heap Tracing Module"

_OVERFLOW, _ISR_ENTER, _ISR_EXIT, _TASK_START, _TASK_STOP = range(1, 6)
_TRACE_START, _IDLE, _ISR_TO_SCHEDULER, _MODULE, _INIT, _EXTENDED = 10, 17, 18, 22, 24, 31
_HEAP_ALLOC, _HEAP_ALLOC_TAGGED, _HEAP_FREE = 3, 4, 5
_NUMBERS = (0, 1, 1, 0, 1, 0, 1, 2, 1, 2, 0, 0, 1, 2, 0, 1, 1, 0, 0, 1, 0, 4, 2, 2)
"""Numbers in the packets without a length, by id; packets of _TEXT end with a text."""
_TEXT = {9, 14, _MODULE}
_LARGEST_ID = 1 << 15
_LARGEST_SHIFT = 16
_LONGEST = 1 << 14
"""Bytes of a packet; what claims to be longer is none."""
_BLOCK = 1 << 20
_START = 1 << 10


class _DamagedError(Exception):
    """What follows is no packet."""


class _Packet(NamedTuple):
    id: int
    core: int
    data: bytes
    ticks: int


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number and the place behind it; raises IndexError where the data ends in it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, at
        shift += 7
        if shift > 28:
            raise _DamagedError


def _text_end(data: bytes, at: int) -> int:
    length = data[at]
    if length == 255:
        return at + 3 + (data[at + 1] << 8 | data[at + 2])
    return at + 1 + length


def _packet(data: bytes, at: int, of_esp: bool) -> tuple[_Packet, int]:
    """The packet that begins there, and the place behind it; raises IndexError where the data ends in it."""
    number, begin = _number(data, at)
    core = 0
    if of_esp:
        bit = 1 << 6 if begin - at == 1 else 1 << 13
        number, core = number & ~bit, int(number & bit > 0)
    if number >= _LARGEST_ID:
        raise _DamagedError
    if number < len(_NUMBERS):
        at = begin
        for _ in range(_NUMBERS[number]):
            _, at = _number(data, at)
        if number in _TEXT:
            at = _text_end(data, at)
    else:
        length, begin = _number(data, begin)
        at = begin + length
    if at - begin > _LONGEST:
        raise _DamagedError
    ticks, end = _number(data, at)
    return _Packet(number, core, data[begin:at], ticks), end


def _packets(source: Source, history: LogHistory) -> Iterator[_Packet]:
    """The packets of a recording, from its first mark of synchronisation on; behind damage from the next one on."""
    data, synchronised, of_esp = b"", False, _ESP_HEADER in source.start(_START)
    for block in source.blocks(_BLOCK):
        data += block
        at = 0
        while True:
            if not synchronised:
                result = data.find(_SYNC, at)
                if result < 0:
                    at = max(at, len(data) - len(_SYNC) + 1)
                    break
                at, synchronised = result + len(_SYNC), True
            try:
                packet, at = _packet(data, at, of_esp)
            except IndexError:
                break
            except _DamagedError:
                history.skipped += 1
                synchronised = False
                continue
            yield packet
        data = data[at:]
    if data and synchronised:
        source.cut = source.cut or "its last packet has no end"


class _Board:
    """The state of a board from its packets: clock, compression of addresses, running tasks."""

    def __init__(self, history: LogHistory) -> None:
        self.history = history
        self.lost = 0
        self._has_block_sizes = self._is_of_esp = False
        self._ticks = self._frequency = self._shift = self._base = 0
        self._module: int | None = None
        self._tasks: dict[int, int] = {}
        self._interrupts: dict[int, int] = {}

    def put(self, packet: _Packet) -> None:
        """Take a packet in; raises IndexError where its data is too short."""
        self._ticks += packet.ticks
        number, data = packet.id, packet.data
        if number == _EXTENDED:
            self._heap(packet, *_numbers(data))
        elif self._module is not None and number in (self._module, self._module + 1):
            self._esp(packet, _numbers(data))
        elif number == _INIT:
            frequency, _, base, shift, *_ = (*_numbers(data), 0, 0, 0)
            if shift > _LARGEST_SHIFT:
                raise IndexError
            self._frequency, self._base, self._shift = frequency, base, shift
        elif number == _OVERFLOW:
            self.lost += _numbers(data)[0]
        elif number == _MODULE and _ESP_MODULE in data:
            self._module = _number(data, _number(data, 0)[1])[0]
        else:
            self._switch(packet)

    def _switch(self, packet: _Packet) -> None:
        number, core = packet.id, packet.core
        if number == _ISR_ENTER:
            self._interrupts[core] = self._interrupts.get(core, 0) + 1
        elif number in (_ISR_EXIT, _ISR_TO_SCHEDULER):
            self._interrupts[core] = max(self._interrupts.get(core, 0) - 1, 0)
        elif number == _TASK_START:
            self._tasks[core] = _number(packet.data, 0)[0]
        elif number in (_TASK_STOP, _IDLE):
            self._tasks.pop(core, None)

    def _begin(self, packet: _Packet) -> None:
        """Set the time and the thread of the next call."""
        if self._frequency:
            self.history.now_ns = self._ticks * 1_000_000_000 // self._frequency
        interrupted = self._interrupts.get(packet.core, 0) > 0
        self.history.set_thread("interrupt" if interrupted else self._tasks.get(packet.core))

    def _heap(self, packet: _Packet, kind: int, *numbers: int) -> None:
        if kind not in (_HEAP_ALLOC, _HEAP_ALLOC_TAGGED, _HEAP_FREE):
            return
        self._has_block_sizes = True
        self._begin(packet)
        address = (numbers[1] << self._shift) + self._base & 0xFFFFFFFF
        if kind == _HEAP_FREE:
            self.history.release(address)
        else:
            self.history.allocate(address, numbers[2] << self._shift)

    def _esp(self, packet: _Packet, numbers: list[int]) -> None:
        self._is_of_esp = True
        self._begin(packet)
        freed = packet.id != self._module
        caller = (numbers[1:] if freed else numbers[2:])[:1]
        self.history.set_site(f"{caller[0]:#010x}" if caller and caller[0] else "")
        if freed:
            self.history.release(numbers[0])
        else:
            self.history.allocate(numbers[0], numbers[1])

    def done(self) -> LogHistory:
        caveats = self.history.caveats
        if self.lost:
            caveats.append(f"{self.lost} packets were lost on the board, whose buffer was full")
        if self._has_block_sizes:
            caveats.append("sizes are as the heap reports them, which are block sizes by SystemView's manual")
            if self._shift:
                caveats.append(f"sizes are reported in units of {1 << self._shift} bytes, rounded down")
        if self._is_of_esp:
            caveats.append("realloc is recorded as a free and a malloc")
        return self.history


def _numbers(data: bytes) -> list[int]:
    """All numbers of some data; raises IndexError where there is none, or the last is cut."""
    numbers: list[int] = []
    at = 0
    while at < len(data) or not numbers:
        number, at = _number(data, at)
        numbers.append(number)
    return numbers


def _read(source: Source) -> LogHistory:
    board = _Board(LogHistory(source.folder))
    for packet in _packets(source, board.history):
        try:
            board.put(packet)
        except (IndexError, _DamagedError):
            board.history.skipped += 1
    return board.done()


def _matches(start: bytes) -> bool:
    return _HEADER.match(start) is not None or start.startswith(_SYNC + bytes([_TRACE_START]))


FORMAT = Format("sysview", _matches, _read)
