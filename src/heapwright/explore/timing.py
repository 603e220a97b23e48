"""Times in turn: heaps that were timed at different moments had different neighbours on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from heapwright.decide.study import Study
from heapwright.explore.runner import Progress
from heapwright.explore.trial import Candidate
from heapwright.explore.workers import Interrupt
from heapwright.measure.host.machine import machine
from heapwright.measure.host.timing import Bench, ProgramError
from heapwright.studies.tables import Role
from heapwright.traces.trace import Trace

ROUNDS = 9
"""Rounds over all heaps."""

CALLS, MOST_PASSES = 100_000, 100
"""A heap makes about so many calls in a round, in no more passes."""


def time_in_turn(
    study: Study,
    candidates: Sequence[Candidate],
    traces: Iterable[tuple[Role, Trace]],
    count: int,
    interrupt: Interrupt,
    progress: Callable[[Progress], None] | None,
) -> None:
    """Time heaps on one trace after the other, all in turn on each, in place of what the study has of their times.

    There are ``count`` traces. Ends early, between two heaps that are compiled or two traces, at an interrupt.
    """
    start, done, all_ = time.perf_counter(), 0, len(candidates) * (1 + count)

    def move(steps: int) -> None:
        nonlocal done
        done += steps
        seconds = time.perf_counter() - start
        if progress:
            progress(Progress("timing", done, all_, done, seconds, seconds / max(done, 1) * (all_ - done)))

    with Bench() as bench:
        programs = {}
        for one in candidates:
            if interrupt.seen:
                return
            programs[one.id] = bench.generated(one.recipe)
            move(1)
        for role, trace in traces:
            if interrupt.seen:
                return
            passes = min(MOST_PASSES, 1 + CALLS // max(len(trace), 1))
            while programs:
                try:
                    study.set_times(role, trace.name, bench.measure(programs, trace, ROUNDS, passes), machine())
                    break
                except ProgramError as error:
                    del programs[error.program]
            move(len(candidates))
