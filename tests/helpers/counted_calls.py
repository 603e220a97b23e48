"""Generated C whose metadata accesses are counted as it runs: what shipped numbers are compared with.

It shares nothing with the engine that the numbers come from but the core's text: a counter is added to each function of
the generated file that loads or stores, the file is compiled, and the calls of a trace are made one by one.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from c_programs import ROOT, UNCHECKED

from heapwright._traces.trace import Trace

_ACCESSOR = re.compile(r"^(static inline \w+ app_(?:load|store)\d\([^)]*\)\n\{)", re.MULTILINE)
_COPY = re.compile(r"^(static inline void app_copy_payload\([^)]*\)\n\{)", re.MULTILINE)
AMPLE = 1 << 26
"""Bytes of an arena in which no request of these traces fails."""


@dataclass(frozen=True)
class Counted:
    """What a run of the program counted: accesses of all calls of a kind and of the worst, and the footprint.

    Attributes:
        copied: loads and stores of words that reallocs copied.
        failed: requests that failed.
        early: footprint in bytes after a tenth of the calls, with regions that are partly empty.
        footprint: the same at the end.
    """

    malloc: int
    malloc_max: int
    realloc: int
    realloc_max: int
    free: int
    free_max: int
    copied: int
    failed: int
    early: int
    footprint: int

    @property
    def accesses(self) -> int:
        """Accesses of all calls, copies included."""
        return self.malloc + self.realloc + self.free + self.copied


class CountedHeap:
    """The generated heap in a folder, compiled with counters."""

    def __init__(self, folder: Path) -> None:
        text, accessors = _ACCESSOR.subn(r"\1 counted_accesses++;", (folder / "app_heap.c").read_text())
        text, copies = _COPY.subn(r"\1 counted_copied += (bytes + 3u) / 4u;", text)
        assert accessors >= 2 and copies == 1, "load, store and copy have other names in the generated C"
        source = folder / "counted.c"
        source.write_text(f"extern unsigned long counted_accesses, counted_copied;\n{text}")
        self.folder, self.program = folder, folder / "counted"
        driver = ROOT / "tests" / "c" / "counted_calls.c"
        flags = ["-O1", UNCHECKED, f"-I{folder}", f"-I{driver.parent}"]
        subprocess.run(["cc", *flags, str(source), str(driver), "-o", str(self.program)], check=True)

    def run(self, trace: Trace, arena: int = AMPLE) -> Counted:
        """Make the calls of the trace in an arena of these bytes."""
        calls = self.folder / f"{trace.name}-{len(trace)}.calls"
        if not calls.exists():
            numbers = np.array([len(trace), trace.calls.slots], np.uint32).tobytes()
            calls.write_bytes(numbers + trace.calls.records().tobytes())
        done = subprocess.run([str(self.program), str(calls), str(arena)], capture_output=True, text=True, check=True)
        return Counted(*map(int, done.stdout.split()))
