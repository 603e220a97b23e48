"""Long traces are explored by their pieces, and the study has what a shortlist did on all of their calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from heapwright._cli import heapwright as command_line
from heapwright._explore import options as options_module
from heapwright._explore import suggest as suggest_module
from heapwright._explore.options import Options
from heapwright._explore.portfolio import portfolio_space
from heapwright._explore.search import explore
from heapwright._explore.shortlist import FEWEST
from heapwright._explore.space import Space
from heapwright._replay.replay import replay
from heapwright._studies.analysis import Analysis
from heapwright._traces import pieces
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CALLS = 12_000


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A trace that counts as long, whose pieces have a sixth of its calls."""
    whole = Trace.read(EXAMPLES / "mosquitto_broker.parquet")
    for module in (pieces, options_module):
        monkeypatch.setattr(module, "LONG", CALLS - 1)
    monkeypatch.setattr(pieces, "CALLS", 2000)
    return Trace.from_columns(op=whole.op[:CALLS], id=whole.id[:CALLS], size=whole.size[:CALLS], name="broker")


@pytest.fixture
def space(broker: Trace) -> Space:
    return portfolio_space([broker])


def test_the_study_has_metrics_of_whole_traces_and_names_the_pieces(
    broker: Trace, space: Space, tmp_path: Path
) -> None:
    path = tmp_path / "app.study"
    done = explore([broker], space, path, Options(jobs=1, whole_calls=12 * CALLS, future=2000))
    with Analysis.open(path) as study:
        assert study.ranked == 12 < done.recipes == study.meta["pieces"]["tried"]
        ((name, (part, whole)),) = study.meta["pieces"]["calls"].items()
        assert (name, whole) == ("broker", CALLS) and part < CALLS / 2
        assert study.caveat is not None
        assert f"{part:,} of {CALLS:,} calls of broker" in study.caveat
        assert "12 of them then replayed on all calls" in study.caveat
        assert not study.complete and study.tolerance is None
        for id in study.finished_recipes:
            metrics = study.per_trace([id])[id]["broker"]
            assert metrics["footprint_bytes"] == replay(broker, study.recipe(id))["footprint_bytes"]
            need = metrics["long_run_bytes"]
            assert need is None or int(need) >= int(metrics["footprint_bytes"] or 0)
        assert study.pick("balanced").id in study.finished_recipes


@pytest.mark.parametrize("option", [{"complete": True}, {"tolerance": 0.01}, {"budget": 60.0}, {"by_pieces": False}])
def test_an_effort_that_is_asked_for_takes_whole_traces(broker: Trace, option: dict[str, float]) -> None:
    assert Options().takes_pieces([broker])
    assert not Options(**option).takes_pieces([broker])  # type: ignore[arg-type]


def test_other_metrics_and_short_traces_take_whole_traces(broker: Trace) -> None:
    assert not Options(objectives="footprint_bytes,ns_per_event").takes_pieces([broker])
    short = Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0])
    assert not Options().takes_pieces([short])


def test_suggest_replays_few_recipes_on_all_calls_and_names_the_pieces(
    broker: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest_module, "WHOLE_CALLS", CALLS)
    result = suggest_module.suggest([broker], tmp_path / "app.study", jobs=1)
    assert result.caveat is not None and f"{FEWEST} of them" in result.caveat
    assert result.recipes > 100
    assert result.decision.reserve_bytes is not None


def test_the_command_prints_the_pieces(broker: Trace, tmp_path: Path) -> None:
    broker.write(tmp_path / "broker.parquet")
    done = CliRunner().invoke(command_line, ["suggest", str(tmp_path / "broker.parquet")])
    assert done.exit_code == 0, done.output
    assert "calls of broker" in done.stderr
