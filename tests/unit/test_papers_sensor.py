"""The page about sensor nodes: its stand-ins, descriptors and cost metric; and that it does without a toolchain."""

from __future__ import annotations

import numpy as np
import pytest

from heapwright.papers import sensor
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
