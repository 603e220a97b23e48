"""Files that are no studies, or no longer: each is refused with one line, and left alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
from run_length import by_turns
from sample_studies import IDS, RECIPES, identity, write_five

from heapwright._studies import tables
from heapwright._studies.analysis import Analysis
from heapwright._support import database
from heapwright._support.errors import HeapwrightError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_five(tmp_path_factory.mktemp("study") / "five.duckdb")


@pytest.fixture
def study(path: Path, five: Path) -> Iterator[Analysis]:
    """A copy of the five."""
    shutil.copyfile(five, path)
    with Analysis.create_or_resume(path, identity()) as opened:
        yield opened


SECRET = "SELECT content AS name, '' AS path, '' AS digest, 3 AS events, 'explored' AS role, 0 AS position"


PARTIAL = f"CREATE TABLE partial ({', '.join(f'{column} {kind}' for column, kind in tables.PARTIAL.items())})"

POISON = {
    "holds a view 'traces'": f"DROP TABLE traces; CREATE VIEW traces AS {SECRET} FROM read_text('{{secret}}')",
    "holds a macro 'starts_with'": "CREATE MACRO starts_with(a, b) AS true",
    "holds a default or formula 'name'": "ALTER TABLE recipes ALTER name SET DEFAULT getvariable('x')",
    "holds a check on the table 'meta'": "DROP TABLE meta; CREATE TABLE meta (key VARCHAR CHECK (key > ''), value INT)",
    "its table 'meta'; explore again": "ALTER TABLE meta ALTER value TYPE BLOB",
    "its table 'results'; explore again": "ALTER TABLE results ALTER accesses TYPE VARCHAR",
    "its table 'recipes'; explore again": "ALTER TABLE recipes ADD COLUMN more VARCHAR",
    "its table 'more'; explore again": "CREATE TABLE more (a INT)",
    "a DuckDB file, but no study": "DROP TABLE recipes",
    "a study of format None": "UPDATE meta SET value = repeat('[', 100000) || repeat(']', 100000) WHERE key = 'format'",
    "damaged: its table 'meta'": "UPDATE meta SET value = '[\"nothing\"]' WHERE key = 'objectives'",
    "damaged: its table 'meta';": "UPDATE meta SET value = '{}' WHERE key = 'heapwright'",
    "damaged: its table 'meta'; restore": "DELETE FROM meta WHERE key = 'created'",
    "damaged: no trace": "DELETE FROM results; DELETE FROM traces",
    "damaged: a trace without a value": "UPDATE traces SET digest = NULL",
    "damaged: two traces of one name": "INSERT INTO traces SELECT * FROM traces",
    "damaged: a recipe without id or text": "UPDATE recipes SET toml = NULL",
    "damaged: an id that is none": "UPDATE recipes SET id = '<b>' || id; UPDATE results SET recipe = '<b>' || recipe",
    "damaged: two recipes of one id": "INSERT INTO recipes SELECT * FROM recipes LIMIT 1",
    "damaged: results without a recipe": "UPDATE results SET recipe = '000000000000' WHERE accesses = 1000",
    "damaged: results without a trace": "UPDATE results SET trace = NULL",
    "damaged: results twice": "INSERT INTO results SELECT * FROM results LIMIT 1",
    "damaged: results below 0": "UPDATE results SET footprint_bytes = -1",
    "damaged: results that are no numbers": "UPDATE results SET fragmentation = 'nan'",
    "damaged: elsewhere without a trace": "INSERT INTO elsewhere SELECT * FROM results",
    "damaged: partial without a value": f"{PARTIAL}; INSERT INTO partial BY NAME SELECT recipe, trace FROM results",
    "its table 'partial'; explore again": "CREATE TABLE partial (recipe VARCHAR)",
}


@pytest.mark.parametrize("says", POISON)
def test_a_file_that_is_not_as_we_write_it_is_refused(says: str, study: Analysis, path: Path, tmp_path: Path) -> None:
    study.close()
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    with duckdb.connect(str(path)) as database:
        database.execute(POISON[says].format(secret=secret) if "{secret}" in POISON[says] else POISON[says])
    openers: Sequence[Callable[[Path], Analysis]] = (
        Analysis.open,
        lambda path: Analysis.create_or_resume(path, identity()),
    )
    for opener in by_turns(openers, [*POISON].index(says)):
        message = one_line(path, opener)
        assert says in message
        assert "hunter2" not in message


def one_line(path: Path, opener: Callable[[Path], Analysis] = Analysis.open) -> str:
    with pytest.raises(HeapwrightError) as caught:
        opener(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_missing_foreign_and_empty_files(path: Path, tmp_path: Path) -> None:
    assert "no such study" in one_line(path)
    path.write_bytes(os.urandom(5000))
    assert "no study" in one_line(path)
    path.write_bytes(b"")
    assert "no study" in one_line(path)
    assert "directory" in one_line(tmp_path)


def test_an_empty_file_is_taken_as_a_new_study(path: Path) -> None:
    path.touch()
    with Analysis.create_or_resume(path, identity()) as study:
        assert study.finished() == set()


def test_a_foreign_database_is_refused_and_left_alone(path: Path) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE mine AS SELECT 1 AS a")
    assert "no study" in one_line(path)
    with pytest.raises(HeapwrightError, match="no study"):
        Analysis.create_or_resume(path, identity())
    with duckdb.connect(str(path)) as database:
        assert database.execute("SELECT a FROM mine").fetchall() == [(1,)]


def test_another_format_is_refused(study: Analysis, path: Path) -> None:
    study.close()
    with duckdb.connect(str(path)) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    assert "a study of format 99" in one_line(path)


def test_a_recipe_that_means_something_else_now_is_refused(study: Analysis, path: Path) -> None:
    study.close()
    with duckdb.connect(str(path)) as database:
        database.execute("UPDATE recipes SET toml = ? WHERE id = ?", [RECIPES[1].to_toml(), IDS[0]])
    with Analysis.open(path) as again, pytest.raises(HeapwrightError, match="explore again"):
        again.recipe(IDS[0])


@pytest.mark.parametrize("kept", [100, 5000, 12288])
def test_a_truncated_file_is_one_line(study: Analysis, path: Path, kept: int) -> None:
    study.close()
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(HeapwrightError, match=r"damaged|no study"):
        Analysis.open(path).results()


def test_unusable_places_are_one_line(tmp_path: Path) -> None:
    for path, says in {tmp_path / "no" / "s.duckdb": "there is no folder", tmp_path: "directory"}.items():
        with pytest.raises(HeapwrightError, match=says):
            Analysis.create_or_resume(path, identity())


def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        folder, says = Path("/proc"), "s.duckdb"  # root may write to any folder but that of a virtual file system
    else:
        folder, says = tmp_path, "Permission denied"
        folder.chmod(0o500)
    with pytest.raises(HeapwrightError, match=says) as raised:
        Analysis.create_or_resume(folder / "s.duckdb", identity())
    assert "\n" not in str(raised.value)


def test_what_this_process_left_is_asked_for_all_but_tables_again_once_it_is_another_file(
    five: Path, path: Path, tmp_path: Path
) -> None:
    shutil.copyfile(five, path)
    assert not database.vouched(path)
    Analysis.open(path).close()
    assert database.vouched(path)
    shutil.copyfile(path, tmp_path / "copy.duckdb")
    assert not database.vouched(tmp_path / "copy.duckdb")
    Analysis.open(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE MACRO starts_with(a, b) AS true")
    for _ in range(2):
        assert not database.vouched(path)
        with pytest.raises(HeapwrightError, match="holds a macro 'starts_with'"):
            Analysis.open(path)
    path.unlink()
    assert not database.vouched(path)
