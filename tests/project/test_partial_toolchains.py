"""On a machine whose tools have their names and lack a part, the tests that need that part skip, others pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import tool_requirements
from partial_toolchains import MACHINES, path_of
from platform_builds import CORTEX_M3, NOSYS, PICOLIBC, cross_compiler

from heapwright._assure.attack.exploits import buildable
from heapwright._heaps.foreign import build
from heapwright._support.errors import HeapwrightError

ROOT = Path(__file__).resolve().parents[2]

ABILITIES: dict[str, Callable[[], object]] = {
    "Arm's gcc": lambda: tool_requirements.tool("arm-none-eabi-gcc"),
    "newlib": lambda: cross_compiler((*CORTEX_M3, NOSYS)),
    "picolibc": lambda: cross_compiler((*CORTEX_M3, *PICOLIBC)),
    "QEMU": lambda: tool_requirements.tool("qemu-system-arm"),
    "clang": lambda: tool_requirements.tool("clang"),
    "libFuzzer": lambda: tool_requirements.fuzzer("-fsanitize=fuzzer,address,undefined"),
    "gcc": lambda: tool_requirements.tool("gcc"),
    "-m32": lambda: tool_requirements.syntax("gcc", "-m32", "-ffreestanding"),
    "programs of 32 bits": lambda: tool_requirements.programs_of_32_bits(
        "-fsanitize=address,undefined", compiler="gcc"
    ),
}
"""How tests ask for what is tried here."""


class Lack(NamedTuple):
    """What a machine cannot do, a test that needs it, and with which parameters that passes and skips there."""

    abilities: set[str]
    sample: str
    passes: tuple[str, ...]
    skips: tuple[str, ...]


LACKS = {
    "Arm's gcc without picolibc": Lack(
        {"picolibc"},
        "platforms/test_platform_libc.py::test_the_pages_command_finds_a_second_allocator",
        ("newlib",),
        ("picolibc",),
    ),
    "QEMU without gcc": Lack(
        {"Arm's gcc", "newlib", "picolibc"},
        "traces/test_board_lines.py::test_the_ring_needs_no_function_and_warns_of_nothing",
        (),
        ("cortex-m0-0",),
    ),
    "clang without libFuzzer": Lack({"libFuzzer"}, "core/test_core_fuzz.py::test_coverage_guided_programs", (), ("",)),
    "gcc without -m32": Lack(
        {"-m32", "programs of 32 bits"}, "core/test_core_compile.py::test_no_warning", ("build0-gcc",), ("build2-gcc",)
    ),
    "-m32 without headers": Lack(
        {"programs of 32 bits"},
        "heaps/test_foreign.py::test_addresses_are_offsets_from_the_start_of_the_arena",
        ("64",),
        ("32",),
    ),
}


@pytest.fixture
def half_equipped(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a machine, which this process is on: its tools stand on the PATH."""
    name = str(request.param)
    for ask in ABILITIES.values():
        ask()
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", path_of(MACHINES[name], tmp_path))
    return name


on_each = pytest.mark.parametrize("half_equipped", MACHINES, indirect=True)


def skips(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except pytest.skip.Exception:
        return True
    return False


@on_each
def test_a_machine_cannot_do_what_it_lacks_and_can_do_the_rest(
    half_equipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = LACKS[half_equipped].abilities
    assert {name for name, ask in ABILITIES.items() if skips(ask)} == lack
    monkeypatch.setenv("CI", "true")
    for name in lack:
        with pytest.raises(pytest.fail.Exception, match="is absent"):
            ABILITIES[name]()


@on_each
def test_tests_there_pass_or_skip(half_equipped: str, tmp_path: Path) -> None:
    _, sample, passes, skips_there = LACKS[half_equipped]
    samples = [f"tests/{sample}{f'[{item}]' if item else ''}" for item in (*passes, *skips_there)]
    words = ["-q", "--no-header", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'of the sample'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *samples],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    assert (counts.pop("passed", 0), counts.pop("skipped", 0), counts) == (len(passes), len(skips_there), {})


@pytest.mark.parametrize("half_equipped", ["gcc without -m32", "-m32 without headers"], indirect=True)
def test_a_foreign_heap_names_the_word_size_that_cannot_be_built(half_equipped: str) -> None:
    compiler = build._checked_compiler.__wrapped__
    with pytest.raises(HeapwrightError, match=r"^cc cannot build 32-bit programs here; install gcc-multilib"):
        compiler("cc", 32)
    assert compiler("cc", 64) == ("cc", "-m64")


@pytest.mark.parametrize("half_equipped", ["gcc without -m32"], indirect=True)
def test_exploits_are_tried_with_the_widths_that_can_be_built(half_equipped: str, tmp_path: Path) -> None:
    assert buildable(tmp_path) == [64]


@pytest.mark.parametrize(("code", "works"), [(0, True), (1, True), (126, False), (127, False)])
def test_a_name_alone_is_no_tool(code: int, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell ends with 126 and 127 where nothing is started, and so does the loader of shared libraries."""
    program = tmp_path / "some-tool"
    program.write_text(f"#!/bin/sh\necho cannot open a library >&2\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool_requirements.is_installed("some-tool") == works
    if works:
        tool_requirements.needs("some-tool")
        assert tool_requirements.tool("some-tool") == str(program)
    else:
        with pytest.raises(pytest.skip.Exception, match="some-tool is absent: cannot open a library"):
            tool_requirements.needs("some-tool")


def test_compilers_are_those_that_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool_requirements.needs("gcc")
    (tmp_path / "clang").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "clang").chmod(0o755)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert tool_requirements.compilers() == ["gcc"]
