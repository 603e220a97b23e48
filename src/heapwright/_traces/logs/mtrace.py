"""glibc's mtrace(3), as malloc/mtrace-impl.c (2.36) prints it."""

from __future__ import annotations

import re

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_CALL = re.compile(rb"(?:@ (.*?) )?([-+<>!]) (0x[0-9a-f]{1,16}|\(nil\))(?: (0x[0-9a-f]{1,16}|0))?")


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    old: int | None = None
    for line in source.lines():
        result = _CALL.fullmatch(line)
        if result is None:
            history.skipped += line not in (b"= Start", b"= End")
            continue
        site, sign, address, info = result.groups()
        pointer, size = 0 if address == b"(nil)" else int(address, 16), int(info or b"0", 16)
        history.set_site((site or b"").decode(errors="replace"))
        if sign == b"+":
            history.allocate(pointer, size)
        elif sign == b"-":
            history.release(pointer)
        elif sign == b"<":
            old = pointer
        elif sign == b">" and old is not None:
            history.resize(old, pointer, size)
            old = None
        elif sign == b"!":
            history.fail(size)
    return history


FORMAT = Format(
    "mtrace",
    lambda start: start.startswith(b"= Start\n"),
    _read,
    ("no times", "no threads", "calloc and aligned calls are logged as malloc"),
)
