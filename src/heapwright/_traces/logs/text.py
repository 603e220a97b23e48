"""Heapwright's own text, a line a call, that any program, debugger or board can print among other output:

hw+ ADDRESS SIZE [MICROSECONDS [THREAD]]      an object of SIZE bytes now lies there
hw- ADDRESS [MICROSECONDS [THREAD]]           it is freed
hw= OLD ADDRESS SIZE [MICROSECONDS [THREAD]]  it is resized, and may have moved
"""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_ADDRESS = rb" (0x[0-9a-fA-F]{1,16}|0|[1-9]\d{0,19})"
_REST = rb"(?: (\d{1,15}))?(?: (\S+))?\s*$"
_CALL = re.compile(
    rb"hw(?:\+"
    + _ADDRESS
    + rb" (\d{1,19})"
    + _REST
    + rb"|-"
    + _ADDRESS
    + _REST
    + rb"|="
    + _ADDRESS * 2
    + rb" (\d{1,19})"
    + _REST
    + rb")"
)
_START = re.compile(rb"hw[-+=]" + _ADDRESS)


_FORMS = [
    Form(lib.HW_LOG_MALLOC, "{...}hw+ {address:Xd} {size:z}[ {us}][ {thread}]{ }", searched=True),
    Form(lib.HW_LOG_FREE, "{...}hw- {address:Xd}[ {us}][ {thread}]{ }", searched=True),
    Form(lib.HW_LOG_RESIZE, "{...}hw= {old:Xd} {address:Xd} {size:z}[ {us}][ {thread}]{ }", searched=True),
]


def _read(source: Source) -> LogHistory:
    history = source.history()
    ScannedLog(source, lambda line: _read_line(history, line), history).read(lambda: Scanner(_FORMS))
    return history


def _read_line(history: LogHistory, line: bytes) -> None:
    result = _CALL.search(line)
    if result is None:
        history.skipped += _START.search(line) is not None
        return
    given, size, *of_malloc, freed, time_of_free, thread_of_free, old, moved, new_size, time, thread = result.groups()
    if given:
        _set(history, *of_malloc)
        history.allocate(int(given, 0), int(size))
    elif freed:
        _set(history, time_of_free, thread_of_free)
        history.release(int(freed, 0))
    else:
        _set(history, time, thread)
        history.resize(int(old, 0), int(moved, 0), int(new_size))


def _set(history: LogHistory, time: bytes | None, thread: bytes | None) -> None:
    if time is not None:
        history.now_ns = int(time) * 1000
    if thread is not None:
        history.set_thread(thread)


FORMAT = Format("text", lambda start: _START.search(start) is not None, _read)
