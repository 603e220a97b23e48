"""Failed requests: every source keeps them, they count as served, and their life can be set."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runner import run_here

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
    between = [[r for r in range(row + 1, end) if r not in frees] for row, end in zip(rows, frees, strict=True)]
    assert [len(calls) for calls in between] == [
        4,
        4,
    ]  # 7,000 bytes are requested once only: as the ten objects of 100 bytes, the nearest size
    assert "each for 5 calls, as served objects of their sizes or the nearest" in failures_of(trace).life
    assert str(failures_of(trace)).startswith(
        "2 requests failed in the recording (1 x 100 B, 1 x 7,000 B), the first at call 60 with 0 B live: counted as "
        "served, "
    )


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
    with pytest.raises(hw.HeapwrightError, match="failed 3; must be 0, or 1 or 2 for a failed request"):
        Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0], failed=[3, 0])


def test_cuts_copies_and_futures_keep_the_mark() -> None:
    trace = served_and_failed()
    assert hw.cut(trace, first=len(trace)).failed.sum() == 2
    (copy,) = hw.copy_kinds.copies(trace, 1, kinds=[hw.copy_kinds.Sizes(0.1)])
    assert copy.failed.sum() == 2
    assert hw.resample(trace, 500).failed[: len(trace)].sum() == 2


def test_what_was_free_at_the_first_failure_is_known_with_the_size_of_the_heap(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("hw+ 0x1000 64 0\nhw+ 0x1040 100 1500000\nhw+ 0x0 5000 2500000\nhw- 0x1000 3000000\n")
    failures = failures_of(import_log(log, arena=4096))
    assert (failures.first, failures.first_seconds, failures.live_bytes, failures.free_bytes) == (2, 2.5, 164, 3932)
    assert "the first at call 2 (2.5 s) with 164 B live and 3,932 B of the heap free: counted as" in str(failures)
    assert failures_of(import_log(log)).free_bytes is None
    convert_log(log, tmp_path / "a.parquet", arena=4096)
    assert failures_of(Trace.read(tmp_path / "a.parquet")) == failures


def test_a_board_reports_the_size_of_its_heap(tmp_path: Path) -> None:
    records = [(0x20000000, 64 << 12), (0, 200 << 12)]
    lines = ["hw:000003e80000000000000080", *(f"hw#{word:08x}{rest:08x}" for word, rest in records)]
    (tmp_path / "a.log").write_text("\n".join([*lines, ""]))
    assert failures_of(import_log(tmp_path / "a.log")).free_bytes == 128 - 64


def test_another_life_is_a_what_if(tmp_path: Path) -> None:
    changed = hw.with_failed_life(served_and_failed(), 1000)
    assert (changed.changed, changed.peak_bytes_before, changed.peak_bytes) == (2, 7000, 7116)
    assert changed.says == "2 failed requests, each for 1,000 calls: peak 7,000 -> 7,116 B live"
    served = hw.Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0], name="t")
    with pytest.raises(hw.HeapwrightError, match="t: no request failed in the recording"):
        hw.with_failed_life(served, 3)
    served_and_failed().write(tmp_path / "t.parquet")
    printed = run_here("import", tmp_path / "t.parquet", "--failed-life", "1000", "-o", tmp_path / "u.parquet")
    assert printed.stdout.startswith(changed.says[:40])
    assert Trace.read(tmp_path / "u.parquet").peak_live_bytes == 7116


def test_fit_and_explore_name_the_life_and_what_sets_another(tmp_path: Path) -> None:
    with_life(served_and_failed()).write(tmp_path / "t.parquet")
    short, long = (hw.fit(tmp_path / "t.parquet", "tlsf", failed_life=life) for life in (0, 1000))
    assert short.reserve_bytes is not None and long.reserve_bytes is not None
    assert short.reserve_bytes < long.reserve_bytes
    assert long.failures is not None and long.failures.life == "each for 1,000 calls"
    run_here("import", tmp_path / "t.parquet", "--failed-life", "1000", "-o", tmp_path / "u.parquet")
    printed = run_here("fit", tmp_path / "u.parquet", "--heap", "tlsf")
    text = " ".join(printed.stdout.split())
    assert "2 requests failed in the recording (1 x 100 B, 1 x 7,000 B), the first at call 60" in text
    assert (
        "each for 1,000 calls; peak 7,116 B" in text
        and "heapwright import --failed-life CALLS sets another life." in text
    )
    study = hw.explore(tmp_path / "t.parquet", tmp_path / "t.duckdb", strategy="random", limit=5, future=1000)
    assert study.failures["t"].startswith("2 requests failed in the recording")
    for command in ("pareto", "report"):
        text = " ".join(run_here(command, study.path).stdout.split())
        assert "as served objects of their sizes or the nearest" in text
        assert "heapwright import --failed-life CALLS sets another life." in text


def test_profile_and_reports_say_what_failed(tmp_path: Path) -> None:
    trace = with_life(served_and_failed())
    trace.write(tmp_path / "t.parquet")
    assert hw.profile(trace)["failures"]["count"] == 2
    says = "2 requests failed in the recording (1 x 100 B, 1 x 7,000 B), the first at call 60 with 0 B live"
    assert says in " ".join(run_here("profile", tmp_path / "t.parquet").stdout.split())
    assert not run_here("report", tmp_path / "t.parquet", "-o", tmp_path / "page.html").returncode
    assert says in (tmp_path / "page.html").read_text()


def test_a_live_view_says_what_failed_while_it_happens(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("hw+ 0x1000 64\nhw+ 0x0 5000\nhw+ 0x2000 70\nhw+ 0x0 80\nhw- 0x1000\n")
    moments: list[hw.Moment] = []

    def going_on() -> bool:
        return not moments or moments[-1].calls < 7

    lived = hw.live(log, tmp_path / "t.parquet", every=0.01, show=moments.append, going_on=going_on)
    assert lived.last.failed == "2 requests of up to 5,000 B failed, the latest of 80 B at call 4"
    assert lived.trace.failures is not None and lived.trace.failures.count == 2


def test_a_failed_realloc_lives_as_long_as_the_object_that_it_should_have_resized(tmp_path: Path) -> None:
    calls = ["hw+ 0x1000 64", "hw+ 0x2000 8", "hw= 0x1000 0x0 500", "hw- 0x2000", "hw= 0x1000 0x3000 90", "hw- 0x3000"]
    log = tmp_path / "a.log"
    log.write_text("\n".join([*calls, "hw+ 0x4000 16", "hw= 0x4000 0x0 700", ""]))
    trace = import_log(log)
    assert trace.failed[trace.failed > 0].tolist() == [2, 2]
    objects = trace.objects()[0]
    ends = {}
    for row in [row for row in range(len(trace)) if trace.failed[row]]:
        freed = [later for later in range(len(trace)) if objects[later] == objects[row] and trace.op[later] == 3]
        ends[int(trace.size[row])] = (int(trace.op[freed[0] + 1]), int(trace.size[freed[0] + 1])) if freed else None
    assert ends == {500: (2, 90), 700: None}  # freed before the realloc that succeeds, and never
    assert with_life(trace).op.tolist() == trace.op.tolist()
    assert with_life(trace, 0).failed.max() == 1
    convert_log(log, tmp_path / "a.parquet")
    assert Trace.read(tmp_path / "a.parquet").failed.tolist() == trace.failed.tolist()


def test_a_request_that_is_repeated_does_not_pile_up(tmp_path: Path) -> None:
    """One object of 4,000 bytes stays, with 9,000 others: 200 requests of 4,000 that fail are repeated."""
    lines = ["hw+ 0x1000 4000", *(f"hw+ 0x{0x10000 + 0x1000 * at:x} 3000" for at in range(3))]
    for _ in range(200):
        lines += ["hw+ 0x5000 100", "hw+ 0x0 4000", "hw- 0x5000"]
    (tmp_path / "a.log").write_text("\n".join([*lines, ""]))
    trace = import_log(tmp_path / "a.log")
    served = 4000 + 3 * 3000 + 100
    assert trace.peak_live_bytes == served + 5 * 4000  # of the ten nearest in size five are live at once


def test_failed_requests_of_a_size_that_stays_pile_up(tmp_path: Path) -> None:
    lines = [f"hw+ 0x{0x1000 * at + 0x1000:x} 400" for at in range(20)]
    (tmp_path / "a.log").write_text("\n".join([*lines, *["hw+ 0x0 400"] * 30, ""]))
    assert import_log(tmp_path / "a.log").peak_live_bytes == 50 * 400
