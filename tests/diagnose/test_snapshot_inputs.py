"""Snapshots: lists of blocks in several forms, one or two, and what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

import heapwright as hw
from heapwright._diagnose.snapshot_rules import judge
from heapwright._diagnose.snapshots import snapshots_in


def esp(sizes: list[tuple[int, bool]], start: int = 0x3F8031E4) -> list[str]:
    lines = ["Showing data for heap: 0x3f802968"]
    for size, used in sizes:
        lines.append(f"Block {start:#x} data, size: {size} bytes, Free: {'No' if used else 'Yes'}")
        start += size + 4
    return lines


FRAGMENTED = [(100, True), (900, False), (40, True), (900, False), (100, True), (900, False), (100, True)]
SOUND = [(100, True), (200, True), (5000, False), (64, True)]


def test_blocks_of_esp_idf_are_read_by_heap() -> None:
    (item,) = snapshots_in(esp(SOUND))
    assert [(block.size, block.used) for block in item.blocks] == SOUND
    assert item.memory == "heap 0x3f802968"


def test_holes_that_small_blocks_keep_apart_are_fragmentation() -> None:
    finding = judge(snapshots_in(esp(FRAGMENTED)))[0]
    assert (finding.kind, finding.confidence) == ("fragmentation", "sure")
    assert "2,700 B are free in 3 blocks, the largest of 900 B" in finding.sentence
    assert "1 block of 40 B at 0x3f8035d4 keeps 1,800 free B apart" in finding.sentence


def test_one_sound_snapshot_shows_no_leak() -> None:
    finding = judge(snapshots_in(esp(SOUND)))[0]
    assert (finding.kind, finding.confidence) == ("nothing wrong", "inconclusive")


def test_a_full_heap_is_too_small() -> None:
    finding = judge(snapshots_in(esp([(5000, True), (40, False), (5000, True), (60, True)])))[0]
    assert (finding.kind, finding.confidence) == ("too small", "likely")


def nuttx(blocks: list[tuple[int, int, str]], state: str = "used") -> list[str]:
    rows = [f"[ 5286.76] [ 9] [  INFO] [ap]     35 {size:11d} {address:#x} {sites}" for address, size, sites in blocks]
    return [
        f"[ 5286.76] [ 9] [  INFO] [ap] Dump all {state} memory node info:",
        "   PID   Size  Address Backtrace",
        *rows,
    ]


def test_two_memdumps_name_what_grew_and_where() -> None:
    first = [(0x1000 + 64 * at, 64, "0x2c5b0ef6 0x2c5a9bee") for at in range(5)]
    last = [(0x1000 + 64 * at, 64, "0x2c5b0ef6 0x2c5a9bee") for at in range(20)]
    finding = judge(snapshots_in([*nuttx(first), *nuttx(last)]))[0]
    assert (finding.kind, finding.confidence) == ("leak", "likely")
    assert "15 more objects of 64 B from 0x2c5b0ef6 0x2c5a9bee" in finding.sentence


def test_objects_that_come_and_go_did_not_leak() -> None:
    first = [(0x1000 + 64 * at, 64, "0x2c5b0ef6") for at in range(10)]
    last = [(0x8000 + 64 * at, 64, "0x2c5b0ef6") for at in range(20)]
    assert judge(snapshots_in([*nuttx(first), *nuttx(last)]))[0].kind != "leak"


def test_used_blocks_alone_leave_holes_that_are_not_certain() -> None:
    blocks = [(0x1000, 64, ""), (0x2000, 64, ""), (0x3000, 64, ""), (0x4000, 64, "")]
    finding = judge(snapshots_in(nuttx(blocks)))[0]
    assert (finding.kind, finding.confidence) == ("fragmentation", "likely")


def test_lists_of_used_and_of_free_blocks_are_one_snapshot() -> None:
    used, free = [(0x1000, 4096, ""), (0x3000, 4096, "")], [(0x2000, 4096, ""), (0x4000, 8192, "")]
    (item,) = snapshots_in([*nuttx(used), *[line.replace("    35 ", "") for line in nuttx(free, "free")]])
    assert [block.used for block in item.whole()] == [True, False, True, False]


@pytest.mark.parametrize(
    "line",
    [
        "{address:#x} |    {size}   |  {state} |   0   | os/fs/inode/fs_inodereserve.c:117",
        "{state} block at {address:#010x}, size {size}",
        "{address:#x}: {size} bytes {state}",
    ],
)
def test_lines_in_any_wording_whose_blocks_follow_each_other_are_a_snapshot(line: str) -> None:
    start, lines = 0x2025BA0, []
    for size, used in FRAGMENTED:
        lines.append(line.format(address=start, size=size, state="Alloc" if used else "Free"))
        start += size
    (item,) = snapshots_in(lines)
    assert [(block.size, block.used) for block in item.blocks] == FRAGMENTED


def test_calls_are_no_snapshot() -> None:
    lines = [f"Allocated 640 Bytes at {address:#x}" for address in (0x20003000, 0x20005000, 0x20001000, 0x20008000)]
    assert snapshots_in(lines) == []


def test_leaks_that_each_of_several_dumps_repeats_are_likely(tmp_path: Path) -> None:
    dump = """====== Heap Trace: 2 records (1000 capacity) ======
  1024 bytes (@ 0x3ffd6614, Internal) allocated CPU 0 ccount 0x3bbfc1f4 caller 0x400d8a10:0x400d8c2e
    96 bytes (@ 0x3ffd6674, Internal) allocated CPU 0 ccount 0x3bbff2f4 caller 0x400d8a34:0x400d8c52
Mode: Heap Trace Leaks
1120 bytes 'leaked' in trace (2 allocations)
total allocations: 613
total frees: 611
"""
    path = tmp_path / "dumps.log"
    for dumps, confidence in ((4, "likely"), (1, "inconclusive")):
        path.write_text(dump * dumps)
        result = hw.diagnose(path)
        assert (result.kind, result.finding.confidence) == ("leak", confidence)
    path.write_text(dump * 4)
    assert "(4 times, in 4 dumps)" in hw.diagnose(path).sentence
