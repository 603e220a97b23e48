"""Trying: one recipe replayed on traces, wherever that runs, and given up where it is not worth going on with.

A thread of this process or a worker of a cluster does it with the same code. It changes nothing but what is known of
the recipe, and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np

from heapwright.decide.picks import design
from heapwright.explore.equivalent import KEPT, Alikes
from heapwright.explore.giving_up import Known, Rivals
from heapwright.measure.host.machine import machine
from heapwright.measure.metrics import Replay
from heapwright.replay.engine import GivenUpError, SoFar, Watch
from heapwright.replay.least import LeastAccesses, LeastFootprints
from heapwright.replay.metrics import Value

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace


@dataclass(frozen=True)
class Candidate:
    """A recipe to try: its id, the zoo's name if it has one, and whether it is ranked."""

    id: str
    recipe: Recipe
    zoo_name: str | None
    ranked: bool = True

    @cached_property
    def design(self) -> Hashable:
        """As `heapwright.decide.picks.design` says; it is asked for a dozen times."""
        return design(self.recipe)


class Flag(Protocol):
    """Something that may be seen at any time, and stays."""

    @property
    def seen(self) -> bool:
        """Whether it was."""


@dataclass(frozen=True)
class Patience:
    """What a replay is given up for: rivals that beat it, the end of a piece of its trace, the end of the time.

    ``pieces`` are the calls of each trace that make a piece of it, ``until`` is a time of `time.perf_counter`. Rivals
    do not beat what may still come as near to the front as ``spared`` times what some recipe there needs.
    """

    interrupt: Flag
    rivals: Rivals | None = None
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
        if bar is None or (self.spared is not None and not bar.is_far(known.bound, self.spared)):
            return False
        return bool(known.refused.any() or bar.beats(known.bound)) and bar.leaves_best(known, at)


@dataclass(frozen=True)
class Task:
    """A recipe, and what is known of it before it is tried."""

    one: Candidate
    known: Known

    @property
    def replays(self) -> int:
        """On how many traces it has not ended."""
        return self.known.ended.size - int(np.count_nonzero(self.known.ended))


@dataclass(frozen=True)
class Found:
    """What came of a task: what is known now, metrics by the position of the traces on which it has ended.

    ``begun`` says how many traces it had not ended on before; ``machine`` where times were measured, if any were.
    """

    known: Known
    metrics: Mapping[int, Mapping[str, Value]]
    begun: int
    given_up: bool
    seconds: float
    machine: str | None


class Trier:
    """Tries recipes on some traces, and remembers what one need not be told again. Threads may share one."""

    def __init__(self, traces: Sequence[Trace], replay: Replay, objectives: Sequence[str] = ()) -> None:
        """Take the traces and how to replay one. ``objectives`` are those that can only grow, or none."""
        self.traces, self.replay, self.objectives = list(traces), replay, tuple(objectives)
        self._order = sorted(range(len(traces)), key=lambda at: len(traces[at]))
        """The shortest first: a recipe that some trace tells to be beaten is given up for the fewest calls."""
        self._least = [LeastFootprints(trace) for trace in traces] if "footprint_bytes" in objectives else []
        self._least_accesses = [LeastAccesses(trace) for trace in traces] if "accesses" in objectives else []
        self._alikes = [Alikes(trace, KEPT // len(traces)) for trace in traces]
        self._ahead: dict[str, tuple[dict[int, Mapping[str, Value]], float]] = {}

    def __reduce__(self) -> tuple[type[Trier], tuple[object, ...]]:
        return Trier, (self.traces, self.replay, self.objectives)

    def try_ahead(self, one: Candidate) -> None:
        """Replay one recipe on all traces before it has its turn, and keep what comes of it until then."""
        start = time.thread_time()  # the other threads of this process are not waited for at its turn
        metrics = {at: self._replayed(at, one.recipe, None) for at in self._order}
        self._ahead[one.id] = metrics, time.thread_time() - start

    def found(self, task: Task, patience: Patience) -> Found:
        """Replay one recipe on all traces that are worth it."""
        recipe, known, start = task.one.recipe, task.known, time.perf_counter()
        metrics, begun = {}, task.replays
        ahead, earlier = self._ahead.pop(task.one.id, ({}, 0.0))
        if patience.ends:
            self.lay_floors(recipe, known)
        for at in self._order:
            if patience.over:
                break
            if known.ended[at] or not patience.begins(known, at):
                continue
            try:
                metrics[at] = ahead[at] if at in ahead else self._replayed(at, recipe, self._watch(patience, task, at))
            except GivenUpError as error:
                known.refused[at] |= error.refused
                continue
            known.end(at, metrics[at])
        given_up = task.replays > 0 and (not patience.over or any(known.so_far))
        timed = any(one.get("ns_per_event") is not None for one in metrics.values())
        seconds = earlier + time.perf_counter() - start
        return Found(known, metrics, begun, given_up, seconds, machine() if timed else None)

    def lay_floors(self, recipe: Recipe, known: Known) -> None:
        """Tell what is known of a recipe before its replays begin."""
        for at, least in enumerate(self._least):
            if not known.ended[at] and not known.floor[at]:
                known.lay_floor(at, least.of(recipe))
        for at in range(len(self._least_accesses)):
            if not known.ended[at]:
                self._expect_accesses(recipe, known, at, known.so_far[at])

    def _expect_accesses(self, recipe: Recipe, known: Known, at: int, so_far: SoFar | None) -> None:
        """Tell how many accesses a replay comes to at least that has come so far."""
        calls, made = (so_far.calls, so_far.accesses) if so_far else (0, 0)
        known.expect(at, "accesses", made + self._least_accesses[at].of(recipe, calls))

    def _watch(self, patience: Patience, task: Task, at: int) -> Watch | None:
        """What asks whether a replay is worth going on with; None where nothing ends it."""
        if not patience.ends:
            return None
        known = task.known

        def goes_on(so_far: SoFar) -> bool:
            if self._least_accesses:
                self._expect_accesses(task.one.recipe, known, at, so_far)
            return patience.goes_on(known, at, so_far)

        return goes_on

    def _replayed(self, at: int, recipe: Recipe, watch: Watch | None) -> Mapping[str, Value]:
        """The metrics of a recipe on a trace, those of one that does the same there if it has been replayed."""
        return self._alikes[at].metrics(recipe, watch, lambda: self.replay(self.traces[at], recipe, watch))
