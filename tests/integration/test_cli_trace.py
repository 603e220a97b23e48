"""The installed trace command on real files."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heapwright.traces.trace import Trace

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HEAPWRIGHT = str(Path(sys.executable).with_name("heapwright"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the installed command in a folder with one trace."""
    calls = {"op": [0, 0, 3, 2, 0], "id": [1, 2, 1, 2, 3], "size": [40, 100, 0, 120, 40]}
    Trace.from_columns(**calls, ts_us=[0, 1, 2, 3, 2_000_000]).write(tmp_path / "app.parquet")

    def heapwright_command(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([HEAPWRIGHT, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    return heapwright_command


def test_info_tells_what_is_in_a_trace(run: Run) -> None:
    assert run("trace", "info", "app.parquet").stdout.startswith("app: 5 calls, 2.0 s, threads: 1\n  peak 160 B live")
    (facts,) = json.loads(run("trace", "info", "app.parquet", "--json").stdout)
    assert facts["trace"] == "app"
    assert facts["requested_peak_bytes"] == 160
    assert facts["phases"] == []


def test_copies_are_written_and_listed(run: Run, tmp_path: Path) -> None:
    done = run("trace", "copies", "app.parquet", "-o", "made/copies", "--count", "4", "--seed", "3", "--json")
    written = json.loads(done.stdout)
    assert [Path(one["path"]).stem for one in written] == [
        f"app~{kind}-{number}" for number in (1, 2) for kind in ("sizes+blocks", "load")
    ]
    for one in written:
        trace = Trace.read(tmp_path / one["path"])
        assert len(trace) == one["events"]
        assert trace.metadata == one["metadata"]
        assert trace.metadata["copy_seed"] == "3"


def test_copies_of_one_kind_in_words(run: Run) -> None:
    done = run("trace", "copies", "app.parquet", "-o", ".", "--kind", "load", "--count", "2")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["app~load-1.parquet", "app~load-2.parquet"]
    assert "20 calls" in done.stdout


def test_a_part_is_cut_and_closed(run: Run, tmp_path: Path) -> None:
    done = run("trace", "cut", "app.parquet", "--first", "1.5s", "-o", "part.parquet")
    assert done.stdout == "part.parquet: 5 calls, peak 140 B in 2 objects\n"
    assert Trace.read(tmp_path / "part.parquet").live_bytes[-1] == 0
    left = run("trace", "cut", "app.parquet", "--last", "1", "--leave-live", "-o", "part.parquet", "--json")
    assert json.loads(left.stdout)[0]["events"] == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("cut", "app.parquet", "-o", "x"), 2, "Give either --first or --last."),
        (("cut", "app.parquet", "-o", "x", "--first", "2x"), 2, "2x: give calls, as 5000, or seconds, as 2.5s"),
        (("cut", "app.parquet", "-o", "x", "--first", "0"), 2, "Invalid value for '--first': 0 calls; must be 1"),
        (("copies", "app.parquet", "-o", "x", "--kind", "size"), 2, "'size' is not one of"),
        (("copies", "app.parquet", "-o", "x", "--count", "0"), 2, "not in the range x>=1"),
        (("copies", "none.parquet", "-o", "x"), 1, "heapwright: none.parquet: no such file"),
        (("copies", "app.parquet", "-o", "app.parquet"), 1, "app.parquet: cannot be written: File exists"),
    ],
)
def test_wrong_words_are_said(run: Run, tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    done = run("trace", *words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
