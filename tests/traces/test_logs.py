"""Logs of heap calls, written as each format's own sources print them, become calls on objects."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard
from heap_logs import (
    ESP_IDF,
    INTERPRETED,
    LOGS,
    LTTNG,
    VALGRIND,
    board_dump,
    board_lines,
)

import heapwright as hw
from heapwright._support import parquet
from heapwright._support.errors import HeapwrightError
from heapwright._traces import tables
from heapwright._traces.logs import (
    FORMATS,
    convert_log,
    history,
    import_log,
    log_format,
)
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC


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
        (MALLOC, 3, 1000),  # failed
        (FREE, 3, 0),
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
    "rmm": [(MALLOC, 0, 256), (MALLOC, 1, 4096), (FREE, 0, 0)],
    "kmem": [(MALLOC, 0, 640), (MALLOC, 1, 232), (FREE, 0, 0), (FREE, 1, 0)],
    "lttng": [(MALLOC, 0, 24), (CALLOC, 1, 15), (REALLOC, 0, 48), (MALLOC, 2, 128), (FREE, 0, 0)],
    "esp-idf": [(MALLOC, 0, 24), (FREE, 0, 0), (MALLOC, 1, 48), (MALLOC, 2, 16), (FREE, 2, 0)],
    "perf": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 16),
        (REALLOC, 0, 48),
        (MALLOC, 2, 77),
        (MALLOC, 3, 128),
        (CALLOC, 4, 21),
        (FREE, 0, 0),
        (FREE, 1, 0),
    ],
    "bpftrace": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 16),
        (REALLOC, 0, 48),
        (MALLOC, 2, 128),
        (CALLOC, 3, 21),
        (FREE, 0, 0),
        (FREE, 1, 0),
    ],
    "nuttx": [(MALLOC, 0, 24), (FREE, 0, 0)],
    "sysview": [(MALLOC, 0, 24), (MALLOC, 1, 100), (FREE, 0, 0), (FREE, 1, 0)],
    "tracealyzer": [(MALLOC, 0, 32), (MALLOC, 1, 104), (FREE, 0, 0), (FREE, 1, 0)],
    "bytehound": [(MALLOC, 0, 24), (MALLOC, 1, 100), (REALLOC, 0, 48), (FREE, 1, 0)],
    "calls-csv": [(MALLOC, 0, 24), (MALLOC, 1, 100), (FREE, 0, 0)],
}


def test_every_format_has_a_log_here() -> None:
    assert LOGS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", LOGS)
def test_the_format_is_found_and_the_calls_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    trace = imported(tmp_path, LOGS[name])
    assert trace.metadata["recorder"] == name
    assert trace.metadata.get("allocator") == {"esp-idf": "espressif-tlsf", "nuttx": "nuttx-mm"}.get(name)
    assert calls(trace) == EXPECTED[name]


def test_the_heap_of_esp_idf_is_that_of_its_arena(tmp_path: Path) -> None:
    """A quarter more than what is live at once: 200,000 bytes are of the lists up to 256 KB, 220,000 beyond."""
    for size, heap in ((200_000, "espressif-tlsf"), (220_000, "espressif-tlsf-large")):
        trace = imported(tmp_path, ESP_IDF.replace("48 bytes", f"{size} bytes"))
        assert trace.peak_live_bytes >= size
        assert trace.metadata["allocator"] == heap


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("text", [0, 500, 800, 1000, 1000]),
        ("board", [0, 7171, 7173, 7174, 7175, 7175, 7175, 7175]),
        ("ltrace", [0, 2, 3, 5, 6, 7, 8]),
        ("heaptrack", [0, 10_000, 10_000, 10_000]),
        ("rmm", [0, 100, 200]),
        ("kmem", [0, 50, 100, 150]),
        ("lttng", [0, 1, 2, 3, 4]),
        ("perf", [0, 3, 4, 8, 11, 14, 15, 16]),
        ("bpftrace", [0, 2, 3, 4, 5, 6, 7]),
        ("nuttx", [0, 1000]),
        ("sysview", [0, 300, 340, 350]),
        ("tracealyzer", [0, 512, 768, 1024]),
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
        ("board", [0, 0, 1, 1, 1, 1, 1, 1]),
        ("ltrace", [0, 0, 1, 0, 0, 0, 0]),
        ("rmm", [0, 1, 1]),
        ("kmem", [0, 0, 1, 1]),
        ("lttng", [0, 1, 0, 0, 0]),
        ("perf", [0, 1, 0, 0, 0, 0, 1, 0]),
        ("bpftrace", [0, 1, 0, 0, 0, 1, 0]),
        ("esp-idf", [0, 0, 1, 0, 0]),
        ("nuttx", [0, 1]),
        ("sysview", [0, 1, 0, 0]),
        ("tracealyzer", [0, 1, 1, 1]),
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
    assert imported(tmp_path, board_lines(ticks_per_second=0)).ts_us.tolist() == [-1] * 8


def test_a_dump_of_half_a_ring_keeps_what_is_sound(tmp_path: Path) -> None:
    trace = imported(tmp_path, board_dump()[: 32 + 8 * 4])
    assert calls(trace) == EXPECTED["board"][:2]
    assert trace.repairs == ("the log is cut, and what is sound was read: the ring is not whole",)
    for damaged in (board_dump()[:4] + bytes(4) + board_dump()[8:], board_dump()[:20]):
        with pytest.raises(HeapwrightError, match="no call in its format"):
            imported(tmp_path, damaged)


def test_alignments_and_sites_are_kept(tmp_path: Path) -> None:
    assert imported(tmp_path, VALGRIND).align.tolist() == [0, 0, 64, 0, 0, 0, 0, 0]
    assert imported(tmp_path, LTTNG).align.tolist() == [0, 0, 0, 64, 0]
    output = {
        "mtrace": ["./app:(main+0x16)[0x401156]", "./app:(grow+0x20)[0x401180]", "./app:(main+0x40)[0x401199]"],
        "kmem": ["alloc_skb+0x4f/0x190", "skb_clone+0x20", "skb_release_data+0x104", "kfree_skbmem"],
        "esp-idf": [*["0x400d1000:0x400d2000"] * 2, "0x400d1100:0x400d2000", "0x400d1000:0x400d2000", ""],
    }
    for name, sites in output.items():
        trace = imported(tmp_path, LOGS[name])
        assert [trace.sites[site] for site in trace.site] == sites, name


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    trace = imported(tmp_path, VALGRIND)
    assert trace.repairs == ("frees of blocks allocated before the log, left out: 1",)
    assert "1 smaller process of the log left out" in trace.metadata["caveats"]
    lost = imported(tmp_path, "hw+ 0x10 8\nhw+ 0x10 9\nhw= 0x30 0x40 50\nhw+ 0x70 oops\n")
    assert calls(lost) == [(MALLOC, 0, 8), (FREE, 0, 0), (MALLOC, 1, 9), (MALLOC, 2, 50)]
    assert lost.repairs == (
        "blocks allocated before the log, counted from their realloc: 1",
        "frees missing in the log, inserted where the address is allocated again: 1",
        "lines or records that make no sense, left out: 1",
    )


def test_what_a_log_cannot_tell_goes_with_the_trace(tmp_path: Path) -> None:
    imported(tmp_path, INTERPRETED).write(tmp_path / "app.parquet")
    notes = hw.read_trace(tmp_path / "app.parquet").notes
    assert any("the newest of the same size and call site" in note for note in notes)
    assert calls(imported(tmp_path, INTERPRETED)) == [
        (MALLOC, 0, 24),
        (MALLOC, 1, 100),
        (MALLOC, 2, 24),
        (FREE, 2, 0),
        (FREE, 0, 0),
        (FREE, 1, 0),
    ]


def test_a_realloc_that_fails_leaves_its_object_and_one_to_nothing_frees(tmp_path: Path) -> None:
    trace = imported(tmp_path, "hw+ 16 8\nhw= 16 0 99\nhw= 16 32 24\nhw= 32 0 0\nhw- 32\n")
    served = [(MALLOC, 0, 8), (MALLOC, 1, 99), (FREE, 1, 0), (REALLOC, 0, 24), (FREE, 0, 0)]
    assert calls(trace) == served
    assert trace.failed.tolist() == [0, 2, 0, 0, 0]


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"bytehound", "sysview", "tracealyzer"}))
def test_a_last_line_that_is_cut_is_left_out(name: str, tmp_path: Path) -> None:
    log = LOGS[name]
    text = log if isinstance(log, bytes) else log.encode()
    whole = calls(imported(tmp_path, text))
    for cut in range(1, text.rstrip().rfind(b"\n") - text.find(b"\n"), 7):
        try:
            result = calls(imported(tmp_path, text[:-cut], name))
        except HeapwrightError:
            continue
        if name not in ("esp-idf", "bpftrace"):  # the first frees at the end, the second is put in order
            assert result == whole[: len(result)]


@pytest.mark.parametrize("name", ["sysview", "tracealyzer"])
def test_of_a_stream_that_is_cut_anywhere_all_is_read_that_is_whole(name: str, tmp_path: Path) -> None:
    stream = LOGS[name]
    assert isinstance(stream, bytes)
    lengths = set()
    for length in range(1, len(stream) + 1):
        try:
            result = calls(imported(tmp_path, stream[:length], name))
        except HeapwrightError:
            continue
        assert result == EXPECTED[name][: len(result)]
        lengths.add(len(result))
    assert lengths == {1, 2, 3, 4}


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"bytehound", "sysview", "tracealyzer"}))
def test_lines_of_other_programs_between_those_of_a_log_are_passed_over(name: str, tmp_path: Path) -> None:
    log = LOGS[name]
    lines = (log if isinstance(log, bytes) else log.encode()).splitlines(keepends=True)
    head = {"malloclab": 4, "heaptrack": 2}.get(name, 1)
    others = [b"hello\n", b"\0\xff\xfe\n", b"GET / HTTP/1.1\r\n", b"\n", b"= malloc free 0x\n"]
    mixed = b"".join(line + others[place % len(others)] for place, line in enumerate(lines[head:]))
    assert calls(imported(tmp_path, b"".join(lines[:head]) + mixed)) == EXPECTED[name]


@pytest.mark.parametrize(
    "compress", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "xz", "zstd"]
)
def test_compressed_logs_are_read_and_of_damaged_ones_what_is_sound(compress: type, tmp_path: Path) -> None:
    lines = "".join(f"hw+ {number * 1024} {number * number % 977}\n" for number in range(1, 30_000))
    packed = compress(lines.encode())
    assert len(imported(tmp_path, packed)) == 29_999
    part = imported(tmp_path, packed[: len(packed) * 2 // 3])
    assert 5_000 < len(part) < 29_999
    assert part.repairs[0].startswith("the log is cut, and what is sound was read: ")
    assert calls(part) == [(MALLOC, number - 1, number * number % 977) for number in range(1, len(part) + 1)]


SNAPSHOT = bytes.fromhex("0102030471727374f1f2f3f4")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"dhatFileVersion":2,"mode":"heap"}', "DHAT sums calls up"),
        ("desc: (none)\ncmd: ./app\ntime_unit: i\n", "massif sums calls up"),
        ("desc: heaptrack\ncmd: ./app\ntime_unit: s\n", "massif sums calls up"),
        (
            'reading file "heaptrack.app.zst" - please wait, this might take some time...\n',
            "heaptrack_print sums calls",
        ),
        ("heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "jemalloc's heap profile sums calls up"),
        ("heap profile:      1:     64 [     1:     64] @ heapprofile\n", "gperftools' heap profile sums calls up"),
        (b"\n\x04\x08\x01\x10\x02\n\x04\x08\x03\x10\x04", "pprof's profile sums calls up"),
        ("📏 Total allocations:\n\t10\n", "memray's report sums calls up"),
        ('{\n  "total_num_allocations": 10,', "memray's report sums calls up"),
        ("memray\0\0\0", "memray's file is read by the same version of memray alone"),
        ('{ "run": { "exe": "app" } }', "MALT sums calls up"),
        ("==7== Memcheck, a memory error detector\n==7== HEAP SUMMARY:\n", "run Valgrind with --trace-malloc=yes"),
        (SNAPSHOT, "Tracealyzer's snapshot keeps the last events alone"),
    ],
)
def test_what_is_no_log_of_single_calls_is_refused_with_the_reason(
    text: str | bytes, words: str, tmp_path: Path
) -> None:
    for packed in (False, True):
        data = text.encode() if isinstance(text, str) else text
        with pytest.raises(HeapwrightError, match=words):
            imported(tmp_path, gzip.compress(data) if packed else data)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_is_written_in_parts_is_as_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = imported(tmp_path, LOGS[name])
    monkeypatch.setattr(history, "_WINDOW", 2)
    monkeypatch.setattr(tables, "_PART", 4)
    again = imported(tmp_path, LOGS[name])
    output = convert_log(tmp_path / "app.log", tmp_path / "app.parquet")
    written = Trace.read(tmp_path / "app.parquet")
    for trace in (again, written):
        for column in ("ts_us", "tid", "op", "id", "size", "align"):
            assert getattr(trace, column).tolist() == getattr(whole, column).tolist(), column
        assert [trace.sites[site] for site in trace.site] == [whole.sites[site] for site in whole.site]
        assert trace.metadata == whole.metadata
    assert list(tmp_path.glob(".heapwright*")) == []
    assert output.repairs == whole.repairs
    assert (output.calls, output.format) == (len(whole), name)
    assert (output.requested_peak_bytes, output.live_objects_peak) == (whole.peak_live_bytes, whole.peak_live_objects)


def test_an_import_holds_no_more_calls_than_a_part_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_WINDOW", 1 << 6)
    monkeypatch.setattr(tables, "_PART", 1 << 8)
    rows: list[int] = []
    write = parquet.write

    def counted(path: Path, columns: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        rows.append(len(columns["op"]))
        write(path, columns, metadata)

    monkeypatch.setattr(parquet, "write", counted)
    log = tmp_path / "app.log"
    log.write_text("".join(f"hw{'-+'[row % 2]} {(row - 1) // 2 % 500 + 1} 24\n" for row in range(1, 2001)))
    assert convert_log(log, tmp_path / "app.parquet").calls == 2000
    assert rows == [256] * 7 + [208]
    assert len(import_log(log)) == 2000


def test_sites_that_come_late_are_kept_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_WINDOW", 1)
    monkeypatch.setattr(tables, "_PART", 1)
    (tmp_path / "a").write_text("= Start\n+ 0x10 0x1\n+ 0x20 0x2\n@ ./app:[0x1] + 0x30 0x3\n= End\n")
    convert_log(tmp_path / "a", tmp_path / "a.parquet")
    trace = Trace.read(tmp_path / "a.parquet")
    assert [trace.sites[site] for site in trace.site] == ["", "", "./app:[0x1]"]


def test_calls_that_are_too_large_are_left_out_with_what_follows_of_them(tmp_path: Path) -> None:
    huge = 1 << 31
    log = f"hw+ 16 {huge}\nhw+ 32 {huge + 1}\nhw= 16 48 {huge + 1}\nhw= 32 64 {huge + 1}\nhw- 48\nhw- 64\nhw- 64\n"
    trace = imported(tmp_path, log)
    assert calls(trace) == [(MALLOC, 0, huge), (FREE, 0, 0)]
    assert trace.repairs == (
        "frees of blocks allocated before the log, left out: 1",
        "calls for more than 2^31 bytes, left out: 3",
    )


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("time,length\n0.1,60\n")
    assert log_format(tmp_path / "a") is None
    with pytest.raises(HeapwrightError, match="no log of heap calls; formats: text, board, valgrind"):
        import_log(tmp_path / "a")
    with pytest.raises(HeapwrightError, match="no call in its format"):
        import_log(tmp_path / "a", "mtrace")
    with pytest.raises(HeapwrightError, match="'dhat' is no format of logs"):
        import_log(tmp_path / "a", "dhat")
    with pytest.raises(HeapwrightError, match="is a folder"):
        convert_log(tmp_path / "a", tmp_path, "mtrace")
