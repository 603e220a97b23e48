"""Counters that a library prints in a form of its own, on several lines or with words that mean something else there.

The block of a generated heap, ESP-IDF's heap_caps_print_heap_info, lwIP's stats_display (where `avail` is what there
is, not what is free), Mbed TLS's memory_buffer_alloc status, glibc's malloc_stats and malloc_info, the rows of
ms_print, Linux's free pages by size, and the table of `free`. All others are read by their words (`readings`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from heapwright._diagnose.moments import Clock, without_time
from heapwright._diagnose.readings import Failure, Readings
from heapwright._diagnose.wording import TIME_UNITS, Quantity
from heapwright._replay.usage import text_blocks

ELEMENTS = "elements"
_MIB = 1 << 20
_LEAST_KIB = 30_000
"""A smaller total of `free` is one in MiB: no Linux has less than 30 MB, and few devices more than 30 GB."""

_CAPABILITIES = re.compile(r"Heap summary for capabilities (0x[0-9A-Fa-f]+)")
_REGION = re.compile(r"At (0x[0-9a-f]+) len (\d+) free (\d+) allocated (\d+) min_free (\d+)")
_OF_REGION = re.compile(r"largest_free_block (\d+) alloc_blocks \d+ free_blocks (\d+)")
_TOTALS = re.compile(r"free (\d+) allocated (\d+) min_free (\d+) largest_free_block (\d+)")
_MBEDTLS = re.compile(r"Current use: (\d+) blocks / (\d+) bytes, max: (\d+) blocks / (\d+) bytes \(total (\d+) bytes\)")
_MBEDTLS_INIT = re.compile(r"memory_buffer_alloc_init\D.*?\blen\w*\W{1,3}(\d+)")
_MASSIF = re.compile(r"\s*\d+\s+([\d,]+)\s+([\d,]+)\s+[\d,]+\s+[\d,]+\s+[\d,]+\s*$")
_MASSIF_HEAD = re.compile(r"\s*n\s+time\((\w+)\)\s+total\(B\)")
_PAGES = re.compile(r"(\w+): ((?:\d+\*\d+kB (?:\(\w*\) )?)+)= (\d+)kB")
_OF_PAGES = re.compile(r"(\d+)\*(\d+)kB")
_PAGE_WATERMARKS = re.compile(r"\bfree:\d+(?:kB min:\d+kB low:)?|\bactive_anon:")
_ORDER = re.compile(r"page allocation failure[:.] order:(\d+)")
_PAGE = 4096
_FREE_HEAD = re.compile(r"\s*total\s+used\s+free\s+shared\s+buff/cache\s+available\s*$")
_FREE_ROW = re.compile(r"\s*Mem:\s+(\d+)\s+\d+\s+\d+\s+\d+\s+\d+\s+(\d+)\s*$")
_LWIP = re.compile(r"\s*(MEM(?:P)? [A-Z][\w/ ]*?|MEM)\s*$")
_OF_LWIP = re.compile(r"\s*(avail|used|max|err|illegal): (\d+)\s*$")
_ARENA = re.compile(r"(Arena \d+|Total \(incl\. mmap\)):")
_OF_ARENA = re.compile(r"(system|in use) bytes\s*=\s*(\d+)")
_XML = re.compile(r'<heap nr="(\d+)">|<(/heap|total|system|size|unsorted)\b([^>]*)>')
_ATTRIBUTE = re.compile(r'(\w+)="(\w+)"')

_EXTERNAL = range(0x3F800000, 0x3FC00000)
"""Addresses of PSRAM on ESP32; on later chips only its size shows it."""
_LARGEST_INTERNAL = 1 << 20
"""Bytes: no region of internal RAM is as large."""


def take_counters(lines: list[str], result: Readings) -> list[str]:
    """Add the counters of such forms to the readings; return the lines, those that were read emptied."""
    remaining = lines
    for take in (
        _take_blocks,
        _take_caps,
        _take_mbedtls,
        _take_lwip,
        _take_malloc_stats,
        _take_malloc_info,
        _take_massif,
        _take_pages,
        _take_free,
    ):
        remaining = take(remaining, result)
    return remaining


def _take_blocks(lines: list[str], result: Readings) -> list[str]:
    """The block of a generated heap as hexadecimal digits: its arena, the most that was used of it, failed requests."""
    remaining = list(lines)
    for block in text_blocks("\n".join(lines)):
        usage, at = block.usage, block.line - 1
        _put(result, "", block.line, "total", usage.arena)
        _put(result, "", block.line, "peak", usage.peak)
        _put(result, "", block.line, "failed", usage.refused)
        if usage.largest_refused:
            result.failures.append(Failure(block.line, usage.largest_refused, ""))
        remaining[at : at + block.lines] = [""] * block.lines
    return remaining


def _take_caps(lines: list[str], result: Readings) -> list[str]:
    """heap_caps_print_heap_info: each region is a heap of its own; those of internal RAM, and of PSRAM, are added up.

    Of the regions that with most free bytes is kept, too: a request is served by one region, so it is the free memory
    of that region that can be compared with its largest free block.
    """
    remaining = list(lines)
    regions: list[_Region] = []
    for at, line in enumerate(lines):
        if match := _REGION.search(line):
            regions.append(_Region(at + 1, match[1], *(int(match[place]) for place in range(2, 6))))
        elif (match := _OF_REGION.search(line)) and regions:
            regions[-1] = regions[-1]._replace(largest=int(match[1]))
        elif _CAPABILITIES.search(line):
            _put_regions(result, regions)
            regions = []
        elif (match := _TOTALS.search(line)) and not regions:
            names: tuple[Quantity, ...] = ("free", "used", "minimum", "largest")
            for place, quantity in enumerate(names, 1):
                _put(result, "", at + 1, quantity, int(match[place]))
        elif not _TOTALS.search(line):
            continue
        remaining[at] = ""
    _put_regions(result, regions)
    return remaining


class _Region(NamedTuple):
    line: int
    address: str
    size: int
    free: int
    used: int
    least: int
    largest: int = 0

    @property
    def memory(self) -> str:
        return "PSRAM" if self.size >= _LARGEST_INTERNAL or int(self.address, 16) in _EXTERNAL else "Internal"


def _put_regions(result: Readings, regions: list[_Region]) -> None:
    for memory in ("Internal", "PSRAM"):
        mine = [item for item in regions if item.memory == memory]
        if not mine:
            continue
        best = max(mine, key=lambda item: item.free)
        for name, items in ((memory, mine), (f"region {best.address}", [best])):
            _put(result, name, mine[0].line, "total", sum(item.size for item in items))
            _put(result, name, mine[0].line, "free", sum(item.free for item in items))
            _put(result, name, mine[0].line, "used", sum(item.used for item in items))
            _put(result, name, mine[0].line, "minimum", sum(item.least for item in items))
            _put(result, name, mine[0].line, "largest", max(item.largest for item in items))


def _take_mbedtls(lines: list[str], result: Readings) -> list[str]:
    remaining, size = list(lines), 0
    for at, line in enumerate(lines):
        if match := _MBEDTLS.search(line):
            used, peak, whole = int(match[2]), int(match[4]), int(match[5])
            # "total" is the most that blocks and their headers took, not the size of the buffer
            _put(result, "Mbed TLS buffer", at + 1, "used", used)
            _put(result, "Mbed TLS buffer", at + 1, "peak", max(peak, whole))
            if size:
                _put(result, "Mbed TLS buffer", at + 1, "total", size)
            remaining[at] = ""
        elif match := _MBEDTLS_INIT.search(line):
            size = int(match[1])
            remaining[at] = ""
    return remaining


def _take_lwip(lines: list[str], result: Readings) -> list[str]:
    """lwIP's stats_display: HEAP counts bytes, pools count elements."""
    memory, remaining = "", list(lines)
    meaning: dict[str, Quantity] = {"avail": "total", "used": "used", "max": "peak", "err": "failed"}
    for at, line in enumerate(lines):
        if match := _LWIP.match(line):
            memory = f"lwIP {match[1]}"
            remaining[at] = ""
        elif memory and (match := _OF_LWIP.match(line)):
            if match[1] in meaning:
                _put(result, memory, at + 1, meaning[match[1]], int(match[2]))
                if "HEAP" not in memory:
                    result.units[memory] = ELEMENTS
            remaining[at] = ""
        elif line.strip():
            memory = ""
    return remaining


def _take_malloc_stats(lines: list[str], result: Readings) -> list[str]:
    memory, remaining = "", list(lines)
    for at, line in enumerate(lines):
        if match := _ARENA.match(line.strip()):
            memory = match[1]
        elif memory and (match := _OF_ARENA.search(line)):
            name = "all arenas" if memory.startswith("Total") else memory
            _put(result, name, at + 1, "total" if match[1] == "system" else "used", int(match[2]))
        else:
            continue
        remaining[at] = ""
    return remaining


@dataclass
class _ArenaXml:
    """The numbers of one `<heap>` of malloc_info, in bytes."""

    memory: str
    free: int = 0
    largest: int = 0
    system: int = 0

    def take(self, element: str, attributes: dict[str, str]) -> None:
        """Read one element below it."""
        number = {key: int(value) for key, value in attributes.items() if value.isdecimal()}
        if element in ("size", "unsorted") and attributes.get("count", "0") != "0":
            self.largest = max(self.largest, number.get("to", 0))
        elif element == "total":
            self.free += number.get("size", 0)
        elif element == "system" and attributes.get("type") == "current":
            self.system = number.get("size", 0)

    @property
    def values(self) -> dict[Quantity, int]:
        """Its counters."""
        values: dict[Quantity, int] = {"free": self.free, "total": self.system, "used": self.system - self.free}
        return {**values, "largest": self.largest} if self.largest else values


def _take_malloc_info(lines: list[str], result: Readings) -> list[str]:
    """glibc's malloc_info: XML, of which each heap is an arena."""
    if not any(line.lstrip().startswith("<malloc") for line in lines):
        return lines
    remaining, arena = list(lines), _ArenaXml("")
    for at, line in enumerate(lines):
        for match in _XML.finditer(line):
            remaining[at] = ""
            if match[1] is not None:
                arena = _ArenaXml(f"Arena {match[1]}")
            elif match[2] != "/heap":
                arena.take(match[2], dict(_ATTRIBUTE.findall(match[3] or "")))
            elif arena.memory:
                for quantity, value in arena.values.items():
                    _put(result, arena.memory, at + 1, quantity, value)
                arena = _ArenaXml("")
    return remaining


def _take_massif(lines: list[str], result: Readings) -> list[str]:
    """The snapshots that ms_print lists: time, and bytes with headers."""
    remaining, unit = list(lines), ""
    for at, line in enumerate(lines):
        if match := _MASSIF_HEAD.match(line):
            unit = match[1]
        elif unit and (match := _MASSIF.match(line)):
            seconds = int(match[1].replace(",", "")) * TIME_UNITS[unit] if unit in ("ms", "s") else None
            result.add("", at + 1, seconds, "used", int(match[2].replace(",", "")))
        else:
            continue
        remaining[at] = ""
    return remaining


def _take_pages(lines: list[str], result: Readings) -> list[str]:
    """Linux's report of a failed allocation of pages: how many of each size are free in a zone, and the order asked."""
    if not any(_PAGES.search(line) for line in lines):
        return lines
    remaining = list(lines)
    for at, line in enumerate(lines):
        if match := _PAGES.search(line):
            sizes = [int(size) << 10 for count, size in _OF_PAGES.findall(match[2]) if int(count)]
            _put(result, f"zone {match[1]}", at + 1, "free", int(match[3]) << 10)
            _put(result, f"zone {match[1]}", at + 1, "largest", max(sizes, default=0))
        elif match := _ORDER.search(line):
            result.failures.append(Failure(at + 1, _PAGE << int(match[1]), ""))
        elif not _PAGE_WATERMARKS.search(line):
            continue
        remaining[at] = ""
    return remaining


def _take_free(lines: list[str], result: Readings) -> list[str]:
    """The table of `free`, in KiB, with -m in MiB: what is available counts as free, caches are given back."""
    remaining, inside = list(lines), False
    clock = Clock()
    for at, line in enumerate(lines):
        if _FREE_HEAD.match(line):
            inside = True
        elif inside and (match := _FREE_ROW.match(line)):
            scale = _MIB if int(match[1]) < _LEAST_KIB else 1 << 10
            seconds = clock.of_line(None, is_alone=False)
            result.add("", at + 1, seconds, "total", int(match[1]) * scale)
            result.add("", at + 1, seconds, "free", int(match[2]) * scale)
        elif not line.startswith("Swap:"):
            text, time = without_time(line)
            clock.of_line(time, is_alone=not text.strip())
            continue
        remaining[at] = ""
    return remaining if inside else lines


def _put(result: Readings, memory: str, line: int, quantity: Quantity, value: int) -> None:
    result.add(memory, line, None, quantity, value)
