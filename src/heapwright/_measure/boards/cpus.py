"""The processors that heaps are measured for: how compilers and emulators call them, and where their memory lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from heapwright._support.errors import ParameterError, did_you_mean

MIB = 1 << 20


@dataclass(frozen=True)
class Memory:
    """Where an image expects memory, in bytes: what `driver/*.ld` are filled in with.

    Code comes first; `fast` holds 64 KiB of the image's data and stack, then arenas; `slow` holds the trace, the
    results, and arenas that `fast` has no room for.
    """

    code: int
    code_bytes: int
    fast: int
    fast_bytes: int
    slow: int
    slow_bytes: int

    @property
    def arena(self) -> int:
        """First byte behind the image's own data."""
        return self.fast + (64 << 10)

    @property
    def arena_bytes(self) -> int:
        """Room for an arena in the fast memory."""
        return self.fast_bytes - (64 << 10)


_BOARD = Memory(0, 4 * MIB, 0x20000000, 4 * MIB, 0x21000000, 16 * MIB)
_BOARD_M7 = Memory(0, 4 * MIB, 0x20000000, 4 * MIB, 0x60000000, 16 * MIB)
_BOARD_M33 = Memory(0x10000000, 4 * MIB, 0x38000000, 4 * MIB, 0x80000000, 16 * MIB)
_BOARD_M55 = Memory(0x10000000, MIB // 2, 0x31000000, 4 * MIB, 0x70000000, 496 * MIB)
_VIRT = Memory(0x80000000, 4 * MIB, 0x80400000, 4 * MIB, 0x81000000, 496 * MIB)


@dataclass(frozen=True)
class Cpu:
    """One processor.

    Attributes:
        name: what --cpu takes.
        family: "arm" or "riscv", which names the driver's start-up code and linker script.
        gcc, zig: flags that select it.
        runs_on: the core that the emulators have.
        unicorn_model: that core's constant in Unicorn's module of the family; None where Unicorn lacks it.
        qemu: program and arguments of QEMU's machine with that core.
        ticks: of the machine's counter an instruction. On Arm `shift=7` makes an instruction 128 ns, and SysTick counts
            at the board's clock; with shifts below 7 rounding is ambiguous.
        timing: `enum hw_timing` of native/counter.h.
        stub_instructions: instructions of the driver's three stubs.
        note: what a measurement on another core than the named one misses; None where the core is emulated.
        memory: where memory lies.
    """

    name: str
    family: Literal["arm", "riscv"]
    gcc: tuple[str, ...]
    zig: tuple[str, ...]
    runs_on: str
    unicorn_model: str | None
    qemu: tuple[str, ...]
    ticks: float
    timing: str
    stub_instructions: tuple[int, int, int]
    note: str | None
    memory: Memory


class _Board(NamedTuple):
    """A machine of QEMU's: its name, its clock in MHz, its memory, and whether Unicorn has its core, too."""

    machine: str
    mhz: int
    memory: Memory
    unicorn: bool = True


_BOARDS = {
    "cortex-m3": _Board("mps2-an385", 25, _BOARD),
    "cortex-m4": _Board("mps2-an386", 25, _BOARD),
    "cortex-m7": _Board("mps2-an500", 25, _BOARD_M7),
    "cortex-m33": _Board("mps2-an505", 20, _BOARD_M33),
    "cortex-m55": _Board("mps3-an547", 32, _BOARD_M55, unicorn=False),
}


def _cortex(name: str, timing: str, stub: int = 15, runs_on: str | None = None, note: str | None = None) -> Cpu:
    runs_on = runs_on or name
    board = _BOARDS[runs_on]
    return Cpu(
        name,
        "arm",
        (f"-mcpu={name}", "-mthumb"),
        ("-target", "thumb-freestanding-eabi", f"-mcpu={name.replace('-', '_')}"),
        runs_on,
        f"UC_CPU_ARM_{runs_on.upper().replace('-', '_')}" if board.unicorn else None,
        ("qemu-system-arm", "-M", board.machine, "-icount", "shift=7,sleep=off"),
        0.128 * board.mhz,
        timing,
        (1, 10, stub),
        note,
        board.memory,
    )


CPUS = {
    cpu.name: cpu
    for cpu in (
        _cortex("cortex-m3", "HW_THUMB_M3"),
        _cortex(
            "cortex-m0plus",
            "HW_THUMB_UNTIMED",
            14,
            "cortex-m3",
            "ARMv6-M code run on an emulated Cortex-M3, because no emulator here has the M0+: the instructions "
            "executed are the same; faults on unaligned accesses and the M0+'s cycles are not modelled",
        ),
        _cortex("cortex-m4", "HW_THUMB_M4"),
        _cortex("cortex-m7", "HW_THUMB_UNTIMED"),
        _cortex("cortex-m33", "HW_THUMB_UNTIMED"),
        _cortex("cortex-m55", "HW_THUMB_UNTIMED"),
        Cpu(
            "rv32imac",
            "riscv",
            ("-march=rv32imac", "-mabi=ilp32", "-mcmodel=medany"),
            ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+a+c-e", "-mabi=ilp32", "-mcmodel=medany"),
            "rv32imac",
            "UC_CPU_RISCV32_ANY",
            ("qemu-system-riscv32", "-M", "virt", "-m", "512", "-bios", "none", "-icount", "shift=0,sleep=off"),
            1.0,
            "HW_RISCV",
            (1, 10, 11),
            None,
            _VIRT,
        ),
    )
}
"""Every processor by its name."""


def cpu(name: str) -> Cpu:
    """The processor of this name. Raises ParameterError with the nearest name where there is none."""
    if name in CPUS:
        return CPUS[name]
    hint = did_you_mean(name, CPUS, "known")
    raise ParameterError(f"{name!r} is no processor that can be measured; {hint}", parameter="cpu")
