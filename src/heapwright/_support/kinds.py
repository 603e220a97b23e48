"""The kind of a file, determined by its content."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import local

Kind = Literal["trace", "packets", "study", "other"]

_PARQUET, _DUCKDB = b"PAR1", b"DUCK"


def kind_of(path: Path) -> Kind:
    """The kind of a file: a trace, a packet table (both Parquet), a study (DuckDB), or something else.

    A Parquet table counts as a trace unless it has the columns of a packet table; only reading it validates it. Raises
    OSError if there is no such file, HeapwrightError if it begins as Parquet but cannot be read as such.
    """
    if is_study(path):
        return "study"
    if first_bytes(path, 4) != _PARQUET:
        return "other"
    try:
        with database.reaching(path) as connection:
            rows = connection.execute(f"SELECT name FROM parquet_schema({database.pattern(path)})").fetchall()
    except database.Error as error:
        raise HeapwrightError(f"{path}: not a readable Parquet file; a trace or a packet table is one") from error
    return "packets" if ("frame_len",) in rows else "trace"


def is_study(path: Path) -> bool:
    """Whether a file is a DuckDB database, as studies are. Raises OSError."""
    return first_bytes(path, 12)[8:] == _DUCKDB


def first_bytes(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file, or all if it has fewer. Raises OSError."""
    with local(path).open("rb") as file:
        return file.read(most)
