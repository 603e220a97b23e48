"""Validation: replays on traces by which recipes are not ranked, perturbed copies and held-out traces."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from heapwright._explore.budget import MADE_A_CALL, TimeBudget
from heapwright._explore.evaluation import Evaluator, SearchCandidate, StopRule
from heapwright._explore.runner import Meter, Runner, Trials
from heapwright._measure.metrics import Replay
from heapwright._studies.records import TraceInfo
from heapwright._studies.tables import Role
from heapwright._traffic.workloads.made import each_copy

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


def copies_of(traces: Sequence[Trace], count: int, seed: int) -> Iterator[Trace]:
    """`count` perturbed copies of every trace, made one at a time."""
    return chain.from_iterable(each_copy(trace, count, seed=seed) for trace in traces if count)


@dataclass
class Validation:
    """Validation of recipes on traces by which they are not ranked."""

    runner: Runner
    plain_replay: Replay
    time_budget: TimeBudget

    def on(self, candidates: Sequence[SearchCandidate], traces: Sequence[Trace], role: Role, replay: Replay) -> None:
        """Replay every candidate on every trace but for the pairs that the study has, and store the results."""
        self._on(candidates, traces, replay, self._meter(role, candidates, len(traces)))
        if self.time_budget.until < inf:
            done = self._ended(candidates, list(map(TraceInfo.of, traces)), role)
            self.time_budget.note("held out, recipes", done, len(candidates))

    def on_copies(self, candidates: Sequence[SearchCandidate], traces: Sequence[Trace], count: int, seed: int) -> None:
        """Replay every candidate on `count` copies of every trace, made one at a time, for plain metrics.

        Within a budget on as many as there is time for; each is of all traces, and all candidates are replayed on it.
        """
        if self.time_budget.until < inf:
            self._in_time(candidates, traces, count, seed)
            return
        self.runner.study.set_apart([TraceInfo.of(copy) for copy in copies_of(traces, count, seed)], "copy")
        meter = self._meter("copy", candidates, len(traces) * count)
        for copy in copies_of(traces, count, seed):
            self._on(candidates, [copy], self.plain_replay, meter)

    def _in_time(self, candidates: Sequence[SearchCandidate], traces: Sequence[Trace], count: int, seed: int) -> None:
        """Replay candidates on one copy of each trace after the other, while there is time for another."""
        study = self.runner.study
        making = [each_copy(trace, count, seed=seed) for trace in traces if count]
        before, made = study.traces("copy"), list[TraceInfo]()
        seconds = sum(map(len, traces)) * MADE_A_CALL
        for _ in range(count):
            begun, replays = time.perf_counter(), self.time_budget.each * len(candidates) / self.time_budget.jobs
            if begun + seconds + (0 if before else replays) > self.time_budget.validation_until:
                break
            turn: list[TraceInfo] = []
            for copy in map(next, making):
                turn.append(TraceInfo.of(copy))
                kept = dict.fromkeys([*made, *turn, *before])
                study.set_apart(list(kept), "copy")
                self._on(candidates, [copy], self.plain_replay, self._meter("copy", candidates, 1))
            if self._ended(candidates, turn, "copy") != len(candidates):
                break
            made += turn
            seconds = max(time.perf_counter() - begun - replays, 0.0)
        study.set_apart(made, "copy")
        self.time_budget.note("copies", len(made) // len(traces), count)

    def _ended(self, candidates: Sequence[SearchCandidate], traces: Sequence[TraceInfo], role: Role) -> int:
        """Number of candidates that have finished all of these traces."""
        finished = self.runner.study.finished(role)
        return sum(all((candidate.id, trace.name) in finished for trace in traces) for candidate in candidates)

    def _meter(self, role: Role, candidates: Sequence[SearchCandidate], traces: int) -> Meter:
        until = self.time_budget.validation_until
        after = self.time_budget.stress_testing if until < inf else 0.0
        meter = Meter(
            self.runner.progress, role, len(candidates), traces, self.runner.workers, until=until, after=after
        )
        meter.expect(candidates)
        return meter

    def _on(self, candidates: Sequence[SearchCandidate], traces: Sequence[Trace], replay: Replay, meter: Meter) -> None:
        trials = Trials(self.runner.study, Evaluator(traces, replay), meter.role)
        for candidate in candidates:
            meter.pass_over(candidate, len(trials.traces) - trials.partial_result(candidate.id).remaining)
        self.runner.run(candidates, trials, meter, StopRule(self.runner.interrupt, until=meter.until))
