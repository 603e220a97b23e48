"""Images in which an operating system's kernel runs: its heap is called from a task, lock included."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from heapwright._measure.boards.compilers import LEVELS
from heapwright._measure.boards.image import (
    DRIVER,
    BoardHeap,
    Image,
    Size,
    Workshop,
    link_alone,
    named_nowhere,
    undefined,
)
from heapwright._support.errors import HeapwrightError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapwright._measure.boards.cpus import Cpu
    from heapwright._measure.boards.feed import FeedLayout

PLATFORM = "freertos"
"""The platform whose kernel can be run."""

Lock = Literal["scheduler", "critical"]
"""What a call of the heap takes: the scheduler suspended, or a critical section, which masks interrupts."""

FOLDER = "FREERTOS_KERNEL_PATH"
"""The environment variable by which builds of FreeRTOS name the kernel's folder."""

OWN_HEAPS = {"freertos-heap2": "heap_2.c", "freertos-heap4": "heap_4.c"}
"""Heaps in the kernel's own folder, by what follows `lib:`."""

_HERE = DRIVER / "freertos"
_PORTS = {"cortex-m3": "ARM_CM3", "cortex-m4": "ARM_CM3", "cortex-m0plus": "ARM_CM0"}
_ALIGN = 8
_SUPPORT = ("memcpy", "memset")
_CRITICAL = ("-DHEAP_CRITICAL", "-DTARGET_FREERTOS_CRITICAL=1")


@dataclass(frozen=True)
class Kernel:
    """The sources of FreeRTOS' kernel, and the lock that calls of the heap take in it.

    `config`: an application's FreeRTOSConfig.h; None for one in which asserts and trace macros are empty.
    """

    folder: Path
    lock: Lock
    config: Path | None = None

    @classmethod
    def of(
        cls,
        platform: str,
        folder: str | os.PathLike[str] | None = None,
        lock: str = "scheduler",
        config: str | os.PathLike[str] | None = None,
    ) -> Kernel:
        """The kernel of a platform, in that folder or where the environment variable FREERTOS_KERNEL_PATH says.

        Raises HeapwrightError, with what to give, where there is none, and where there is no such `config`;
        ParameterError for a platform that has none to run, and for a lock that is none.
        """
        if platform != PLATFORM:
            raise ParameterError(
                f"{platform}: no kernel of it can be run; valid: {PLATFORM}; leave it out to measure the heap alone",
                parameter="platform",
            )
        if lock not in get_args(Lock):
            raise ParameterError(f"{lock}: no such lock; {did_you_mean(lock, get_args(Lock))}", parameter="lock")
        named = folder or os.environ.get(FOLDER)
        if not named:
            raise HeapwrightError(
                "no FreeRTOS kernel; git clone https://github.com/FreeRTOS/FreeRTOS-Kernel, and name its folder or set "
                f"{FOLDER}",
                parameter="kernel",
            )
        if not (Path(named) / "tasks.c").is_file():
            raise HeapwrightError(f"{named}: holds no FreeRTOS kernel: there is no tasks.c", parameter="kernel")
        if config is not None and not Path(config).is_file():
            raise HeapwrightError(f"{config}: no such file; the application's FreeRTOSConfig.h", parameter="config")
        own = Path(config).resolve() if config is not None else None
        return cls(Path(named).resolve(), "critical" if lock == "critical" else "scheduler", own)

    def own_heap(self, name: str) -> BoardHeap | None:
        """The kernel's own heap of that name, as in `lib:freertos-heap4`; None where it is none of `OWN_HEAPS`.

        Raises HeapwrightError where the kernel's folder lacks the file.
        """
        file = OWN_HEAPS.get(name.removeprefix("lib:"))
        if file is None or not name.startswith("lib:"):
            return None
        path = self.folder / "portable" / "MemMang" / file
        if not path.is_file():
            raise HeapwrightError(f"{name}: {path} is missing", parameter="kernel")
        return BoardHeap(name, file=path)

    def port(self, cpu: Cpu) -> Path:
        """The folder of the port for a processor. Raises HeapwrightError where it has none that can be run."""
        if cpu.name not in _PORTS:
            known = ", ".join(_PORTS)
            raise HeapwrightError(f"{cpu.name}: FreeRTOS is run on {known} alone", parameter="cpu")
        return self.folder / "portable" / "GCC" / _PORTS[cpu.name]


@dataclass
class KernelWorkshop(Workshop):
    """A `Workshop` whose images have the kernel around the heap, which lies in the kernel's file for it."""

    kernel: Kernel | None = None

    def image(self, level: str = LEVELS[0], layout: FeedLayout | None = None) -> Image:
        """The heap in an arena of this layout, the kernel, and a task that replays, all compiled at this level."""
        assert layout is not None and self.kernel is not None
        port = self.kernel.port(self.compiler.cpu)
        sources = [self.kernel.folder / name for name in ("tasks.c", "list.c")]
        sources += [file for name in ("port.c", "portasm.c") if (file := port / name).is_file()]
        flags = self._flags(level)
        driver = ("-Os", "-DHEAP_FREERTOS", f"-DHEAP_ALIGN={_ALIGN}u", "-Dhw_main=hw_replay")
        objects = [
            self._compile(DRIVER / "driver.c", *driver),
            *(self._compile(source, *flags) for source in (_HERE / "kernel.c", *sources)),
            self._heap_object(level, layout.arena_bytes),
        ]
        name = f"kernel-{level}-{layout.arena:x}-{layout.arena_bytes:x}"
        objects += [self._written(name, f'__asm__(".global ucHeap\\nucHeap = {layout.arena:#x}\\n");\n')]
        if self.kernel.config:
            objects += [self._empty(named_nowhere(self.compiler, objects), f"{name}-application")]
        return link_alone(self.compiler, objects, self.folder / f"{name}.elf")

    def size_of(self, entries: tuple[str, ...], level: str = LEVELS[0]) -> Size:
        """What the file of the heap links for these calls; the kernel's functions are not the heap's."""
        calls = {"malloc": "pvPortMalloc", "free": "vPortFree", "realloc": "pvPortMalloc"}
        kept = list(dict.fromkeys(calls[entry] for entry in entries))
        own = self._heap_object(level, 1 << 16)
        wanted = sorted(undefined(own) - set(_SUPPORT))
        empty = self._empty(wanted, "empty")
        name = f"size-{level}-{'-'.join(entries)}"
        return self._size_with([own, empty], [*wanted, *kept], name) - self._size_with([empty], wanted, f"{name}-empty")

    def _heap_object(self, level: str, arena_bytes: int) -> Path:
        flags = [*self._flags(level), f"-DHEAP_BYTES={arena_bytes}u"]
        if self.heap.file:
            return self._compile(_HERE / "heap.c", *flags, f'-DHEAP_FILE="{self.heap.file}"')
        return self._compile(self.folder / f"target_{PLATFORM}.c", *flags, f"-I{self.folder}")

    def _empty(self, functions: Sequence[str], name: str) -> Path:
        """A file of functions that do nothing."""
        return self._written(name, "".join(f"void {function}(void) {{}}\n" for function in functions))

    def _written(self, name: str, text: str) -> Path:
        """A file of this text, compiled."""
        source = self.folder / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        return self._compile(source)

    def _flags(self, level: str) -> list[str]:
        assert self.kernel is not None
        folders = [_HERE, self.kernel.folder / "include", self.kernel.port(self.compiler.cpu)]
        locked = _CRITICAL if self.kernel.lock == "critical" else ()
        config = [f'-DHEAP_CONFIG="{self.kernel.config}"'] if self.kernel.config else []
        return [f"-{level}", *locked, *config, *(f"-I{folder}" for folder in folders)]

    def _heap_sources(self) -> list[Path]:
        for name, text in (self.heap.files or {}).items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return []
