"""Logs in any wording: patterns that describe their lines, proposals from the lines, and tables of calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs.call_table import FORMAT, is_call_table
from heapwright._traces.logs.pattern import LinePattern, format_of_patterns, propose
from heapwright._traces.logs.source import Source
from heapwright._traces.trace import Trace

WORDINGS = {
    "C calls": ("[heap] malloc(48) -> 0x20001000\n[heap] malloc(100) -> (nil)\n[heap] free(0x20001000)\n", None),
    "key=value": (
        "I (1234) MEM: alloc ptr=0x3ffb1000 len=48 from net\nI (1300) MEM: free ptr=0x3ffb1000\n"
        "E (1301) MEM: alloc failed len=100 caller=0x400d1000\n",
        ["alloc=alloc ptr={address} len={size}", "free=free ptr={address}", "fail=failed len={size}"],
    ),
    "words": (
        "10:00:00,1 # Allocated 48 Bytes at 0x0x20003000, total 48\n10:00:00,2 # Free 48 Bytes at 0x0x20003000\n",
        ["alloc=Allocated {size} Bytes at {address}", "free=Free ... Bytes at {address}"],
    ),
    "times": (
        '[0.001000] HEAP: Allocated 48 bytes @ 0x3ffb1000 from "net" by:\nnet.c:41\n\n'
        '[0.001300] HEAP: Freed bytes @ 0x3ffb1000 from "app" by:\napp.c:12\n',
        ["alloc={seconds}] HEAP: Allocated {size} bytes @ {address}", "free={seconds}] HEAP: Freed bytes @ {address}"],
    ),
    "short words": (
        "12.5 NEW 0x1000 size 48\n12.7 DEL 0x1000\n",
        ["alloc=NEW {address} size {size}", "free=DEL {address}"],
    ),
}
"""In each 48 bytes are allocated and freed."""


def read(folder: Path, text: str, patterns: list[str]) -> Trace:
    log = folder / "a.log"
    log.write_text(text)
    return format_of_patterns(patterns).read(Source(log)).trace("a", {})


@pytest.mark.parametrize("wording", WORDINGS)
def test_patterns_are_proposed_from_the_lines_and_read_them(wording: str, tmp_path: Path) -> None:
    text, expected = WORDINGS[wording]
    proposed = propose(text.splitlines())
    assert expected is None or proposed == expected
    trace = read(tmp_path, text, proposed or [])
    served = [int(size) for size, failed in zip(trace.size, trace.failed, strict=True) if size and not failed]
    assert served == [48] and trace.op.tolist()[-1] == 3


def test_a_null_pointer_is_a_failed_request(tmp_path: Path) -> None:
    text = WORDINGS["C calls"][0]
    trace = read(tmp_path, text, ["alloc=malloc({size}) -> {address}", "free=free({address})"])
    assert trace.size[trace.failed > 0].tolist() == [100]


def test_times_threads_and_sites_are_fields(tmp_path: Path) -> None:
    text = "2.5 s net a.c:1 +16 @0x10\n3.0 s app a.c:2 -@0x10\n"
    patterns = ["alloc={seconds} s {thread} {site} +{size} @{address}", "free={seconds} s {thread} {site} -@{address}"]
    trace = read(tmp_path, text, patterns)
    assert (trace.ts_us.tolist(), trace.tid.tolist()) == ([0, 500_000], [0, 1])
    assert [trace.sites[site] for site in trace.site] == ["a.c:1", "a.c:2"]


def test_a_realloc_moves_its_object(tmp_path: Path) -> None:
    patterns = ["alloc=A {address} {size}", "realloc=R {old} {address} {size}", "free=F {address}"]
    trace = read(tmp_path, "A 0x10 8\nR 0x10 0x40 24\nF 0x40\n", patterns)
    assert (trace.op.tolist(), trace.size.tolist()) == ([0, 2, 3], [8, 24, 0])


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("malloc {size}", "must be EVENT=TEXT with EVENT one of alloc, calloc, realloc, free, fail"),
        ("alloc=got {size}", "alloc needs {address}"),
        ("alloc={size} {adress}", "{adress} is no field; valid: size, address,"),
        ("alloc={size} {size} {address}", "{size} stands there twice"),
    ],
)
def test_a_wrong_pattern_is_named(pattern: str, says: str) -> None:
    with pytest.raises(HeapwrightError) as error:
        LinePattern.parse(pattern)
    assert says in str(error.value)


def test_a_pattern_that_matches_no_line_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("A 0x10 8\n")
    history = format_of_patterns(["alloc=A {address} {size}", "free=F {address}"]).read(Source(tmp_path / "a.log"))
    assert history.caveats == ["no line matches 'free=F {address}'"]


def test_lines_without_addresses_give_no_proposal() -> None:
    assert propose(["boot", "free heap: 121000", "free heap: 120000"]) == []
    assert propose(["allocated 0x10 48", *["a line of another program"] * 3]) == []


def test_a_table_of_calls_is_read_by_its_columns(tmp_path: Path) -> None:
    text = "time,op,address,size\n0.001,malloc,0x20001000,128\n0.002,malloc,0x20001100,64\n0.003,free,0x20001000,128\n"
    text += "0.004,malloc,0x20001000,512\n0.005,malloc,(nil),4096\n0.006,what,0x1,2\n"
    (tmp_path / "calls.csv").write_text(text)
    assert is_call_table(text.encode())
    history = FORMAT.read(Source(tmp_path / "calls.csv"))
    trace = history.trace("calls", {})
    assert (history.peak_bytes, history.skipped, history.failed) == (576, 1, 1)
    assert trace.ts_us.tolist()[:4] == [0, 1000, 2000, 3000]


@pytest.mark.parametrize(
    "header",
    ["time,length,proto\n0.1,60,6\n", "seconds,free,min_free,largest_block\n0,1,1,1\n", "op,address,size\nx,1,2\n"],
)
def test_packets_and_telemetry_are_no_table_of_calls(header: str) -> None:
    assert not is_call_table(header.encode())


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["get 24 bytes returned 0x20000100", "put 0x20000100"],
            ["alloc=get {size} bytes returned {address}", "free=put {address}"],
        ),
        (
            ["allocated 24 bytes, returned 0x20000100", "freed 0x20000100"],
            ["alloc=allocated {size} bytes, returned {address}", "free=freed {address}"],
        ),
        (
            ["take rx 0x20000100 0x48", "take tx 0x20000200 0x48", "give rx 0x20000100", "give tx 0x20000200"],
            ["alloc=take {site} {address} {size}", "free=give {site} {address}"],
        ),
    ],
)
def test_an_allocation_that_returns_an_address_frees_nothing(lines: list[str], expected: list[str]) -> None:
    assert propose(lines * 4) == expected
