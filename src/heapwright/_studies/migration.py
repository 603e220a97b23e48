"""Migration of studies of older formats to this one: in place, when they are opened, in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from heapwright._replay.energy import default_energy_table
from heapwright._studies.tables import (
    FORMAT,
    PARTIAL,
    SINCE_5,
    SINCE_6,
    SINCE_7,
    TABLES,
    Types,
    check_tables,
    stored_format,
)
from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import kind_of
from heapwright._support.remote import local


def opened(path: Path, *, write: bool) -> tuple[database.Connection, Types]:
    """Open the study at `path` after migration (see `migrate`), with its `database.column_types`.

    Raises HeapwrightError if it is a trace, or if a study of an older format cannot be written.
    """
    if local(path).is_file() and kind_of(path) == "trace":
        raise HeapwrightError(f"{path}: a trace, and no study; heapwright explore makes one of it")
    plain = database.vouched(path)
    connection = database.attached(path, read_only=not write)
    try:
        types: Types = database.column_types(connection, str(path), plain=plain)
        result = stored_format(connection, str(path), types)
    except BaseException:
        connection.close()
        raise
    if result not in _STEPS:
        return connection, types
    connection.close()
    try:
        connection = database.attached(path, read_only=False)
    except database.Error as error:
        raise HeapwrightError(
            f"{path}: a study of format {result}, which is brought to {FORMAT} when it is opened, but cannot be "
            f"written; {str(error).splitlines()[0]}"
        ) from None
    with connection:
        types = migrate(connection, str(path))
    return database.attached(path, read_only=not write), types


def migrate(connection: database.Connection, where: str, *, plain: bool = False) -> Types:
    """Migrate a study of an older format; returns its `database.column_types`. An unknown format stays.

    A database that is `plain` is known to hold tables alone.

    Raises HeapwrightError, which begins with `where`, if the database holds other tables than a study of its format.
    """
    types: Types = database.column_types(connection, where, plain=plain)
    result = stored_format(connection, where, types)
    if result not in _STEPS:
        return types
    tables = _tables_of_6()
    for step in reversed(range(result, 6)):
        tables = _BEFORE[step](tables)
    check_tables(types, where, tables)
    connection.begin()
    while result in _STEPS:
        _STEPS[result](connection)
        result += 1
    connection.commit()
    return database.column_types(connection, where)


def _tables_of_6() -> Types:
    """The tables of format 6, without results on futures."""
    return {
        table: {column: kind for column, kind in columns.items() if column not in SINCE_7}
        for table, columns in {**TABLES, "partial": PARTIAL}.items()
    }


def _tables_of_5(after: Types) -> Types:
    """The tables of format 5.

    The cost of a realloc, copy included, counted as a malloc, and on the target the worst-case malloc and free were
    added.
    """
    pair = {"instructions_pair_mean": "DOUBLE", "instructions_pair_max": "BIGINT"}
    return {
        table: {
            key: kind
            for column, shape in columns.items()
            if column not in SINCE_6
            for key, kind in (pair if column == "instructions_pair_mean" else {column: shape}).items()
        }
        for table, columns in after.items()
    }


def _tables_of_4(after: Types) -> Types:
    """The tables of format 4, without stress tests and bounds on calls."""
    return {
        table: {column: kind for column, kind in columns.items() if column not in SINCE_5}
        for table, columns in after.items()
    }


def _tables_of_3(after: Types) -> Types:
    """The tables of format 3, without the version and machine of results, and without seeds of copies."""
    added = {"traces": ("seed",), "results": ("heapwright", "machine"), "elsewhere": ("heapwright", "machine")}
    return {
        table: {column: kind for column, kind in columns.items() if column not in added.get(table, ())}
        for table, columns in after.items()
    }


def _from_3(connection: database.Connection) -> None:
    """Results get the version that began the study, copies the default seed; the default energies are written out.

    Rows without metrics, of pruned replays, are deleted: those replays begin again.
    """
    info = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta").fetchall()}
    for table in ("results", "elsewhere"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN heapwright VARCHAR")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN machine VARCHAR")
        connection.execute(f"DELETE FROM {table} WHERE footprint_bytes IS NULL")
        connection.execute(f"UPDATE {table} SET heapwright = ?", [str(info.get("heapwright", "unknown"))])
    connection.execute("ALTER TABLE traces ADD COLUMN seed BIGINT")
    connection.execute("UPDATE traces SET seed = 0 WHERE role = 'copy'")
    energies = default_energy_table()
    digest = hashlib.sha256(repr((energies.sizes, energies.read_pj, energies.write_pj)).encode()).hexdigest()
    known = energies.rows if info.get("energy_table") == digest else None
    changed = [(json.dumps(known), "energy_table"), ("4", "format")]
    connection.executemany("UPDATE meta SET value = ? WHERE key = ?", changed)


def _from_4(connection: database.Connection) -> None:
    """Results get empty columns for stress tests and bounds; the same exploration, run again, fills them."""
    _with_columns(connection, _tables_of_5(_tables_of_6()))
    connection.execute("UPDATE meta SET value = '5' WHERE key = 'format'")


def _from_5(connection: database.Connection) -> None:
    """Results get empty columns for reallocs and callocs; the same exploration, run again, fills them.

    Until then the worst case of a malloc includes reallocs with their copies. Pruned replays begin again.
    """
    connection.execute("DROP TABLE IF EXISTS partial")
    _with_columns(connection, _tables_of_6())
    connection.execute("UPDATE meta SET value = '6' WHERE key = 'format'")


def _from_6(connection: database.Connection) -> None:
    """Results get columns for futures, empty: the same exploration, run again, fills them."""
    _with_columns(connection, TABLES)
    connection.execute("UPDATE meta SET value = '7' WHERE key = 'format'")


def _with_columns(connection: database.Connection, tables: Types) -> None:
    """Make the tables of results again with these columns; new ones are empty."""
    for table in ("results", "elsewhere"):
        known = {column for column, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}
        columns = (
            f'"{column}"' if column in known else f'NULL::{kind} AS "{column}"'
            for column, kind in tables[table].items()
        )
        connection.execute(f"CREATE TABLE made_again AS SELECT {', '.join(columns)} FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE made_again RENAME TO {table}")


_STEPS: Mapping[int, Callable[[database.Connection], None]] = {3: _from_3, 4: _from_4, 5: _from_5, 6: _from_6}
_BEFORE: Mapping[int, Callable[[Types], Types]] = {3: _tables_of_3, 4: _tables_of_4, 5: _tables_of_5}
