"""Evaluation of one recipe: its replays on all traces, each pruned once the recipe cannot reach the front any more.

Threads of this process and workers of a cluster run the same code. It changes the recipe's `PartialResult` alone, and
writes nothing.
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
    """A recipe to evaluate: its id, its name if it is a reference allocator, and whether it is ranked.

    ``always``: whether it is evaluated first and never pruned, as reference allocators are.
    """

    id: str
    recipe: Recipe
    zoo_name: str | None
    ranked: bool = True
    always: bool = False

    @cached_property
    def design(self) -> Hashable:
        """The recipe's design (`heapwright._studies.recommendations.design`), computed once."""
        return design(self.recipe)


class Flag(Protocol):
    """An event that another thread or a signal reports, such as an interrupt."""

    @property
    def seen(self) -> bool:
        """Whether it has happened; never reset."""


@dataclass(frozen=True)
class StopRule:
    """The rule that ends evaluations: an interrupt, the end of the time, of a piece of a trace, or pruning.

    Attributes:
        interrupt: Ctrl-C.
        incumbents: finished recipes; what they dominate is pruned. None: nothing is.
        pieces: calls of each trace that make a piece of it; None for whole traces.
        until: a time of `time.perf_counter`.
        tolerated: what needs at most this many times as much as some recipe of the front is not pruned.
    """

    interrupt: Flag
    incumbents: Incumbents | None = None
    pieces: Sequence[int] | None = None
    until: float = inf
    tolerated: float | None = None

    @property
    def watches(self) -> bool:
        """Whether replays have to be watched: anything but an interrupt may end them."""
        return self.incumbents is not None or self.pieces is not None or self.until < inf

    @property
    def over(self) -> bool:
        """Whether no further evaluation begins."""
        return self.interrupt.seen or time.perf_counter() >= self.until

    def ends_piece(self, at: int, calls: int) -> bool:
        """Whether the piece of a trace ends at this call or before."""
        return self.pieces is not None and calls >= self.pieces[at]

    def continues(self, partial_result: PartialResult, at: int, so_far: ReplayProgress) -> bool:
        """Whether a replay goes on; takes note of how far it has come."""
        partial_result.update(at, so_far)
        return not (self.over or self.ends_piece(at, so_far.calls) or self.prunes(partial_result, at))

    def prunes(self, partial_result: PartialResult, at: int) -> bool:
        """Whether the replay on one trace cannot change the front any more."""
        front_bound = self.front_bound
        if front_bound is None:
            return False
        if self.tolerated is not None and not front_bound.is_far(partial_result.bound, self.tolerated):
            return False
        is_dominated = bool(partial_result.refused.any() or front_bound.dominates(partial_result.bound))
        return is_dominated and front_bound.leaves_best_unchanged(partial_result, at)

    @property
    def front_bound(self) -> FrontBound | None:
        """The bound that a recipe has to stay below; None without incumbents that completed all traces."""
        return self.incumbents.front_bound if self.incumbents else None


@dataclass(frozen=True)
class EvaluationTask:
    """A recipe, and its partial result before it is evaluated."""

    candidate: SearchCandidate
    partial_result: PartialResult

    @property
    def replays(self) -> int:
        """Number of traces on which its replay has not ended."""
        return self.partial_result.remaining


@dataclass(frozen=True)
class EvaluationOutcome:
    """Result of a task: the partial result now, and metrics by the position of the traces on which its replay ended.

    ``begun``: the number of traces on which it had not ended before; ``machine``: where times were measured, if any
    were.
    """

    partial_result: PartialResult
    metrics: Mapping[int, Mapping[str, Value]]
    begun: int
    given_up: bool
    seconds: float
    machine: str | None


_BATCH_CALLS = 1 << 14
"""If all traces together have more calls, recipes are replayed one by one: an interrupt waits for a batch to end."""


class Evaluator:
    """Evaluates recipes on some traces, and caches results of recipes that behave the same. Threads may share one."""

    def __init__(self, traces: Sequence[Trace], replay: Replay, objectives: Sequence[str] = ()) -> None:
        """Take the traces and how to replay one. ``objectives`` are those that can only grow, or none."""
        self.traces, self.replay, self.objectives = list(traces), replay, tuple(objectives)
        self._order = sorted(range(len(traces)), key=lambda at: len(traces[at]))
        """The shortest trace first, so that a recipe that some trace prunes is pruned after the fewest calls."""
        self._least = LeastFootprints(traces) if "footprint_bytes" in objectives else None
        self._least_accesses = LeastAccesses(traces) if "accesses" in objectives else None
        self._caches = [ResultCache(trace, KEPT // len(traces)) for trace in traces]
        self._replay_each = replay.each if isinstance(replay, Measure) and not replay.measured else None
        """Replays many recipes on a trace at once; None if the replay cannot."""
        self._prefetched: dict[str, tuple[dict[int, Mapping[str, Value]], float]] = {}

    def __reduce__(self) -> tuple[type[Evaluator], tuple[object, ...]]:
        return Evaluator, (self.traces, self.replay, self.objectives)

    def prefetch(self, candidate: SearchCandidate) -> None:
        """Replay one recipe on all traces before its turn, and keep the metrics until then."""
        start = time.thread_time()  # its turn counts no time that other threads of this process took meanwhile
        metrics = {at: self._replayed(at, candidate.recipe, None) for at in self._order}
        self._prefetched[candidate.id] = metrics, time.thread_time() - start

    def batch(self, stop_rule: StopRule) -> int:
        """How many tasks are replayed together: more than one if replays are short and nothing watches them."""
        if self._replay_each is None or stop_rule.watches:
            return 1
        return min(BATCH, max(_BATCH_CALLS // max(sum(map(len, self.traces)), 1), 1))

    def evaluate_each(self, tasks: Sequence[EvaluationTask], stop_rule: StopRule) -> Iterator[EvaluationOutcome]:
        """`evaluate` each task; on each trace `batch` of them are replayed together.

        If one fails, the outcomes of those before it are yielded first.
        """
        size = self.batch(stop_rule)
        for start in range(0, len(tasks), size):
            some = tasks[start : start + size]
            if len(some) > 1 and all(task.candidate.id not in self._prefetched for task in some):
                with suppress(HeapwrightError):
                    yield from self._evaluate_together(some)
                    continue
            for task in some:
                yield self.evaluate(task, stop_rule)

    def _evaluate_together(self, tasks: Sequence[EvaluationTask]) -> list[EvaluationOutcome]:
        assert self._replay_each is not None
        start = time.perf_counter()
        metrics: list[dict[int, Mapping[str, Value]]] = [{} for _ in tasks]
        for at in self._order:
            open_ = [(task, of) for task, of in zip(tasks, metrics, strict=True) if not task.partial_result.ended[at]]
            replay_each = partial(self._replay_each, self.traces[at])
            results = self._caches[at].metrics_of_each([task.candidate.recipe for task, _ in open_], replay_each)
            for (_, of), result in zip(open_, results, strict=True):
                of[at] = result
        for task, of in zip(tasks, metrics, strict=True):
            for at, of_trace in of.items():
                task.partial_result.end(at, of_trace)
        seconds = (time.perf_counter() - start) / len(tasks)
        return [
            EvaluationOutcome(task.partial_result, of, len(of), False, seconds, None)
            for task, of in zip(tasks, metrics, strict=True)
        ]

    def evaluate(self, task: EvaluationTask, stop_rule: StopRule) -> EvaluationOutcome:
        """Replay one recipe on all traces on which it is neither finished nor pruned."""
        recipe, partial_result, start = task.candidate.recipe, task.partial_result, time.perf_counter()
        metrics, begun = {}, task.replays
        prefetched, earlier = self._prefetched.pop(task.candidate.id, ({}, 0.0))
        accesses = self.set_lower_bounds(recipe, partial_result) if stop_rule.watches else None
        watch_on = partial(_OnTrace, stop_rule, partial_result, self.objectives, accesses)
        for at in self._order:
            if stop_rule.over:
                break
            is_done = partial_result.ended[at] or stop_rule.ends_piece(at, partial_result.calls(at))
            if is_done or stop_rule.prunes(partial_result, at):
                continue
            try:
                watch = watch_on(at) if stop_rule.watches else None
                metrics[at] = prefetched[at] if at in prefetched else self._replayed(at, recipe, watch)
                partial_result.end(at, metrics[at])
            except GivenUpError as error:
                partial_result.refused[at] |= error.refused
        # at the end of the time a recipe that no replay has begun on is left as it was, not pruned
        given_up = task.replays > 0 and (not stop_rule.over or any(partial_result.so_far))
        timed = any(metric.get("ns_per_event") is not None for metric in metrics.values())
        seconds = earlier + time.perf_counter() - start
        return EvaluationOutcome(partial_result, metrics, begun, given_up, seconds, machine() if timed else None)

    def set_lower_bounds(self, recipe: Recipe, partial_result: PartialResult) -> Sequence[RemainingAccesses] | None:
        """Set the lower bounds of a recipe before its replays; returns its least remaining accesses on each trace.

        None if accesses are no objective.
        """
        if self._least and not partial_result.floor.any():
            partial_result.set_least_footprint(slice(None), self._least.of(recipe))
        if self._least_accesses is None:
            return None
        remaining_accesses = self._least_accesses.of(recipe)
        least = [in_all(of, so_far) for of, so_far in zip(remaining_accesses, partial_result.so_far, strict=True)]
        partial_result.expect(slice(None), "accesses", least)
        return remaining_accesses

    def _replayed(self, at: int, recipe: Recipe, watch: Watch | None) -> Mapping[str, Value]:
        """Metrics of a recipe on a trace, from the cache if a recipe that behaves the same there was replayed."""
        return self._caches[at].metrics(recipe, watch, lambda: self.replay(self.traces[at], recipe, watch))


class _OnTrace(LevelWatch):
    """Watch of a recipe's replay on one of the traces."""

    def __init__(
        self,
        stop_rule: StopRule,
        partial_result: PartialResult,
        objectives: Sequence[str],
        remaining_accesses: Sequence[RemainingAccesses] | None,
        at: int,
    ) -> None:
        self._stop_rule, self._partial_result, self._at = stop_rule, partial_result, at
        self._remaining_accesses = remaining_accesses[at] if remaining_accesses else None
        self._columns = [GROWING.index(key) for key in objectives]
        self._front_bound: FrontBound | None = None
        self._levels: PruningThresholds | None = None

    def __call__(self, so_far: ReplayProgress) -> bool:
        if self._remaining_accesses is not None:
            self._partial_result.expect(self._at, "accesses", in_all(self._remaining_accesses, so_far))
        return self._stop_rule.continues(self._partial_result, self._at, so_far)

    def levels(self) -> PruningThresholds | None:
        """Thresholds of the front bound, computed again only if it has changed; None if pieces end replays."""
        front_bound = None if self._stop_rule.pieces is not None else self._stop_rule.front_bound
        if front_bound is not self._front_bound:
            self._front_bound, self._levels = front_bound, None
            if front_bound is not None:
                corners = front_bound.corners(self._partial_result, self._at)
                levels = np.zeros((len(corners), len(GROWING)), np.int64)
                levels[:, self._columns] = corners
                self._levels = PruningThresholds(levels, self._remaining_accesses)
        return self._levels
