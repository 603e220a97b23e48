"""Which test runs which line of the package, in its own process and in those that it starts; kept between runs.

A file of tests is run again when it, a source that its tests ran, or what all tests share has changed. As a plugin of
pytest this module passes to the recording of each process (`changed_processes.py`) which test runs.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from changed_processes import PACKAGE, RECORD, Recording, in_processes

ROOT = PACKAGE.parents[1]
TESTS = ROOT / "tests"
HELPERS = TESTS / "helpers"
NOT_PASSED, DIGESTS = "not_passed", "digests"


def pytest_configure(config: pytest.Config) -> None:
    """Processes of pytest-xdist record; the one that waits for them would take their time for that of its last test."""
    if Recording.now and config.getoption("numprocesses", None):
        Recording.now.lines.stop()
        Recording.now = None


def pytest_runtest_logstart(nodeid: str) -> None:
    if Recording.now:
        ours = [module for name, module in sys.modules.items() if name.startswith("heapwright.")]
        for cached in (value for module in ours for value in vars(module).values() if hasattr(value, "cache_clear")):
            cached.cache_clear()  # else only the first test is seen to run what is cached
        before, now = Recording.now.test.partition("::")[0], nodeid.partition("::")[0]
        Recording.now.switch(nodeid)
        if before and before != now:
            Recording.now.write(file=before)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """The last file; processes of pytest-xdist then end without a word."""
    if exitstatus < pytest.ExitCode.INTERRUPTED and Recording.now and (file := Recording.now.test.partition("::")[0]):
        Recording.now.switch("")
        Recording.now.write(file=file)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what did not pass, in the process that hears of all tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ and report.outcome != "passed":
        with open(Path(os.environ[RECORD]) / NOT_PASSED, "a", encoding="utf-8") as file:
            print(report.outcome, report.nodeid, file=file)


class Ran(NamedTuple):
    """What a file of tests ran."""

    digests: dict[str, str]
    """Of the file, of what all tests share (""), and of each source that its tests ran."""
    seconds: dict[str, float]
    """By test that passed, of processors."""
    lines: dict[str, dict[str, list[int]]]
    """By test and source; in functions alone, as what runs at import belongs to no test."""

    def still(self, name: str) -> bool:
        """Whether nothing of it has changed since."""
        return all((around(name) if item == "" else digest(item)) == was for item, was in self.digests.items())


@cache
def digest(name: str) -> str:
    path = ROOT / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def helpers(path: Path) -> frozenset[Path]:
    """What a file imports of tests/, and what that imports."""
    names = re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    results = {HELPERS / f"{name}.py" for name in names if name != path.stem and (HELPERS / f"{name}.py").exists()}
    return frozenset(results.union(*map(helpers, results)))


@cache
def around(name: str) -> str:
    """The digest of what a file of tests has from elsewhere: conftest.py, helpers, and the C of core and engine."""
    conftest = [path for path in (TESTS / "conftest.py", (ROOT / name).with_name("conftest.py")) if path.exists()]
    result = {*conftest, *helpers(ROOT / name), *(item for path in conftest for item in helpers(path))}
    result |= {path for room in ("csrc", "native", "recorder") for path in (ROOT / room).rglob("*.[ch]")}
    return hashlib.sha256("".join(digest(str(path.relative_to(ROOT))) for path in sorted(result)).encode()).hexdigest()


def recorded(tests: Iterable[Path], scratch: Path, jobs: int) -> dict[str, Ran]:
    """What these files of tests ran, by their names below the checkout; runs those of which it is not known."""
    kept, output = scratch / "recorded", scratch / f"told-{os.getpid()}"
    kept.mkdir(parents=True, exist_ok=True)
    for remaining in scratch.glob("told-*"):
        if not Path(f"/proc/{remaining.name.partition('-')[2]}").exists():
            keep(kept, remaining)  # of a run that was ended
    names = [path.resolve().relative_to(ROOT).as_posix() for path in tests]
    known = {name: ran for name in names if (ran := read(kept, name))}
    if unknown := [name for name in names if name not in known]:
        output.mkdir()
        run_anew(unknown, scratch, output, jobs)
        keep(kept, output)
        known |= {name: ran for name in unknown if (ran := read(kept, name))}
    return known


def read(kept: Path, name: str) -> Ran | None:
    """What is known of a file of tests, if that still holds."""
    file = kept / f"{Path(name).stem}.json"
    ran = Ran(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None
    return ran if ran and ran.still(name) else None


def run_anew(names: Sequence[str], scratch: Path, told: Path, jobs: int) -> None:
    """Run files of tests; failed ones are printed."""
    environment = {**os.environ, **in_processes(scratch / "record", RECORD, told)}
    environment["PYTHONPATH"] += f":{Path(__file__).parent}"
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "-pmutants_recorded", "--hypothesis-seed=0"]
    spread = ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
    print(f"recording {len(names)} files of tests", flush=True)
    every = [path.relative_to(ROOT).as_posix() for path in (*PACKAGE.rglob("*.py"), *TESTS.rglob("test_*.py"))]
    digests = {name: digest(name) for name in every} | {f":{name}": around(name) for name in names}
    (told / DIGESTS).write_text(json.dumps(digests), encoding="utf-8")
    with told.with_suffix(".log").open("w") as log:
        subprocess.run([*command, *spread, *names], cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
    if failed := sorted(test for outcome, test in not_passed(told) if outcome == "failed"):
        print(f"fail without any change, and so notice none (see {scratch / 'record.log'}):", *failed, sep="\n    ")


def not_passed(told: Path) -> set[tuple[str, str]]:
    """Outcome and test."""
    report = told / NOT_PASSED
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return {(outcome, test) for outcome, _, test in (line.partition(" ") for line in lines)}


def keep(kept: Path, told: Path) -> None:
    """Gather what the processes of one run wrote, by file of tests; files that were not run to their end are left."""
    if not (told / DIGESTS).exists():
        return
    digests = json.loads((told / DIGESTS).read_text(encoding="utf-8"))
    every: list[dict[str, Any]] = [json.loads(file.read_text(encoding="utf-8")) for file in told.glob("*-*.json")]
    wholes = {item["whole"] for item in every if item["whole"]}
    results = {
        whole: Ran({whole: digests[whole], "": digests[f":{whole}"]}, defaultdict(float), {}) for whole in wholes
    }
    without = {test for _, test in not_passed(told)}
    for item in every:
        for test, seconds in item["seconds"].items():
            if (ran := results.get(test.partition("::")[0])) and test not in without:
                ran.seconds[test] += seconds
        for test, by_path in item["lines"].items():
            if (ran := results.get(test.partition("::")[0])) and test not in without:
                for path, lines in by_path.items():
                    name = Path(path).relative_to(ROOT).as_posix()
                    ran.digests[name] = digests[name]
                    mine = ran.lines.setdefault(test, {})
                    mine[name] = sorted({*mine.get(name, []), *(set(lines) & in_functions(name))})
    for name, ran in results.items():
        (kept / f"{Path(name).stem}.json").write_text(json.dumps(ran._asdict()), encoding="utf-8")
    shutil.rmtree(told)


@cache
def in_functions(name: str) -> frozenset[int]:
    """The lines of a source that run when its functions do."""
    tree = ast.parse((ROOT / name).read_bytes())
    inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(line for node in inside for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1))


class Index:
    """Which tests meet a statement of the package."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.taken = set[Path]()
        self.seconds = defaultdict[str, float](float)
        self.by_line: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.count: dict[str, int] = defaultdict(int)
        self.share: dict[tuple[str, str], int] = {}

    def take(self, files: Iterable[Path], recorded: Callable[[list[Path]], dict[str, Ran]]) -> None:
        """Take what these files of tests ran; asks for those that were not taken before."""
        unknown = [file for file in files if file not in self.taken]
        self.taken.update(unknown)
        for item in recorded(unknown).values() if unknown else ():
            self.seconds |= item.seconds
            for test, by_path in item.lines.items():
                for path, lines in by_path.items():
                    self.count[test] += len(lines)
                    self.share[test, path] = len(lines)
                    for line in lines:
                        self.by_line[path][line].append(test)

    def running(self, path: str, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self.by_line[path].get(line, [])}

    def meeting(self, path: Path, lines: range) -> list[set[str]]:
        """Tests that run these lines, or what uses names they define, or say these; then those that run their file."""
        name = path.relative_to(ROOT).as_posix()
        first = self.running(name, lines)
        if not first and (said := defined(path, lines)):
            for other, used in users(said):
                first |= self.running(other, used)
            saying = {f"{file}" for file in self.taken if said.search(file.read_text(encoding="utf-8"))}
            first |= {test for test in self.seconds if test.partition("::")[0] in saying}
        return [first, self.running(name, list(self.by_line[name])) - first]

    def cost(self, test: str, path: str) -> float:
        """Less for what is quick, and for what runs little but this file."""
        return (self.seconds[test] + 0.02) * self.count[test] / (self.share.get((test, path)) or 1)


@cache
def sources() -> dict[str, list[str]]:
    """The lines of every source of the package."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").splitlines()
        for path in PACKAGE.rglob("*.py")
    }


def defined(path: Path, lines: range) -> re.Pattern[str] | None:
    """Any of the names that the statement of these lines defines at the top of its module."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.stmt) and node.lineno in lines:
            names |= {
                item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
            }
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.lineno <= lines.start <= (node.end_lineno or 0):
            names.add(node.name)
    return re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b") if names else None


def users(said: re.Pattern[str]) -> list[tuple[str, list[int]]]:
    """By source, the lines that say such a name."""
    results = {name: [n for n, line in enumerate(text, 1) if said.search(line)] for name, text in sources().items()}
    return [(name, numbers) for name, numbers in results.items() if numbers]
