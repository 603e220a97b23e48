"""The installed replay, fit and generate commands on real files."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runner import run_here

from heapwright._replay.metrics import LONG_RUN_METRICS, METRICS, SHIPPING_METRICS
from heapwright._traces.trace import Trace

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the installed command in a folder with two traces, one that frees twice, and a recipe."""
    Trace.from_columns(op=[0, 0, 3, 0], id=[1, 2, 1, 3], size=[40, 100, 0, 24]).write(tmp_path / "a.parquet")
    Trace.from_columns(op=[1, 2, 3], id=[1, 1, 1], size=[8, 800, 0]).write(tmp_path / "b.parquet")
    write_double_free(tmp_path / "twice.parquet")
    (tmp_path / "mine.toml").write_text('[[pool]]\nkind = "general"\nfit = "best"\n')
    (tmp_path / "energy.csv").write_text("size_bytes,read_pJ,write_pJ\n1,1000,1000\n2,1000,1000\n")

    def heapwright_command(*words: str) -> "subprocess.CompletedProcess[str]":
        return run_here(*words, folder=tmp_path)

    return heapwright_command


def write_double_free(path: Path) -> None:
    import duckdb

    calls = "(0, 0, 0, 1, 40), (1, 0, 3, 1, 0), (2, 0, 3, 1, 0)"
    query = f"SELECT * FROM (VALUES {calls}) AS calls (ts_us, tid, op, id, size)"
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def output(done: "subprocess.CompletedProcess[str]") -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_replay_gives_every_metric_for_each_trace_and_heap(run: Run) -> None:
    results = output(run("replay", "a.parquet", "b.parquet", "--heap", "tlsf", "--heap", "mine.toml", "--json"))
    pairs = [("a", "tlsf"), ("a", "mine.toml"), ("b", "tlsf"), ("b", "mine.toml")]
    assert [(result["trace"], result["heap"]) for result in results] == pairs
    for result in results:
        assert list(result) == ["trace", "heap", "metrics"]
        assert set(result["metrics"]) == set(METRICS)
    first, second = results[0]["metrics"], results[2]["metrics"]
    assert first["requested_peak_bytes"] == 140
    assert second["requested_peak_bytes"] == 800
    assert first["ns_per_event"] is None
    assert first["smallest_arena_bytes"] is None


def test_every_heap_has_its_flag_before_or_after_the_traces(run: Run) -> None:
    orders = [
        ("a.parquet", "--heap", "tlsf", "--heap", "kingsley", "--json"),
        ("--heap", "tlsf", "--heap", "kingsley", "--json", "a.parquet"),
        ("--heap", "tlsf", "a.parquet", "--heap=kingsley", "--json"),
    ]
    outputs = [output(run("replay", *words)) for words in orders]
    assert [item["heap"] for item in outputs[0]] == ["tlsf", "kingsley"]
    assert all(result == outputs[0] for result in outputs)


@pytest.mark.parametrize("heap", ["kingsley", "mine.toml", "lib:glibc", "s.duckdb:ab", "tlsf=sources", "no.c"])
def test_a_heap_without_its_flag_is_told_from_a_trace(run: Run, heap: str) -> None:
    for words in (("replay", "a.parquet"), ("fit", "a.parquet")):
        done = run(*words, "--heap", "tlsf", heap)
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            f"Error: {heap} is a heap and stands where a trace belongs; give every heap its own --heap" in done.stderr
        )
    assert "none: no such" in run("replay", "none", "--heap", "tlsf").stderr


def test_replay_is_deterministic_and_measures_on_request(run: Run) -> None:
    plain = ("replay", "a.parquet", "--heap", "tlsf", "--json")
    assert run(*plain).stdout == run(*plain).stdout
    assert output(run(*plain, "--time"))[0]["metrics"]["ns_per_event"] > 0
    (fitted,) = output(run("fit", "a.parquet", "--heap", "tlsf", "--json"))
    assert fitted["smallest_arena_bytes"] <= fitted["safe_arena_bytes"]
    assert (fitted["safe_tried"], fitted["safe_proved"], fitted["reach_bytes"]) == (0, True, 1 << 30), (
        "one replay proves all larger arenas"
    )


def test_a_fitted_arena_serves_and_less_does_not(run: Run) -> None:
    (fitted,) = output(run("fit", "a.parquet", "--heap", "mine.toml", "--json"))
    least = fitted["smallest_arena_bytes"]
    for arena, failed in ((least, False), (least - 4, True)):
        (item,) = output(run("replay", "a.parquet", "--heap", "mine.toml", "--arena", str(arena), "--json"))
        assert (item["metrics"]["failed"] > 0) == failed


def test_refused_requests_are_a_result_not_a_failure(run: Run) -> None:
    (item,) = output(run("replay", "b.parquet", "--heap", "mine.toml", "--arena", "400", "--json"))
    assert item["metrics"]["failed"] == 1
    assert item["metrics"]["admitted_fraction"] < 1


def test_tables_name_metrics_and_heaps(run: Run) -> None:
    table = run("replay", "a.parquet", "--heap", "tlsf", "--heap", "mine.toml").stdout
    keys = METRICS.keys() - {*SHIPPING_METRICS, *LONG_RUN_METRICS}
    assert all(name in table for name in ("Metrics on a", "tlsf", "mine.toml", *keys))
    assert "mine.toml" in run("fit", "a.parquet", "--heap", "mine.toml").stdout


def test_a_trace_that_frees_twice_is_one_line_or_repaired(run: Run) -> None:
    for command in ("replay", "fit"):
        refused = run(command, "twice.parquet", "--heap", "tlsf", "--json")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.count("\n") == 1
        assert "row 2: double free" in refused.stderr
        repaired = run(command, "twice.parquet", "--heap", "tlsf", "--repair", "--json")  # until the next release
        assert output(repaired)
        assert "1 call dropped: double free" in repaired.stderr
        assert f"{command} --repair is now heapwright trace repair" in repaired.stderr


@pytest.mark.parametrize("heap", ["tslf", "none.toml", "none.duckdb:ab", "a.parquet:ab"])
def test_an_unknown_heap_is_one_line(run: Run, heap: str) -> None:
    for words in (("replay", "a.parquet", "--heap", heap), ("fit", "a.parquet", "--heap", heap)):
        done = run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("heapwright: ")
        assert done.stderr.count("\n") == 1


def test_wrong_flags_exit_2(run: Run) -> None:
    assert run("replay", "a.parquet").returncode == 2
    assert run("replay", "a.parquet", "--heap", "tlsf", "--arena", "0").returncode == 2
    assert run("fit", "--heap", "tlsf").returncode == 2


def test_generate_writes_what_it_says(run: Run, tmp_path: Path) -> None:
    files = output(run("generate", "mine.toml", "--prefix", "net", "-o", "out", "--json"))["files"]
    assert {Path(file).name for file in files} == {"net_heap.c", "net_heap_checks.h", "net_heap.h", "net_heap_test.c"}
    assert all((tmp_path / file).stat().st_size for file in files)
    assert run("generate", "mine.toml", "--prefix", "net", "-o", "out").stdout.split() == files


def test_generate_from_a_study_says_what_it_was_tuned_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text('[[pool]]\nkind = "general"\n')
    explored = output(
        run(
            "explore",
            "a.parquet",
            "--long-run",
            "0",
            "--copies",
            "0",
            "--space",
            "space.toml",
            "-o",
            "s.duckdb",
            "--json",
        )
    )
    output(run("generate", f"s.duckdb:{explored['front'][0]}", "-o", "out", "--json"))
    assert "a (4 calls)" in (tmp_path / "out" / "app_heap.c").read_text()
