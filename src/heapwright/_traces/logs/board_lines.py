"""The lines in which a board reports its calls: src/heapwright/_platforms/trace/app_trace_lines.h has their grammar."""

from __future__ import annotations

import re
from typing import NamedTuple

LINE = re.compile(rb"hw([!*])([$-~]{12,400})\s*$")
START = re.compile(rb"hw[!*][$-~]{12}")

_FIRST = ord("$")
_BASE, _PAIR_BITS = 91, 13
_HASH_BEGIN, _HASH_FACTOR, _HASH_SHIFT = 2166136261, 16777619, 19
_UNITS = 2000
_LONG, _COUNT_BITS, _WORD_BITS = 15, 12, 32
COUNTS = 1 << _COUNT_BITS
"""The modulus of the counts in a line."""
_NO_THREAD, _UNNAMED = 14, 15

FREED, MALLOC, CALLOC, RESIZED, RESIZING, THREAD, LOST, SITE = range(8)


class DamagedError(Exception):
    """A line whose checksum or content is invalid."""


class Lost(NamedTuple):
    """Calls that are missing at one place.

    `objects` and `bytes` are the net change of live objects and bytes by lost mallocs, `frees` and `freed_bytes` count
    lost frees of other objects; in between, live bytes rose by `rise`. Earlier shims count all lost mallocs and frees,
    and have no `freed_bytes`.
    """

    calls: int
    objects: int
    bytes: int
    frees: int
    freed_bytes: int | None = None
    rise: int = 0


class Code(NamedTuple):
    """One entry of a line: a call with its time unit, a change of thread, lost calls, or a new call site.

    `word` is an address, 0 of a request that failed, or the identity of a thread, which is below 0 for the first
    threads. `size` is the size of a request, of a freed block if the line reports it, or the number of a new call site.
    `site` is 0 for none.
    """

    kind: int
    word: int
    size: int | None = None
    moved_from: int = 0
    time: int = 0
    site: int = 0
    lost: Lost = Lost(0, 0, 0, 0)


class BoardLine(NamedTuple):
    """A line of a board's recording.

    `calls` precede it, with `objects` more mallocs than frees, both modulo `COUNTS`. `live` are the live bytes at its
    begin, None if unknown, and `peak` their peak so far. It begins at `time`; `thread` makes its first calls, None if
    the board has reported no thread yet.
    """

    calls: int
    objects: int
    time: int
    thread: int | None
    codes: list[Code]
    live: int | None = None
    peak: int = 0
    crowded: bool = False
    """Whether the board lacks room for all objects, so that `live` is unknown."""

    def after(self) -> tuple[int, int]:
        """`calls` and `objects` of the next line."""
        calls, objects = self.calls, self.objects
        for code in self.codes:
            calls += code.kind <= RESIZING
            objects += (
                (code.kind in (MALLOC, CALLOC) and code.word != 0)
                - (code.kind == FREED)
                + code.lost.objects
                - code.lost.frees
            )
        return calls % COUNTS, objects % COUNTS


def unit_bits(ticks_per_second: int) -> int:
    """The binary logarithm of a unit of time in ticks."""
    return (ticks_per_second // (_UNITS + 1)).bit_length()


def line_of(mark: bytes, text: bytes) -> BoardLine:
    """The line of the characters behind its mark, which is b"!" for earlier shims; raises DamagedError."""
    numbers = [item - _FIRST for item in text]
    value = _HASH_BEGIN
    for item in text[:-2]:
        value = (value ^ item) * _HASH_FACTOR & 0xFFFFFFFF
    if len(text) % 2 == 0 or value >> _HASH_SHIFT != numbers[-2] * _BASE + numbers[-1]:
        raise DamagedError
    return _Reader(numbers[1:-2], early=mark == b"!").line(numbers[0])


class _Reader:
    """A reader of the bits of a line, highest first."""

    def __init__(self, numbers: list[int], early: bool) -> None:
        self._early = early
        self._remaining = len(numbers) // 2 * _PAIR_BITS
        self._bits = 0
        for high, low in zip(numbers[::2], numbers[1::2], strict=True):
            self._bits = self._bits << _PAIR_BITS | high * _BASE + low
        self._places: list[int] = []
        self._sizes: list[int] = []
        self._sites: list[int] = []
        self._has_sites = False
        self._time = 0

    def line(self, count: int) -> BoardLine:
        calls, objects = self._take(_COUNT_BITS), self._take(_COUNT_BITS)
        live = self._number() if not self._early and self._take(1) else None
        peak = live + self._number() if live is not None else 0
        begun = self._time = self._number()
        self._places.append(self._take(_WORD_BITS))
        thread = self._thread()
        self._has_sites = not self._early and self._take(1) == 1
        codes = [self._code() for _ in range(count)]
        if self._remaining >= _PAIR_BITS or self._take(self._remaining):
            raise DamagedError
        return BoardLine(calls, objects, begun, thread, codes, live, peak, live is None and not self._early)

    def _take(self, bits: int) -> int:
        if bits > self._remaining:
            raise DamagedError
        self._remaining -= bits
        return self._bits >> self._remaining & (1 << bits) - 1

    def _number(self) -> int:
        bits = self._take(4)
        if bits == _LONG:
            bits += self._take(5)
        return 1 << bits - 1 | self._take(bits - 1) if bits else 0

    def _thread(self) -> int | None:
        number = self._take(4)
        if number == _NO_THREAD:
            return None
        return self._take(_WORD_BITS) if number == _UNNAMED else -1 - number

    def _signed(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)

    def _code(self) -> Code:
        kind = 0
        while kind < THREAD and self._take(1):
            kind += 1
        if kind < THREAD:
            return self._call(kind, sized=False)
        if self._take(1):
            return self._rare_code()
        if (thread := self._thread()) is None:
            raise DamagedError
        return Code(THREAD, thread)

    def _rare_code(self) -> Code:
        """A code after the escape: lost calls, a free with its size, or a new call site."""
        if self._early:
            return Code(LOST, 0, lost=Lost(*(self._number() for _ in range(4))))
        kind = self._take(2)
        if kind == 0:
            came = self._number(), self._signed(), self._signed()
            return Code(LOST, 0, lost=Lost(*came, *(self._number() for _ in range(3))))
        if kind == 1:
            return self._call(FREED, sized=True)
        if kind == 2:
            return Code(SITE, size=self._number(), word=self._take(_WORD_BITS))
        raise DamagedError

    def _call(self, kind: int, sized: bool) -> Code:
        if self._take(1):
            self._time += self._number() if self._take(1) else 1
        moved_from, word = 0, self._place()
        size = self._value(self._sizes) if sized or kind in (MALLOC, CALLOC, RESIZED) else None
        if kind == RESIZED:
            moved_from, word = word, self._place() if self._take(1) else 0
        site = self._value(self._sites) if self._has_sites and kind in (MALLOC, CALLOC, RESIZED) else 0
        return Code(kind, word, size, moved_from, self._time, site)

    def _place(self) -> int:
        if not self._take(1):
            ago = self._take(5)
            if ago >= len(self._places):
                raise DamagedError
            place = self._places[-1 - ago]
        else:
            fine, below = self._take(1), self._take(1)
            far = self._number() * (1 if fine else 8)
            place = self._places[-1] + (-far if below else far)
        self._places.append(place & 0xFFFFFFFF)
        return place & 0xFFFFFFFF

    def _value(self, values: list[int]) -> int:
        if self._take(1):
            values.append(self._number())
            return values[-1]
        ago = self._take(3)
        if ago >= len(values):
            raise DamagedError
        return values[-1 - ago]
