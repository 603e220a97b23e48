"""The reserve of a study whose traces have a bound: what is proved, and no less than what was held out needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import heapwright as hw
from heapwright._studies.analysis import MemoryNeed, reserve_for

PACKETS = Path(__file__).resolve().parents[2] / "examples" / "tcp_transfers.parquet"


def test_a_proved_reserve_has_no_margin_and_holds_what_was_held_out() -> None:
    recorded, future = MemoryNeed("explored", "a", 900), MemoryNeed("future", "a", 1000)
    assert reserve_for([recorded, future], proved=True) == 1008, "a multiple of 16"
    assert reserve_for([recorded, future, MemoryNeed("held out", "b", 3000)], proved=True) == 3008
    assert reserve_for([recorded, MemoryNeed("future", "a", None)], proved=True) is None, "nothing is proved"
    assert reserve_for([recorded, future]) == 1104, "20 % above 912, as nothing is proved"


def test_a_platform_gets_fixed_blocks_with_its_counters_and_the_header_states_the_proof(tmp_path: Path) -> None:
    """FreeRTOS's port needs counters, 20 bytes, which the proof and the header count."""
    hw.workload("easyport", PACKETS, ring=8, count=400, load=1.5).write(tmp_path / "few.parquet")
    study = hw.explore(
        tmp_path / "few.parquet", tmp_path / "s.duckdb", platform="freertos", strategy="random", limit=30
    )
    pick = study.pick()
    assert [pool.kind for pool in pick.recipe.pools] == ["fixed"] and pick.recipe.counters
    assert study.reserve(pick.id) == 8 * 1520 + 48
    hw.generate(pick, tmp_path / "heap", prefix="net")
    header = " ".join((tmp_path / "heap" / "net_heap.h").read_text(encoding="utf-8").replace("*", "").split())
    assert "Reserve 12,208 bytes for any order of at most 8 of up to 1,514 bytes" in header


def test_the_bound_of_a_trace_held_out_is_no_part_of_what_is_proved(tmp_path: Path) -> None:
    """Eight frames are proved; that sixty-four were held out does not make the proof one of sixty-four."""
    few, many = (hw.workload("easyport", PACKETS, ring=ring, count=400, load=1.5) for ring in (8, 64))
    few.write(tmp_path / "few.parquet")
    many.write(tmp_path / "many.parquet")
    study = hw.explore(
        tmp_path / "few.parquet", tmp_path / "s.duckdb", held_out=tmp_path / "many.parquet", strategy="random", limit=30
    )
    assert list(study.live_bounds) == ["few"] and study.proved
    decision = hw.explore(tmp_path / "few.parquet", tmp_path / "t.duckdb", strategy="random", limit=30)
    from heapwright._studies.decision import decide

    alone, beyond = decide(decision), decide(study)
    assert alone.reserve_bytes == 8 * 1520 + 32 and "any order of at most 8 of up to 1,514 bytes" in alone.evidence()
    assert "64 of up to" not in beyond.evidence()
    assert beyond.reserve_bytes is not None and beyond.reserve_bytes > many.peak_live_bytes


def test_a_page_counts_what_failed_requests_and_not_what_was_never_replayed_on_a_future(tmp_path: Path) -> None:
    trace = hw.cut(hw.read_trace(PACKETS.with_name("mosquitto_broker.parquet")), first=400)
    trace.write(tmp_path / "few.parquet")
    study = hw.explore(tmp_path / "few.parquet", tmp_path / "s.duckdb", strategy="random", limit=400)
    results = study.combined
    failed = int((results.columns["failed"][results.ranked] > 0).sum())
    unknown = int(np.isnan(results.columns["long_run_bytes"]).sum())
    assert unknown > failed + 100
    (page, *_) = hw.report(study, tmp_path / "page.html")
    words = f"{failed:,} of them failed requests" if failed else "all completed every request"
    assert words in page.read_text(encoding="utf-8")
