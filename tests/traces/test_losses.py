"""Lines in which tools report what a log lacks: each is found, in any format."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import convert_log, import_log
from heapwright._traces.logs.losses import Losses

LINES = {
    "CPU:1 [LOST 840 EVENTS]": 840,  # kernel/trace/trace_output.c
    "# entries-in-buffer/entries-written: 4/844   #P:2": 840,  # kernel/trace/trace.c
    "CPU 1: 4211 events lost": 4211,  # trace-cmd report
    "          <...>-12 [001] [12 EVENTS DROPPED]": 12,  # trace-cmd
    "0 0x2b8 [0x28]: PERF_RECORD_LOST: id:5: lost:4211": 4211,  # perf script --show-lost-events
    "     swapper 0 [000] 12.3: PERF_RECORD_LOST lost 7": 7,
    "Processed 100 events and lost 3 chunks!": 3,  # perf
    "[warning] Tracer discarded 4211 events between [10:00:00.1] and [10:00:00.2] in trace UUID": 4211,  # babeltrace
    "WARNING: Tracer may have discarded events": 0,
    "--- 12 messages dropped ---": 12,  # Zephyr, subsys/logging/log_output.c
    "Jan  1 10:00:00 host last message repeated 3 times": 3,  # syslogd
    "kernel: net_ratelimit: 27 callbacks suppressed": 27,  # printk
    "systemd-journald[1]: Suppressed 99 messages from app.service": 99,
    "ring buffer overflow": 0,
    "trace: 512 records were overwritten": 512,
    "dropped 5 events": 5,
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_reports_a_loss_is_found_with_its_count(line: str) -> None:
    losses = Losses()
    losses.look(line.encode())
    assert (losses.lines, losses.events) == (1, LINES[line])
    assert line.strip()[:80] in str(losses)


@pytest.mark.parametrize("line", LINES)
def test_a_log_with_such_a_line_says_so(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"hw+ 0x10 8\n{line}\nhw- 0x10\n")
    trace = import_log(tmp_path / "a.log")
    assert trace.metadata["caveats"].startswith("the log reports")
    assert "lost" in convert_log(tmp_path / "a.log", tmp_path / "a.parquet").caveats[0]


@pytest.mark.parametrize("line", ["lost and found", "malloc(8) = 0x10", "task dropped its lock", "connection lost"])
def test_other_lines_are_none(line: str) -> None:
    losses = Losses()
    losses.look(line.encode())
    assert not losses.lines and str(losses) == ""


ESP = """====== Heap Trace: 3 records (100 capacity) ======
   160 bytes (@ 0x3fc92000, Internal) allocated CPU 0 ccount 0x0c000100 caller 0x42010000:0x42020000
 49152 bytes (@ 0x3c0b0000, PSRAM) allocated CPU 0 ccount 0x0c000200 caller 0x42010000:0x42020000
   240 bytes (@ 0x3fc93000, Internal) allocated CPU 1 ccount 0x0c000301 caller 0x42010000:0x42020000
====== Heap Trace Summary ======
Mode: Heap Trace All
total allocations: 3
total frees: 0
"""


def test_two_memories_of_a_dump_are_two_traces(tmp_path: Path) -> None:
    (tmp_path / "esp.log").write_text(ESP)
    assert import_log(tmp_path / "esp.log").peak_live_bytes == 400
    assert import_log(tmp_path / "esp.log", heap="PSRAM").peak_live_bytes == 49152
    assert "this trace is of Internal; others: PSRAM (1 call)" in import_log(tmp_path / "esp.log").metadata["caveats"]
    with pytest.raises(HeapwrightError, match="no heap 'DTCM' in it; heaps: Internal, PSRAM"):
        import_log(tmp_path / "esp.log", heap="DTCM")


def test_a_dump_of_leaks_mode_is_no_trace(tmp_path: Path) -> None:
    leaks = ESP.replace("Heap Trace All", "Heap Trace Leaks").replace("allocations: 3", "allocations: 4821")
    leaks = (
        leaks.replace("frees: 0", "frees: 4790")
        + "(NB: Internal Buffer has overflowed, so trace data is incomplete.)\n"
    )
    (tmp_path / "esp.log").write_text(leaks)
    with pytest.raises(HeapwrightError) as error:
        import_log(tmp_path / "esp.log")
    assert "leaks mode, not a trace: it holds 3 of 4,821 allocations (31 not freed), and its buffer" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("3 records", "5 records", "the dump says 5 records and has 3: it is cut or damaged"),
        ("====== Heap Trace Summary ======", "", "the dump has no summary: it is cut"),
        ("total frees: 0", "(NB: Buffer has overflowed", "the buffer of the dump overflowed: 3 of 3 allocations"),
    ],
)
def test_a_dump_that_lacks_something_says_so(old: str, new: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "esp.log").write_text(ESP.replace(old, new))
    assert says in import_log(tmp_path / "esp.log").metadata["caveats"]


def test_a_dump_of_a_risc_v_chip_has_no_callers(tmp_path: Path) -> None:
    record = "    24 bytes (@ 0x3fc90a10, Internal) allocated CPU 0 ccount 0x00a1b010"
    (tmp_path / "esp.log").write_text(f"{record} freed\n{record.replace('a10', 'a40')}\n")
    trace = import_log(tmp_path / "esp.log")
    assert (trace.op.tolist(), trace.sites) == ([0, 0, 3], ("",))


def test_two_heaps_of_nuttx_are_kept_apart(tmp_path: Path) -> None:
    line = "  init-1   [0]   1.00{at}: tracing_mark_write: C|1|Heap Usage|0|malloc: heap: {heap} size: {size}, "
    line += "address: {at}00"
    lines = [line.format(at=1, heap="0x100", size=24), line.format(at=2, heap="0x200", size=5000)]
    lines.append(line.format(at=3, heap="0x100", size=32))
    (tmp_path / "n.log").write_text("\n".join(lines) + "\n")
    assert import_log(tmp_path / "n.log").peak_live_bytes == 56
    assert import_log(tmp_path / "n.log", heap="0x200").peak_live_bytes == 5000
