"""Programs that work for us, such as compilers and emulators: what ends us ends them, with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_running: set[subprocess.Popen[Any]] = set()


def run_tool(
    command: Sequence[str], folder: Path | None = None, *, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, with its own temporary files in `folder`, and capture what it prints.

    `options` are those of `subprocess.Popen`. Whatever interrupts us, or the time running out, kills it and its
    children; they have a session of their own for that. Raises subprocess.TimeoutExpired.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **options}
    if folder is not None:
        options["env"] = {**(options.get("env") or os.environ), "TMPDIR": str(folder)}
    process: subprocess.Popen[Any] | None = None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)  # an interruption waits until we know whom to kill
            process = subprocess.Popen(command, **options)
            _running.add(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        output, errors = process.communicate(timeout=timeout)
    except BaseException:
        if process is not None:
            with process:
                _kill(process)
        raise
    finally:
        _running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def kill_tools() -> None:
    """Kill what `run_tool` is waiting for, in any thread."""
    for process in list(_running):
        _kill(process)


def _kill(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
