"""The platforms `newlib`, `newlib-nano` and `picolibc` on emulated boards: floats, each function, no second heap."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from platform_builds import BOARDS, CORTEX_M3, PICOLIBC, cross_compiler, emulate, picolibc_memory, run

import heapwright as hw

PRINTED = "12345.5000 5.000e-101\n"
NEWLIB = ("-nostartfiles", "--specs=nosys.specs", "-T", str(BOARDS / "mps2.ld"), str(BOARDS / "mps2_start.c"))


class Target(NamedTuple):
    """How a platform's files are built into a program, and where that runs."""

    platform: str
    flags: Sequence[str]
    align: int = 8
    compiler: str = "arm-none-eabi-gcc"
    machine: tuple[str, str] = ("mps2-an385", "arm")


TARGETS = {
    "newlib": Target("newlib", (*CORTEX_M3, "-DAPP_ARENA_BYTES=65536", *NEWLIB)),
    "newlib-nano": Target(
        "newlib-nano",
        (
            *(*CORTEX_M3, "--specs=nano.specs", "-u", "_printf_float"),
            *("-DAPP_ARENA_BEGIN=board_heap_begin", "-DAPP_ARENA_END=board_heap_end", *NEWLIB),
        ),
    ),
    "riot": Target(
        "riot",
        (
            *(*CORTEX_M3, "-DAPP_ARENA_BYTES=65536", f"-I{BOARDS / 'riot'}", str(BOARDS / "riot/kernel.c")),
            *("-Wl,--wrap=main", *NEWLIB),
        ),
    ),
    "picolibc": Target("picolibc", (*CORTEX_M3, *PICOLIBC, picolibc_memory(0, 0x20000000))),
    "picolibc-riscv": Target(
        "picolibc",
        ("-march=rv32imac", "-mabi=ilp32", *PICOLIBC, picolibc_memory(0x80000000, 0x80400000)),
        16,
        "riscv64-unknown-elf-gcc",
        ("virt", "riscv32"),
    ),
}


def built(target: Target, folder: Path, sources: Sequence[str]) -> Path:
    """An image of these files of the platform, and of others."""
    compiler = cross_compiler(target.flags, target.compiler)
    recipe = folder / "tlsf.toml"
    recipe.write_text(hw.zoo("tlsf").at_alignment(target.align).to_toml())
    hw.generate(recipe, folder, platform=target.platform)
    flags = ("-Os", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")
    run([compiler, *flags, *sources, *target.flags, "-o", "firmware.elf"], folder)
    return folder / "firmware.elf"


def second_allocator(target: Target, image: Path) -> str:
    """What the page's command finds in the image."""
    page = (image.parent / "app_README.md").read_text()
    (command,) = re.findall(r"^    arm-none-eabi-(nm .*)$", page, re.MULTILINE)
    nm = target.compiler.removesuffix("gcc") + command
    return subprocess.run(nm, shell=True, cwd=image.parent, capture_output=True, text=True, timeout=60).stdout


GLUE = {"newlib-nano": ("newlib",), "riot": ("newlib", "riot")}
"""Where it is not called as the platform is; the first has the test."""
AFTER = {"riot": r"locked\nheap: used \d+, most \d+, largest free \d+ \[bytes\]\n"}
"""What a stub of a system prints at the end."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_library_allocates_from_the_heap_alone(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    glue = [f"app_{part}" for part in GLUE.get(target.platform, (target.platform,))]
    image = built(target, tmp_path, ["app_heap.c", *(f"{part}.c" for part in glue), f"{glue[0]}_test.c"])
    assert second_allocator(target, image) == ""
    said = re.escape(f"{PRINTED}{glue[0]}: ok\n") + AFTER.get(name, "")
    assert re.fullmatch(said, emulate(image, *target.machine))


@pytest.mark.parametrize("name", TARGETS)
def test_the_pages_command_finds_a_second_allocator(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\nvoid *volatile kept;\nint main(void) { free(kept = malloc(100)); return 0; }\n"
    )
    image = built(target, tmp_path, ["main.c"])
    assert second_allocator(target, image) != ""
