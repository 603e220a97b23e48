"""Faults of `heapwright attack` on a third-party heap, each in a process of its own."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

from heapwright._assure.attack.faults import RUNS, ample, program
from heapwright._assure.attack.on_host import outcomes
from heapwright._support.errors import ForeignHeapError, ParameterError
from heapwright._support.subprocesses import run_tool
from heapwright._support.temporary import temporary_folder

if TYPE_CHECKING:
    from heapwright._heaps.foreign.heap import ForeignHeap
    from heapwright._traces.trace import Trace


def attack(heap: ForeignHeap, trace: Trace | None = None, *, runs: int = RUNS, seed: int = 0) -> dict[str, Any]:
    """Inject all faults except writes into metadata, whose place is unknown; return what an attack on the host returns.

    `checks` is None, as the heap has its own checks. It detects a fault if it ends the program, by a signal meant
    for that or by leaving; any other signal is a crash. `signals` counts both by the signal's name.

    Raises ParameterError for a heap whose objects move, ForeignHeapError where it cannot be built, or fails by itself.
    """
    if heap.adapter.handle:
        raise ParameterError(
            f"{heap.label}: its objects move, and faults are committed at addresses", parameter="beside"
        )
    records = program(trace, seed)
    arena = min(max(ample(records), heap.adapter.min_arena), heap.adapter.max_arena) if heap.has_arena else 0
    with temporary_folder("attack") as folder:
        records.tofile(folder / "calls")
        command = [
            heap.attack_program(arena + heap.front_bytes if arena else None),
            folder / "calls",
            arena // heap.unit * heap.unit,
            runs,
            seed,
        ]
        done = run_tool([str(word) for word in command], text=True)
    if done.returncode:
        raise ForeignHeapError(f"{heap.label}: {done.stderr.strip()[-300:] or 'the attack failed'}")
    faults: dict[str, dict[str, int]] = {}
    signals: Counter[str] = Counter()
    for name, counts, ended in outcomes(done.stdout):
        faults[name] = counts
        for number, times in ended.items():
            signals[signal.Signals(number).name] += times
    return {"heap": heap.label, "checks": None, "cpu": None, "faults": faults, "signals": dict(signals)}
