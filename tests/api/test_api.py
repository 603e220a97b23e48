"""The Python API: every name, what it takes for a trace and a heap, and its errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import altair
import duckdb
import pytest
from metric_values import known

import heapwright as hw
from heapwright import _api as api
from heapwright._api import Fit, Replay
from heapwright._recipes.recipe import Recipe
from heapwright._studies.decision import decide
from heapwright._traces.trace import Trace

BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"
Found = TypeVar("Found", Replay, Fit)
PACKETS = BROKER.with_name("tcp_transfers.parquet")


@pytest.fixture(scope="module")
def trace() -> Trace:
    whole = hw.read_trace(BROKER)
    return Trace.from_columns(op=whole.op[:400], id=whole.id[:400], size=whole.size[:400], name="start")


@pytest.fixture(scope="module")
def study(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[api.Study]:
    yield hw.explore(trace, tmp_path_factory.mktemp("api") / "s.duckdb", strategy="random", limit=40, seed=1)


def several(found: Found | list[Found]) -> list[Found]:
    """A list, as is returned where a list is given."""
    assert isinstance(found, list)
    return found


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_names_are_those_documented() -> None:
    assert hw.__all__ == sorted(hw.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert dir(hw) == sorted(hw.__all__)
    reference = (BROKER.parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    for name in hw.__all__:
        assert getattr(hw, name).__doc__ or name == "__version__"
        assert f"`{name}" in reference or f"hw.{name}" in reference, f"docs/api.md does not describe {name}"


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    heavy = "[m for m in ('numpy', 'duckdb', 'pydantic', 'altair', 'typing', 'heapwright._api') if m in sys.modules]"
    assert in_a_new_process(f"import sys, heapwright; print({heavy})") == "[]"


def test_functions_hold_against_the_folders_of_their_names() -> None:
    code = (
        "import heapwright as hw, heapwright._replay.replay as module, heapwright._explore.search\n"
        f"print(module.__name__, hw.replay({str(BROKER)!r}, 'tlsf').heap, hw.zoo('tlsf').name)"
    )
    assert in_a_new_process(code) == "heapwright._replay.replay tlsf tlsf"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'alloc'"):
        hw.alloc  # noqa: B018


@pytest.mark.parametrize("heap", ["tlsf", "path", "recipe", "member"])
def test_a_heap_is_a_name_a_path_a_recipe_or_a_member(
    heap: str, trace: Trace, study: api.Study, tmp_path: Path
) -> None:
    recipe = hw.zoo("tlsf")
    (tmp_path / "own.toml").write_text(recipe.to_toml(), encoding="utf-8")
    heaps: dict[str, api.AnyHeap] = {
        "tlsf": "tlsf",
        "path": tmp_path / "own.toml",
        "recipe": recipe,
        "member": study["tlsf@4"],
    }
    given = heaps[heap]
    result = hw.replay(trace, given)
    assert result.metrics == hw.replay(trace, "tlsf").metrics
    assert result.metrics["footprint_bytes"] == study["tlsf@4"].metrics["footprint_bytes"]
    assert study["tlsf"].recipe == recipe.at_alignment(8)
    assert hw.fit(trace, given).smallest_arena_bytes == hw.fit(trace, "tlsf").smallest_arena_bytes


def test_every_heap_of_a_list_is_answered(trace: Trace) -> None:
    tlsf, best = hw.zoo("tlsf"), hw.zoo("kingsley")
    assert [item.heap for item in several(hw.replay(trace, ["tlsf", "kingsley", "tlsf"]))] == [
        "tlsf",
        "kingsley",
        "tlsf",
    ]
    alike = [tlsf, best.model_copy(update={"name": "tlsf"}), tlsf]
    first, second, third = several(hw.replay(trace, alike))
    assert {item.heap for item in (first, second, third)} == {"tlsf"}
    assert first.metrics == third.metrics == hw.replay(trace, "tlsf").metrics
    assert second.metrics == hw.replay(trace, "kingsley").metrics != first.metrics
    assert [item.heap for item in several(hw.fit(trace, ["tlsf", "kingsley", "tlsf"], copies=0))] == [
        "tlsf",
        "kingsley",
        "tlsf",
    ]
    assert len(hw.stress(trace, ["tlsf", tlsf], calls=10_000)) == 2


def test_lists_give_lists_trace_by_trace(trace: Trace) -> None:
    result = several(hw.replay([trace, BROKER], ["tlsf", "kingsley"]))
    assert [(item.trace, item.heap) for item in result] == [
        ("start", "tlsf"),
        ("start", "kingsley"),
        ("mosquitto_broker", "tlsf"),
        ("mosquitto_broker", "kingsley"),
    ]
    assert result[2].metrics["footprint_bytes"] == 136_380
    assert [item.smallest_arena_bytes for item in several(hw.fit([BROKER], "victim-bins"))] == [141_488]


def test_a_study_answers_after_it_was_closed_and_while_it_is_explored_again(study: api.Study, trace: Trace) -> None:
    front = study.front()
    assert [member.id for member in front] == [
        member.id for member in hw.explore(trace, study.path, strategy="random", limit=40, seed=1).front()
    ]
    smallest = study.pick("smallest")
    least = min(known(member.metrics["long_run_bytes"]) for member in front)
    assert least <= known(smallest.metrics["long_run_bytes"]) <= 1.05 * least
    assert study[smallest.id[:8]] == smallest
    assert isinstance(smallest.recipe, Recipe)
    assert smallest.recipe.hash == smallest.id
    assert smallest.tuned_for.startswith("start (400 calls); objectives long_run_bytes, long_run_accesses")
    assert " of " in study.tried and smallest.tuned_for.endswith(f"; {study.tried} recipes tried"), (
        "a partial study says so"
    )


def test_a_study_is_a_table_and_a_chart(study: api.Study) -> None:
    table = study.to_arrow()
    assert table.num_rows == len(study.combined.ids)
    front = [row["id"] for row in table.to_pylist() if row["front"]]
    assert sorted(front) == sorted(member.id for member in study.front())
    row = table.to_pylist()[0]
    assert Recipe.parse(row["recipe"]).hash == row["id"]
    assert row["smallest_arena_bytes"] is None
    chart = study.plot()
    assert isinstance(chart, altair.TopLevelMixin)
    sets = chart.to_dict(validate=False)["datasets"].values()
    drawn = next(rows for rows in sets if {"kind", "label"} <= set(rows[0]))
    assert sum(row["kind"] == "front" for row in drawn) == len(front)
    assert sum(row["pick"] for row in drawn) == 1


def test_short_reprs(study: api.Study, trace: Trace) -> None:
    assert repr(trace) == f"<Trace start: 400 calls, peak {trace.peak_live_bytes:,} B live>"
    assert repr(hw.replay(BROKER, "tlsf")).endswith(
        "mosquitto_broker on tlsf: footprint_bytes 136,380, accesses 204,875, failed 0>"
    )
    assert (
        repr(hw.fit(BROKER, "victim-bins"))
        == "<Fit of victim-bins on mosquitto_broker: smallest 141,488, safe 141,488, reserve 169,792 bytes>"
    )
    assert repr(hw.zoo("sos")) == f"<Recipe sos: {hw.zoo('sos').summary()}>"
    assert repr(study).startswith(f"<Study {study.path}: ")
    assert repr(study["tlsf"]).startswith("<tlsf: long_run_bytes ")


def test_profiles_of_traces_and_packets(trace: Trace) -> None:
    assert hw.profile(BROKER) == hw.profile(hw.read_trace(BROKER))
    assert hw.profile(trace)["events"] == 400
    assert hw.profile(PACKETS)["packets"] > 0


def test_workloads() -> None:
    made = hw.workload("drr", PACKETS)
    assert len(made) > 100
    assert len(hw.workload("poisson", requests=100, seed=3)) >= 100


def test_the_name_of_a_heap_of_a_study_is_resolved_once(
    study: api.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    connect = duckdb.connect

    def counted(name: str = ":memory:", **options: Any) -> duckdb.DuckDBPyConnection:
        opened.append(name)
        return connect(name, **options)

    monkeypatch.setattr("heapwright._support.database.duckdb.connect", counted)
    name = f"{study.path}:{study.pick().id}"
    for use in (
        lambda: hw.generate(name, tmp_path / "alone"),
        lambda: hw.generate(name, tmp_path / "bound", platform="freertos"),
        lambda: hw.replay(BROKER, name),
        lambda: hw.fit(BROKER, name, copies=0),
        lambda: hw.open_study(study.path),
        study.front,
        study.pick,
        lambda: study["tlsf"],
        lambda: decide(study),
        lambda: repr(study),
    ):
        opened.clear()
        use()
        assert opened.count(str(study.path.absolute())) == 1


def test_a_pick_of_a_study_is_the_name_of_a_heap(study: api.Study, trace: Trace, tmp_path: Path) -> None:
    for how in ("balanced", "smallest", "fastest"):
        picked = hw.replay(trace, f"{study.path}:{how}")
        assert picked.metrics["footprint_bytes"] == study.pick(how).metrics["footprint_bytes"]
    (source, *_) = hw.generate(f"{study.path}:smallest", tmp_path / "heap")
    assert study.pick("smallest").id in source.read_text(encoding="utf-8")


def test_generate_says_what_the_recipe_was_tuned_for(study: api.Study, tmp_path: Path) -> None:
    files = hw.generate(study.pick(), tmp_path / "heap", prefix="net")
    assert [file.name for file in files] == [
        "net_heap.c",
        "net_heap.h",
        "net_heap_test.c",
        "net_heap_checks.h",
        "net_heap.toml",
    ]
    assert "Tuned for start (400 calls)" in files[1].read_text(encoding="utf-8")
    assert "Tuned for" not in hw.generate("tlsf", tmp_path / "heap")[1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hw.read_trace("none.parquet"), "none.parquet: no such file"),
        (lambda: hw.read_recipe("none.toml"), "none.toml: No such file or directory"),
        (lambda: hw.zoo("tslf"), "tslf: the zoo has no such allocator; did you mean tlsf"),
        (lambda: hw.replay(BROKER, "tslf"), "did you mean tlsf"),
        (lambda: hw.replay(BROKER, "tlsf", arena=1), "the arena has 1"),
        (lambda: hw.open_study("none.duckdb"), "none.duckdb: no such study"),
        (lambda: hw.explore(BROKER, "no/such/folder/s.duckdb"), "there is no folder no/such/folder"),
        (lambda: hw.workload("drx"), "drx: no such workload; did you mean drr"),
        (lambda: hw.workload("drr"), "drr: needs packets"),
        (lambda: hw.workload("poisson", requets=1), "poisson: no option requets; did you mean requests"),
        (lambda: hw.generate("lib:glibc", "heap"), "no recipe but a foreign heap"),
        (lambda: hw.generate("tlsf", "heap", prefix="a b"), "a b"),
        (lambda: hw.record(["/no/such/program"]), "/no/such/program"),
        (lambda: hw.report("none", "page.html"), "none: No such file or directory"),
        (lambda: hw.measure("lib:none", BROKER), "lib:none: no C library that can be measured"),
        (lambda: hw.reproduce("everything", "out"), "everything: cannot be reproduced"),
        (lambda: hw.import_packets(BROKER), "formats of packets: capture, tsh, csv"),
    ],
)
def test_errors_are_one_line(call: object, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hw.HeapwrightError) as caught:
        call()  # type: ignore[operator]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
