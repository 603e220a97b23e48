"""Mutants that are not counted: each is one of those that are made, and stands in one place."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import changed_processes
import mutants_c
import mutants_python
import mutants_recorded
import pytest
from case_tables import each
from changed import PACKAGE, ROOT, while_imported
from mutate import batches

EXEMPT = [
    line.partition("  # ")
    for line in (Path(__file__).with_name("equivalent_mutants.txt")).read_text(encoding="utf-8").splitlines()[1:]
]


@each("change", [change for change, _, _ in EXEMPT])
def test_what_is_not_counted_is_a_mutant_of_one_line(change: str) -> None:
    name = change.partition(": ")[0]
    if name.endswith(".py"):
        places = {(item.change, item.lines.start) for item in mutants_python.mutants(PACKAGE / name)}
    else:
        places = {(item.change, item.line) for item in mutants_c.mutants(ROOT / name)}
    result = Counter(item for item, _ in places)
    assert result[change] == 1


def test_each_says_why() -> None:
    assert all(why for _, _, why in EXEMPT)


@pytest.mark.parametrize("processes", [None, 2])
def test_who_waits_for_the_processes_that_test_records_nothing(
    processes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last test that it hears of had their whole time, and would be too dear for any mutant."""

    class Recording:
        lines = SimpleNamespace(stop=lambda: None)

    monkeypatch.setattr(changed_processes.Recording, "now", Recording())
    config = SimpleNamespace(getoption=lambda name, default: processes if name == "numprocesses" else default)
    mutants_recorded.pytest_configure(config)  # type: ignore[arg-type]
    assert (changed_processes.Recording.now is None) == (processes is not None)


def test_what_takes_too_long_leaves_room_for_the_others_and_for_those_beside() -> None:
    """A test next to one that runs the statement may look at what was made when its file was imported."""
    index, source, file = mutants_recorded.Index(), "src/heapwright/_studies/pareto.py", "tests/studies/test_pareto.py"
    index.seconds |= {f"{file}::{name}": seconds for name, seconds in (("long", 20), ("short", 1), ("beside", 2))}
    index.by_line[source][5] = [f"{file}::long", f"{file}::short"]
    mutant = mutants_python.Mutant(ROOT / source, 0, range(5, 6), "", "", "")
    chosen = batches(mutant, index, 15, [Path(file)])
    assert chosen == [[f"{file}::short"], [f"{file}::beside"]]


def test_what_runs_while_a_module_is_imported_is_not_changed_too_late() -> None:
    """What it made would stay as it was, so the module has to run again."""
    source = """
def inner(): return 1
def made(): return [inner() for _ in range(2)]
class Kept:
    field = made()
    def later(self): return unused()
def unused(): return Kept
"""
    used = while_imported(compile(source, "made.py", "exec"))
    assert {"inner", "made"} <= used and not {"later", "unused"} & used


def test_a_command_that_ends_at_once_has_written_what_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(os, "_exit", done.append)
    changed_processes.before_leaving(lambda: done.append("kept"))
    os._exit(3)
    assert done == ["kept", 3]
