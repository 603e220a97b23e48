"""Traces and studies whose writer is killed, or whose disk is full, and what is left of a file that was cut."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sample_studies import IDS, identity, metrics, result

from heapwright._studies.analysis import Analysis
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "whole.parquet"
    Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[8, 8, 0]).write(source)
    whole = source.read_bytes()
    for length in range(0, len(whole), 7):
        path = tmp_path / "cut.parquet"
        path.write_bytes(whole[:length])
        with pytest.raises(HeapwrightError, match="not a whole Parquet file"):
            Trace.read(path)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "t.parquet"
    target.write_text("old")
    script = """
import resource, sys
import numpy as np
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
rng = np.random.default_rng(0)
trace = Trace.from_columns(op=np.zeros(500_000, int), id=rng.permutation(500_000), size=rng.integers(0, 2**31, 500_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    trace.write(sys.argv[1])
except HeapwrightError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-B", "-c", script, str(target)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{target}: cannot be written")
    assert done.stdout.count("\n") == 1
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


WRITER = """
import os, sys
sys.path.insert(0, {tests!r})
from sample_studies import *
from heapwright._support.errors import HeapwrightError
from heapwright._studies.analysis import Analysis
study = Analysis.create_or_resume({path!r}, identity())
study.add([result(0, metrics(100, 1000))])
study._connection.begin()
study._connection.execute("DELETE FROM results")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has stored one result and is in the middle of its next transaction."""
    code = WRITER.format(tests=str(Path(__file__).parents[1] / "helpers"), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_a_killed_writer_loses_only_its_unfinished_transaction(writer: subprocess.Popen[str], path: Path) -> None:
    writer.kill()
    writer.communicate()
    with Analysis.open(path) as study:
        assert study.finished() == {(IDS[0], "busy")}
    with Analysis.create_or_resume(path, identity()) as study:
        study.add([result(1, metrics(1, 1))])
        assert len(study.finished()) == 2


@pytest.mark.usefixtures("writer")
def test_a_study_being_written_is_one_line(path: Path) -> None:
    attempts: tuple[Callable[[], Analysis], ...] = (
        lambda: Analysis.open(path),
        lambda: Analysis.create_or_resume(path, identity()),
    )
    for attempt in attempts:
        with pytest.raises(HeapwrightError, match="another process is writing this study"):
            attempt()


FILLER = """
import os, resource, signal, sys
sys.path.insert(0, {tests!r})
from sample_studies import *
from heapwright._support.errors import HeapwrightError
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Result
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
study = Analysis.create_or_resume({path!r}, identity())
study.add([result(0, metrics(100, 1000))])
size = max(os.path.getsize({path!r} + suffix) for suffix in ("", ".wal"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
try:
    for name in range(10_000):
        ids = [f"{{name:06x}}{{number:06x}}" for number in range(20)]
        study.add([Result(id, RECIPES[1], None, "busy", metrics(1, 1)) for id in ids])
except HeapwrightError as error:
    print(error)
"""


def test_a_full_disk_is_one_line_and_keeps_what_was_stored(path: Path) -> None:
    code = FILLER.format(tests=str(Path(__file__).parents[1] / "helpers"), path=str(path))
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{path}: ")
    assert done.stdout.count("\n") == 1
    with Analysis.open(path) as study:
        assert (IDS[0], "busy") in study.finished()
