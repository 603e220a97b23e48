"""Recordings of a heap that was too small: what is recommended for the cut recording serves the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import heapwright as hw

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    """bench/cut_recordings.py, which has the whole experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        import cut_recordings

        yield cut_recordings


def test_the_heap_that_refuses_is_first_fit(bench: ModuleType) -> None:
    heap = bench.FirstFit(128)
    a, b, c = heap.malloc(24), heap.malloc(16), heap.malloc(40)
    assert (a, b, c, heap.used) == (0, 32, 56, 104)
    assert heap.malloc(17) is None
    heap.free(a)
    heap.free(b)
    assert heap.malloc(48) == 0  # both holes are one
    heap.free(c)
    assert heap.malloc(64) == 56


@pytest.mark.parametrize("name", ["mosquitto_broker", "lighttpd_server"])
@pytest.mark.parametrize("share", [0.7, 0.99])
def test_the_size_for_a_cut_example_serves_the_whole_one(
    bench: ModuleType, name: str, share: float, tmp_path: Path
) -> None:
    outcome = bench.judged(hw.read_trace(ROOT / "examples" / f"{name}.parquet"), share, tmp_path)
    assert outcome.failed > 0 and outcome.refused == 0
    assert 1 <= outcome.ratio <= 2.5


def test_the_recommendation_of_an_exploration_serves_the_whole_recording(bench: ModuleType, tmp_path: Path) -> None:
    trace = hw.read_trace(ROOT / "examples" / "lighttpd_server.parquet")
    assert bench.judged(trace, 0.8, tmp_path, limit=60).refused == 0


@pytest.mark.parametrize("name", ["rec_lighttpd", "rec_lua", "rec_sqlite"])
def test_the_size_for_a_cut_recording_serves_the_whole_one(
    bench: ModuleType, name: str, shared_data: Path, tmp_path: Path
) -> None:
    """Repeated requests, tables that double, and pages that stay."""
    outcome = bench.judged(hw.read_trace(shared_data / "heap" / f"{name}.parquet"), 0.7, tmp_path)
    assert outcome.failed > 0 and outcome.refused == 0 and outcome.ratio <= 2.5
