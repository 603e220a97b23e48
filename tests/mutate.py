"""Mutation testing: which small changes to the package does no test notice? CONTRIBUTING.md says how to run it.

All tests that import something of the rooms run once, and which of them runs which line is kept. Each mutant then meets
those that run the changed statement, file by file, those of quick tests first, until one fails: in a fork that imports
the changed module in place of the one on disk. At the end stands the score of each room.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import coverage
import pytest
from changed import PACKAGE, ROOT, SCRATCH, forked, noticed, run, warm
from mutants_c import CMutant, noticed_in_c
from mutants_c import of_room as of_room_in_c
from mutants_c import rooms as rooms_in_c
from mutants_python import Mutant, mutants

SAME = Path(__file__).with_name("mutants_the_same.txt")
"""Mutants that no test can notice, each with why: they are not counted."""

MOST_SECONDS = 30
"""Recorded time of the tests that meet one mutant; one that makes them take twice as long counts as noticed."""


class Recorder:
    """A pytest plugin that tells coverage which test runs, and keeps how long each takes."""

    def __init__(self, lines: coverage.Coverage) -> None:
        self.lines, self.seconds = lines, defaultdict[str, float](float)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        ours = [module for name, module in sys.modules.items() if name.startswith("heapwright.")]
        for cached in (value for module in ours for value in vars(module).values() if hasattr(value, "cache_clear")):
            cached.cache_clear()  # else only the first test is seen to run what is cached
        self.lines.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration


def record(tests: list[str]) -> int:
    """Run all tests once and keep which of them runs which line; what runs at import belongs to none."""
    lines = coverage.Coverage(SCRATCH / "lines", source=[str(PACKAGE)], config_file=False)
    recorder = Recorder(lines)
    lines.start()
    code = run(tests, recorder)
    lines.stop()
    lines.save()
    (SCRATCH / "seconds.json").write_text(json.dumps(recorder.seconds))
    return code


def files_to_run(mutant: Mutant, lines: coverage.CoverageData, seconds: dict[str, float]) -> list[list[str]]:
    """The tests that run the changed statement, file by file; where only imports do, those that run any of its file."""
    by_line = lines.contexts_by_lineno(str(mutant.path))
    tests = {test for line in mutant.lines for test in by_line.get(line, []) if test}
    tests = tests or {test for line in by_line.values() for test in line if test}
    files = defaultdict(list)
    for test in sorted(tests, key=lambda test: seconds[test]):
        files[test.partition("::")[0]].append(test)
    spent = {file: sum(seconds[test] for test in chosen) for file, chosen in files.items()}
    order = sorted(files, key=lambda file: spent[file] / len(files[file]))
    until = accumulate(spent[file] for file in order)
    return [files[file] for file, total in zip(order, until, strict=True) if total <= MOST_SECONDS or file == order[0]]


def rooms() -> list[str]:
    """The folders of the package that have modules, and those of the sources in C."""
    return [*sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/*.py")}), *rooms_in_c()]


def of_room(room: str) -> list[Mutant] | list[CMutant]:
    if room in rooms_in_c():
        return of_room_in_c(room)
    return [one for path in sorted((PACKAGE / room).rglob("*.py")) for one in mutants(path)]


def importing(tests: list[str], chosen: list[str]) -> list[str]:
    """The files of tests that import something of these rooms."""
    wanted = re.compile(rf"\bheapwright(\.| import )({'|'.join(chosen)})\b|import heapwright as hw")
    paths = [
        file
        for test in tests
        for file in ([Path(test)] if Path(test).is_file() else sorted(Path(test).rglob("test_*.py")))
    ]
    return [str(path) for path in paths if wanted.search(path.read_text(encoding="utf-8"))]


def tried(
    mutants: Sequence[Mutant | CMutant], survives: Callable[[Mutant | CMutant], bool], minutes: float | None
) -> list[bool]:
    """Whether each survives, of those that so many minutes are enough for."""
    told, until = [], time.monotonic() + 60 * (minutes or math.inf)
    for mutant in mutants:
        if time.monotonic() > until:
            break
        told.append(survives(mutant))
        print("survived" if told[-1] else "noticed", mutant, flush=True)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="folders of src/heapwright, and of C (default: all of them)")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="folders and files of tests")
    parser.add_argument("--sample", type=int, help="so many mutants of each room (default: every one)")
    parser.add_argument("--seed", type=int, default=1, help="which (default: 1)")
    parser.add_argument("--minutes", type=float, help="so long in each room at most; what is left is not counted")
    parser.add_argument("--again", type=Path, help="only mutants that survived in what an earlier run printed")
    parser.add_argument("--least", type=float, default=0, help="exit code 1 where a room's score is lower, as 0.9")
    given = parser.parse_args()
    os.chdir(ROOT)
    chosen = given.rooms or rooms()
    every: dict[str, list[Mutant | CMutant]] = {room: list(of_room(room)) for room in chosen}
    if given.again:
        survivors = set(given.again.read_text(encoding="utf-8").splitlines())
        every = {room: [one for one in found if f"survived {one}" in survivors] for room, found in every.items()}
    in_python = [room for room in chosen if room not in rooms_in_c()]
    warm()
    if in_python and forked("record.log", 7200, record, importing(given.tests, in_python)):
        sys.exit(f"the tests fail as they are; see {SCRATCH / 'record.log'}")
    lines, seconds = coverage.CoverageData(str(SCRATCH / "lines")), dict[str, float]()
    if in_python:
        seconds = json.loads((SCRATCH / "seconds.json").read_text())
        lines.read()

    def survives(mutant: Mutant | CMutant) -> bool:
        if isinstance(mutant, CMutant):
            return not noticed_in_c(mutant, SCRATCH)
        return not forked("last.log", 2 * MOST_SECONDS, noticed, mutant, files_to_run(mutant, lines, seconds))

    the_same = {line.partition("  # ")[0] for line in SAME.read_text(encoding="utf-8").splitlines()}
    scores = {}
    for room, found in every.items():
        random.Random(f"{given.seed} {room}").shuffle(found)
        told = tried([one for one in found if one.change not in the_same][: given.sample], survives, given.minutes)
        if told:
            scores[room] = 1 - sum(told) / len(told)
            print(f"{room}: {told.count(False)} of {len(told)} noticed ({scores[room]:.0%})", flush=True)
    for room, score in sorted(scores.items(), key=lambda one: one[1]):
        print(f"{score:6.0%}  {room}")
    if low := [room for room, score in scores.items() if score < given.least]:
        sys.exit(f"below {given.least:.0%}: {', '.join(low)}")


if __name__ == "__main__":
    main()
