"""Programs that work for us, such as compilers and emulators: what ends us ends them, with all that they started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_running: set[subprocess.Popen[Any]] = set()
_starting = threading.Lock()
"""Held until a program that has begun stands among those that run."""


def run_tool(
    command: Sequence[str], folder: Path | None = None, *, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, with its own temporary files in `folder`, and capture what it prints.

    `options` are those of `subprocess.Popen`. An interrupt or a timeout kills it and its
    children; they have a session of their own for that. Raises subprocess.TimeoutExpired.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **options}
    if folder is not None:
        options["env"] = {**(options.get("env") or os.environ), "TMPDIR": str(folder)}
    process: subprocess.Popen[Any] | None = None
    try:
        with _interruptions_held(), _starting:
            process = subprocess.Popen(command, **options)
            _running.add(process)
        output, errors = process.communicate(timeout=timeout)
    except BaseException:
        if process is not None:
            with process:
                _kill(process)
        raise
    finally:
        _running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def find_compiler(what: str) -> str:
    """The C compiler: CC, or cc on the path. Raises HeapwrightError where there is none for `what` needs it."""
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise HeapwrightError(f"{compiler}: no such C compiler, and {what} needs one: install gcc or clang, or set CC")
    return compiler


def probe_of(source: Path) -> str:
    """A program that does nothing, with the system's headers of a C file: a compiler that lacks one cannot build it."""
    lines = source.read_text(encoding="utf-8").splitlines()
    headers = [line for line in lines if line.startswith(("#define _GNU_SOURCE", "#include <"))]
    return "\n".join([*headers, "int main(void) { return 0; }", ""])


def processors() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kill_tools() -> None:
    """Kill what `run_tool` is waiting for, in any thread."""
    with _starting:
        running = list(_running)
    for process in running:
        _kill(process)


@contextlib.contextmanager
def _interruptions_held() -> Iterator[None]:
    """Let signals wait, so that none falls between the start of a process and our knowing whom to kill.

    Blocking them would not do: the system hands a signal to any thread, and Python then to this one.
    """
    held: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _INTERRUPTIONS}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in before:
            signal.signal(number, lambda number, frame: held.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for item in held:
            signal.raise_signal(item)


def _kill(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
