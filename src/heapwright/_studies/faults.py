"""What is wrong with the file of a study, in one line that says what can be done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heapwright._support import database
from heapwright._support.errors import HeapwrightError


@contextmanager
def one_line(path: Path) -> Iterator[None]:
    """Turn what is wrong into one line that names the file and what can be done."""
    try:
        yield
    except database.Error as error:
        raise HeapwrightError(f"{path}: {_explain(str(error))}") from None


def _explain(message: str) -> str:
    lower = message.lower()
    if "lock" in lower and "conflicting" in lower:
        return "another process is writing this study; wait until it ends"
    if "different configuration" in lower:
        return "this process is writing this study; close it first"
    if "not a valid duckdb" in lower:
        return "no study; heapwright explore makes one"
    if any(sign in lower for sign in ("corrupt", "checksum", "could not read enough", "deserialize", "internal error")):
        return "damaged; restore it, or explore again into another file"
    reason = message.splitlines()[0].rsplit(": ", 1)[-1]
    return f"{reason}; give a file that can be read and written"
