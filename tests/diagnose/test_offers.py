"""Offers: a change of the program is offered if it cures the heap by replay, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runner import run_here

import heapwright as hw
from heapwright._diagnose.offers import offer
from heapwright._heaps.heaps import Heap, resolve
from heapwright._traces.size_uses import dominant_size
from heapwright._traces.trace import Trace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def heap() -> Heap:
    return resolve("freertos-heap4")


def log_of(folder: Path, size: int, arena: int) -> Path:
    """Rounds of one to four connections with a buffer of `size` bytes each, on a heap of `arena` bytes."""
    lines, used = [f"hw+ 0x{0x1000 + 0x100 * at:x} 200" for at in range(20)], 20 * 208
    for turn in range(60):
        frees = []
        for at in range(1 + turn % 4):
            served = used + size + 8 <= arena
            lines += [f"hw+ 0x{(0x100000 + 0x10000 * at) * served:x} {size}", f"hw+ 0x{0x900000 + 0x100 * at:x} 90"]
            frees += [0x900000 + 0x100 * at, *([0x100000 + 0x10000 * at] if served else [])]
            used += (size + 8) * served
        lines += [f"hw- 0x{address:x}" for address in frees]
        used = 20 * 208
    (folder / "app.log").write_text("\n".join([*lines, ""]))
    return folder / "app.log"


def need(trace: Trace, heap: Heap) -> int:
    found = heap.fit(trace)
    assert found is not None
    return found


def test_smaller_tls_records_are_offered_if_they_fit(heap: Heap, tmp_path: Path) -> None:
    trace = hw.import_log(log_of(tmp_path, 16_717, 60_000), arena=60_000)
    cure = offer(trace, heap, need(trace, heap), 60_000)
    assert cure is not None and cure.text == "TLS records of 4 KB (trace map --size 16717:4429)"
    assert cure.command == "heapwright trace map --size 16717:4429"
    assert cure.after == heap.fit(hw.map_sizes(trace, {16_717: 4_429}).trace)
    assert offer(trace, heap, need(trace, heap), 10_000) is None, "not even that fits"
    assert offer(trace, heap, need(trace, heap), 200_000) is None, "it fits already"


def test_fewer_connections_are_offered_if_static_buffers_take_too_much(heap: Heap, tmp_path: Path) -> None:
    trace = hw.import_log(log_of(tmp_path, 9_000, 30_000), arena=30_000)
    cure = offer(trace, heap, need(trace, heap), 30_000)
    assert cure is not None and cure.after is not None and cure.after <= 30_000
    assert cure.command == "heapwright trace map --only-connections 2 --connection 9000"
    three = heap.fit(hw.with_connections(trace, 3, 9_000).trace)
    assert three is not None and three > 30_000, "as many as fit"


def test_without_the_size_of_the_heap_a_change_has_to_save_a_fifth(heap: Heap, tmp_path: Path) -> None:
    trace = hw.import_log(log_of(tmp_path, 9_000, 30_000))
    assert offer(trace, heap, need(trace, heap)) is None
    trace = hw.import_log(log_of(tmp_path, 16_717, 60_000))
    assert offer(trace, heap, need(trace, heap)) is not None


def test_nothing_is_offered_if_no_size_dominates(heap: Heap) -> None:
    trace = hw.read_trace(ROOT / "examples" / "mosquitto_broker.parquet")
    assert dominant_size(trace) is None
    assert offer(trace, heap, need(trace, heap), 10_000) is None


def test_fit_and_diagnose_print_one_offer(tmp_path: Path) -> None:
    log = log_of(tmp_path, 16_717, 60_000)
    assert not run_here("import", log, "--arena", "60000", "-o", tmp_path / "app.parquet").returncode
    text = " ".join(run_here("fit", tmp_path / "app.parquet", "--heap", "freertos-heap4").stdout.split())
    assert text.count("trace map") == 1
    assert "With TLS records of 4 KB (trace map --size 16717:4429), app would need" in text
    for file in (tmp_path / "app.parquet", log):
        diagnosis = hw.diagnose(file, arena=60_000)
        (cure,) = [item for item in diagnosis.finding.cures if "trace map" in item.text]
        assert cure.after is not None and cure.after <= 60_000
    changed = tmp_path / "changed.parquet"
    run_here("trace", "map", tmp_path / "app.parquet", "--size", "16717:4429", "-o", changed)
    fit = hw.fit(changed, "freertos-heap4")
    assert fit.smallest_arena_bytes == cure.after
