"""Studies with made-up metrics: what is stored, ranked, resumed and refused."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from heapwright.errors import HeapwrightError
from heapwright.explore.study import Candidate, Identity, Result, Study, TraceInfo
from heapwright.heaps import tuning
from heapwright.recipes.pools import General
from heapwright.recipes.recipe import Recipe
from heapwright.replay.energy import EnergyTable, default_energy_table
from heapwright.replay.metrics import METRICS, Value, combine
from heapwright.traces.trace import Trace

OBJECTIVES = ("footprint_bytes", "accesses")


def trace(name: str, size: int = 24) -> Trace:
    return Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[size, 16, 0], name=name)


TRACES = (trace("busy"), trace("idle", 100))


def recipe(number: int) -> Recipe:
    return Recipe.unchecked((General(coalesce_from=64 * number),))


RECIPES = sorted((recipe(number) for number in range(1, 9)), key=lambda one: one.hash)
IDS = [one.hash for one in RECIPES]


def metrics(footprint: int, accesses: int, **others: float | None) -> dict[str, Value]:
    values: dict[str, Value] = {key: 0 if metric.integer else 0.5 for key, metric in METRICS.items()}
    return {**values, "footprint_bytes": footprint, "accesses": accesses, "ns_per_event": None, **others}


def result(number: int, measured: dict[str, Value], where: str = "busy", zoo_name: str | None = None) -> Result:
    return Result(IDS[number], RECIPES[number], zoo_name, where, measured)


def identity(
    traces: Sequence[Trace] = TRACES[:1],
    objectives: Sequence[str] = OBJECTIVES,
    ids: Sequence[str] = IDS,
    table: EnergyTable | None = None,
) -> Identity:
    return Identity.of(traces, objectives, ids, table or default_energy_table())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


@pytest.fixture
def study(path: Path) -> Iterator[Study]:
    """Five recipes on one trace: 0, 1, 3 on the front, 2 (zoo) dominated by 1, 4 (zoo) refused a request."""
    with Study.create_or_resume(path, identity()) as opened:
        opened.add(
            [
                result(0, metrics(100, 1000)),
                result(1, metrics(200, 400), zoo_name="alpha"),
                result(2, metrics(220, 800), zoo_name="beta"),
                result(3, metrics(1000, 300)),
                result(4, metrics(50, 50, failed=3), zoo_name="gamma"),
            ]
        )
        yield opened


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [one.id for one in candidates]


def test_results_come_back_as_they_were_stored(study: Study, path: Path) -> None:
    measured = metrics(7, 2**40, fragmentation=1 / 3, ns_per_event=None)
    study.add([result(5, measured)])
    study.close()
    with Study.open(path) as again:
        assert again.per_trace([IDS[5]]) == {IDS[5]: {"busy": measured}}
        assert again.candidate(IDS[5]).metrics == measured
        assert again.recipe(IDS[5]) == RECIPES[5]


def test_meta_says_what_was_explored(study: Study) -> None:
    assert study.objectives == OBJECTIVES
    assert study.traces() == [TraceInfo.of(TRACES[0])]
    assert study.meta["format"] == 2


def test_front_and_picks(study: Study) -> None:
    assert ids(study.front()) == [IDS[0], IDS[1], IDS[3]]
    assert study.pick("smallest").id == IDS[0]
    assert study.pick("fastest").id == IDS[3]
    # value / best: (1, 10/3), (2, 4/3), (10, 1): geometric means 1.83, 1.63, 3.16
    assert study.pick("balanced").id == IDS[1]


def test_ranking_anew_by_other_metrics(study: Study) -> None:
    assert ids(study.front("accesses")) == [IDS[3]]
    with pytest.raises(HeapwrightError, match="did you mean accesses"):
        study.front("acesses")


def test_refusing_recipes_are_on_a_front_of_admitted_fraction_only(study: Study) -> None:
    assert IDS[4] not in ids(study.front())
    study.add([result(6, metrics(60, 60, failed=1, admitted_fraction=0.9))])
    assert ids(study.front("footprint_bytes,admitted_fraction")) == [IDS[4], IDS[6]]


def test_recipes_without_an_objective_are_not_ranked(study: Study) -> None:
    assert study.front("ns_per_event") == []
    with pytest.raises(HeapwrightError, match="the front is empty"):
        study.pick("balanced", "ns_per_event")


def test_zoo_standings(study: Study) -> None:
    alpha, beta, gamma = study.zoo_standings()
    assert alpha.on_front
    assert (beta.dominated_by, beta.ratios) == (IDS[1], {"footprint_bytes": pytest.approx(1.1), "accesses": 2.0})
    assert (gamma.on_front, gamma.dominated_by) == (False, None)


def test_an_equal_of_a_member_is_dominated_with_ratio_one(study: Study) -> None:
    study.add([result(7, metrics(100, 1000), zoo_name="twin")])
    (twin,) = (standing for standing in study.zoo_standings() if standing.candidate.zoo_name == "twin")
    assert (twin.dominated_by, twin.ratios) == (IDS[0], {"footprint_bytes": 1.0, "accesses": 1.0})


def test_only_recipes_finished_on_every_trace_are_combined(path: Path) -> None:
    with Study.create_or_resume(path, identity(TRACES)) as study:
        both = [metrics(10, 5, header_bytes=3), metrics(30, 7, header_bytes=1)]
        study.add([result(0, both[0], "busy"), result(0, both[1], "idle"), result(1, metrics(1, 1), "busy")])
        assert study.combined.ids == [IDS[0]]
        assert study.candidate(IDS[0]).metrics == combine(both)
        with pytest.raises(HeapwrightError, match="not tried on every trace"):
            study.candidate(IDS[1])
        study.add([result(1, metrics(1, 1), "idle")])
        assert ids(study.front()) == [IDS[1]]


def test_recipes_are_named_by_id_prefix_or_zoo_name(study: Study) -> None:
    assert study.resolve(IDS[0][:8]) == IDS[0]
    assert study.resolve(IDS[0].upper()) == IDS[0]
    assert study.resolve("beta") == IDS[2]
    for wrong in ("zz", ""):
        with pytest.raises(HeapwrightError, match="no such recipe"):
            study.resolve(wrong)
    study.add([Result(one.hash, one, None, "busy", metrics(9, 9)) for one in map(recipe, range(100, 117))])
    digits = [id[0] for (id, _) in study.finished()]
    with pytest.raises(HeapwrightError, match="give more"):
        study.resolve(max(digits, key=digits.count))


def test_describe_is_the_json_of_pareto(study: Study) -> None:
    (one,) = study.describe([study.pick("smallest")])
    assert one["id"] == IDS[0]
    assert Recipe.from_dict(one["recipe"]).hash == IDS[0]
    assert one["metrics"] == one["traces"]["busy"] == metrics(100, 1000)


def test_a_study_tells_whether_it_is_complete(study: Study, path: Path) -> None:
    assert study.complete is False
    assert study.tried == "5 of 8"
    assert study.tuned_for.endswith("; 5 of 8 recipes tried")
    study.add([result(number, metrics(9, 9)) for number in (5, 6, 7)])
    assert study.complete is True
    assert study.tried == "8"
    study.close()
    with duckdb.connect(str(path)) as database:
        database.execute("DELETE FROM meta WHERE key = 'recipes'")
    with Study.open(path) as older:
        assert older.complete is None
        assert older.tried == "8"
        assert "recipes tried" not in older.tuned_for


def test_tuning_of_a_study_heap(study: Study, path: Path) -> None:
    study.close()
    words, measured = tuning(f"{path}:{IDS[0][:6]}")
    assert words == "busy (3 calls); objectives footprint_bytes, accesses; 5 of 8 recipes tried"
    assert measured == metrics(100, 1000)
    assert tuning("tlsf") == (None, None)


def test_held_out_results_are_stored_apart(study: Study) -> None:
    other = TraceInfo.of(TRACES[1])
    study.hold_out([other])
    study.add([result(0, metrics(1, 1), "idle")], held_out=True)
    assert study.finished(held_out=True) == {(IDS[0], "idle")}
    assert study.combined_held_out.find(IDS[0]) == Candidate(IDS[0], None, metrics(1, 1))
    assert study.candidate(IDS[0]).metrics == metrics(100, 1000)
    assert set(study.per_trace([IDS[0]])[IDS[0]]) == {"busy", "idle"}
    study.hold_out([other])
    assert study.finished(held_out=True)
    study.hold_out([TraceInfo.of(trace("idle", 8))])
    assert not study.finished(held_out=True)


def test_a_trace_cannot_be_explored_on_and_held_out(study: Study) -> None:
    for clash in (trace("busy", 4), trace("renamed")):
        with pytest.raises(HeapwrightError, match="held out and explored on"):
            study.hold_out([TraceInfo.of(clash)])


# Files from strangers

SECRET = "SELECT content AS name, '' AS path, '' AS digest, 3 AS events, false AS held_out, 0 AS position"

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
    "damaged: held_out without a trace": "INSERT INTO held_out SELECT * FROM results",
}


@pytest.mark.parametrize("says", POISON)
def test_a_file_that_is_not_as_we_write_it_is_refused(says: str, study: Study, path: Path, tmp_path: Path) -> None:
    study.close()
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    with duckdb.connect(str(path)) as database:
        database.execute(POISON[says].format(secret=secret) if "{secret}" in POISON[says] else POISON[says])
    for opener in (Study.open, lambda path: Study.create_or_resume(path, identity())):
        message = one_line(path, opener)
        assert says in message
        assert "hunter2" not in message


# Resuming


def test_resuming_knows_what_is_finished(study: Study, path: Path) -> None:
    study.close()
    with Study.create_or_resume(path, identity()) as again:
        assert again.finished() == {(IDS[number], "busy") for number in range(5)}
        again.add([result(5, metrics(1, 1))])
        assert len(again.combined.ids) == 6


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (identity(TRACES), r"explored on other traces \(busy\)"),
        (identity([trace("busy", 25)]), "explored on other traces"),
        (identity(objectives=("accesses",)), "explored for footprint_bytes,accesses"),
        (identity(ids=IDS[1:]), "explored with another space"),
        (identity(table=EnergyTable((1, 2), (1, 2), (1, 2))), "explored with another energy table"),
    ],
)
def test_another_exploration_is_refused_with_a_way_out(study: Study, path: Path, other: Identity, says: str) -> None:
    study.close()
    with pytest.raises(HeapwrightError, match=says) as caught:
        Study.create_or_resume(path, other)
    assert "another file" in str(caught.value)
    with Study.open(path) as untouched:
        assert len(untouched.finished()) == 5


def test_a_trace_is_known_by_its_calls_not_its_file() -> None:
    assert TraceInfo.of(trace("a")).digest == TraceInfo.of(trace("b")).digest
    assert TraceInfo.of(trace("a")).digest != TraceInfo.of(trace("a", 25)).digest


WRITER = """
import os, sys
sys.path.insert(0, {tests!r})
from test_study import *
study = Study.create_or_resume({path!r}, identity())
study.add([result(0, metrics(100, 1000))])
study._connection.begin()
study._connection.execute("DELETE FROM results")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has stored one result and is in the middle of its next transaction."""
    code = WRITER.format(tests=str(Path(__file__).parent), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_a_killed_writer_loses_only_its_unfinished_transaction(writer: "subprocess.Popen[str]", path: Path) -> None:
    writer.kill()
    writer.communicate()
    with Study.open(path) as study:
        assert study.finished() == {(IDS[0], "busy")}
    with Study.create_or_resume(path, identity()) as study:
        study.add([result(1, metrics(1, 1))])
        assert len(study.finished()) == 2


@pytest.mark.usefixtures("writer")
def test_a_study_being_written_is_one_line(path: Path) -> None:
    for attempt in (lambda: Study.open(path), lambda: Study.create_or_resume(path, identity())):
        with pytest.raises(HeapwrightError, match="another process is writing this study"):
            attempt()


# Files that are no studies


def one_line(path: Path, opener: Callable[[Path], Study] = Study.open) -> str:
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
    with Study.create_or_resume(path, identity()) as study:
        assert study.finished() == set()


def test_a_foreign_database_is_refused_and_left_alone(path: Path) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE mine AS SELECT 1 AS a")
    assert "no study" in one_line(path)
    with pytest.raises(HeapwrightError, match="no study"):
        Study.create_or_resume(path, identity())
    with duckdb.connect(str(path)) as database:
        assert database.execute("SELECT a FROM mine").fetchall() == [(1,)]


def test_another_format_is_refused(study: Study, path: Path) -> None:
    study.close()
    with duckdb.connect(str(path)) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    assert "a study of format 99" in one_line(path)


def test_a_recipe_that_means_something_else_now_is_refused(study: Study, path: Path) -> None:
    study.close()
    with duckdb.connect(str(path)) as database:
        database.execute("UPDATE recipes SET toml = ? WHERE id = ?", [RECIPES[1].to_toml(), IDS[0]])
    with Study.open(path) as again, pytest.raises(HeapwrightError, match="explore again"):
        again.recipe(IDS[0])


@pytest.mark.parametrize("kept", [100, 5000, 12288])
def test_a_truncated_file_is_one_line(study: Study, path: Path, kept: int) -> None:
    study.close()
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(HeapwrightError, match=r"damaged|no study"):
        Study.open(path).results()


def test_unusable_places_are_one_line(tmp_path: Path) -> None:
    for path, says in {tmp_path / "no" / "s.duckdb": "there is no folder", tmp_path: "directory"}.items():
        with pytest.raises(HeapwrightError, match=says):
            Study.create_or_resume(path, identity())


def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        folder, says = Path("/proc"), "s.duckdb"  # root may write to any folder but that of a virtual file system
    else:
        folder, says = tmp_path, "Permission denied"
        folder.chmod(0o500)
    with pytest.raises(HeapwrightError, match=says) as raised:
        Study.create_or_resume(folder / "s.duckdb", identity())
    assert "\n" not in str(raised.value)


FILLER = """
import resource, signal, sys
sys.path.insert(0, {tests!r})
from test_study import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
study = Study.create_or_resume({path!r}, identity())
study.add([result(0, metrics(100, 1000))])
size = max(os.path.getsize({path!r} + suffix) for suffix in ("", ".wal"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
try:
    for name in range(10_000):
        ids = [f"{{name:06x}}{{number:06x}}" for number in range(20)]
        study.add([Result(id, RECIPES[1], None, "busy", metrics(1, 1)) for id in ids])
except HeapwrightError as error:
    print(error)
"""


def test_a_full_disk_is_one_line_and_keeps_what_was_stored(path: Path) -> None:
    code = FILLER.format(tests=str(Path(__file__).parent), path=str(path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{path}: ")
    assert done.stdout.count("\n") == 1
    with Study.open(path) as study:
        assert (IDS[0], "busy") in study.finished()
