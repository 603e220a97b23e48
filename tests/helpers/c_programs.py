"""Builds and runs the C test programs in tests/c, and hands them policies."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from run_length import brief

from heapwright._native import ffi
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]
CSRC = Path(os.environ.get("HEAPWRIGHT_TESTS_CSRC", ROOT / "csrc"))
COMPILER = os.environ.get("CC", "cc")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
UNCHECKED = "-DAPP_HEAP_ALIGN_UNCHECKED"
"""Lets a heap that is generated for a smaller target, with the prefix app, be compiled for this host."""
LEVEL = brief("-O0", "-O1")
"""How programs are compiled of which no test asks how fast, or how large, they are."""
SANITIZED = (LEVEL, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ASSERTED = "-DHW_ASSERT(condition)=((condition) ? (void)0 : __builtin_trap())"
"""Looks at what the core asserts, which goes unlooked at elsewhere."""


def compile_c(output: Path, *sources: str | Path, flags: Iterable[str] = (), compiler: str = COMPILER) -> Path:
    """Compile tests/c sources with the core's headers; the compiler's words are the failure's message.

    Once in a run, where nothing but the core and tests/c goes into it.
    """
    flags = list(flags)
    files = [str(source if isinstance(source, Path) else ROOT / "tests" / "c" / source) for source in sources]
    include = [f"-I{CSRC}", f"-I{ROOT / 'tests' / 'c'}"]
    command = [compiler, *flags, *include, *files]
    if any(flag.startswith("-I") for flag in flags) or any(isinstance(source, Path) for source in sources):
        return _compiled(command, output)
    with kept_once(output, "\0".join([*command, _digest()])) as kept:
        if not kept.exists():
            _compiled(command, kept)
        shutil.copy2(kept, output)
    return output


def _compiled(command: list[str], output: Path) -> Path:
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


@cache
def _digest() -> str:
    """Of all that a program of tests/c is made of."""
    sources = sorted(path for folder in (CSRC, ROOT / "tests" / "c") for path in folder.rglob("*.[ch]"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


@contextlib.contextmanager
def kept_once(output: Path, key: str) -> Iterator[Path]:
    """Where what this run makes once is kept for all processes that test, to be made or read by one at a time."""
    base = next((path for path in output.parents if re.fullmatch(r"pytest-\d+", path.name)), output.parent)
    folder = base / "compiled"
    folder.mkdir(exist_ok=True)
    kept = folder / hashlib.sha256(key.encode()).hexdigest()
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept


def policy_bytes(recipe: Recipe) -> bytes:
    """The recipe's struct hw_policy as it lies in memory on this host."""
    return bytes(ffi.buffer(policy_struct(recipe)))


def write_heaps(path: Path, heaps: Iterable[tuple[int, Recipe]]) -> Path:
    """A file of records: bytes of an arena as uint32_t, struct hw_policy."""
    path.write_bytes(b"".join(struct.pack("=I", arena) + policy_bytes(recipe) for arena, recipe in heaps))
    return path
