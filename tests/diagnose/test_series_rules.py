"""Rules on readings: each fault has readings that show it, and the nearest readings that do not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from heapwright._diagnose.counters import take_counters
from heapwright._diagnose.model import Finding
from heapwright._diagnose.plain_lines import plain_lines
from heapwright._diagnose.readings import Readings, readings_of
from heapwright._diagnose.series_rules import judge


def judged(lines: Sequence[str]) -> list[Finding]:
    readings = Readings()
    others = readings_of(take_counters(list(lines), readings))
    for memory, series in others.memories.items():
        readings.memories.setdefault(memory, []).extend(series)
    readings.failures += others.failures
    readings.starts += others.starts
    readings.units |= others.units
    return judge(readings)


def kind(lines: Sequence[str]) -> tuple[str, str]:
    first = judged(lines)[0]
    return first.kind, first.confidence


def minutes(*columns: tuple[str, Sequence[float]]) -> list[str]:
    rows = zip(*(values for _, values in columns), strict=True)
    names = [name for name, _ in columns]
    return [
        f"uptime={60 * at} " + " ".join(f"{name}={value:.0f}" for name, value in zip(names, row, strict=True))
        for at, row in enumerate(rows)
    ]


def noise(count: int, level: float, width: float, seed: int = 1) -> list[float]:
    choice = random.Random(seed)
    return [level + choice.uniform(-width, width) for _ in range(count)]


def falling(count: int, level: float, step: float, width: float = 0, seed: int = 1) -> list[float]:
    return [value - step * at for at, value in enumerate(noise(count, level, width, seed))]


# --- leak -------------------------------------------------------------------------------------------------------------


def test_memory_that_falls_steadily_is_a_leak_with_rate_and_end() -> None:
    (finding,) = judged(minutes(("free", falling(61, 100_000, 500, 900))))
    assert (finding.kind, finding.confidence) == ("leak", "likely")
    assert "B an hour" in finding.sentence
    assert "used up in" in finding.sentence
    (exact,) = judged(minutes(("free", falling(61, 100_000, 500))))
    assert "30,000 B an hour, so it is used up in 2.33 h" in exact.sentence


def test_used_memory_that_rises_steadily_is_a_leak() -> None:
    assert kind(minutes(("used", falling(40, 1000, -400)))) == ("leak", "likely")


def test_memory_that_falls_by_equal_steps_is_a_leak() -> None:
    steps = [47720] * 4 + [47440] * 4 + [47160] * 3 + [46880] * 4
    assert kind([f"Free heap:{value}" for value in steps]) == ("leak", "likely")


def test_a_small_trend_is_not_certain() -> None:
    assert kind(minutes(("free", falling(40, 40_000, 20, 60)))) == ("leak", "inconclusive")


@pytest.mark.parametrize("seed", range(20))
def test_memory_that_fluctuates_is_no_leak(seed: int) -> None:
    assert kind(minutes(("free", noise(60, 100_000, 20_000, seed))))[0] in {"nothing wrong", "not enough data"}


def test_memory_that_wanders_is_hardly_ever_taken_for_a_likely_leak() -> None:
    wrong = 0
    for seed in range(100):
        choice, level, values = random.Random(seed), 100_000.0, []
        for _ in range(80):
            level += (100_000 - level) / 10 + choice.uniform(-3_000, 3_000)
            values.append(level)
        wrong += kind(minutes(("free", values))) == ("leak", "likely")
    assert wrong <= 3


def test_memory_that_levels_off_is_no_likely_leak() -> None:
    values = [60_000 + 40_000 * 0.8**at for at in range(60)]
    assert kind(minutes(("free", values)))[1] != "sure"
    assert kind(minutes(("free", [*falling(20, 100_000, 2000), *noise(60, 60_000, 500)])))[0] == "nothing wrong"


def test_a_restart_begins_again() -> None:
    first = minutes(("free", falling(20, 100_000, 500)))
    assert kind(first + minutes(("free", noise(20, 100_000, 300))))[0] == "nothing wrong"


# --- fragmentation ----------------------------------------------------------------------------------------------------


def test_a_block_that_falls_while_free_memory_stays_is_fragmentation() -> None:
    lines = minutes(("free", [121_000] * 10), ("largest", falling(10, 100_000, 9_000)))
    assert kind(lines) == ("fragmentation", "likely")
    assert "above 19,000 B fails" in judged(lines)[0].sentence


def test_a_block_that_falls_with_free_memory_is_none() -> None:
    lines = minutes(("free", falling(20, 100_000, 3_000)), ("largest", falling(20, 90_000, 3_000)))
    assert kind(lines)[0] == "leak"


def test_a_block_that_is_small_from_the_start_on_may_be_one_of_several_regions() -> None:
    assert kind(["free: 269896 | max: 45044"]) == ("fragmentation", "inconclusive")
    assert kind(["free: 269896 | max: 145044"])[0] == "not enough data"


def test_one_region_that_is_fragmented_is_certain() -> None:
    region = (
        "  At 0x3ffce4a0 len 80000 free 50000 allocated 30000 min_free 40000",
        "    largest_free_block 4096 alloc_blocks 116 free_blocks 20 total_blocks 136",
    )
    findings = judged(["Heap summary for capabilities 0x00000800:", *region])
    assert [(item.memory, item.kind, item.confidence) for item in findings] == [
        ("region 0x3ffce4a0", "fragmentation", "sure"),
        ("Internal", "fragmentation", "inconclusive"),
    ]


# --- requests that failed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "largest", "answer"),
    [
        (90_000, 12_000, ("fragmentation", "likely")),
        (10_000, 9_000, ("too small", "likely")),
        (90_000, 60_000, ("wrong memory", "inconclusive")),
    ],
)
def test_a_request_that_failed_is_compared_with_what_was_free(free: int, largest: int, answer: tuple[str, str]) -> None:
    lines = [f"free {free} largest {largest}", "Failed to allocate memory, size: 16717 bytes"]
    assert kind(lines) == answer


def test_a_request_that_failed_in_a_full_heap_means_too_small() -> None:
    assert kind(["free 3972, largest 1024, total 232544", "failed to allocate 1604 bytes"]) == ("too small", "likely")


def test_without_the_largest_block_a_failure_is_not_certain() -> None:
    assert kind(["mem free 47744", "MemoryError: memory allocation failed, allocating 582 bytes"]) == (
        "fragmentation",
        "inconclusive",
    )


def test_a_tiny_request_that_failed_points_to_another_memory() -> None:
    assert kind(["wifi:alloc eb len=76 type=2 fail, heap:2872652"]) == ("wrong memory", "inconclusive")


def test_a_failure_alone_is_not_enough() -> None:
    assert kind(["malloc of 4096 failed"]) == ("not enough data", "inconclusive")


def test_failures_below_the_peak_may_be_holes() -> None:
    lines = ["HEAP: heap_size 28432 cur_alloc 4928 max_alloc 22816 fail 14"]
    assert kind(lines) == ("fragmentation", "inconclusive")
    assert kind(["HEAP: heap_size 28432 cur_alloc 4928 max_alloc 28400 fail 14"]) == ("too small", "likely")


# --- too small, wrong memory, burst -----------------------------------------------------------------------------------


def test_a_heap_with_little_free_from_the_start_on_is_too_small() -> None:
    assert kind(minutes(("free", noise(30, 4_000, 300)), ("total", [65_536] * 30))) == ("too small", "likely")
    assert kind(["free 4000 total 65536"]) == ("too small", "inconclusive")


def test_a_pool_that_was_full_when_it_failed_is_too_small() -> None:
    lines = ["MEM UDP_PCB", "avail: 4", "used: 1", "max: 4", "err: 9"]
    finding = judged(lines)[0]
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "9 requests failed" in finding.sentence
    assert judged([*lines[:3], "max: 3", "err: 0"])[0].kind == "not enough data"


def test_one_memory_that_is_empty_while_another_is_free_is_the_wrong_one() -> None:
    lines = ["internal free 2000 total 300000, PSRAM free 3900000 total 4194304"]
    finding = judged(lines)[0]
    assert (finding.kind, finding.confidence, finding.memory) == ("wrong memory", "likely", "Internal")
    assert "3,900,000 B are free in PSRAM" in finding.sentence


def test_two_memories_that_are_both_empty_are_too_small() -> None:
    assert judged(["internal free 2000 total 300000, PSRAM free 9000 total 4194304"])[0].kind == "too small"


def test_a_short_dip_is_a_burst() -> None:
    free = noise(40, 100_000, 1_000)
    free[25] = 20_000
    assert kind(minutes(("free", free))) == ("burst", "likely")
    assert kind(["free 180000 min_free 20000"]) == ("burst", "likely")


def test_a_dip_that_stays_is_no_burst() -> None:
    assert kind(minutes(("free", [*noise(20, 100_000, 1_000), *noise(20, 20_000, 500)])))[0] != "burst"


# --- nothing wrong, not enough ----------------------------------------------------------------------------------------


def test_a_steady_state_is_nothing_wrong_and_names_what_is_missing() -> None:
    finding = judged(minutes(("free", noise(30, 100_000, 800))))[0]
    assert (finding.kind, finding.confidence) == ("nothing wrong", "likely")
    assert "cannot exclude fragmentation" in finding.sentence
    whole = judged(minutes(("free", noise(30, 100_000, 800)), ("largest", [90_000] * 30)))[0]
    assert "cannot exclude" not in whole.sentence


def test_few_readings_are_not_enough_and_say_what_to_record() -> None:
    finding = judged(["free 50000", "free 49000"])[0]
    assert (finding.kind, finding.confidence) == ("not enough data", "inconclusive")
    assert "the largest free block" in finding.record_next


def test_what_glibc_keeps_is_not_certain_to_be_fragmentation() -> None:
    lines = ["Arena 0:", "system bytes     =     200000", "in use bytes     =      90000"]
    assert kind(lines) == ("fragmentation", "inconclusive")
    assert kind([*lines[:2], "in use bytes     =     190000"])[0] == "not enough data"


def test_nothing_is_ever_certain_from_numbers_whose_heap_is_not_known() -> None:
    inputs = [
        minutes(("free", falling(40, 100_000, 2_000))),
        minutes(("free", [121_000] * 10), ("largest", falling(10, 100_000, 9_000))),
        ["free 10000 largest 9000", "Failed to allocate memory, size: 16717 bytes"],
        ["free 180000 min_free 20000"],
    ]
    assert [kind(lines)[1] for lines in inputs] == ["likely"] * 4


def test_a_heap_that_grows_is_judged_by_what_is_used() -> None:
    """mallinfo's arena grows by steps, after each of which much is free in it."""
    used = [900_000 + 1_180 * at for at in range(200)]
    arena = [1_351_680 + at // 20 * 135_168 for at in range(200)]
    rows = zip(arena, used, strict=True)
    lines = [f"mallinfo: arena={total} uordblks={now} fordblks={total - now}" for total, now in rows]
    (finding,) = judged(lines)
    assert (finding.kind, finding.confidence) == ("leak", "likely")
    assert "Used memory rises steadily" in finding.sentence and "1,180 B a reading" in finding.sentence
    flat = [f"mallinfo: arena={total} uordblks=900000 fordblks={total - 900_000}" for total in arena]
    assert kind(flat)[0] not in ("leak", "burst")


def test_a_request_that_names_no_memory_failed_in_the_only_one_that_could_not_serve_it() -> None:
    both = "internal free 2900 largest 1300, spiram free 3900000 largest 3800000"
    (first, *_) = judged([both, "wifi: alloc 1652 bytes failed, caps 0x804"] * 20)
    assert (first.kind, first.memory) == ("wrong memory", "Internal")
    assert "requests of up to 1,652 B fail in it" in first.sentence
    served = judged(["internal free 90000 largest 80000, spiram free 3900000 largest 3800000"] * 20)
    assert {finding.kind for finding in served} == {"nothing wrong"}


def test_a_rate_counts_the_readings_that_have_the_number() -> None:
    lines = [
        line
        for at in range(60)
        for line in (f"GC: total: 112512, used: {40_000 + at * 300}, free: {72_512 - at * 300}", "max free sz: 3900")
    ]
    (finding,) = judged(lines)
    assert "300 B a reading" in finding.sentence


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["Current heap: 12000\nMax heap size: 14996\nReserved: 15800"],
            {"used": 12_000, "peak": 14_996, "total": 15_800},
        ),
        (["byte pool 'main' size 65536 available 3000"], {"total": 65_536, "free": 3_000}),
        (["VmRSS: 50000 kB"], {"used": 51_200_000}),
    ],
)
def test_words_of_other_systems_are_known(lines: list[str], expected: dict[str, int]) -> None:
    readings = readings_of([line for text in lines for line in text.split("\n")])
    values = {key: value for item in next(iter(readings.memories.values())) for key, value in item.values.items()}
    assert values == expected


def test_a_null_result_is_a_request_that_failed() -> None:
    (finding,) = judged(["pvPortMalloc(2048) returned NULL"])
    assert (finding.kind, finding.confidence) == ("not enough data", "inconclusive")
    assert finding.sentence.startswith("1 request of up to 2,048 B failed") and finding.record_next


def test_free_of_a_size_is_a_share_of_it() -> None:
    (finding,) = judged([f"Heap: {500 + at % 3} free of 16384 (min 88)" for at in range(40)])
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "of 16,384 B are free" in finding.sentence


def test_a_line_of_lwip_has_the_size_of_its_pool_as_avail() -> None:
    (finding,) = judged([f"pbuf pool used {at % 16} max 16 avail 16 err {max(0, at - 30)}" for at in range(60)])
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "29 requests failed" in finding.sentence


def test_each_field_of_proc_status_is_a_series_of_its_own() -> None:
    lines = [
        text
        for at in range(60)
        for text in (
            f"2026-03-01 {at // 6:02d}:{at % 6 * 10:02d}:00",
            f"VmPeak:\t   {9000 + 40 * at} kB",
            f"VmRSS:\t    {5000 + 40 * at} kB",
            f"VmData:\t    {3500 + 40 * at} kB",
        )
    ]
    leak, *_ = judged(lines)
    assert (leak.kind, leak.confidence, leak.memory) == ("leak", "likely", "")
    assert f"{6 * 40 * 1024:,} B an hour" in leak.sentence  # the time stands alone, in a line above the fields


@pytest.mark.parametrize(
    "line", ["mbedtls_ssl_setup returned -0x7F00", "i2s: ESP_ERR_NO_MEM", "tcp_write: ERR_MEM", "read: -ENOMEM"]
)
def test_a_code_for_no_memory_is_a_request_that_failed(line: str) -> None:
    (finding,) = judged([line, "retry", line])
    assert (finding.kind, finding.confidence) == ("not enough data", "inconclusive")
    assert finding.sentence.startswith("2 requests failed, and no line has how much memory was free")


@pytest.mark.parametrize(
    ("block", "expected", "words"),
    [
        (14_500, "fragmentation", "the largest free block has 14,500 B"),
        (36_864, "not enough data", "takes two buffers of 16,717 B by default"),
    ],
)
def test_a_failed_connection_of_mbedtls_is_compared_with_its_usual_buffers(
    block: int, expected: str, words: str
) -> None:
    (finding,) = judged(["ssl_handshake returned -0x7f00", f"free heap: 51200, largest block: {block}"])
    assert (finding.kind, finding.confidence) == (expected, "inconclusive") and words in finding.sentence


def test_another_memory_with_several_blocks_of_a_failed_size_is_named() -> None:
    state = "DMA free 1800 largest 1024 | DRAM free 95057 largest 60000"
    first, *_ = judged([state, "spi: no memory for 4092 byte dma buffer"] * 6)
    assert (first.kind, first.confidence) == ("wrong memory", "likely")
    assert "while 95,057 B are free in DRAM" in first.sentence


def test_ms_print_lists_bytes_in_use_by_time() -> None:
    head = "  n       time(ms)         total(B)   useful-heap(B) extra-heap(B)    stacks(B)"
    rows = [f"{at:3}  {at * 60_000:12,}  {1_000_000 + at * 50_000:12,}  900,000  100,000  0" for at in range(40)]
    (finding,) = judged(["--------", head, "--------", *rows])
    assert (finding.kind, finding.confidence) == ("leak", "likely")
    assert "3,000,000 B an hour" in finding.sentence  # 50,000 B a minute


def test_the_free_pages_of_linux_show_what_order_fails() -> None:
    (finding,) = judged(
        [
            "kworker: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL)",
            "active_anon:2904 free:6974",
            "Normal free:27896kB min:2888kB low:3608kB high:4332kB",
            "Normal: 2744*4kB (UME) 1411*8kB (UME) 310*16kB (UM) 21*32kB (UM) 0*64kB 0*128kB = 27896kB",
        ]
    )
    assert (finding.kind, finding.confidence) == ("fragmentation", "likely")
    assert "65,536 B failed" in finding.sentence and "largest free block was 32,768 B" in finding.sentence


def test_a_static_buffer_of_mbedtls_is_compared_with_what_a_connection_takes() -> None:
    first, *_ = judged(
        [
            "mbedtls_memory_buffer_alloc_init(buf=0x2000C1A0, len=32768)",
            "ssl_tls.c: alloc(16717 bytes) failed",
            "Current use: 6 blocks / 1184 bytes, max: 9 blocks / 18637 bytes (total 18925 bytes), alloc / free: 1 / 1",
        ]
    )
    assert (first.kind, first.confidence) == ("too small", "likely")
    assert "in its 32,768 B" in first.sentence and "33,434 B" in first.sentence


def test_pages_that_grow_while_what_is_allocated_stays_are_fragmentation() -> None:
    lines = [
        f"stats.allocated:{407_000_000 + at % 3 * 1_000_000:,} stats.active:{440_000_000 + at * 20_000_000:,} "
        "stats.metadata:14,336,112 stats.resident:475,164,672 stats.mapped:497,164,288"
        for at in range(30)
    ]
    (finding,) = judged(plain_lines(lines))
    assert (finding.kind, finding.confidence) == ("fragmentation", "likely")
    assert "grows from 440,000,000 to 1,020,000,000 B" in finding.sentence


def test_the_sum_of_the_memories_is_no_memory_of_its_own() -> None:
    lines = [
        "Free heap getFreeHeap(): 50272 bytes",
        "DRAM 8-bit: Free: 4364 bytes | Largest block: 4084 bytes",
        "IRAM 32bit: Free: 45908 bytes | Largest block: 38900 bytes",
        "allocateData: malloc(5400) failed, segment 0",
    ]
    first, *_ = judged(lines * 4)
    assert (first.kind, first.confidence) == ("wrong memory", "likely")
    assert "DRAM is exhausted, 4,364 B free" in first.sentence and "45,908 B are free in IRAM" in first.sentence


def test_connections_that_fail_at_the_minimum_are_too_large_for_the_heap() -> None:
    lines = [
        text
        for at in range(7)
        for text in (f"before: free={49_200 + at} min=224 largest=39396", "mbedtls_ssl_handshake returned -0x10")
    ]
    (finding,) = judged(lines)
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "7 requests failed, and 224 B were free at the lowest" in finding.sentence


def test_requests_that_fail_in_a_burst_that_readings_show_are_of_the_burst() -> None:
    free = [118_000] * 40 + [60_000, 7_000, 6_000, 60_000] + [118_000] * 40
    lines = [f"free={value} maxblk={value * 6 // 7}" for value in free]
    lines[42:42] = ["oom(10220)", "oom(10220)"]
    (finding,) = judged(lines)
    assert (finding.kind, finding.confidence) == ("burst", "likely")


def test_the_share_of_time_counts_where_events_print_more_lines_in_a_burst() -> None:
    rest = [f"t={at * 30} free=23840" for at in range(40)]
    burst = [f"t={1200 + at} free={value}" for at, value in enumerate([9000, 7000, 5000, 3000, 900] * 5)]
    after = [f"t={1300 + at * 30} free=23840" for at in range(10)]
    (finding,) = judged(rest + burst + after)
    assert (finding.kind, finding.confidence) == ("burst", "likely")


def test_small_numbers_without_a_unit_count_elements() -> None:
    (finding,) = judged([f"ALLOC rx left={max(0, 23 - at // 2)}/24" for at in range(60)])
    assert (finding.kind, finding.confidence) == ("leak", "likely")
    assert "to 0 elements" in finding.sentence


def test_a_program_that_fails_at_each_start_has_too_small_a_heap() -> None:
    free = [24_568, 23_432, 19_104, 16_944, 15_808, 12_624, 10_464, 9_360, 4_672, 4_032]
    boot = [
        "[boot] reset cause: watchdog",
        *(f"create task stack 256 words -> 1 free {value}" for value in free),
        "xTaskCreate mqttTask stack 1536 words -> -1 free 4032",
    ]
    (finding,) = judged(plain_lines(boot * 3))
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "6,144 B failed while 4,032 B were free" in finding.sentence


def test_a_leak_goes_on_behind_a_restart() -> None:
    free = [2_300_000 - 91_000 * at for at in range(22)]
    lines = [f"Umem free: {value}" for value in free]
    (finding,) = judged([*lines, "up_assert: Assertion failed", "NuttShell (NSH) NuttX-12.5", *lines])
    assert (finding.kind, finding.confidence) == ("leak", "likely")


def test_blocks_of_the_collector_of_micropython_are_converted_to_bytes() -> None:
    text = ["GC: total: 102400, used: 8768, free: 93632", " No. of 1-blocks: 168, max blk sz: 35, max free sz: 231"]
    lines = plain_lines([*text * 10, "MemoryError: memory allocation failed, allocating 4096 bytes"])
    (finding,) = judged(lines)
    assert finding.kind == "fragmentation" and "the largest free block was 3,696 B" in finding.sentence


def test_a_request_that_fails_whenever_little_is_free_needs_a_larger_heap() -> None:
    lines = [
        text
        for at in range(9)
        for text in (
            f"I ({at * 10_000}) connect, free heap: 41252, largest_free_block: 39396",
            f"E ({at * 10_000 + 400}) mbedtls: calloc 16717 bytes failed, free heap: 11425, largest_free_block: 10100",
        )
    ]
    (finding,) = judged(lines)
    assert (finding.kind, finding.confidence) == ("too small", "likely")
    assert "while 11,425 B were free: that heap lacks at least 5,292 B" in finding.sentence


def test_a_table_by_capabilities_names_the_memories() -> None:
    lines = [
        "MALLOC_CAP_8BIT      8254316 bytes",
        "MALLOC_CAP_DMA        113216 bytes",
        "MALLOC_CAP_SPIRAM    8126412 bytes",
        "heap_caps_malloc(153600, MALLOC_CAP_DMA) failed",
    ]
    first, *_ = judged(plain_lines(lines))
    assert (first.kind, first.confidence, first.memory) == ("wrong memory", "likely", "DMA")
    assert "8,126,412 B are free in PSRAM" in first.sentence
