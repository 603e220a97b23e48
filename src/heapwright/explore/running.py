"""Running: recipes on traces in threads, their results into a study, and how far that is.

The native engine releases the interpreter lock while it replays; the calling thread alone writes.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Literal

from heapwright.errors import HeapwrightError
from heapwright.explore.alike import Seen
from heapwright.explore.picks import design
from heapwright.explore.rivals import Known, Rivals
from heapwright.explore.stored import Role
from heapwright.explore.study import Partial, Result, Study
from heapwright.replay.engine import GivenUpError, SoFar, Watch
from heapwright.replay.least import LeastFootprints
from heapwright.replay.metrics import Value

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

_BATCH_RESULTS = 500
_BATCH_SECONDS = 2.0
_POLL_SECONDS = 0.1
_NOT_BEGUN = SoFar(*[0] * len(fields(SoFar)))
_RECENT = 16
"""Of each design so many replays tell what the next will cost."""


@dataclass(frozen=True)
class Progress:
    """How far an exploration is: replays stored or given up by all runs, those there are, this run's count and time.

    ``seconds_left``: for the rest, by what recipes of the same designs cost; None before the first. ``tolerance``: how
    near the front of all recipes this one will come; None while that is open, and where all are finished.
    """

    what: Literal["exploring", "copies", "held out"]
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


@dataclass(frozen=True)
class Candidate:
    """A recipe to try: its id, the zoo's name if it has one, and whether it is ranked."""

    id: str
    recipe: Recipe
    zoo_name: str | None
    ranked: bool = True


Replay = Callable[["Trace", "Recipe", Watch | None], Mapping[str, Value]]


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


@dataclass(frozen=True)
class Patience:
    """What a replay is given up for: rivals that beat it, the end of a piece of its trace, the end of the time.

    ``pieces`` are the calls of each trace that make a piece of it, ``until`` is a time of `time.perf_counter`.
    """

    interrupt: Interrupt
    rivals: Rivals | None = None
    pieces: Sequence[int] | None = None
    until: float = inf

    @property
    def ends(self) -> bool:
        """Whether there is anything but an interrupt to give a replay up for."""
        return self.rivals is not None or self.pieces is not None or self.until < inf

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.interrupt.seen or time.perf_counter() >= self.until

    def begins(self, known: Known, at: int) -> bool:
        """Whether a trace is worth beginning with."""
        done = self.pieces is not None and known.calls(at) >= self.pieces[at]
        return not done and not self._is_beaten(known, at)

    def goes_on(self, known: Known, at: int, so_far: SoFar) -> bool:
        """Whether a replay is worth going on with."""
        known.raise_to(at, so_far)
        if self.over or (self.pieces is not None and so_far.calls >= self.pieces[at]):
            return False
        return not self._is_beaten(known, at)

    def _is_beaten(self, known: Known, at: int) -> bool:
        bar = self.rivals.bar if self.rivals else None
        if bar is None:
            return False
        return bool(known.refused.any() or bar.beats(known.least)) and bar.leaves_best(known, at)


class Costs:
    """Seconds that a replay takes, told by the last ones of recipes of the same design."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._of: dict[Hashable, deque[float]] = {}
        self._last: deque[float] = deque(maxlen=_RECENT * _RECENT)

    def add(self, design: Hashable, seconds: float) -> None:
        """Take note of what one took."""
        self._of.setdefault(design, deque(maxlen=_RECENT)).append(seconds)
        self._last.append(seconds)

    def of(self, design: Hashable) -> float | None:
        """What one will take; what any did where none of the design was measured, None before the first."""
        measured = self._of.get(design) or self._last
        return sum(measured) / len(measured) if measured else None

    def of_all(self, designs: Mapping[Hashable, int]) -> float | None:
        """What so many of each design will take."""
        told = [(self.of(design), count) for design, count in designs.items() if count > 0]
        if any(one is None for one, _ in told):
            return None
        return sum((one or 0.0) * count for one, count in told)


@dataclass
class Runner:
    """Evaluates lists of candidates into a study and counts what it did."""

    study: Study
    jobs: int
    interrupt: Interrupt
    progress: Callable[[Progress], None] | None
    evaluated: int = 0
    """Replays that ended."""

    def run(
        self,
        candidates: Iterable[Candidate],
        trials: Trials,
        replay: Replay,
        meter: Meter,
        patience: Patience | None = None,
    ) -> None:
        """Replay every candidate on every trace but for the pairs that have ended, and store the results."""
        tasks = [_Task(one, trials.known(one.id)) for one in candidates]
        tasks = [task for task in tasks if not task.known.ended.all()]
        patience = patience or Patience(self.interrupt)
        writer = _Writer(self.study, trials.role)
        with closing(_tried(tasks, trials, replay, self.jobs, patience)) as outcomes, writer:
            for outcome in outcomes:
                if outcome is not None:
                    writer.add(outcome, trials)
                    trials.take(outcome)
                    self.evaluated += len(outcome.results)
                    if outcome.results or outcome.given_up:  # else an interrupt came before
                        meter.count(outcome)
                writer.write_when_due()
                meter.report_when_due()
        meter.report()
        if self.interrupt.seen:
            raise HeapwrightError(
                f"{self.study.path}: interrupted with {meter.finished:,} of {meter.total:,} replays stored or given "
                "up; the same command goes on from there"
            )


class Trials:
    """Traces of one role, and what is known of recipes on them."""

    def __init__(self, study: Study, traces: Sequence[Trace], role: Role, objectives: Sequence[str] = ()) -> None:
        """Take what the study holds. ``objectives`` are those that can only grow, or none."""
        self.traces, self.role, self.objectives = list(traces), role, tuple(objectives)
        self.rivals: Rivals | None = None
        self._least = [LeastFootprints(trace) for trace in traces] if "footprint_bytes" in objectives else []
        self._known: dict[str, Known] = {}
        self._seen = [Seen(trace) for trace in traces] if objectives else []
        self._ended: dict[tuple[int, Hashable], Mapping[str, Value]] = {}
        positions = {trace.name: at for at, trace in enumerate(traces)}
        for id, name, metrics in study.measured_on(role, ("failed", *self.objectives)):
            if name in positions:
                self.known(id).end(positions[name], metrics)
        if objectives:
            for id, name, least, so_far in study.partial():
                self.known(id).lay_floor(positions[name], least)
                self.known(id).raise_to(positions[name], so_far)

    def known(self, id: str) -> Known:
        """What is known of a recipe."""
        if id not in self._known:
            self._known[id] = Known(self.objectives, len(self.traces))
        return self._known[id]

    def compete(self, tolerance: float, ranked: Iterable[str]) -> Rivals:
        """Begin to compare: those of the ranked recipes that have ended everywhere are the first rivals."""
        self.rivals = Rivals(tolerance)
        for id in ranked:
            if self.known(id).ended.all():
                self.rivals.add(self.known(id))
        return self.rivals

    def take(self, outcome: _Outcome) -> None:
        """Take note of what was tried."""
        self._known[outcome.one.id] = outcome.known
        if self.rivals and outcome.one.ranked and outcome.known.ended.all():
            self.rivals.add(outcome.known)

    def replayed(self, at: int, recipe: Recipe, replay: Replay, watch: Watch | None) -> Mapping[str, Value]:
        """The metrics of a recipe on a trace, those of one that must do the same there if it has been replayed."""
        form = self._seen[at].form(recipe) if self._seen else None
        if form is None:
            return replay(self.traces[at], recipe, watch)
        if (at, form) not in self._ended:
            self._ended[at, form] = replay(self.traces[at], recipe, watch)
        return self._ended[at, form]

    def lay_floors(self, recipe: Recipe, known: Known) -> None:
        """Tell what is known of a recipe before its replays begin."""
        for at, least in enumerate(self._least):
            if not known.ended[at] and not known.floor[at]:
                known.lay_floor(at, least.of(recipe))


@dataclass(frozen=True)
class _Task:
    one: Candidate
    known: Known


@dataclass(frozen=True)
class _Outcome:
    """What one worker found of one recipe; ``begun`` says how many traces it had not ended on before."""

    one: Candidate
    known: Known
    results: list[Result]
    begun: int
    given_up: bool
    seconds: float


def _try(task: _Task, trials: Trials, replay: Replay, patience: Patience) -> _Outcome:
    """Replay one recipe on all traces that are worth it."""
    one, known, start = task.one, task.known, time.perf_counter()
    results, begun = [], int((~known.ended).sum())
    if patience.ends:
        trials.lay_floors(one.recipe, known)
    for at, trace in enumerate(trials.traces):
        if patience.over:
            break
        if known.ended[at] or not patience.begins(known, at):
            continue
        try:
            metrics = trials.replayed(at, one.recipe, replay, _watch(patience, known, at))
        except GivenUpError:
            continue
        known.end(at, metrics)
        results.append(Result(one.id, one.recipe, one.zoo_name, trace.name, metrics, one.ranked))
    given_up = not known.ended.all() and (not patience.over or any(known.so_far))
    return _Outcome(one, known, results, begun, given_up, time.perf_counter() - start)


def _watch(patience: Patience, known: Known, at: int) -> Watch | None:
    if not patience.ends:
        return None
    return lambda so_far: patience.goes_on(known, at, so_far)


class _Writer:
    """Gathers results into transactions. On leaving its context, also by an exception, it stores the rest."""

    def __init__(self, study: Study, role: Role) -> None:
        self._study = study
        self._role = role
        self._batch: list[Result] = []
        self._partial: list[Partial] = []
        self._written = time.perf_counter()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def add(self, outcome: _Outcome, trials: Trials) -> None:
        self._batch += outcome.results
        one, known = outcome.one, outcome.known
        if not outcome.given_up:
            return
        self._partial += [
            Partial(one.id, one.recipe, one.zoo_name, trace.name, int(known.floor[at]), so_far, one.ranked)
            for at, trace in enumerate(trials.traces)
            if not known.ended[at] and (so_far := known.so_far[at] or _NOT_BEGUN)
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
    jobs: int
    finished: int = 0
    tolerance: float | None = None
    until: float = inf
    costs: Costs = field(default_factory=Costs)
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

    def expect(self, candidates: Iterable[Candidate]) -> None:
        """Take note of the recipes that are still to be tried, each on all traces."""
        self.left = self._replays(candidates)

    def seconds_of(self, candidates: Iterable[Candidate]) -> float:
        """What it takes to try so many recipes, each on all traces; 0 before any was."""
        return (self.costs.of_all(self._replays(candidates)) or 0.0) / self.jobs

    def _replays(self, candidates: Iterable[Candidate]) -> Counter[Hashable]:
        counted = Counter(design(one.recipe) for one in candidates)
        return Counter({kind: count * self.traces for kind, count in counted.items()})

    def pass_over(self, one: Candidate, replays: int) -> None:
        """Count replays of a recipe that are stored."""
        self.left[design(one.recipe)] -= replays
        self.finished += replays

    def for_pieces(self) -> Meter:
        """One that tells the same while recipes are only tried on pieces of their traces."""
        known = (self.finished, self.tolerance, self.until)
        return _Unmoved(self.callback, self.role, self.recipes, self.traces, self.jobs, *known)

    def count(self, outcome: _Outcome) -> None:
        """Count what was tried, given up or not."""
        kind = design(outcome.one.recipe)
        self.left[kind] -= outcome.begun
        self.costs.add(kind, outcome.seconds / outcome.begun)
        self._move(outcome.begun)

    def _move(self, replays: int) -> None:
        self.finished += replays
        self._evaluated += replays

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest; to the end of the time at most."""
        seconds = self.costs.of_all(self.left)
        if seconds is None:
            return None
        return min(seconds / self.jobs, max(self.until - time.perf_counter(), 0.0))

    def report_when_due(self) -> None:
        """Report about ten times a second."""
        if time.perf_counter() - self._reported >= _POLL_SECONDS:
            self.report()

    def report(self) -> None:
        """Report now."""
        self._reported = time.perf_counter()
        if self.callback:
            seconds = self._reported - self._start
            shown = _SHOWN[self.role]
            left = self.seconds_left
            self.callback(Progress(shown, self.finished, self.total, self._evaluated, seconds, left, self.tolerance))


class _Unmoved(Meter):
    """Counts no piece as a replay."""

    def _move(self, replays: int) -> None:
        pass


def _tried(
    tasks: Sequence[_Task], trials: Trials, replay: Replay, jobs: int, patience: Patience
) -> Generator[_Outcome | None, None, None]:
    """Outcomes of the tasks as they finish, and None about ten times a second where none does.

    After an interrupt, the end of the time, or an exception in a worker, no further task is begun; those under way
    still count. The exception is raised at the end.
    """
    pending = deque(tasks)
    done: queue.SimpleQueue[_Outcome | BaseException] = queue.SimpleQueue()
    workers = [
        threading.Thread(target=_work, args=(pending, trials, replay, patience, done))
        for _ in range(min(jobs, len(tasks)))
    ]
    for worker in workers:
        worker.start()
    errors: list[BaseException] = []
    try:
        while any(worker.is_alive() for worker in workers) or not done.empty():
            yield _next(done, errors)
            if errors or patience.over:
                pending.clear()
    finally:
        pending.clear()
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]


def _next(done: queue.SimpleQueue[_Outcome | BaseException], errors: list[BaseException]) -> _Outcome | None:
    """The next outcome, if one comes soon; an exception goes to ``errors`` instead."""
    try:
        item = done.get(timeout=_POLL_SECONDS)
    except queue.Empty:
        return None
    if isinstance(item, _Outcome):
        return item
    errors.append(item)
    return None


def _work(
    pending: deque[_Task],
    trials: Trials,
    replay: Replay,
    patience: Patience,
    done: queue.SimpleQueue[_Outcome | BaseException],
) -> None:
    """One worker: takes tasks until there is none."""
    try:
        while pending:
            try:
                task = pending.popleft()
            except IndexError:  # another worker took the last one
                break
            done.put(_try(task, trials, replay, patience))
    except BaseException as error:  # raised again by the thread that collects
        done.put(error)
