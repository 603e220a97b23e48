"""Logs that are cut, damaged, compressed or of several programs: what is sound is read, and the rest is named."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from heap_logs import (
    LOGS,
    SYSVIEW,
    SYSVIEW_HEADER,
    SYSVIEW_OF_ESP,
    SYSVIEW_START,
    TRACEALYZER_EVENTS,
    sysview_packet,
)
from heap_logs import tracealyzer as stream_of
from test_logs import EXPECTED, calls, imported

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import (
    bpftrace,
    pattern,
    sysview,
    tracealyzer,
)
from heapwright._traces.validation import FREE, MALLOC


@pytest.mark.parametrize(
    ("name", "old", "new", "sizes"),
    [
        ("perf", "size=24", "size=0024", [24, 16, 48, 77, 128, 21]),
        ("heaptrack", "+ 18", "+ -18", [100]),
        ("heaptrack", "+ 18", "+ 1_8", [100]),
        ("kmem", "bytes_req=640", "bytes_req=-640", [232]),
    ],
)
def test_numbers_that_no_tool_prints_are_no_calls(
    name: str, old: str, new: str, sizes: list[int], tmp_path: Path
) -> None:
    log = LOGS[name]
    assert isinstance(log, str) and old in log
    trace = imported(tmp_path, log.replace(old, new))
    assert [size for op, _, size in calls(trace) if op != FREE] == sizes


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"bytehound", "sysview", "tracealyzer"}))
def test_the_time_a_line_takes_does_not_explode_with_its_length(name: str, tmp_path: Path) -> None:
    log = LOGS[name]
    lines = (log if isinstance(log, bytes) else log.encode()).splitlines()
    runs = [run * (3900 // len(run)) for run in (b" ", b"9", b"f", b"(", b"a b ", b"[0] ", b"{ }, ", b") = ", b"0x")]
    damaged = [line[:at] + run + line[at:] for line in lines for run in runs for at in (0, 9, len(line) // 2)]
    begun = time.process_time()
    imported(tmp_path, b"\n".join([*lines, *damaged, b""]), name)
    assert time.process_time() - begun < 2


class CountedPattern:
    """A pattern of the importer that counts the characters in which it searches."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.characters = 0

    def search(self, text: str) -> re.Match[str] | None:
        self.characters += len(text)
        return self.pattern.search(text)


def test_a_few_words_are_searched_before_each_of_thousands_of_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the whole line before each number the search would look at ten thousand characters for a number."""
    numbers = 10_000
    line = "24 bytes (@ 0x3ffb1000, Internal) allocated by" + " 1" * numbers + "\n"
    before = {name: CountedPattern(getattr(pattern, name)) for name in ("_STATE_BEFORE", "_SIZE_BEFORE")}
    for name, counted in before.items():
        monkeypatch.setattr(pattern, name, counted)
    with pytest.raises(HeapwrightError, match="no known format, but lines that look like heap calls"):
        imported(tmp_path, line)
    assert before["_STATE_BEFORE"].characters >= numbers
    assert sum(counted.characters for counted in before.values()) <= 200 * numbers


def test_clocks_of_a_hundred_years_count(tmp_path: Path) -> None:
    late = 3 << 60
    trace = imported(tmp_path, f"heapwright bpftrace\n{late} 7 7 + 5000 24\n{late + 5000} 7 7 - 5000\n")
    assert trace.ts_us.tolist() == [0, 5]


def test_clocks_and_units_that_make_no_sense_do_no_harm(tmp_path: Path) -> None:
    events = [(0x38, 0x00FFFFFF, (0x1000, 8)), (0x38, 0x01000000, (0x2000, 8))]
    trace = imported(tmp_path, stream_of(events, clock=(4, 1_000_000, 1000)))
    assert trace.ts_us.tolist() == [0, 2000]
    init = sysview_packet(24, 1_000_000, 1_000_000, 0x20000000, 2, ticks=0)
    damaged = SYSVIEW.replace(init, sysview_packet(24, 1_000_000, 1_000_000, 0x20000000, 1 << 28, ticks=0))
    trace = imported(tmp_path, damaged)
    assert trace.repairs == ("lines or records that make no sense, left out: 1",)
    assert trace.ts_us.tolist() == [-1] * 4


def perf_line(time: int, event: str, arguments: str, thread: str = "7/7") -> str:
    return f" {thread} [000] {time}.000000000: heapwright:{event}: ({arguments}\n"


def test_returns_that_perf_lost_cost_their_calls_alone(tmp_path: Path) -> None:
    log = (
        perf_line(1, "malloc", "7f) size=1")  # its return is lost
        + perf_line(2, "malloc", "7f) size=2")
        + perf_line(3, "malloc__return", "7f <- 55) pointer=0x20")
        + perf_line(4, "realloc", "7f) pointer=0x20 size=3")  # and its
        + perf_line(5, "malloc", "7f) size=4")  # looks like one of realloc's own
        + perf_line(6, "malloc__return", "7f <- 55) pointer=0x40")
        + perf_line(7, "free", "7f) pointer=0x20")  # and so does this
        + perf_line(8, "malloc", "7f) size=5")
        + perf_line(9, "malloc__return", "7f <- 55) pointer=0x50")
        + perf_line(10, "calloc__return", "7f <- 55) pointer=0x60")  # its begin is lost
    )
    trace = imported(tmp_path, log)
    assert calls(trace) == [(MALLOC, 0, 2), (MALLOC, 1, 5)]
    assert trace.repairs == ("lines or records that make no sense, left out: 3",)


@pytest.mark.parametrize("name", ["calloc", "realloc", "memalign"])
def test_a_call_that_perf_tells_without_all_its_arguments_is_left_out(name: str, tmp_path: Path) -> None:
    log = (
        perf_line(1, "malloc", "7f) size=2")
        + perf_line(2, "malloc__return", "7f <- 55) pointer=0x20")
        + perf_line(3, name, "7f) first=0x20")
        + perf_line(4, f"{name}__return", "7f <- 55) pointer=0x40")
        + perf_line(5, "malloc", "7f) size=5")
        + perf_line(6, "malloc__return", "7f <- 55) pointer=0x50")
    )
    trace = imported(tmp_path, log)
    assert calls(trace) == [(MALLOC, 0, 2), (MALLOC, 1, 5)]
    (output,) = trace.repairs
    assert output.startswith("lines or records that make no sense, left out: ")


def test_perf_and_bpftrace_tell_processes_apart_and_what_was_lost(tmp_path: Path) -> None:
    perf, bpftrace = imported(tmp_path, LOGS["perf"]), imported(tmp_path, LOGS["bpftrace"])
    assert perf.metadata["caveats"].splitlines()[1:] == [
        "12 events were lost while they were recorded; give perf record more room (-m)"
    ]
    assert bpftrace.metadata["caveats"].splitlines() == [
        "1 smaller process of the log left out",
        "bpftrace lost 12 events; give it more room (BPFTRACE_PERF_RB_PAGES)",
    ]
    assert perf.align.max() == 64 and bpftrace.align.max() == 64


def test_perf_script_with_names_and_microseconds_is_read_too(tmp_path: Path) -> None:
    log = (
        "       my app 2   812 [003]  9.000001: probe_libc:malloc: (7f2e1cfe3930) size=0x18\n"
        "       my app 2   812 [003]  9.000003: probe_libc:malloc__return: (7f2e1cfe3930 <- 555e5372419b) arg1=0x5000\n"
        "       my app 2   813 [003]  9.000008: probe_libc:free_1: (7f2e1cfe3ef0) pointer=0x5000\n"
    )
    trace = imported(tmp_path, log)
    assert calls(trace) == [(MALLOC, 0, 24), (FREE, 0, 0)]
    assert (trace.ts_us.tolist(), trace.tid.tolist()) == ([0, 5], [0, 1])


def test_lines_of_bpftrace_that_come_too_late_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpftrace, "_WINDOW", 2)
    late = imported(tmp_path, "1 7 7 + 10 8\n2 7 7 - 10\n4 7 7 - 30\n5 7 7 - 50\n3 7 7 + 30 8\n1 7 7 + 50 8\n")
    assert calls(late) == [(MALLOC, 0, 8), (FREE, 0, 0), (MALLOC, 1, 8), (MALLOC, 2, 8), (FREE, 1, 0), (FREE, 2, 0)]
    assert late.metadata["caveats"] == "1 events came too late to be put in order; `sort -n` the log first"


def test_a_recording_of_systemview_is_read_from_its_first_mark_and_behind_damage_from_the_next(tmp_path: Path) -> None:
    assert calls(imported(tmp_path, SYSVIEW[len(SYSVIEW_HEADER) :])) == EXPECTED["sysview"]
    overwritten = b"\x83\x84" + SYSVIEW[len(SYSVIEW_HEADER) :]
    assert calls(imported(tmp_path, overwritten, "sysview")) == EXPECTED["sysview"]
    again = SYSVIEW_START + sysview_packet(31, 3, 0x100, 0x300, 1)
    trace = imported(tmp_path, SYSVIEW + b"\xff" * 9 + again)
    assert calls(trace) == [*EXPECTED["sysview"], (MALLOC, 2, 4)]
    assert trace.repairs == ("lines or records that make no sense, left out: 1",)
    assert trace.metadata["caveats"].splitlines() == [
        "5 packets were lost on the board, whose buffer was full",
        "sizes are as the heap reports them, which are block sizes by SystemView's manual",
        "sizes are reported in units of 4 bytes, rounded down",
    ]


@pytest.mark.parametrize("block", [1, 7, 64])
def test_packets_of_systemview_and_events_of_tracealyzer_may_lie_across_blocks(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysview, "_BLOCK", block)
    monkeypatch.setattr(tracealyzer, "_BLOCK", block)
    for name in ("sysview", "tracealyzer"):
        assert calls(imported(tmp_path, LOGS[name])) == EXPECTED[name]


def test_esp_idf_tells_its_heap_to_systemview_by_a_module_of_its_own(tmp_path: Path) -> None:
    trace = imported(tmp_path, SYSVIEW_OF_ESP)
    assert calls(trace) == [(MALLOC, 0, 24), (MALLOC, 1, 101), (FREE, 0, 0)]
    assert (trace.ts_us.tolist(), trace.tid.tolist()) == ([0, 100, 200], [0, 1, 0])
    assert [trace.sites[site] for site in trace.site] == ["0x400d1000", "0x400d1100", "0x400d3000"]
    assert trace.metadata["caveats"] == "realloc is recorded as a free and a malloc"


@pytest.mark.parametrize("version", [10, 12, 13, 14])
@pytest.mark.parametrize("order", ["<", ">"])
def test_streams_of_tracealyzer_are_read_in_every_version_and_order_of_bytes(
    version: int, order: str, tmp_path: Path
) -> None:
    trace = imported(tmp_path, stream_of(TRACEALYZER_EVENTS, version=version, order=order))
    assert calls(trace) == EXPECTED["tracealyzer"]
    assert trace.ts_us.tolist() == [0, 512, 768, 1024]


@pytest.mark.parametrize(
    ("clock", "stamps", "times"),
    [
        ((2, 1_000_000, 0), [0x10, 0xFFFFFFF0], [0, 32]),
        ((3, 1_000_000, 1000), [0xFF000001, 0x00000002], [0, 1001]),
        ((4, 1_000_000, 1000), [0xFF000001, 0x000003E7], [0, 2]),
        ((1, 0, 0), [1, 2], [-1, -1]),
    ],
)
def test_clocks_of_tracealyzer_count_as_they_say(
    clock: tuple[int, int, int], stamps: list[int], times: list[int], tmp_path: Path
) -> None:
    events = [(0x38, stamp, (0x1000 + number * 64, 8)) for number, stamp in enumerate(stamps)]
    assert imported(tmp_path, stream_of(events, clock=clock)).ts_us.tolist() == times


def test_streams_of_tracealyzer_tell_what_is_missing_and_of_what_kind_they_are(tmp_path: Path) -> None:
    cores = [(0x37, 1, (0x40,)), (0x38, 2, (0x1000, 8)), (0x37, 3, (0x80,)), (0x39, 4, (0x1000, 8))]
    stream = stream_of(cores, cores=2, first=0xFFE)  # the counts of the second core are 0 and 1
    trace = imported(tmp_path, stream)
    assert (calls(trace), trace.tid.tolist()) == ([(MALLOC, 0, 8), (FREE, 0, 0)], [0, 1])
    assert "missing" not in trace.metadata["caveats"]
    whole = stream_of(TRACEALYZER_EVENTS)
    gap = whole[:-32] + whole[-16:]
    assert imported(tmp_path, gap).metadata["caveats"].splitlines()[1] == "1 events are missing in the stream"
    assert imported(tmp_path, whole[:-3]).repairs[0].endswith("its last event has no end")
    for refused, words in (
        (stream_of(TRACEALYZER_EVENTS, version=7), "version 7 of Tracealyzer's stream"),
        (stream_of(TRACEALYZER_EVENTS, kernel=0x9AA9), "another kernel than FreeRTOS"),
        (whole[:60] + b"\xff" * 8 + whole[68:], "its table of names is damaged"),
        (whole[:50], "no call in its format"),
    ):
        with pytest.raises(HeapwrightError, match=words):
            imported(tmp_path, refused)
