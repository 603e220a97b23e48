"""DuckDB reaches the file it was opened for and nothing else, for any name and any content of a file."""

import os
import re
import sqlite3
from pathlib import Path

import duckdb
import pytest
import shared_database
from run_length import by_turns
from sample_traces import packets_of
from tool_requirements import machine

import heapwright
from heapwright._support import database, parquet
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.profile import profile_file

ODD_NAMES = (
    "md:foo",
    "sqlite:foo",
    "postgres:foo",
    "s3:foo",
    "https:foo",
    "gs://bucket/foo",
    ":memory:",
    "~",
    "op=1/s*r[a]b.parquet",
    "it's.parquet",
    "a{b,c}.parquet",
    "new\nline.parquet",
    "ä 100%.parquet",
    "x" * 243 + ".parquet",
)


@pytest.fixture(autouse=True)
def one_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "reaching", shared_database.REACHING)


def few_calls() -> Trace:
    return Trace.from_columns(op=[0, 3], id=[1, 1], size=[8, 0])


def test_only_one_file_of_the_project_opens_databases() -> None:
    root = Path(heapwright.__file__).parent
    opening = re.compile(r"^\s*(import|from) _?duckdb", re.MULTILINE)
    results = [path for path in root.rglob("*.py") if opening.search(path.read_text(encoding="utf-8"))]
    assert [path.relative_to(root) for path in results] == [Path("_support", "database.py")]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_always_a_local_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    few_calls().write(name)
    assert path.is_file()
    assert len(Trace.read(name)) == profile_file(path)["events"] == 2
    path.unlink()
    with database.attached(path, read_only=False) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS a")
    with database.attached(path, read_only=True) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(7,)]
    assert path.is_file()


@pytest.mark.parametrize("name", ["a?b", "back\\slash", "folder?access_mode=read_only/a"])
def test_a_name_that_duckdb_would_take_apart_is_for_tables_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(HeapwrightError, match=r"DuckDB takes no [?\\\\] in a name; rename it"):
        database.attached(path, read_only=False)
    assert list(path.parent.iterdir()) == []
    few_calls().write(path)
    assert len(Trace.read(path)) == 2


FORBIDDEN = (
    "SELECT * FROM read_text('{other}')",
    "SELECT * FROM read_csv('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/new.csv'",
    "ATTACH '{folder}/new.duckdb'",
    "ATTACH 'md:foo'",
    "ATTACH 'sqlite:foo'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET autoinstall_known_extensions = true",
    "SET allowed_paths = ['{other}']",
    "SELECT * FROM 'https://example.invalid/x.parquet'",
)


@pytest.mark.parametrize("statement", FORBIDDEN)
@pytest.mark.parametrize("kind", ["reaching", "attached"])
def test_nothing_else_can_be_reached(statement: str, kind: str, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("secret\n")
    path = tmp_path / "own"
    before = sorted(tmp_path.iterdir())
    opened = database.reaching(path) if kind == "reaching" else database.attached(path, read_only=False)
    with opened as connection, pytest.raises(database.Error) as raised:
        connection.execute(statement.format(other=other, folder=tmp_path))
    assert "secret" not in str(raised.value)
    assert sorted(set(tmp_path.iterdir()) - {path}) == before


def test_a_file_of_another_database_wakes_no_extension(tmp_path: Path) -> None:
    path = tmp_path / "lite.duckdb"
    with sqlite3.connect(path) as lite:
        lite.execute("CREATE TABLE meta (a)")
    lite.close()
    with pytest.raises(database.Error, match="extensions is disabled"):
        database.attached(path, read_only=True).execute("FROM meta")


@machine(os.name != "nt", "names are bytes on POSIX alone")
@pytest.mark.parametrize("name", [b"\xff.parquet", b"\xff/x.parquet"])
def test_a_name_that_is_not_utf_8_is_one_line(name: bytes, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PAR1")
    packets = packets_of([60], [74], [1])
    for use in (Trace.read, PacketTable.read, profile_file, few_calls().write, packets.write, parquet.check_writable):
        with pytest.raises(HeapwrightError, match="the name is not UTF-8; rename the file or its folder"):
            use(path)
    assert path.read_bytes() == b"PAR1"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_is_never_replaced(device: str) -> None:
    with pytest.raises(HeapwrightError, match="is a device; name a file"):
        few_calls().write(device)
    assert Path(device).is_char_device()


NAMES_OF_FILES = ("s.duckdb", "system.duckdb", "temp.duckdb")
THAT_RUN = {
    "a macro 'starts_with'": "CREATE MACRO starts_with(a, b) AS true",
    "a macro 'duckdb_views'": "CREATE MACRO duckdb_views() AS TABLE SELECT '' AS view_name, true AS internal",
    "a macro 'duckdb_functions'": "CREATE MACRO duckdb_functions() AS TABLE SELECT 1 AS a",
    "a view 'v'": "CREATE VIEW v AS SELECT * FROM read_text('/etc/hostname')",
    "a schema 'other'": "CREATE SCHEMA other; CREATE TABLE other.t (a INT)",
    "a type 'mood'": "CREATE TYPE mood AS ENUM ('good')",
    "a sequence 's'": "CREATE SEQUENCE s",
    "an index 'i'": "CREATE INDEX i ON t (a)",
    "a check on the table 'c'": "CREATE TABLE c (a INT CHECK (a > 0))",
    "a default or formula 'd'": "CREATE TABLE c (d DOUBLE DEFAULT random())",
    "a default or formula 'g'": "CREATE TABLE c (a INT, g INT AS (a + 1))",
}


@pytest.mark.parametrize(
    ("what", "name"), [(what, name) for turn, what in enumerate(THAT_RUN) for name in by_turns(NAMES_OF_FILES, turn)]
)
def test_all_but_plain_tables_is_refused(what: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INT, b VARCHAR)")
        connection.execute("""CREATE TABLE "x.'""y" (b INT, a INT)""")
    with database.attached(path, read_only=True) as connection:
        types = {"t": {"a": "INTEGER", "b": "VARCHAR"}, "x.'\"y": {"b": "INTEGER", "a": "INTEGER"}}
        assert database.column_types(connection, "x") == types
    with duckdb.connect(str(path)) as connection:
        connection.execute(THAT_RUN[what])
    with database.attached(path, read_only=True) as connection:
        with pytest.raises(HeapwrightError) as raised:
            database.column_types(connection, "x")
        assert str(raised.value) == f"x: holds {what}; only plain tables are valid"
