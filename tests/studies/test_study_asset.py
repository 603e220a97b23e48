"""What one does with studies: merge, extend, query, export, bring to this format, make the numbers again."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from keyword_explorations import explore
from sample_studies import IDS, OBJECTIVES, TRACES, identity, metrics, result, trace, write_five

import heapwright as hw
from heapwright._cli import heapwright as command_line
from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._explore.space import Space
from heapwright._explore.workers import Interrupt
from heapwright._recipes.pools import General
from heapwright._recipes.recipe import Recipe
from heapwright._replay.metrics import METRICS
from heapwright._replay.replay import Replayed
from heapwright._studies.analysis import Analysis
from heapwright._studies.merge import merge
from heapwright._studies.records import Measured, Result, TraceInfo
from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__
from heapwright._traces.trace import Trace


def written(path: Path, results: list[Result], **about: object) -> Path:
    with Analysis.create_or_resume(path, identity(**about)) as study:  # type: ignore[arg-type]
        study.add(results)
    return path


def everything(path: Path) -> list[dict[str, object]]:
    with Analysis.open(path) as study:
        columns, rows = study.sql("SELECT * FROM replays ORDER BY recipe, trace")
    return [dict(zip(columns, row, strict=True)) for row in rows]


# ---- merging -------------------------------------------------------------------------------------------------------


def test_parts_of_one_space_become_the_whole(tmp_path: Path) -> None:
    parts = [
        written(tmp_path / "a.duckdb", [result(number, metrics(10 + number, 9)) for number in range(5)]),
        written(tmp_path / "b.duckdb", [result(number, metrics(10 + number, 9)) for number in range(3, 8)]),
    ]
    merge(parts, tmp_path / "all.duckdb")
    whole = written(tmp_path / "whole.duckdb", [result(number, metrics(10 + number, 9)) for number in range(8)])
    assert everything(tmp_path / "all.duckdb") == everything(whole)
    with Analysis.create_or_resume(tmp_path / "all.duckdb", identity()) as study:
        assert study.complete


def test_what_was_given_up_gives_way(tmp_path: Path) -> None:
    nothing = dict.fromkeys(METRICS)
    parts = [
        written(tmp_path / "a.duckdb", [result(0, {**nothing}), result(1, metrics(2, 2))]),
        written(tmp_path / "b.duckdb", [result(0, metrics(1, 1)), result(1, {**nothing})]),
    ]
    merge(parts, tmp_path / "all.duckdb")
    assert [row["footprint_bytes"] for row in everything(tmp_path / "all.duckdb")] == [1, 2]


def test_one_space_on_other_traces(tmp_path: Path) -> None:
    parts = [
        written(tmp_path / "a.duckdb", [result(0, metrics(1, 1))]),
        written(tmp_path / "b.duckdb", [result(0, metrics(2, 2), "idle")], traces=TRACES[1:]),
    ]
    merge(parts, tmp_path / "all.duckdb")
    with Analysis.open(tmp_path / "all.duckdb") as study:
        assert [info.name for info in study.traces()] == ["busy", "idle"]
        assert study.ranked == 1
        assert study.candidate(IDS[0]).metrics["footprint_bytes"] == 2


def test_complete_studies_of_two_spaces_become_one_of_all_their_recipes(tmp_path: Path) -> None:
    parts = [
        written(tmp_path / "a.duckdb", [result(number, metrics(1, 1)) for number in (0, 1)], ids=IDS[:2]),
        written(tmp_path / "b.duckdb", [result(number, metrics(1, 1)) for number in (1, 2)], ids=IDS[1:3]),
    ]
    merge(parts, tmp_path / "all.duckdb")
    with Analysis.open(tmp_path / "all.duckdb") as study:
        assert (study.ranked, study.complete) == (3, True)


@pytest.mark.parametrize(
    ("about", "one", "says"),
    [
        ({"objectives": ("accesses",)}, metrics(1, 1), "another objectives than"),
        ({"align": 4}, metrics(1, 1), "another alignment than"),
        ({"traces": [trace("busy", 25)]}, metrics(1, 1), "busy is another trace than that of its name"),
        ({}, metrics(1, 2), rf"accesses of {IDS[0]} on busy is 2 here \(heapwright .*\) and 1 in the others"),
        ({}, metrics(1, 1, energy_nJ=0.6), "energy_nJ of .* is 0.6 here .* and 0.5 in the others"),
        ({"ids": IDS[:1]}, metrics(1, 1), "a.duckdb: a part of a space that is not the others'; finish it"),
        ({"ids": IDS[:1], "traces": TRACES}, metrics(1, 1), "another space and other traces"),
    ],
)
def test_what_contradicts_is_refused(tmp_path: Path, about: dict, one: dict, says: str) -> None:  # type: ignore[type-arg]
    parts = [
        written(tmp_path / "a.duckdb", [result(0, metrics(1, 1))]),
        written(tmp_path / "b.duckdb", [result(0, one)], **about),
    ]
    with pytest.raises(HeapwrightError, match=says):
        merge(parts, tmp_path / "all.duckdb")
    assert not (tmp_path / "all.duckdb").exists()


def test_what_was_measured_on_two_targets_is_not_merged_beside_what_was_on_none(tmp_path: Path) -> None:
    parts = [
        written(tmp_path / "none.duckdb", [result(0, metrics(1, 1))]),
        measured(tmp_path / "m3.duckdb", 1, "m3"),
        measured(tmp_path / "again.duckdb", 2, "m3"),
    ]
    merge(parts, tmp_path / "all.duckdb")
    with Analysis.open(tmp_path / "all.duckdb") as study:
        assert study.meta["target"] == "m3"
        assert [(setting, id) for setting, id, _, _ in study.measured()] == [("m3", IDS[1]), ("m3", IDS[2])]
    other = measured(tmp_path / "m4.duckdb", 3, "m4")
    with pytest.raises(HeapwrightError, match=r"m4.duckdb: measured on another target than .*m3.duckdb; merge, then"):
        merge([*parts, other], tmp_path / "more.duckdb")


def measured(path: Path, number: int, target: str) -> Path:
    """A study of one recipe that was measured there."""
    with Analysis.open(written(path, [result(number, metrics(1, 1))]), write=True) as study:
        study.add_measured(target, [Measured(IDS[number], "busy", {"instructions_pair_mean": 60.0}, {})])
    return path


def test_a_merged_study_is_a_new_file_of_two_or_more(tmp_path: Path) -> None:
    item = written(tmp_path / "a.duckdb", [result(0, metrics(1, 1))])
    with pytest.raises(HeapwrightError, match="give two studies or more"):
        merge([item], tmp_path / "b.duckdb")
    with pytest.raises(HeapwrightError, match="exists; give another file"):
        merge([item, item], item)


# ---- real studies --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("traces")
    for name, size in {"small": 24, "large": 100}.items():
        calls = [(0, number, size + number % 20) for number in range(40)] + [
            (3, number, 0) for number in range(0, 40, 2)
        ]
        op, id, sizes = zip(*calls, strict=True)
        Trace.from_columns(op=op, id=id, size=sizes, name=name).write(folder / f"{name}.parquet")
    return folder / "small.parquet", folder / "large.parquet"


def few() -> Space:
    recipes = [
        Recipe.unchecked((General(fit=fit, split=split),)) for fit in ("first", "best") for split in ("always", 32)
    ]
    return Space([recipes], include_zoo=False)


@pytest.fixture
def study(tmp_path: Path, trace_files: tuple[Path, Path]) -> Path:
    explore([Trace.read(trace_files[0])], few(), study_path=tmp_path / "s.duckdb", copies=2, jobs=1)
    return tmp_path / "s.duckdb"


def test_extending_gives_what_exploring_both_gives(study: Path, tmp_path: Path, trace_files: tuple[Path, Path]) -> None:
    hw.extend_study(study, trace_files[1], jobs=1)
    both = tmp_path / "both.duckdb"
    explore([Trace.read(path) for path in trace_files], few(), study_path=both, copies=2, jobs=1)
    assert everything(study) == everything(both)
    assert hw.extend_study(study, trace_files[1]).complete


def test_a_trace_is_not_added_under_the_name_of_another(study: Path, tmp_path: Path) -> None:
    other = trace("small")
    with pytest.raises(HeapwrightError, match="small is the name of another trace"):
        hw.extend_study(study, other)


def test_where_a_trace_is_added_nobody_knows_how_near_the_front_is(tmp_path: Path) -> None:
    path = written(tmp_path / "a.duckdb", [result(0, metrics(1, 1))])
    with Analysis.open(path, write=True) as opened:
        assert opened.tolerance is None
        opened.set_tolerance(0.01)
        assert opened.tolerance == 0.01
        opened.add_traces([TraceInfo.of(TRACES[1])], {})
        assert opened.tolerance is None


def test_a_recipe_is_replayed_again_on_each_trace_that_is_named(study: Path) -> None:
    opened = hw.open_study(study)
    id = opened.front()[0].id
    names = [item.trace for item in opened.again(id)]
    assert len(names) == 3
    for name in names:
        assert [item.trace for item in opened.again(id, [name])] == [name]


def test_the_printed_command_makes_the_numbers_again(study: Path) -> None:
    run = CliRunner()
    picked = json.loads(run.invoke(command_line, ["pareto", str(study), "--pick", "smallest", "--json"]).stdout)[0]
    program, *words = shlex.split(picked["again"])
    assert program == "heapwright"
    done = run.invoke(command_line, [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    results = {item["trace"]: item for item in json.loads(done.stdout)}
    assert results["small"]["metrics"] == {key: picked["traces"]["small"][key] for key in results["small"]["metrics"]}
    assert [item["role"] for item in results.values()] == ["explored", "copy", "copy"]
    assert all(item["stored"] == item["metrics"] for item in results.values())
    shown = run.invoke(command_line, ["pareto", str(study), "--pick", "smallest"]).stdout
    assert f"# again: {picked['again']}\n" in shown


def test_numbers_that_come_out_otherwise_are_told(study: Path) -> None:
    with duckdb.connect(str(study)) as database:
        database.execute("UPDATE results SET accesses = accesses + 1")
    ((id, value),) = hw.open_study(study).sql("SELECT recipe, accesses FROM results LIMIT 1")[1]
    done = CliRunner().invoke(command_line, ["study", "again", f"{study}:{id}"])
    assert isinstance(done.exception, HeapwrightError)
    assert f"accesses differ; accesses on small was {value} with heapwright {__version__} and is {value - 1}" in str(
        done.exception
    )
    with pytest.raises(HeapwrightError, match=r"not tried on larg; it was on small"):
        hw.open_study(study).again(id, ["larg"])


def test_traces_that_moved_are_found_where_they_are(
    study: Path, tmp_path: Path, trace_files: tuple[Path, Path]
) -> None:
    with duckdb.connect(str(study)) as database:
        database.execute("UPDATE traces SET path = '/nowhere/small.parquet' WHERE role = 'explored'")
    opened = hw.open_study(study)
    with pytest.raises(HeapwrightError, match=r"nowhere/small\.parquet: no such file; give the present path of"):
        opened.again(opened.front()[0].id)
    assert not any(item.differing for item in opened.again(opened.front()[0].id, moved=[trace_files[0]]))
    shutil.copy(trace_files[0], study.parent / "small.parquet")
    assert not any(item.differing for item in opened.again(opened.front()[0].id)), "it lies next to the study"


def test_every_row_says_what_made_it(study: Path, trace_files: tuple[Path, Path]) -> None:
    digest = TraceInfo.of(Trace.read(trace_files[0])).digest
    for row in everything(study):
        assert row["heapwright"] == __version__
        assert row["machine"] is None
        assert Recipe.parse(str(row["toml"]), "row").hash == row["recipe"]
        assert (row["trace_digest"] == digest) == (row["role"] == "explored")


def test_a_time_says_on_which_machine(tmp_path: Path) -> None:
    item = result(0, metrics(1, 1))
    evaluator = Evaluator(TRACES[:1], lambda *_: Replayed(metrics(1, 1, ns_per_event=3.5)))
    outcome = evaluator.evaluate(
        EvaluationTask(SearchCandidate(item.id, item.recipe, None), PartialResult((), 1)), StopRule(Interrupt())
    )
    path = written(tmp_path / "a.duckdb", [item._replace(metrics=outcome.metrics[0], machine=outcome.machine)])
    (row,) = everything(path)
    assert row["ns_per_event"] == 3.5
    assert "processors, " in str(row["machine"])


# ---- SQL and export ------------------------------------------------------------------------------------------------


def test_sql_answers_and_changes_nothing(tmp_path: Path) -> None:
    path = write_five(tmp_path / "five.duckdb")
    done = CliRunner().invoke(
        command_line, ["study", "sql", str(path), "SELECT name, failed FROM replays ORDER BY ALL"]
    )
    assert done.stdout == "name,failed\nalpha,0\nbeta,0\ngamma,3\n,0\n,0\n"
    opened = hw.open_study(path)
    for wrong, says in {
        "DELETE FROM results": "read-only",
        "SELEC": "syntax error",
        f"COPY results TO '{tmp_path / 'x.csv'}'": "disabled",
        "SELECT * FROM read_text('/etc/passwd')": "disabled",
    }.items():
        with pytest.raises(HeapwrightError, match=says) as caught:
            opened.sql(wrong)
        assert "\n" not in str(caught.value)


def test_both_exports_hold_every_row(study: Path, tmp_path: Path) -> None:
    rows = everything(study)
    opened = hw.open_study(study)
    assert opened.export(tmp_path / "s.csv") == opened.export(tmp_path / "s.parquet") == len(rows)
    with duckdb.connect() as database:
        answer = database.execute("SELECT * FROM read_parquet(?) ORDER BY recipe, trace", [str(tmp_path / "s.parquet")])
        names = [name for name, *_ in answer.description or []]
        assert [dict(zip(names, row, strict=True)) for row in answer.fetchall()] == rows
    with (tmp_path / "s.csv").open(newline="") as file:
        read = sorted(csv.DictReader(file), key=lambda row: (row["recipe"], row["trace"]))
    assert [row["toml"] for row in read] == [row["toml"] for row in rows]
    assert [int(row["accesses"]) for row in read] == [row["accesses"] for row in rows]
    with pytest.raises(HeapwrightError, match=r"valid endings: \.parquet, \.csv"):
        opened.export(tmp_path / "s.xlsx")


# ---- formats -------------------------------------------------------------------------------------------------------


SINCE_5 = ("growth_ratio", "lasts", "endured_calls", "worst_steps")


SINCE_6 = ("accesses_realloc_max", "instructions_calloc_max", "instructions_realloc_max")


SINCE_7 = (
    "long_run_bytes",
    "long_run_accesses",
    "long_run_growth",
    "long_run_calls",
    "long_run_malloc_max",
    "long_run_free_max",
)


def of_format_6(path: Path) -> None:
    """Make a study what the format before was, which knew no futures."""
    with duckdb.connect(str(path)) as database:
        for table in ("results", "elsewhere"):
            for column in SINCE_7:
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        database.execute("UPDATE meta SET value = '6' WHERE key = 'format'")


def of_format_5(path: Path) -> None:
    """Make a study what the format before format 6 was, with a replay that was pruned."""
    of_format_6(path)
    with duckdb.connect(str(path)) as database:
        for table in ("results", "elsewhere"):
            columns = [row[0] for row in database.execute(f"DESCRIBE {table}").fetchall() if row[0] not in SINCE_6]
            at = columns.index("instructions_pair_mean") + 1
            columns.insert(at, "NULL::BIGINT AS instructions_pair_max")
            database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT {', '.join(columns)} FROM {table}")
        known = ("recipe", "trace", "footprint_bytes AS least", "1::BIGINT AS calls")
        grown = ("footprint_bytes", "accesses", "reads", "writes", "moved_bytes")
        worst = ("accesses_malloc_max", "accesses_free_max")
        given_up = ", ".join((*known, *grown, *worst))
        database.execute(f"CREATE OR REPLACE TABLE partial AS SELECT {given_up} FROM results LIMIT 1")
        database.execute("UPDATE meta SET value = '5' WHERE key = 'format'")


def of_format_4(path: Path) -> None:
    """Make a study what the format before that was."""
    of_format_5(path)
    with duckdb.connect(str(path)) as database:
        for table in ("results", "elsewhere"):
            for column in SINCE_5:
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        database.execute("UPDATE meta SET value = '4' WHERE key = 'format'")


def of_format_3(path: Path) -> None:
    """Make a study what the format before format 4 was."""
    of_format_4(path)
    with duckdb.connect(str(path)) as database:
        database.execute("ALTER TABLE traces DROP COLUMN seed")
        for table in ("results", "elsewhere"):
            for column in ("heapwright", "machine"):
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        digest = "0e5c3f0e0d6a"
        database.execute("UPDATE meta SET value = '3' WHERE key = 'format'")
        database.execute("UPDATE meta SET value = ? WHERE key = 'energy_table'", [json.dumps(digest)])


def test_an_older_study_opens_and_is_of_this_format_then(study: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(study)) as database:
        for table in ("results", "elsewhere"):
            database.execute(
                f"UPDATE {table} SET {', '.join(f'{key} = NULL' for key in (*SINCE_5, *SINCE_6, *SINCE_7))}"
            )
    before = everything(study)
    of_format_6(study)
    assert everything(study) == before
    of_format_5(study)
    assert everything(study) == before
    of_format_4(study)
    assert everything(study) == before
    of_format_3(study)
    assert everything(study) == before
    shutil.copyfile(study, tmp_path / "again.duckdb")
    assert everything(tmp_path / "again.duckdb") == before
    with Analysis.open(study) as opened, pytest.raises(HeapwrightError, match="its energy table is not known"):
        _ = opened.energy_table


def test_a_study_of_format_6_gets_its_futures_when_it_is_explored_again(
    tmp_path: Path, trace_files: tuple[Path, Path]
) -> None:
    path, read = tmp_path / "s.duckdb", [Trace.read(trace_files[0])]
    explore(read, few(), OBJECTIVES, path, copies=0, jobs=1)
    with Analysis.open(path) as study:
        known, front = study.foreseen(), [item.id for item in study.front()]
    of_format_6(path)
    with Analysis.open(path) as study:
        assert study.meta["format"] == 7
        assert study.foreseen() == set() and not study.combined.foreseen
        assert study.front(), "before any future the recordings rank"
    again = explore(read, few(), OBJECTIVES, path, copies=0, jobs=1)
    with Analysis.open(path) as study:
        assert study.foreseen() == known and [item.id for item in study.front()] == front == again.front


def test_an_older_study_that_holds_more_is_refused_and_left_alone(study: Path) -> None:
    of_format_3(study)
    with duckdb.connect(str(study)) as database:
        database.execute("ALTER TABLE results ADD COLUMN more INT")
    with pytest.raises(HeapwrightError, match="not as heapwright makes a study: its table 'results'"):
        Analysis.open(study)
    with duckdb.connect(str(study)) as database:
        assert database.execute("SELECT value FROM meta WHERE key = 'format'").fetchall() == [("3",)]


def test_an_older_study_is_resumed(tmp_path: Path, trace_files: tuple[Path, Path]) -> None:
    path, read = tmp_path / "s.duckdb", [Trace.read(trace_files[0])]
    explore(read, few(), study_path=path, limit=2, copies=0, jobs=1)
    with duckdb.connect(str(path)) as database:
        ((table,),) = database.execute("SELECT value FROM meta WHERE key = 'energy_table'").fetchall()
    of_format_3(path)
    with duckdb.connect(str(path)) as database:
        from hashlib import sha256

        from heapwright._replay.energy import default_energy_table

        energies = default_energy_table()
        digest = sha256(repr((energies.sizes, energies.read_pj, energies.write_pj)).encode()).hexdigest()
        database.execute("UPDATE meta SET value = ? WHERE key = 'energy_table'", [json.dumps(digest)])
    done = explore(read, few(), study_path=path, copies=0, jobs=1)
    assert (done.evaluations, done.complete) == (len(few()) - 2, True)
    with duckdb.connect(str(path)) as database:
        assert database.execute("SELECT value FROM meta WHERE key = 'energy_table'").fetchall() == [(table,)]
