"""Commands on small inputs: they do their work, and name what is wrong in one line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_outputs import FAILING, WORKING, WRONG, within, write_inputs
from command_runner import run_here

WIDTH = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    result = tmp_path_factory.mktemp("commands")
    with within(result), pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(WIDTH))
        write_inputs()
        yield result


@pytest.mark.usefixtures("folder")
def test_commands_do_their_work_in_order() -> None:
    """What one of them writes the next ones read; output fits the width, and --json prints JSON alone."""
    for command in WORKING.strip().splitlines():
        done = run_here(*shlex.split(command))
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if "--json" in command:
            json.loads(done.stdout)
        elif not command.startswith("zoo"):  # a file as it is written
            assert not [line for line in done.stdout.splitlines() if len(line) > WIDTH], command


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", FAILING)
def test_a_check_that_does_not_pass_ends_with_3(command: str) -> None:
    assert run_here(*shlex.split(command)).returncode == 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "code", "names"), WRONG)
def test_what_is_wrong_is_named_in_one_line(command: str, code: int, names: str) -> None:
    done = run_here(*shlex.split(command))
    assert (done.returncode, done.stdout) == (code, "")
    (line,) = (line for line in done.stderr.splitlines() if line and not line.startswith(("Usage:", "Try '")))
    assert names in line
