"""Words next to numbers: the names that heaps and people use name the right quantity, and others name none."""

from __future__ import annotations

import pytest

from heapwright._diagnose.wording import memory_of, quantity_of, time_unit_of

NAMES = {
    "free": [
        "xAvailableHeapSpaceInBytes",
        "ESP.getFreeHeap()",
        "mem_free",
        "fordblks",
        "Total non-inuse space",
        "left",
    ],
    "largest": [
        "xSizeOfLargestFreeBlockInBytes",
        "largest_free_block",
        "ESP.getMaxAllocHeap()",
        "MaxIntBlk",
        "hcglfb",
        "maxfree",
        "biggest free",
        "max memory block",
        "Largest non-inuse chunk",
    ],
    "minimum": [
        "xMinimumEverFreeBytesRemaining",
        "min_free",
        "ESP.getMinFreeHeap()",
        "lowest free",
        "Minimum heap size",
    ],
    "used": ["allocated", "uordblks", "in use bytes", "Total allocated space", "cur_alloc", "current use"],
    "peak": ["max. allocated", "maxused", "usmblks", "high watermark", "max_allocated_bytes"],
    "total": ["arena", "Total heap size", "system bytes", "heap_size", "MemTotal"],
    "failed": ["alloc_fail_cnt failures", "err", "malloc failed"],
    "bare": ["heap", "Heap status"],
}
NO_BYTES = [
    "xSizeOfSmallestFreeBlockInBytes",
    "xNumberOfFreeBlocks",
    "xNumberOfSuccessfulFrees",
    "free_blocks",
    "nused",
    "freestack",
    "flash free",
    "biggest_fail_size",
    "running threads",
    "rssi",
    "",
]


@pytest.mark.parametrize(("quantity", "name"), [(key, name) for key, names in NAMES.items() for name in names])
def test_a_name_names_its_quantity(quantity: str, name: str) -> None:
    assert quantity_of(name) == quantity


@pytest.mark.parametrize("name", NO_BYTES)
def test_a_name_of_no_bytes_of_a_heap_names_none(name: str) -> None:
    assert quantity_of(name) is None


def test_memories_are_named_by_words() -> None:
    names = {"ps_free": "PSRAM", "Free internal": "Internal", "DTCM": "DTCM", "spiram_largest": "PSRAM", "free": ""}
    assert {name: memory_of(name) for name in names} == names


def test_columns_of_times_have_a_unit() -> None:
    assert [time_unit_of(name) for name in ("seconds", "time_ms", "uptime", "minutes", "time", "free")] == [
        1.0,
        1e-3,
        1.0,
        60.0,
        0.0,
        None,
    ]
