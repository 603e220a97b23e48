"""Studies with made-up metrics: what is stored, ranked, resumed and refused."""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sample_studies import IDS, OBJECTIVES, RECIPES, TRACES, identity, metrics, recipe, result, trace, write_five

import heapwright as hw
from heapwright._api.explorations import study_in
from heapwright._recipes.recipe import Recipe
from heapwright._replay.energy import EnergyTable
from heapwright._replay.metrics import METRICS, combine, parse_objectives
from heapwright._studies import tables
from heapwright._studies.analysis import Analysis
from heapwright._studies.as_shipped import shipped
from heapwright._studies.records import Identity, Result, Run, TraceInfo
from heapwright._studies.results import Candidate
from heapwright._support.errors import HeapwrightError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_five(tmp_path_factory.mktemp("study") / "five.duckdb")


@pytest.fixture
def study(path: Path, five: Path) -> Iterator[Analysis]:
    """A copy of the five."""
    shutil.copyfile(five, path)
    with Analysis.create_or_resume(path, identity()) as opened:
        yield opened


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.id for candidate in candidates]


def test_results_come_back_as_they_were_stored(study: Analysis, path: Path) -> None:
    measured = metrics(7, 2**40, fragmentation=1 / 3, ns_per_event=None)
    study.add([result(5, measured)])
    study.close()
    with Analysis.open(path) as again:
        assert again.per_trace([IDS[5]]) == {IDS[5]: {"busy": measured}}
        assert again.candidate(IDS[5]).metrics == measured
        assert again.recipe(IDS[5]) == RECIPES[5]


def test_a_study_that_is_written_here_is_not_opened_twice(study: Analysis, path: Path) -> None:
    with pytest.raises(HeapwrightError, match=r"study\.duckdb: this process is writing this study; close it first$"):
        Analysis.open(path)


def test_meta_says_what_was_explored(study: Analysis) -> None:
    assert study.objectives == OBJECTIVES
    assert study.traces() == [TraceInfo.of(TRACES[0])]
    assert study.meta["format"] == 7


def test_front_and_picks(study: Analysis) -> None:
    assert ids(study.front()) == [IDS[0], IDS[1], IDS[3]]
    assert study.pick("smallest").id == IDS[0]
    assert study.pick("fastest").id == IDS[3]
    # the third needs ten times the memory; of the others one doubles it for 2.5 times the accesses
    assert study.pick("balanced").id == IDS[0]


def test_ranking_anew_by_other_metrics(study: Analysis) -> None:
    assert ids(study.front("accesses")) == [IDS[3]]
    with pytest.raises(HeapwrightError, match="did you mean accesses"):
        study.front("acesses")


def test_ranking_by_what_is_worked_out_of_metrics(study: Analysis) -> None:
    by_calls = ["footprint_bytes", "accesses / calls"]
    assert ids(study.front(by_calls)) == ids(study.front())  # of one trace, whose calls are the same for all
    assert study.pick("balanced", by_calls).id == study.pick("balanced").id
    member = study.front(["footprint_bytes", lambda m: m["accesses"] / m["calls"]])[0]
    assert member.metrics["accesses / calls"] == pytest.approx((member.metrics["accesses"] or 0) / len(TRACES[0]))
    with pytest.raises(HeapwrightError, match="'foot' is no metric"):
        study.front("foot / calls")


def test_a_study_keeps_what_its_objectives_are_worked_out_of(tmp_path: Path) -> None:
    objectives = parse_objectives("footprint_bytes, accesses/calls")
    with Analysis.create_or_resume(tmp_path / "study.duckdb", identity(TRACES, objectives)) as study:
        study.add([result(0, metrics(200, 30)), result(0, metrics(100, 60), "idle")])
        study.add([result(1, metrics(100, 90)), result(1, metrics(100, 90), "idle")])
    with Analysis.open(tmp_path / "study.duckdb") as study:
        assert study.objectives == ("footprint_bytes", "accesses / calls")
        assert ids(study.front()) == [IDS[1], IDS[0]]  # each needs least of something, at worst


def test_refusing_recipes_are_on_a_front_of_admitted_fraction_only(study: Analysis) -> None:
    assert IDS[4] not in ids(study.front())
    study.add([result(6, metrics(60, 60, failed=1, admitted_fraction=0.9))])
    assert ids(study.front("footprint_bytes,admitted_fraction")) == [IDS[4], IDS[6]]


def test_recipes_without_an_objective_are_not_ranked(study: Analysis) -> None:
    assert study.front("ns_per_event") == []
    with pytest.raises(HeapwrightError, match="the front is empty"):
        study.pick("balanced", "ns_per_event")


def test_zoo_standings(study: Analysis) -> None:
    alpha, beta, gamma = study.zoo_standings()
    assert alpha.on_front
    assert (beta.dominated_by, beta.ratios) == (IDS[1], {"footprint_bytes": pytest.approx(1.1), "accesses": 2.0})
    assert (gamma.on_front, gamma.dominated_by) == (False, None)


def test_an_equal_of_a_member_is_dominated_with_ratio_one(study: Analysis) -> None:
    study.add([result(7, metrics(100, 1000), zoo_name="twin")])
    (twin,) = (standing for standing in study.zoo_standings() if standing.candidate.zoo_name == "twin")
    assert (twin.dominated_by, twin.ratios) == (IDS[0], {"footprint_bytes": 1.0, "accesses": 1.0})


def test_only_recipes_finished_on_every_trace_are_combined(path: Path) -> None:
    with Analysis.create_or_resume(path, identity(TRACES)) as study:
        both = [metrics(10, 5, header_bytes=3), metrics(30, 7, header_bytes=1)]
        study.add([result(0, both[0], "busy"), result(0, both[1], "idle"), result(1, metrics(1, 1), "busy")])
        assert study.combined.ids == [IDS[0]]
        assert study.candidate(IDS[0]).metrics == combine(both)
        with pytest.raises(HeapwrightError, match="not tried on every trace"):
            study.candidate(IDS[1])
        study.add([result(1, metrics(1, 1), "idle")])
        assert ids(study.front()) == [IDS[1]]


def test_recipes_are_named_by_id_prefix_or_zoo_name(study: Analysis) -> None:
    assert study.resolve(IDS[0][:8]) == IDS[0]
    assert study.resolve(IDS[0].upper()) == IDS[0]
    assert study.resolve("beta") == IDS[2]
    for wrong in ("zz", ""):
        with pytest.raises(HeapwrightError, match="no such recipe"):
            study.resolve(wrong)
    study.add([Result(item.hash, item, None, "busy", metrics(9, 9)) for item in map(recipe, range(100, 117))])
    digits = [id[0] for (id, _) in study.finished()]
    with pytest.raises(HeapwrightError, match="give more"):
        study.resolve(max(digits, key=digits.count))


def test_describe_is_the_json_of_pareto(study: Analysis) -> None:
    (item,) = study.describe([study.pick("smallest")])
    assert item["id"] == IDS[0]
    assert Recipe.from_dict(item["recipe"]).hash == IDS[0]
    assert item["metrics"] == item["traces"]["busy"] == metrics(100, 1000)


def test_a_study_tells_whether_it_is_complete(study: Analysis, path: Path) -> None:
    assert study.complete is False
    assert study.tried == "5 of 8"
    assert study.tuned_for.endswith("; 5 of 8 recipes tried")
    study.add([result(number, metrics(9, 9)) for number in (5, 6, 7)])
    assert study.complete is True
    assert study.tried == "8"
    assert "recipes tried" not in study.tuned_for


def test_a_part_of_a_space_says_what_to_mind(study: Analysis, path: Path) -> None:
    assert study.caveat == f"{path}: partial: 5 of 8 recipes were tried; the others may be better"
    for tolerance, near in ((0.01, "front within 1 %"), (0.0, "exact front")):
        study.set_tolerance(tolerance)
        assert study.caveat == (
            f"{path}: {near}: 5 of 8 recipes were finished, the others cannot come on it; other objectives or "
            "conditions may need them, and a complete exploration finishes them"
        )
    study.add([result(number, metrics(9, 9)) for number in (5, 6, 7)])
    assert study.caveat is None


def test_each_trace_has_results_of_its_own(path: Path) -> None:
    with Analysis.create_or_resume(path, identity(TRACES)) as study:
        study.add([result(0, metrics(10, 5), "busy"), result(0, metrics(30, 7), "idle")])
        for name, wanted in (("busy", metrics(10, 5)), ("idle", metrics(30, 7))):
            alone = study.alone(name)
            assert (alone.traces, alone.devices) == ([name], [name])
            assert alone.find(IDS[0]) == Candidate(IDS[0], None, wanted)


def test_what_is_not_ranked_is_shown_beside_the_rest(study: Analysis) -> None:
    study.add([result(7, metrics(1, 1), zoo_name="alpha@4", ranked=False)])
    assert ids(study.front()) == [IDS[0], IDS[1], IDS[3]]
    assert study.tried == "5 of 8"
    assert study.candidate("alpha@4").metrics["footprint_bytes"] == 1
    standing = next(item for item in study.zoo_standings() if item.candidate.label == "alpha@4")
    assert (standing.ranked, standing.on_front, standing.dominated_by, standing.ratios) == (False, False, None, {})


def test_a_study_has_one_alignment(study: Analysis, path: Path) -> None:
    assert study.align == 8
    study.close()
    with pytest.raises(HeapwrightError, match="explored at alignment 8, not 4; give the same one, or another file"):
        Analysis.create_or_resume(path, identity(align=4))


def test_what_ships_says_what_was_measured_where_its_traces_are_gone(study: Analysis) -> None:
    output = shipped(study, IDS[0][:6], RECIPES[0])
    assert output.tuned_for == "busy (3 calls); objectives footprint_bytes, accesses; 5 of 8 recipes tried"
    assert output.metrics == metrics(100, 1000)
    assert output.reserve == "Reserve 144 bytes for a load like the recorded one."
    counted = shipped(study, IDS[0], RECIPES[0].model_copy(update={"counters": True}))
    assert counted.metrics is None
    assert counted.reserve.endswith("recorded one, and 24 more for the counters that it has here: 168.")


def test_held_out_results_are_stored_apart(study: Analysis) -> None:
    other = TraceInfo.of(TRACES[1])
    study.set_apart([other], "held out")
    study.add([result(0, metrics(1, 1), "idle")], "held out")
    assert study.finished("held out") == {(IDS[0], "idle")}
    assert study.elsewhere["held out"].find(IDS[0]) == Candidate(IDS[0], None, metrics(1, 1))
    study.add([result(1, metrics(2, 2), "idle")], "held out")
    assert study.elsewhere["held out"].ids == sorted([IDS[0], IDS[1]])
    assert study.candidate(IDS[0]).metrics == metrics(100, 1000)
    assert set(study.per_trace([IDS[0]])[IDS[0]]) == {"busy", "idle"}
    study.set_apart([other], "held out")
    assert study.finished("held out")
    study.set_apart([TraceInfo.of(trace("idle", 8))], "held out")
    assert not study.finished("held out")


def test_a_trace_cannot_be_explored_on_and_held_out(study: Analysis) -> None:
    for clash in (trace("busy", 4), trace("renamed")):
        with pytest.raises(HeapwrightError, match="held out and explored on"):
            study.set_apart([TraceInfo.of(clash)], "held out")


# Resuming


def test_resuming_knows_what_is_finished(study: Analysis, path: Path) -> None:
    study.close()
    with Analysis.create_or_resume(path, identity()) as again:
        assert again.finished() == {(IDS[number], "busy") for number in range(5)}
        again.add([result(5, metrics(1, 1))])
        assert len(again.combined.ids) == 6


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (identity(TRACES), r"explored on other traces \(busy\)"),
        (identity([trace("busy", 25)]), "explored on other traces"),
        (identity(objectives=("accesses",)), "explored for footprint_bytes,accesses"),
        (identity(ids=IDS[1:]), "explored with another space"),
        (identity(table=EnergyTable((1, 2), (1, 2), (1, 2))), "explored with another energy table"),
    ],
)
def test_another_exploration_is_refused_with_a_way_out(study: Analysis, path: Path, other: Identity, says: str) -> None:
    study.close()
    with pytest.raises(HeapwrightError, match=says) as caught:
        Analysis.create_or_resume(path, other)
    assert "another file" in str(caught.value)
    with Analysis.open(path) as untouched:
        assert len(untouched.finished()) == 5


RUN = Run(
    "2026-01-01T00:00:00+00:00", "0.1.0", "ab" * 32, None, "heapwright explore a.parquet", "random", 3, "", "x = 1\n"
)


def test_a_study_tells_what_its_explorations_were_asked_for(study: Analysis, path: Path, tmp_path: Path) -> None:
    assert study.runs() == []  # as those of older versions
    later = replace(RUN, begun="2026-01-02T00:00:00+00:00", command=None, space=None, commit="cd" * 20)
    study.add_run(later)
    study.add_run(RUN)
    study.close()
    shutil.copyfile(path, tmp_path / "other.duckdb")
    hw.merge_studies([path, tmp_path / "other.duckdb"], tmp_path / "both.duckdb")
    with Analysis.open(path) as again, Analysis.open(tmp_path / "both.duckdb") as both:
        output = shipped(again, IDS[0], RECIPES[0]).explored
        made = f"strategy random, seed 3, space {again.meta['space'][:12]}, engine abababababab, commit cdcdcdcdcdcd."
        assert output == f"Explored from Python: {made}"
        assert again.runs() == [RUN, later]
        assert both.runs() == [RUN, RUN, later, later]


def test_a_trace_is_known_by_its_calls_not_its_file() -> None:
    assert TraceInfo.of(trace("a")).digest == TraceInfo.of(trace("b")).digest
    assert TraceInfo.of(trace("a")).digest != TraceInfo.of(trace("a", 25)).digest


def test_tables_have_the_columns_that_the_manual_tells() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("## The study file")[2], re.MULTILINE)
    output = {table: re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|: .*format.*", "", columns)) for table, columns in rows}
    named = {"target": tables.TARGET, "search": tables.SEARCH, "runs": tables.RUNS, **tables.TABLES}
    del named["elsewhere"]  # as `results`, the manual says
    assert output == {table: [column for column in named[table] if column not in METRICS] for table in output}
    assert sorted(output) == sorted(named)


def test_a_path_or_a_heap_of_it_leads_to_a_study(study: Analysis, path: Path, tmp_path: Path) -> None:
    study.close()
    TRACES[0].write(tmp_path / "busy.parquet")
    for source in (path, f"{path}:{IDS[0]}"):
        outcome = study_in(source)
        assert outcome is not None and outcome.path == path
    for source in (tmp_path / "busy.parquet", tmp_path / "none.duckdb"):
        assert study_in(source) is None
