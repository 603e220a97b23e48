"""`heapwright hooks`: firmware reports its heap calls, which go through import, explore and back into the firmware."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import originals
import pytest
from c_programs import LEVEL
from metric_values import known
from platform_builds import BOARDS, CORTEX_M3, PICOLIBC, cross_compiler, emulate, fetched, picolibc_memory, run
from tool_requirements import programs_of_32_bits

import heapwright as hw
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

TRACED = BOARDS / "traced"
NEWLIB = ("-nostartfiles", "--specs=nosys.specs", "-T", str(BOARDS / "mps2.ld"), str(BOARDS / "mps2_start.c"))
ARENA = 65536
STEADY = ("-icount", "shift=0,sleep=off")
"""An instruction takes 1 ns, so that each run is as the one before."""
INSTRUCTIONS_A_TICK = 40
"""Of the board's 25 MHz."""
TIMED_CALLS = 2000


class Library(NamedTuple):
    """How a program is built with a C library, and what a call costs more with its hooks, in instructions."""

    flags: Sequence[str]
    cost: int


LIBRARIES = {
    "newlib": Library((*CORTEX_M3, *NEWLIB), 124),
    "newlib-nano": Library((*CORTEX_M3, "--specs=nano.specs", *NEWLIB), 124),
    "picolibc": Library((*CORTEX_M3, *PICOLIBC, picolibc_memory(0, 0x20000000)), 122),
}
LIBC_CALLS = [
    (MALLOC, 0, 24),
    (CALLOC, 1, 120),
    (MALLOC, 2, 5),
    (MALLOC, 3, 100),
    (MALLOC, 4, 5),
    (FREE, 1, 0),
    (FREE, 2, 0),
    (MALLOC, 5, 77),
    (FREE, 5, 0),
    (REALLOC, 4, 6),
    (FREE, 4, 0),
    (FREE, 3, 0),
]
"""What libc_calls.c asks for where 2 MB are too much. The object whose realloc failed is never freed."""

STAND_INS = {
    "zephyr": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 128),
        (MALLOC, 2, 7),
        (REALLOC, 0, 3000),
        (REALLOC, 0, 16),
        (FREE, 2, 0),
        (FREE, 1, 0),
        (FREE, 0, 0),
    ],
    "threadx": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 48),
        (FREE, 0, 0),
        (MALLOC, 2, 2000),  # it fails, and lives as those of the nearest sizes
        (FREE, 1, 0),
    ],
    "esp-idf": [
        (MALLOC, 0, 24),
        (MALLOC, 1, 11),
        (REALLOC, 0, 48),
        (FREE, 1, 0),
        (CALLOC, 2, 15),
        (MALLOC, 3, 64),
        (MALLOC, 4, 1000),  # it fails, and lives as those of the nearest sizes
        (FREE, 3, 0),
        (FREE, 0, 0),
        (FREE, 2, 0),
    ],
}


def calls(trace: Trace) -> list[tuple[int, int, int]]:
    """(op, object, size), 0 for that of a free."""
    columns = zip(trace.op, trace.objects()[0], trace.size, strict=True)
    return [(int(op), int(number), 0 if op == FREE else int(size)) for op, number, size in columns]


def imported(folder: Path, console: str) -> Trace:
    """The trace of what was printed, of which nothing may be missing."""
    log = folder / "console.log"
    log.write_text(console)
    trace = hw.import_log(log)
    assert trace.metadata["recorder"] == "board"
    assert trace.repairs == () and "caveats" not in trace.metadata
    return trace


def hooks(platform: str, folder: Path) -> tuple[list[str | Path], str]:
    """The hooks' sources with the flags for them, and the linker's flags that their page names."""
    folder.mkdir(exist_ok=True)
    sources: list[str | Path] = [path for path in hw.hooks(platform, folder) if path.suffix == ".c"]
    page = (folder / "app_trace_README.md").read_text()
    return ["-DTRACED", f"-I{folder}", *sources], ",".join(["-Wl", *dict.fromkeys(re.findall(r"--wrap=\w+", page))])


@pytest.mark.parametrize("name", LIBRARIES)
def test_calls_of_a_c_library_are_told_once_each(name: str, tmp_path: Path) -> None:
    sources, wrap = hooks(name, tmp_path)
    build: list[str | Path] = [
        cross_compiler(LIBRARIES[name].flags),
        "-Os",
        "-Wall",
        "-Wextra",
        TRACED / "libc_calls.c",
    ]
    run([*build, *LIBRARIES[name].flags, *sources, wrap, "-o", "calls.elf"], tmp_path)
    output = calls(imported(tmp_path, emulate(tmp_path / "calls.elf")))
    assert output[: len(LIBC_CALLS)] == LIBC_CALLS
    assert all(op == MALLOC for op, _, _ in output[len(LIBC_CALLS) :])  # the buffers of stdout


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_a_call_costs_more_is_as_the_docs_say(name: str, tmp_path: Path) -> None:
    sources, wrap = hooks(name, tmp_path)
    ticks = []
    for extra in ([], ["-DAPP_TRACE_RECORDS=4096", *sources, wrap]):
        build: list[str | Path] = [cross_compiler(LIBRARIES[name].flags), "-Os", "-DTIMED", TRACED / "libc_calls.c"]
        run([*build, *LIBRARIES[name].flags, *extra, "-o", "timed.elf"], tmp_path)
        said = emulate(tmp_path / "timed.elf", more=STEADY)
        (result,) = re.findall(r"^(\d+) ticks$", said, re.MULTILINE)
        ticks.append(int(result))
    assert (ticks[1] - ticks[0]) * INSTRUCTIONS_A_TICK / TIMED_CALLS == pytest.approx(LIBRARIES[name].cost, abs=1)


def firmware(kernel: Path, folder: Path, heap: Path, arena: int, more: Sequence[str | Path] = ()) -> str:
    """What the program of packets prints on a Cortex-M3 with a heap."""
    port = kernel / "portable/GCC/ARM_CM3"
    flags = [*CORTEX_M3, "-O1", "-Wall", "-Wextra", *PICOLIBC, picolibc_memory(0, 0x20000000)]
    flags += ["-ffunction-sections", "-Wl,--gc-sections", f"-DconfigTOTAL_HEAP_SIZE={arena}", f"-I{heap.parent}"]
    flags += [f"-isystem{kernel / 'include'}", f"-isystem{port}", f"-I{BOARDS / 'freertos'}"]
    files = [kernel / name for name in ("tasks.c", "queue.c", "list.c")]
    build = [cross_compiler(flags), *flags, *more, TRACED / "freertos_packets.c", heap, *files, port / "port.c"]
    run([*build, "-o", "firmware.elf"], folder)
    return emulate(folder / "firmware.elf", more=STEADY)


def counted(console: str) -> tuple[int, int, int]:
    """The kernel's mallocs, frees, and least bytes that ever were free."""
    result = re.search(r"^mallocs (\d+) frees (\d+) least (\d+)$", console, re.MULTILINE)
    assert result
    mallocs, frees, least = map(int, result.groups())
    return mallocs, frees, least


def test_the_whole_circle_with_freertos(kernel: Path, tmp_path: Path) -> None:
    sources, wrap = hooks("freertos", tmp_path / "trace")
    before = firmware(kernel, tmp_path, kernel / "portable/MemMang/heap_4.c", ARENA, [*sources, wrap])
    mallocs, frees, least = counted(before)
    trace = imported(tmp_path, before)
    ops = [op for op, _, _ in calls(trace)]
    assert (ops.count(MALLOC) + ops.count(CALLOC), ops.count(FREE)) == (mallocs, frees)
    assert trace.tid is not None and len(set(trace.tid.tolist())) == 5  # three makers, the consumer, and idle

    few = {"strategy": "random", "limit": 60, "copies": 0, "stress_test": False}
    study = hw.explore(trace, tmp_path / "study.duckdb", align=8, **few)  # type: ignore[arg-type]
    pick, heap4 = study.pick("balanced"), study["freertos-heap4"]
    assert known(pick.metrics["accesses"]) < known(heap4.metrics["accesses"])
    assert ARENA - least <= known(heap4.metrics["footprint_bytes"])  # what lived at once on the board
    fit = hw.fit(trace, pick.recipe)
    assert fit.smallest_arena_bytes
    hw.generate(pick.recipe, tmp_path / "heap", platform="freertos")
    arena = fit.smallest_arena_bytes * 11 // 10  # no two runs of tasks have the same peak
    after = firmware(kernel, tmp_path, tmp_path / "heap/app_freertos.c", arena)
    assert counted(after)[:2] == (mallocs, frees)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_board_tells_who_called(name: str, tmp_path: Path) -> None:
    sources, wrap = hooks(name, tmp_path)
    build: list[str | Path] = [cross_compiler(LIBRARIES[name].flags), "-Os", "-g", "-DAPP_TRACE_SITES=1"]
    build += [TRACED / "libc_calls.c", *LIBRARIES[name].flags, *sources, wrap]
    run([*build, "-o", "calls.elf"], tmp_path)
    (tmp_path / "console.log").write_text(emulate(tmp_path / "calls.elf"))
    trace = hw.import_log(tmp_path / "console.log", elf=tmp_path / "calls.elf")
    assert calls(trace)[: len(LIBC_CALLS)] == LIBC_CALLS
    assert trace.site is not None
    output = zip(calls(trace), [trace.sites[at].partition(" (")[0] for at in trace.site.tolist()], strict=True)
    requested = [site for (op, _, size), site in output if op != FREE and size != 5][:5]
    assert requested == ["main"] * 5  # what has 5 bytes is strdup's, which asks itself


def test_who_holds_the_peak_of_an_emulated_board(kernel: Path, tmp_path: Path) -> None:
    sources, wrap = hooks("freertos", tmp_path / "trace")
    heap = kernel / "portable/MemMang/heap_4.c"
    more = [*sources, wrap, "-g", "-DAPP_TRACE_SITES=1"]
    (tmp_path / "console.log").write_text(firmware(kernel, tmp_path, heap, ARENA, more))
    trace = hw.import_log(tmp_path / "console.log", elf=tmp_path / "firmware.elf")
    assert trace.repairs == () and "caveats" not in trace.metadata
    holders = {row["site"].partition(" ")[0] for row in hw.profile(trace)["at_peak"]}
    assert "make" in holders and holders < {"make", "main", "prvCreateTask", "xTaskCreate", "xQueueGenericCreate"}
    unnamed = hw.import_log(tmp_path / "console.log")
    assert len(unnamed.sites) >= len(trace.sites) and all(name[:2] in ("", "0x") for name in unnamed.sites)


@pytest.mark.parametrize("suite", ["trixie", "bookworm"])
def test_lwips_heap_and_pools_are_told(suite: str, tmp_path: Path) -> None:
    programs_of_32_bits(compiler="gcc")
    lwip = fetched(lambda: originals.lwip(suite))
    sources, wrap = hooks("lwip", tmp_path)
    core = [*sorted((lwip / "core").glob("*.c")), *sorted((lwip / "core/ipv4").glob("*.c"))]
    build: list[str | Path] = ["gcc", "-m32", LEVEL, "-w", f"-I{TRACED / 'lwip'}", f"-I{BOARDS / 'lwip'}"]
    build += ["-isystem", lwip / "include", *sources, TRACED / "lwip_packets.c", BOARDS / "lwip/system.c", *core]
    run([*build, wrap, "-o", "packets"], tmp_path)
    said = run(["./packets"], tmp_path)
    live: dict[int, int] = {}
    for op, number, size in calls(imported(tmp_path, said)):
        if op == FREE:
            del live[number]
        else:
            live[number] = size
    result = re.search(r"(\d+) received, (\d+) in pools, (\d+) bytes of the heap", said)
    assert result
    received, elements, heap_bytes = map(int, result.groups())
    assert received == 400
    waiting = sorted(live.values())[elements:]  # a pool's elements are smaller than any datagram here
    assert len(waiting) == 12
    assert 0 <= heap_bytes - sum((size + 3) // 4 * 4 + 8 for size in waiting) < 12 * 8


@pytest.mark.parametrize("platform", STAND_INS)
def test_calls_of_kernels_that_cannot_be_had_are_told_with_a_stand_in(platform: str, tmp_path: Path) -> None:
    programs_of_32_bits(compiler="gcc")
    sources, wrap = hooks(platform, tmp_path)
    board = TRACED / platform
    build = ["gcc", "-m32", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{board}", *sources]
    run([*build, *board.glob("*.c"), wrap, "-o", "calls"], tmp_path)
    trace = imported(tmp_path, run(["./calls"], tmp_path))
    assert calls(trace) == STAND_INS[platform]
    assert trace.size[trace.failed > 0].tolist() == {"threadx": [2000], "esp-idf": [1000]}.get(platform, [])
    assert trace.ts_us is not None and trace.ts_us[-1] > 0


@pytest.mark.parametrize(("kind", "failed"), [("1 << 12 | 1 << 11", []), ("1 << 12", [1000]), ("1 << 11", [1000])])
def test_malloc_of_esp_idf_fails_once_with_external_memory(kind: str, failed: list[int], tmp_path: Path) -> None:
    """It asks for one kind of memory first, and then for any."""
    programs_of_32_bits(compiler="gcc")
    sources, wrap = hooks("esp-idf", tmp_path)
    board = TRACED / "esp-idf"
    options = ["-DCONFIG_SPIRAM_USE_MALLOC=1", f"-DKIND=({kind})"]
    run(
        ["gcc", "-m32", "-Wall", "-Werror", f"-I{board}", *options, *sources, *board.glob("*.c"), wrap, "-o", "c"],
        tmp_path,
    )
    trace = imported(tmp_path, run(["./c"], tmp_path))
    assert trace.size[trace.failed > 0].tolist() == failed


def test_one_heap_of_zephyr_alone(tmp_path: Path) -> None:
    programs_of_32_bits(compiler="gcc")
    sources, wrap = hooks("zephyr", tmp_path)
    board = TRACED / "zephyr"
    only = ["-DAPP_TRACE_HEAP=(&second)", "-include", "zephyr/sys/sys_heap.h", "-include", "second.h"]
    (tmp_path / "second.h").write_text("extern struct sys_heap second;\n")
    run(["gcc", "-m32", f"-I{board}", "-I.", *only, *sources, *board.glob("*.c"), wrap, "-o", "calls"], tmp_path)
    assert calls(imported(tmp_path, run(["./calls"], tmp_path))) == [(MALLOC, 0, 7), (FREE, 0, 0)]
