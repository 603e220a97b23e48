"""heapwright profile in a process of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import duckdb
import pytest
from command_runner import run_here
from sample_traces import packets_of, stack, trace_of

from heapwright._support.errors import HeapwrightError
from heapwright._traces.validation import MALLOC
from heapwright._traffic.profile import profile_file


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_here(*arguments)


def test_command_prints_json_for_a_trace_and_for_packets(tmp_path: Path) -> None:
    trace, packets = tmp_path / "a.parquet", tmp_path / "b.parquet"
    stack(30).write(trace)
    packets_of([40, 1500], [54, 1514], [1, 2]).write(packets)
    result = json.loads(run("profile", trace, "--json").stdout)
    assert (result["events"], result["sizes"]) == (60, [{"size": 10, "count": 30, "share": 1.0}])
    result = json.loads(run("profile", packets, "--json").stdout)
    assert (result["packets"], len(result["sizes"])) == (2, 2)


def test_command_marks_frequent_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    trace_of(*((MALLOC, at, 24 if at < 19 else 1000) for at in range(20))).write(path)
    lines = run("profile", path).stdout.splitlines()
    (frequent,) = [line for line in lines if line.split()[:1] == ["24"]]
    (rare,) = [line for line in lines if line.split()[:1] == ["1,000"]]
    assert "95.0%" in frequent
    assert "≥ 10 %" in frequent
    assert "≥ 10 %" not in rare


@pytest.mark.parametrize("content", [b"", b"no Parquet at all", b"PAR1" + bytes(100)])
def test_what_is_no_table_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    result = run("profile", path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert str(path) in result.stderr
    with pytest.raises(HeapwrightError, match="Parquet"):
        profile_file(path)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    result = run("profile", tmp_path / "none.parquet")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "none.parquet" in result.stderr


def test_repair_says_what_it_dropped(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    stack(3).write(path)

    broken = tmp_path / "broken.parquet"
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT * FROM '{path}' UNION ALL SELECT * FROM '{path}' WHERE op = 3 AND id = 0) "
            f"TO '{broken}' (FORMAT parquet)"
        )
    assert run("profile", broken).returncode == 1
    assert "(heapwright trace repair)" in run("profile", broken).stderr
    repaired = tmp_path / "repaired.parquet"
    written = run("trace", "repair", broken, "-o", repaired, "--json")
    assert written.stderr == f"heapwright: {broken}: 1 call dropped: double free\n"
    profile = run("profile", repaired, "--json")
    assert json.loads(profile.stdout)["events"] == json.loads(written.stdout)[0]["events"] == 6
    assert "1 call dropped: double free" in profile.stderr, "a caveat of the repaired trace"
    page = tmp_path / "page.html"
    assert run("report", broken, "-o", page, "--no-plots").returncode == 1
    assert run("report", repaired, "-o", page, "--no-plots").returncode == 0
    assert "1 call dropped: double free" in page.read_text(encoding="utf-8")
