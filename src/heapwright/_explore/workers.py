"""Worker pools that evaluate recipes, here threads of this process; the caller's thread alone writes.

The native engine releases the interpreter lock while it replays.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from heapwright._explore.evaluation import EvaluationOutcome, EvaluationTask, Evaluator, StopRule

POLL_SECONDS = 0.1

_Result = TypeVar("_Result")
GoOn = Callable[[int], bool]
Work = Callable[[GoOn], Iterable[_Result]]

Outcomes = Generator[tuple[EvaluationTask, EvaluationOutcome] | None, None, None]
"""Outcomes of tasks as they finish, and None about ten times a second while none does."""


class WorkerPool(Protocol):
    """Pool that evaluates several recipes at a time."""

    @property
    def jobs(self) -> int:
        """Number of recipes at a time."""

    def threads_of_each(self, tasks: int) -> int:
        """Threads that each task may use if there are fewer tasks than threads."""

    def evaluations(
        self,
        tasks: Sequence[EvaluationTask],
        evaluator: Evaluator,
        stop_rule: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Outcomes:
        """Evaluate all tasks; ``seconds`` forecasts the time of one, None before any was measured.

        After an interrupt, the end of the time, or an exception in one, no further task begins; those under way still
        count. The exception is raised at the end.
        """

    def run_alone(self, work: Work[_Result], go_on: GoOn) -> Iterable[_Result]:
        """Results of work on one machine while nothing else runs.

        The work reports its steps to ``go_on``, which returns whether to continue. On a cluster it cannot: all results
        come at its end, and none if ``go_on`` returns False meanwhile.
        """


@dataclass(frozen=True)
class Threads:
    """Pool of `jobs` threads on this machine."""

    jobs: int

    def threads_of_each(self, tasks: int) -> int:
        """All that would be idle; see `WorkerPool.threads_of_each`."""
        return max(1, self.jobs // max(1, tasks))

    def evaluations(
        self,
        tasks: Sequence[EvaluationTask],
        evaluator: Evaluator,
        stop_rule: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Outcomes:
        """Evaluate all tasks; see `WorkerPool.evaluations`."""
        pending = deque(tasks)
        done: _Done = queue.SimpleQueue()
        workers = [
            threading.Thread(target=_work, args=(pending, evaluator, stop_rule, done))
            for _ in range(min(self.jobs, len(tasks)))
        ]
        for worker in workers:
            worker.start()
        errors: list[BaseException] = []
        try:
            while any(worker.is_alive() for worker in workers) or not done.empty():
                yield from _next(done, errors)
                if errors or stop_rule.over:
                    pending.clear()
        finally:
            pending.clear()
            for worker in workers:
                worker.join()
        if errors:
            raise errors[0]

    def run_alone(self, work: Work[_Result], go_on: GoOn) -> Iterable[_Result]:
        """Work in this thread; see `WorkerPool.run_alone`."""
        return work(go_on)


_Done = queue.SimpleQueue[list[tuple[EvaluationTask, EvaluationOutcome] | BaseException]]

_HANDED_SECONDS = 0.01
"""Least time between two hand-overs of a worker: waking the other thread costs as much as evaluating a recipe."""


def _next(done: _Done, errors: list[BaseException]) -> list[tuple[EvaluationTask, EvaluationOutcome] | None]:
    """The next outcomes, if some come soon, else None; an exception is appended to ``errors`` instead."""
    try:
        items = done.get(timeout=POLL_SECONDS)
    except queue.Empty:
        return [None]
    errors += [item for item in items if isinstance(item, BaseException)]
    return [item for item in items if isinstance(item, tuple)] or [None]


def _work(pending: deque[EvaluationTask], evaluator: Evaluator, stop_rule: StopRule, done: _Done) -> None:
    """Thread of the pool: evaluates tasks until none is left."""
    results: list[tuple[EvaluationTask, EvaluationOutcome] | BaseException] = []
    handed = time.perf_counter()
    try:
        while pending:
            tasks = _some(pending, evaluator.batch(stop_rule))
            for task, item in zip(tasks, evaluator.evaluate_each(tasks, stop_rule), strict=True):
                results.append((task, item))
            if (now := time.perf_counter()) - handed >= _HANDED_SECONDS:
                done.put(results)
                results, handed = [], now
    except BaseException as error:  # raised again by the thread that collects
        results.append(error)
    done.put(results)


def _some(pending: deque[EvaluationTask], most: int) -> list[EvaluationTask]:
    """At most `most` tasks, taken from the front of the queue; fewer once it is empty."""
    tasks = list[EvaluationTask]()
    with suppress(IndexError):
        while len(tasks) < most:
            tasks.append(pending.popleft())
    return tasks


class Interrupt:
    """Flag set by the first Ctrl-C, which therefore never interrupts a transaction."""

    def __init__(self) -> None:
        """Begin with the flag unset."""
        self.seen = False
        self._in_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupt:
        if self._in_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
