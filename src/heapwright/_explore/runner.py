"""Runner of evaluations: a worker pool evaluates, results go into a study, and a meter reports progress.

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
"""Latest replays of each design, whose mean forecasts the next."""


@dataclass(frozen=True)
class Progress:
    """Progress of an exploration: replays stored or pruned by all runs, their total, this run's count and time.

    ``seconds_left``: for the rest, by the cost of recipes of the same designs, and within a budget for the steps after
    it, too; None before the first. ``tolerance``: how near the front of all recipes this one will come; None while that
    is open, and if all are finished. Of ``timing`` each allocator counts once when it is compiled, and once on each
    trace; of ``stress test`` once on each trace.
    """

    what: Literal["exploring", "futures", "copies", "held out", "stress test", "timing"]
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
        """Begin without measurements."""
        self._of: dict[Hashable, deque[float]] = {}
        self._last: deque[float] = deque(maxlen=_RECENT * _RECENT)

    def add(self, design: Hashable, seconds: float) -> None:
        """Add the time of one replay."""
        self._of.setdefault(design, deque(maxlen=_RECENT)).append(seconds)
        self._last.append(seconds)

    def take_from_pieces(self, pieces: ReplayCosts, times: float) -> None:
        """Add the times of replays of pieces, each this many times shorter than a whole one."""
        for kind, seconds in pieces._of.items():
            self.add(kind, sum(seconds) / len(seconds) * times)

    def of(self, design: Hashable) -> float | None:
        """Seconds of the next replay of a design, of any if none of this design was measured; None before the first."""
        measured = self._of.get(design) or self._last
        return sum(measured) / len(measured) if measured else None

    def of_all(self, designs: Mapping[Hashable, int]) -> float | None:
        """Seconds of a number of replays of each design."""
        each = [(self.of(design), count) for design, count in designs.items() if count > 0]
        if any(seconds is None for seconds, _ in each):
            return None
        return sum((seconds or 0.0) * count for seconds, count in each)


@dataclass
class Runner:
    """Runner of lists of candidates, whose results it stores in a study and counts."""

    study: Analysis
    workers: WorkerPool
    interrupt: Interrupt
    progress: Callable[[Progress], None] | None
    evaluated: int = 0
    """Replays that ended."""

    def run(
        self, candidates: Iterable[SearchCandidate], trials: Trials, meter: Meter, stop_rule: StopRule | None = None
    ) -> None:
        """Replay every candidate on every trace but for the pairs that have ended, and store the results."""
        tasks = [EvaluationTask(candidate, trials.partial_result(candidate.id)) for candidate in candidates]
        tasks = [task for task in tasks if task.replays]
        writer = _Writer(self.study, trials.role)
        evaluations = self.evaluations(tasks, trials.evaluator, meter, writer.write_when_due, stop_rule)
        with writer, closing(evaluations) as outcomes:
            for task, result in outcomes:
                writer.add(task.candidate, result, trials)
                trials.take(task.candidate, result)
                self.evaluated += len(result.metrics)

    def evaluations(
        self,
        tasks: Sequence[EvaluationTask],
        evaluator: Evaluator,
        meter: Meter,
        store_when_due: Callable[[], None],
        stop_rule: StopRule | None = None,
    ) -> Generator[tuple[EvaluationTask, EvaluationOutcome]]:
        """Outcomes of the tasks, each counted once the caller has taken it; after closing no further one begins.

        Raises HeapwrightError after an interrupt.
        """
        stop_rule = stop_rule or StopRule(self.interrupt)
        with closing(self.workers.evaluations(tasks, evaluator, stop_rule, meter.seconds_of_task)) as outcomes:
            for outcome in outcomes:
                if outcome is not None:
                    yield outcome
                    task, result = outcome
                    if result.metrics or result.given_up:  # else an interrupt came before
                        meter.count(task.candidate, result)
                store_when_due()
                meter.report_when_due()
        meter.report()
        if self.interrupt.seen:
            raise HeapwrightError(
                f"{self.study.path}: interrupted with {meter.finished:,} of {meter.total:,} replays stored or pruned; "
                "the same command continues from there"
            )


class Trials:
    """Traces of one role, the evaluator of recipes on them, and the partial result of each recipe there."""

    def __init__(self, study: Analysis, evaluator: Evaluator, role: Role) -> None:
        """Take the results that the study holds."""
        self.evaluator, self.traces, self.role, self.objectives = (
            evaluator,
            evaluator.traces,
            role,
            evaluator.objectives,
        )
        self.same_device = study.same_device
        self.incumbents: Incumbents | None = None
        self._partial_results: dict[str, PartialResult] = {}
        positions = {trace.name: at for at, trace in enumerate(self.traces)}
        for id, name, metrics in study.measured_on(role, ("failed", *self.objectives)):
            if name in positions:
                self.partial_result(id).end(positions[name], metrics)
        if self.objectives:
            for id, name, least, so_far in study.partial():
                self.partial_result(id).set_least_footprint(positions[name], least)
                self.partial_result(id).update(positions[name], so_far)

    def partial_result(self, id: str) -> PartialResult:
        """The partial result of a recipe."""
        if id not in self._partial_results:
            self._partial_results[id] = PartialResult(self.objectives, len(self.traces), self.same_device)
        return self._partial_results[id]

    def compete(self, tolerance: float, ranked: Iterable[str]) -> Incumbents:
        """Begin pruning: the ranked recipes that have finished all traces are the first incumbents.

        Their ratios count from the best values of earlier incumbents, too.
        """
        before = self.incumbents.front_bound if self.incumbents else None
        self.incumbents = Incumbents(tolerance, best=before.best if before else None)
        for id in ranked:
            if not self.partial_result(id).remaining:
                self.incumbents.add(self.partial_result(id))
        return self.incumbents

    def take(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        """Take the outcome of an evaluation."""
        self._partial_results[item.id] = result.partial_result
        if self.incumbents and item.ranked and not result.partial_result.remaining:
            self.incumbents.add(result.partial_result)


class _Writer:
    """Writer of results in transactions; on leaving its context, also by an exception, it stores the rest."""

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
        partial_result, traces = result.partial_result, trials.traces
        self._batch += [
            Result(item.id, item.recipe, item.zoo_name, traces[at].name, metrics, item.ranked, result.machine)
            for at, metrics in result.metrics.items()
        ]
        if not result.given_up or self._role != "explored":
            return
        self._partial += [
            Partial(item.id, item.recipe, item.zoo_name, trace.name, int(partial_result.floor[at]), so_far, item.ranked)
            for at, trace in enumerate(traces)
            if not partial_result.ended[at] and (so_far := partial_result.so_far[at] or NOT_BEGUN)
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
    """Meter of the replays on the traces of one role, which reports to a callback."""

    callback: Callable[[Progress], None] | None
    role: Role
    recipes: int
    traces: int
    workers: WorkerPool
    finished: int = 0
    tolerance: float | None = None
    until: float = inf
    what: Literal["futures", "stress test"] | None = None
    """The step, if it is not a replay of traces."""
    after: float = 0.0
    """Seconds that later steps take, about."""
    costs: ReplayCosts = field(default_factory=ReplayCosts)
    remaining: Counter[Hashable] = field(default_factory=Counter)
    """Replays to come, by the design of their recipe."""

    def __post_init__(self) -> None:
        """Start the clock."""
        self._evaluated = 0
        self._start = self._reported = time.perf_counter()

    @property
    def total(self) -> int:
        """Replays in total."""
        return self.recipes * self.traces

    def expect(self, candidates: Iterable[SearchCandidate]) -> None:
        """Set the recipes to come, each on all traces."""
        self.remaining = self._replays(candidates)

    def seconds_of(self, candidates: Iterable[SearchCandidate]) -> float:
        """Seconds to evaluate these recipes, each on all traces; 0 before any was measured."""
        return (self.costs.of_all(self._replays(candidates)) or 0.0) / self.workers.jobs

    def _replays(self, candidates: Iterable[SearchCandidate]) -> Counter[Hashable]:
        counted = Counter(candidate.design for candidate in candidates)
        return Counter({kind: count * self.traces for kind, count in counted.items()})

    def pass_over(self, item: SearchCandidate, replays: int) -> None:
        """Count replays of a recipe that are stored already."""
        self.remaining[item.design] -= replays
        self.finished += replays

    def for_pieces(self) -> Meter:
        """A meter that reports the same numbers while recipes are replayed on pieces of their traces."""
        known = (self.finished, self.tolerance, self.until, None, self.after)
        return _PieceMeter(self.callback, self.role, self.recipes, self.traces, self.workers, *known)

    def seconds_of_task(self, task: EvaluationTask) -> float | None:
        """Seconds of a task; None before any was measured."""
        each = self.costs.of(task.candidate.design)
        return None if each is None else each * task.replays

    def count(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        """Count an evaluation, pruned or not."""
        kind = item.design
        self.remaining[kind] -= result.begun
        self.costs.add(kind, result.seconds / result.begun)
        self._move(result.begun)

    def _move(self, replays: int) -> None:
        self.finished += replays
        self._evaluated += replays

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest and later steps; to the end of the time at most."""
        seconds = self.costs.of_all(self.remaining)
        if seconds is None:
            return None
        return self.after + min(seconds / self.workers.jobs, max(self.until - time.perf_counter(), 0.0))

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


class _PieceMeter(Meter):
    """Meter that counts no piece as a replay."""

    def _move(self, replays: int) -> None:
        pass
