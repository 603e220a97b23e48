"""Runs every fault of drawn_faults.toml against the tests of its package, and prints the share that is noticed.

    nice .venv/bin/python research/mutation/drawn_faults.py [--sample NAME] [WORD...]

WORDs choose faults by file or promise. A fault in Python meets the tests of its package in a fork that imports the
changed module: those named after the module first, then those that mention it. One in C meets the tests that
`mutants_c.py` names, with a core or an engine built of the changed source. A fault that no longer fits its source is
reported, and not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from changed import PACKAGE, ROOT, SCRATCH, failing, forked, mine, warm
from mutants_c import CMutant, noticed_in_c

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("drawn_faults.toml")
SECONDS = 400
"""CPU time of the tests that meet one fault."""
LOG = "drawn_fault.log"


class Fault(NamedTuple):
    """One change of a source and the promise that it breaks; `tests` are folders of tests, its package's by default."""

    sample: str
    promise: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return (PACKAGE if self.file.startswith("_") else ROOT) / self.file

    @property
    def fits(self) -> bool:
        return self.path.is_file() and self.path.read_text(encoding="utf-8").count(self.right) == 1

    def code(self) -> CodeType:
        """The changed module."""
        text = self.path.read_text(encoding="utf-8")
        return compile(text.replace(self.right, self.wrong), self.path, "exec")

    def in_c(self) -> CMutant:
        """The same as a change of the first line that differs; what follows it stays."""
        before = self.path.read_text(encoding="utf-8")
        pairs = zip(before.split("\n"), before.replace(self.right, self.wrong).split("\n"), strict=True)
        line, (was, now) = next((number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        return CMutant(self.path, line, was, now)

    def files(self, near: bool) -> list[str]:
        """Files of tests, from those nearest to the changed module; ``near``: those that name it alone."""
        module = self.path.stem
        folders = self.tests or (self.path.relative_to(PACKAGE).parts[0].removeprefix("_"),)
        paths = [path for folder in folders for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]

        def distance(path: Path) -> int:
            text = path.read_text(encoding="utf-8")
            if path.stem == f"test_{module}":
                return 0
            return 1 if re.search(rf"\b{module}\b", text) else 2

        chosen = [path for path in paths if distance(path) < 2 or not near]
        return [str(path.relative_to(ROOT)) for path in sorted(chosen, key=distance)]


def faults() -> list[Fault]:
    """The table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["fault"]
    return [Fault(**{**row, "tests": tuple(row.get("tests", ()))}) for row in rows]


def verdict(fault: Fault, near: bool) -> str:
    """The first test that fails, "" if none does, or why that is not known."""
    if not fault.file.startswith("_"):
        return "a test in C" if noticed_in_c(fault.in_c(), mine("changed"), SCRATCH / "objects") else ""
    if not fault.files(near):
        return "unknown: no test names the module"
    code = forked(LOG, SECONDS, failing, fault, fault.files(near))
    log = (SCRATCH / LOG).read_text(encoding="utf-8", errors="replace")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", log, re.MULTILINE)
    return failed[0] if failed else "" if code == 0 else f"unknown: pytest ended with {code}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of files or promises (default: all faults)")
    parser.add_argument("--sample", help="noticed, first or second (default: all)")
    parser.add_argument("--near", action="store_true", help="only files of tests that name the changed module")
    given = parser.parse_args()
    os.chdir(ROOT)
    warm()
    chosen = [
        fault
        for fault in faults()
        if given.sample in (None, fault.sample)
        and (not given.words or any(word in f"{fault.file} {fault.promise}" for word in given.words))
    ]
    scores: dict[str, list[bool]] = {}
    for fault in chosen:
        if not fault.fits:
            print(f"no such line  {fault.file}: {fault.promise}", flush=True)
            continue
        test = verdict(fault, given.near)
        if not test.startswith("unknown"):
            scores.setdefault(fault.sample, []).append(bool(test))
        print(f"{'noticed' if test else 'PASSED'}  {fault.file}: {fault.promise}  [{test}]", flush=True)
    for sample, results in scores.items():
        print(f"{sample}: {sum(results)} of {len(results)} noticed ({sum(results) / len(results):.0%})")


if __name__ == "__main__":
    main()
