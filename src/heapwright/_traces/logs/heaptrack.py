"""heaptrack's files, version 1 to 3: raw (heaptrack --raw) and interpreted, as libheaptrack.cpp (1.4) writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_LATEST_MS = 1 << 42

_START = re.compile(rb"v [0-9a-f]+(?: [0-9a-f]+)?\n[xX] ")


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    history.now_ns = 0
    lines = source.lines()
    for line in lines:
        sign, fields = line[:1], line[2:].split()
        try:
            if sign == b"a" and not len(history):
                return _interpreted(LogHistory(source.folder, overlap=True), line, lines)
            if sign == b"+":
                size, _, pointer = map(_number, fields)
                history.allocate(pointer, size)
            elif sign == b"-":
                history.release(_number(fields[0]))
            elif sign == b"c":
                history.now_ns = min(_number(fields[0]), _LATEST_MS) * 10**6
        except (ValueError, IndexError):
            history.skipped += 1
    history.caveats.append("realloc is recorded as a free and a malloc")
    return history


def _interpreted(history: LogHistory, first: bytes, lines: Iterator[bytes]) -> LogHistory:
    """Read an interpreted file: it has sizes and call sites but no objects, so the newest object is freed first."""
    history.now_ns = 0
    sizes: list[int] = []
    live: dict[int, list[int]] = {}
    born = 0
    for line in chain([first], lines):
        sign, fields = line[:1], line[2:].split()
        try:
            if sign == b"a":
                sizes.append(_number(fields[0]))
            elif sign == b"+":
                kind, born = _number(fields[0]), born + 1
                history.allocate(born, sizes[kind])
                live.setdefault(kind, []).append(born)
            elif sign == b"-":
                history.release(live[_number(fields[0])].pop())
            elif sign == b"c":
                history.now_ns = min(_number(fields[0]), _LATEST_MS) * 10**6
        except (ValueError, LookupError):
            history.skipped += 1
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
