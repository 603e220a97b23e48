"""Readings: numbers of lines in many wordings, of tables, CSV and JSON, with their times and memories."""

from __future__ import annotations

import pytest

from heapwright._diagnose.readings import Readings, readings_of

LINES: dict[str, dict[str, dict[str, float]]] = {
    "INFO | Heap: 118432/294912 bytes free (-2144 since last), min 96204, largest block 65524": {
        "heap": {"free": 118432, "total": 294912, "minimum": 96204, "largest": 65524}
    },
    "DEBUG | ??:??:?? 62 [Power] Heap status: 120348/205776 bytes free (-40), running 11/24 threads": {
        "heap": {"free": 120348, "total": 205776}
    },
    "[MEM] free: 269896 | max: 45044 | frag: 84%": {"heap": {"free": 269896, "largest": 45044}},
    "22:35:59.233 -> frag:   1% (freeheap: 53464 - maxblock=53456) <- start": {
        "heap": {"free": 53464, "largest": 53456}
    },
    "--- Free heap: 123456 --- max memory block:  65524 ---": {"heap": {"free": 123456, "largest": 65524}},
    "2026-02-28 13:01:46,386 # heap: 93188 (used 2500, free 90688) [bytes]": {
        "heap": {"total": 93188, "used": 2500, "free": 90688}
    },
    "[Info]  (43.510, +5)     lv_malloc: used: 82808 ( 92 %), frag:   1 %, biggest free: 8064": {
        "heap": {"used": 82808, "total": 90009, "largest": 8064}
    },
    "HEAP: heap_size 28432 cur_alloc 336 max_alloc 784 fail 0": {
        "heap": {"total": 28432, "used": 336, "peak": 784, "failed": 0}
    },
    "total_size = 32760 | free_size = 1772 | allocated_size = 30936 | nb_chunks = 354": {
        "heap": {"total": 32760, "free": 1772, "used": 30936}
    },
    "Heap: 185 malloc(s) (0 failed), total 19828, alloced 13699 (high watermark 13700), left 6129 (at main.cpp:263).": {
        "heap": {"failed": 0, "total": 19828, "used": 13699, "peak": 13700, "free": 6129}
    },
    "<- AK 39b Q=1352 hcgfs=7860 XB=67356 hcglfb=1536": {"heap": {"largest": 1536}},
    'x {"uptime_ms":1000,"heap":{"free":1234,"largest":1000},"psram":{"free":4000000}}': {
        "heap": {"free": 1234, "largest": 1000},
        "PSRAM": {"free": 4000000},
    },
    "I (2515) app: Free heap 12345, internal 2345, PSRAM free 400000": {
        "heap": {"free": 12345},
        "Internal": {"free": 2345},
        "PSRAM": {"free": 400000},
    },
    "GC: total: 26262400, used: 20026240, free: 6236160": {
        "heap": {"total": 26262400, "used": 20026240, "free": 6236160}
    },
    "  - Allocated (Current / Peak)  : 44256 (4%) / 48624 (5%)": {"heap": {"used": 44256, "peak": 48624}},
    "  - Free (Current)              : 916032 (95%)": {"heap": {"free": 916032}},
    "Free Heap Size: 10.5KB": {"heap": {"free": 10752}},
    "MemFree:          152752 kB": {"heap": {"free": 152752 * 1024}},
    "version 1.2.3 of 17 tasks, 3 retries": {},
    "connected to 192.168.4.2 in 321 ms, rssi -61": {},
}


def told(result: Readings) -> dict[str, dict[str, float]]:
    return {
        memory: {str(key): value for key, value in series[-1].values.items()}
        for memory, series in result.memories.items()
    }


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_by_its_words(line: str) -> None:
    assert told(readings_of([line])) == LINES[line]


def test_lines_with_one_number_each_are_one_reading() -> None:
    lines = ["Free heap size: 9520", "Total heap size: 155808", "Minimum heap size: 3376", "Maximum heap block: 9480"]
    result = readings_of(lines * 2)
    assert len(result.memories["heap"]) == 2
    assert told(result) == {"heap": {"free": 9520, "total": 155808, "minimum": 3376, "largest": 9480}}


def test_csv_has_times_of_its_column() -> None:
    result = readings_of(["time_ms,free_internal,free_psram", "0,100,5000", "60000,90,4000"])
    assert told(result) == {"Internal": {"free": 90}, "PSRAM": {"free": 4000}}
    assert [item.seconds for item in result.memories["Internal"]] == [0.0, 60.0]


def test_a_table_of_markdown_has_times_with_units() -> None:
    lines = [
        "| uptime | free heap | largest block |",
        "|---|---|---|",
        "| 10 s | 48500 | 40960 |",
        "| 1 min | 28492 | 26624 |",
    ]
    series = readings_of(lines).memories["heap"]
    assert [(item.seconds, item.values["largest"]) for item in series] == [(10.0, 40960.0), (60.0, 26624.0)]


@pytest.mark.parametrize(
    ("head", "row", "name"),
    [
        (
            "      total       used       free    maxused    maxfree  nused  nfree name",
            "9000 2000 7000 2500 6000 30 2 Umem",
            "Umem",
        ),
        (
            "             total       used       free    largest  nused  nfree",
            "        Umem:      9000    2000     7000   6000    155      0",
            "Umem",
        ),
    ],
)
def test_the_table_of_nuttx_is_read_with_its_name(head: str, row: str, name: str) -> None:
    values = told(readings_of(["nsh> free", head, row]))[name]
    assert {key: values[key] for key in ("total", "used", "free", "largest")} == {
        "total": 9000,
        "used": 2000,
        "free": 7000,
        "largest": 6000,
    }


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("[00:00:10.000,000] <inf> app: free 10", "[00:01:10.500,000] <inf> app: free 9", 60.5),
        ("I (2000) app: free 10", "I (62000) app: free 9", 60.0),
        ("23:59:30 free 10", "00:00:30 free 9", 60.0),
        ("[   10.5] free 10", "[   70.5] free 9", 60.0),
        ("uptime: 60 free: 10", "uptime: 120 free: 9", 60.0),
        ("free 10 after 1 h", "free 9 after 2 h", 3600.0),
        ("2026-01-01 23:59:30 free 10", "2026-01-02 00:00:30 free 9", 60.0),
    ],
)
def test_times_of_consoles_and_logs_are_read(first: str, second: str, seconds: float) -> None:
    before, after = readings_of([first, second]).memories["heap"]
    assert before.seconds is not None
    assert after.seconds is not None
    assert after.seconds - before.seconds == pytest.approx(seconds)
    assert [before.values, after.values] == [{"free": 10.0}, {"free": 9.0}]


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("Failed to allocate memory, size: 16717 bytes, caps: 0x0804, func: heap_caps_malloc", 16717),
        ("lv_malloc: couldn't allocate memory (283911 bytes)", 283911),
        ("MemoryError: memory allocation failed, allocating 582 bytes", 582),
        ("heap_caps_malloc was called but failed to allocate 1604 bytes with 0x80C capabilities.", 1604),
        ("malloc of 4096 failed", 4096),
    ],
)
def test_a_request_that_failed_is_read(line: str, size: int) -> None:
    result = readings_of([line])
    assert [item.size for item in result.failures] == [size]
    assert not result.memories


def test_a_line_about_a_failure_may_have_what_was_free() -> None:
    result = readings_of(["W (65250911) wifi:alloc eb len=76 type=2 fail, heap:2872652"])
    assert [item.size for item in result.failures] == [76]
    assert result.memories["heap"][0].values == {"free": 2872652}


def test_a_line_about_something_else_that_failed_is_no_request() -> None:
    assert readings_of(["connect failed: -1", "error 9: bad file number"]).failures == []


def test_each_number_that_only_heap_names_is_free_memory() -> None:
    readings = readings_of([f"{at} s: heap {30_000 - 100 * at}" for at in range(20)]).memories["heap"]
    assert [dict(item.values) for item in readings] == [{"free": 30_000 - 100 * at} for at in range(20)]
