"""Traces as Parquet tables: read whole or a window at a time, and written in parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heapwright._support import database, parquet
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import is_study
from heapwright._support.remote import read_from, writable
from heapwright._traces.validation import OPTIONAL, REQUIRED, Columns

WINDOW = 1 << 18
"""Calls in a window."""

MOST_WHOLE = 1 << 26
"""Calls that are read at once, some 4 GB of them: a file of some kilobytes may say that it holds more."""

_PART = 1 << 20
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_LABELS = ("phase", "site")


class TableReader:
    """One trace file that is being read; its columns are neither validated nor of the types of a trace.

    Attributes:
        names: the names that the indices in the columns phase and site stand for.
        metadata: the file's key-value metadata.
        rows: calls in it.
    """

    def __init__(self, connection: database.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._source = parquet.source(path, ", file_row_number = true")
        described = connection.execute(f"DESCRIBE SELECT * FROM {parquet.source(path)}").fetchall()
        types = {str(row[0]): str(row[1]) for row in described}
        _check_types(types, path)
        labels = [key for key in _LABELS if key in types]
        self.names = dict.fromkeys(_LABELS, ("",)) | {key: self._label_names(key) for key in labels}
        self.metadata = parquet.metadata(connection, path)
        self.rows = parquet.rows(connection, path)
        plain = [key for key in (*REQUIRED, *OPTIONAL) if key in types]
        codes = [f"enum_code(coalesce({key}::VARCHAR, '')::{key}_names) AS {key}" for key in labels]
        self._columns = plain + codes

    def whole(self) -> Columns:
        """All calls. Raises HeapwrightError where these are more than `MOST_WHOLE`, before any is read."""
        if self.rows > MOST_WHOLE:
            raise HeapwrightError(
                f"{self._path}: {self.rows:,} calls; at most {MOST_WHOLE:,} are read at once: heapwright trace cut "
                f"takes a part"
            )
        columns: Columns = {}
        for column in self._columns:  # one at a time: DuckDB holds what it reads a second time
            columns |= self._connection.execute(f"SELECT {column} FROM {self._source}").fetchnumpy()
        return columns

    def windows(self) -> Iterator[Columns]:
        """The calls, `WINDOW` at a time."""
        query = f"SELECT {', '.join(self._columns)} FROM {self._source}"
        for start in range(0, self.rows, WINDOW):
            some = f"WHERE file_row_number >= {start} AND file_row_number < {start + WINDOW}"
            yield self._connection.execute(f"{query} {some}").fetchnumpy()

    def _label_names(self, key: str) -> tuple[str, ...]:
        """Names of one label column in order of first appearance; leaves an enum type of them in the database."""
        query = f"SELECT coalesce({key}::VARCHAR, '') AS name, min(file_row_number) AS first"
        result = self._connection.execute(f"{query} FROM {self._source} GROUP BY name ORDER BY first").fetchall()
        names = tuple(str(row[0]) for row in result) or ("",)
        self._connection.execute(f"CREATE TYPE {key}_names AS ENUM ({', '.join(map(database.quoted, names))})")
        return names


@contextlib.contextmanager
def reading(path: Path) -> Iterator[TableReader]:
    """Open a trace file to read it.

    Raises HeapwrightError where it is missing, cannot be fetched, is not Parquet, truncated, or lacks a column.
    """
    file = read_from(path)
    if not file.is_file():
        raise HeapwrightError(f"{path}: {'is not a file' if file.exists() else 'no such file'}")
    with database.reaching(path) as connection:
        try:
            yield TableReader(connection, path)
        except database.Error as error:
            if is_study(path):
                raise HeapwrightError(f"{path}: a study, and no trace; give one that it was explored on") from error
            reason = str(error).splitlines()[0].removeprefix("Invalid Input Error: ").replace(str(file), str(path))
            raise HeapwrightError(f"{path}: not a whole Parquet file ({reason}); record or import it again") from error


class TableWriter:
    """The writer of a trace that comes in pieces: in memory while it is small, else in parts on the disk.

    Attributes:
        names: the names that the columns phase and site index; a list may grow between calls of `add`. A column with
            no name but "" is not written; one that holds names is written as it is.
    """

    def __init__(self, folder: Path | None, names: Mapping[str, Sequence[str]] | None = None) -> None:
        """Keep parts in a folder of their own in `folder`, whose owner removes it; None keeps all rows in memory."""
        self.names = dict(names or {})
        self._folder = folder
        self._held: list[Columns] = []
        self._held_rows = 0
        self._parts: list[Path] = []
        self._is_used: dict[str, bool] = {}  # optional columns: whether any value is not 0

    def add(self, columns: Columns) -> None:
        """Add the next calls; phase and site may be missing if the trace has none."""
        if not len(columns["op"]):
            return
        self._held.append(dict(columns))
        self._held_rows += len(columns["op"])
        for key in OPTIONAL.keys() & columns.keys():
            self._is_used[key] = self._is_used.get(key, False) or bool(columns[key].any())
        if self._folder is not None and self._held_rows >= _PART:
            self._write_part(self._folder)

    def write(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Write all calls as `parquet.write` does, without optional columns that are 0 throughout.

        Raises HeapwrightError if there is no call, or if the file cannot be written.
        """
        if not self._parts and not self._held:
            raise HeapwrightError(f"{path}: no calls; a trace has at least one row")
        unused = [key for key, is_used in self._is_used.items() if not is_used]
        if self._folder is None or not self._parts:
            rows = self._taken()
            parquet.write(path, {key: rows[key] for key in rows if key not in unused}, metadata)
            return
        if self._held:
            self._write_part(self._folder)
        parquet.join(self._parts, path, metadata, without=unused)

    def columns(self) -> Columns:
        """All rows of a table in memory, which are taken out; phase and site are still indices."""
        held, self._held, self._held_rows = self._held, [], 0
        rows = [len(columns["op"]) for columns in held]
        names = dict.fromkeys(name for columns in held for name in columns)
        return {  # column by column, each of which is let go as it is joined
            name: np.concatenate(
                [
                    columns.pop(name) if name in columns else np.zeros(count, np.uint32)
                    for columns, count in zip(held, rows, strict=True)
                ]
            )
            for name in names
        }

    def _write_part(self, folder: Path) -> None:
        import tempfile

        own = self._parts[0].parent if self._parts else Path(tempfile.mkdtemp(dir=folder))
        part = own / f"{len(self._parts)}.parquet"
        parquet.write(part, self._taken(), {})
        self._parts.append(part)

    def _taken(self) -> dict[str, Any]:
        rows: dict[str, Any] = self.columns()
        for key in _LABELS:
            known = self.names.get(key, ("",))
            if key not in rows or rows[key].dtype == object:
                continue
            if list(known) == [""]:
                del rows[key]
            else:
                rows[key] = np.array(known, dtype=object)[rows[key]]
        return rows


@contextlib.contextmanager
def room_beside(path: Path) -> Iterator[Path]:
    """Give a folder for parts of the trace that is to be written to `path`; it is gone in the end.

    Raises HeapwrightError where no file can be written there.
    """
    import tempfile

    parquet.check_writable(path)
    with tempfile.TemporaryDirectory(prefix=".heapwright-", suffix=".parts", dir=writable(path).parent) as folder:
        yield Path(folder)


@contextlib.contextmanager
def writing_to(path: Path, names: Mapping[str, Sequence[str]] | None = None) -> Iterator[TableWriter]:
    """Yield a writer whose parts lie in a folder next to `path` until the end. Raises as `room_beside` does."""
    with room_beside(path) as folder:
        yield TableWriter(folder, names)


def _check_types(types: dict[str, str], path: Path) -> None:
    missing = [key for key in REQUIRED if key not in types]
    if missing and "frame_len" in types:
        raise HeapwrightError(f"{path}: a packet table, not a trace; `heapwright workload` turns it into one")
    if missing:
        needs = ", ".join(REQUIRED)
        raise HeapwrightError(f"{path}: no column {', '.join(missing)}; a trace has {needs}")
    for key, dtype in {**REQUIRED, **OPTIONAL}.items():
        if key in types and types[key] not in _INTEGERS:
            raise HeapwrightError(f"{path}: column {key} is {types[key]}; must be {np.dtype(dtype).name}")
