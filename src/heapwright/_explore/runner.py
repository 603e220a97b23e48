"""Running: recipes tried by a crew, their results into a study, and how far that is.

The calling thread alone writes.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from math import inf
from typing import Literal

from heapwright._explore.evaluation import EvaluationOutcome, EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import Incumbents, PartialResult
from heapwright._explore.workers import POLL_SECONDS, Interrupt, WorkerPool
from heapwright._replay.engine import ReplayProgress
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Partial, Result
from heapwright._studies.tables import Role
from heapwright._support.errors import HeapwrightError

_BATCH_RESULTS = 10_000
_BATCH_SECONDS = 2.0
NOT_BEGUN = ReplayProgress(*[0] * len(fields(ReplayProgress)))
_RECENT = 16
"""Of each design so many replays tell what the next will cost."""


@dataclass(frozen=True)
class Progress:
    """How far an exploration is: replays stored or given up by all runs, those there are, this run's count and time.

    ``seconds_left``: for the rest, by what recipes of the same designs cost, and within a budget for what comes after
    it, too; None before the first. ``tolerance``: how near the front of all recipes this one will come; None while that
    is open, and where all are finished. Of ``timing`` each heap counts once where it is compiled, and once on each
    trace; of ``endurance`` once on each trace.
    """

    what: Literal["exploring", "futures", "copies", "held out", "endurance", "timing"]
    finished: int
    total: int
    evaluated: int
    seconds: float
    seconds_left: float | None
    tolerance: float | None = None

    @property
    def rate(self) -> float:
        """Replays a second in this run."""
        return self.evaluated / self.seconds if self.seconds > 0 else 0.0


class ReplayCosts:
    """Forecast of a replay's seconds, from the last replays of recipes of the same design."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._of: dict[Hashable, deque[float]] = {}
        self._last: deque[float] = deque(maxlen=_RECENT * _RECENT)

    def add(self, design: Hashable, seconds: float) -> None:
        """Take note of what one took."""
        self._of.setdefault(design, deque(maxlen=_RECENT)).append(seconds)
        self._last.append(seconds)

    def take_from_pieces(self, pieces: ReplayCosts, times: float) -> None:
        """Take note of what replays of pieces took, each so many times as short as a whole one."""
        for kind, seconds in pieces._of.items():
            self.add(kind, sum(seconds) / len(seconds) * times)

    def of(self, design: Hashable) -> float | None:
        """What one will take; what any did where none of the design was measured, None before the first."""
        measured = self._of.get(design) or self._last
        return sum(measured) / len(measured) if measured else None

    def of_all(self, designs: Mapping[Hashable, int]) -> float | None:
        """What so many of each design will take."""
        info = [(self.of(design), count) for design, count in designs.items() if count > 0]
        if any(item is None for item, _ in info):
            return None
        return sum((item or 0.0) * count for item, count in info)


@dataclass
class Runner:
    """Has lists of candidates evaluated into a study and counts what was done."""

    study: Analysis
    crew: WorkerPool
    interrupt: Interrupt
    progress: Callable[[Progress], None] | None
    evaluated: int = 0
    """Replays that ended."""

    def run(
        self, candidates: Iterable[SearchCandidate], trials: Trials, meter: Meter, patience: StopRule | None = None
    ) -> None:
        """Replay every candidate on every trace but for the pairs that have ended, and store the results."""
        tasks = [EvaluationTask(candidate, trials.known(candidate.id)) for candidate in candidates]
        tasks = [task for task in tasks if task.replays]
        writer = _Writer(self.study, trials.role)
        info = self.tried(tasks, trials.trier, meter, writer.write_when_due, patience)
        with writer, closing(info) as outcomes:
            for task, result in outcomes:
                writer.add(task.one, result, trials)
                trials.take(task.one, result)
                self.evaluated += len(result.metrics)

    def tried(
        self,
        tasks: Sequence[EvaluationTask],
        trier: Evaluator,
        meter: Meter,
        store_when_due: Callable[[], None],
        patience: StopRule | None = None,
    ) -> Generator[tuple[EvaluationTask, EvaluationOutcome]]:
        """What came of each task, counted once it was taken note of; to be closed, so that no further one is begun.

        Raises HeapwrightError after an interrupt.
        """
        patience = patience or StopRule(self.interrupt)
        with closing(self.crew.tried(tasks, trier, patience, meter.seconds_of_task)) as outcomes:
            for outcome in outcomes:
                if outcome is not None:
                    yield outcome
                    task, result = outcome
                    if result.metrics or result.given_up:  # else an interrupt came before
                        meter.count(task.one, result)
                store_when_due()
                meter.report_when_due()
        meter.report()
        if self.interrupt.seen:
            raise HeapwrightError(
                f"{self.study.path}: interrupted with {meter.finished:,} of {meter.total:,} replays stored or given "
                "up; the same command goes on from there"
            )


class Trials:
    """The traces of one role, how recipes are tried on them, and what is known of recipes there."""

    def __init__(self, study: Analysis, trier: Evaluator, role: Role) -> None:
        """Take what the study holds."""
        self.trier, self.traces, self.role, self.objectives = trier, trier.traces, role, trier.objectives
        self.same_device = study.same_device
        self.rivals: Incumbents | None = None
        self._known: dict[str, PartialResult] = {}
        positions = {trace.name: at for at, trace in enumerate(self.traces)}
        for id, name, metrics in study.measured_on(role, ("failed", *self.objectives)):
            if name in positions:
                self.known(id).end(positions[name], metrics)
        if self.objectives:
            for id, name, least, so_far in study.partial():
                self.known(id).lay_floor(positions[name], least)
                self.known(id).raise_to(positions[name], so_far)

    def known(self, id: str) -> PartialResult:
        """What is known of a recipe."""
        if id not in self._known:
            self._known[id] = PartialResult(self.objectives, len(self.traces), self.same_device)
        return self._known[id]

    def compete(self, tolerance: float, ranked: Iterable[str]) -> Incumbents:
        """Begin to compare: those of the ranked recipes that have ended everywhere are the first rivals.

        They are measured by the best that rivals before them found, too.
        """
        before = self.rivals.bar if self.rivals else None
        self.rivals = Incumbents(tolerance, best=before.best if before else None)
        for id in ranked:
            if not self.known(id).left:
                self.rivals.add(self.known(id))
        return self.rivals

    def take(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        """Take note of what was tried."""
        self._known[item.id] = result.known
        if self.rivals and item.ranked and not result.known.left:
            self.rivals.add(result.known)


class _Writer:
    """Gathers results into transactions. On leaving its context, also by an exception, it stores the rest."""

    def __init__(self, study: Analysis, role: Role) -> None:
        self._study = study
        self._role = role
        self._batch: list[Result] = []
        self._partial: list[Partial] = []
        self._written = time.perf_counter()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def add(self, item: SearchCandidate, result: EvaluationOutcome, trials: Trials) -> None:
        known, traces = result.known, trials.traces
        self._batch += [
            Result(item.id, item.recipe, item.zoo_name, traces[at].name, metrics, item.ranked, result.machine)
            for at, metrics in result.metrics.items()
        ]
        if not result.given_up or self._role != "explored":
            return
        self._partial += [
            Partial(item.id, item.recipe, item.zoo_name, trace.name, int(known.floor[at]), so_far, item.ranked)
            for at, trace in enumerate(traces)
            if not known.ended[at] and (so_far := known.so_far[at] or NOT_BEGUN)
        ]

    def write_when_due(self) -> None:
        waiting = len(self._batch) + len(self._partial)
        if waiting >= _BATCH_RESULTS or time.perf_counter() - self._written >= _BATCH_SECONDS:
            self._write()

    def _write(self) -> None:
        batch, self._batch = self._batch, []  # a batch that cannot be written is not tried again on leaving
        partial, self._partial = self._partial, []
        if batch:
            self._study.add(batch, self._role)
        if partial:
            self._study.add_partial(partial)
        self._written = time.perf_counter()


_SHOWN: Mapping[Role, Literal["exploring", "copies", "held out"]] = {
    "explored": "exploring",
    "copy": "copies",
    "held out": "held out",
}


@dataclass
class Meter:
    """Tells a callback how far the replays on the traces of a role are."""

    callback: Callable[[Progress], None] | None
    role: Role
    recipes: int
    traces: int
    crew: WorkerPool
    finished: int = 0
    tolerance: float | None = None
    until: float = inf
    what: Literal["futures", "endurance"] | None = None
    """What is tried, where it is no replay."""
    after: float = 0.0
    """Seconds that what comes after takes, about."""
    costs: ReplayCosts = field(default_factory=ReplayCosts)
    left: Counter[Hashable] = field(default_factory=Counter)
    """Replays still to be tried, by the design of their recipe."""

    def __post_init__(self) -> None:
        """Start the clock."""
        self._evaluated = 0
        self._start = self._reported = time.perf_counter()

    @property
    def total(self) -> int:
        """Replays that there are."""
        return self.recipes * self.traces

    def expect(self, candidates: Iterable[SearchCandidate]) -> None:
        """Take note of the recipes that are still to be tried, each on all traces."""
        self.left = self._replays(candidates)

    def seconds_of(self, candidates: Iterable[SearchCandidate]) -> float:
        """What it takes to try so many recipes, each on all traces; 0 before any was."""
        return (self.costs.of_all(self._replays(candidates)) or 0.0) / self.crew.jobs

    def _replays(self, candidates: Iterable[SearchCandidate]) -> Counter[Hashable]:
        counted = Counter(candidate.design for candidate in candidates)
        return Counter({kind: count * self.traces for kind, count in counted.items()})

    def pass_over(self, item: SearchCandidate, replays: int) -> None:
        """Count replays of a recipe that are stored."""
        self.left[item.design] -= replays
        self.finished += replays

    def for_pieces(self) -> Meter:
        """One that tells the same while recipes are only tried on pieces of their traces."""
        known = (self.finished, self.tolerance, self.until, None, self.after)
        return _Unmoved(self.callback, self.role, self.recipes, self.traces, self.crew, *known)

    def seconds_of_task(self, task: EvaluationTask) -> float | None:
        """What a task will take; None before any was measured."""
        each = self.costs.of(task.one.design)
        return None if each is None else each * task.replays

    def count(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        """Count what was tried, given up or not."""
        kind = item.design
        self.left[kind] -= result.begun
        self.costs.add(kind, result.seconds / result.begun)
        self._move(result.begun)

    def _move(self, replays: int) -> None:
        self.finished += replays
        self._evaluated += replays

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest, and for what comes after; to the end of the time at most."""
        seconds = self.costs.of_all(self.left)
        if seconds is None:
            return None
        return self.after + min(seconds / self.crew.jobs, max(self.until - time.perf_counter(), 0.0))

    def report_when_due(self) -> None:
        """Report about ten times a second."""
        if time.perf_counter() - self._reported >= POLL_SECONDS:
            self.report()

    def report(self) -> None:
        """Report now."""
        self._reported = time.perf_counter()
        if self.callback:
            seconds = self._reported - self._start
            shown = self.what or _SHOWN[self.role]
            remaining = self.seconds_left
            self.callback(
                Progress(shown, self.finished, self.total, self._evaluated, seconds, remaining, self.tolerance)
            )


class _Unmoved(Meter):
    """Counts no piece as a replay."""

    def _move(self, replays: int) -> None:
        pass
