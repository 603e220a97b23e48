"""Recommendations from the portfolio: what is evaluated and reported, and that explorations come out the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runner import run_here
from keyword_explorations import explore

import heapwright as hw
from heapwright import _api as api
from heapwright._explore import search, suggest
from heapwright._explore.portfolio import shipped_portfolio, tailored
from heapwright._explore.space import Space
from heapwright._replay.long_run import CALLS
from heapwright._traces.trace import Trace

BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"


@pytest.fixture(scope="module")
def trace() -> Trace:
    whole = hw.read_trace(BROKER)
    return Trace.from_columns(op=whole.op[:1500], id=whole.id[:1500], size=whole.size[:1500], name="start")


@pytest.fixture(scope="module")
def suggestion(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> api.Suggestion:
    result = hw.suggest(trace, tmp_path_factory.mktemp("suggest") / "s.duckdb")
    assert isinstance(result, api.Suggestion)
    return result


def test_the_pick_is_one_that_an_exploration_of_the_list_ranks(
    trace: Trace, suggestion: api.Suggestion, tmp_path: Path
) -> None:
    space = Space([tailored(shipped_portfolio().recipes, [trace])])
    study = hw.explore(trace, tmp_path / "s.duckdb", space=space, complete=True, copies=0, stress_test=False)
    member = study[suggestion.pick.id]
    assert member.recipe.hash == suggestion.pick.recipe.hash
    for key in ("footprint_bytes", "accesses", "failed"):
        assert member.metrics[key] == suggestion.pick.metrics[key]
    assert hw.replay(trace, suggestion.pick).metrics["accesses"] == member.metrics["accesses"]


def test_the_pick_has_a_bounded_need_passes_the_stress_test_and_has_a_reserve(
    suggestion: api.Suggestion,
) -> None:
    decision = suggestion.decision
    metrics = suggestion.pick.metrics
    assert decision.why_not is None and metrics["lasts"] == 1
    assert {need.role for need in decision.needs} == {"explored", "future"}
    recorded, future = (
        max(need.bytes or 0 for need in decision.needs if need.role == role) for role in ("explored", "future")
    )
    assert metrics["long_run_bytes"] == future > 0
    assert decision.reserve_bytes is not None and decision.reserve_bytes >= max(1.2 * recorded, future)
    incumbents = {other.heap.zoo_name for other in decision.others if other.why == "reference"}
    assert incumbents | {suggestion.pick.zoo_name} >= {"all-round", "tlsf", "newlib-nano"}
    assert suggestion.sentences()[-1] == shipped_portfolio().kept_out.sentence()


def test_a_suggestion_looks_at_two_fifths_of_the_future_of_an_exploration() -> None:
    assert suggest.FUTURE == 200_000 == 2 * CALLS // 5


def test_the_study_that_was_asked_for_says_the_same_and_none_stays_else(
    trace: Trace, suggestion: api.Suggestion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suggestion.study is not None
    assert hw.open_study(suggestion.study).pick().id == suggestion.pick.id
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    again = hw.suggest(trace)
    assert (again.pick.id, again.study, list(tmp_path.iterdir())) == (suggestion.pick.id, None, [])


def test_another_list_is_tried_in_its_place(trace: Trace) -> None:
    zoo = len(Space([]))
    output = [{"pool": [{"kind": "general", "free_list": "tree", "fit": "best", "min_block": 64}]}]
    assert hw.suggest(trace, templates=output).recipes == zoo + 1
    assert hw.suggest(trace, templates=[{**output[0], "fragments": True}]).recipes == zoo


def test_what_is_tried_first_does_not_change_what_a_complete_exploration_finds(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = [*list(Space.default([trace]).recipes())[60::50], *tailored(shipped_portfolio().recipes, [trace])]
    studies: list[hw.Study] = []
    for begins in (True, False):
        if not begins:
            monkeypatch.setattr(search, "first_of", lambda traces, align: [])
        path = tmp_path / f"{len(studies)}.duckdb"
        explore([trace], Space([recipes]), study_path=path, complete=True, copies=0, stress_test=False)
        studies.append(hw.open_study(path))
    item, other = (sorted(map(repr, study.to_arrow().drop(["recipe"]).to_pylist())) for study in studies)
    assert item == other
    assert [member.id for member in studies[0].front()] == [member.id for member in studies[1].front()]


def test_the_command_prints_a_recipe_that_every_command_takes(trace: Trace, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        done = run_here(*words, folder=tmp_path)
        done.check_returncode()
        return done.stdout

    trace.write(tmp_path / "start.parquet")
    (tmp_path / "pick.toml").write_text(run("suggest", "start.parquet", "-o", "s.duckdb", "--toml"))
    assert "pick.toml" in run("replay", "start.parquet", "--heap", "pick.toml")
    printed = run("pareto", "s.duckdb", "--pick", "balanced", "--toml")
    assert hw.read_recipe(tmp_path / "pick.toml").hash == hw.Recipe.parse(printed, "printed").hash


def test_a_recipe_alone_and_a_document_do_not_go_together() -> None:
    done = run_here("suggest", BROKER, "--toml", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not with --json" in done.stderr


def test_the_pick_for_a_platform_is_as_it_is_generated_there(trace: Trace) -> None:
    pick = hw.suggest(trace, platform="freertos").pick.recipe
    assert pick.counters and pick.align == 8
    assert all(getattr(pool, "resize", "move") == "move" for pool in pick.pools)
    with pytest.raises(hw.HeapwrightError, match="4: freertos needs 8 or more"):
        hw.suggest(trace, align=4, platform="freertos")
