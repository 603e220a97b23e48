"""bench/long: a script and a server under randomised traffic, and the command that records them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import long.programs
import long.record
import pytest
from tool_requirements import machine

from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, REALLOC

COMMAND = Path(long.record.__file__)

pytestmark = machine(sys.platform == "linux", "the recorder is for Linux")


@pytest.mark.needs("lua5.4")
def test_the_command_records_a_script(tmp_path: Path) -> None:
    command = [sys.executable, str(COMMAND), str(tmp_path), "lua", "--runs", "a"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("lua_a.parquet: ")
    trace = Trace.read(tmp_path / "lua_a.parquet")
    assert len(trace.op) > 10_000 and {FREE, REALLOC} <= set(trace.op.tolist())
    assert [path.name for path in tmp_path.iterdir()] == ["lua_a.parquet"]


@pytest.mark.needs("redis-server")
def test_a_server_is_recorded_and_ended(tmp_path: Path) -> None:
    few, more = (len(Trace.read(long.record.record("redis", "a", tmp_path, count)).op) for count in (10, 1000))
    assert more > few + 5_000
    assert [path.name for path in tmp_path.iterdir()] == ["redis_a.parquet"]


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert long.record.missing("nginx") == "nginx: left out, as nginx is not installed (Debian: nginx-light)"


def test_half_of_the_programs_choose() -> None:
    roles = [program.role for program in long.programs.PROGRAMS.values()]
    assert roles.count("choose") == roles.count("judge") == 7
