"""Explorations by the installed commands, in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_runner import run_here
from forked_commands import INSTALLED
from keyword_explorations import explore
from run_length import brief
from traces_random import plain_trace

import heapwright as hw
from heapwright._explore.options import Options
from heapwright._explore.space import Space
from heapwright._recipes.recipe import Recipe
from heapwright._studies.analysis import Analysis, reserve_for
from heapwright._traces.trace import Trace

Run = Callable[..., "subprocess.CompletedProcess[str]"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


SPACE_FILE = """
[[pool]]
kind = "quick"
up_to = [16, 32, 64]
[[pool]]
kind = "general"
fit = ["first", "best"]
"""
ALONE = "include_zoo = false\n"
"""Before a space: its own recipes alone, where no test looks at others."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return plain_trace(1, name="first")


@pytest.fixture(scope="module")
def other() -> Trace:
    return plain_trace(2, name="second")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.duckdb"


ZOO = Space([])
"""The zoo as it is explored, and what stands next to it."""
NAMES = {recipe.name for recipe in ZOO.zoo.values()}
BESIDE = {f"{recipe.name}@{recipe.align}" for recipe in ZOO.unranked}


@pytest.fixture
def files(tmp_path: Path, trace: Trace, other: Trace) -> Path:
    """A folder with two traces and a small space."""
    trace.write(tmp_path / "first.parquet")
    other.write(tmp_path / "second.parquet")
    (tmp_path / "space.toml").write_text(SPACE_FILE)
    return tmp_path


@pytest.fixture
def run(files: Path) -> Run:
    """Run the installed command in that folder; stdout and stderr apart."""

    def heapwright_command(*words: str) -> "subprocess.CompletedProcess[str]":
        return run_here(*words, folder=files)

    return heapwright_command


def failure(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a command that failed."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("heapwright: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


EXPLORE = ("explore", "first.parquet", "--long-run", "0", "--space", "space.toml", "--copies", "0", "-o", "s.duckdb")


EXPLORE_HUGE = ("explore", "huge.parquet", "--long-run", "0")


def test_explore_then_pareto_then_replay(run: Run) -> None:
    explored = json.loads(run(*EXPLORE, "--json").stdout)
    assert list(explored) == [
        "study",
        "recipes",
        "evaluations",
        "seconds",
        "complete",
        "tolerance",
        "given_up",
        "front",
        "short",
        "question",
        "leaks",
        "failures",
    ]
    assert explored["recipes"] == 6 + len(NAMES)
    assert explored["evaluations"] == 6 + len(NAMES) + len(BESIDE)
    front = json.loads(run("pareto", "s.duckdb", "--json").stdout)
    assert [item["id"] for item in front] == explored["front"]
    assert list(front[0]) == [
        "id",
        "recipe",
        "metrics",
        "worst_steps",
        "question",
        "traces",
        "copies",
        "held_out",
        "lasts",
        "why_not",
        "again",
    ]
    assert front[0]["copies"] is front[0]["held_out"] is front[0]["lasts"] is front[0]["why_not"] is None
    for pick in ("balanced", "smallest", "fastest"):
        (item,) = json.loads(run("pareto", "s.duckdb", "--pick", pick, "--json").stdout)
        assert item["id"] in explored["front"]
        (replayed,) = json.loads(run("replay", "first.parquet", "--heap", f"s.duckdb:{item['id']}", "--json").stdout)
        assert replayed["metrics"] == item["metrics"] == item["traces"]["first"]


def test_the_table_shows_the_front_and_every_zoo_allocator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # a line a heap
    done = run(*EXPLORE, "--held-out", "second.parquet")
    assert done.returncode == 0
    everything = run("pareto", "s.duckdb", "--all").stdout
    assert "held out" in everything
    assert "heapwright pareto s.duckdb --all" not in everything
    zoo_rows = [line for line in everything.splitlines() if line.split() and line.split()[0] in NAMES | BESIDE]
    last_of_each = {line.split()[0]: line for line in zoo_rows}
    assert set(last_of_each) == NAMES | BESIDE
    places = ("on the front", "dominated by", "equal to", "not ranked: ")
    assert all(any(place in last_of_each[name] for place in places) for name in NAMES)
    assert all("not ranked: at its own alignment" in last_of_each[name] for name in BESIDE)
    shown = run("pareto", "s.duckdb").stdout
    named = {line.split()[0] for line in shown.splitlines() if line.split()} & (NAMES | BESIDE)
    assert {"tlsf", "newlib-nano"} <= named and len(named) < len(NAMES) / 2
    (more,) = re.findall(r"^([\d,]+) more, and all recipes: heapwright pareto s\.duckdb --all$", shown, re.MULTILINE)
    left_out, rows = len((NAMES | BESIDE) - named), len(everything.splitlines())
    assert left_out <= int(more.replace(",", "")) <= left_out + rows - len(NAMES | BESIDE)
    assert [line for line in done.stdout.splitlines() if " replays in " not in line] == shown.splitlines()


def test_the_answer_comes_first_and_last(run: Run, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    done = run(*EXPLORE, "--held-out", "second.parquet")
    with Analysis.open(files / "s.duckdb") as study:
        needs = study.needs(study.pick("balanced").id)
        most = max(need.bytes or 0 for need in needs if need.role != "copy")
    first, *_, last = done.stdout.splitlines()
    assert first == last
    why = f"It needs {most:,} on the recordings; the reserve is 20 % above the need."
    assert f": reserve {reserve_for(needs):,} bytes. {why}" in first
    shown = run("pareto", "s.duckdb", "--against", "newlib-nano").stdout
    beside = next(line for line in shown.splitlines() if "(current)" in line)
    assert beside.split()[1:3] == ["newlib-nano", "(current)"]
    assert "none-such" in failure(run("pareto", "s.duckdb", "--against", "none-such"))


def test_an_exploration_ranks_by_the_long_run_and_shows_the_current_heap(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current heap, once named, stands in every table of the study, and what was not raced on no front."""
    monkeypatch.setenv("COLUMNS", "1000")
    words = ("explore", "first.parquet", "--space", "space.toml", "--long-run", "3000", "-o", "f.duckdb")
    done = run(*words, "--current", "freertos-heap4")
    assert done.returncode == 0, done.stderr
    with Analysis.open(files / "f.duckdb") as study:
        pick, needs = study.pick("balanced"), study.needs(study.pick("balanced").id)
        assert study.objectives == ("long_run_bytes", "long_run_accesses")
        assert study.current == "freertos-heap4"
        futures = [need.bytes for need in needs if need.role == "future"]
        assert futures == [pick.metrics["long_run_bytes"]]
        assert all(member.metrics["lasts"] == 1 for member in study.front())
    first, *_ = done.stdout.splitlines()
    assert f" and {futures[0]:,} in the long run" in first
    for shown in (done.stdout, run("pareto", "f.duckdb").stdout):
        assert "long-run" in shown and "growth" in shown
        (beside,) = (line for line in shown.splitlines() if "(current)" in line)
        assert "freertos-heap4 (current)" in beside
    wrong = run(*words, "--current", "freertos-heap9")
    assert wrong.returncode == 2 and "did you mean freertos-heap" in wrong.stderr


def test_the_current_heap_may_be_named_by_its_system(run: Run, files: Path) -> None:
    words = ("explore", "first.parquet", "--space", "space.toml", "--long-run", "0", "-o", "system.duckdb")
    assert run(*words, "--current", "nuttx").returncode == 0
    with Analysis.open(files / "system.duckdb") as study:
        assert study.current == "nuttx-mm"
    several = run(*words, "--current", "rt-thread")
    assert several.returncode == 2
    assert "'rt-thread' has rt-thread-small-mem or rt-thread-memheap; give one" in several.stderr


def test_picks_hold_on_copies_and_meet_conditions(run: Run) -> None:
    words = [
        "explore",
        "--long-run",
        "0",
        "first.parquet",
        "--space",
        "space.toml",
        "--copies",
        "2",
        "--held-out",
        "second.parquet",
    ]
    done = run(*words, "-o", "c.duckdb")
    assert done.returncode == 0, done.stderr
    shown = run("pareto", "c.duckdb", "--all").stdout
    assert "perturbed," in shown and "held out," in shown
    assert "BALANCED" in done.stdout
    (item,) = json.loads(run("pareto", "c.duckdb", "--pick", "balanced", "--json").stdout)
    assert item["why_not"] is None
    for apart in ("copies", "held_out"):
        assert item[apart]["refused"] == 0
        assert 1 <= item[apart]["worst_ratio"]["footprint_bytes"] < 1.3 * item["metrics"]["footprint_bytes"]
    every = json.loads(run("pareto", "c.duckdb", "--json").stdout)
    most = max(member["metrics"]["accesses"] for member in every)
    assert len(every) > 1, "or the condition leaves nothing out"
    met = json.loads(run("pareto", "c.duckdb", "--where", f"accesses < {most}", "--json").stdout)
    assert [member["id"] for member in met] == [item["id"] for item in every if item["metrics"]["accesses"] < most]
    for words in (["--pick", "smallest"], []):
        nothing = run("pareto", "c.duckdb", "--where", "accesses < 1", *words)
        assert "the front is empty: no recipe has accesses < 1; there are " in failure(nothing)
    output = [line for line in run("study", "info", "c.duckdb").stdout.splitlines() if ": " in line]
    assert [line.rpartition(", ")[2] for line in output if line.startswith("  copy: ")] == ["seed 0"] * 2
    assert not any(", seed" in line for line in output if line.startswith(("  explored: ", "  held out: ")))
    assert run("pareto", "c.duckdb", "--where", "acesses < 1").returncode == 2


@pytest.mark.parametrize("how", ["flag", "file", "flag and file"])
def test_every_recipe_has_the_alignment_asked_for_and_so_has_its_code(run: Run, files: Path, how: str) -> None:
    (files / "space.toml").write_text(SPACE_FILE if how == "flag" else f"{ALONE}align = 16")
    requested = [] if how == "file" else ["--align", "16"]
    done = run(*EXPLORE, *requested, "--strategy", "random", "--limit", "20", "--json")
    assert done.returncode == 0, done.stderr
    with Analysis.open(files / "s.duckdb") as study:
        named = dict(zip(study.combined.ids, study.combined.zoo_names, strict=True))
        own = [id for id, name in named.items() if not name]
        assert len(own) == (6 if how == "flag" else 20)
        assert {study.recipe(id).align for id in own} == {16} == {study.align}
    assert run("generate", f"s.duckdb:{own[0]}", "-o", "out").returncode == 0
    assert "#define APP_ALIGNMENT 16u" in (files / "out/app_heap.h").read_text()
    again = run(*EXPLORE, "--align", "4", "--json")
    expected = '"align" 16, but 4 was given' if how != "flag" else "explored at alignment 16, not 4"
    assert expected in failure(again)


def test_a_trace_of_a_64_bit_program_says_what_holds_where(run: Run, files: Path, trace: Trace) -> None:
    replace(trace, name="wide", metadata={"pointer_bytes": "8"}).write(files / "wide.parquet")
    (files / "space.toml").write_text(ALONE + SPACE_FILE)
    output = "heapwright: wide: recorded with 8-byte pointers; choose alignment 16 to replace malloc there, "
    output += "and 8 for a 32-bit target"
    assert f"{output}; explored at 8\n" in run("explore", "wide.parquet", *EXPLORE[2:]).stderr
    assert run("fit", "wide.parquet", "--heap", "tlsf").stderr == f"{output}\n"
    assert run("fit", "first.parquet", "--heap", "tlsf").stderr == ""


def test_a_partial_study_says_so_everywhere(run: Run, files: Path) -> None:
    plain_trace(1, calls=500, name="first").write(files / "first.parquet")
    explore = (*EXPLORE, "--objectives", "footprint_bytes", "--json")
    output = f"{2 + len(NAMES)} of {6 + len(NAMES)} recipes"
    line = f"heapwright: s.duckdb: partial: {output} were tried; the others may be better\n"
    explored = run(*explore, "--limit", "2")
    assert explored.stderr.endswith(line)
    answer = json.loads(explored.stdout)
    assert answer["complete"] is False
    heap = f"s.duckdb:{answer['front'][0]}"
    for words in (
        ["pareto", "s.duckdb"],
        ["report", "s.duckdb", "-o", "r.html", "--no-plots"],
        ["generate", heap, "-o", "out"],
    ):
        done = run(*words)
        assert (done.returncode, done.stderr) == (0, line), words
    assert f"{output} of alignment 8 on first" in run("pareto", "s.duckdb").stdout
    page = (files / "r.html").read_text()
    assert f"The exploration is not finished: {output} of its space were tried." in page
    assert output.replace("recipes", "allocators of alignment 8 tried on first") in page
    assert f"{output} tried" in (files / "out/app_heap.h").read_text()
    measure = run("measure", "s.duckdb", "--arena", "8")  # too small for what is on it
    assert measure.stderr.startswith(line) and "the arena has 8" in measure.stderr

    whole = run(*explore)
    assert json.loads(whole.stdout)["complete"] is True
    assert "partial" not in whole.stderr + run("pareto", "s.duckdb").stderr


def test_a_space_without_the_zoo_is_explored_and_shown_without_it(run: Run, files: Path) -> None:
    plain_trace(1, calls=500, name="first").write(files / "first.parquet")
    (files / "alone.toml").write_text(ALONE + SPACE_FILE)
    explored = run("explore", "first.parquet", "--space", "alone.toml", "-o", "alone.duckdb", "--json")
    assert json.loads(explored.stdout)["recipes"] == 6
    shown = run("pareto", "alone.duckdb")
    assert shown.returncode == 0
    assert "zoo" not in shown.stdout
    assert not set(shown.stdout.split()) & (NAMES | BESIDE)
    assert run("report", "alone.duckdb", "-o", "alone.html", "--no-plots").returncode == 0
    page = (files / "alone.html").read_text()
    assert '<section id="zoo">' not in page
    assert "allocators of the zoo" not in page
    assert "not finished" not in page


def test_pick_prints_a_recipe_that_can_be_kept(run: Run, files: Path) -> None:
    run(*EXPLORE, "--json")
    printed = run("pareto", "s.duckdb", "--pick", "balanced").stdout
    kept = files / "kept.toml"
    kept.write_text(printed[printed.index("# s.duckdb:") :])
    (item,) = json.loads(run("pareto", "s.duckdb", "--pick", "balanced", "--json").stdout)
    assert Recipe.load(kept).hash == item["id"]
    for words in (["pareto", "s.duckdb", "--pick", "balanced", "--toml"], ["zoo", f"s.duckdb:{item['id']}"]):
        kept.write_text(run(*words).stdout)
        assert Recipe.load(kept).hash == item["id"], words
    assert run("pareto", "s.duckdb", "--toml").returncode == 2


def test_wrong_flags_exit_2(run: Run) -> None:
    for words in (["explore"], [*EXPLORE, "--jobs", "0"], ["pareto", "s.duckdb", "--pick", "best"]):
        assert run(*words).returncode == 2
    done = run(*EXPLORE, "--objectives", "acceses")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--objectives': 'acceses' is no metric; did you mean accesses" in done.stderr


def test_requests_that_no_heap_serves_are_refused_and_counted(run: Run, files: Path) -> None:
    sizes = [40, 2**31 - 1, 100, 0, 2**31, 0]
    Trace.from_columns(op=[0, 0, 0, 3, 2, 3], id=[1, 2, 3, 1, 3, 2], size=sizes).write(files / "huge.parquet")
    explored = (*EXPLORE_HUGE, "--limit", "10", "--objectives", "footprint_bytes,admitted_fraction")
    assert run(*explored, "-o", "huge.duckdb").returncode == 0
    picked = json.loads(run("pareto", "huge.duckdb", "--pick", "smallest", "--json").stdout)
    assert picked[0]["metrics"]["failed"] == 2
    stress = ("stress", "huge.parquet", "--heap", "tlsf", "--calls", "20000")  # of one heap: these arenas take seconds
    for command in (("profile", "huge.parquet"), ("fit", "huge.parquet", "--heap", "tlsf"), stress):
        assert run(*command, "--json").returncode == 0
    for source in ("huge.parquet", "huge.duckdb"):
        assert run("report", source, "-o", "huge.html", "--no-plots").returncode == 0
    assert run(*EXPLORE_HUGE, "--space", "space.toml", "-o", "empty.duckdb").returncode == 0
    assert "no recipe tried serves every request" in failure(run("report", "empty.duckdb", "-o", "empty.html"))


def test_what_cannot_be_used_is_one_line(run: Run, files: Path) -> None:
    (files / "space.toml").write_text(ALONE + SPACE_FILE)
    (files / "junk.duckdb").write_bytes(os.urandom(3000))
    assert "no such file" in failure(run("explore", "none.parquet", "-o", "s.duckdb"))
    assert "there is no folder" in failure(run(*EXPLORE[:-1], "no/s.duckdb"))
    assert "no study" in failure(run(*EXPLORE[:-1], "junk.duckdb"))
    assert "no such study" in failure(run("pareto", "none.duckdb"))
    run(*EXPLORE)
    assert "no such recipe" in failure(run("replay", "first.parquet", "--heap", "s.duckdb:zz"))
    assert "explored on other traces" in failure(run("explore", "second.parquet", *EXPLORE[2:]))
    (files / "other.toml").write_text('[[pool]]\nkind = "general"\n')
    assert "explored with another space" in failure(run(*EXPLORE, "--space", "other.toml"))


@pytest.fixture
def long_run(files: Path) -> Iterator["subprocess.Popen[str]"]:
    """An exploration of the default space on a long trace, under way for a while."""
    plain_trace(3, calls=25_000, name="long").write(files / "long.parquet")
    process = subprocess.Popen(
        [INSTALLED, "explore", "long.parquet", "--long-run", "0", "--limit", "3000", "-o", "l.duckdb"],
        cwd=files,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell may have made this process, and so that one, deaf to Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    wal = files / "l.duckdb.wal"
    while not (wal.exists() and wal.stat().st_size > 30_000):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield process
    process.kill()
    process.communicate()


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(long_run: "subprocess.Popen[str]", files: Path) -> None:
    long_run.send_signal(signal.SIGINT)
    stdout, stderr = long_run.communicate(timeout=60)
    assert (long_run.returncode, stdout) == (1, "")
    assert "Traceback" not in stderr
    assert stderr.endswith("the same command continues from there\n")
    with Analysis.open(files / "l.duckdb") as study:
        done = len(study.finished()) + len(study.partial())
        assert f"interrupted with {done:,} of 3,0" in stderr


EARLY = """
import importlib, os, signal
from heapwright._cli import main

module = importlib.import_module("heapwright.{module}")
signal.signal(signal.SIGINT, signal.default_int_handler)
inner = module.{function}

def interrupted(*arguments, **named):
    os.kill(os.getpid(), signal.SIGINT)
    return inner(*arguments, **named)

module.{function} = interrupted
main()
"""


@pytest.mark.parametrize(
    "moment",
    [
        ("_cli.options", "read_traces"),
        ("_explore.space", "Space.load"),
        ("_explore.search", "_candidates"),
        ("_studies.study_file", "StudyFile.__init__"),
        *brief([], [("_traces.tables", "_check_types"), ("_studies.study_file", "create")]),
    ],
)
def test_an_early_ctrl_c_is_one_line_and_leaves_no_half_study(moment: tuple[str, str], run: Run, files: Path) -> None:
    (files / "space.toml").write_text(ALONE + SPACE_FILE)
    module, function = moment
    code = EARLY.format(module=module, function=function)
    line = [sys.executable, "-c", code, *EXPLORE]
    done = subprocess.run(line, cwd=files, capture_output=True, text=True, check=False)
    created = module == "_studies.study_file"
    stored = r"s.duckdb: interrupted with \d+ of 6 replays stored or pruned; the same command continues from there"
    says = stored if created else "interrupted; what was finished is kept"
    assert re.fullmatch(f"heapwright: {says}\n", failure(done))
    assert [path.name for path in files.glob("s.duckdb*")] == (["s.duckdb"] if created else [])
    assert run(*EXPLORE).returncode == 0


def test_kill_9_keeps_what_was_written(long_run: "subprocess.Popen[str]", run: Run, files: Path) -> None:
    assert "another process is writing" in failure(run("pareto", "l.duckdb"))
    long_run.kill()
    long_run.communicate()
    with Analysis.open(files / "l.duckdb") as study:
        finished = study.finished()
    stored = len(finished)
    assert stored > 0
    fewest = ("--long-run", "0", "--limit", "1", "--copies", "0")
    words = [INSTALLED, "explore", "long.parquet", *fewest, "-o", "l.duckdb", "--json"]  # counts of pools as before
    resumed = subprocess.run(words, cwd=files, capture_output=True, text=True, check=True)
    again = json.loads(resumed.stdout)
    assert again["evaluations"] <= 1 + len(NAMES) + len(BESIDE)  # the zoo comes on top of the limit
    with Analysis.open(files / "l.duckdb") as study:
        assert finished < study.finished() or not again["evaluations"]
        assert len(study.finished()) == stored + again["evaluations"]


def test_giving_up_keeps_the_front(tmp_path: Path) -> None:
    trace = hw.cut(Trace.read(EXAMPLES / "mosquitto_broker.parquet"), first=4000)
    drawn = partial(
        explore, [trace], Space.default([trace]), strategy="random", limit=300, seed=1, copies=0, stress_test=False
    )
    whole = drawn(study_path=tmp_path / "whole", complete=True)
    exact = drawn(study_path=tmp_path / "exact", tolerance=0)
    assert exact.front == whole.front
    assert whole.given_up == 0 < exact.given_up < 300


@pytest.mark.parametrize(
    ("told", "asked", "current"), [("tlsf", None, "tlsf"), ("tlsf", "half-fit", "half-fit"), ("glibc", None, None)]
)
def test_the_heap_that_was_recorded_is_the_current_one(
    trace: Trace, path: Path, told: str, asked: str | None, current: str | None
) -> None:
    recorded = replace(trace, metadata={**trace.metadata, "allocator": told})
    explore([recorded], ZOO, study_path=path, stress_test=False, current=asked)
    with Analysis.open(path) as study:
        assert study.current == current


def test_the_former_names_of_parameters_are_accepted_with_a_warning(trace: Trace, path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="`endurance` is now stress_test"):
        options = Options(endurance=False)
    assert not options.stress_test and options == Options(stress_test=False)
    with pytest.warns(DeprecationWarning, match="`told` is now `templates`"):
        hw.suggest(trace, path, told=[{"pool": [{"kind": "general"}]}])
