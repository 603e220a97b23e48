"""`heapwright check`, as a build server runs it: exit codes, baselines, the files, and the templates."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]
from command_runner import run_here
from forked_commands import HEAPWRIGHT
from run_length import brief
from tool_requirements import tool

import heapwright as hw
from heapwright._replay.long_run import CALLS
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

pytestmark = pytest.mark.usefixtures("forks")

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def build(path: Path, connection: int) -> Path:
    """Forty connections and ten lines of a log, each asked for at a line of a file."""
    sizes = [connection] * 40 + [64] * 10
    ids = [*range(50)] * 2
    trace = Trace.from_columns(
        op=np.array([MALLOC] * 50 + [FREE] * 50),
        id=np.array(ids),
        size=np.array(sizes + [0] * 50),
        site=np.array(([1] * 40 + [2] * 10) * 2),
        sites=("", "src/net.c:88", "src/log.c:7"),
    )
    trace.write(path)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    build(tmp_path / "old.parquet", 100)
    build(tmp_path / "app.parquet", 144)

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return run_here("check", *words, folder=tmp_path)

    return command


def test_the_exit_code_says_whether_a_rule_is_broken(run: Run, tmp_path: Path) -> None:
    words = ("app.parquet", "--heap", "exact-bins@8", "--baseline", "old.parquet")
    passed = run(*words, "--budget", "1M")
    assert passed.returncode == 0 and passed.stdout.startswith("ok app on exact-bins@8: reserve_bytes ")
    shut = run(*words, "--budget", "9K", "--fail-if", "reserve_bytes > +100%", "--junit", "a.xml", "--sarif", "a.sarif")
    assert shut.returncode == 3 and not shut.stderr
    lines = shut.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "FAIL", "src/net.c:88:"]
    assert lines[2] == "  src/net.c:88: 40 objects of 144 bytes hold 1,760 bytes more at the peak"
    assert ElementTree.parse(tmp_path / "a.xml").getroot().get("failures") == "1"
    (result,) = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 88


def test_a_baseline_may_be_what_was_printed_before(run: Run, tmp_path: Path) -> None:
    printed = run("old.parquet", "--heap", "exact-bins@8", "--json")
    assert printed.returncode == 0
    (tmp_path / "base.json").write_text(printed.stdout)
    words = ("app.parquet", "--heap", "exact-bins@8", "--fail-if", "reserve_bytes > +5%")
    of_file, of_trace = run(*words, "--baseline", "base.json"), run(*words, "--baseline", "old.parquet")
    assert of_file.returncode == of_trace.returncode == 3
    assert of_file.stdout == of_trace.stdout
    (tmp_path / "base.json").write_text('[{"trace": 1}]')
    wrong = run(*words, "--baseline", "base.json")
    assert wrong.returncode == 1
    assert "base.json: no baseline ('heap'); what was checked before, as JSON, is one" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--heap", "tlsf", "--budget", "lots"), 2, "valid: 1 byte or more, as 131072, 128K or 1.5M"),
        (("--heap", "tlsf", "--fail-if", "reserve > 3"), 2, "did you mean reserve_bytes"),
        (("--heap", "tlsf", "--fail-if", "reserve_bytes > +3%"), 2, "app has no baseline with reserve_bytes"),
        (("--heap", "tlsv", "--budget", "9K"), 1, "tlsf"),
        (("--heap", "tlsf", "--budget", "9K", "--baseline", "none.parquet"), 1, "none.parquet: no such file"),
    ],
)
def test_wrong_words_are_told(run: Run, words: tuple[str, ...], code: int, told: str) -> None:
    done = run("app.parquet", *words)
    assert done.returncode == code and told in done.stderr


def test_figures_are_printed_where_there_is_no_rule(run: Run) -> None:
    done = run("app.parquet", "--heap", "exact-bins@8")
    assert done.returncode == 0 and done.stdout.startswith("app on exact-bins@8: smallest_arena_bytes ")


def steps(name: str) -> Any:
    return yaml.safe_load((ROOT / "gate" / name).read_text(encoding="utf-8"))


def test_the_action_runs_the_check_and_fails_with_it(run: Run, tmp_path: Path) -> None:
    (step,) = (item for item in steps("action.yml")["runs"]["steps"] if "heapwright check" in item.get("run", ""))
    assert set(step["env"]) == {"TRACES", "HEAP", "OPTIONS"}
    assert all(text == f"${{{{ inputs.{key.lower()} }}}}" for key, text in step["env"].items())
    for budget, code in (("1M", 0), ("9K", 3)):
        given = {"TRACES": "app.parquet", "HEAP": "exact-bins@8"}
        given["OPTIONS"] = f"--baseline old.parquet --budget {budget}"
        done = in_shell(step["run"], tmp_path, {**given, "GITHUB_STEP_SUMMARY": "summary.md"})
        assert done.returncode == code, done.stderr
        assert done.stdout in (tmp_path / "summary.md").read_text()
        assert (tmp_path / "heapwright.sarif").is_file() and (tmp_path / "heapwright.xml").is_file()


def test_the_action_tells_of_a_study(run: Run, tmp_path: Path) -> None:
    (step,) = (item for item in steps("action.yml")["runs"]["steps"] if "heapwright report" in item.get("run", ""))
    assert step["if"] == "inputs.study != ''" and set(step["env"]) == {"STUDY", "BASELINE"}
    (tmp_path / "space.toml").write_text('include_zoo = false\n[[pool]]\nkind = "general"\nfit = ["first", "best"]\n')
    for name in ("old", "app"):
        words = ["explore", f"{name}.parquet", "--space", "space.toml", "-o", f"{name}.duckdb"]
        run_here(*words, folder=tmp_path).check_returncode()
    for baseline, output in (("", "### Heap: reserve "), ("old.duckdb", "bytes, before ")):
        given = {"STUDY": "app.duckdb", "BASELINE": baseline, "GITHUB_STEP_SUMMARY": "summary.md"}
        done = in_shell(step["run"], tmp_path, given)
        assert done.returncode == 0, done.stderr
        summary = (tmp_path / "summary.md").read_text()
        assert output in summary and "![" not in summary
        assert "![" in (tmp_path / "heapwright.md").read_text() and (tmp_path / "heapwright.svg").is_file()


def test_the_job_for_gitlab_runs_the_check(run: Run, tmp_path: Path) -> None:
    job = steps("gitlab.yml")[".heapwright-check"]
    (script,) = job["script"]
    given = {"HEAPWRIGHT_TRACES": "app.parquet", "HEAPWRIGHT_HEAP": "exact-bins@8", "HEAPWRIGHT_OPTIONS": "--budget 9K"}
    assert in_shell(script, tmp_path, given).returncode == 3
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).is_file()


def in_shell(script: str, folder: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    bash = tool("bash")
    path = f"{Path(HEAPWRIGHT).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **given, "PATH": path}
    return subprocess.run(
        [bash, "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("heap", "mark"), [("tlsf", 185_820), *brief([], [("all-round", None)])])
def test_the_long_run_need_is_the_footprint_on_the_future_that_explore_makes(heap: str, mark: int | None) -> None:
    """Two-level good fit fails in an arena of its high-water mark, which is not its need."""
    broker = ROOT / "examples" / "mosquitto_broker.parquet"
    future = hw.resample(broker, CALLS, seed=0)
    served = hw.replay(future, heap).metrics
    (checked,) = hw.check(broker, heap, ["long_run_bytes > 1", "long_run_malloc_max > 1000"])
    assert checked.values["long_run_bytes"] == served["footprint_bytes"]
    assert checked.values["long_run_bytes"] != mark
    assert checked.values["long_run_malloc_max"] == served["accesses_malloc_max"]
    assert [verdict.broken for verdict in checked.verdicts] == [True, False]
