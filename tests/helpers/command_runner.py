"""`heapwright` in the process that tests, for tests of what a command says and writes: no start, and no fork.

What is about processes (signals, limits, terminals, other programs' output) runs the command in one of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from heapwright._cli import main

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_here(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What the command with these words, in that folder, comes to: its exit code, and stdout and stderr apart."""
    line = ["heapwright", *map(str, words)]
    with _file() as out, _file() as errors, open(os.devnull, encoding="utf-8") as nothing:
        with _as_in_a_process(line, folder), _streams(nothing, out, errors):
            status = _status()
        return subprocess.CompletedProcess(line, status, _content(out), _content(errors))


def _status() -> int:
    status: object = 1
    try:
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
    return status if isinstance(status, int) else 0


@contextlib.contextmanager
def _as_in_a_process(line: list[str], folder: Path | None) -> Iterator[None]:
    """Put back what a command may change because its process ends with it."""
    words, here, thresholds = sys.argv, Path.cwd(), gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    sys.argv = line
    os.chdir(folder or here)
    try:
        yield
    finally:
        sys.argv = words
        os.chdir(here)
        gc.set_threshold(*thresholds)
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _streams(nothing: TextIO, out: TextIO, errors: TextIO) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = nothing, out, errors
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _file() -> contextlib.AbstractContextManager[TextIO]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace")


def _content(file: TextIO) -> str:
    file.flush()
    file.seek(0)
    return file.read()
