"""The decision that a study leads to: `heapwright._studies.decision`, on a study of made-up metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_tables import each
from sample_studies import IDS, TRACES, identity, in_the_long_run, metrics, result, trace, write_five

from heapwright._replay.metrics import DEFAULT_OBJECTIVES, Value
from heapwright._studies.analysis import Analysis
from heapwright._studies.comparison import Cell, HeapComparison, side_by_side
from heapwright._studies.decision import Deciding, change, decide
from heapwright._studies.recommendations import PICKS
from heapwright._studies.records import TraceInfo
from heapwright._support.errors import HeapwrightError


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_five(tmp_path / "study.duckdb")


def test_the_steps_are_the_nearest_of_the_front_to_either_side(study: Path) -> None:
    with Analysis.open(study) as opened:
        decision = decide(opened, where=["footprint_bytes >= 200"])
        assert decision.pick.label == "alpha"
        assert [(other.better, other.heap.id) for other in decision.others] == [("accesses", IDS[3])]
        smallest = decide(opened, "smallest")
        assert [(other.better, other.heap.label) for other in smallest.others] == [("accesses", "alpha")]
        assert "Fewer accesses: alpha, 200 bytes (2.0 x), 400 accesses (-60.0 %)." in smallest.sentences()


def test_what_the_reader_has_stands_beside_the_pick_whatever_it_is(study: Path) -> None:
    with Analysis.open(study) as opened:
        decision = decide(opened, "smallest", against="beta")
        output = side_by_side(decision)
        assert [(heap.candidate.label, heap.role) for heap in output.heaps] == [(IDS[0], "ship"), ("beta", "yours")]
        assert cells(output, "reserve") == [Cell("144"), Cell("272", "+88.9 %", better=False)]
        assert cells(output, "need, recording") == [Cell("100"), Cell("220", "2.2 x", better=False)]
        assert cells(output, "accesses a call")[1].better is True
        assert not any(sentence.startswith("beta") for sentence in decision.sentences()), "the table shows it"
        decision = decide(opened, "smallest", against="gamma")
        assert "gamma, your current heap, fails 3 requests." in decision.sentences()
        assert cells(side_by_side(decision), "need, recording")[1] == Cell("-"), "it served no trace whole"
        with pytest.raises(HeapwrightError, match="nothing: the study has no such recipe"):
            decide(opened, against="nothing")


def test_the_table_tells_what_decides_in_this_order(tmp_path: Path) -> None:
    more = TraceInfo.of(trace("busy~load-1"))
    known = {"growth_ratio": 1.02, "lasts": 1, "code_bytes": None, "instructions_pair_mean": None}
    known |= {"accesses_malloc_max": 9, "accesses_realloc_max": 12, "accesses_free_max": 7}
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.set_apart([more], "copy")
        opened.add([result(0, metrics(1000, 30, **known)), result(1, metrics(2200, 15, **known), zoo_name="tlsf")])
        opened.add([result(0, metrics(4000, 9), more.name), result(1, metrics(8000, 9), more.name)], "copy")
        output = side_by_side(decide(opened, "smallest"))
    calls, worst = "mean over all calls explored on", "loads and stores of the worst-case call, copies of realloc"
    assert [(row.words, row.unit, row.meaning, *(cell.text for cell in row.cells)) for row in output.rows] == [
        ("reserve", "bytes", "", "1,216", "2,656"),
        ("need, recording", "bytes", "the largest footprint on what was recorded", "1,000", "2,200"),
        ("at 4 x the load", "bytes", "the largest footprint on copies at 4 times the load", "4,000", "8,000"),
        ("accesses a call", "", f"loads and stores of the heap's own data, {calls}", "10.0", "5.0"),
        ("worst-case malloc", "accesses", f"{worst} left out", "9", "9"),
        ("worst-case realloc", "accesses", f"{worst} left out", "12", "12"),
        ("worst-case free", "accesses", f"{worst} left out", "7", "7"),
        ("bounded by design", "accesses", "what bounds a malloc or a free on any program", "unbounded", "unbounded"),
    ]
    heaps = [(heap.candidate.label, heap.role, heap.title) for heap in output.heaps]
    assert heaps == [(IDS[0], "ship", "first fit"), ("tlsf", "", "first fit")]
    assert output.rows[3].cells[1] == Cell("5.0", "-50.0 %", better=True) and output.rows[4].cells[1] == Cell("9")


@each(
    ("base", "value", "told"),
    [
        (1000, 1042, "+4.2 %"),
        (1000, 1000.1, "0.0 %"),
        (1000, 999.9, "0.0 %"),
        (1000, 400, "-60.0 %"),
        (1000, 1999, "+99.9 %"),
        (1000, 2000, "2.0 x"),
        (1, 12_345, "12,345.0 x"),
        *((base, value, "-") for base, value in ((0, 5), (None, 5), (5, None))),
    ],
)
def test_a_change_is_told_in_percent_and_from_twice_as_much_on_as_a_multiple(
    base: Value, value: Value, told: str
) -> None:
    assert change(base, value) == told


def cells(told: HeapComparison, words: str) -> list[Cell]:
    """The cells of the row of these words."""
    (row,) = (row for row in told.rows if row.words == words)
    return list(row.cells)


def test_what_to_reserve_has_served_everything_that_it_is_said_to_have(tmp_path: Path) -> None:
    copies = [TraceInfo.of(trace(name)) for name in ("busy~load-1", "busy~sizes+blocks-1", "busy~sizes+blocks-2")]
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 1000)), result(1, metrics(200, 400), zoo_name="tlsf")])
        opened.set_apart(copies, "copy")
        opened.set_apart([TraceInfo.of(TRACES[1])], "held out")
        opened.add([result(0, metrics(400, 9), copies[0].name), result(0, metrics(250, 9), copies[1].name)], "copy")
        opened.add([result(0, metrics(40, 9, failed=1), copies[2].name)], "copy")
        opened.add([result(0, metrics(300, 9), "idle")], "held out")
        opened.add([result(1, metrics(700, 9), copy.name) for copy in copies], "copy")
        decision = decide(opened, "smallest")
    assert decision.pick.id == IDS[0] and decision.reserve_bytes == 368
    assert decision.evidence() == (
        f"Do not ship first fit ({IDS[0]}): it failed 1 requests on "
        "copies, as on busy~sizes+blocks-2. 2 perturbed copies need up to 250. On 1 of them requests failed. At 4 "
        "times the load it needs 400."
    )
    (reference,) = (other for other in decision.others if other.why == "reference")
    assert reference.reserve_bytes is None, "it was not tried on the trace held out"


def test_recipes_alike_are_counted_and_the_nearest_named(tmp_path: Path) -> None:
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(at, metrics(1000 + at, 1000 + at)) for at in range(6)])
        opened.add([result(6, metrics(1011, 1000))])
        decision = decide(opened)
    count, named = decision.equivalent
    assert decision.pick.id == IDS[0] and (count, [item.id for item in named]) == (5, IDS[1:4])
    output = f"{IDS[1]}, {IDS[2]}, {IDS[3]} and 2 more are within 1 % of it in every objective."
    assert decision.sentences()[-1] == output


def test_few_recipes_alike_are_all_named(tmp_path: Path) -> None:
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(at, metrics(1000 + at, 1000 + at)) for at in range(2)])
        assert decide(opened).sentences()[-1] == f"{IDS[1]} is within 1 % of it in every objective."
        opened.add([result(2, metrics(1002, 1002))])
        assert decide(opened).sentences()[-1] == f"{IDS[1]}, {IDS[2]} are within 1 % of it in every objective."


# --- the long run ----------------------------------------------------------------------------------------------------


def of_futures(path: Path, *more: dict[str, Value], names: dict[int, str] | None = None) -> Analysis:
    """Recipes that need 1,000 bytes on the recording, each with what is known of its future."""
    study = Analysis.create_or_resume(path, identity(objectives=DEFAULT_OBJECTIVES))
    named = names or {}
    study.add([result(at, metrics(1000, 30, **item), zoo_name=named.get(at)) for at, item in enumerate(more)])
    return study


def test_the_reserve_is_a_fifth_above_the_recording_and_at_least_the_need_in_the_long_run(tmp_path: Path) -> None:
    with of_futures(tmp_path / "less.duckdb", in_the_long_run(1150)) as opened:
        decision = decide(opened)
        assert opened.reserves.tolist() == [decision.reserve_bytes] == [1216]
    assert decision.evidence().startswith(
        f"Ship first fit ({IDS[0]}): reserve 1,216 bytes. It needs 1,000 on the recording and 1,150 in the long run; "
        "the reserve is 20 % above the former."
    )
    with of_futures(tmp_path / "more.duckdb", in_the_long_run(1500)) as opened:
        decision = decide(opened)
        assert opened.reserves.tolist() == [decision.reserve_bytes] == [1504]
    assert decision.evidence().startswith(
        f"Ship first fit ({IDS[0]}): reserve 1,504 bytes. It needs 1,000 on the recording and 1,500 in the long run. "
    )


def test_the_long_run_is_reported_in_numbers(tmp_path: Path) -> None:
    tested = {"growth_ratio": 1.034, "lasts": 1, "endured_calls": 300_000, "instructions_pair_mean": None}
    future = in_the_long_run(1200, malloc=90, free=120, long_run_growth=1.042)
    with of_futures(tmp_path / "s.duckdb", {**future, **tested}) as opened:
        decision = decide(opened)
        table = side_by_side(decision)
    assert decision.long_run() == [
        "On a future of 500,000 calls its footprint grows by 4.2 % in the last nine tenths beyond best fit's; its "
        "worst-case malloc or free makes 120 accesses; stress test: 3.4 % growth in the worst loop."
    ]
    assert decision.worst_call == 120
    shown = {row.words: row.cells[0].text for row in table.rows}
    assert (shown["need, recording"], shown["need, long run"]) == ("1,000", "1,200")
    assert (shown["worst-case malloc"], shown["worst-case free"]) == ("90", "120")
    assert (shown["growth, long run"], shown["accesses a call"]) == ("4.2 %", "10.0")


def test_one_recording_is_said_to_show_one_load(tmp_path: Path) -> None:
    with Analysis.open(write_five(tmp_path / "one.duckdb")) as opened:
        assert " One recording shows one load" in decide(opened).evidence()
    with Analysis.create_or_resume(tmp_path / "two.duckdb", identity(TRACES)) as opened:
        opened.add([result(0, metrics(100, 9), item.name) for item in TRACES])
        assert " One recording" not in decide(opened).evidence()


def test_without_a_future_nothing_is_said_of_the_long_run_but_how_to_get_it(tmp_path: Path) -> None:
    with Analysis.open(write_five(tmp_path / "s.duckdb")) as opened:
        (sentence,) = decide(opened).long_run()
    assert sentence.endswith("explore with a long run estimates it.")


def test_what_is_not_fit_does_not_ship(tmp_path: Path) -> None:
    grown = in_the_long_run(None, long_run_growth=1.5)
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 1000, **in_the_long_run(300, 9)), zoo_name="tlsf")])
        opened.add([result(1, metrics(90, 900, **grown), zoo_name="newlib-nano")])
        opened.add([result(2, metrics(80, 800, **in_the_long_run(110, lasts=0, growth_ratio=2.5)))])
        decision = decide(opened)
    assert decision.pick.label == "tlsf" and decision.why_not is None
    assert "newlib-nano grows without bound: 50 % over the last nine tenths of 500,000 calls." in decision.sentences()


def test_what_is_not_fit_is_not_shipped(tmp_path: Path) -> None:
    copy = TraceInfo.of(trace("busy~sizes+blocks-1"))
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 1000))])
        opened.set_apart([copy], "copy")
        opened.add([result(0, metrics(100, 1000, failed=2), copy.name)], "copy")
        decision = decide(opened)
    assert decision.evidence().startswith(f"Do not ship first fit ({IDS[0]}): it failed 2 requests on copies")


def test_a_longer_call_than_400_accesses_is_said_where_nothing_has_less(tmp_path: Path) -> None:
    with of_futures(tmp_path / "s.duckdb", in_the_long_run(1200, free=1234)) as opened:
        assert " A call may make 1,234 accesses, and nothing with less serves." in decide(opened).evidence()
    with of_futures(tmp_path / "short.duckdb", in_the_long_run(1200, free=400)) as opened:
        assert "and nothing with less serves" not in decide(opened).evidence()


@pytest.mark.parametrize(
    ("yours", "keep"),
    [
        (in_the_long_run(1020, 10.2), True),
        (in_the_long_run(1021, 10.0), False),
        (in_the_long_run(1000, 10.21), False),
        (in_the_long_run(1020, 10.2, malloc=400), True),
        (in_the_long_run(1020, 10.2, malloc=401), False),
        (in_the_long_run(1020, 10.2, lasts=0, growth_ratio=1.5), False),
    ],
)
def test_the_current_heap_is_kept_where_nothing_is_better_by_more_than_2_percent(
    tmp_path: Path, yours: dict[str, Value], keep: bool
) -> None:
    path, best = tmp_path / "s.duckdb", in_the_long_run(1000, 10.0)
    with of_futures(path, best, yours, names={1: "tlsf"}) as opened:
        opened.set_current("tlsf")
        decision = decide(opened)
    assert (decision.pick.id, decision.keep) == (IDS[0], keep)
    kept = f"Keep tlsf: no recipe needs less by more than 2 %. Else: Ship first fit ({IDS[0]}): "
    assert decision.evidence().startswith(kept) == keep


def test_a_current_heap_that_is_recommended_itself_is_kept(tmp_path: Path) -> None:
    with of_futures(tmp_path / "s.duckdb", in_the_long_run(1000), in_the_long_run(2000), names={0: "tlsf"}) as opened:
        assert decide(opened).evidence().startswith("Ship tlsf: reserve ")
        opened.set_current("tlsf")
        assert decide(opened).evidence().startswith("Keep tlsf: reserve ")


def test_the_current_heap_stands_in_every_table_after_it_was_named_once(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with of_futures(path, in_the_long_run(1000), in_the_long_run(2000), names={1: "half-fit"}) as opened:
        assert opened.current is None and decide(opened).others == []
        opened.set_current("half-fit")
    with Analysis.open(path) as again:
        assert again.current == "half-fit"
        (other,) = decide(again).others
        assert (other.why, other.heap.label) == ("yours", "half-fit")


def test_no_recommendation_is_worse_than_the_current_heap_in_memory_and_the_worst_call(tmp_path: Path) -> None:
    mine = in_the_long_run(1000, 100.0, malloc=50, free=50)
    worse, cheaper = in_the_long_run(1050, 5.0, malloc=60), in_the_long_run(1100, 8.0, malloc=50, free=50)
    with of_futures(tmp_path / "s.duckdb", mine, worse, cheaper, names={0: "tlsf"}) as opened:
        assert decide(opened).pick.id == IDS[1]
        opened.set_current("tlsf")
        assert [opened.pick(how).id for how in ("balanced", "fastest", "smallest")] == [IDS[2], IDS[2], IDS[0]]


def test_what_more_load_refuses_is_counted(tmp_path: Path) -> None:
    copies = [TraceInfo.of(trace(name)) for name in ("busy~load-1", "busy~load-2")]
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 1000))])
        opened.set_apart(copies, "copy")
        opened.add([result(0, metrics(400, 9), copies[0].name)], "copy")
        opened.add([result(0, metrics(40, 9, failed=1), copies[1].name)], "copy")
        decision = decide(opened, where=["footprint_bytes <= 5000"])
    assert " At 4 times the load it refused requests on 1 of 2 copies." in decision.evidence()
    assert decision.more_bytes is None and decision.served(10_000) == ""


def test_a_bound_on_another_metric_is_no_arena(tmp_path: Path) -> None:
    more = TraceInfo.of(trace("busy~load-1"))
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(1000, 400))])
        opened.set_apart([more], "copy")
        opened.add([result(0, metrics(4000, 9), more.name)], "copy")
        for where in (["accesses <= 5000"], ["reserve_bytes >= 100"], []):
            said = decide(opened, where=where).evidence()
            assert " At 4 times the load it needs 4,000." in said and "times the recorded load" not in said
        said = decide(opened, where=["reserve_bytes <= 9000", "reserve_bytes < 1217"]).evidence()
    assert " 1,217 bytes serve some 1.0 times the recorded load." in said


def test_what_is_better_by_a_step_is_not_alike(tmp_path: Path) -> None:
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(1000, 1000)), result(1, metrics(1005, 972)), result(2, metrics(1008, 996))])
        decision = Deciding(opened, opened.objectives).on(opened.candidate(IDS[0]))
    step, alike = decision.sentences()[-2:]
    assert step.startswith(f"Fewer accesses: {IDS[1]}, 1,005 bytes (+0.5 %), 972 accesses (-2.8 %).")
    assert alike == f"{IDS[2]} is within 1 % of it in every objective."


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("instructions_pair_mean", 72.5, "Fewer instructions of a malloc and a free: ID, 72.5 instructions a pair"),
        ("accesses_malloc_max", 9, "Fewer accesses of the worst-case malloc: ID, 9 accesses of the worst-case malloc"),
        ("energy_nJ", 72, "Less energy: ID, energy 72 nJ"),
        ("fragmentation", 0.072, "Less fragmentation: ID, fragmentation 0.072"),
        ("code_bytes", 720, "Less code: ID, 720 bytes of code"),
    ],
)
def test_amounts_of_a_step_are_in_words(tmp_path: Path, key: str, value: float, told: str) -> None:
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(1000, 9, **{key: 2 * value})), result(1, metrics(1200, 9, **{key: value}))])
        sentences = decide(opened, "smallest", ["footprint_bytes", key]).sentences()
    wanted = told.replace("ID", f"{IDS[1]}, 1,200 bytes (+20.0 %)") + " (-50.0 %)"
    assert any(sentence.startswith(wanted) for sentence in sentences), sentences


def test_worst_calls_are_in_instructions_where_these_were_measured_for_every_heap(tmp_path: Path) -> None:
    dearest = {"instructions_malloc_max": 180, "instructions_calloc_max": 2824, "instructions_free_max": 85}
    measured = {"instructions_pair_mean": 74.25, **dearest, "code_bytes": 864}
    worst = {"accesses_malloc_max": 9, "accesses_realloc_max": 12, "accesses_free_max": 7}
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.add([result(0, metrics(100, 30, **worst, **measured))])
        output = side_by_side(decide(opened))
        of = {row.words: row.cells[0].text for row in output.rows}
        assert of["malloc and free"] == "74.2" and of["code"] == "864" and of["accesses a call"] == "10.0"
        assert [of[f"worst-case {kind}"] for kind in ("malloc", "calloc", "free")] == ["180", "2,824", "85"]
        opened.add([result(1, metrics(200, 90, **worst, instructions_pair_mean=None), zoo_name="tlsf")])
        output = side_by_side(decide(opened))
        of = {row.words: row.cells[0].text for row in output.rows}
        assert [heap.candidate.label for heap in output.heaps][1:] == ["tlsf"]
        assert "malloc and free" not in of, "tlsf was not measured"
        assert [of[f"worst-case {kind}"] for kind in ("malloc", "realloc", "free")] == ["9", "12", "7"]


def test_a_reserve_bounds_what_is_picked_and_says_what_load_it_serves(tmp_path: Path) -> None:
    more = TraceInfo.of(trace("busy~load-1"))
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity()) as opened:
        opened.set_apart([more], "copy")
        opened.add([result(0, metrics(1000, 400)), result(1, metrics(2000, 1000))])
        opened.add([result(0, metrics(4000, 9), more.name), result(1, metrics(8000, 9), more.name)], "copy")
        assert opened.reserves.tolist() == [1216, 2400]
        assert opened.pick("balanced", where="reserve_bytes <= 1216").id == IDS[0]
        with pytest.raises(HeapwrightError, match="no recipe has reserve_bytes <= 1215; there are 1,216 to 2,400"):
            opened.pick("balanced", where="reserve_bytes <= 1215")
        decision = decide(opened, where=["reserve_bytes <= 3008"])
    serves = "At 4 times the load it needs 4,000. 3,008 bytes serve some 2.5 times the recorded load."
    assert serves in decision.evidence()
    assert (decision.reserve_bytes, decision.more_bytes) == (1216, 4800)
    assert decision.served(1215) == ""
    assert decision.served(1216) == "1,216 bytes serve some 1.0 times the recorded load."
    assert decision.served(3008) == "3,008 bytes serve some 2.5 times the recorded load."
    assert decision.served(4800) == decision.served(9999).replace("9,999", "4,800")
    assert decision.served(9999) == "9,999 bytes serve 4 times the recorded load."


def test_a_pick_admits_as_much_as_any_unless_a_share_is_asked_for(tmp_path: Path) -> None:
    objectives = ("footprint_bytes", "admitted_fraction")
    admitting = [(100, 0.151, 9), (400, 0.88, 5), (800, 0.9997, 2), (1000, 1.0, 1)]
    with Analysis.create_or_resume(tmp_path / "s.duckdb", identity(objectives=objectives)) as opened:
        opened.add(
            [
                result(at, metrics(size, 9, failed=failed, admitted_fraction=share))
                for at, (size, share, failed) in enumerate(admitting)
            ]
        )
        everything = decide(opened, "smallest")
        assert [opened.pick(how).id for how in PICKS] == [IDS[2]] * 3
        in_little = decide(opened, where=["footprint_bytes <= 500"])
        requested = decide(opened, "smallest", where=["admitted_fraction >= 0.5"])
        assert opened.pick("smallest", where="admitted_fraction > 0").id == IDS[0]
    output = "It admits 99.97 % of the requested bytes, as much as any."
    assert everything.sentences()[1] == output
    assert in_little.pick.id == IDS[1]
    assert in_little.sentences()[1] == "It admits 88 % of the requested bytes, as much as any."
    assert requested.pick.id == IDS[1]
    assert requested.sentences()[1] == "It admits 88 % of the requested bytes, and another recipe 100 %."
