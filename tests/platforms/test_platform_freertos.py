"""The platform `freertos` in the kernel itself: on its POSIX port, and on an emulated Cortex-M3."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from c_programs import LEVEL
from object_cache import built
from platform_builds import BOARDS, CORTEX_M3, PICOLIBC, cross_compiler, emulate, picolibc_memory, run
from tool_requirements import tool

import heapwright as hw

CONFIG = BOARDS / "freertos"
SAID = "0 failures, 2 calls of the hook\n"
FLAGS = (LEVEL, "-Wall", "-Wextra", "-DAPP_TEST_QUIET", "-I.", f"-I{CONFIG}")
POSIX = "portable/ThirdParty/GCC/Posix"

CMAKE = """
cmake_minimum_required(VERSION 3.15)
project(firmware C)
add_library(freertos_config INTERFACE)
target_include_directories(freertos_config SYSTEM INTERFACE {config})
set(FREERTOS_PORT GCC_POSIX CACHE STRING "")
{heap}
add_subdirectory({kernel} kernel)
add_executable(firmware heap/app_freertos_test.c {config}/hooks.c)
target_include_directories(firmware PRIVATE heap)
target_compile_definitions(firmware PRIVATE APP_TEST_QUIET)
target_link_libraries(firmware freertos_kernel freertos_config pthread)
"""


def sources(kernel: Path, port: str, glue: str = "app_freertos.c") -> list[str | Path]:
    """The kernel, a port, the platform's files and the test."""
    files = [kernel / name for name in ("tasks.c", "queue.c", "list.c", f"{port}/port.c")]
    includes = [f"-isystem{kernel / 'include'}", f"-isystem{kernel / port}"]
    return [*includes, glue, "app_freertos_test.c", CONFIG / "hooks.c", *files]


def written(folder: Path, align: int, name: str = "tlsf", **keys: object) -> Path:
    """The platform's files for a heap of the zoo."""
    folder.mkdir(exist_ok=True)
    recipe = folder / "recipe.toml"
    recipe.write_text(hw.zoo(name).at_alignment(align).model_copy(update=keys).to_toml())
    hw.generate(recipe, folder, platform="freertos")
    return folder


def on_posix(kernel: Path, folder: Path) -> str:
    """What the test prints on this machine."""
    wait = kernel / POSIX / "utils"
    extra: list[str | Path] = [f"-isystem{wait}", wait / "wait_for_event.c", "-pthread", "-o", "test"]
    done = built([tool("gcc"), *FLAGS, *sources(kernel, POSIX), *extra], folder)
    assert done.returncode == 0, done.stderr
    return run(["./test"], folder)


@pytest.mark.parametrize("heap", ["tlsf", "victim-bins", "easyport-proposed"])
def test_tasks_allocate_on_the_posix_port(heap: str, kernel: Path, tmp_path: Path) -> None:
    assert on_posix(kernel, written(tmp_path, 16, heap)) == SAID


def test_the_kernels_cmake_takes_the_file_as_the_page_says(kernel: Path, tmp_path: Path) -> None:
    page = written(tmp_path / "heap", 16) / "app_README.md"
    (line,) = re.findall(r"^    (set\(FREERTOS_HEAP .*)$", page.read_text(), re.MULTILINE)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(config=CONFIG, kernel=kernel, heap=line))
    run([tool("cmake"), "-S", ".", "-B", "build"], tmp_path)
    run([tool("cmake"), "--build", "build"], tmp_path)
    assert run(["build/firmware"], tmp_path) == SAID


def test_a_heap_with_checks_passes_too(kernel: Path, tmp_path: Path) -> None:
    assert on_posix(kernel, written(tmp_path, 16, checks="frees")) == SAID


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return counted().free;", "return counted().free - 1;"),
        ("return counted().least_free;", "return counted().free;"),
        ("stats.xNumberOfFreeBlocks++;", ""),
    ],
)
def test_the_test_notices_wrong_statistics(right: str, wrong: str, kernel: Path, tmp_path: Path) -> None:
    glue = written(tmp_path, 16, "victim-bins") / "app_freertos.c"
    text = glue.read_text()
    assert right in text
    glue.write_text(text.replace(right, wrong))
    with pytest.raises(AssertionError, match="failures"):
        on_posix(kernel, tmp_path)


LINKED = (*PICOLIBC, picolibc_memory(0, 0x20000000), "-ffunction-sections", "-Wl,--gc-sections")


@pytest.mark.parametrize("lock", ["-DAPP_FREERTOS_CRITICAL=0", "-DAPP_FREERTOS_CRITICAL=1"])
def test_tasks_allocate_on_a_cortex_m3(lock: str, kernel: Path, tmp_path: Path) -> None:
    written(tmp_path, 8)
    flags = [*CORTEX_M3, *FLAGS, lock, *LINKED]
    files = sources(kernel, "portable/GCC/ARM_CM3")
    done = built([cross_compiler(flags), *flags, *files, "-o", "firmware.elf"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert emulate(tmp_path / "firmware.elf") == SAID


def test_a_port_that_aligns_to_more_does_not_compile(kernel: Path, tmp_path: Path) -> None:
    written(tmp_path, 8)
    macros = (kernel / POSIX / "portmacro.h").read_text()
    more = re.sub(r"(#define portBYTE_ALIGNMENT +)8\b", r"\g<1>16", macros)
    assert more != macros
    (tmp_path / "portmacro.h").write_text(more)
    with pytest.raises(AssertionError, match="the port wants objects aligned to more"):
        run([tool("gcc"), *FLAGS, "-DAPP_HEAP_ALIGN_UNCHECKED", "-c", *sources(kernel, POSIX)[:3]], tmp_path)
