"""DuckDB connections, restricted to the files they are opened for.

No content of a database makes DuckDB open another file, load an extension or fetch an address; no statement that it
runs can lift these restrictions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import local

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb  # without what Python has around it, which takes twice as long to import
    except ImportError:  # older ones keep it inside
        import duckdb

Connection = duckdb.DuckDBPyConnection
Error = duckdb.Error

__all__ = [
    "Connection",
    "Error",
    "attached",
    "column_types",
    "files_of",
    "literal",
    "local_name",
    "pattern",
    "quoted",
    "reaching",
    "vouch",
    "vouched",
]

_NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_LOCKED = {"enable_external_access": "false", "lock_configuration": "true"}

_PLAIN = set[tuple[int, ...]]()
"""Stamps of the databases that `vouch` was called for."""


def attached(path: Path, *, read_only: bool, threads: int | None = None) -> Connection:
    """The database file at `path`; a new one if there is none and `read_only` is False.

    Raises HeapwrightError for a name that DuckDB does not support, Error if the file is not a DuckDB database.
    """
    name = local_name(path)
    if strange := set(name) & set("?\\"):  # DuckDB takes what follows for options, or for a folder
        raise HeapwrightError(f"{path}: DuckDB takes no {' and no '.join(sorted(strange))} in a name; rename it")
    options = {} if threads is None else {"threads": str(threads)}
    return duckdb.connect(name, read_only=read_only, config={**_NO_EXTENSIONS, **_LOCKED, **options})


def reaching(*paths: Path, databases: Mapping[str, Path] | None = None, threads: int | None = None) -> Connection:
    """A database in memory that reads and writes the files at `paths`, and reads `databases` by these names.

    `threads` is the number of its threads, by default one for each core; one thread keeps the order of rows without
    buffering them.

    Raises HeapwrightError as `attached` does, Error if a file is not a database.
    """
    allowed = ", ".join(f"{literal(path)}, {pattern(path)}" for path in paths)  # a pattern is checked, then its finds
    options = {} if threads is None else {"threads": str(threads)}
    connection = duckdb.connect(config={**_NO_EXTENSIONS, **options})
    for name, path in (databases or {}).items():
        connection.execute(f"ATTACH {literal(path)} AS {name} (READ_ONLY)")
    connection.execute(f"SET allowed_paths = [{allowed}]")
    for key, value in _LOCKED.items():
        connection.execute(f"SET {key} = {value}")
    return connection


def files_of(path: Path) -> list[Path]:
    """The database file at `path` and the journals that DuckDB keeps next to it while it writes."""
    return [Path(f"{path}{ending}") for ending in ("", ".wal", ".wal.checkpoint", ".wal.recovery")]


def local_name(path: Path) -> str:
    """The absolute name of the file that `remote.local` returns for the path; it cannot be read as an address.

    Raises HeapwrightError as `attached` does, and if a file cannot be fetched.
    """
    name = str(local(path).absolute())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise HeapwrightError(f"{path}: the name is not UTF-8; rename the file or its folder") from None
    return name


def literal(path: Path) -> str:
    """The name of a local file as SQL text; raises HeapwrightError as `attached`."""
    return quoted(local_name(path))


def pattern(path: Path) -> str:
    """The name of a local file as SQL text in a place of a pattern, with brackets and stars escaped."""
    return quoted("".join(f"[{letter}]" if letter in "*?[" else letter for letter in local_name(path)))


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    """The name of a table as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def vouch(path: Path) -> None:
    """Record that the database at `path`, which this process has just closed, holds only rows of plain tables."""
    if stamp := _stamp(path):
        _PLAIN.add(stamp)


def vouched(path: Path) -> bool:
    """Whether the database at `path` is as it was when this process vouched for it."""
    return _stamp(path) in _PLAIN


def _stamp(path: Path) -> tuple[int, ...]:
    """Device, inode, size and times of a file, which change with it; empty if there is no file."""
    try:
        result = os.stat(local_name(path))
    except OSError:
        return ()
    return result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns


def column_types(connection: Connection, where: str, *, plain: bool = False) -> dict[str, dict[str, str]]:
    """Table -> column -> type of a database; one that is `plain` is known to hold only tables.

    Raises HeapwrightError, with `where` as its prefix, if the database holds anything but rows of tables: a view, a
    macro or a default runs code of its author when a table is read or written.
    """
    # Macros first: they can replace the functions that the other questions call. Listing them takes DuckDB longer than
    # all other queries of a study.
    questions = {
        "a macro": "SELECT function_name FROM system.main.duckdb_functions() WHERE NOT internal",
        "a view": "SELECT view_name FROM duckdb_views() WHERE NOT internal",
        "a schema": "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal AND schema_name <> 'main'",
        "a type": "SELECT type_name FROM duckdb_types() WHERE NOT internal",
        "a sequence": "SELECT sequence_name FROM duckdb_sequences()",
        "an index": "SELECT index_name FROM duckdb_indexes()",
        "a check on the table": "SELECT table_name FROM duckdb_tables() WHERE check_constraint_count > 0",
    }
    for what, question in () if plain else questions.items():
        result = connection.execute(question).fetchone()
        if result:
            raise HeapwrightError(f"{where}: holds {what} {result[0]!r}; only plain tables are valid")
    names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    requested = (  # duckdb_columns() would have DuckDB parse all views of its own
        f"SELECT {table}, cid, name, type, dflt_value FROM pragma_table_info({quoted(_identifier(name))})"
        for table, name in enumerate(names)
    )
    columns = connection.execute(" UNION ALL ".join(requested)).fetchall() if names else []
    tables: dict[str, dict[str, str]] = {}
    for table, _, column, kind, default in sorted(columns):  # by place in its table
        if default is not None:
            raise HeapwrightError(f"{where}: holds a default or formula {column!r}; only plain tables are valid")
        tables.setdefault(names[table], {})[column] = kind
    return tables
