"""What calls of the API answer, and what they refuse, on inputs of a few lines."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sample_studies import write_five
from sample_traces import trace_of

import heapwright as hw
from heapwright import _api as api
from heapwright._api import generation
from heapwright._api.heaps import Worst
from heapwright._traces.trace import Trace

MANY = trace_of(*((0, at, 8 * at) for at in range(1, 31)))
"""Thirty sizes, all alive at the end."""


def test_a_notebook_shows_the_twenty_most_frequent_sizes() -> None:
    shown = hw.profile(MANY)._repr_html_()
    assert "30 sizes" in shown
    assert shown.count("<tr") - hw.profile(trace_of((0, 1, 8)))._repr_html_().count("<tr") == 19


def test_a_worst_case_that_nothing_bounds_is_unknown() -> None:
    result = Worst(MANY, "mine", "footprint_bytes", 12_345, 10_000, None, 7, "")
    values = "footprint_bytes 12,345, 10,000 on the trace itself"
    assert repr(result) == f"<Adversarial search on mine: {values}, worst case unknown bytes>"


def test_hooks_have_the_names_of_the_documentation(tmp_path: Path) -> None:
    assert hw.hooks("newlib", tmp_path)[0].name == "app_trace_README.md"


@dataclass(frozen=True)
class Entry:
    """Of an installed distribution."""

    run: Callable[..., dict[str, Any]]

    def load(self) -> Callable[..., dict[str, Any]]:
        return self.run


@pytest.mark.parametrize("packets", [None, "folder"])
def test_papers_are_asked_with_paths(packets: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[tuple[Any, ...]] = []

    def run(*given: Any) -> dict[str, Any]:
        given[3]("a line")  # no one has to listen
        requested.append((*given[:3], *given[4:]))
        return {"pages": []}

    entry = Entry(run)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: (entry,))
    assert hw.reproduce("drr", "out", packets=packets, reading="r", readings=True) == {"pages": []}
    assert requested == [("drr", packets and Path(packets), Path("out"), "r", True)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    with pytest.raises(hw.HeapwrightError, match="the source papers are not installed; pip install"):
        hw.reproduce("drr", "out")


def baseline(folder: Path, *rows: tuple[str, str]) -> Path:
    """What was checked of these traces on these heaps: half of what MANY takes."""
    file = folder / "before.json"
    values = {"accesses": 1, "reserve_bytes": 1}
    file.write_text(json.dumps([{"trace": t, "heap": h, "values": values, "holders": []} for t, h in rows]))
    return file


def test_a_baseline_is_found_by_trace_and_heap(tmp_path: Path) -> None:
    def broken(*rows: tuple[str, str]) -> bool:
        (result,) = hw.check(MANY, "tlsf", "accesses > +5%", baseline=baseline(tmp_path, *rows))
        return not result.passed

    assert broken(("before", "tlsf")) and broken(("before", "other"))  # the only one there is
    assert broken(("t", "tlsf"), ("other", "tlsf")) and broken(("t", "other"), ("t", "tlsf"))
    for rows in ([("a", "tlsf"), ("b", "tlsf")], [("t", "one"), ("t", "two")]):
        output = ", ".join(f"{trace} on {heap}" for trace, heap in rows)
        with pytest.raises(hw.HeapwrightError, match=f"none or several are for t on tlsf; there are: {output}$"):
            broken(*rows)
    (tmp_path / "before.json").write_text('[{"trace": "t"}]')
    with pytest.raises(hw.HeapwrightError, match=r"before.json: no baseline \('heap'\); what was checked before"):
        hw.check(MANY, "tlsf", baseline=tmp_path / "before.json")


def test_only_a_study_is_compared_with_another(tmp_path: Path) -> None:
    study = write_five(tmp_path / "s.duckdb")
    MANY.write(tmp_path / "t.parquet")
    with pytest.raises(hw.HeapwrightError, match=r"t.parquet: no study; only a study is compared with another"):
        hw.report(tmp_path / "t.parquet", tmp_path / "r.html", baseline=study)
    with pytest.raises(hw.HeapwrightError, match="report: the trace came from no file; write it first"):
        hw.report(MANY, tmp_path / "r.html")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hw.fit(MANY, "tlsf", copies=-1), "-1; must be 0 or more"),
        (lambda: hw.fit(MANY, "tlsf", share=0), "0; must be above 0 and at most 1"),
        (lambda: hw.fit(MANY, "tlsf", growth=0), "0; must be above 0 and finite"),
        (lambda: hw.fit(MANY, "tlsf", growth=float("inf")), "inf; must be above 0 and finite"),
    ],
)
def test_options_of_fit_have_bounds(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hw.HeapwrightError, match=says):
        call()


def several(heaps: list[Any]) -> list[api.Fit]:
    result = hw.fit(MANY, heaps)
    assert isinstance(result, list)
    return result


def test_shares_and_copies_at_their_bounds_are_taken() -> None:
    result = hw.fit(MANY, "tlsf", copies=0, share=1.0)
    assert result.reserve_bytes == several(["tlsf"])[0].reserve_bytes
    again = several(["tlsf", hw.zoo("tlsf"), "tlsf"])
    assert [item.heap for item in again] == ["tlsf"] * 3 and len({item.reserve_bytes for item in again}) == 1


def test_a_trace_that_was_read_is_taken_as_its_file_is(tmp_path: Path) -> None:
    MANY.write(tmp_path / "t.parquet")
    read = Trace.read(tmp_path / "t.parquet")
    assert hw.replay(read, "tlsf").metrics == hw.replay(tmp_path / "t.parquet", "tlsf").metrics


def test_every_name_is_there() -> None:
    assert [name for name in dir(api) if getattr(api, name, None) is None] == []


def test_evidence_is_of_every_trace_and_says_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise hw.HeapwrightError("there is no tool")

    for tool in ("measure", "attack", "prove"):
        monkeypatch.setattr(generation, tool, missing)
    few = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[24, 16, 0], name="few")
    steps: list[str] = []
    files = hw.generate("tlsf", tmp_path, evidence=[MANY, few], prove_calls=2, progress=steps.append)
    assert steps == ["the arena to reserve", "instructions on cortex-m3", "faults"]
    assert files[-1].name == "app_heap_evidence.md" and all(file.is_file() for file in files)
    page = files[-1].read_text(encoding="utf-8")
    assert page.count("there is no tool") == 3, "a section each"
    for trace in (MANY, few):
        assert f"| {trace.name} |" in page
        assert f"{hw.replay(trace, 'tlsf').metrics['accesses_malloc_max']}" in page
    assert files[:-1] == hw.generate("tlsf", tmp_path)


def test_a_study_is_told_alone_or_against_another(tmp_path: Path) -> None:
    study, other = write_five(tmp_path / "s.duckdb"), write_five(tmp_path / "old.duckdb")
    alone, none = hw.pull_request(study)
    assert none == [] and "recipes tried on" in alone and len(alone.splitlines()) <= 40
    against, files = hw.pull_request(study, tmp_path / "told.md", baseline=other)
    assert [file.name for file in files] == ["told.md", "told.svg"] and files[0].read_text() == against
    assert ", as before" in against and ", as before" not in alone
    with hw.open_study(study) as opened:
        assert hw.pull_request(opened)[0] == alone
