"""Programs that tests start: those that hang are ended with all that they started, and none is left running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

MARK = "HEAPWRIGHT_TESTS"
"""In the environment of all that a process of the tests starts: that process's own id."""

HUNG = -signal.SIGKILL
"""The status of a program that was ended."""

_LASTING = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "multiprocessing.semaphore_tracker")
"""Helpers of Python's own, which end with the process that they help."""


def finished(
    command: str | Sequence[str | Path], folder: Path, seconds: float, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command, or a line of the shell, came to; `HUNG` where it took longer: then its whole group is ended."""
    with subprocess.Popen(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            out, err = process.communicate()
            return subprocess.CompletedProcess(command, HUNG, out, err)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextlib.contextmanager
def ended_at_last(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A process with a session of its own: what is left of its group when the context is left is ended."""
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def left_running(mark: str, seconds: float = 5) -> dict[int, str]:
    """Processes with that mark, by id, with their commands, that do not end by themselves within so long."""
    patience = time.monotonic() + seconds
    while (result := _marked(mark)) and time.monotonic() < patience:
        time.sleep(0.1)
    return result


def end(processes: dict[int, str]) -> None:
    """End them."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _marked(mark: str) -> dict[int, str]:
    results = {}
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
            if int(folder.name) == os.getpid() or wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if command and not any(item in command for item in _LASTING):  # what waits to be reaped has no command
                results[int(folder.name)] = command
    return results
