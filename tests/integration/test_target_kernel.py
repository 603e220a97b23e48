"""`heapwright measure --platform freertos`: what calls take in the kernel, lock included, and in a program there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from needed import needs, tool
from platform_builds import BOARDS, CORTEX_M3, PICOLIBC, emulate, picolibc_memory, run
from test_board_hooks import ARENA, TRACED, firmware, hooks, imported

import heapwright as hw
from heapwright.files.errors import HeapwrightError
from heapwright.traces.trace import Trace

HEAP4 = "lib:freertos-heap4"
HEAPS = (HEAP4, "tlsf", "all-round")
LOCKS = ("scheduler", "critical")
INSTRUCTION = ("-icount", "shift=7,sleep=off")
"""128 ns, 3.2 ticks of the board's 25 MHz: one call is timed exactly."""
IN_ORDER = "-DconfigUSE_TIME_SLICING=0"
"""What the program's tasks do does not depend on how long a call takes."""
TICKS_PER_INSTRUCTION = 3.2


class Timed(NamedTuple):
    """Instructions of a malloc and of a free, on average, as a program's timer told."""

    malloc: float
    free: float


@pytest.fixture(scope="module")
def packets(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The calls of a program of tasks and queues, as its hooks told them."""
    folder = tmp_path_factory.mktemp("packets")
    sources, wrap = hooks("freertos", folder / "trace")
    heap4 = kernel / "portable/MemMang/heap_4.c"
    return imported(folder, firmware(kernel, folder, heap4, ARENA, [IN_ORDER, *sources, wrap]))


def measured(heap: str, trace: Trace, kernel: Path, lock: str, **options: Any) -> dict[str, Any]:
    return hw.measure(heap, trace, platform="freertos", kernel=kernel, lock=lock, **options)


def means(found: dict[str, Any]) -> Timed:
    return Timed(*(found["calls"][kind]["instructions_mean"] for kind in ("malloc", "free")))


def timed(heap: Path, kernel: Path, folder: Path, lock: str) -> Timed:
    """The same program, with the kernel's tick on, while it times its own calls."""
    port = kernel / "portable/GCC/ARM_CM3"
    flags = [*CORTEX_M3, "-Os", "-DNDEBUG", "-DTIMED", *PICOLIBC, picolibc_memory(0, 0x20000000), "-Wall", "-Wextra"]
    flags += [f"-DconfigTOTAL_HEAP_SIZE={ARENA}", IN_ORDER, f"-I{heap.parent}"]
    flags += [f"-isystem{kernel / 'include'}", f"-isystem{port}", f"-I{BOARDS / 'freertos'}"]
    flags += ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]  # without them globals share a base
    flags += ["-DAPP_FREERTOS_CRITICAL=1"] if lock == "critical" else []
    own = [TRACED / "freertos_packets.c", TRACED / "timed_calls.c", heap]
    files = [*own, *(kernel / name for name in ("tasks.c", "queue.c", "list.c")), port / "port.c"]
    wrap = "-Wl,--wrap=pvPortMalloc,--wrap=vPortFree"
    run([tool("arm-none-eabi-gcc"), *flags, *files, wrap, "-o", "timed.elf"], folder)
    said = emulate(folder / "timed.elf", more=INSTRUCTION)
    told = re.search(r"^ticks: malloc (\d+) of (\d+), free (\d+) of (\d+), empty (\d+) of (\d+)$", said, re.MULTILINE)
    assert told
    numbers = list(map(int, told.groups()))
    malloc, free, empty = (ticks / calls for ticks, calls in zip(numbers[::2], numbers[1::2], strict=True))
    return Timed((malloc - empty) / TICKS_PER_INSTRUCTION, (free - empty) / TICKS_PER_INSTRUCTION)


@pytest.mark.parametrize(("heap", "lock"), [(HEAP4, "scheduler"), ("tlsf", "scheduler"), ("tlsf", "critical")])
def test_a_timer_in_a_program_tells_the_same(
    heap: str, lock: str, packets: Trace, kernel: Path, tmp_path: Path
) -> None:
    file = kernel / "portable/MemMang/heap_4.c"
    if heap != HEAP4:
        hw.generate(heap, tmp_path, platform="freertos")
        file = tmp_path / "app_freertos.c"
    predicted, told = means(measured(heap, packets, kernel, lock)), timed(file, kernel, tmp_path, lock)
    print(heap, lock, predicted, told)
    assert predicted.malloc == pytest.approx(told.malloc, rel=0.05)
    assert predicted.free == pytest.approx(told.free, rel=0.05)
