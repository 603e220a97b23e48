"""NuttX's heap notes as ftrace text, as sched_note's noteram driver prints them."""

from __future__ import annotations

import re

from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Heaps
from heapwright._traces.logs.source import Source

_NOTE = re.compile(
    rb"\s{0,40}(\S.{0,60}?)\s{1,40}\[\d{1,5}\]\s{1,40}(\d{1,9})\.(\d{1,9}): tracing_mark_write: "
    rb"C\|\d+\|Heap Usage\|\d+\|(\w+): heap: (\S+) size: ?(\d{1,19}), address: ((?:0x)?[0-9a-f]{1,16})"
)


def _read(source: Source) -> LogHistory:
    heaps = Heaps(source)
    for line in source.lines():
        result = _NOTE.fullmatch(line)
        if result is None:
            continue
        task, seconds, part, action, heap, size, address = result.groups()
        history = heaps.history(heap.decode(errors="replace"))
        history.set_thread(task)
        history.now_ns = int(seconds) * 10**9 + int((part + b"0" * 9)[:9])
        if action == b"free":
            history.release(int(address, 16))
        else:
            history.allocate(int(address, 16), int(size))
    return heaps.chosen()


FORMAT = Format(
    "nuttx",
    lambda start: b"|Heap Usage|" in start,
    _read,
    ("sizes are those of blocks, rounded and with their headers",),
    allocators=((1 << 32, "nuttx-mm"),),
)
