"""How the benchmark measures: arenas first, on all processors, then times, one process at a time, heaps in turn."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median

from contenders import Contender
from traces import MOST_CALLS

import heapwright as hw
from heapwright import Trace


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: how often all heaps are measured in turn; what counts is the median.
        milliseconds: how long a heap runs in a round, but at least one pass and at most `passes`.
        passes: most passes of a heap in a round.
        explored: recipes that are explored for the broker pick; None is all.
        folded_up_to: calls of the traces on which folded and run-time policies are compared.
        calls: most calls of a trace.
    """

    rounds: int
    milliseconds: float
    passes: int
    explored: int | None
    folded_up_to: int
    calls: int = MOST_CALLS

    def passes_of(self, milliseconds: float) -> int:
        """Passes in a round of a heap that takes so long for one."""
        return max(1, min(self.passes, round(self.milliseconds / max(milliseconds, 1e-3))))


FULL = Effort(rounds=3, milliseconds=30, passes=40, explored=2_000, folded_up_to=20_000)
QUICK = Effort(rounds=1, milliseconds=1, passes=1, explored=30, folded_up_to=20_000, calls=3_000)


def times(
    bench: hw.timing.Bench, programs: Mapping[str, hw.timing.TimedProgram], trace: Trace, effort: Effort
) -> dict[str, float]:
    """CPU nanoseconds a call, by heap: the median over rounds, each of as many passes as fill its time."""
    once = bench.measure(programs, trace, 1, 1)
    passes = {name: effort.passes_of(ns * len(trace) / 1e6) for name, ns in once.items()}
    rounds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(effort.rounds):
        for name, program in programs.items():
            rounds[name].append(bench.measure({name: program}, trace, 1, passes[name])[name])
    return {name: median(result) for name, result in rounds.items()}


_jobs: list[tuple[Contender, list[Trace]]] = []
"""What the processes that look for arenas are to do; a fork hands it on, because a heap owns a folder of programs."""


def arenas(jobs: Sequence[tuple[Contender, list[Trace]]]) -> list[list[int | None]]:
    """The smallest arena of each heap on each of its traces, for 32-bit pointers.

    A heap's traces are tried one after the other, different heaps at the same time.
    """
    for heap, _ in jobs:
        heap.build_compact()
    _jobs[:] = jobs
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        return list(pool.map(_arenas_of, range(len(jobs))))


def _arenas_of(job: int) -> list[int | None]:
    heap, traces = _jobs[job]
    return [heap.smallest_arena(trace) for trace in traces]
