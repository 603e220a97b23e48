"""The one rule for what a test needs and a machine may lack: the test skips there, and says what; in CI it fails.

A tool is there if it does what the test needs, tried once (`tool_probes.py`), not if it has a name. Only this file
asks for that, and only this file skips (`tests/project/test_tool_requirements.py`). What skips on machines whose tools
lack a part is tested in `tests/project/test_partial_toolchains.py`.
`.ci/packages` installs all that CI needs, so a test that skipped there would have tested nothing, unnoticed.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest
import tool_probes


def in_ci() -> bool:
    """Whether this machine promises that nothing is missing."""
    return bool(os.environ.get("CI"))


def absent(what: str, why: str = "") -> NoReturn:
    """Skip for what can be installed and is not; fail in CI."""
    output = f"{what} is absent" + (f": {why}" if why else "")
    if in_ci():
        pytest.fail(output)
    pytest.skip(output)


def missing(what: str) -> NoReturn:
    """As `absent`, for what the public host cannot have: data next to the checkout, sources from elsewhere."""
    if in_ci() and not os.environ.get("GITHUB_ACTIONS"):
        pytest.fail(what)
    pytest.skip(what)


def why_not(program: str, path: str | None = None) -> str:
    """Why a test cannot use a program of the path; "" where it can."""
    where = shutil.which(program, path=path)
    return tool_probes.works(program, where) if where else "it is not installed"


def is_installed(program: str, path: str | None = None) -> bool:
    """Whether there is such a program on the path, and it works."""
    return not why_not(program, path)


def tool(name: str, why: str = "", path: str | None = None) -> str:
    """The path of a program that the test needs."""
    where = shutil.which(name, path=path)
    if where is None:
        absent(name, why or "it is not installed")
    if complaint := tool_probes.works(name, where):
        absent(name, complaint)
    return where


def needs(*what: str) -> None:
    """Skip where a program, or the header of a library as in "lua5.4/lua.h", is not there.

    As a mark, `@pytest.mark.needs("valgrind")`, that is evaluated before the test's fixtures are made.
    """
    for item in what:
        if item.endswith(".h"):
            if not has_header(item):
                absent(item, "the C compiler finds no such header")
        else:
            tool(item)


def has_header(header: str) -> bool:
    """Whether the C compiler finds a header."""
    return tool_probes.finds(header, _host_compiler())


def _host_compiler() -> str:
    return os.environ.get("CC", "cc")


def programs_of_32_bits(*flags: str, compiler: str | None = None) -> None:
    """Skip where the C compiler builds none with these flags, or they do not run; others than x86 have no such two."""
    complaint = tool_probes.builds(
        compiler or _host_compiler(), "-m32", *flags, source=tool_probes.OF_THE_KERNEL, runs=True
    )
    if complaint:
        if platform.machine() != "x86_64":
            unsuited("only x86 runs both")
        absent("gcc-multilib", complaint)


def syntax(compiler: str, *flags: str) -> None:
    """Skip where a compiler takes no freestanding source with these flags."""
    complaint = tool_probes.builds(compiler, *flags, "-fsyntax-only", source=tool_probes.FREESTANDING, links=False)
    if complaint:
        if platform.machine() != "x86_64":
            unsuited(f"{' '.join(flags)} is x86's")
        absent(f"{compiler} {' '.join(flags)}", complaint)


def library(name: str, compiler: str, flags: Iterable[str]) -> str:
    """The path of a cross compiler that links programs with these flags, which choose a C library with that name."""
    program = tool(compiler)
    if complaint := tool_probes.builds(program, *flags):
        absent(f"{compiler} with {name}", complaint)
    return program


def fuzzer(*flags: str) -> str:
    """The path of a clang that links libFuzzer with these flags."""
    clang = tool("clang", "the coverage-guided driver needs its libFuzzer")
    if complaint := tool_probes.builds(clang, *flags, source=tool_probes.FUZZ_TARGET):
        absent("libFuzzer", f"{complaint} (Debian: libclang-rt-14-dev)")
    return clang


def machine(suits: bool, reason: str) -> pytest.MarkDecorator:
    """A mark for a test of another kind of machine, or of a user with other rights.

    They cannot be installed, so that it skips in CI, too.
    """
    return pytest.mark.skipif(not suits, reason=reason)


def unsuited(reason: str) -> NoReturn:
    """Skip as a test with the mark `machine` does, from within it."""
    pytest.skip(reason)


def compilers(names: Iterable[str] = ("gcc", "clang")) -> list[str]:
    """Those C compilers that are installed; in CI all, so that a missing one fails."""
    return [name for name in names if in_ci() or is_installed(name)]


def emulator() -> None:
    """Skip a test where no processor of the target is emulated, or no compiler makes code for it."""
    target("cortex-m3", None, "unicorn")


def target(cpu_name: str, compiler: str | None = None, *backends: str) -> None:
    """Skip a test where `heapwright measure` has no such compiler, or emulator, for a processor."""
    from heapwright._measure.boards.compilers import find_compiler
    from heapwright._measure.boards.cpus import cpu
    from heapwright._measure.boards.measure import find_backend
    from heapwright._support.errors import HeapwrightError

    core = cpu(cpu_name)
    try:
        gcc = Path(find_compiler(core, compiler).command[0])
        for backend in backends:
            find_backend(core, backend)
    except HeapwrightError as error:
        absent("a tool of heapwright measure", str(error))
    for program in [gcc.name] * (gcc.name != "zig") + [core.qemu[0]] * ("qemu" in backends):
        tool(program)
