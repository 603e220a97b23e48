"""Mutation testing: which small changes to the package does no test notice? CONTRIBUTING.md says how to run it.

Which test runs which line is recorded once and kept (`mutants_recorded.py`): of files that import the changed module
first, of others where these notice nothing. Each mutant meets those that run the changed statement, quick ones and
those that run little else first, until one fails: in a fork that imports the changed module in place of the one on
disk, as do processes that it starts. At the end stands the score of each room.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from changed import PACKAGE, ROOT, SCRATCH, forked, mine, noticed, warm
from mutants_c import CMutant, noticed_in_c
from mutants_c import of_room as of_room_in_c
from mutants_c import rooms as rooms_in_c
from mutants_python import Mutant, mutants
from mutants_recorded import Index, helpers, recorded

SAME = Path(__file__).with_name("equivalent_mutants.txt")
"""Mutants that no test can notice, each with why: they are not counted."""

MOST_SECONDS = 15
"""Recorded time of the tests that meet one mutant; one that makes them take four times as long counts as noticed."""

START_SECONDS = 0.3
"""What a file of tests takes before the first of them runs."""


QUICK = (
    *("tests/api", "tests/assure", "tests/cli", "tests/explore", "tests/generate", "tests/heaps", "tests/measure"),
    *("tests/recipes", "tests/replay", "tests/report", "tests/studies", "tests/support", "tests/traces"),
    "tests/traffic",
)
"""Folders of tests that mutants in Python meet. The others test C alone, or take longer than they are worth here."""


def batches(mutant: Mutant, index: Index, most: float, within: Sequence[Path]) -> list[list[str]]:
    """Tests of these files to run, in batches: what runs the statement, others next to it, what runs its file."""
    name, files_within = mutant.path.relative_to(ROOT).as_posix(), {str(file) for file in within}
    running, others = (
        {test for test in tests if test.partition("::")[0] in files_within}
        for tests in index.meeting(mutant.path, mutant.lines)
    )
    same = {test.partition("::")[0] for test in running}
    beside = {test for test in index.seconds if test.partition("::")[0] in same} - running  # may share what was made
    chosen, spent = list[list[str]](), 0.0
    for tests in (running, beside, others - beside):
        files = defaultdict[str, list[str]](list)
        for test in sorted(tests, key=lambda test: (index.cost(test, name), test)):
            files[test.partition("::")[0]].append(test)
        for result in files.values():
            fitting = list[str]()
            for test in result:
                if spent + index.seconds[test] <= most:
                    spent += index.seconds[test]
                    fitting.append(test)
            if fitting:
                chosen.append(fitting)
            spent += START_SECONDS
    return [*chosen[:2], *([test for result in part for test in result] for part in (chosen[2:6], chosen[6:]) if part)]


def rooms() -> list[str]:
    """The folders of the package that have modules, and those of the sources in C."""
    folders = {path.relative_to(PACKAGE).parts[0].removeprefix("_") for path in PACKAGE.glob("*/*.py")}
    return [*sorted(folders), *rooms_in_c()]


def folder_of(room: str) -> Path:
    """The folder of a package, which is private but for the recorder's."""
    private = PACKAGE / f"_{room}"
    return private if private.is_dir() else PACKAGE / room


def of_room(room: str) -> list[Mutant] | list[CMutant]:
    if room in rooms_in_c():
        return of_room_in_c(room)
    return [item for path in sorted(folder_of(room).rglob("*.py")) for item in mutants(path)]


def importing(tests: list[str], chosen: list[str]) -> list[Path]:
    """The files of tests that import something of these rooms, or run commands, which may do so."""
    wanted = re.compile(
        rf"\bheapwright(\.| import )_?({'|'.join(chosen)})\b|import heapwright as hw|HEAPWRIGHT|INSTALLED"
    )
    paths = [
        file
        for test in tests
        for file in ([Path(test)] if Path(test).is_file() else sorted(Path(test).rglob("test_*.py")))
    ]
    return [path for path in paths if wanted.search(said(path))]


def said(path: Path) -> str:
    """A file of tests, and what it imports of tests/: what asks the package may stand there alone."""
    return "\n".join(item.read_text(encoding="utf-8") for item in [path, *sorted(helpers(path))])


def nearest(path: Path, files: Sequence[Path]) -> list[list[Path]]:
    """Files of tests that import this module, the others that import something of its room, and the rest."""
    room, module = path.relative_to(PACKAGE).parts[0], path.stem if path.stem != "__init__" else path.parent.name
    within = re.compile(rf"\bheapwright(\.| import ){room}\b")
    itself = re.compile(rf"\bheapwright\.{room}\b.*\b{module}\b|\bheapwright import {room}\b")
    results: list[list[Path]] = [[], [], []]
    for file in files:
        text = said(file)
        results[0 if itself.search(text) else 1 if within.search(text) else 2].append(file)
    return [some for some in results if some]


def tried(
    mutants: Sequence[Mutant | CMutant], survives: Callable[[Mutant | CMutant], bool], minutes: float | None
) -> list[bool]:
    """Whether each survives, of those that fit into these minutes."""
    output, until = [], time.monotonic() + 60 * (minutes or math.inf)
    for mutant in mutants:
        if time.monotonic() > until:
            break
        output.append(survives(mutant))
        print("survived" if output[-1] else "noticed", mutant, flush=True)
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="folders of src/heapwright, and of C (default: all of them)")
    parser.add_argument("--tests", nargs="+", default=QUICK, help="folders and files of tests")
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes that record which test runs which line (default: 2)"
    )
    parser.add_argument("--sample", type=int, help="number of mutants of each room (default: every one)")
    parser.add_argument("--seed", type=int, default=1, help="which (default: 1)")
    parser.add_argument("--minutes", type=float, help="so long in each room at most; what is left is not counted")
    parser.add_argument(
        "--seconds", type=float, default=MOST_SECONDS, help=f"of tests for one (default: {MOST_SECONDS})"
    )
    parser.add_argument("--again", type=Path, help="only mutants that survived in what an earlier run printed")
    parser.add_argument("--least", type=float, default=0, help="exit code 1 where a room's score is lower, as 0.9")
    given = parser.parse_args()
    os.chdir(ROOT)
    chosen = given.rooms or rooms()
    every: dict[str, list[Mutant | CMutant]] = {room: list(of_room(room)) for room in chosen}
    if given.again:
        survivors = set(given.again.read_text(encoding="utf-8").splitlines())
        every = {room: [item for item in result if f"survived {item}" in survivors] for room, result in every.items()}
    in_python = [room for room in chosen if room not in rooms_in_c()]
    if in_python and find_spec("coverage") is None:
        sys.exit(
            f"coverage is missing, so it is not known which test runs what: {sys.executable} -m pip install coverage"
        )
    warm()
    files, index = importing(given.tests, in_python) if in_python else [], Index()

    def survives(mutant: Mutant | CMutant) -> bool:
        if isinstance(mutant, CMutant):
            return not noticed_in_c(mutant, mine("changed"), SCRATCH / "objects")
        for near in nearest(mutant.path, files):
            index.take(near, lambda unknown: recorded(unknown, SCRATCH, given.jobs))
            tests = batches(mutant, index, given.seconds, near)
            if tests and forked(f"{mine('last').name}.log", int(4 * given.seconds), noticed, mutant, tests):
                return False
        return True

    the_same = {line.partition("  # ")[0] for line in SAME.read_text(encoding="utf-8").splitlines()}
    scores = {}
    for room, result in every.items():
        random.Random(f"{given.seed} {room}").shuffle(result)
        output = tried(
            [item for item in result if item.change not in the_same][: given.sample], survives, given.minutes
        )
        if output:
            scores[room] = 1 - sum(output) / len(output)
            print(f"{room}: {output.count(False)} of {len(output)} noticed ({scores[room]:.0%})", flush=True)
    for room, score in sorted(scores.items(), key=lambda item: item[1]):
        print(f"{score:6.0%}  {room}")
    if low := [room for room, score in scores.items() if score < given.least]:
        sys.exit(f"below {given.least:.0%}: {', '.join(low)}")


if __name__ == "__main__":
    main()
