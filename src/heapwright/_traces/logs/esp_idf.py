"""ESP-IDF's heap_trace_dump of standalone tracing, as components/heap/heap_trace_standalone.c (5.x) prints it.

Xtensa chips print callers, RISC-V chips (C3, C6, H2) none; each record names its memory, Internal or PSRAM.
"""

from __future__ import annotations

import re

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.processes import Heaps
from heapwright._traces.logs.source import Source

_RECORD = re.compile(
    rb".*?(\d{1,19}) bytes \(@ (0x[0-9a-f]{1,16})(?:, ([^)]{1,40}))?\) allocated CPU (\d) ccount 0x[0-9a-f]+"
    rb"(?: caller (\S+))?(.*)"
)
_HEADER = re.compile(rb"=+ Heap Trace: (\d{1,9}) records \((\d{1,9}) capacity")
_SUMMARY = re.compile(rb"(Mode|total allocations|total frees): +(.{1,60})")
_OVERFLOWED = re.compile(rb"(?i)overflowed|entries were (?:lost|discarded)")


class _Dump:
    """What a dump says of itself."""

    def __init__(self) -> None:
        self.expected: int | None = None
        self.mode = b""
        self.totals: dict[bytes, int] = {}
        self.overflowed = self.ended = False
        self.records = 0

    def note(self, line: bytes) -> None:
        """Take a line that is no record."""
        if header := _HEADER.search(line):
            self.expected = (self.expected or 0) + int(header[1])
        elif b"Heap Trace Summary" in line:
            self.ended = True
        elif summary := _SUMMARY.search(line):
            key, value = summary.groups()
            if key == b"Mode":
                self.mode = value.strip()
            elif value.strip().isdigit():
                self.totals[key] = int(value)
        self.overflowed = self.overflowed or _OVERFLOWED.search(line) is not None

    def check(self, source: Source) -> None:
        """Raise HeapwrightError if the dump is no trace: in leaks mode, freed blocks are taken out of it."""
        allocations, frees = self.totals.get(b"total allocations"), self.totals.get(b"total frees", 0)
        if b"Leaks" not in self.mode:
            return
        if allocations is not None and allocations <= self.records and not self.overflowed:
            return
        of = f" of {allocations:,}" if allocations is not None else ""
        unfreed = f" ({allocations - frees:,} not freed)" if allocations is not None else ""
        overflow = ", and its buffer overflowed" if self.overflowed else ""
        raise HeapwrightError(
            f"{source.path}: a dump of leaks mode, not a trace: it holds {self.records:,}{of} allocations{unfreed}"
            f"{overflow}; record with heap_trace_start(HEAP_TRACE_ALL) and a buffer that does not overflow, or run "
            f"heapwright diagnose on the dump"
        )

    def caveats(self) -> list[str]:
        """What the dump lacks, in words."""
        result = []
        if self.overflowed:
            allocations = self.totals.get(b"total allocations")
            of = f": {self.records:,} of {allocations:,} allocations are in it" if allocations is not None else ""
            result.append(f"the buffer of the dump overflowed{of}; make it larger, or trace for a shorter time")
        if self.expected is not None and self.records != self.expected:
            result.append(f"the dump says {self.expected:,} records and has {self.records:,}: it is cut or damaged")
        if not self.ended:
            result.append("the dump has no summary: it is cut")
        return result


def _read(source: Source) -> LogHistory:
    heaps, dump = Heaps(source), _Dump()
    freed: dict[int, LogHistory] = {}
    pointer, history = 0, heaps.history("")
    for line in source.lines():
        if line.lstrip().startswith(b"freed by"):
            freed[pointer] = history
        result = _RECORD.fullmatch(line)
        if result is None:
            dump.note(line)
            continue
        dump.records += 1
        size, address, memory, cpu, caller, rest = result.groups()
        pointer, history = int(address, 16), heaps.history((memory or b"").strip().decode(errors="replace"))
        if pointer in freed:
            freed.pop(pointer).release(pointer)
        history.set_thread(cpu)
        history.set_site((caller or b"").rstrip(b",").decode(errors="replace"))
        history.allocate(pointer, int(size))
        if b"freed" in rest:
            freed[pointer] = history
    for pointer, history in sorted(freed.items(), key=lambda item: item[0]):
        history.set_site("")
        history.release(pointer)
    dump.check(source)
    result_ = heaps.chosen()
    result_.caveats.extend(dump.caveats())
    return result_


FORMAT = Format(
    "esp-idf",
    lambda start: re.search(rb"\d+ bytes \(@ 0x[0-9a-f]+(?:, [^)]*)?\) allocated CPU", start) is not None,
    _read,
    (
        "when a block was freed is not in the dump: its free stands where its address is used again, or at the end",
        "no times",
    ),
    allocators=((1 << 18, "espressif-tlsf"), (1 << 32, "espressif-tlsf-large")),  # since ESP-IDF 4.3
)
