"""ESP-IDF's heap_trace_dump of standalone tracing, as components/heap/heap_trace_standalone.c (5.x) prints it."""

from __future__ import annotations

import re

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source

_RECORD = re.compile(
    rb".*?(\d{1,19}) bytes \(@ (0x[0-9a-f]{1,16})(?:, [^)]*)?\) allocated CPU (\d) ccount 0x[0-9a-f]+ caller (\S+)(.*)"
)


def _read(source: Source) -> LogHistory:
    history = LogHistory(source.folder)
    freed: set[int] = set()
    pointer = 0
    for line in source.lines():
        if line.lstrip().startswith(b"freed by"):
            freed.add(pointer)
        result = _RECORD.fullmatch(line)
        if result is None:
            continue
        size, address, cpu, caller, rest = result.groups()
        pointer = int(address, 16)
        if pointer in freed:
            history.release(pointer)
            freed.discard(pointer)
        history.set_thread(cpu)
        history.set_site(caller.rstrip(b",").decode(errors="replace"))
        history.allocate(pointer, int(size))
        if b"freed by" in rest:
            freed.add(pointer)
    history.set_site("")
    for pointer in sorted(freed):
        history.release(pointer)
    return history


FORMAT = Format(
    "esp-idf",
    lambda start: re.search(rb"\d+ bytes \(@ 0x[0-9a-f]+(?:, [^)]*)?\) allocated CPU", start) is not None,
    _read,
    (
        "when a block was freed is not told: its free stands where the address is given out again, or at the end",
        "no times",
    ),
    allocator="tlsf",  # since ESP-IDF 4.3
)
