"""Host times of allocators, measured in turn, so that other load of the machine affects all of them equally."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heapwright._explore.runner import Progress, Runner
from heapwright._explore.validation import copies_of
from heapwright._explore.workers import GoOn
from heapwright._measure.host.machine import machine
from heapwright._measure.host.timing import Bench, ProgramError
from heapwright._recipes.recipe import Recipe
from heapwright._studies.tables import Role
from heapwright._traces.trace import Trace

ROUNDS = 9
"""Rounds over all heaps."""

CALLS, MOST_PASSES = 100_000, 100
"""Calls that a heap makes in a round, about, and the most passes over a trace for it."""


@dataclass(frozen=True)
class Turns:
    """Allocators to time in turn on each trace, one trace after the other: traces, their copies, the hold-out set."""

    recipes: Mapping[str, Recipe]
    traces: Sequence[Trace]
    copies: int
    seed: int
    held_out: Sequence[Trace] = ()

    @property
    def steps(self) -> int:
        """How many heaps are compiled, or timed on a trace."""
        return len(self.recipes) * (1 + len(self.traces) * (1 + self.copies) + len(self.held_out))

    def _each(self) -> Iterator[tuple[Role, Trace]]:
        of: dict[Role, Iterable[Trace]] = {
            "explored": self.traces,
            "copy": copies_of(self.traces, self.copies, self.seed),
            "held out": self.held_out,
        }
        return ((role, trace) for role, each in of.items() for trace in each)

    def timed(self, go_on: GoOn) -> Iterator[Timed]:
        """Times on each trace; an allocator that fails has none. ``go_on`` counts steps; False ends them."""
        with Bench() as bench:
            programs = {}
            for id, recipe in self.recipes.items():
                programs[id] = bench.generated(recipe)
                if not go_on(1):
                    return
            for role, trace in self._each():
                passes, times = min(MOST_PASSES, 1 + CALLS // max(len(trace), 1)), dict[str, float]()
                while programs and not times:
                    try:
                        times = bench.measure(programs, trace, ROUNDS, passes)
                    except ProgramError as error:
                        del programs[error.program]
                if times:
                    yield Timed(role, trace.name, times, machine())
                if not go_on(len(self.recipes)):
                    return


class Timed(NamedTuple):
    """Nanoseconds a call of heaps by their ids, on a trace of a role, and the machine."""

    role: Role
    trace: str
    times: Mapping[str, float]
    machine: str


def time_in_turn(runner: Runner, turns: Turns) -> None:
    """Time allocators in turn, and replace their times in the study.

    On a cluster one machine measures all, as if its machines were equal. After an interrupt the measurement ends before
    the next allocator is compiled or the next trace begins; on a cluster at once.
    """
    start, done = time.perf_counter(), 0

    def go_on(steps: int) -> bool:
        nonlocal done
        done += steps
        seconds = time.perf_counter() - start
        if runner.progress:
            remaining = seconds / done * (turns.steps - done) if done else None
            runner.progress(Progress("timing", done, turns.steps, done, seconds, remaining))
        return not runner.interrupt.seen

    for item in runner.workers.run_alone(turns.timed, go_on):
        runner.study.set_times(*item)
