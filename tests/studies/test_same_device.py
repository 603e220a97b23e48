"""Loads of one device: memory is the largest, accesses are summed; of many networks the worst ratio counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_tables import each
from click.testing import CliRunner
from keyword_explorations import explore
from sample_studies import IDS, OBJECTIVES, TRACES, identity, metrics, result
from traces_random import plain_trace

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._explore.local_search import RecipeCosts
from heapwright._explore.space import Space
from heapwright._replay.metrics import PER_CALL, combine, combine_columns
from heapwright._studies.analysis import Analysis
from heapwright._studies.merge import merge
from heapwright._studies.records import TraceInfo, device_of
from heapwright._support.errors import HeapwrightError
from heapwright._traces.copies import each_copy
from heapwright._traces.origin import common_origin, origin_of
from heapwright._traces.trace import Trace

QUESTION = "2 loads of one device: memory is the largest, accesses are summed"
NETWORKS = "2 networks or programs: worst ratio over each one's best"


def loads(names: Sequence[str] = ("busy", "idle"), **metadata: str) -> list[Trace]:
    return [
        replace(plain_trace(at, calls=300, name=name), metadata={"format_version": "1", **metadata})
        for at, name in enumerate(names)
    ]


def few() -> Space:
    """Three heaps in place of the zoo."""
    return Space([[hw.zoo(name).at_alignment(8) for name in ("tlsf", "half-fit", "kingsley")]], include_zoo=False)


def with_origin(path: Path, traces: Sequence[Trace], same_device: bool | None = None) -> Path:
    """Three recipes: one with high demand in light load, one with low demand, and the least memory there."""
    about = replace(identity(traces), same_device=same_device, device=device_of(traces, same_device))
    first, *others = (trace.name for trace in traces)
    with Analysis.create_or_resume(path, about) as study:
        for number, points in enumerate(
            [((100, 900), (1000, 900)), ((300, 100), (1000, 100)), ((90, 990), (1100, 90))]
        ):
            study.add([result(number, metrics(*points[0]), first)])
            study.add([result(number, metrics(*points[1]), other) for other in others])
    return path


# ---- where traces come from ----------------------------------------------------------------------------------------


@each(
    ("name", "metadata", "origin"),
    [
        ("any", {"program": "/usr/sbin/lighttpd"}, "lighttpd"),
        ("any", {"workload": "drr", "packets_from": "office.pcap"}, "drr of office.pcap"),
        ("server_a", {}, "server"),
        ("server-12~first", {}, "server"),
        ("drr-0.5", {"workload": "drr"}, "drr"),
        ("server_busy", {}, None),
        ("fifo1000", {}, None),
        ("a", {}, None),
    ],
)
def test_what_a_trace_tells_of_where_it_comes_from(name: str, metadata: dict[str, str], origin: str | None) -> None:
    assert origin_of(replace(TRACES[0], name=name, metadata=metadata)) == origin


def test_traces_have_an_origin_in_common_where_each_tells_the_same() -> None:
    assert common_origin(loads(program="ngircd")) == "ngircd"
    assert common_origin([*loads(program="ngircd"), *loads(["other"])]) is None
    assert common_origin([*loads(program="ngircd"), *loads(["other"], program="jq")]) is None


# ---- what is ranked by ---------------------------------------------------------------------------------------------


def test_of_one_device_memory_is_the_largest_and_accesses_are_summed(tmp_path: Path) -> None:
    with Analysis.open(with_origin(tmp_path / "one.duckdb", loads(program="ngircd"))) as study:
        assert study.question == QUESTION
        assert study.combined.points(OBJECTIVES).tolist() == [[1000, 1800], [1000, 200], [1100, 1080]]
        assert [item.id for item in study.front()] == [IDS[1]]
        assert [item["question"] for item in study.describe(study.front())] == [QUESTION]
        assert {study.pick(how).id for how in ("balanced", "smallest", "fastest")} == {IDS[1]}
    with Analysis.open(with_origin(tmp_path / "many.duckdb", loads())) as study:
        assert study.question == NETWORKS
        assert study.combined.points(OBJECTIVES)[:, 0] == pytest.approx([100 / 90, 300 / 90, 1.1])
        assert {item.id for item in study.front()} == {IDS[1], IDS[2]}, "the best worst ratio in memory"


def test_one_trace_asks_no_question(tmp_path: Path) -> None:
    with Analysis.open(with_origin(tmp_path / "one.duckdb", loads(["busy"], program="ngircd"))) as study:
        assert study.question is None
        assert "same_device" not in study.meta


def test_copies_made_alike_are_loads_of_one_device(tmp_path: Path) -> None:
    traces = loads(program="ngircd")
    path = with_origin(tmp_path / "study.duckdb", traces)
    copies = [copy for trace in traces for copy in each_copy(trace, 2, seed=0)]
    with Analysis.open(path, write=True) as study:
        study.set_apart([TraceInfo.of(copy) for copy in copies], "copy")
        for number in range(2):
            points = [(100 + number, 10)] * 2 + [(1000, 20 + number)] * 2
            named = zip(copies, points, strict=True)
            study.add([result(number, metrics(*point), copy.name) for copy, point in named], "copy")
        outcome = study.elsewhere["copy"]
        assert outcome.devices == [f"{copies[at].name}+{copies[at + 2].name}" for at in range(2)]
        assert outcome.ratios("footprint_bytes").tolist() == [[1, 1], [1, 1]], "the light load's memory is not bought"
        assert outcome.ratios("accesses").tolist() == [[1, 1], [31 / 30, 31 / 30]]


def test_the_mean_call_of_a_device_is_that_of_all_its_calls() -> None:
    columns = {key: np.array([[10.0, 40.0]]) for key in ("footprint_bytes", "accesses", *PER_CALL)}
    outcome = combine_columns(columns, [200, 100])
    assert [outcome[key].tolist() for key in PER_CALL] == [[20.0]] * len(PER_CALL)
    assert (outcome["footprint_bytes"][0], outcome["accesses"][0]) == (40, 50)
    assert combine_columns(columns)["ns_per_event"].tolist() == [40.0]
    assert combine([metrics(1, 2, ns_per_event=3.0), metrics(2, 2, ns_per_event=5.0)], [1, 3])["ns_per_event"] == 4.5


def test_a_search_asks_the_same_question(tmp_path: Path) -> None:
    with Analysis.open(with_origin(tmp_path / "study.duckdb", loads(program="ngircd"))) as study:
        costs = RecipeCosts(study.objectives, study.devices()).of(study, IDS[:3])
    assert costs[:, 0] == pytest.approx([0, 0, np.log(1101 / 1001)])
    assert costs[1, 1] == 0 and costs[0, 1] > costs[2, 1] > 0


# ---- what a study keeps --------------------------------------------------------------------------------------------


def test_what_was_asked_for_is_kept(tmp_path: Path) -> None:
    path, traces = tmp_path / "study.duckdb", loads(program="ngircd")
    how: dict[str, Any] = {"space": few(), "stress_test": False, "copies": 0}
    assert hw.explore(traces, path, same_device=False, **how).question == NETWORKS
    assert hw.explore(traces, path, **how).question == NETWORKS, "the study says it"
    with pytest.raises(HeapwrightError, match="explored on many networks; ask for the same, or give another file"):
        hw.explore(traces, path, same_device=True, **how)
    assert hw.explore(loads(), tmp_path / "told", same_device=True, **how).question == QUESTION


@pytest.mark.parametrize(("program", "question"), [("ngircd", QUESTION), ("jq", NETWORKS)])
def test_a_study_of_one_trace_gets_another(program: str, question: str, tmp_path: Path) -> None:
    first, second = loads(program="ngircd")
    first.write(tmp_path / "busy.parquet")
    path = tmp_path / "study.duckdb"
    hw.explore(tmp_path / "busy.parquet", path, space=few(), stress_test=False, copies=0)
    other = tmp_path / "idle.parquet"
    replace(second, metadata={**second.metadata, "program": program}).write(other)
    assert hw.extend_study(path, other).question == question
    assert hw.extend_study(path, other).question == question


def test_a_study_of_many_networks_stays_one(tmp_path: Path) -> None:
    first, second, third = loads(["busy", "idle", "night"], program="ngircd")
    for item in (first, second):
        item.write(tmp_path / f"{item.name}.parquet")
    path = tmp_path / "study.duckdb"
    given = [tmp_path / "busy.parquet", tmp_path / "idle.parquet"]
    hw.explore(given, path, space=few(), stress_test=False, copies=0, same_device=False)
    assert hw.extend_study(path, third).same_device is False


@pytest.mark.parametrize(("others", "question"), [("ngircd", QUESTION), ("jq", NETWORKS)])
def test_merged_studies_of_one_trace_each_ask_by_their_origins(others: str, question: str, tmp_path: Path) -> None:
    parts = []
    for trace, program in zip(loads(), ("ngircd", others), strict=True):
        made = replace(trace, metadata={**trace.metadata, "program": program})
        parts.append(with_origin(tmp_path / f"{trace.name}.duckdb", [made]))
    merge(parts, tmp_path / "all.duckdb")
    with Analysis.open(tmp_path / "all.duckdb") as study:
        assert study.question == question


def test_studies_of_two_questions_are_not_merged(tmp_path: Path) -> None:
    traces = loads(program="ngircd")
    parts = [with_origin(tmp_path / f"{same}.duckdb", traces, same) for same in (True, False)]
    with pytest.raises(HeapwrightError, match=r"traces are of many networks, unlike those of .*True\.duckdb"):
        merge(parts, tmp_path / "all.duckdb")


# ---- what is said --------------------------------------------------------------------------------------------------


def test_every_page_says_which_question_was_answered(tmp_path: Path) -> None:
    traces, paths = loads(["irc_a", "irc_b"]), []
    for trace in traces:
        paths.append(tmp_path / f"{trace.name}.parquet")
        trace.write(paths[-1])
    study = tmp_path / "study.duckdb"
    explore([Trace.read(path) for path in paths], few(), study_path=study, copies=0, stress_test=False)
    run = CliRunner()
    requested = [["pareto", str(study)], ["pareto", str(study), "--pick", "smallest"], ["pareto", str(study), "--json"]]
    requested.append(["explore", *map(str, paths), "--long-run", "0", "--copies", "0", "--limit", "1", "--json"])
    (tmp_path / "few.toml").write_text('include_zoo = false\n[[pool]]\nkind = "general"\n')
    requested[-1] += ["--space", str(tmp_path / "few.toml"), "--no-same-device", "-o", str(tmp_path / "other.duckdb")]
    said = [run.invoke(command_line, words) for words in requested]
    assert [item.exit_code for item in said] == [0] * 4, [item.output for item in said]
    assert all(QUESTION in " ".join(item.stdout.split()) for item in said[:3])
    assert json.loads(said[3].stdout)["question"] == NETWORKS
    page = tmp_path / "page.html"
    assert run.invoke(command_line, ["report", str(study), "-o", str(page), "--no-plots"]).exit_code == 0
    assert QUESTION in page.read_text()
    assert f"; {QUESTION}" in hw.open_study(study).tuned_for
