"""Failed requests: every source keeps them, they count as served, and their life can be set."""

from __future__ import annotations

from pathlib import Path

import pytest

import heapwright as hw
from heapwright._traces.failures import failures_of, served_live_bytes, with_life
from heapwright._traces.logs import convert_log, import_log
from heapwright._traces.trace import Trace

LOGS = {
    "text": "hw+ 0x1000 64\nhw+ 0x0 5000\nhw- 0x1000\n",
    "mtrace": "= Start\n@ a:[0x1] + 0x1000 0x40\n@ a:[0x1] + (nil) 0x1388\n@ a:[0x1] - 0x1000\n= End\n",
    "rmm": "Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.1,allocate,0x1000,64,0x0\n"
    "1,10:00:00.2,allocate failure,(nil),5000,0x0\n1,10:00:00.3,free,0x1000,64,0x0\n",
    "valgrind": "--7-- malloc(64) = 0x1000\n--7-- malloc(5000) = 0x0\n--7-- free(0x1000)\n",
    "ltrace": "malloc(64) = 0x1000\nmalloc(5000) = 0\nfree(0x1000) = <void>\n",
    "kmem": "  a-1 [000] .... 1.000001: kmalloc: call_site=x ptr=00001000 bytes_req=64 bytes_alloc=64 gfp_flags=G\n"
    "  a-1 [000] .... 1.000002: kmalloc: call_site=x ptr=(null) bytes_req=5000 bytes_alloc=8192 gfp_flags=G\n"
    "  a-1 [000] .... 1.000003: kfree: call_site=x ptr=00001000\n",
}
"""64 bytes allocated and freed; between, 5,000 bytes that failed."""


@pytest.mark.parametrize("format_name", LOGS)
def test_a_failed_request_is_in_the_trace(format_name: str, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOGS[format_name])
    trace = import_log(log, format_name)
    assert (trace.size[trace.failed > 0].tolist(), trace.peak_live_bytes) == ([5000], 5064)
    converted = convert_log(log, tmp_path / "a.parquet", format_name)
    assert converted.failures is not None and converted.failures.count == 1
    read = Trace.read(tmp_path / "a.parquet")
    assert (read.failed.tolist(), read.op.tolist()) == (trace.failed.tolist(), trace.op.tolist())


def test_a_failed_realloc_asks_for_the_new_size_beside_the_old_block(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("hw+ 0x1000 64\nhw= 0x1000 0x0 5000\nhw- 0x1000\n")
    trace = import_log(tmp_path / "a.log")
    assert (trace.peak_live_bytes, failures_of(trace).sizes) == (5064, {5000: 1})
    assert served_live_bytes(trace).max() == 64


def test_a_request_of_no_bytes_that_returns_null_has_not_failed(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("hw+ 0x1000 64\nhw+ 0x0 0\nhw- 0x1000\n")
    assert not failures_of(import_log(tmp_path / "a.log"))


def served_and_failed() -> Trace:
    """Ten objects of 100 bytes, each of which lives 4 calls, and one request of 100 and one of 7 that failed."""
    op, id, size, failed = [], [], [], []
    for number in range(10):
        op += [0, 0, 3, 0, 3, 3]
        id += [number, 100 + number, 100 + number, 200 + number, 200 + number, number]
        size += [100, 8, 0, 8, 0, 0]
        failed += [0] * 6
    op += [0, 3, 0, 3, *[0, 3] * 10]
    id += [300, 300, 301, 301, *(400 + at // 2 for at in range(20))]
    size += [100, 0, 7000, 0, *[16, 0] * 10]
    failed += [1, 0, 1, 0, *[0] * 20]
    return Trace.from_columns(op=op, id=id, size=size, failed=failed, name="t")


def test_the_life_is_that_of_served_objects_of_the_size() -> None:
    trace = with_life(served_and_failed())
    objects, _ = trace.objects()
    rows = [row for row in range(len(trace)) if trace.failed[row]]
    frees = [next(r for r in range(len(trace)) if objects[r] == objects[row] and trace.op[r] == 3) for row in rows]
    without = [sum(not trace.failed[r] for r in range(row + 1, end)) for row, end in zip(rows, frees, strict=True)]
    assert without == [4, 0]  # 7,000 bytes are requested once only: freed at once
    assert "as served objects of their sizes" in failures_of(trace).life
    assert str(failures_of(trace)).startswith("2 requests failed in the recording (1 x 100 B, 1 x 7,000 B)")


@pytest.mark.parametrize(("life", "peak"), [(0, 7000), (2, 7100), (1000, 7116)])
def test_the_life_can_be_set(life: int, peak: int) -> None:
    trace = with_life(served_and_failed(), life)
    assert trace.peak_live_bytes == peak
    assert with_life(trace).op.tolist() == with_life(served_and_failed()).op.tolist(), "a set life is not for ever"
    with pytest.raises(hw.HeapwrightError, match="life -1: a number of calls, 0 or more"):
        with_life(trace, -1)


def test_a_reserve_serves_what_failed(tmp_path: Path) -> None:
    lines = [f"hw+ 0x{0x1000 + 0x200 * at:x} 400" for at in range(50)]
    for _ in range(20):
        lines += ["hw+ 0x90000 16717", "hw+ 0x0 16717", "hw- 0x90000"]
    (tmp_path / "a.log").write_text("\n".join(lines))
    trace = import_log(tmp_path / "a.log")
    reserve = hw.fit(trace, "freertos-heap4").reserve_bytes
    assert reserve is not None and reserve >= 50 * 400 + 2 * 16717
    served = Trace.from_columns(op=trace.op, id=trace.id, size=trace.size, name="served")
    assert hw.replay(served, "freertos-heap4", arena=reserve).metrics["failed"] == 0


def test_a_column_of_failures_is_checked() -> None:
    with pytest.raises(hw.HeapwrightError, match="failed 1; only a malloc or calloc fails"):
        Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0], failed=[0, 1])
    with pytest.raises(hw.HeapwrightError, match="failed 2; must be 0, or 1 for a failed request"):
        Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0], failed=[2, 0])


def test_cuts_copies_and_futures_keep_the_mark() -> None:
    trace = served_and_failed()
    assert hw.cut(trace, first=len(trace)).failed.sum() == 2
    (copy,) = hw.copy_kinds.copies(trace, 1, kinds=[hw.copy_kinds.Sizes(0.1)])
    assert copy.failed.sum() == 2
    assert hw.resample(trace, 500).failed[: len(trace)].sum() == 2
