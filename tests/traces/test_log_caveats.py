"""What logs of each format cannot show, said with every trace that is made of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from heap_logs import LOGS

import heapwright as hw
from heapwright._traces.logs.functions import note_call
from heapwright._traces.logs.history import LogHistory

CANNOT_TELL = {
    "valgrind": ["no times", "no threads", "1 smaller process of the log left out"],
    "ltrace": [
        "calls of libraries among themselves may be missing",
        "posix_memalign is logged without its address, so its objects are missing",
        "processes that share a log count as threads",
    ],
    "mtrace": ["no times", "no threads", "calloc and aligned calls are logged as malloc"],
    "heaptrack": ["no threads", "times in whole milliseconds", "realloc is recorded as a free and a malloc"],
    "malloclab": ["no times", "no threads"],
    "rmm": ["streams are left out"],
    "kmem": ["krealloc is recorded as a free and a malloc", "whole pages are not recorded"],
    "lttng": ["aligned_alloc is not logged", "calls of LTTng itself are logged, too"],
    "perf": [
        "posix_memalign is logged without its address, so its objects are missing",
        "12 events were lost while they were recorded; give perf record more room (-m)",
    ],
    "bpftrace": [
        "1 smaller process of the log left out",
        "bpftrace lost 12 events; give it more room (BPFTRACE_PERF_RB_PAGES)",
    ],
    "esp-idf": [
        "when a block was freed is not in the dump: its free stands where its address is used again, or at the end",
        "no times",
    ],
    "nuttx": ["sizes are those of blocks, rounded and with their headers"],
    "sysview": [
        "5 packets were lost on the board, whose buffer was full",
        "sizes are as the heap reports them, which are block sizes by SystemView's manual",
        "sizes are reported in units of 4 bytes, rounded down",
    ],
    "tracealyzer": [
        "sizes are as the heap reports them, which are block sizes in FreeRTOS's heap_2, heap_4 and heap_5"
    ],
    "bytehound": ["no threads"],
}


@pytest.mark.parametrize("name", LOGS)
def test_what_a_format_cannot_tell_is_said_of_each_of_its_traces(name: str, tmp_path: Path) -> None:
    log, path = LOGS[name], tmp_path / "app.log"
    path.write_bytes(log.encode() if isinstance(log, str) else log)
    trace = hw.import_log(path)
    assert trace.metadata["recorder"] == name
    assert list(trace.caveats) == CANNOT_TELL.get(name, [])


def test_a_call_of_each_function_is_told_with_all_bytes_of_its_arguments() -> None:
    history = LogHistory()
    calls = [("malloc", [24], 16), ("calloc", [3, 7], 64), ("aligned_alloc", [32, 40], 96), ("realloc", [16, 48], 160),
             ("reallocarray", [160, 6, 10], 256), ("free", [64], 0)]  # fmt: skip
    assert all(note_call(history, name, numbers, result) for name, numbers, result in calls)
    assert not any(note_call(history, name, numbers[:-1], result) for name, numbers, result in calls)
    trace = history.trace("app", {})
    assert trace.size.tolist() == [24, 21, 40, 48, 60, 0]
