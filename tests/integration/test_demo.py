"""`heapwright demo`, usually with few recipes and calls: every step, what is left out without tools, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from effort import brief

import heapwright as hw
from heapwright.cli import demo, heapwright

PIPED_COLUMNS = 100
FEW = ("--strategy", "random", "--limit", "30", "--copies", "2", "--no-endurance")
SPACE = """
include_zoo = false
[[pool]]
kind = "general"
fit = ["first", "best"]
bins = ["none", "exact"]
"""
"""Of four recipes, for what does not depend on what is explored."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(demo, "EXPLORE", ("explore", *brief(FEW, ())))
    part = tmp_path_factory.mktemp("shipped") / demo.TRACE
    hw.cut(hw.read_trace(demo._shipped()), first=brief(2_000, 1 << 30)).write(part)
    monkeypatch.setattr(demo, "_shipped", lambda: part)


def demonstrate(*words: str) -> Result:
    done = CliRunner().invoke(heapwright, ["demo", *words])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.needs("cc")
def test_the_demo_makes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "MEASURE", ("study", "info"))  # test_target.py measures fronts
    printed = demonstrate(str(tmp_path / "shown")).stdout
    lines = printed.splitlines()
    assert re.findall(r"^(\d)\. ", printed, re.MULTILINE) == list("123456")
    assert [line for line in lines if len(line) > PIPED_COLUMNS and str(tmp_path) not in line] == []
    assert "Left out" not in printed
    assert "app_heap: ok" in printed
    places = dict(re.findall(r"^  (\w+) +(\S+)$", printed.partition("\nDone in ")[2], re.MULTILINE))
    assert sorted(places) == ["firmware", "report", "study", "trace"]
    assert all(Path(place).exists() for place in places.values())
    assert (tmp_path / "shown/firmware/app_heap.o").stat().st_size > 500


def test_without_compilers_and_emulators_it_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.setattr(demo, "EXPLORE", ("explore", "--space", "space.toml", "--copies", "1", "--no-endurance"))
    told = json.loads(demonstrate("--json").stdout)
    assert [reason.partition(";")[0].partition(",")[0] for reason in told["left_out"]] == [
        "no compiler for cortex-m3",
        "no-such-compiler: no such C compiler",
    ]
    assert told["study"] == "heapwright-demo/study.duckdb"
    assert [Path(file).name for file in told["files"]] == [
        "app_heap.c",
        "app_heap.h",
        "app_heap_checks.h",
        "app_heap_test.c",
    ]
    step = demo._run
    monkeypatch.setattr(demo, "_run", lambda *words: "" if words[0] == "report" else step(*words))  # it stands there
    again = json.loads(demonstrate("--json").stdout)  # in the same folder, from the start
    assert again["metrics"] == told["metrics"]
