"""Logs of heap calls that other tools write become traces: one importer a file."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from heapwright.errors import HeapwrightError, ParameterError
from heapwright.traces.logs import (
    board,
    bytehound,
    esp_idf,
    heaptrack,
    kmem,
    ltrace,
    lttng,
    malloclab,
    mtrace,
    nuttx,
    rmm,
    text,
    valgrind,
)
from heapwright.traces.logs.formats import Format
from heapwright.traces.logs.source import Source
from heapwright.traces.trace import Trace

_ALL = (text, board, valgrind, mtrace, heaptrack, malloclab, rmm, kmem, lttng, esp_idf, nuttx, ltrace, bytehound)

FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in _ALL}
"""In the order in which a file is compared with them: what is told by more comes before what is told by less."""

_START = 1 << 16

_AGGREGATED = {
    "DHAT": re.compile(rb'\s*\{\s*"dhatFileVersion"'),
    "massif": re.compile(rb"desc: .*\ncmd: .*\ntime_unit: "),
    "jemalloc's heap profile": re.compile(rb"heap_v2/"),
    "memray": re.compile(rb"memray"),
    "MALT": re.compile(rb'\s*\{\s*"run"\s*:'),
}


def import_log(path: str | os.PathLike[str], format_name: str | None = None) -> Trace:
    """Read a log of heap calls.

    The trace's `repairs` say what was left out or put in, its metadata in "caveats" what the log cannot tell, one a
    line. Addresses become objects as the log goes on, in O(1) a call.

    Args:
        path: the log; it may be compressed by gzip, xz or zstd.
        format_name: one of FORMATS, None to find it by the file's first bytes.

    Raises:
        HeapwrightError: the format is not known, single calls are gone from it, or it has none.
    """
    path = Path(path)
    if format_name is not None and format_name not in FORMATS:
        raise ParameterError(f"{format_name!r} is no format of logs; valid: {', '.join(FORMATS)}", parameter="format")
    found = FORMATS[format_name] if format_name else log_format(path)
    if found is None:
        raise HeapwrightError(f"{path}: no log of heap calls; formats: {', '.join(FORMATS)}", parameter="format")
    source = Source(path)
    history = found.read(source)
    if not len(history):
        raise HeapwrightError(f"{path}: no call that its format has")
    caveats = "\n".join((*found.loses, *history.caveats))
    metadata = {"recorder": found.name} | ({"caveats": caveats} if caveats else {})
    trace = history.trace(path.name.partition(".")[0] or path.name, metadata)
    cut = [f"the log is cut, and what is sound was read: {source.cut}"] if source.cut else []
    return replace(trace, repairs=(*cut, *history.notes, *trace.repairs))


def log_format(path: str | os.PathLike[str]) -> Format | None:
    """The format of a log, by its first bytes; None where it is none of FORMATS.

    Raises HeapwrightError for formats of which it is known that they hold no single calls.
    """
    path = Path(path)
    start = Source(path).start(_START)
    for name, pattern in _AGGREGATED.items():
        if pattern.match(start):
            raise HeapwrightError(
                f"{path}: {name} sums calls up, and a trace needs each; record the program, or log its calls"
            )
    return next((one for one in FORMATS.values() if one.matches(start)), None)
