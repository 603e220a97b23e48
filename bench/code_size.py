"""Bytes of Cortex-M code that malloc and free of a recipe take."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import heapwright as hw

COMPILER = "arm-none-eabi-gcc"
TARGET = ("-mcpu=cortex-m3", "-mthumb", "-Os", "-std=c11", "-ffreestanding", "-ffunction-sections")
"""thumbv7m, optimised for size."""


def malloc_and_free_bytes(recipe: hw.Recipe) -> int | None:
    """Bytes of code and constants that a firmware which calls malloc and free links; None without the compiler."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as name:
        folder = Path(name)
        hw.generate(recipe, folder, prefix="app")
        linked = [
            "-DAPP_HEAP_ALIGN_UNCHECKED",
            "-nostdlib",
            "-Wl,--gc-sections,--entry=app_malloc,--undefined=app_free",
        ]
        image = folder / "image"
        subprocess.run([compiler, *TARGET, *linked, str(folder / "app_heap.c"), "-o", str(image)], check=True)
        size = compiler.removesuffix("gcc") + "size"
        table = subprocess.run([size, str(image)], check=True, capture_output=True, text=True).stdout
    return int(table.splitlines()[1].split()[0])
