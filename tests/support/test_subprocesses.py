"""Programs that work for us: what they are given and print, and that nothing of them outlives the call."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, kill_tools, processors, run_tool

FORKS = 'sleep 60 & echo $! > "$TMPDIR/child"; echo begun; wait'
"""A program with a child, whose id it writes into the folder of its temporary files."""


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"


def ends(process: int) -> bool:
    """Whether a process ends within seconds."""
    until = time.monotonic() + 5
    while alive(process) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(process)


def child_in(folder: Path) -> int:
    """The child that a program reported, once it has."""
    output, until = folder / "child", time.monotonic() + 10
    while not (output.exists() and output.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.01)
    return int(output.read_text())


def test_a_program_has_our_environment_and_temporary_files_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "kept")
    done = run_tool(["sh", "-c", 'echo "$OURS $TMPDIR"; echo wrong >&2; exit 3'], tmp_path, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, f"kept {tmp_path}\n", "wrong\n")
    given = {"PATH": os.environ["PATH"], "GIVEN": "given"}
    alone = run_tool(["sh", "-c", 'echo "$OURS $GIVEN $TMPDIR"'], tmp_path, env=given, text=True)
    assert alone.stdout == f" given {tmp_path}\n"
    assert run_tool(["sh", "-c", "echo $TMPDIR"], text=True, env=given).stdout == "\n"


def test_when_the_time_is_over_the_children_end_too(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_tool(["sh", "-c", FORKS], tmp_path, timeout=1)
    assert ends(child_in(tmp_path))


def test_what_interrupts_us_ends_them(tmp_path: Path) -> None:
    def interrupt() -> None:
        child_in(tmp_path)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_tool(["sh", "-c", FORKS], tmp_path)
    assert ends(child_in(tmp_path))


def test_all_that_runs_can_be_ended_from_another_thread(tmp_path: Path) -> None:
    ended: list[int] = []

    def work() -> None:
        ended.append(run_tool(["sh", "-c", FORKS], tmp_path).returncode)

    worker = threading.Thread(target=work)
    worker.start()
    child = child_in(tmp_path)
    kill_tools()
    worker.join(5)
    assert ended == [-signal.SIGKILL] and ends(child)
    kill_tools()  # nothing is left that it could meet


def test_one_that_has_only_begun_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    begun = threading.Event()
    begin: Callable[..., None] = subprocess.Popen.__init__

    def slowly(self: subprocess.Popen[bytes], *given: object, **options: object) -> None:
        begin(self, *given, **options)
        begun.set()
        time.sleep(0.1)

    monkeypatch.setattr(subprocess.Popen, "__init__", slowly)
    worker = threading.Thread(target=lambda: ended.append(run_tool(["sleep", "60"], timeout=30).returncode))
    worker.start()
    assert begun.wait(10)
    kill_tools()
    worker.join(10)
    assert ended == [-signal.SIGKILL]


def test_an_interruption_while_a_program_starts_comes_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes nevertheless, and what handled it before does so again."""
    seen: list[int] = []
    begin: Callable[..., None] = subprocess.Popen.__init__

    def interrupted(self: subprocess.Popen[bytes], *given: object, **options: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        assert seen == []
        begin(self, *given, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", interrupted)
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        assert run_tool(["true"]).returncode == 0
        assert seen == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert seen == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_compiler_is_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "sh")
    assert find_compiler("this") == "sh"
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(HeapwrightError, match=r"^no-such-compiler: no such C compiler, and this needs one"):
        find_compiler("this")
    monkeypatch.delenv("CC")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert find_compiler("this") == "cc"
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 7})
    assert processors() == 3
