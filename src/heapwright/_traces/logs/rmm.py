"""RAPIDS rmm's CSV, `Thread,Time,Action,Pointer,Size,Stream`, as its logging_resource_adaptor writes it."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_HEADER = b"Thread,Time,Action,Pointer,Size,Stream"
_CALL = re.compile(
    rb"([^,]*),(\d{1,4}):(\d\d):(\d\d)[:.](\d{1,9}),(allocate|free|allocate failure),"
    rb"(0x[0-9a-fA-F]{1,16}|\(nil\)),(\d{1,19}),.*"
)


_FORMS = [
    Form(
        kind,
        f"{{thread:c}},{{hour}}:{{minute}}:{{second2}}{point}{{fraction}},{action},{{address:X}},{{size:z}},{{any}}",
    )
    for point in (":", ".")
    for kind, action in ((lib.HW_LOG_MALLOC, "allocate"), (lib.HW_LOG_FREE, "free"))
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    ScannedLog(source, lambda line: _read_line(history, line), history).read(lambda: Scanner(_FORMS))
    return history


def _read_line(history: LogHistory, line: bytes) -> None:
    result = _CALL.fullmatch(line)
    if result is None:
        history.skipped += line != _HEADER
        return
    thread, hours, minutes, seconds, part, action, address, size = result.groups()
    history.set_thread(thread)
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    history.now_ns = whole * 10**9 + int((part + b"0" * 9)[:9])
    pointer = 0 if address == b"(nil)" else int(address, 16)
    if action == b"allocate":
        history.allocate(pointer, int(size))
    elif action == b"free":
        history.release(pointer)
    else:
        history.fail(int(size))


FORMAT = Format("rmm", lambda start: start.startswith(_HEADER), _read, ("streams are left out",))
