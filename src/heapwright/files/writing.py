"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from heapwright.errors import HeapwrightError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path` that takes its place if all goes well, and is removed if not.

    Raises HeapwrightError where `path` is a folder or a device, OSError where its folder takes no file.
    """
    temporary = _new_file_beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise HeapwrightError now, not after long work, where no file can be written under this name."""
    try:
        _new_file_beside(path).unlink()
    except OSError as error:
        raise HeapwrightError(f"{path}: cannot be written: {error.strerror}; name a file in another folder") from error


def _new_file_beside(path: Path) -> Path:
    if path.exists() and not path.is_file():
        hint = "is a folder; name a file in it" if path.is_dir() else "is a device; name a file"
        raise HeapwrightError(f"{path}: cannot be written: {hint}")
    temporary = path.with_name(f".heapwright-{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(path)
        raise
    return temporary
