"""Builds and runs the C test programs in tests/c, and hands them policies."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from heapwright._native import ffi
from heapwright.recipes.policy import policy_struct
from heapwright.recipes.recipe import Recipe

ROOT = Path(__file__).resolve().parents[1]
CSRC = ROOT / "csrc"
COMPILER = os.environ.get("CC", "cc")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
UNCHECKED = "-DAPP_HEAP_ALIGN_UNCHECKED"
"""Lets a heap that is generated for a smaller target, with the prefix app, be compiled for this host."""
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compile_c(output: Path, *sources: str | Path, flags: Iterable[str] = (), compiler: str = COMPILER) -> Path:
    """Compile tests/c sources with the core's headers; the compiler's words are the failure's message."""
    files = [str(source if isinstance(source, Path) else ROOT / "tests" / "c" / source) for source in sources]
    include = [f"-I{CSRC}", f"-I{ROOT / 'tests' / 'c'}"]
    done = subprocess.run([compiler, *flags, *include, *files, "-o", str(output)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def policy_bytes(recipe: Recipe) -> bytes:
    """The recipe's struct hw_policy as it lies in memory on this host."""
    return bytes(ffi.buffer(policy_struct(recipe)))


def write_heaps(path: Path, heaps: Iterable[tuple[int, Recipe]]) -> Path:
    """A file of records: bytes of an arena as uint32_t, struct hw_policy."""
    path.write_bytes(b"".join(struct.pack("=I", arena) + policy_bytes(recipe) for arena, recipe in heaps))
    return path
