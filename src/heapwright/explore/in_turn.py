"""Times in turn: heaps that were timed at different moments had different neighbours on the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heapwright.explore.interrupt import Interrupt
from heapwright.explore.stored import Role
from heapwright.explore.study import Study
from heapwright.explore.trying import Candidate
from heapwright.host.machine import machine
from heapwright.host.timing import Bench, ProgramError
from heapwright.traces.trace import Trace

ROUNDS = 9
"""Rounds over all heaps."""

CALLS, MOST_PASSES = 100_000, 100
"""A heap makes about so many calls in a round, in no more passes."""


def time_in_turn(
    study: Study, candidates: Sequence[Candidate], traces: Iterable[tuple[Role, Trace]], interrupt: Interrupt
) -> None:
    """Time heaps on one trace after the other, all in turn on each, in place of what the study has of their times.

    Ends early, between two traces, at an interrupt.
    """
    with Bench() as bench:
        programs = {one.id: bench.generated(one.recipe) for one in candidates if not interrupt.seen}
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
