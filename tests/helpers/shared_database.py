"""Parquet files are read and written through one database in this process: to open one takes 10 ms, a table one.

What a database may reach beyond its files is not kept from this one: commands that are processes, `test_database.py`
and long runs open one for each file, as users do.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pytest
from run_length import LONG

from heapwright._support import database

REACHING = database.reaching
"""What opens one for each file."""

_NUMBERS = itertools.count()


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """While `database.reaching` opens a part of one database; in a fork, whose threads are gone, it does not."""
    whole = duckdb.connect()
    with contextlib.suppress(duckdb.Error):  # older ones keep nothing of a file
        whole.execute("SET enable_external_file_cache = false")

    def reaching(
        *paths: Path, databases: Mapping[str, Path] | None = None, threads: int | None = None
    ) -> contextlib.AbstractContextManager[database.Connection]:
        if databases or threads is not None or os.getpid() != here:
            return REACHING(*paths, databases=databases, threads=threads)
        for path in paths:
            database.literal(path)
        return _part(whole.cursor())

    here = os.getpid()
    with pytest.MonkeyPatch.context() as patched:
        if not LONG:
            patched.setattr(database, "reaching", reaching)
        yield


@contextlib.contextmanager
def _part(connection: database.Connection) -> Iterator[database.Connection]:
    """With types and tables of its own."""
    name = f"part_{next(_NUMBERS)}"
    with connection:
        connection.execute(f"ATTACH ':memory:' AS {name}")
        connection.execute(f"USE {name}")
        try:
            yield connection
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {name}")
