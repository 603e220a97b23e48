"""Mutants in C: a source of the core, or of the replay engine, with one small change, and the tests that meet it.

Mutants of the core meet tests of blocks call by call, random programs, and generated code. The engine's are built
into a library of their own, which takes the place of the installed one (`changed_c.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import changed_c

ROOT = Path(__file__).resolve().parents[2]
CORE, NATIVE = "csrc", "native"

CORE_TESTS = (
    "tests/core/test_core_layout.py",
    "tests/core/test_core_kinds_blocks.py",
    "tests/recipes/test_zoo_behaviour.py",
    "tests/recipes/test_zoo_behaviour_papers.py",
    "tests/core/test_core_fuzz.py::test_random_programs_on_the_zoo",
    "tests/core/test_core_fuzz.py::test_random_programs_on_random_recipes",
    "tests/core/test_core_fuzz.py::test_the_checker_finds_damage_and_survives_it",
    "tests/core/test_largest_free.py",
    "tests/assure/test_control_data.py",
)
"""Of the tests that compile the core again, from quick to long: until one fails."""

TESTS_APART = {
    "arithmetic": ("tests/core/test_core_compile.py::test_bits_are_found_in_every_way",),
    "threads": ("tests/generate/test_generated_threads.py",),
    "counters": ("tests/replay/test_counters.py",),
    "owners": ("tests/platforms/test_platform_owners.py",),
}
"""By a word of a source's path: what is looked at apart, or in generated code alone."""

NATIVE_TESTS = (
    "tests/core/test_native.py",
    "tests/replay/test_replay.py",
    "tests/replay/test_snapshots.py",
    "tests/traces/test_copies.py",
    "tests/replay/test_memories.py",
    "tests/traffic/test_workloads.py",
    "tests/recipes/test_kinds_buddy_partition_compact.py",
    "tests/replay/test_monotone_minimum.py",
    "tests/explore/test_result_cache.py",
    "tests/traces/test_interleave.py",
    "tests/replay/test_replay_models.py",
    "tests/replay/test_replay_index.py",
    "tests/replay/test_replay_ordinary.py",
    "tests/explore/test_result_cache_replays.py",
    "tests/replay/test_stress_test.py",
)
"""Of those that replay in their own process, from quick to long."""

COUNTER_TESTS = ("tests/measure/test_target.py",)
"""What counts instructions runs next to an emulator."""

PATIENCE, MOST_SECONDS = 600, 60
"""Seconds, of all tests, and of each process alone on a processor; a mutant that makes them take longer is noticed."""

OPERATORS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " + ": " - ",
    " - ": " + ", " & ": " | ", " | ": " & ", " << ": " >> ", " >> ": " << ", " && ": " || ", " || ": " && ",
    " += ": " -= ", " -= ": " += ",
}  # fmt: skip


class CMutant(NamedTuple):
    """One change of a line of a source, by number from 1."""

    path: Path
    line: int
    before: str
    after: str

    @property
    def change(self) -> str:
        """What is changed, at any place of its file."""
        return f"{self.path.relative_to(ROOT)}: {self.before.strip()} => {self.after.strip()}"

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before.strip()} => {self.after.strip()}"


def rooms() -> list[str]:
    """The folders of the core, and the engine's."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / CORE).rglob("*.h")}
    return [*sorted(folders), NATIVE]


def of_room(room: str) -> list[CMutant]:
    """Mutants of the sources in that folder, not of those in its folders: these are rooms of their own."""
    return [item for path in sorted((ROOT / room).glob("*.[ch]")) for item in mutants(path)]


def mutants(path: Path) -> list[CMutant]:
    """All changes to the bodies of a source's functions."""
    result, comment, inside = [], False, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        comment = comment or line.lstrip().startswith("/*")
        code = line.split("/*")[0].rstrip()
        inside = (inside or line == "{") and line != "}"
        if inside and not comment and not line.startswith("#"):
            result += [CMutant(path, number, code, after) for after in changes(code)]
        comment = comment and "*/" not in line
    return result


def changes(code: str) -> Iterator[str]:
    """What one line of C could have been."""
    for operator, other in OPERATORS.items():
        for match in re.finditer(re.escape(operator), code):
            yield code[: match.start()] + other + code[match.end() :]
    if condition := re.match(r"(\s*(?:if|while) \()(.*)(\) \{)$", code):
        yield f"{condition[1]}!({condition[2]}){condition[3]}"
    if "HW_ASSERT(" in code:
        return  # left out, nothing misses what holds
    if re.match(r"\s+[\w.>\[\]-]+\(.*\);$", code) or re.match(r"\s+[\w.>\[\]-]+ [-+|&]?= .*;$", code):
        yield re.match(r"\s*", code)[0] + ";"  # type: ignore[index]


def noticed_in_c(mutant: CMutant, folder: Path, objects: Path) -> bool:
    """Whether a test fails, or nothing can be built, where the sources are those of a changed copy in that folder.

    `objects` keeps what is compiled of the engine.
    """
    where = mutant.path.relative_to(ROOT)
    shutil.rmtree(folder, ignore_errors=True)
    for source in (CORE, NATIVE, "recorder"):
        shutil.copytree(ROOT / source, folder / source)
    (folder / "src").symlink_to(ROOT / "src")
    lines = mutant.path.read_text(encoding="utf-8").split("\n")
    lines[mutant.line - 1] = mutant.after
    (folder / where).write_text("\n".join(lines), encoding="utf-8")
    tests: tuple[str, ...]
    if where.parts[0] == CORE:
        tests = (*CORE_TESTS, *(test for word, some in TESTS_APART.items() if word in str(where) for test in some))
        changed = {changed_c.CSRC: str(folder / CORE)}
    else:
        tests = (*NATIVE_TESTS, *COUNTER_TESTS) if where.stem == "counter" else NATIVE_TESTS
        library = built(folder, objects)
        if library is None:
            return True
        changed = {changed_c.NATIVE: str(library)}
    command = [sys.executable, "-m", "pytest", "-qx", "-pno:cacheprovider", "-pchanged_c", *tests]
    environment = {**os.environ, **changed, "PYTHONPATH": str(Path(__file__).parent)}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, preexec_fn=limited, capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


def built(folder: Path, objects: Path) -> Path | None:
    """The library made of a checkout's sources, as CMakeLists.txt says, or nothing where they do not compile.

    `objects` keeps what was compiled, by its text without comments: most mutants change one or two of them.
    """
    objects.mkdir(parents=True, exist_ok=True)
    binding, copies, library = folder / "_native.c", folder / "copies", folder / "_native.abi3.so"
    python = sysconfig.get_paths()["include"]
    include = [f"-I{item}" for item in (folder / CORE, folder / NATIVE, folder / "recorder", python)]
    flags = ["-O1", "-fPIC", "-fvisibility=hidden", "-DHW_EXPLORE", "-DPy_LIMITED_API=0x030a0000"]
    made = []
    try:
        for script, output in (("build_binding.py", binding), ("build_copies.py", copies)):
            subprocess.run([sys.executable, folder / NATIVE / script, output], check=True, capture_output=True)
        sources = [binding, *sorted((folder / NATIVE).glob("*.c")), *sorted(copies.rglob("*.c"))]
        for source in sources:
            command: list[str | Path] = ["cc", *flags, f"-I{source.parent}", *include, source]
            text = subprocess.run([*command, "-E", "-P"], check=True, capture_output=True).stdout
            made.append(objects / f"{hashlib.sha256(text).hexdigest()}.o")
            if not made[-1].exists():
                subprocess.run([*command, "-w", "-c", "-o", made[-1]], check=True, capture_output=True)
        subprocess.run(["cc", "-shared", "-o", library, *made, "-lm"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        return None
    return library
