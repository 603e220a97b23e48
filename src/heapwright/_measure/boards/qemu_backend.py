"""Counts by QEMU: instructions only, from SysTick or minstret while the clock follows the instructions (icount)."""

from __future__ import annotations

import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._measure.boards.feed import (
    COUNTS,
    DATA_AT,
    FEED,
    OUTPUT_AT,
    PATH_AT,
    STUBS,
    BoardRun,
    Input,
    check_stubs,
    split_ticks,
)
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import run_tool
from heapwright._support.temporary import temporary_folder

if TYPE_CHECKING:
    from heapwright._measure.boards.cpus import Cpu
    from heapwright._measure.boards.image import Image

PACKAGES = {"arm": "qemu-system-arm", "riscv": "qemu-system-misc"}
REMEDY = "install QEMU 7.2 or newer from your distribution"

MARKER_INSTRUCTIONS = {"arm": 3, "riscv": 3}
"""Instructions between the two readings of the counter that are not the called function's."""

SECONDS = 600


def available(cpu: Cpu) -> bool:
    """Whether QEMU's program for the processor is installed."""
    return shutil.which(cpu.qemu[0]) is not None


@cache
def version(program: str) -> str:
    """Name and version, as in "qemu 7.2.22"."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    return f"qemu {words[words.index('version') + 1]}" if "version" in words else "qemu"


def run(image: Image, given: Input) -> BoardRun:
    """Replay on the emulated board.

    Raises HeapwrightError where the board has too little memory, QEMU fails its self-test, or the image does not reach
    its end.
    """
    cpu = image.compiler.cpu
    needed = given.layout.end - cpu.memory.slow
    if needed > cpu.memory.slow_bytes:
        raise HeapwrightError(
            f"{version(cpu.qemu[0])}: the trace and its arena need {needed:,} bytes, the board has "
            f"{cpu.memory.slow_bytes:,}; use unicorn",
            parameter="backend",
        )
    with temporary_folder("qemu") as folder:
        output = _emulate(image, given, folder)
    result = _results(output, given, cpu)
    check_stubs(result, cpu, version(cpu.qemu[0]), REMEDY)
    return result


def _emulate(image: Image, given: Input, folder: Path) -> bytes:
    cpu, layout = image.compiler.cpu, given.layout
    memory = folder / "memory.bin"
    pieces = (
        (cpu.memory.slow, FEED.size),
        (layout.ticks, 4 * (len(given.events) + STUBS)),
        (layout.arena, given.arena_used),
        (0, 0),
    )
    content = bytearray(DATA_AT)
    content[: FEED.size] = given.header()
    for index, piece in enumerate(pieces):
        struct.pack_into("<2I", content, OUTPUT_AT + 8 * index, *piece)
    path = b"output.bin\0"
    content[PATH_AT : PATH_AT + len(path)] = path
    memory.write_bytes(bytes(content) + given.events.tobytes())
    command = [
        *cpu.qemu,
        *("-nographic", "-monitor", "none", "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native"),
        *("-kernel", str(image.path)),
        *("-device", f"loader,file={memory},addr={cpu.memory.slow:#x},force-raw=on"),
    ]
    _run(command, folder, version(cpu.qemu[0]))
    return (folder / "output.bin").read_bytes()


def _run(command: list[str], folder: Path, name: str) -> None:
    try:
        done = run_tool(command, folder, timeout=SECONDS, cwd=folder, stdin=subprocess.DEVNULL, text=True)
    except subprocess.TimeoutExpired:
        raise HeapwrightError(
            f"{name}: the image did not reach its end in {SECONDS} s; measure a shorter trace"
        ) from None
    if done.returncode or not (folder / "output.bin").exists():
        what = done.stderr.strip() or f"status {done.returncode}"
        raise HeapwrightError(f"{name}: the image did not reach its end: {what}")


def _results(output: bytes, given: Input, cpu: Cpu) -> BoardRun:
    stub_value, _, taken, started = FEED.unpack_from(output)[6:]
    all_ticks = np.frombuffer(output, np.uint32, len(given.events) + STUBS, FEED.size)
    arena = np.frombuffer(output, np.uint8, given.arena_used, FEED.size + all_ticks.nbytes)
    ticks = all_ticks[STUBS:] if started else all_ticks[:0]
    performed, refused = split_ticks(ticks)
    counts: dict[str, NDArray[np.int64] | None] = dict.fromkeys(COUNTS)
    counts["instructions"] = _instructions(ticks[performed], cpu)
    stubs = tuple(int(item) for item in _instructions(all_ticks[:STUBS], cpu))
    return BoardRun(performed, refused, counts, stubs, stub_value, bool(started), taken, arena)


def _instructions(ticks: NDArray[np.uint32], cpu: Cpu) -> NDArray[np.int64]:
    """Instructions of the called function; the counter has 24 bits, 5.2 million instructions on Arm."""
    counted = (ticks & 0xFFFFFF) / cpu.ticks
    return np.rint(counted).astype(np.int64) - MARKER_INSTRUCTIONS[cpu.family]
