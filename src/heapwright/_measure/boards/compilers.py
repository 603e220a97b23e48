"""Cross compilers: zig from pip and Debian's gcc, behind one interface."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import run_tool

if TYPE_CHECKING:
    from heapwright._measure.boards.cpus import Cpu

COMPILERS = ("gcc", "zig")
"""In the order of preference."""

LEVELS = ("Os", "O0", "O2", "O3")
"""Optimisation levels whose code sizes are reported; by default the first compiles what runs."""

GCC = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}
GCC_PACKAGES = {
    "arm": "gcc-arm-none-eabi libnewlib-arm-none-eabi picolibc-arm-none-eabi",
    "riscv": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
}
# A function a section, so that the linker drops functions without a caller.
_COMMON = ("-std=c11", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-fno-common", "-w")


@dataclass(frozen=True)
class Compiler:
    """A cross compiler for one processor: `kind` is "gcc" or "zig"."""

    kind: str
    command: tuple[str, ...]
    version: str
    cpu: Cpu

    @property
    def _target(self) -> tuple[str, ...]:
        return self.cpu.gcc if self.kind == "gcc" else (*self.cpu.zig, "-fno-sanitize=undefined")

    def compile(self, source: Path, output: Path, flags: Sequence[str]) -> None:
        """Compile one C file to an object file. Raises HeapwrightError with the compiler's first complaint."""
        self._run([*self._target, *_COMMON, *flags, "-c", str(source)], output, source)

    def link(self, objects: Sequence[Path], output: Path, flags: Sequence[str], library: bool) -> None:
        """Link object files, dropping unused sections. Raises HeapwrightError with the linker's first complaint.

        libgcc, or zig's compiler-rt, comes on top; so does gcc's C library if `library`.
        """
        plain = [] if library or self.kind == "zig" else ["-nolibc"]
        flags = ["-nostartfiles", "-static", "-Wl,--gc-sections", *plain, *flags]
        self._run([*self._target, *flags, *map(str, objects)], output, objects[0])

    def has_file(self, name: str) -> bool:
        """Whether the compiler finds a file of this name among its own, such as a library's specs."""
        done = subprocess.run([*self.command, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        return done.stdout.strip() not in ("", name)

    def _run(self, arguments: list[str], output: Path, about: Path) -> None:
        done = run_tool([*self.command, *arguments, "-o", str(output)], output.parent, text=True)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if re.search("error|undefined|cannot|overflow", line)]
            what = (lines or done.stderr.splitlines() or [f"status {done.returncode}"])[0]
            raise HeapwrightError(f"{about.name}: {self.version} cannot build it for {self.cpu.name}: {what.strip()}")


def find_compiler(cpu: Cpu, kind: str | None = None) -> Compiler:
    """The compiler of this kind for the processor; without a kind gcc, or else zig.

    Raises HeapwrightError, with what to install, where there is none.
    """
    for item in COMPILERS if kind is None else (kind,):
        command = _gcc(cpu.family) if item == "gcc" else _zig()
        if command:
            return Compiler(item, command, _version(command), cpu)
    if kind == "gcc":
        missing = f"{GCC[cpu.family]} is missing; {_debian(cpu)}"
    elif kind == "zig":
        missing = "zig is missing; pip install 'heapwright[target]'"
    else:
        missing = f"no compiler for {cpu.name}; pip install 'heapwright[target]' (zig), or {_debian(cpu)} (gcc)"
    raise HeapwrightError(missing)


def _debian(cpu: Cpu) -> str:
    return f"apt-get install --no-install-recommends {GCC_PACKAGES[cpu.family]}"


def _gcc(family: str) -> tuple[str, ...] | None:
    path = shutil.which(GCC[family])
    return (path,) if path else None


def _zig() -> tuple[str, ...] | None:
    if (result := importlib.util.find_spec("ziglang")) and result.origin:
        for name in ("zig", "zig.exe"):
            if (zig := Path(result.origin).with_name(name)).is_file():
                return (str(zig), "cc")  # `python -m ziglang` starts it, after an interpreter
    path = shutil.which("zig")
    return (path, "cc") if path else None


@cache
def _version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    first = done.stdout.splitlines()[0] if done.stdout else ""
    if command[-1] != "cc":
        return first
    zig = subprocess.run([*command[:-1], "version"], capture_output=True, text=True, check=False).stdout.strip()
    return f"zig {zig} ({first.split(' (')[0]})"
