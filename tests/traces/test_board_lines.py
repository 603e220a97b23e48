"""What a board's ring hands out, compiled for this machine: every call, and where calls are missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from platform_builds import BOARDS, run
from tool_requirements import programs_of_32_bits, tool

import heapwright as hw
from heapwright._traces.failures import failures_of
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

ROOT = Path(__file__).parents[2]
RING = ROOT / "src/heapwright/_platforms/trace"
MOSQUITTO = ROOT / "examples/mosquitto_broker.parquet"
DRAIN, DRAIN_SOME, THREAD = 4, 5, 6
CALLS_A_SECOND = 2800
"""What 115,200 baud have to carry: 4 characters a call, and a little more."""
MOST_CALLS = 12_000
BURSTS = 12
LOSSY = ["rec_coapserver", "kmem_loopback_net", "mosquitto"]
TRACES = ["rec_coapserver", "rec_lighttpd", "rec_openssl_srv", "kmem_loopback_net", "wee_ffmpeg", "mosquitto"]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with a ring of 256 records that knows all objects."""
    return built(tmp_path_factory.mktemp("ring") / "replay", "-DAPP_TRACE_OBJECTS=16384")


def built(program: Path, *more: str) -> Path:
    programs_of_32_bits(compiler="gcc")
    flags = ["-m32", "-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-DAPP_TRACE_RECORDS=256"]
    run(["gcc", *flags, *more, f"-I{RING}", BOARDS / "traced/replay.c", "-o", program], program.parent)
    return program


def printed(replay: Path, calls: NDArray[np.uint32]) -> str:
    """What the program prints for calls of four words each."""
    return subprocess.run([replay], input=calls.tobytes(), capture_output=True, check=True).stdout.decode()


def script(trace: Trace) -> NDArray[np.uint32]:
    """The first calls of a trace, as frequent as CALLS_A_SECOND."""
    count = min(len(trace), MOST_CALLS)
    ticks = np.arange(count) * 1000 // CALLS_A_SECOND
    return np.stack([trace.op[:count], trace.objects()[0][:count], trace.size[:count], ticks], 1).astype(np.uint32)


def with_drains(calls: NDArray[np.uint32], before: NDArray[np.intp]) -> NDArray[np.uint32]:
    """The calls, with a drain before each of those."""
    return np.insert(calls, before, np.array([DRAIN, 0, 0, 0], np.uint32), axis=0)


def trace_of(name: str, shared_data: Path) -> Trace:
    return hw.read_trace(MOSQUITTO if name == "mosquitto" else shared_data / f"heap/{name}.parquet")


def peak(calls: NDArray[np.uint32]) -> int:
    """The most bytes that are live at once."""
    live: dict[int, int] = {}
    total = most = 0
    for op, number, size, _ in calls.tolist():
        total += (0 if op == FREE else size) - live.pop(number, 0)
        most = max(most, total)
        if op != FREE:
            live[number] = size
    return most


def imported(folder: Path, text: str) -> Trace:
    (folder / "console.log").write_text(text)
    return hw.import_log(folder / "console.log")


def calls_of(trace: Trace) -> list[tuple[int, int, int]]:
    columns = zip(trace.op, trace.objects()[0], trace.size, strict=True)
    return [(int(op), int(number), 0 if op == FREE else int(size)) for op, number, size in columns]


KNOWN = [
    (THREAD, 0x20001000, 0, 0),
    (MALLOC, 0, 24, 5),
    (CALLOC, 1, 15 + (2 << 20), 7176),
    (THREAD, 0x20002000, 0, 7176),
    (REALLOC, 0, 48, 7178),
    (DRAIN_SOME, 3, 0, 7178),
    (FREE, 0, 0, 20_000),
]


def test_lines_tell_what_was_called(replay: Path, tmp_path: Path) -> None:
    text = printed(replay, np.array(KNOWN, np.uint32))
    lines = text.splitlines()
    assert lines[0] == "hw:000003e80000000040000000" and len(lines) == 3  # drained in the midst, and in the end
    trace = imported(tmp_path, text)
    assert calls_of(trace) == [(MALLOC, 0, 24), (CALLOC, 1, 15 + (2 << 20)), (REALLOC, 0, 48), (FREE, 0, 0)]
    assert trace.ts_us is not None and trace.ts_us.tolist() == [0, 7_171_000, 7_173_000, 19_995_000]
    assert trace.tid is not None and trace.tid.tolist() == [0, 0, 1, 1]
    assert trace.repairs == () and "caveats" not in trace.metadata


@pytest.mark.parametrize("name", TRACES)
def test_a_call_takes_four_characters_at_most(name: str, replay: Path, shared_data: Path) -> None:
    calls = script(trace_of(name, shared_data))
    text = printed(replay, with_drains(calls, np.arange(100, len(calls), 100)))
    assert "hw:000003e800000001" not in text  # nothing was lost
    assert len(text) <= 4 * len(calls)


def test_no_call_of_a_real_trace_is_told_otherwise(replay: Path, tmp_path: Path) -> None:
    calls = script(hw.read_trace(MOSQUITTO))[:6000]
    lines = printed(replay, with_drains(calls, np.arange(100, len(calls), 100))).splitlines(keepends=True)
    output = imported(tmp_path, "".join(lines))
    assert calls_of(output) == [(op, number, 0 if op == FREE else size) for op, number, size, _ in calls.tolist()]

    without = imported(tmp_path, "".join(lines[:40] + lines[41:60] + [lines[60][:50] + lines[60][51:]] + lines[61:]))
    lost = re.fullmatch(r"(\d+) calls were lost on the way from the board", without.metadata["caveats"])
    assert lost and int(lost[1]) == sum(ord(lines[at][3]) - ord("$") for at in (40, 60))
    assert without.peak_live_bytes == pytest.approx(output.peak_live_bytes, rel=0.01)
    assert "lines or records that make no sense, left out: 1" in without.repairs


def with_full_rings(calls: NDArray[np.uint32], seed: int) -> NDArray[np.uint32]:
    """The calls, a seventh of which find the ring full, in bursts."""
    draw = np.random.default_rng(seed)
    drains = np.arange(20, len(calls), 20)
    lengths = draw.exponential(size=BURSTS)
    for begin, length in zip(draw.integers(0, len(calls), BURSTS), lengths / lengths.sum(), strict=True):
        drains = drains[(drains < begin) | (drains > begin + 230 + 0.15 * len(calls) * length)]
    return with_drains(calls, drains)


@pytest.mark.parametrize("name", LOSSY)
def test_where_a_seventh_of_all_calls_is_lost_on_the_board_the_peak_stays(
    name: str, replay: Path, shared_data: Path, tmp_path: Path
) -> None:
    calls = script(trace_of(name, shared_data))
    for seed in range(3):
        trace = imported(tmp_path, printed(replay, with_full_rings(calls, seed)))
        lost = re.match(r"(\d+) calls were lost on the board", trace.metadata["caveats"])
        assert lost and 0.12 < int(lost[1]) / len(calls) < 0.18
        assert any(f"calls missing in the log: {lost[1]} in " in repair for repair in trace.repairs)
        assert trace.peak_live_bytes == pytest.approx(peak(calls), rel=0.01)


@pytest.mark.parametrize("name", LOSSY)
def test_where_a_seventh_of_all_lines_is_lost_on_the_way_the_peak_stays(
    name: str, replay: Path, shared_data: Path, tmp_path: Path
) -> None:
    calls = script(trace_of(name, shared_data))
    lines = printed(replay, with_drains(calls, np.arange(100, len(calls), 100))).splitlines(keepends=True)
    for seed in range(3):
        begins = np.random.default_rng(seed).integers(1, len(lines) - 1, len(lines) // 20)
        lost = {begin + at for begin in begins.tolist() for at in range(3)} - {len(lines) - 1}
        trace = imported(tmp_path, "".join(line for at, line in enumerate(lines) if at not in lost))
        assert "calls were lost on the way" in trace.metadata["caveats"]
        assert trace.peak_live_bytes == pytest.approx(peak(calls), rel=0.01)


def test_a_board_that_does_not_know_all_objects_says_so(tmp_path: Path) -> None:
    calls = script(hw.read_trace(MOSQUITTO))
    small = built(tmp_path / "small", "-DAPP_TRACE_OBJECTS=64")
    trace = imported(tmp_path, printed(small, with_full_rings(calls, 0)))
    assert "more objects were live than APP_TRACE_OBJECTS has room for" in trace.metadata["caveats"]
    assert trace.peak_live_bytes == pytest.approx(peak(calls), rel=0.2)
    whole = imported(tmp_path, printed(small, with_drains(calls, np.arange(100, len(calls), 100))))
    assert "caveats" not in whole.metadata and whole.peak_live_bytes == peak(calls)


def test_sites_are_told_again_where_the_line_that_told_them_first_is_lost(tmp_path: Path) -> None:
    program = built(tmp_path / "sites", "-DAPP_TRACE_SITES=1")
    calls = np.array([(MALLOC, number, 24, number) for number in range(200)], np.uint32)
    lines = printed(program, with_drains(calls, np.arange(20, 200, 20))).splitlines(keepends=True)
    whole, part = imported(tmp_path, "".join(lines)), imported(tmp_path, "".join(lines[:1] + lines[2:]))
    assert len(whole.sites) == 2 and whole.sites[1].startswith("0x")
    assert whole.site is not None and part.site is not None
    assert set(whole.site.tolist()) == {1} and part.sites[-1] == whole.sites[1]


@pytest.mark.parametrize(("cpu", "newest"), [("cortex-m0", 0), ("cortex-m4", 1)])
def test_the_ring_needs_no_function_and_warns_of_nothing(cpu: str, newest: int, tmp_path: Path) -> None:
    (tmp_path / "ring.c").write_text(
        "#define APP_TRACE_ENTER() ((void)0)\n#define APP_TRACE_LEAVE() ((void)0)\n#include <app_trace_ring.h>\n"
    )
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-std=c11", "-ffreestanding", "-O2", "-c"]
    flags += [f"-mcpu={cpu}", "-mthumb", f"-DAPP_TRACE_NEWEST={newest}", f"-I{RING}"]
    run([tool("arm-none-eabi-gcc"), *flags, "ring.c", "-o", "ring.o"], tmp_path)
    assert run(["arm-none-eabi-nm", "-u", "ring.o"], tmp_path) == ""


def with_limit(calls: NDArray[np.uint32], heap_bytes: int) -> tuple[list[tuple[int, int]], int]:
    """The requests that a heap of this limit refuses, each (index, size), and the peak of what it serves, in bytes."""
    live, total, most, refused = dict[int, int](), 0, 0, list[tuple[int, int]]()
    for at, (op, number, size, _) in enumerate(calls.tolist()):
        if op == FREE:
            total -= live.pop(number, 0)
        elif total + size > heap_bytes:
            refused.append((at, size))
        else:
            total += size - live.get(number, 0)
            live[number] = size
            most = max(most, total)
    return refused, most


@pytest.mark.parametrize("room", [0.6, 0.9])
def test_a_request_that_fails_on_the_board_is_one_that_failed_in_the_trace(room: float, tmp_path: Path) -> None:
    calls = script(hw.read_trace(MOSQUITTO))[:6000]
    heap_bytes = int(room * peak(calls))
    program = built(tmp_path / "small", "-DAPP_TRACE_OBJECTS=16384", f"-DHEAP_BYTES={heap_bytes}u")
    refused, most = with_limit(calls, heap_bytes)
    assert len(refused) > 5
    text = printed(program, with_drains(calls, np.arange(100, len(calls), 100)))
    trace = imported(tmp_path, text)
    assert trace.size[trace.failed > 0].tolist() == [size for _, size in refused]
    assert trace.repairs == () and "caveats" not in trace.metadata  # nothing is lost: the counts agree
    failures = failures_of(trace)
    assert (failures.served_peak_bytes, failures.count) == (most, len(refused))
    assert failures.peak_bytes > most


def test_a_failed_realloc_on_the_board_leaves_its_object(tmp_path: Path) -> None:
    program = built(tmp_path / "small", "-DAPP_TRACE_OBJECTS=16384", "-DHEAP_BYTES=100u")
    calls = [(MALLOC, 0, 60, 1), (REALLOC, 0, 90, 2), (CALLOC, 1, 50, 3), (MALLOC, 2, 0, 3), (FREE, 0, 0, 4)]
    trace = imported(tmp_path, printed(program, np.array(calls, np.uint32)))
    asked = trace.op != FREE
    rows = zip(trace.size[asked].tolist(), trace.failed[asked].tolist(), strict=True)
    assert list(rows) == [(60, 0), (90, 2), (50, 1), (0, 0)]


def test_lines_with_a_failed_request_at_their_begin_or_after_a_loss_are_read(tmp_path: Path) -> None:
    program = built(tmp_path / "small", "-DAPP_TRACE_OBJECTS=16384", "-DHEAP_BYTES=100u")
    calls = [(MALLOC, 1, 40, 1), (DRAIN, 0, 0, 1), (MALLOC, 2, 80, 2), (MALLOC, 3, 40, 3), (DRAIN, 0, 0, 3)]
    lines = printed(program, np.array([*calls, (MALLOC, 4, 70, 4), (FREE, 1, 0, 5)], np.uint32)).splitlines(True)
    trace = imported(tmp_path, "".join(lines))
    assert trace.size[trace.failed > 0].tolist() == [80, 70] and trace.peak_live_bytes == 40 + 80 + 40 + 70
    without = imported(tmp_path, "".join([*lines[:2], *lines[3:]]))  # the line of two calls is lost on the way
    assert without.metadata["caveats"] == "2 calls were lost on the way from the board"
    assert without.size[without.failed > 0].tolist() == [70]


def test_a_dump_of_the_ring_has_the_requests_that_failed(tmp_path: Path) -> None:
    records = [(0x20000000, MALLOC | 64 << 12), (0, MALLOC | 200 << 12), (0, CALLOC | 90 << 12), (0x20000000, 2)]
    words = [0x48577472, 16, 1000, 0, 0, len(records), 0, 0, *np.ravel(records), *[0] * 2 * (16 - len(records))]
    (tmp_path / "app.ring").write_bytes(np.array(words, "<u4").tobytes())
    trace = hw.import_log(tmp_path / "app.ring")
    assert trace.size[trace.failed > 0].tolist() == [200, 90]
    assert trace.peak_live_bytes == 64 + 200 + 90
