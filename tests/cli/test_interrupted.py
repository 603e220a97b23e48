"""A command that is ended from outside leaves nothing behind: no temporary file, and none of the tools it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heapwright._traces.trace import Trace

HEAPWRIGHT = str(Path(sys.executable).with_name("heapwright"))

HANGING = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
static void *tell_and_hang(size_t size)
{
    dprintf(open("running", O_CREAT | O_WRONLY, 0600), "%d\\n", (int)getpid());
    for (;;) ;
}
"""
HANGING_TOML = 'style = "libc"\nsources = ["hanging.c"]\nmalloc = "tell_and_hang"\nfree = "(void)pointer"\n'

COMPILER = """#!/bin/sh
case "$*" in *version*) echo compiler 1.0; exit ;; esac
(touch "$TMPDIR/by-a-child"; echo $$ > running; while :; do sleep 1; done)
"""
"""A compiler that never comes to an end, and keeps its work in the hands of a child and in a temporary file."""


@pytest.fixture(autouse=True)
def heeding_signals() -> None:
    """Commands inherit what the tests run under, and a job in the background or under nohup ignores some signals."""
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a trace, a heap that hangs, compilers that hang, and a folder for temporary files."""
    Trace.from_columns(op=[0, 3], id=[1, 1], size=[24, 0], name="calls").write(tmp_path / "calls.parquet")
    (tmp_path / "hanging.c").write_text(HANGING)
    (tmp_path / "hanging.toml").write_text(HANGING_TOML)
    (tmp_path / "tools").mkdir()
    for name in ("hanging-cc", "arm-none-eabi-gcc"):
        (tmp_path / "tools" / name).write_text(COMPILER)
        (tmp_path / "tools" / name).chmod(0o755)
    (tmp_path / "temporary").mkdir()
    return tmp_path


def started(folder: Path, words: list[str], compiler: str = "cc") -> "tuple[subprocess.Popen[str], int]":
    """A command that has come to where it hangs, and the process that hangs."""
    environment = {
        **os.environ,
        "TMPDIR": str(folder / "temporary"),
        "PATH": f"{folder / 'tools'}:{os.environ['PATH']}",
        "CC": compiler,
    }
    command = subprocess.Popen(
        [HEAPWRIGHT, *words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running = folder / "running"
    while not (running.exists() and running.read_text().endswith("\n")):
        assert command.poll() is None, command.communicate()[1]
        time.sleep(0.05)
    return command, int(running.read_text())


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


FOREIGN = ["replay", "calls.parquet", "--heap", "hanging.c", "--word-size", "64"]
TIMED = ["replay", "calls.parquet", "--heap", "tlsf", "--time"]
MEASURED = ["measure", "tlsf", "calls.parquet"]


@pytest.mark.parametrize(
    ("number", "exit_code", "says"),
    [
        (signal.SIGTERM, 143, ""),
        (signal.SIGHUP, 129, ""),
        (signal.SIGINT, 1, "heapwright: interrupted; what was finished is kept\n"),
    ],
    ids=["SIGTERM", "SIGHUP", "SIGINT"],
)
def test_a_foreign_heap_that_hangs_is_ended(folder: Path, number: int, exit_code: int, says: str) -> None:
    command, hanging = started(folder, FOREIGN)
    assert list((folder / "temporary").iterdir())
    command.send_signal(number)
    output, errors = command.communicate(timeout=60)
    assert (command.returncode, output) == (exit_code, "")
    assert errors == f"heapwright: hanging.toml: the adapter next to hanging.c is used\n{says}"
    assert list((folder / "temporary").iterdir()) == []
    assert not is_alive(hanging)


@pytest.mark.parametrize(
    ("words", "compiler"),
    [(FOREIGN, "hanging-cc"), (TIMED, "hanging-cc"), (MEASURED, "cc")],
    ids=["a foreign heap", "host time", "a target"],
)
def test_a_compiler_is_ended_with_its_children_and_its_files(folder: Path, words: list[str], compiler: str) -> None:
    command, hanging = started(folder, words, compiler)
    assert list((folder / "temporary").rglob("by-a-child"))
    command.send_signal(signal.SIGTERM)
    command.communicate(timeout=60)
    assert command.returncode == 143
    assert list((folder / "temporary").iterdir()) == []
    assert not is_alive(hanging)


def test_what_runs_beside_the_terminal_goes_on_without_it(folder: Path) -> None:
    """Under nohup SIGHUP is ignored, and stays so."""
    (folder / "tools" / "nohup-cc").write_text(
        '#!/bin/sh\necho $$ > running; while [ -e running ]; do sleep 0.1; done; exec cc "$@"\n'
    )
    (folder / "tools" / "nohup-cc").chmod(0o755)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command, _ = started(folder, TIMED, "nohup-cc")
    finally:
        signal.signal(signal.SIGHUP, before)
    command.send_signal(signal.SIGHUP)
    (folder / "running").unlink()
    _, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors
