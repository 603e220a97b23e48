"""Mutants of the C core: a header with one small change meets tests of blocks call by call, and random programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CORE = "csrc"

TESTS = (
    "tests/integration/test_core_layout.py",
    "tests/integration/test_core_kinds_blocks.py",
    "tests/integration/test_zoo_behaviour.py",
    "tests/integration/test_core_fuzz.py::test_random_programs_on_the_zoo",
    "tests/integration/test_core_fuzz.py::test_random_programs_on_random_recipes",
    "tests/integration/test_core_fuzz.py::test_the_checker_finds_damage_and_survives_it",
)
"""Of those that compile the core anew, from quick to long: until one fails."""

PATIENCE = 600
"""Seconds; a mutant that makes the tests take longer counts as noticed."""

OPERATORS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " + ": " - ",
    " - ": " + ", " & ": " | ", " | ": " & ", " << ": " >> ", " >> ": " << ", " && ": " || ", " || ": " && ",
    " += ": " -= ", " -= ": " += ",
}  # fmt: skip


class CMutant(NamedTuple):
    """One change of a line of a header, by number from 1."""

    path: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before.strip()} => {self.after.strip()}"


def mutants(path: Path) -> list[CMutant]:
    """All changes to the bodies of a header's functions."""
    found, comment, inside = [], False, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        comment = comment or line.lstrip().startswith("/*")
        code = line.split("/*")[0].rstrip()
        inside = (inside or line == "{") and line != "}"
        if inside and not comment and not line.startswith("#"):
            found += [CMutant(path, number, code, after) for after in changes(code)]
        comment = comment and "*/" not in line
    return found


def changes(code: str) -> Iterator[str]:
    """What one line of C could have been."""
    for operator, other in OPERATORS.items():
        for match in re.finditer(re.escape(operator), code):
            yield code[: match.start()] + other + code[match.end() :]
    if condition := re.match(r"(\s*(?:if|while) \()(.*)(\) \{)$", code):
        yield f"{condition[1]}!({condition[2]}){condition[3]}"
    if re.match(r"\s+[\w.>\[\]-]+\(.*\);$", code) or re.match(r"\s+[\w.>\[\]-]+ [-+|&]?= .*;$", code):
        yield re.match(r"\s*", code)[0] + ";"  # type: ignore[index]


def noticed_in_c(mutant: CMutant, scratch: Path) -> bool:
    """Whether a test fails, or the core does not compile, where its headers are those of a changed copy."""
    folder = scratch / CORE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / CORE, folder)
    changed = folder / mutant.path.name
    lines = changed.read_text(encoding="utf-8").split("\n")
    lines[mutant.line - 1] = mutant.after
    changed.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-qx", "-pno:cacheprovider", *TESTS]
    environment = {**os.environ, "HEAPWRIGHT_TESTS_CSRC": str(folder)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0
