"""Files that a command read: it overwrites none of them, under any name of an output.

The command line switches this on for each command. In a library a caller may replace the file that it read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heapwright._support.errors import HeapwrightError

_inputs: set[tuple[int, int]] | None = None
"""Device and inode of each file that was read; None while nothing is protected."""

_outputs: set[tuple[int, int]] = set()
"""The same of each file that the command wrote: it may read and replace these."""


@contextmanager
def protecting_inputs() -> Iterator[None]:
    """Protect the files that are read within, for one command."""
    global _inputs, _outputs
    before, _inputs, _outputs = (_inputs, _outputs), set(), set()
    try:
        yield
    finally:
        _inputs, _outputs = before


def note_input(path: Path) -> None:
    """Remember a file that is read; a path without a file is none."""
    if _inputs is not None and (identity := _identity(path)) is not None and identity not in _outputs:
        _inputs.add(identity)


def note_output(path: Path) -> None:
    """Remember a file that the command wrote."""
    if _inputs is not None and (identity := _identity(path)) is not None:
        _outputs.add(identity)


def check_output(path: Path) -> None:
    """Raise HeapwrightError if the file at `path` was read by this command, under this name or another."""
    if _inputs and _identity(path) in _inputs:
        raise HeapwrightError(f"{path}: is an input of this command; write to another file")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
