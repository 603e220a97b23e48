"""Workers: a crew that tries recipes, here threads of this process, while the caller's thread alone writes.

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
"""What came of tasks as they finish, and None about ten times a second where none does."""


class WorkerPool(Protocol):
    """Tries recipes, several at a time."""

    @property
    def jobs(self) -> int:
        """How many at a time."""

    def threads_of_each(self, tasks: int) -> int:
        """Threads that each of so few tasks may use where there are more than tasks."""

    def tried(
        self,
        tasks: Sequence[EvaluationTask],
        trier: Evaluator,
        patience: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Outcomes:
        """Try all tasks; ``seconds`` tells what one will take, None before any was measured.

        After an interrupt, the end of the time, or an exception where one is tried, no further task is begun; those
        under way still count. The exception is raised at the end.
        """

    def apart(self, work: Work[_Result], go_on: GoOn) -> Iterable[_Result]:
        """What work on one machine tells, where nothing else goes on meanwhile.

        The work hears from ``go_on`` whether to, and tells it steps. A cluster's does not: there all is told at its
        end, and where ``go_on`` says no nothing, at once.
        """


@dataclass(frozen=True)
class Threads:
    """Pool of `jobs` threads on this machine."""

    jobs: int

    def threads_of_each(self, tasks: int) -> int:
        """All that are idle otherwise; see `Crew.threads_of_each`."""
        return max(1, self.jobs // max(1, tasks))

    def tried(
        self,
        tasks: Sequence[EvaluationTask],
        trier: Evaluator,
        patience: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Outcomes:
        """Try all tasks; see `Crew.tried`."""
        pending = deque(tasks)
        done: _Done = queue.SimpleQueue()
        workers = [
            threading.Thread(target=_work, args=(pending, trier, patience, done))
            for _ in range(min(self.jobs, len(tasks)))
        ]
        for worker in workers:
            worker.start()
        errors: list[BaseException] = []
        try:
            while any(worker.is_alive() for worker in workers) or not done.empty():
                yield from _next(done, errors)
                if errors or patience.over:
                    pending.clear()
        finally:
            pending.clear()
            for worker in workers:
                worker.join()
        if errors:
            raise errors[0]

    def apart(self, work: Work[_Result], go_on: GoOn) -> Iterable[_Result]:
        """Work here, told as it goes; see `Crew.apart`."""
        return work(go_on)


_Done = queue.SimpleQueue[list[tuple[EvaluationTask, EvaluationOutcome] | BaseException]]

_HANDED_SECONDS = 0.01
"""A worker hands over what it has found no more often: each time another thread is woken, which takes as long as what
Python does for a recipe."""


def _next(done: _Done, errors: list[BaseException]) -> list[tuple[EvaluationTask, EvaluationOutcome] | None]:
    """The next outcomes, if some come soon, else None; an exception goes to ``errors`` instead."""
    try:
        items = done.get(timeout=POLL_SECONDS)
    except queue.Empty:
        return [None]
    errors += [item for item in items if isinstance(item, BaseException)]
    return [item for item in items if isinstance(item, tuple)] or [None]


def _work(pending: deque[EvaluationTask], trier: Evaluator, patience: StopRule, done: _Done) -> None:
    """One worker: takes tasks until there is none."""
    results: list[tuple[EvaluationTask, EvaluationOutcome] | BaseException] = []
    handed = time.perf_counter()
    try:
        while pending:
            tasks = _some(pending, trier.batch(patience))
            for task, item in zip(tasks, trier.found_each(tasks, patience), strict=True):
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
    """Turns the first Ctrl-C into a flag, so that it cannot fall into the middle of a transaction."""

    def __init__(self) -> None:
        """Begin without one."""
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
