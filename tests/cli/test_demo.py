"""`heapwright demo`, usually with few recipes and calls: every step, what is left out without tools, and why."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from run_length import brief

import heapwright as hw
from heapwright._cli import demo, heapwright
from heapwright._support.errors import HeapwrightError

PIPED_COLUMNS = 100
FEW = ("--strategy", "random", "--limit", "30", "--long-run", "0")
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
    hw.cut(hw.read_trace(demo._example()), first=brief(2_000, 1 << 30)).write(part)
    monkeypatch.setattr(demo, "_example", lambda: part)


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
    assert "Skipped" not in printed
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
    find, without = importlib.util.find_spec, ("unicorn", "ziglang")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in without else find(name))
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.setattr(demo, "EXPLORE", ("explore", "--space", "space.toml", "--long-run", "0"))
    monkeypatch.setattr(demo, "_in_parallel", lambda *words: nullcontext(str))  # the test above has a report
    output = json.loads(demonstrate("--json").stdout)
    assert [reason.partition(";")[0].partition(",")[0] for reason in output["left_out"]] == [
        "no compiler for cortex-m3",
        "no-such-compiler: no such C compiler",
    ]
    assert output["study"] == "heapwright-demo/study.duckdb"
    assert [Path(file).name for file in output["files"]] == [
        "app_heap.c",
        "app_heap.h",
        "app_heap_checks.h",
        "app_heap_test.c",
    ]
    again = json.loads(demonstrate("--json").stdout)  # in the same folder, from the start
    assert again["metrics"] == output["metrics"]


def test_a_report_that_fails_is_one_line_and_what_fails_beside_it_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('one that lies about')")
    with (
        demo._in_parallel("report", "no-such.duckdb", "-o", "page.html") as printed,
        pytest.raises(HeapwrightError, match=r"^no-such.duckdb: No such file or directory$"),
    ):
        printed()
    os.mkfifo("board")
    waiting = threading.Timer(20, Path("board").write_bytes, [b""])  # which ends it, were it not ended
    waiting.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), demo._in_parallel("import", "board", "-o", "t.parquet"):
        time.sleep(0.5)
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 15
    waiting.cancel()
