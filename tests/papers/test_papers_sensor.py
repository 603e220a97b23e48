"""The page about sensor nodes: its substitutes, descriptors, probes and cost metric."""

from __future__ import annotations

import numpy as np
import pytest

from heapwright._recipes.zoo import catalogue as zoo
from heapwright._traces.validation import FREE
from heapwright_papers import sensor
from heapwright_papers.answers import judged
from heapwright_papers.documents import statements_of
from heapwright_papers.verdicts import HOLDS, Cause, Kind, Verdict


def test_descriptors_are_those_of_table_1() -> None:
    recipes = {sensor.MANTIS: zoo.load("mantisos"), **sensor.heaps()}
    results = {heap: sensor.descriptor_bytes(recipes[heap]) for heap in sensor.TABLE_1}
    assert results == {
        "MantisOS": 12,
        "Contiki mmem": 12,
        "heapLib": 5,
        "memmgr": 8,
        "ST_MEMMGR": 2,
        "ST_COMPACT_MEMMGR": 4,
    }


def test_the_recorded_stand_ins_fit_a_microcontroller() -> None:
    traces = sensor.traces()
    for name in sensor.RECORDED:
        (trace,) = traces[name]
        assert 1000 < len(trace) < 100_000
        assert trace.peak_live_bytes < 60_000
        assert trace.metadata["pointer_bytes"] == "8", "as the page says"
    assert all(len(traces[name]) == sensor.SEEDS for name in sensor.SYNTHETIC)


def test_synthetic_requests_are_random_within_their_range() -> None:
    trace = sensor.synthetic(10, 20, calls=2000, seed=4)
    assert set(trace.size[trace.op != FREE]) == set(range(10, 21))
    steady = trace.live_objects[500:]
    assert steady.mean() == pytest.approx(sensor.SYNTHETIC_LIVE, rel=0.1)
    assert not np.array_equal(trace.size, sensor.synthetic(10, 20, calls=2000, seed=5).size)


@pytest.mark.parametrize(("heap", "uses"), [("memmgr", False), ("st-memmgr-2", False), ("contiki-mmem", True)])
def test_holes_that_lie_apart_serve_a_request_where_objects_move(heap: str, uses: bool) -> None:
    assert sensor.uses_holes(zoo.load(heap)) == uses


def test_a_search_takes_longer_behind_more_holes_and_a_list_of_equal_blocks_does_not() -> None:
    walk = sensor.growth(zoo.load("st-memmgr-2"))
    assert walk["malloc"][0] < walk["malloc"][1] < walk["malloc"][2] and len(set(walk["free"])) == 1
    blocks = sensor.growth(zoo.load("sos"))
    assert all(len(set(calls)) == 1 for calls in blocks.values())


def least(statement: str, *known: dict[str, int]) -> tuple[str, Verdict]:
    """What becomes of a statement about memory if random traces need these bytes, by allocator."""
    (answer,) = statements_of("sensor")[statement].answers
    names = {name: value for name, value in vars(sensor).items() if name.isupper()}
    ((here, verdict, on),) = judged(answer, {**names, "names": {"random": []}, "known": {"random": known}})
    assert on == "random traces"
    return here, verdict


def sizes(**bytes_: int) -> dict[str, int]:
    return {sensor.ST: 512, sensor.HEAPLIB: 768, sensor.MEMMGR: 1024, **bytes_}


def test_a_statement_about_memory_holds_by_its_least_margin() -> None:
    assert least("sensor-st-least", sizes()) == (
        "so on 1 of 1; memmgr 1,024, heapLib 768, ST_MEMMGR 512 B on average",
        HOLDS,
    )
    assert least("sensor-order", sizes(memmgr=640))[1].kind is Kind.FAILS, "memmgr needs less than heapLib"
    assert least("sensor-st-least", sizes(memmgr=512))[1] == HOLDS, "equal sizes do"
    assert least("sensor-others-fail", sizes(memmgr=512))[1].kind is Kind.FAILS, "equal sizes do not"


def test_random_traces_have_noise_and_recorded_ones_a_cause() -> None:
    good, bad = sizes(), sizes(memmgr=256)
    noise = least("sensor-st-least", *[good] * 7, *[bad] * 3)[1]
    assert noise.kind is Kind.NOISE and noise.why == "10 traces: margins of -256 to 256 B"
    for known in ([good] * 2 + [bad], [good] * 5 + [bad] * 5):
        assert least("sensor-st-least", *known)[1].cause is Cause.TRAFFIC
