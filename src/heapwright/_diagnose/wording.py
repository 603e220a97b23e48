"""Words next to a number, and the quantity of a heap that they name: free, largest free block, minimum-ever free, ...

The words are those of the heaps' own functions (`xPortGetFreeHeapSize`, `heap_caps_get_largest_free_block`,
`ESP.getMaxAllocHeap`, `fordblks`, `max_allocated_bytes`) and of people who print them under names of their own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, get_args

Quantity = Literal["free", "largest", "minimum", "used", "peak", "total", "failed"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
"""Bytes free now, largest free block, least free ever, used now, most used ever, size of the heap; failed requests."""

BARE: Literal["bare"] = "bare"
"""A number next to "heap" or "memory" alone: free memory, unless the line names that by another word."""
BARE_LARGEST: Literal["max"] = "max"
"""A number next to "max" alone: the largest free block in a line with free memory, the peak in one with used memory."""
BARE_MINIMUM: Literal["min"] = "min"

Named = Literal["free", "largest", "minimum", "used", "peak", "total", "failed", "bare", "max", "min"]

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")

_NO_BYTES = frozenset(
    re.split(
        r"\s+",
        "blocks chunks objects count num number nr allocs allocations frees fragments threads tasks thread task stack "
        "stacks flash sectors files clients sockets connections queue percent frag fragmentation freed freeing "
        "smallest cpu disk entries regions nodes nused nfree ordblks smblks hblks hblkhd fsmblks keepcost hwm rssi "
        "version pid psize idle released successful speed rate freq freertos app caps partition",
    )
)
"""Words of numbers that are no bytes of a heap."""

_LARGEST = re.compile(
    r"largest|biggest|contiguous|lfb$|lfb(?:size)?$|max(?:imum)?(?:int|internal|ext|psram|avail|available|alloc|malloc|mem"
    r"|memory|free|heap|contig)*(?:block|blk)|max(?:imum)?(?:alloc|malloc)(?:heap|able|size|psram)?(?:bytes|size)?$"
    r"|max(?:imum)?free(?:heap|block|bytes|size|sz)*$|maxavail|(?:block|blk)max$"
)
_MINIMUM = re.compile(
    r"min(?:imum)?(?:ever)?(?:free|heap|avail|internal|psram|mem|int|ever|remaining|size)|lowest|lowwater|everfree"
    r"|freemin|heapmin|min(?:imum)?$"
)
_PEAK = re.compile(
    r"(?:max|maximum|peak|highest|most|high)(?:mem|memory|heap|bytes|total)?(?:used|alloc|allocated|use|usage|inuse|size)"
    r"(?:bytes|memory|mem|heap|size|space)?$|highwater|usmblks|watermark|peak"
)
_FREE = re.compile(r"free|fordblks|avail|unused|remaining|noninuse|notinuse")
_USED = re.compile(
    r"used|inuse|alloced|allocated|occupied|uordblks|usage|curalloc|currentuse|consumed|^currentheap(?:size)?$|^currentsize$"
    r"|^heapcurrent$|^vm(?:rss|data|size)$|^rss(?:ki?b?)?$"
)
_TOTAL = re.compile(
    r"total|heapsize|capacity|^arena(?:\d*)$|arenabytes|systembytes|pool[a-z]*size$|memsize|reservedsize|^reserved$"
    r"|heapreserved|totalheap|psramsize|sizeofheap|^len$|heaplen"
)
_HEAP = frozenset(("heap", "mem", "memory", "ram", "freeram", "sram"))

TIME_UNITS = {
    "seconds": 1.0,
    "second": 1.0,
    "secs": 1.0,
    "sec": 1.0,
    "s": 1.0,
    "uptime": 1.0,
    "t": 1.0,
    "ms": 1e-3,
    "millis": 1e-3,
    "milliseconds": 1e-3,
    "msec": 1e-3,
    "us": 1e-6,
    "micros": 1e-6,
    "microseconds": 1e-6,
    "min": 60.0,
    "mins": 60.0,
    "minutes": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
    "hour": 3600.0,
    "hrs": 3600.0,
    "days": 86400.0,
    "day": 86400.0,
    "d": 86400.0,
}
"""Seconds of each unit, by the words that people write."""

_TIME = frozenset(
    ("time", "timestamp", "ts", "uptime", "elapsed", "runtime", "tick", "ticks", "date", "datetime", "etime")
)

COUNTED = ("packets", "pbufs", "mbufs", "elements")
"""What pools hold, by the words of their counters, which are then no bytes."""

_EXTERNAL = ("psram", "spiram", "spi", "ps", "external", "ext", "sdram", "hyperram")
_INTERNAL = ("internal", "int", "intern", "ih")
_NAMED = dict.fromkeys(_EXTERNAL, "PSRAM") | dict.fromkeys(_INTERNAL, "Internal") | {name: name for name in COUNTED}
_NAMED |= {name: name.upper() for name in ("iram", "dram", "dma", "ccm", "dtcm", "itcm", "ocram", "tcm", "rtc")}
_OF_PROCESS = re.compile(r"\bVm(?:Peak|Size|Lck|Pin|Data|Stk|Exe|Lib|PTE|Swap)\b")
"""Fields of /proc/PID/status that count another thing than VmRSS and its peak, VmHWM, do."""

_KNOWN_WORDS = 4096
"""Texts whose meaning is kept: the lines of a log have the same words."""


def words_of(text: str) -> list[str]:
    """The words in a name, in lower case: xSizeOfLargestFreeBlock, min_free and "min free" are made of words."""
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(_KNOWN_WORDS)
def quantity_of(text: str) -> Named | None:
    """Quantity of a number with these words; None if it is no bytes of a heap."""
    words = words_of(text)
    joined = "".join(words)
    if not words:
        return None
    if (
        joined != "maxalloc"
        and _LARGEST.search(joined)
        and not re.search(r"allocated|smallest|largestalloc|used|fail", joined)
    ):
        return "largest"
    if _NO_BYTES & set(words) or "stack" in joined or joined == "totalalloc":
        return None
    if "fail" in joined or re.search(r"err(?:or)?s?$", joined):
        return "failed" if re.search(r"(?:fail(?:ed|s|ures?)?|err(?:or)?s?|count)$", joined) else None
    return _bytes_of(words, joined)


def _bytes_of(words: list[str], joined: str) -> Named | None:
    if words in (["max"], ["maximum"], ["max", "alloc"], ["maxalloc"], ["maximum", "alloc"]):
        return BARE_LARGEST
    if words in (["min"], ["minimum"], ["watermark"]):
        return BARE_MINIMUM
    if _MINIMUM.search(joined) and not _USED.search(joined):
        return "minimum"
    if words in (["left"], ["fh"]):
        return "free"
    patterns: tuple[tuple[Named, re.Pattern[str]], ...] = (
        ("peak", _PEAK),
        ("free", _FREE),
        ("used", _USED),
        ("total", _TOTAL),
    )
    for name, pattern in patterns:
        if pattern.search(joined):
            return name
    return BARE if set(words) & _HEAP and len(words) <= 2 else None


@lru_cache(_KNOWN_WORDS)
def memory_of(text: str) -> str:
    """The memory that these words name; empty if they name none."""
    result = ""
    if process := _OF_PROCESS.search(text):
        return process[0]
    for word in words_of(text):
        result = "PSRAM" if "psram" in word or "spiram" in word else _NAMED.get(word, result)
    return result


def time_unit_of(text: str) -> float | None:
    """Seconds of one unit of a column of times; 0 if the unit is not known; None if these words name no time."""
    words = words_of(text)
    units = [TIME_UNITS[word] for word in words if word in TIME_UNITS and word not in {"uptime", "t"}]
    if set(words) <= {*TIME_UNITS, *_TIME, "since", "boot", "in"} and words:
        return units[-1] if units else 1.0 if "uptime" in words or words == ["t"] else 0.0
    if words[:1] and words[0] in _TIME and units:
        return units[-1]
    return None
