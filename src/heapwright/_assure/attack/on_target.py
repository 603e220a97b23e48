"""An attack on an emulated processor: each run restarts the same image, on memory that was cleared.

Every stretch of memory that the image has lies alone, so that an access which leaves the arena is a bus fault.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._assure.attack.faults import FAULTS, OUTCOMES, PREFIX, arena_bytes, flags, mapped_bytes
from heapwright._generate.emit import generate
from heapwright._measure.boards.compilers import find_compiler
from heapwright._measure.boards.cpus import cpu
from heapwright._measure.boards.image import Image, link_alone, no_lock
from heapwright._measure.boards.measure import find_backend
from heapwright._measure.boards.unicorn_backend import PAGE, open_core, reset, run_core
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

DRIVER = Path(__file__).with_name("on_target.c")

SECONDS, TIMES = 2.0, 10
"""Seconds, and a multiple of a run without a fault: a run that takes longer than both does not end."""

_FEED = struct.Struct("<13I")
_CALLS_AT = 0x1000
_ARENA_AT = 1 << 30
"""Where the calls and the arena lie, from the feed on."""

_READ, _WRITE, _EXECUTE = 1, 2, 4
_CRASHED = OUTCOMES.index("crashed")


class Target:
    """An emulated processor: `cpu_name` is a key of `cpus.CPUS`, `compiler` "gcc", "zig", or None for what there is.

    Raises HeapwrightError where a tool is missing: Unicorn runs it.
    """

    def __init__(self, cpu_name: str, compiler: str | None = None) -> None:
        self.cpu = cpu(cpu_name)
        self._compiler = find_compiler(self.cpu, compiler)
        find_backend(self.cpu, "unicorn")

    def commit(
        self, recipe: Recipe, records: NDArray[np.uint32], runs: int, seed: int, folder: Path
    ) -> dict[str, dict[str, int]]:
        """Outcome counts by fault (`Host.commit`); a run that faults the processor or does not end is a crash."""
        arena = arena_bytes(recipe, records)
        machine = _Machine(self._image(recipe, folder), records, arena, seed)
        machine.run_without_fault()
        results = {}
        for fault, name in enumerate(FAULTS):
            ended = [machine.run(fault, number) for number in range(runs)]
            counts = np.bincount(ended, minlength=len(OUTCOMES))
            results[name] = {"runs": runs, **{key: int(count) for key, count in zip(OUTCOMES, counts, strict=True)}}
        return results

    def _image(self, recipe: Recipe, folder: Path) -> Image:
        generate(recipe, folder, PREFIX)
        objects = []
        for source in (DRIVER, folder / f"{PREFIX}_heap.c"):
            objects.append(folder / f"{source.stem}.o")
            self._compiler.compile(
                source, objects[-1], ["-Os", *flags(recipe), *no_lock(PREFIX), f"-I{folder}", f"-I{DRIVER.parent}"]
            )
        return link_alone(self._compiler, objects, folder / "attack.elf")


class _Machine:
    """One emulated core with an image, the calls, and an arena."""

    def __init__(self, image: Image, records: NDArray[np.uint32], arena: int, seed: int) -> None:
        self._memory, self._seed, self._arena = image.compiler.cpu.memory, seed, arena
        self._core = open_core(image.compiler.cpu)
        self._calls = len(records)
        self._slots = int((records[:, 0] & 0x3FFFFFFF).max(initial=0)) + 1
        self._map(image, records)
        self._end = image.symbols["hw_done"]
        self._start, self._counter = reset(self._core, image)
        self._fresh = self._core.context_save()
        self._refused, self._seconds = 0, 600.0

    def _map(self, image: Image, records: NDArray[np.uint32]) -> None:
        memory, core = self._memory, self._core
        self._objects = memory.slow + _CALLS_AT + _pages(records.nbytes)
        self._objects_bytes = 12 * self._slots
        code = max(at + len(data) for at, data in image.segments) - memory.code
        core.mem_map(memory.code, _pages(code), _READ | _EXECUTE)
        core.mem_map(memory.fast, memory.arena - memory.fast, _READ | _WRITE)
        core.mem_map(memory.slow, _pages(self._objects + self._objects_bytes - memory.slow), _READ | _WRITE)
        core.mem_map(memory.slow + _ARENA_AT, mapped_bytes(self._arena), _READ | _WRITE)
        for at, data in image.segments:
            core.mem_write(at, data)
        core.mem_write(memory.slow + _CALLS_AT, records.tobytes())

    def run_without_fault(self) -> None:
        """Learn what the runs with a fault are compared with. Raises HeapwrightError where the heap fails by itself."""
        started = time.monotonic()
        outcome = self.run(len(FAULTS), 0)
        self._seconds = max(SECONDS, TIMES * (time.monotonic() - started))
        _, refused, fails = struct.unpack("<3I", self._core.mem_read(self._memory.slow + 36, 12))
        if outcome == _CRASHED:
            raise HeapwrightError(f"the attack failed: no heap in an arena of {self._arena:,} bytes")
        if fails:
            raise HeapwrightError("the attack failed: the heap fails without a fault")
        self._refused = refused

    def run(self, fault: int, number: int) -> int:
        """What came of one run: an index into OUTCOMES."""
        core, memory = self._core, self._memory
        core.mem_write(self._objects, bytes(self._objects_bytes))
        core.mem_write(memory.slow + _ARENA_AT, bytes(mapped_bytes(self._arena)))
        places = self._calls, memory.slow + _CALLS_AT, self._objects, self._slots, memory.slow + _ARENA_AT, self._arena
        chosen = fault, self._seed & 0xFFFFFFFF, number
        core.mem_write(memory.slow, _FEED.pack(*places, *chosen, 0, self._refused, 0, _CRASHED))
        core.context_restore(self._fresh)
        if run_core(core, self._start, self._end, self._counter, self._seconds):
            return _CRASHED
        return int(_FEED.unpack(core.mem_read(memory.slow, _FEED.size))[-1])


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE
