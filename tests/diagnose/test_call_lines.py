"""Heap calls in lines of any wording: addresses, sizes, failures, memories, and the traces that they make."""

from __future__ import annotations

import pytest

from heapwright._diagnose.call_lines import CallLog, call_logs
from heapwright._diagnose.diagnosis import _losses

WORDINGS: dict[str, tuple[list[str], int, int]] = {
    "riot": (
        [
            "2026-01-01 10:00:00,100 # Allocated 640 Bytes at 0x0x20003000, total 640",
            "2026-01-01 10:00:00,101 # Allocated 640 Bytes at 0x0x20003290, total 1288",
            "2026-01-01 10:00:00,102 # Free 640 Bytes at 0x0x20003000, total 648",
            "2026-01-01 10:00:00,103 # Allocated 128 Bytes at 0x0x20003000, total 784",
        ],
        4,
        1280,
    ),
    "ledger": (
        ["[ALLOC] ptr = 0xf86850 | length = 77", "[ALLOC] ptr = 0xf868a8 | length = 80", "[FREE] ptr = 0xf86850"],
        3,
        157,
    ),
    "c": (
        [
            "#1: malloc(0x09)  =  0x5555556bdf20",
            "calloc(2, 36) @0x8001737 returned 0x20001cf0",
            "free(0x20001cf0) @0x80",
        ],
        3,
        81,
    ),
    "csv": (
        [
            "time,op,address,size",
            "0.001,malloc,0x20001000,128",
            "0.002,free,0x20001000,128",
            "0.003,malloc,0x20001000,512",
        ],
        3,
        512,
    ),
    "own": (["k_malloc: 0x20001000 size=100 by net", "k_free: 0x20001000"], 2, 100),
    "esp": (
        [
            "    24 bytes (@ 0x3fc90a10, Internal) allocated CPU 0 ccount 0x00a1b010 freed",
            "    40 bytes (@ 0x3fc90a10, Internal) allocated CPU 0 ccount 0x00a1b220 caller 0x42010000:0x42020000",
        ],
        3,
        40,
    ),
    "hw": (["hw+ 0x1000 100", "hw= 0x1000 0x2000 300", "hw- 0x2000"], 3, 300),
}


def only(lines: list[str]) -> CallLog:
    (log,) = call_logs(lines)
    return log


@pytest.mark.parametrize("name", WORDINGS)
def test_a_wording_is_read(name: str) -> None:
    lines, calls, peak = WORDINGS[name]
    log = only(lines)
    trace = log.trace("t")
    assert trace is not None
    assert (len(log.calls), trace.peak_live_bytes, log.failed) == (calls, peak, [])


def test_times_and_sites_are_kept() -> None:
    lines = [
        '[0.001000100] HEAP: Allocated 48 bytes @ 0x3ffb1000 from task "net" on core 0 by:',
        "/src/main/net.c:41",
        "",
        '[0.501000100] HEAP: Freed bytes @ 0x3ffb1000 from task "app" on core 1 by:',
        "/src/main/app.c:12",
    ]
    trace = only(lines).trace("t")
    assert trace is not None
    assert trace.ts_us.tolist() == [0, 500_000]
    assert trace.sites[trace.site[0]] == "/src/main/net.c:41"


@pytest.mark.parametrize(
    "line",
    ["hw+ 0x0 4096", "Allocated 4096 bytes at NULL", "malloc(4096) = (nil)", "alloc failed: 4096 bytes at 0x00000000"],
)
def test_a_request_that_failed_is_kept(line: str) -> None:
    lines = {"hw": ["hw+ 0x1000 100", "hw- 0x1000"], "ma": ["malloc(100) = 0x1000", "free(0x1000)"]}.get(
        line[:2], ["Allocated 100 bytes at 0x1000", "Freed 0x1000"]
    )
    log = only([*lines, line])
    assert [call.size for call in log.failed] == [4096]


def test_failures_are_served_for_as_long_as_objects_of_their_size_live() -> None:
    lines = [
        "hw+ 0x1000 50",
        *["hw+ 0x2000 700", "hw- 0x2000"] * 9,
        "hw+ 0x2000 700",
        "hw+ 0x0 700",
        "hw- 0x2000",
        "hw+ 0x3000 9",
        "hw- 0x3000",
    ]
    log = only(lines)
    served, recorded = log.trace("t", serve=True), log.trace("t")
    assert served is not None
    assert recorded is not None
    assert recorded.peak_live_bytes == 750
    assert served.peak_live_bytes == 1450
    assert served.live_bytes[-1] == 50


def test_memories_are_kept_apart() -> None:
    lines = [
        "160 bytes (@ 0x3fc92000, Internal) allocated CPU 0 ccount 0x0c000100 caller 0x42010000:0x42020000",
        "49152 bytes (@ 0x3c0b0000, PSRAM) allocated CPU 0 ccount 0x0c000200 caller 0x42010000:0x42020000",
    ]
    assert [(log.memory, len(log.calls)) for log in call_logs(lines)] == [("Internal", 1), ("PSRAM", 1)]
    heaps = [
        "malloc heap: 0x20000000 size:20, address: 0x20001000",
        "malloc heap: 0x60000000 size:30, address: 0x60001000",
    ]
    assert [log.memory for log in call_logs([*heaps, "free address: 0x60001000"])] == [
        "heap 0x20000000",
        "heap 0x60000000",
    ]
    assert [len(log.calls) for log in call_logs([*heaps, "free address: 0x60001000"])] == [1, 2]


def test_text_with_few_calls_is_no_log() -> None:
    assert call_logs(["Allocated 8 bytes at 0x1000", "Freed 0x1000", *["something else"] * 9]) == []
    assert call_logs(["free heap 1000", "free heap 900"]) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("CPU:1 [LOST 840 EVENTS]", "840 events were lost"),
        ("# entries-in-buffer/entries-written: 4/844   #P:2", "840 events were lost"),
        ("0x2b8 [0x30]: PERF_RECORD_LOST: lost 17", "17 events were lost"),
        ("WARNING: Tracer discarded 7002 events between [1] and [2]", "7,002 events were lost"),
        (
            "(NB: Internal Buffer has overflowed, so trace data is incomplete.)",
            "events were lost ('(NB: Internal Buffer has overflowed, so trace data is incomplete.)')",
        ),
        ("--- 12 messages dropped ---", "12 events were lost"),
        ("Processed 4346 events and lost 144 chunks!", "144 events were lost"),
    ],
)
def test_losses_are_found(line: str, text: str) -> None:
    assert _losses(["a", line, "b"]) == (text,)


def test_nothing_is_lost_without_a_line_about_it() -> None:
    assert (
        _losses(
            [
                "malloc 8 at 0x1000",
                "freed",
                "connection lost",
                "packets dropped by filter",
                "lost 3 packets",
                "dropped 9 messages",
            ]
        )
        == ()
    )
