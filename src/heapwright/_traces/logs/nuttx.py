"""NuttX's heap notes as ftrace text, as sched_note's noteram driver prints them."""

from __future__ import annotations

import re

from heapwright._native import lib
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Heaps
from heapwright._traces.logs.scanner import Form, Scanner
from heapwright._traces.logs.scanning import ScannedLog
from heapwright._traces.logs.source import Source

_NOTE = re.compile(
    rb"\s{0,40}(\S.{0,60}?)\s{1,40}\[\d{1,5}\]\s{1,40}(\d{1,9})\.(\d{1,9}): tracing_mark_write: "
    rb"C\|\d+\|Heap Usage\|\d+\|(\w+): heap: (\S+) size: ?(\d{1,19}), address: ((?:0x)?[0-9a-f]{1,16})"
)


_FORMS = [
    Form(
        kind,
        "{ 40}{thread}{_40}\\[{cpu}\\]{_40}{second9}.{fraction}: tracing_mark_write: "
        "C|{number:z}|Heap Usage|{number:z}|"
        f"{action}: heap: {{process}} size:[ ]{{size:z}}, address: {{address:xh}}",
    )
    for kind, action in ((lib.HW_LOG_MALLOC, "malloc"), (lib.HW_LOG_FREE, "free"))
]


def _read(source: Source) -> LogHistory:
    heaps = Heaps(source)
    log = ScannedLog(
        source,
        lambda line: _read_line(heaps, line),
        lambda heap: heaps.history(heap.decode(errors="replace")),
    )
    log.read(lambda: Scanner(_FORMS, needles=(b"|Heap Usage|",)))
    return heaps.chosen()


def _read_line(heaps: Heaps, line: bytes) -> None:
    result = _NOTE.fullmatch(line)
    if result is None:
        return
    task, seconds, part, action, heap, size, address = result.groups()
    history = heaps.history(heap.decode(errors="replace"))
    history.set_thread(task)
    history.now_ns = int(seconds) * 10**9 + int((part + b"0" * 9)[:9])
    if action == b"free":
        history.release(int(address, 16))
    else:
        history.allocate(int(address, 16), int(size))


FORMAT = Format(
    "nuttx",
    lambda start: b"|Heap Usage|" in start,
    _read,
    ("sizes are those of blocks, rounded and with their headers",),
    allocators=((1 << 32, "nuttx-mm"),),
)
