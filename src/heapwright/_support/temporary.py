"""Temporary folders: gone with the block or the object they are for, and with the process unless it is killed (-9)."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path

_living: set[Path] = set()


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Make a folder for the length of a `with` block."""
    folder = _make(purpose)
    try:
        yield folder
    finally:
        _remove(folder)


def folder_for(owner: object, purpose: str) -> Path:
    """Make a folder that goes when `owner` does."""
    folder = _make(purpose)
    weakref.finalize(owner, _remove, folder)
    return folder


def _make(purpose: str) -> Path:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f"heapwright-{purpose}-"))
    _living.add(folder)
    return folder


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _living.discard(folder)


@atexit.register
def remove_living() -> None:
    """Remove what is left: what an interruption kept `_remove` from finishing, and what owners of others still have."""
    for folder in list(_living):
        _remove(folder)
