"""What-if traces: other buffer sizes, static buffers, fewer connections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._traces.trace import Trace


def connections(count: int, together: int) -> Trace:
    """Connections of a 1,000-byte buffer and two objects of 50 bytes each, `together` at a time, after 8 bytes."""
    op, id, size = [0], [0], [8]
    live: list[int] = []
    for number in range(1, count + 1):
        if len(live) == together:
            for part in range(3):
                op, id, size = [*op, 3], [*id, 10 * live[0] + part], [*size, 0]
            live.pop(0)
        for part, bytes_ in enumerate((1000, 50, 50)):
            op, id, size = [*op, 0], [*id, 10 * number + part], [*size, bytes_]
        live.append(number)
    return Trace.from_columns(op=op, id=id, size=size, name="tls")


def test_sizes_are_mapped_in_every_request() -> None:
    trace = connections(5, 3)
    change = hw.map_sizes(trace, {1000: 400})
    assert (change.changed, change.peak_bytes_before, change.peak_bytes) == (5, 3 * 1100 + 8, 3 * 500 + 8)
    assert change.says == "sizes mapped (1,000 B -> 400 B): peak 3,308 -> 1,508 B live"
    assert len(change.trace) == len(trace)


def test_static_buffers_are_counted_and_leave_the_heap() -> None:
    change = hw.with_static(connections(5, 3), 1000)
    assert (change.static_buffers, change.peak_bytes) == ({1000: 3}, 3 * 100 + 8)
    assert 1000 not in change.trace.size


@pytest.mark.parametrize(("most", "peak"), [(1, 1108), (2, 2208), (3, 3308), (9, 3308)])
def test_connections_beyond_a_number_leave_with_their_objects(most: int, peak: int) -> None:
    assert hw.with_connections(connections(12, 3), most, 1000).peak_bytes == peak


@pytest.mark.parametrize(
    "call",
    [
        lambda trace: hw.map_sizes(trace, {999: 1}),
        lambda trace: hw.with_static(trace, 999),
        lambda trace: hw.with_connections(trace, 1, 999),
    ],
)
def test_a_size_that_no_call_requests_is_an_error_that_names_near_ones(call: object) -> None:
    with pytest.raises(hw.HeapwrightError, match="999 bytes; nearest sizes: 8, 50, 1,000"):
        call(connections(2, 1))  # type: ignore[operator]


def test_the_command_changes_a_trace_in_order(tmp_path: Path) -> None:
    connections(5, 3).write(tmp_path / "a.parquet")
    words = ["trace", "map", str(tmp_path / "a.parquet"), "-o", str(tmp_path / "b.parquet"), "--json"]
    done = CliRunner().invoke(heapwright, [*words, "--static", "1000", "--size", "50:20"])
    assert done.exit_code == 0, done.output
    assert [change["peak_bytes"] for change in json.loads(done.stdout)["changes"]] == [308, 128]
    assert Trace.read(tmp_path / "b.parquet").peak_live_bytes == 128
    for wrong in ([], ["--size", "x"], ["--only-connections", "2"]):
        assert CliRunner().invoke(heapwright, [*words, *wrong]).exit_code == 2
