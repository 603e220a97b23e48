"""glibc's mtrace(3), as malloc/mtrace-impl.c (2.36) prints it."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_CALL = re.compile(rb"(?:@ (.*?) )?([-+<>!]) (0x[0-9a-f]{1,16}|\(nil\))(?: (0x[0-9a-f]{1,16}|0))?")


_FORMS = [
    Form(kind, f"[@ {{site}} ]{text}", {"site": b""})
    for kind, text in (
        (lib.HW_LOG_MALLOC, "+ {address:x} {size:x}"),
        (lib.HW_LOG_FREE, "- {address:x}"),
        (lib.HW_LOG_OLD, "< {address:x}"),
        (lib.HW_LOG_RESIZE_OLD, "> {address:x} {size:x}"),
    )
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    ScannedLog(source, lambda line: _read_line(history, line), history).read(lambda: Scanner(_FORMS))
    return history


def _read_line(history: LogHistory, line: bytes) -> None:
    result = _CALL.fullmatch(line)
    if result is None:
        history.skipped += line not in (b"= Start", b"= End")
        return
    site, sign, address, info = result.groups()
    pointer, size = 0 if address == b"(nil)" else int(address, 16), int(info or b"0", 16)
    history.set_site((site or b"").decode(errors="replace"))
    if sign == b"+":
        history.allocate(pointer, size)
    elif sign == b"-":
        history.release(pointer)
    elif sign == b"<":
        history.keep_old(pointer)
    elif sign == b">":
        history.resize_old(pointer, size)
    else:
        history.fail(size)


FORMAT = Format(
    "mtrace",
    lambda start: start.startswith(b"= Start\n"),
    _read,
    ("no times", "no threads", "calloc and aligned calls are logged as malloc"),
)
