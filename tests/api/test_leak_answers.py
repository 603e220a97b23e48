"""Leaks are named before what to ship, in every answer, with the time until the reserve is used up."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from command_runner import run_here

import heapwright as hw
from heapwright._support import database
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

NAMED = "A leak in app (likely), or a cache that still fills: 75 objects of 72 bytes (5,400 bytes) are never freed"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of 3,000 turns, a call each millisecond: every 40 turns an object of 72 bytes stays."""
    choice, live, calls = random.Random(7), list[int](), list[tuple[int, int, int]]()
    for turn in range(3000):
        calls.append((MALLOC, len(calls), choice.choice([20, 40, 44, 80, 120, 600])))
        live.append(calls[-1][1])
        if len(live) > 60:
            calls.append((FREE, live.pop(choice.randrange(len(live))), 0))
        if turn % 40 == 0:
            calls.append((MALLOC, len(calls), 72))
    op, id, size = (np.array(column) for column in zip(*calls, strict=True))
    path = tmp_path_factory.mktemp("leak") / "app.parquet"
    Trace.from_columns(op=op, id=id, size=size, ts_us=1000 * np.arange(len(op))).write(path)
    return path


@pytest.fixture(scope="module")
def study(app: Path) -> hw.Study:
    return hw.explore(app, app.with_name("app.duckdb"), strategy="random", limit=20, future=1000)


def test_fit_names_the_leak_and_when_the_recommended_arena_is_used_up(app: Path) -> None:
    fit = hw.fit(app, "exact-bins")
    (leak,) = fit.leaks
    assert (leak.size, leak.objects) == (72, 75)
    assert leak.bytes_per_hour == pytest.approx(72 / 81 * 3600 * 1000, rel=0.05)  # one in 81 calls of a millisecond
    printed = run_here("fit", app, "--heap", "exact-bins").stdout
    lines = " ".join(printed.split())
    assert lines.startswith(NAMED) and fit.reserve_bytes is not None and fit.smallest_arena_bytes is not None
    seconds = (fit.reserve_bytes - fit.smallest_arena_bytes) / (leak.bytes_per_hour or 0) * 3600
    assert f"a reserve of {fit.reserve_bytes:,} bytes is used up {seconds:,.3g} s" in lines
    assert json.loads(run_here("fit", app, "--heap", "exact-bins", "--json").stdout)[0]["leaks"][0]["size"] == 72


def test_the_study_keeps_the_leak_so_that_the_trace_is_not_needed(study: hw.Study, tmp_path: Path) -> None:
    assert [leak.size for leak in study.leaks["app"]] == [72]
    moved = tmp_path / "moved.duckdb"
    moved.write_bytes(study.path.read_bytes())
    printed = " ".join(run_here("pareto", moved).stdout.split())
    assert printed.startswith(NAMED) and printed.index(NAMED) < printed.index("Ship")
    markdown = run_here("report", moved).stdout
    assert 0 < markdown.index(NAMED) < markdown.index("Ship")


def test_explore_ends_with_the_leak_before_what_to_ship(app: Path, study: hw.Study) -> None:
    how = ("--strategy", "random", "--limit", "20", "--long-run", "1000")
    last = " ".join(run_here("explore", app, "-o", study.path, *how).stdout.split()).split("replays in")[1]
    assert 0 < last.index(NAMED) < last.index("Ship")
    (leak,) = json.loads(run_here("explore", app, "-o", study.path, *how, "--json").stdout)["leaks"]["app"]
    assert leak["size"] == 72


def test_a_leak_of_a_trace_held_out_is_named_too(app: Path, tmp_path: Path) -> None:
    steady = Trace.from_columns(op=[MALLOC, FREE] * 300, id=np.arange(300).repeat(2), size=[64, 0] * 300)
    study = hw.explore(steady, tmp_path / "held.duckdb", held_out=app, strategy="random", limit=5, stress_test=False)
    assert study.leaks.keys() == {"app"}
    assert " ".join(run_here("pareto", study.path).stdout.split()).startswith(NAMED)


def test_a_report_names_the_leak_before_what_to_ship(app: Path, study: hw.Study, tmp_path: Path) -> None:
    assert not run_here("report", study.path, "--no-plots", "-o", tmp_path / "page.html").returncode
    page = (tmp_path / "page.html").read_text()
    assert 0 < page.index(NAMED) < page.index("Ship ")
    assert not run_here("report", app, "--no-plots", "-o", tmp_path / "trace.html").returncode
    assert NAMED in (tmp_path / "trace.html").read_text()


def test_a_study_without_stored_leaks_still_opens(study: hw.Study, tmp_path: Path) -> None:
    old = tmp_path / "old.duckdb"
    old.write_bytes(study.path.read_bytes())
    with database.attached(old, read_only=False) as connection:
        connection.execute("DELETE FROM meta WHERE key IN ('leaks', 'failures')")
    assert hw.open_study(old).leaks == {}
    assert "leak" not in run_here("pareto", old).stdout


def test_a_study_with_a_damaged_leak_is_refused(study: hw.Study, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.duckdb"
    damaged.write_bytes(study.path.read_bytes())
    with database.attached(damaged, read_only=False) as connection:
        connection.execute("""UPDATE meta SET value = '{"app": [{"size": "many"}]}' WHERE key = 'leaks'""")
    with pytest.raises(hw.HeapwrightError, match="damaged: its table 'meta'"):
        hw.open_study(damaged)


def test_check_fails_on_a_leak_if_a_rule_says_so(app: Path) -> None:
    (passed,) = hw.check(app, "exact-bins")
    assert passed.passed and passed.values["leaks"] == 1
    shut = run_here("check", app, "--heap", "exact-bins", "--fail-if", "leaks > 0")
    text = " ".join(shut.stdout.split())
    assert shut.returncode == 3 and text.startswith("FAIL app on exact-bins: leaks 1 is beyond 0") and NAMED in text
    assert NAMED in " ".join(run_here("check", app, "--heap", "exact-bins").stdout.split())
    steady = Path(__file__).resolve().parents[2] / "examples" / "lighttpd_server.parquet"
    assert run_here("check", steady, "--heap", "exact-bins", "--fail-if", "leaks > 0").returncode == 0
