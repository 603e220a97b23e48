"""Programs that hang are ended with all that they started; what is left running is noticed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from processes import HUNG, MARK, end, finished, left_running
from tool_requirements import has_header

MINE = f"a test of its own, {os.getpid()}"


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    environment = {**os.environ, MARK: MINE}
    begun = time.monotonic()
    done = finished("echo begun; sleep 1000 & sleep 1000", tmp_path, 1, environment)
    assert (done.returncode, done.stdout) == (HUNG, "begun\n")
    assert time.monotonic() - begun < 60
    assert left_running(MINE) == {}


def test_a_program_that_ends_says_its_status(tmp_path: Path) -> None:
    done = finished(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path, 60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_what_is_left_running_is_found_and_ended() -> None:
    environment = {**os.environ, MARK: MINE}
    with subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True) as sleeper:
        result = left_running(MINE, seconds=0.2)
        assert result == {sleeper.pid: "sleep 1000"}
        end(result)
        assert sleeper.wait(60) == HUNG
    assert left_running(MINE) == {}


def test_headers_are_asked_of_the_compiler() -> None:
    assert has_header("stddef.h")
    assert not has_header("no/such/header.h")
