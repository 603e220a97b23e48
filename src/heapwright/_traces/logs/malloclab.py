"""The .rep files of malloc labs: four numbers, then a line a call, `a ID BYTES`, `r ID BYTES`, `f ID`."""

from __future__ import annotations

import itertools
import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_START = re.compile(rb"(?:\s*\d+\s*\n){4}\s*[arf] \d+")
_CALL = re.compile(rb"([ar]) (\d{1,19}) (\d{1,19})|f (-?\d{1,19})")


_FORMS = [
    Form(lib.HW_LOG_MALLOC, "{ }a {address:z} {size:z}{ }", plus=1),
    Form(lib.HW_LOG_RESIZE_SELF, "{ }r {address:z} {size:z}{ }", plus=1),
    Form(lib.HW_LOG_FREE, "{ }f {address:z}{ }", plus=1),
]


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder, overlap=True)
    rows = itertools.count()
    ScannedLog(source, lambda line: _read_line(history, next(rows), line), history).read(lambda: Scanner(_FORMS))
    return history


def _read_line(history: LogHistory, row: int, line: bytes) -> None:
    result = _CALL.fullmatch(line.strip())
    if result is None:
        history.skipped += row > 3 and bool(line.strip())
    elif result[1] == b"a":
        history.allocate(int(result[2]) + 1, int(result[3]))
    elif result[1] == b"r":
        history.resize(int(result[2]) + 1, int(result[2]) + 1, int(result[3]))
    else:
        history.release(int(result[4]) + 1)


FORMAT = Format("malloclab", lambda start: bool(_START.match(start)), _read, ("no times", "no threads"))
