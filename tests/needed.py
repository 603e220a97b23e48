"""The one rule for what a test needs and a machine may lack: the test skips there, and says what; in CI it fails.

Only this file asks whether a program is installed, and only this file skips: `tests/unit/test_needed.py` keeps that.
`.ci/packages` installs all that CI needs, so a test that skipped there would have tested nothing for nobody to see.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Whether this machine promises that nothing is missing."""
    return bool(os.environ.get("CI"))


def absent(what: str, why: str = "") -> NoReturn:
    """Skip for what can be installed and is not; fail in CI."""
    told = f"{what} is absent" + (f": {why}" if why else "")
    if in_ci():
        pytest.fail(told)
    pytest.skip(told)


def missing(what: str) -> NoReturn:
    """As `absent`, for what the public host cannot have: data beside the checkout, sources from elsewhere."""
    if in_ci() and not os.environ.get("GITHUB_ACTIONS"):
        pytest.fail(what)
    pytest.skip(what)


def is_installed(program: str, path: str | None = None) -> bool:
    """Whether there is such a program on the path."""
    return shutil.which(program, path=path) is not None


def tool(name: str, why: str = "", path: str | None = None) -> str:
    """The path of a program that the test needs."""
    return shutil.which(name, path=path) or absent(name, why or "it is not installed")


def needs(*what: str) -> None:
    """Skip where a program, or the header of a library as in "lua5.4/lua.h", is not there.

    As a mark, `@pytest.mark.needs("valgrind")`, that is asked before the test's fixtures are made.
    """
    for one in what:
        if one.endswith(".h"):
            if not has_header(one):
                absent(one, "the C compiler finds no such header")
        else:
            tool(one)


@cache
def has_header(header: str) -> bool:
    """Whether the C compiler finds a header."""
    command = [os.environ.get("CC", "cc"), "-E", "-x", "c", "-o", os.devnull, "-"]
    return subprocess.run(command, input=f"#include <{header}>\n", text=True, capture_output=True).returncode == 0


@cache
def _builds_32_bits() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ.get("CC", "cc"), "-m32", "-x", "c", "-o", f"{folder}/program", "-"]
        program = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
        return subprocess.run(command, input=program, text=True, capture_output=True).returncode == 0


def programs_of_32_bits() -> None:
    """Skip where the C compiler builds none."""
    if not _builds_32_bits():
        if platform.machine() != "x86_64":
            unsuited("only x86 runs both")
        absent("gcc-multilib", "the C compiler builds no 32-bit programs")


def machine(suits: bool, reason: str) -> pytest.MarkDecorator:
    """A mark for a test of another kind of machine, or of a user with other rights.

    Nobody can install those, so that it skips in CI, too.
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
    from heapwright.assure.attack.on_target import Target
    from heapwright.files.errors import HeapwrightError

    try:
        Target("cortex-m3")
    except HeapwrightError as error:
        absent("an emulated processor", str(error))
