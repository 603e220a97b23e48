"""Small allocators in C, good and bad ones, with their adapters, and short traces for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tool_requirements import programs_of_32_bits

from heapwright._heaps import heaps
from heapwright._heaps.foreign.adapter import WordSize
from heapwright._heaps.foreign.heap import ForeignHeap
from heapwright._measure.host.timing import time_heaps
from heapwright._traces.trace import Trace

BUMP = """
#include <stdint.h>
static unsigned char *next, *end;
static void bump_init(void *memory, size_t bytes) { next = memory; end = next + bytes; }
static void *bump_malloc(size_t size)
{
    size = (size + 7u) / 8u * 8u;
    if (size > (size_t)(end - next)) return 0;
    next += size;
    return next - size;
}
static void bump_free(void *pointer) { (void)pointer; }
"""
BUMP_TOML = """
style = "arena"
sources = ["bump.c"]
align = 8
init = "bump_init"
malloc = "bump_malloc"
free = "bump_free"
"""

Make = Callable[..., ForeignHeap]


def built_for(bits: int) -> WordSize:
    """32 or 64, where programs of that word size are built here."""
    if bits == 32:
        programs_of_32_bits()
        return 32
    return 64


def maker(folder: Path) -> Make:
    """Write an allocator and its adapter there, and find it as the command line would."""

    def heap(source: str = BUMP, toml: str = BUMP_TOML, word_size: WordSize = 64) -> ForeignHeap:
        (folder / "bump.c").write_text(source)
        (folder / "bump.toml").write_text(toml)
        result = heaps.resolve(str(folder / "bump.c"), word_size)
        assert isinstance(result, ForeignHeap)
        return result

    return heap


def replayed(calls: Trace, heap: ForeignHeap, *, time: bool = False, **options: Any) -> dict[str, Any]:
    """The heap's metrics; with `time` the host's, too."""
    metrics: dict[str, Any] = heap.replay(calls, **options)
    if time:
        metrics["ns_per_event"] = time_heaps(calls, {"heap": heap}, options.get("arena"))["heap"]
    return metrics


def trace(*calls: tuple[int, int, int], align: list[int] | None = None) -> Trace:
    """A trace of (operation, id, size)."""
    op, id, size = zip(*calls, strict=True)
    return Trace.from_columns(op=op, id=id, size=size, align=align, name="calls")


THREE = trace((0, 1, 20), (0, 2, 8), (3, 1, 0), (1, 3, 30))
"""malloc 20, malloc 8, free the first, calloc 30."""

BROKEN = {
    "crashed (SIGSEGV) in call 2 (free)": BUMP.replace("{ (void)pointer; }", "{ *(volatile int *)8 = 1; }"),
    "crashed (SIGABRT) in call 1 (malloc of 8 bytes)": "void abort(void);\n"
    + BUMP.replace("size = (size", "if (size == 8) abort();\n    size = (size"),
    "ended the process (exit code 3) in call 0 (malloc of 20 bytes)": "void _exit(int);\n"
    + BUMP.replace("size = (size", "_exit(3);\n    size = (size"),
    "ended the process (exit code 0) while it was initialised": "void _exit(int);\n"
    + BUMP.replace("{ next = memory;", "{ _exit(0);"),
    "gave no answer within 0.5 s, in call 2 (free)": BUMP.replace(
        "{ (void)pointer; }", "{ int pause(void); for (;;) pause(); }"
    ),
    "corrupted an object (found in call 2 (free))": BUMP.replace(
        "next += size;\n    return next - size", "return next"
    ),
    "returned a pointer that is not aligned to 8 bytes in call 0 (malloc of 20 bytes)": BUMP.replace(
        "return next - size", "return next - size + 4"
    ),
    "returned memory outside its arena in call 0 (malloc of 20 bytes)": BUMP.replace(
        "return next - size", "return next - size - 8"
    ),
    "wrote behind the end of its arena": BUMP.replace("{ next = memory;", "{ next = memory; next[bytes] = 1;"),
}
"""What a heap reports as done, and the allocator that does it."""
