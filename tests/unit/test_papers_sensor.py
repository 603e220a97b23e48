"""The page about sensor nodes: its stand-ins, descriptors, probes and cost metric."""

from __future__ import annotations

import numpy as np
import pytest

from heapwright.recipes.zoo import catalogue as zoo
from heapwright.traces.validation import FREE
from heapwright_papers import sensor_answers, sensor_runs
from heapwright_papers.sensor_answers import _Least
from heapwright_papers.verdicts import HOLDS, Cause, Kind


def test_descriptors_are_those_of_table_1() -> None:
    recipes = {sensor_runs.MANTIS: zoo.load("mantisos"), **sensor_runs.heaps()}
    found = {heap: sensor_runs.descriptor_bytes(recipes[heap]) for heap in sensor_runs.TABLE_1}
    assert found == {
        "MantisOS": 12,
        "Contiki mmem": 12,
        "heapLib": 5,
        "memmgr": 8,
        "ST_MEMMGR": 2,
        "ST_COMPACT_MEMMGR": 4,
    }


def test_the_recorded_stand_ins_fit_a_microcontroller() -> None:
    traces = sensor_runs.traces()
    for name in sensor_runs.RECORDED:
        (trace,) = traces[name]
        assert 1000 < len(trace) < 100_000
        assert trace.peak_live_bytes < 60_000
        assert trace.metadata["pointer_bytes"] == "8", "as the page says"
    assert all(len(traces[name]) == sensor_runs.SEEDS for name in sensor_runs.SYNTHETIC)


def test_synthetic_requests_are_random_within_their_range() -> None:
    trace = sensor_runs.synthetic(10, 20, calls=2000, seed=4)
    assert set(trace.size[trace.op != FREE]) == set(range(10, 21))
    steady = trace.live_objects[500:]
    assert steady.mean() == pytest.approx(sensor_runs.SYNTHETIC_LIVE, rel=0.1)
    assert not np.array_equal(trace.size, sensor_runs.synthetic(10, 20, calls=2000, seed=5).size)


@pytest.mark.parametrize(("heap", "uses"), [("memmgr", False), ("st-memmgr-2", False), ("contiki-mmem", True)])
def test_holes_that_lie_apart_serve_a_request_where_objects_move(heap: str, uses: bool) -> None:
    assert sensor_runs.uses_holes(zoo.load(heap)) == uses


def test_a_search_takes_longer_behind_more_holes_and_a_list_of_equal_blocks_does_not() -> None:
    walk = sensor_runs.growth(zoo.load("st-memmgr-2"))
    assert walk["malloc"][0] < walk["malloc"][1] < walk["malloc"][2] and len(set(walk["free"])) == 1
    blocks = sensor_runs.growth(zoo.load("sos"))
    assert all(len(set(calls)) == 1 for calls in blocks.values())


def test_a_statement_about_memory_holds_by_its_least_margin() -> None:
    sizes = {"a": 512, "b": 768, "c": 1024}
    assert _Least(("a",), ("c", "b")).margin(sizes) == 256
    assert _Least(("a",), ("b", "c"), ordered=True).margin(sizes) == -256
    assert _Least(("a", "b"), ("b", "c")).margin(sizes) == 0


def test_random_traces_have_noise_and_recorded_ones_a_cause() -> None:
    worst = {"a": 512}
    assert sensor_answers._margin(3, [1, 2, 3], 3, worst) == HOLDS
    noise = sensor_answers._margin(7, [-256, 512], 10, worst)
    assert noise.kind is Kind.NOISE and noise.why == "10 traces: margins of -256 to 512 B"
    for count, traces in ((2, 3), (5, 10)):
        assert sensor_answers._margin(count, [-256, 512], traces, worst).cause is Cause.TRAFFIC
