"""The core's sources, and what the build read of them: to read them again takes longer than to write a heap.

The build leaves what it read in a file next to the native module (native/build_parsed.py). Where the sources or the
reader are others than those of the build, they are read when they are first needed.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from heapwright._generate import syntax as c
from heapwright._generate.pasting import written_out
from heapwright._support.errors import HeapwrightError

CORE = "threads.h"
"""The file of the core that includes all others, directly or not."""
PARSED = "core.pickle"
EVENTS = {
    "ALLOCATED": "heap, pointer, size",
    "RESIZED": "heap, from, pointer, size",
    "FREED": "heap, pointer",
    "REFUSED": "heap, size",
}
"""Hooks of csrc/events.h, which the program may define, with their parameters."""

_INCLUDED = re.compile(r'^#include "(.*)"', re.MULTILINE)
_READERS = ("parse.py", "pasting.py", "syntax.py")

Sources = Sequence[tuple[str, str]]
"""(file name, text) in the order of inclusion."""


def core_directory() -> Path:
    """Where the core's sources lie: in the checkout, or installed with this package."""
    package = Path(__file__).resolve().parents[1]
    for directory in (package.parents[1] / "csrc", package / "csrc"):
        if (directory / "heap.h").is_file():
            return directory
    raise HeapwrightError(f"{package / 'csrc'}: the C core is missing; install heapwright again")


@lru_cache(maxsize=1)
def core_sources() -> tuple[tuple[str, str], ...]:
    """(file name, text) of the core's files in the order of inclusion."""
    directory = core_directory()
    results: dict[str, str] = {}

    def read(name: str) -> None:
        text = (directory / name).read_text(encoding="utf-8")
        for included in _INCLUDED.findall(text):
            if included not in results:
                read(included)
        results[name] = text

    read(CORE)
    return tuple(results.items())


def defined(shared: bool) -> frozenset[str]:
    """The HW_ names that a generated heap takes as defined; ``shared``: one whose threads have caches."""
    names = ("ASSERT", "MISUSED", "SECRET", "NOTIFY", *EVENTS, *(["SHARED"] if shared else []))
    return frozenset(f"HW_{name}" for name in names)


def parsed(sources: Sources, defines: frozenset[str]) -> list[c.SourceFile]:
    """The files as `heapwright._generate.parse.parse` reads them, which the build may have done; GrammarError."""
    digest, kept = _kept()
    names = tuple(sorted(defines))
    return kept[names] if names in kept and digest == _digest(sources) else _parsed(sources, defines)


def write_parsed(path: Path) -> None:
    """Read the core as generated heaps have it, and leave that at ``path``."""
    sources = core_sources()
    results = {tuple(sorted(names)): _parsed(sources, names) for names in map(defined, (False, True))}
    path.write_bytes(pickle.dumps((_digest(sources), results), protocol=5))


def _parsed(sources: Sources, defines: frozenset[str]) -> list[c.SourceFile]:
    from heapwright._generate.parse import parse

    # A file that does not name a define is the same with and without it: it is read once for both.
    return [parse(file, text, frozenset(n for n in defines if n in text)) for file, text in written_out(sources)]


def _digest(sources: Sources) -> str:
    """A digest of these sources and this reader."""
    here = Path(__file__).parent
    result = sha256(b"".join((here / file).read_bytes() for file in _READERS))
    for file, text in sources:
        result.update(f"\n{file}\n{text}".encode())
    return result.hexdigest()


@lru_cache(maxsize=1)
def _kept() -> tuple[str, Mapping[tuple[str, ...], list[c.SourceFile]]]:
    """What the build left, with its digest; nothing where it left nothing."""
    import heapwright

    for folder in heapwright.__path__:
        path = Path(folder, PARSED)
        if path.is_file():
            result: Any = pickle.loads(path.read_bytes())
            return result  # type: ignore[no-any-return]
    return "", {}
