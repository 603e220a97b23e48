"""Mutation testing: which small changes to the package does no test notice? CONTRIBUTING.md says how to run it.

All tests run once, and which of them runs which line is kept. Each mutant then meets those that run the changed
statement, file by file, those of quick tests first, until one fails: in a fork that imports the changed module in place
of the one on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter, defaultdict
from itertools import accumulate
from pathlib import Path

import coverage
import pytest
from changed import PACKAGE, ROOT, SCRATCH, forked, noticed, run, warm
from mutants import Mutant, mutants

MOST_SECONDS = 30
"""Recorded time of the tests that meet one mutant; one that makes them take twice as long counts as noticed."""


class Recorder:
    """A pytest plugin that tells coverage which test runs, and keeps how long each takes."""

    def __init__(self, lines: coverage.Coverage) -> None:
        self.lines, self.seconds = lines, Counter[str]()

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="+", help="folders of src/heapwright")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="folders and files of tests")
    parser.add_argument("--sample", type=int, help="so many mutants, all with the same chance (default: every one)")
    parser.add_argument("--seed", type=int, default=1, help="which (default: 1)")
    parser.add_argument("--again", type=Path, help="only mutants that survived in what an earlier run printed")
    given = parser.parse_args()
    os.chdir(ROOT)
    every = [one for room in given.rooms for path in sorted((PACKAGE / room).glob("*.py")) for one in mutants(path)]
    if given.again:
        survivors = set(given.again.read_text(encoding="utf-8").splitlines())
        every = [one for one in every if f"survived {one}" in survivors]
    random.Random(given.seed).shuffle(every)
    warm()
    if forked("record.log", 3600, record, given.tests):
        sys.exit(f"the tests fail as they are; see {SCRATCH / 'record.log'}")
    lines, seconds = coverage.CoverageData(str(SCRATCH / "lines")), json.loads((SCRATCH / "seconds.json").read_text())
    lines.read()
    tried, left = Counter[str](), Counter[str]()
    for mutant in every[: given.sample]:
        files = files_to_run(mutant, lines, seconds)
        survived = not forked("last.log", 2 * MOST_SECONDS, noticed, mutant, files)
        tried[mutant.path.parent.name] += 1
        left[mutant.path.parent.name] += survived
        print("survived" if survived else "noticed", mutant, flush=True)
    for room in tried:
        print(f"{room}: {left[room]} of {tried[room]} survived ({left[room] / tried[room]:.0%})")


if __name__ == "__main__":
    main()
