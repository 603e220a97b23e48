"""The steps of the demo, the commands of each, and what it says where a tool is missing: commands are played."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heapwright._cli import demo, heapwright
from heapwright._support.errors import HeapwrightError

STEPS = ("Replay a recorded MQTT broker", "Count instructions", "The recommendation", "Why", "Ship it", "The report")

Asked = list[tuple[str, ...]]


def played(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str, missing: str = "") -> tuple[Result, Asked]:
    """The demo, where the command with a word of `missing` finds no tool."""
    requested: Asked = []

    def run(*words: str | Path) -> str:
        requested.append(tuple(str(word).replace(str(folder), "DIR") for word in words))
        if missing and missing in requested[-1]:
            raise HeapwrightError(f"no {missing}")
        if words[0] == "generate":
            (folder / "firmware").mkdir()
            for name in ("app_heap.c", "app_heap.h", "app_heap_test.c", "other.txt"):
                (folder / "firmware" / name).touch()
        return json.dumps([{"id": "abc", "metrics": {"accesses": 7}}])

    @contextlib.contextmanager
    def beside(*words: str | Path) -> Iterator[Callable[[], str]]:
        yield lambda: run(*words) and ""

    monkeypatch.setattr(demo, "_run", run)
    monkeypatch.setattr(demo, "_in_parallel", beside)
    monkeypatch.setattr(demo, "_tool", run)
    monkeypatch.setattr(demo, "find_compiler", lambda what: "cc")
    return CliRunner(env={"COLUMNS": "200"}).invoke(heapwright, ["demo", str(folder), *words]), requested


def test_every_step_is_a_command_that_works_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.duckdb").touch()  # of an earlier demo
    done, requested = played(monkeypatch, tmp_path)
    assert done.exit_code == 0, done.output
    heap, trace = "DIR/study.duckdb:abc", f"DIR/{demo.TRACE}"
    firmware, flags = "DIR/firmware", demo.CFLAGS
    assert requested == [
        ("explore", trace, "-o", "DIR/study.duckdb", "--json"),
        ("pareto", "DIR/study.duckdb", "--pick", "balanced", "--json"),
        ("measure", "DIR/study.duckdb", "--json"),
        ("pareto", "DIR/study.duckdb"),
        ("profile", trace),
        ("fit", trace, "--heap", heap, "--heap", "tlsf", "--heap", "newlib-nano"),
        ("generate", heap, "--prefix", "app", "-o", firmware),
        ("cc", *flags, "-Os", "-ffreestanding", "-c", f"{firmware}/app_heap.c", "-o", f"{firmware}/app_heap.o"),
        (
            "cc",
            *flags,
            "-O2",
            f"{firmware}/app_heap.c",
            f"{firmware}/app_heap_test.c",
            "-o",
            f"{firmware}/app_heap_test",
        ),
        (f"{firmware}/app_heap_test",),
        ("report", "DIR/study.duckdb", "-o", "DIR/report.html"),
    ]
    lines = done.output.splitlines()
    assert [line[:2] for line in lines if line[1:3] == ". "] == [f"{number}." for number in range(1, 7)]
    assert all(f"{number}. {step}" in done.output for number, step in enumerate(STEPS, 1))
    assert (tmp_path / demo.TRACE).read_bytes() == demo._example().read_bytes()
    assert not (tmp_path / "study.duckdb").exists(), "the exploration begins again"
    ends = [f"  {name:10} {tmp_path / file}" for name, file in (("report", "report.html"), ("firmware", "firmware"))]
    assert set(ends) <= set(lines) and lines[-1] == f"  trace      {tmp_path / demo.TRACE}"


def test_json_tells_where_everything_is_and_what_was_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = played(monkeypatch, tmp_path, "--json", missing="measure")
    output = json.loads(done.stdout)
    assert 0 <= output.pop("seconds") < 60
    assert output == {
        "heap": f"{tmp_path}/study.duckdb:abc",
        "metrics": {"accesses": 7},
        "path": f"{tmp_path}/{demo.TRACE}",
        "study": f"{tmp_path}/study.duckdb",
        "page": f"{tmp_path}/report.html",
        "files": [f"{tmp_path}/firmware/{name}" for name in ("app_heap.c", "app_heap.h", "app_heap_test.c")],
        "left_out": ["no measure"],
    }


@pytest.mark.parametrize("missing", ["measure", "-Os"])
def test_what_a_step_lacks_is_said_and_the_others_go_on(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, requested = played(monkeypatch, tmp_path, missing=missing)
    assert f"Skipped: no {missing}." in done.output
    assert requested[-1][0] == "report"


def test_a_tool_that_fails_ends_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "run_tool", lambda words, text: _Done(3))
    with pytest.raises(Exception, match="cc: exit code 3"):
        demo._tool("cc", Path("a b.c"))
    monkeypatch.setattr(demo, "run_tool", lambda words, text: _Done(0))
    demo._tool("cc", Path("a b.c"))
    assert capsys.readouterr().out == 2 * "$ cc 'a b.c'\nprinted complained"


class _Done:
    """What a program printed."""

    def __init__(self, code: int) -> None:
        self.returncode, self.stdout, self.stderr = code, "printed ", "complained"
