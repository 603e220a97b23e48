"""Counts by Unicorn: instructions, memory accesses, stack and cycles, with hooks from the native module.

Blocks are hooked, and their instructions decoded, because the hook for single instructions leaves out those that an IT
block skips. Unicorn is under the GPL, so it is an extra and never imported elsewhere.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._measure.boards.feed import COUNTS, FEED, STUBS, BoardRun, Input, check_stubs, split_ticks
from heapwright._native import ffi, lib
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._measure.boards.cpus import Cpu
    from heapwright._measure.boards.image import Image

REQUIREMENT = "unicorn>=2.1.3,<2.1.4"
REMEDY = f"install one that counts rightly: pip install '{REQUIREMENT}'"
PAGE = 1 << 16
_HOOK_MEMORY, _HOOK_BLOCK = (1 << 10) | (1 << 11), 1 << 3
_FAILURE = "the image did not reach its end"


def available(cpu: Cpu) -> bool:
    """Whether Unicorn is installed, and has the core."""
    return cpu.unicorn_model is not None and importlib.util.find_spec("unicorn") is not None


def version() -> str:
    """Name and version, as in "unicorn 2.1.3"."""
    from importlib.metadata import version as installed

    return f"unicorn {installed('unicorn')}"


def run(image: Image, given: Input, *, memory: bool = True) -> BoardRun:
    """Replay on the emulated core; without `memory` loads, stores and stack are not counted, which is much faster.

    Raises HeapwrightError where Unicorn fails its self-test or the image does not reach its end.
    """
    machine = _Machine(image, given, memory)
    machine.emulate()
    result = machine.results()
    check_stubs(result, image.compiler.cpu, version(), REMEDY)
    return result


def open_core(cpu: Cpu) -> Any:
    """An emulated core of this processor, without memory."""
    unicorn = importlib.import_module("unicorn")
    family = importlib.import_module(f"unicorn.{cpu.family}_const")
    if cpu.family == "arm":
        core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    else:
        core = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    core.ctl_set_cpu_model(getattr(family, str(cpu.unicorn_model)))
    return core


def reset(core: Any, image: Image) -> tuple[int, int]:
    """Bring the core to where an image begins; returns that address, and the number of its program counter."""
    if image.compiler.cpu.family == "arm":
        from unicorn.arm_const import UC_ARM_REG_PC, UC_ARM_REG_SP

        vectors = np.frombuffer(image.segments[0][1][:8], "<u4")
        core.reg_write(UC_ARM_REG_SP, int(vectors[0]))
        return int(vectors[1]) | 1, UC_ARM_REG_PC
    from unicorn.riscv_const import UC_RISCV_REG_PC

    return image.symbols["hw_entry"], UC_RISCV_REG_PC


def run_core(core: Any, start: int, end: int, counter: int, seconds: float = 0.0) -> str | None:
    """Run from one address to another, for at most this many seconds (0: without bound).

    Returns None where it got there, else what kept it.
    """
    error = importlib.import_module("unicorn").UcError
    try:
        core.emu_start(start, end, timeout=int(1e6 * seconds))
    except error as problem:
        return f"{problem} at {core.reg_read(counter):#x}"
    where = core.reg_read(counter)
    return None if where & ~1 == end else f"stopped at {where:#x}"


class _Machine:
    """One emulated core with an image, a trace, and the counter that its hooks fill."""

    def __init__(self, image: Image, given: Input, memory: bool) -> None:
        self.image, self.given, self.cpu = image, given, image.compiler.cpu
        self.core = open_core(self.cpu)
        self._map()
        self._load()
        self.calls = np.zeros((len(given.events) + STUBS, 9), np.uint32)
        self._code = np.zeros(max(at + len(data) for at, data in image.segments) - self.cpu.memory.code, np.uint8)
        for at, data in image.segments:
            offset = at - self.cpu.memory.code
            self._code[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        self._blocks = np.zeros((len(self._code) // 2 + 1, 5), np.uint32)
        self.counter = self._counter()
        self.memory = memory
        self._hook()

    def _map(self) -> None:
        memory, core = self.cpu.memory, self.core
        core.mem_map(memory.code, memory.code_bytes)
        core.mem_map(memory.fast, memory.fast_bytes)
        slow = max(self.given.layout.end - memory.slow, memory.slow_bytes)
        if self.cpu.family == "riscv":
            slow = max(self.given.layout.end - memory.slow, 1 << 20)  # the board's memory is ample and costs pages
        core.mem_map(memory.slow, -(-slow // PAGE) * PAGE)
        if self.cpu.family == "arm":
            core.mem_map(0xE000E000, 0x1000)  # SysTick, which the driver reads and whose value is not used here

    def _load(self) -> None:
        for at, data in self.image.segments:
            self.core.mem_write(at, data)
        self.core.mem_write(self.cpu.memory.slow, self.given.header())
        self.core.mem_write(self.given.layout.events, self.given.events.tobytes())

    def _counter(self) -> Any:
        symbols, layout, memory = self.image.symbols, self.given.layout, self.cpu.memory
        counter = ffi.new("struct hw_counter *")
        counter.timing = getattr(lib, self.cpu.timing)
        counter.begin, counter.end = symbols["hw_call_begin"], symbols["hw_call_end"]
        counter.arena, counter.arena_end = layout.arena, layout.arena + layout.arena_bytes
        counter.stack, counter.stack_end = symbols["hw_stack"], symbols["hw_stack_top"]
        counter.code = ffi.cast("uint8_t *", ffi.from_buffer(self._code))
        counter.code_base, counter.code_bytes = memory.code, len(self._code)
        counter.blocks = ffi.cast("struct hw_code_block *", ffi.from_buffer(self._blocks))
        counter.calls = ffi.cast("struct hw_call_counts *", ffi.from_buffer(self.calls))
        counter.room = len(self.calls)
        return counter

    def _hook(self) -> None:
        """Register the native hooks with Unicorn's C library, past its Python binding."""
        import ctypes

        library = _library(importlib.import_module("unicorn"))
        handle = self.core._uch
        user = ctypes.c_void_p(int(ffi.cast("uintptr_t", self.counter)))
        hooks = {_HOOK_BLOCK: "hw_counter_block"} | ({_HOOK_MEMORY: "hw_counter_access"} if self.memory else {})
        for kind, function in hooks.items():
            address = ctypes.c_void_p(int(ffi.cast("uintptr_t", ffi.addressof(lib, function))))
            hook = ctypes.c_size_t()
            everywhere = ctypes.c_uint64(1), ctypes.c_uint64(0)
            status = library.uc_hook_add(handle, ctypes.byref(hook), ctypes.c_int(kind), address, user, *everywhere)
            if status:
                raise HeapwrightError(f"{version()}: cannot set a hook (error {status}); {REMEDY}")

    def emulate(self) -> None:
        """Run from reset to hw_done()."""
        start, counter = reset(self.core, self.image)
        if stopped := run_core(self.core, start, self.image.symbols["hw_done"], counter):
            raise HeapwrightError(f"{version()}: {_FAILURE}: {stopped} after {self._progress()}")
        if self.counter.outside:
            raise HeapwrightError(f"{version()}: code ran outside the image; nothing was counted")

    def _progress(self) -> str:
        return f"{max(self.counter.count - STUBS, 0):,} calls"

    def results(self) -> BoardRun:
        """Read back what the driver and the counter wrote."""
        layout = self.given.layout
        header = FEED.unpack(bytes(self.core.mem_read(self.cpu.memory.slow, FEED.size)))
        stub_value, stack_pointer, taken, started = header[6:]
        count = len(self.given.events) if started else 0
        ticks = np.frombuffer(self.core.mem_read(layout.ticks, 4 * (count + STUBS)), np.uint32)
        performed, refused = split_ticks(ticks[STUBS:])
        rows = self.calls[: STUBS + len(performed)].astype(np.int64)
        counts: dict[str, NDArray[np.int64] | None] = {key: rows[STUBS:, i] for i, key in enumerate(COUNTS)}
        lowest = rows[STUBS:, 5]
        counts["stack_bytes"] = np.where(lowest == 0xFFFFFFFF, 0, stack_pointer - lowest)
        if not self.memory:
            counts |= dict.fromkeys(("loads", "stores", "arena_loads", "arena_stores", "stack_bytes"))
        if self.cpu.timing in ("HW_RISCV", "HW_THUMB_UNTIMED"):
            counts |= dict.fromkeys(("cycles_minimum", "cycles_nominal", "cycles_maximum"))
        arena = np.frombuffer(self.core.mem_read(layout.arena, self.given.arena_used), np.uint8)
        stubs = tuple(int(row) for row in rows[:STUBS, 0])
        return BoardRun(performed, refused, counts, stubs, stub_value, bool(started), taken, arena)


def _library(unicorn: Any) -> Any:
    """Unicorn's C library as its binding loaded it: the module that holds it moved between versions."""
    for module in ("unicorn.unicorn_py3.unicorn", "unicorn.unicorn"):
        try:
            result = importlib.import_module(module)
        except ImportError:
            continue
        library = getattr(result, "uclib", None) or getattr(result, "_uc", None)
        if library is not None:
            import ctypes

            return ctypes.CDLL(library._name)
    raise HeapwrightError(f"{version()}: its C library was not found; {REMEDY}")
