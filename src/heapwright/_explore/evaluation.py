"""Trying: one recipe replayed on traces, wherever that runs, and given up where it is not worth going on with.

A thread of this process or a worker of a cluster does it with the same code. It changes nothing but what is known of
the recipe, and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np

from heapwright._explore.pruning import FrontBound, Incumbents, PartialResult
from heapwright._explore.result_cache import KEPT, ResultCache
from heapwright._measure.host.machine import machine
from heapwright._measure.metrics import Measure, Replay
from heapwright._replay.engine import GROWING, GivenUpError, LevelWatch, PruningThresholds, ReplayProgress, Watch
from heapwright._replay.lower_bounds import LeastAccesses, LeastFootprints, RemainingAccesses, in_all
from heapwright._replay.metrics import Value
from heapwright._replay.replay import BATCH
from heapwright._studies.recommendations import design
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class SearchCandidate:
    """A recipe to try: its id, the zoo's name if it has one, and whether it is ranked."""

    id: str
    recipe: Recipe
    zoo_name: str | None
    ranked: bool = True

    @cached_property
    def design(self) -> Hashable:
        """The recipe's design (`heapwright._studies.recommendations.design`), computed once."""
        return design(self.recipe)


class Flag(Protocol):
    """Something that may be seen at any time, and stays."""

    @property
    def seen(self) -> bool:
        """Whether it was."""


@dataclass(frozen=True)
class StopRule:
    """What a replay is given up for: rivals that beat it, the end of a piece of its trace, the end of the time.

    ``pieces`` are the calls of each trace that make a piece of it, ``until`` is a time of `time.perf_counter`. Rivals
    do not beat what may still come as near to the front as ``spared`` times what some recipe there needs.
    """

    interrupt: Flag
    rivals: Incumbents | None = None
    pieces: Sequence[int] | None = None
    until: float = inf
    spared: float | None = None

    @property
    def ends(self) -> bool:
        """Whether there is anything but an interrupt to give a replay up for."""
        return self.rivals is not None or self.pieces is not None or self.until < inf

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.interrupt.seen or time.perf_counter() >= self.until

    def is_done(self, at: int, calls: int) -> bool:
        """Whether so many calls of a trace are all that is wanted of it."""
        return self.pieces is not None and calls >= self.pieces[at]

    def goes_on(self, known: PartialResult, at: int, so_far: ReplayProgress) -> bool:
        """Whether a replay is worth going on with."""
        known.raise_to(at, so_far)
        if self.over or self.is_done(at, so_far.calls):
            return False
        return not (self.is_beaten(known) and self.leaves_best(known, at))

    @property
    def bar(self) -> FrontBound | None:
        """What a recipe has to come below; None where nobody competes, or no rival has served all."""
        return self.rivals.bar if self.rivals else None

    def is_beaten(self, known: PartialResult) -> bool:
        """Whether rivals beat a recipe, so that it is only replayed where it may be the best."""
        bar = self.bar
        if bar is None or (self.spared is not None and not bar.is_far(known.bound, self.spared)):
            return False
        return bool(known.refused.any() or bar.beats(known.bound))

    def leaves_best(self, known: PartialResult, at: int) -> bool:
        """Whether a recipe that is beaten is not so good on a trace that it changes how rivals stand."""
        bar = self.bar
        return bar is not None and bar.leaves_best(known, at)


@dataclass(frozen=True)
class EvaluationTask:
    """A recipe, and what is known of it before it is tried."""

    one: SearchCandidate
    known: PartialResult

    @property
    def replays(self) -> int:
        """On how many traces it has not ended."""
        return self.known.left


@dataclass(frozen=True)
class EvaluationOutcome:
    """What came of a task: what is known now, metrics by the position of the traces on which it has ended.

    ``begun`` says how many traces it had not ended on before; ``machine`` where times were measured, if any were.
    """

    known: PartialResult
    metrics: Mapping[int, Mapping[str, Value]]
    begun: int
    given_up: bool
    seconds: float
    machine: str | None


_BATCH_CALLS = 1 << 14
"""Of traces that have more calls between them not even two recipes are replayed at once: an interrupt waits so long."""


class Evaluator:
    """Tries recipes on some traces, and remembers what one need not be told again. Threads may share one."""

    def __init__(self, traces: Sequence[Trace], replay: Replay, objectives: Sequence[str] = ()) -> None:
        """Take the traces and how to replay one. ``objectives`` are those that can only grow, or none."""
        self.traces, self.replay, self.objectives = list(traces), replay, tuple(objectives)
        self._order = sorted(range(len(traces)), key=lambda at: len(traces[at]))
        """The shortest first: a recipe that some trace tells to be beaten is given up for the fewest calls."""
        self._least = LeastFootprints(traces) if "footprint_bytes" in objectives else None
        self._least_accesses = LeastAccesses(traces) if "accesses" in objectives else None
        self._alikes = [ResultCache(trace, KEPT // len(traces)) for trace in traces]
        self._each = replay.each if isinstance(replay, Measure) and not replay.measured else None
        """Replays many recipes on a trace at once, None where only one by one will do."""
        self._ahead: dict[str, tuple[dict[int, Mapping[str, Value]], float]] = {}

    def __reduce__(self) -> tuple[type[Evaluator], tuple[object, ...]]:
        return Evaluator, (self.traces, self.replay, self.objectives)

    def try_ahead(self, item: SearchCandidate) -> None:
        """Replay one recipe on all traces before it has its turn, and keep what comes of it until then."""
        start = time.thread_time()  # the other threads of this process are not waited for at its turn
        metrics = {at: self._replayed(at, item.recipe, None) for at in self._order}
        self._ahead[item.id] = metrics, time.thread_time() - start

    def batch(self, patience: StopRule) -> int:
        """How many tasks are replayed together: more than one where short replays are all made to their end."""
        if self._each is None or patience.ends:
            return 1
        return min(BATCH, max(_BATCH_CALLS // max(sum(map(len, self.traces)), 1), 1))

    def found_each(self, tasks: Sequence[EvaluationTask], patience: StopRule) -> Iterator[EvaluationOutcome]:
        """`found` of each task, on each trace `batch` of them replayed together.

        Where one fails, what comes of those ahead of it is told first.
        """
        size = self.batch(patience)
        for start in range(0, len(tasks), size):
            some = tasks[start : start + size]
            if len(some) > 1 and all(task.one.id not in self._ahead for task in some):
                with suppress(HeapwrightError):
                    yield from self._together(some)
                    continue
            for task in some:
                yield self.found(task, patience)

    def _together(self, tasks: Sequence[EvaluationTask]) -> list[EvaluationOutcome]:
        assert self._each is not None
        start = time.perf_counter()
        metrics: list[dict[int, Mapping[str, Value]]] = [{} for _ in tasks]
        for at in self._order:
            remaining = [(task, info) for task, info in zip(tasks, metrics, strict=True) if not task.known.ended[at]]
            replay_each = partial(self._each, self.traces[at])
            each = self._alikes[at].metrics_of_each([task.one.recipe for task, _ in remaining], replay_each)
            for (_, info), item in zip(remaining, each, strict=True):
                info[at] = item
        for task, info in zip(tasks, metrics, strict=True):
            for at, of_trace in info.items():
                task.known.end(at, of_trace)
        seconds = (time.perf_counter() - start) / len(tasks)
        return [
            EvaluationOutcome(task.known, info, len(info), False, seconds, None)
            for task, info in zip(tasks, metrics, strict=True)
        ]

    def found(self, task: EvaluationTask, patience: StopRule) -> EvaluationOutcome:
        """Replay one recipe on all traces that are worth it."""
        recipe, known, start = task.one.recipe, task.known, time.perf_counter()
        metrics, begun = {}, task.replays
        ahead, earlier = self._ahead.pop(task.one.id, ({}, 0.0))
        to_come = self.lay_floors(recipe, known) if patience.ends else None
        beaten = patience.is_beaten(known)
        for at in self._order:
            if patience.over:
                break
            if known.ended[at] or patience.is_done(at, known.calls(at)):
                continue
            if beaten and patience.leaves_best(known, at):
                continue
            try:
                watch = _OnTrace(patience, known, at, self.objectives, to_come) if patience.ends else None
                metrics[at] = ahead[at] if at in ahead else self._replayed(at, recipe, watch)
                known.end(at, metrics[at])
            except GivenUpError as error:
                known.refused[at] |= error.refused
            beaten = patience.is_beaten(known)
        given_up = task.replays > 0 and (not patience.over or any(known.so_far))
        timed = any(metric.get("ns_per_event") is not None for metric in metrics.values())
        seconds = earlier + time.perf_counter() - start
        return EvaluationOutcome(known, metrics, begun, given_up, seconds, machine() if timed else None)

    def lay_floors(self, recipe: Recipe, known: PartialResult) -> Sequence[RemainingAccesses] | None:
        """Tell what is known of a recipe before its replays begin; returns the accesses to come on each trace.

        None where they are no objective.
        """
        if self._least and not known.floor.any():
            known.lay_floor(slice(None), self._least.of(recipe))
        if self._least_accesses is None:
            return None
        to_come = self._least_accesses.of(recipe)
        known.expect(
            slice(None), "accesses", [in_all(of, made) for of, made in zip(to_come, known.so_far, strict=True)]
        )
        return to_come

    def _replayed(self, at: int, recipe: Recipe, watch: Watch | None) -> Mapping[str, Value]:
        """The metrics of a recipe on a trace, those of one that does the same there if it has been replayed."""
        return self._alikes[at].metrics(recipe, watch, lambda: self.replay(self.traces[at], recipe, watch))


class _OnTrace(LevelWatch):
    """Watches the replay of a recipe on one of the traces."""

    def __init__(
        self,
        patience: StopRule,
        known: PartialResult,
        at: int,
        objectives: Sequence[str],
        to_come: Sequence[RemainingAccesses] | None,
    ) -> None:
        self._patience, self._known, self._at = patience, known, at
        self._to_come = to_come[at] if to_come else None
        self._columns = [GROWING.index(key) for key in objectives]
        self._bar: FrontBound | None = None
        self._levels: PruningThresholds | None = None

    def __call__(self, so_far: ReplayProgress) -> bool:
        if self._to_come is not None:
            self._known.expect(self._at, "accesses", in_all(self._to_come, so_far))
        return self._patience.goes_on(self._known, self._at, so_far)

    def levels(self) -> PruningThresholds | None:
        """The bar's thresholds, computed anew only if the bar has changed; None if pieces end replays."""
        bar = None if self._patience.pieces is not None else self._patience.bar
        if bar is not self._bar:
            self._bar, self._levels = bar, None
            if bar is not None:
                corners = bar.corners(self._known, self._at)
                levels = np.zeros((len(corners), len(GROWING)), np.int64)
                levels[:, self._columns] = corners
                self._levels = PruningThresholds(levels, self._to_come)
        return self._levels
