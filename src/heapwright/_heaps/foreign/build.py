"""Building foreign heaps: the driver once for all of them, and what each heap's program is made of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from heapwright._heaps.foreign.adapter import Adapter, WordSize
from heapwright._support.errors import ForeignHeapError, HeapwrightError
from heapwright._support.subprocesses import find_compiler, probe_of, run_tool
from heapwright._support.temporary import folder_for

FLAGS = ("-std=gnu11", "-O2", "-w", "-fno-pie", "-no-pie", "-fno-builtin-malloc", "-fno-builtin-calloc")
"""Without the last two the compiler may turn a heap's own calloc into a call of itself."""

DRIVER = Path(__file__).with_name("driver.c")


def build(program: Path, arguments: Sequence[str], word_size: WordSize, driver: Path = DRIVER) -> None:
    """Compile and link a heap's program around a driver. Raises ForeignHeapError with the first complaint."""
    compiler = _compiler(word_size)
    _compile(compiler, [str(_driver(compiler, driver)), *arguments, "-o", str(program)], program.parent)


def library_arguments(library: str, adapter: Adapter, word_size: WordSize) -> list[str]:
    """What links a shared object, given by its path or soname. Raises ForeignHeapError where it is not installed."""
    if "/" in library:
        return [library, f"-Wl,-rpath,{Path(library).parent}"]
    result = _run([*_compiler(word_size), f"-print-file-name={library}"], _shared_folder()).stdout.strip()
    if "/" not in result:
        remedy = f"; install Debian's {adapter.package}" if adapter.package else ""
        raise ForeignHeapError(f"{library} is not installed for {word_size}-bit programs{remedy}")
    return [f"-l:{library}"]


@cache
def _shared_folder() -> Path:
    """Where everything lies that is the same for all heaps, until the process ends."""
    return folder_for(_shared_folder, "foreign")


def _compiler(word_size: WordSize) -> tuple[str, ...]:
    try:
        return _checked_compiler(find_compiler("a foreign heap"), word_size)
    except HeapwrightError as error:
        raise ForeignHeapError(str(error), parameter=error.parameter) from None


@cache
def _checked_compiler(compiler: str, word_size: WordSize) -> tuple[str, ...]:
    """The compiler's command, if it can build programs of that word size with the headers of a driver."""
    command = (compiler, f"-m{word_size}")
    probe = _shared_folder() / "probe.c"
    probe.write_text(probe_of(DRIVER), encoding="utf-8")
    if _run([*command, "-std=gnu11", str(probe), "-o", str(probe.with_suffix(""))], _shared_folder()).returncode:
        problem = f"{compiler} cannot build {word_size}-bit programs here"
        remedy = "install gcc-multilib, or build for 64 bits" if word_size == 32 else "try 32"
        raise ForeignHeapError(f"{problem}; {remedy}", parameter="word_size")
    return command


@cache
def _driver(compiler: tuple[str, ...], source: Path) -> Path:
    """A compiled driver, which knows what calls there are but not what they do."""
    driver = _shared_folder() / f"{source.stem}{compiler[-1]}.o"
    _compile(compiler, ["-c", f"-I{DRIVER.parent}", str(source), "-o", str(driver)], _shared_folder())
    return driver


def _compile(compiler: tuple[str, ...], arguments: Sequence[str], folder: Path) -> None:
    done = _run([*compiler, *FLAGS, *arguments], folder)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        problem = (lines or done.stderr.splitlines() or [f"exit code {done.returncode}"])[0].strip()
        raise ForeignHeapError(f"cannot be built: {problem[:300]}")


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return run_tool(command, folder, env={**os.environ, "LC_ALL": "C"}, text=True)
