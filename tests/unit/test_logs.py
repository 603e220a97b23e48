"""Logs of heap calls, written as each format's own sources print them, become calls on objects."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard
from heap_logs import INTERPRETED, LOGS, LTTNG, MTRACE, VALGRIND, board_dump, board_lines

import heapwright as hw
from heapwright.errors import HeapwrightError
from heapwright.traces.logs import FORMATS, import_log, log_format
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, REALLOC


def imported(folder: Path, text: str | bytes, format_name: str | None = None) -> Trace:
    log = folder / "app.log"
    log.write_bytes(text.encode() if isinstance(text, str) else text)
    return import_log(log, format_name)


def calls(trace: Trace) -> list[tuple[int, int, int]]:
    """(op, object, size), 0 for that of a free."""
    return [
        (int(op), int(number), 0 if op == FREE else int(size))
        for op, number, size in zip(trace.op, trace.objects()[0], trace.size, strict=True)
    ]


EXPECTED = {
    "text": [(MALLOC, 0, 24), (MALLOC, 1, 100), (REALLOC, 0, 48), (FREE, 1, 0), (FREE, 0, 0)],
    "board": [
        (MALLOC, 0, 24),
        (CALLOC, 1, 15 + (2 << 20)),
        (MALLOC, 2, 40),
        (REALLOC, 0, 48),
        (FREE, 0, 0),
        (FREE, 2, 0),
    ],
    "valgrind": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 100),
        (MALLOC, 2, 128),
        (REALLOC, 0, 48),
        (FREE, 1, 0),
        (MALLOC, 3, 9),
        (CALLOC, 4, 15),
        (FREE, 0, 0),
    ],
    "ltrace": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 16),
        (REALLOC, 0, 48),
        (CALLOC, 2, 21),
        (MALLOC, 3, 72),
        (FREE, 3, 0),
        (FREE, 1, 0),
    ],
    "mtrace": [(MALLOC, 0, 24), (REALLOC, 0, 48), (FREE, 0, 0)],
    "heaptrack": [(MALLOC, 0, 24), (MALLOC, 1, 100), (FREE, 0, 0), (FREE, 1, 0)],
    "malloclab": [(MALLOC, 0, 512), (MALLOC, 1, 128), (REALLOC, 0, 640), (FREE, 1, 0), (FREE, 0, 0)],
    "rmm": [(MALLOC, 0, 256), (FREE, 0, 0)],
    "kmem": [(MALLOC, 0, 640), (MALLOC, 1, 232), (FREE, 0, 0), (FREE, 1, 0)],
    "lttng": [(MALLOC, 0, 24), (CALLOC, 1, 15), (REALLOC, 0, 48), (MALLOC, 2, 128), (FREE, 0, 0)],
    "esp-idf": [(MALLOC, 0, 24), (FREE, 0, 0), (MALLOC, 1, 48), (MALLOC, 2, 16), (FREE, 2, 0)],
    "nuttx": [(MALLOC, 0, 24), (FREE, 0, 0)],
    "bytehound": [(MALLOC, 0, 24), (MALLOC, 1, 100), (REALLOC, 0, 48), (FREE, 1, 0)],
}


def test_every_format_has_a_log_here() -> None:
    assert LOGS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", LOGS)
def test_the_format_is_found_and_the_calls_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    trace = imported(tmp_path, LOGS[name])
    assert trace.metadata["recorder"] == name
    assert calls(trace) == EXPECTED[name]


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("text", [0, 500, 800, 1000, 1000]),
        ("board", [0, 7171, 7173, 7174, 7175, 7175]),
        ("ltrace", [0, 2, 3, 5, 6, 7, 8]),
        ("heaptrack", [0, 10_000, 10_000, 10_000]),
        ("rmm", [0, 200]),
        ("kmem", [0, 50, 100, 150]),
        ("lttng", [0, 1, 2, 3, 4]),
        ("nuttx", [0, 1000]),
        ("bytehound", [0, 10, 20, 30]),
        ("valgrind", [-1] * 8),
    ],
)
def test_times_are_microseconds_since_the_first_call(name: str, times: list[int], tmp_path: Path) -> None:
    assert imported(tmp_path, LOGS[name]).ts_us.tolist() == times


@pytest.mark.parametrize(
    ("name", "threads"),
    [
        ("text", [0, 1, 1, 1, 1]),
        ("board", [0, 0, 1, 1, 1, 1]),
        ("ltrace", [0, 0, 1, 0, 0, 0, 0]),
        ("rmm", [0, 1]),
        ("lttng", [0, 1, 0, 0, 0]),
    ],
)
def test_threads_are_numbered_in_order_of_appearance(name: str, threads: list[int], tmp_path: Path) -> None:
    assert imported(tmp_path, LOGS[name]).tid.tolist() == threads


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("before", [0, 5, 12])
def test_a_dump_of_a_boards_ring_is_as_its_lines(order: str, before: int, tmp_path: Path) -> None:
    trace = imported(tmp_path, board_dump(order, before))
    lines = imported(tmp_path, LOGS["board"])
    assert trace.metadata["recorder"] == "board"
    assert (calls(trace), trace.ts_us.tolist()) == (calls(lines), lines.ts_us.tolist())


def test_what_a_board_lost_goes_with_the_trace(tmp_path: Path) -> None:
    for log in (board_lines(3), board_dump(lost=3)):
        assert imported(tmp_path, log).metadata["caveats"] == "3 calls were lost on the board, whose ring was full"
    assert imported(tmp_path, board_lines(ticks_per_second=0)).ts_us.tolist() == [-1] * 6


def test_a_dump_of_half_a_ring_keeps_what_is_sound(tmp_path: Path) -> None:
    trace = imported(tmp_path, board_dump()[: 32 + 8 * 4])
    assert calls(trace) == EXPECTED["board"][:2]
    assert trace.repairs == ("the log is cut, and what is sound was read: the ring is not whole",)
    for damaged in (board_dump()[:4] + bytes(4) + board_dump()[8:], board_dump()[:20]):
        with pytest.raises(HeapwrightError, match="no call that its format has"):
            imported(tmp_path, damaged)


def test_alignments_and_sites_are_kept(tmp_path: Path) -> None:
    assert imported(tmp_path, VALGRIND).align.tolist() == [0, 0, 64, 0, 0, 0, 0, 0]
    assert imported(tmp_path, LTTNG).align.tolist() == [0, 0, 0, 64, 0]
    trace = imported(tmp_path, MTRACE)
    assert [trace.sites[site] for site in trace.site] == [
        "./app:(main+0x16)[0x401156]",
        "./app:(grow+0x20)[0x401180]",
        "./app:(main+0x40)[0x401199]",
    ]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    trace = imported(tmp_path, VALGRIND)
    assert trace.repairs == ("frees of blocks allocated before the log, left out: 1",)
    assert "1 smaller process of the log left out" in trace.metadata["caveats"]
    lost = imported(tmp_path, "hw+ 0x10 8\nhw+ 0x10 9\nhw= 0x30 0x40 50\nhw+ 0x70 oops\n")
    assert calls(lost) == [(MALLOC, 0, 8), (FREE, 0, 0), (MALLOC, 1, 9), (MALLOC, 2, 50)]
    assert lost.repairs == (
        "blocks allocated before the log, counted from their realloc: 1",
        "frees missing in the log, put where the address was given out again: 1",
        "lines or records that make no sense, left out: 1",
    )


def test_what_a_log_cannot_tell_goes_with_the_trace(tmp_path: Path) -> None:
    imported(tmp_path, INTERPRETED).write(tmp_path / "app.parquet")
    notes = hw.read_trace(tmp_path / "app.parquet").notes
    assert any("the youngest of its size and place" in note for note in notes)
    assert calls(imported(tmp_path, INTERPRETED)) == [
        (MALLOC, 0, 24),
        (MALLOC, 1, 100),
        (MALLOC, 2, 24),
        (FREE, 2, 0),
        (FREE, 0, 0),
        (FREE, 1, 0),
    ]


def test_a_realloc_that_fails_changes_nothing_and_one_to_nothing_frees(tmp_path: Path) -> None:
    trace = imported(tmp_path, "hw+ 16 8\nhw= 16 0 99\nhw= 16 32 24\nhw= 32 0 0\nhw- 32\n")
    assert calls(trace) == [(MALLOC, 0, 8), (REALLOC, 0, 24), (FREE, 0, 0)]


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"bytehound"}))
def test_a_last_line_that_is_cut_is_left_out(name: str, tmp_path: Path) -> None:
    log = LOGS[name]
    text = log if isinstance(log, bytes) else log.encode()
    whole = calls(imported(tmp_path, text))
    for cut in range(1, text.rstrip().rfind(b"\n") - text.find(b"\n"), 7):
        try:
            found = calls(imported(tmp_path, text[:-cut], name))
        except HeapwrightError:
            continue
        if name != "esp-idf":  # which frees at the end
            assert found == whole[: len(found)]


@pytest.mark.parametrize(
    "compress", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "xz", "zstd"]
)
def test_compressed_logs_are_read_and_of_damaged_ones_what_is_sound(compress: type, tmp_path: Path) -> None:
    lines = "".join(f"hw+ {number * 64} {number * number % 977}\n" for number in range(1, 30_000))
    packed = compress(lines.encode())
    assert len(imported(tmp_path, packed)) == 29_999
    part = imported(tmp_path, packed[: len(packed) * 2 // 3])
    assert 5_000 < len(part) < 29_999
    assert part.repairs[0].startswith("the log is cut, and what is sound was read: ")
    assert calls(part) == [(MALLOC, number - 1, number * number % 977) for number in range(1, len(part) + 1)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"dhatFileVersion":2,"mode":"heap"}', "DHAT"),
        ("desc: (none)\ncmd: ./app\ntime_unit: i\n", "massif"),
        ("heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "jemalloc's heap profile"),
        ("memray\0\0\0", "memray"),
    ],
)
def test_logs_that_sum_calls_up_are_refused_by_name(text: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match=f"{name} sums calls up"):
        imported(tmp_path, text)


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("time,length\n0.1,60\n")
    assert log_format(tmp_path / "a") is None
    with pytest.raises(HeapwrightError, match="no log of heap calls; formats: text, board, valgrind"):
        import_log(tmp_path / "a")
    with pytest.raises(HeapwrightError, match="no call that its format has"):
        import_log(tmp_path / "a", "mtrace")
    with pytest.raises(HeapwrightError, match="'dhat' is no format of logs"):
        import_log(tmp_path / "a", "dhat")
