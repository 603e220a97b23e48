"""Programs in C that are recorded: how they are compiled, and how the calls of their traces are read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tool_requirements import tool

from heapwright._traces.record import Recording
from heapwright._traces.recorded import Recorded
from heapwright._traces.trace import Trace

Compile = Callable[..., str]


PRELUDE = """
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
"""

HAMMER = """
static _Atomic(void *) box[64];
static void *hammer(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245u + 12345u;
        size_t size = (random >> 16) % 500 + 1;
        void *block = i % 3 ? malloc(size) : calloc(1, size);
        if (i % 5 == 0) block = realloc(block, size * ((random >> 8) % 20 + 1));
        block = atomic_exchange(&box[(random >> 10) % 64], block);
        if (block && i % 7 == 0) block = realloc(block, size * 30);
        free(block);
    }
    return NULL;
}
---
pthread_t threads[4];
for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, hammer, (void *)i);
"""


def compiler(folder: Path) -> Compile:
    """Compiles the body of main (and what stands before a line of ---) there and gives the program's path."""
    cc = tool("cc")

    def build(code: str, *flags: str) -> str:
        before, _, body = code.rpartition("---")
        program = folder / f"program{len(list(folder.iterdir()))}"
        source = program.with_suffix(".c")
        source.write_text(f"{PRELUDE}{before}\nint main(void) {{\n{body}\nreturn 0;\n}}\n")
        # Without -fno-builtin the compiler removes allocations it can see through.
        options = ["-D_GNU_SOURCE", "-O0", "-fno-builtin", "-pthread", "-w", *flags]
        subprocess.run([cc, *options, str(source), "-o", str(program)], check=True)
        return str(program)

    return build


def calls_after(trace: Trace, marker: int) -> list[tuple[int, int, int, int]]:
    """Calls (op, id less the marker's id, size, align) that follow a malloc of a marker's size."""
    start = trace.size.tolist().index(marker)
    base = int(trace.id[start])
    rows = zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), trace.align.tolist(), strict=True)
    return [(op, id_ - base, size, align) for op, id_, size, align in list(rows)[start + 1 :]]


def only(recording: Recording) -> tuple[Recorded, Trace]:
    assert len(recording.files) == 1
    return recording.files[0], Trace.read(recording.files[0].path)
