"""`heapwright measure --platform freertos`: what calls take in the kernel, lock included, and in a program there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from platform_builds import BOARDS, CORTEX_M3, PICOLIBC, cross_compiler, emulate, picolibc_memory, run
from test_board_hooks import ARENA, TRACED, firmware, hooks, imported
from tool_requirements import needs

import heapwright as hw
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

HEAP4 = "lib:freertos-heap4"
EXAMPLE = Path(__file__).parents[2] / "examples/mosquitto_broker.parquet"
CONFIG = BOARDS / "freertos/FreeRTOSConfig.h"
INSTRUCTION = ("-icount", "shift=7,sleep=off")
"""128 ns, 3.2 ticks of the board's 25 MHz: one call is timed exactly."""
IN_ORDER = "-DconfigUSE_TIME_SLICING=0"
"""What the program's tasks do does not depend on how long a call takes."""
TICKS_PER_INSTRUCTION = 3.2


LIKE_A_DEMO = """
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include <stdint.h>
#define __NVIC_PRIO_BITS 3
#define configPRIO_BITS 3
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 1
#define configUSE_TICK_HOOK 1
#define configUSE_MALLOC_FAILED_HOOK 1
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configUSE_TRACE_FACILITY 1
#define configGENERATE_RUN_TIME_STATS 1
#define configUSE_TIMERS 1
#define configTIMER_TASK_PRIORITY (configMAX_PRIORITIES - 1)
#define configTIMER_QUEUE_LENGTH 20
#define configTIMER_TASK_STACK_DEPTH (configMINIMAL_STACK_SIZE * 2)
#define configUSE_16_BIT_TICKS 0
#define configCPU_CLOCK_HZ ((unsigned long)25000000)
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 10
#define configMINIMAL_STACK_SIZE 120
#define configTOTAL_HEAP_SIZE ((size_t)(60 * 1024))
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configKERNEL_INTERRUPT_PRIORITY (7 << (8 - configPRIO_BITS))
#define configMAX_SYSCALL_INTERRUPT_PRIORITY (5 << (8 - configPRIO_BITS))
void vAssertCalled(const char *file, uint32_t line);
#define configASSERT(x) if ((x) == 0) vAssertCalled(__FILE__, __LINE__)
void start_timer(void);
uint32_t timer_value(void);
#define portCONFIGURE_TIMER_FOR_RUN_TIME_STATS() start_timer()
#define portGET_RUN_TIME_COUNTER_VALUE() timer_value()
#define vPortSVCHandler SVC_Handler
#define xPortPendSVHandler PendSV_Handler
#define xPortSysTickHandler SysTick_Handler
#endif
"""


class Timed(NamedTuple):
    """Instructions of a malloc and of a free, on average."""

    malloc: float
    free: float

    @property
    def pair(self) -> float:
        return self.malloc + self.free


@pytest.fixture(scope="module")
def packets(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The calls of a program of tasks and queues, as its hooks reported them."""
    folder = tmp_path_factory.mktemp("packets")
    sources, wrap = hooks("freertos", folder / "trace")
    heap4 = kernel / "portable/MemMang/heap_4.c"
    return imported(folder, firmware(kernel, folder, heap4, ARENA, [IN_ORDER, *sources, wrap]))


def measured(heap: str, trace: Trace | Path, kernel: Path, lock: str, **options: Any) -> dict[str, Any]:
    return hw.measure(heap, trace, platform="freertos", kernel=kernel, lock=lock, **options)


def means(found: dict[str, Any]) -> Timed:
    return Timed(*(found["calls"][kind]["instructions_mean"] for kind in ("malloc", "free")))


def timed(heap: Path, kernel: Path, folder: Path, lock: str, asserts: bool) -> Timed:
    """The same program, with the kernel's tick on, while it times its own calls."""
    port = kernel / "portable/GCC/ARM_CM3"
    flags = [*CORTEX_M3, "-Os", "-DTIMED", *PICOLIBC, picolibc_memory(0, 0x20000000), "-Wall", "-Wextra"]
    flags += [f"-DconfigTOTAL_HEAP_SIZE={ARENA}", IN_ORDER, f"-I{heap.parent}"]
    flags += [f"-isystem{kernel / 'include'}", f"-isystem{port}", f"-I{BOARDS / 'freertos'}"]
    flags += ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]  # without them globals share a base
    flags += ["-DAPP_FREERTOS_CRITICAL=1"] if lock == "critical" else []
    flags += [] if asserts else ["-DNDEBUG"]
    own = [TRACED / "freertos_packets.c", TRACED / "timed_calls.c", heap]
    files = [*own, *(kernel / name for name in ("tasks.c", "queue.c", "list.c")), port / "port.c"]
    wrap = "-Wl,--wrap=pvPortMalloc,--wrap=vPortFree"
    run([cross_compiler(flags), *flags, *files, wrap, "-o", "timed.elf"], folder)
    said = emulate(folder / "timed.elf", more=INSTRUCTION)
    output = re.search(r"^ticks: malloc (\d+) of (\d+), free (\d+) of (\d+), empty (\d+) of (\d+)$", said, re.MULTILINE)
    assert output
    numbers = list(map(int, output.groups()))
    malloc, free, empty = (ticks / calls for ticks, calls in zip(numbers[::2], numbers[1::2], strict=True))
    return Timed((malloc - empty) / TICKS_PER_INSTRUCTION, (free - empty) / TICKS_PER_INSTRUCTION)


@pytest.mark.parametrize(
    ("heap", "lock", "asserts"),
    [(HEAP4, "scheduler", True), ("all-round", "critical", False)],
)
def test_a_timer_in_a_program_tells_the_same(
    heap: str, lock: str, asserts: bool, packets: Trace, kernel: Path, tmp_path: Path
) -> None:
    file = kernel / "portable/MemMang/heap_4.c"
    if heap != HEAP4:
        hw.generate(heap, tmp_path, platform="freertos")
        file = tmp_path / "app_freertos.c"
    predicted = means(measured(heap, packets, kernel, lock, config=CONFIG if asserts else None))
    output = timed(file, kernel, tmp_path, lock, asserts)
    assert predicted.malloc == pytest.approx(output.malloc, rel=0.05)
    assert predicted.free == pytest.approx(output.free, rel=0.05)


def test_a_pair_takes_fewer_instructions_than_heap_4s(kernel: Path) -> None:
    """docs/platforms.md has these numbers."""
    needs("arm-none-eabi-gcc", "qemu-system-arm")
    heap4, ours = (means(measured(heap, EXAMPLE, kernel, "critical")).pair for heap in (HEAP4, "all-round"))
    assert ours < 0.63 * heap4


def test_the_smallest_core_is_measured_with_a_compiler_that_needs_no_package(packets: Trace, kernel: Path) -> None:
    result = measured("tlsf", hw.cut(packets, first=500), kernel, "critical", cpu="cortex-m0plus", compiler="zig")
    assert (result["platform"], result["lock"], result["failed"]) == ("freertos", "critical", 0)
    assert result["prediction"]["metadata_equal"]


def test_an_application_s_configuration_brings_its_asserts(packets: Trace, kernel: Path, tmp_path: Path) -> None:
    """With hooks, timers and statistics that no file here has, and a board's own words for handlers and priorities."""
    config = tmp_path / "FreeRTOSConfig.h"
    config.write_text(LIKE_A_DEMO)
    few = hw.cut(packets, first=500)
    without, asserting = (
        means(measured("all-round", few, kernel, "scheduler", config=item)) for item in (None, config)
    )
    assert 10 < asserting.malloc - without.malloc < 30
    assert 10 < asserting.free - without.free < 30


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"platform": "zephyr"}, "zephyr: no kernel of it can be run; valid: freertos"),
        ({"kernel": None}, "no FreeRTOS kernel; git clone"),
        ({"kernel": "empty"}, "holds no FreeRTOS kernel: there is no tasks.c"),
        ({"config": "FreeRTOSConfig.h"}, "FreeRTOSConfig.h: no such file"),
        ({"lock": "mutex"}, "mutex: no such lock; valid: scheduler, critical"),
        ({"cpu": "rv32imac"}, "rv32imac: FreeRTOS is run on cortex-m3, cortex-m4, cortex-m0plus alone"),
        ({"backend": "unicorn"}, "unicorn: takes no exceptions"),
        ({"heap": "lib:picolibc"}, "lib:picolibc: goes into no kernel"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(
    wrong: dict[str, Any], says: str, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FREERTOS_KERNEL_PATH", raising=False)
    given: dict[str, Any] = {"heap": "tlsf", "platform": "freertos", "kernel": kernel, **wrong}
    with pytest.raises(HeapwrightError) as raised:
        hw.measure(given.pop("heap"), EXAMPLE, **given)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
