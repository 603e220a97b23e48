"""Parquet tables: their file names in SQL, their metadata, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heapwright._support import database, writing
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import is_address
from heapwright._support.writing import replacing


def source(path: Path, options: str = "") -> str:
    """The table function that reads this very file: brackets and stars in its name are no pattern, and a folder named
    op=1 is no column."""
    return f"read_parquet({database.pattern(path)}, hive_partitioning = false{options})"


def metadata(connection: database.Connection, path: Path) -> dict[str, str]:
    """The file's key-value metadata, without what other writers keep there for themselves."""
    pairs = connection.execute(f"SELECT key, value FROM parquet_kv_metadata({database.pattern(path)})").fetchall()
    decoded = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in pairs}
    return {key: value for key, value in decoded.items() if key not in ("ARROW:schema", "pandas")}


def rows(connection: database.Connection, path: Path) -> int:
    """How many rows the file has."""
    result = connection.execute(f"SELECT num_rows FROM parquet_file_metadata({database.pattern(path)})").fetchone()
    return int(result[0]) if result else 0


def write(path: Path, rows: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write named columns as Parquet, all of it or nothing: a file already there is replaced only at the end.

    Pages of version 2 delta-encode numbers and times, which makes a trace 3 to 4 times smaller. Raises HeapwrightError
    where the folder is missing or cannot be written, the name cannot be read again, or the disk is full.
    """
    check_writable(path)
    with replacing(path) as temporary, database.reaching(temporary) as connection:
        connection.register("rows_", dict(rows))
        _copy(connection, "SELECT * FROM rows_", path, temporary, metadata)


def join(parts: Sequence[Path], path: Path, metadata: Mapping[str, str], without: Sequence[str] = ()) -> None:
    """Write the rows of some Parquet files one after the other, as `write` does, without the columns named.

    A column that is missing in some of them is null there.
    """
    check_writable(path)
    files = ", ".join(map(database.pattern, parts))
    columns = f"* EXCLUDE ({', '.join(without)})" if without else "*"
    # One thread holds what it copies, several all that any of them has read: 8 times as much, and no faster.
    with replacing(path) as temporary, database.reaching(temporary, *parts, threads=1) as connection:
        rows = f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false, union_by_name = true)"
        _copy(connection, rows, path, temporary, metadata)


def _copy(connection: database.Connection, rows: str, path: Path, temporary: Path, metadata: Mapping[str, str]) -> None:
    pairs = ", ".join(f"{database.quoted(key)}: {database.quoted(value)}" for key, value in metadata.items())
    options = f"FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION V2, USE_TMP_FILE false, KV_METADATA {{{pairs}}}"
    try:
        connection.execute(f"COPY ({rows}) TO {database.literal(temporary)} ({options})")
    except database.Error as error:
        reason = str(error).splitlines()[0].replace(str(temporary), path.name)
        raise HeapwrightError(f"{path}: cannot be written ({reason}); is the disk full?") from error


def check_writable(path: Path) -> None:
    """Check that a table can be written (`writing.check_writable`) under a name that it can be read by again."""
    if not is_address(path):
        database.local_name(path)
    writing.check_writable(path)
