"""The page about sensor nodes: its stand-ins, descriptors and cost metric; and that it does without a toolchain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heapwright.host.timing import Bench, has_ticks
from heapwright.papers import measuring, sensor
from heapwright.traces.validation import FREE
from heapwright.zoo import catalogue as zoo


def test_descriptors_are_those_of_table_1() -> None:
    recipes = {sensor.MANTIS: zoo.load("mantisos"), **sensor.heaps()}
    found = {heap: sensor.descriptor_bytes(recipes[heap]) for heap in sensor.TABLE_1}
    assert found == {
        "MantisOS": 12,
        "Contiki mmem": 12,
        "heapLib": 5,
        "memmgr": 8,
        "ST_MEMMGR": 2,
        "ST_COMPACT_MEMMGR": 4,
    }


def test_the_recorded_stand_ins_fit_a_microcontroller() -> None:
    traces = sensor.traces()
    assert set(sensor.STAND_INS) < set(traces)
    for name in sensor.STAND_INS:
        assert 1000 < len(traces[name]) < 100_000
        assert traces[name].peak_live_bytes < 60_000
        assert traces[name].metadata["pointer_bytes"] == "8", "as the page says"


def test_synthetic_requests_are_random_within_their_range() -> None:
    trace = sensor.synthetic(10, 20, calls=2000, seed=4)
    assert set(trace.size[trace.op != FREE]) == set(range(10, 21))
    steady = trace.live_objects[500:]
    assert steady.mean() == pytest.approx(sensor.SYNTHETIC_LIVE, rel=0.1)
    assert not np.array_equal(trace.size, sensor.synthetic(10, 20, calls=2000, seed=5).size)


def test_the_page_without_a_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    monkeypatch.setattr(measuring, "has_ticks", lambda: False)
    given = {"xml": sensor.traces()["xml"], "random": sensor.synthetic(1, 128, calls=500)}
    monkeypatch.setattr(sensor, "traces", lambda calls: given)
    page = sensor.page(None, lambda line: None)
    text = page.write(tmp_path)[0].read_text()
    assert "| heapLib | – | – |" in text, "no time without tools"
    assert "| ST_COMPACT_MEMMGR, with handles |" in text
    assert (tmp_path / "sensor-memory.svg").is_file() and not (tmp_path / "sensor-code.svg").exists()
    claims = {claim.claim: claim for claim in page.claims}
    assert claims["Table I: bytes of a descriptor"].holds
    assert claims["ST_COMPACT_MEMMGR needs 33 % less for each allocation than mmem"].holds
    assert claims["allocators with compaction need the least memory"].holds


def test_times_and_code_are_told_where_the_tools_are(monkeypatch: pytest.MonkeyPatch) -> None:
    if measuring.session() is None or not has_ticks():
        pytest.skip("no cross compiler, emulator or time-stamp counter")
    chosen = {heap: sensor.heaps()[heap] for heap in (sensor.ST, sensor.MMEM)}
    monkeypatch.setattr(sensor, "heaps", lambda: chosen)
    with Bench() as bench:
        found = sensor._measure(sensor.synthetic(1, 64, calls=600), bench)
    for one in found.values():
        assert one.memory is not None and one.memory % sensor.UNIT == 0
        assert one.ticks is not None and min(one.ticks.values()) > 0
        assert one.instructions is not None and min(one.instructions.values()) > 0
    assert found[sensor.ST].dearest_free == 8, "resets a bit"
    assert found[sensor.ST].handles == 0 < found[sensor.MMEM].handles
