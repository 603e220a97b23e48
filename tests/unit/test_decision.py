"""The decision that a study leads to: `heapwright.decide.decision`, on a study of made-up metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_studies import IDS, TRACES, identity, metrics, result, trace, write_five

from heapwright.decide.decision import decide
from heapwright.decide.picks import PICKS
from heapwright.decide.study import Study
from heapwright.files.errors import HeapwrightError
from heapwright.studies.records import TraceInfo


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_five(tmp_path / "study.duckdb")


def test_the_steps_are_the_nearest_of_the_front_to_either_side(study: Path) -> None:
    with Study.open(study) as opened:
        decision = decide(opened, where=["footprint_bytes >= 200"])
        assert decision.pick.label == "alpha"
        assert [(one.better, one.heap.id) for one in decision.others] == [("accesses", IDS[3])]
        smallest = decide(opened, "smallest")
        assert [(one.better, one.heap.label) for one in smallest.others] == [("accesses", "alpha")]
        told = "Fewer accesses: alpha, 200 bytes (2.0 x), 400 accesses (-60.0 %); such heaps were seen to need more "
        assert f"{told}elsewhere: it does not merge every block as it is freed." in smallest.sentences()


def test_what_the_reader_has_is_compared_whatever_it_is(study: Path) -> None:
    with Study.open(study) as opened:
        told = decide(opened, "smallest", against="beta").sentences()
        yours = "beta, what you have now, takes 220 bytes (2.2 x), 800 accesses (-20.0 %)"
        assert f"{yours}; reserve 240 (+87.5 %)." in told
        told = decide(opened, "smallest", against="gamma").sentences()
        refusing = "gamma, what you have now, takes 50 bytes (-50.0 %), 50 accesses (-95.0 %), and refuses 3 requests."
        assert refusing in told
        with pytest.raises(HeapwrightError, match="delta"):
            decide(opened, against="delta")


def test_what_to_reserve_has_served_everything_that_it_is_said_to_have(tmp_path: Path) -> None:
    copies = [TraceInfo.of(trace(name)) for name in ("busy~load-1", "busy~sizes+blocks-1", "busy~sizes+blocks-2")]
    with Study.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 1000)), result(1, metrics(200, 400), zoo_name="tlsf")])
        opened.set_apart(copies, "copy")
        opened.set_apart([TraceInfo.of(TRACES[1])], "held out")
        opened.add([result(0, metrics(400, 9), copies[0].name), result(0, metrics(250, 9), copies[1].name)], "copy")
        opened.add([result(0, metrics(40, 9, failed=1), copies[2].name)], "copy")
        opened.add([result(0, metrics(300, 9), "idle")], "held out")
        opened.add([result(1, metrics(700, 9), one.name) for one in copies], "copy")
        decision = decide(opened, "smallest")
    assert decision.pick.id == IDS[0] and decision.reserve_bytes == 320
    assert decision.evidence() == (
        f"Ship {IDS[0]}: reserve 320 bytes; 300 served the recording, 2 perturbed copies and 1 held-out trace. "
        "On 1 of them it refused requests. For the recording alone it needs 100. At 4 times the load it needs 400."
    )
    (rival,) = (one for one in decision.others if one.why == "rival")
    assert rival.reserve_bytes is None, "it was not tried on the trace held out"


def test_recipes_alike_are_counted_and_the_nearest_named(tmp_path: Path) -> None:
    with Study.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(at, metrics(1000 + at, 1000 + at)) for at in range(6)])
        opened.add([result(6, metrics(1011, 1000))])
        decision = decide(opened)
    count, named = decision.alike
    assert decision.pick.id == IDS[0] and (count, [one.id for one in named]) == (5, IDS[1:4])
    told = f"{IDS[1]}, {IDS[2]}, {IDS[3]} and 2 more are within 1 % of it in every objective."
    assert decision.sentences()[-1] == told


def test_a_price_in_instructions_stands_where_they_were_measured(tmp_path: Path) -> None:
    dearest = {"instructions_malloc_max": 180, "instructions_calloc_max": 2824, "instructions_free_max": 85}
    measured = {"instructions_pair_mean": 74.25, **dearest, "code_bytes": 864}
    with Study.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        worst = {"accesses_malloc_max": 9, "accesses_realloc_max": 12, "accesses_free_max": 7}
        opened.add([result(0, metrics(100, 30, **worst, **measured))])
        told = decide(opened).price()
    assert told == (
        "A malloc and its free take 74.2 instructions, the dearest malloc 180, calloc 2,824, free 85, in 864 bytes of "
        "code; 10.0 loads and stores a call, 9 in the dearest malloc, 12 in the dearest realloc, 7 in the dearest free."
    )


def test_a_pick_admits_as_much_as_any_unless_a_share_is_asked_for(tmp_path: Path) -> None:
    objectives = ("footprint_bytes", "admitted_fraction")
    admitting = [(100, 0.151, 9), (400, 0.88, 5), (800, 0.9997, 2), (1000, 1.0, 1)]
    with Study.create_or_resume(tmp_path / "s.duckdb", identity(objectives=objectives)) as opened:
        opened.add(
            [
                result(at, metrics(size, 9, failed=failed, admitted_fraction=share))
                for at, (size, share, failed) in enumerate(admitting)
            ]
        )
        everything = decide(opened, "smallest")
        assert [opened.pick(how).id for how in PICKS] == [IDS[2]] * 3
        in_little = decide(opened, where=["footprint_bytes <= 500"])
        asked = decide(opened, "smallest", where=["admitted_fraction >= 0.5"])
        assert opened.pick("smallest", where="admitted_fraction > 0").id == IDS[0]
    told = "It admits 99.97 % of the bytes that are asked for, as much as any."
    assert everything.sentences()[1] == told
    assert in_little.pick.id == IDS[1]
    assert in_little.sentences()[1] == "It admits 88 % of the bytes that are asked for, as much as any."
    assert asked.pick.id == IDS[1]
    assert asked.sentences()[1] == "It admits 88 % of the bytes that are asked for, where another admits 100 %."
