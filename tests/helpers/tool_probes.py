"""What the tools of this machine can do. A tool that has the name may lack a part, so each is tried, once.

A trial does, for a small program, what the test does: it compiles and links for that target and with those flags, or
runs on that emulator. What it returns is the tool's complaint, or "" if the tool did what was requested. It is
kept for the programs of one PATH, so that a test which fakes the PATH tries its own.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SECONDS = 60

HELLO = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(getenv("HOME") ? "1" : "0") < 0; }\n'
FREESTANDING = (
    "#include <stddef.h>\n#include <stdint.h>\nuint32_t one(size_t n);\nuint32_t one(size_t n) { return !n; }\n"
)
OF_THE_KERNEL = (
    "#define _GNU_SOURCE\n#include <asm/types.h>\n#include <errno.h>\n#include <sys/socket.h>\n#include <sys/stat.h>\n"
    + HELLO
)
"""The C library's headers that include those of the kernel, which Debian has in another package."""
FUZZ_TARGET = (
    "#include <stddef.h>\n#include <stdint.h>\n"
    "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return data == NULL && size > 1; }\n"
)

_ARM_PROGRAM = struct.pack("<2I4HI", 0x20001000, 9, 0x2018, 0x4901, 0xBEAB, 0xE7FE, 0x20026)
"""A vector table, and SYS_EXIT by semihosting: movs r0, #24; ldr r1, =0x20026; bkpt 0xab."""
_RISCV_PROGRAM = struct.pack(
    "<8I", 0x01800513, 0x000205B7, 0x02658593, 0x13, 0x01F01013, 0x00100073, 0x40705013, 0x0000006F
)
"""The same: li a0, 24; li a1, 0x20026; then the three words that mean a call of semihosting."""


def builds(
    compiler: str, *flags: str, source: str = HELLO, language: str = "c", links: bool = True, runs: bool = False
) -> str:
    """Why a compiler builds no such program, or with `runs` why that does not run."""
    return _build(compiler, flags, source, language, links, runs, _path())


def finds(header: str, compiler: str) -> bool:
    """Whether a compiler finds a header."""
    return not builds(compiler, "-E", source=f"#include <{header}>\n", links=False)


def runs(program: str) -> str:
    """Why a program with that path does not start at all."""
    return _start(program, _path())


def works(name: str, program: str) -> str:
    """Why a tool with that name, and that path, does not do what it is for."""
    if name in _FLAGS:
        flags, source, language, links = _FLAGS[name]
        return builds(program, *flags, source=source, language=language, links=links)
    if name in _IMAGES:
        return _emulate(program, name, _path())
    return runs(program)


_FLAGS = {
    **dict.fromkeys(("cc", "gcc", "clang"), ((), HELLO, "c", True)),
    **dict.fromkeys(("c++", "g++", "clang++"), ((), HELLO, "c++", True)),
    "arm-none-eabi-gcc": (("-mcpu=cortex-m3", "-mthumb", "-ffreestanding"), FREESTANDING, "c", False),
    "riscv64-unknown-elf-gcc": (("-march=rv32imac", "-mabi=ilp32", "-ffreestanding"), FREESTANDING, "c", False),
    "avr-gcc": (("-mmcu=atmega1284p", "-Os"), HELLO, "c", True),
}
"""Of each compiler: flags, a source, its language, and whether that is a whole program."""

_IMAGES = {
    "qemu-system-arm": (_ARM_PROGRAM, ("-M", "mps2-an385", "-kernel", "{image}")),
    "qemu-system-riscv32": (
        _RISCV_PROGRAM,
        ("-M", "virt", "-bios", "none", "-device", "loader,file={image},addr=0x80000000,force-raw=on"),
    ),
}
"""Of each emulator: an image that ends by semihosting, and how it gets that."""


@cache
def _build(compiler: str, flags: tuple[str, ...], source: str, language: str, links: bool, runs: bool, _: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        kind = [] if links or "-E" in flags or "-fsyntax-only" in flags else ["-c"]
        # Flags behind the source too, as libraries and scripts of the linker stand there.
        command = [compiler, "-x", language, "-", "-x", "none", *kind, *flags, "-o", str(program)]
        return _complaint(command, folder, source) or (_complaint([str(program)], folder) if runs else "")


@cache
def _start(program: str, _: str) -> str:
    """126 and 127 are what a shell, and the loader of shared libraries, end with where nothing can be run."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = _run([program, "--version"], folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return _first_complaint(result) if result.returncode in (126, 127) else ""


@cache
def _emulate(program: str, name: str, _: str) -> str:
    content, words = _IMAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image"
        image.write_bytes(content)
        silent = ("-display", "none", "-monitor", "none", "-serial", "none")
        command = [program, *silent, "-semihosting-config", "enable=on,target=native"]
        return _complaint([*command, *(word.format(image=image) for word in words)], folder)


def _complaint(command: Sequence[str], folder: str, text: str = "") -> str:
    try:
        result = _run(command, folder, text)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return _first_complaint(result) if result.returncode else ""


def _run(command: Sequence[str], folder: str, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": folder, "LC_ALL": "C"}
    return subprocess.run(
        command, cwd=folder, env=environment, input=text, capture_output=True, errors="replace", timeout=SECONDS
    )


def _first_complaint(result: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in result.stderr.splitlines() if "error" in line or "cannot" in line] or [
        line for line in result.stderr.splitlines() if line.strip()
    ]
    return lines[0].strip() if lines else f"status {result.returncode}"


def _path() -> str:
    return os.environ.get("PATH", "")
