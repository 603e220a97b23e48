"""Counters that libraries print in forms of their own."""

from __future__ import annotations

import pytest

from heapwright._diagnose.counters import take_counters
from heapwright._diagnose.readings import Readings

CAPS = """Heap summary for capabilities 0x00000004:
  At 0x3ff80518 len 7000 free 144 allocated 5104 min_free 140
    largest_free_block 0 alloc_blocks 35 free_blocks 0 total_blocks 35
  At 0x3ffce4a0 len 73000 free 52436 allocated 18484 min_free 52040
    largest_free_block 32768 alloc_blocks 116 free_blocks 2 total_blocks 118
  At 0x3f804ad4 len 4175147 free 3630180 allocated 543564 min_free 3622888
    largest_free_block 3629584 alloc_blocks 82 free_blocks 11 total_blocks 93
  Totals:
    free 3682760 allocated 567152 min_free 3675068 largest_free_block 3629584
"""
LWIP = """MEM HEAP
	avail: 1600
	used: 1064
	max: 1312
	err: 3

MEM UDP_PCB
	avail: 4
	used: 1
	max: 4
	err: 9
"""
MALLOC_STATS = """Arena 0:
system bytes     =     135168
in use bytes     =       7408
Total (incl. mmap):
system bytes     =     200000
in use bytes     =      90000
max mmap regions =          0
"""
MALLOC_INFO = """<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="96" count="2"/>
  <unsorted from="1000" to="5000" total="6000" count="2"/>
</sizes>
<total type="fast" count="2" size="96"/>
<total type="rest" count="2" size="6000"/>
<system type="current" size="135168"/>
<system type="max" size="150000"/>
</heap>
<total type="fast" count="2" size="96"/>
<system type="current" size="135168"/>
</malloc>
"""
MBEDTLS = (
    "Current use: 33 blocks / 2508 bytes, max: 99 blocks / 5392 bytes (total 8560 bytes), alloc / free: 8803 / 8771\n"
)


def read(text: str) -> tuple[dict[str, dict[str, float]], list[str]]:
    result = Readings()
    remaining = take_counters(text.splitlines(), result)
    values = {
        memory: {str(key): value for key, value in series[-1].values.items()}
        for memory, series in result.memories.items()
    }
    return values, [line for line in remaining if line]


def test_regions_of_esp_idf_are_added_up_by_memory_and_the_freest_is_kept() -> None:
    values, _ = read(CAPS)
    assert values["Internal"] == {"total": 80000, "free": 52580, "used": 23588, "minimum": 52180, "largest": 32768}
    assert values["PSRAM"]["largest"] == 3629584
    assert values["region 0x3ffce4a0"]["free"] == 52436
    assert "region 0x3ff80518" not in values


def test_summaries_follow_each_other_as_readings() -> None:
    result = Readings()
    take_counters((CAPS + CAPS.replace("free 52436", "free 40000")).splitlines(), result)
    assert [item.values["free"] for item in result.memories["Internal"]] == [52580, 40144]


def test_avail_of_lwip_is_the_size_and_pools_count_elements() -> None:
    result = Readings()
    take_counters(LWIP.splitlines(), result)
    assert result.memories["lwIP MEM HEAP"][0].values == {"total": 1600, "used": 1064, "peak": 1312, "failed": 3}
    assert result.units == {"lwIP MEM UDP_PCB": "elements"}


def test_malloc_stats_and_malloc_info_have_a_memory_an_arena() -> None:
    values, remaining = read(MALLOC_STATS)
    assert values == {"Arena 0": {"total": 135168, "used": 7408}, "all arenas": {"total": 200000, "used": 90000}}
    assert remaining == ["max mmap regions =          0"]
    assert read(MALLOC_INFO)[0] == {"Arena 0": {"free": 6096, "total": 135168, "used": 129072, "largest": 5000}}


def test_the_most_that_mbed_tls_took_includes_headers() -> None:
    assert read(MBEDTLS)[0] == {"Mbed TLS buffer": {"used": 2508, "peak": 8560}}


def test_other_lines_are_left_to_others() -> None:
    assert read("free 10\nMEMORY LEAK\n") == ({}, ["free 10", "MEMORY LEAK"])


@pytest.mark.parametrize(("total", "unit"), [(1987, 1 << 20), (2_034_688, 1 << 10)])
def test_free_of_linux_counts_what_is_available_in_kib_or_mib(total: int, unit: int) -> None:
    head = "               total        used        free      shared  buff/cache   available"
    rows = [head, f"Mem:  {total}  {total // 5}  {total // 2}  3  212  {total * 4 // 5}", "Swap:  0  0  0"]
    readings = Readings()
    take_counters(rows, readings)
    assert readings.memories["heap"][0].values == {"total": total * unit, "free": total * 4 // 5 * unit}
