"""Stress tests of the recipes that may ship: briefly of the front, longer of the recommendations."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from heapwright._explore.budget import TimeBudget
from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._explore.runner import NOT_BEGUN, Meter, Runner
from heapwright._replay.engine import GivenUpError, Margins
from heapwright._replay.metrics import Value
from heapwright._replay.replay import Replayed
from heapwright._replay.stress_test import LONG, SHORT, StressEffort, run_stress_test
from heapwright._studies.decision import Deciding
from heapwright._studies.recommendations import PICKS

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.engine import Watch
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace

_STORED_SECONDS = 2.0

MOST_PICKED = 30
"""Rounds at most in which recommendations are tested for longer and replaced if they fail."""


@dataclass(frozen=True)
class StressTesting:
    """Stress test in place of a replay."""

    effort: StressEffort = SHORT
    threads: int = 1

    def __call__(self, trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        """The metrics of `SHIPPING_METRICS`; ``watch`` decides between loops whether to continue."""

        def go_on(_: str) -> None:
            if watch and not watch(NOT_BEGUN):
                raise GivenUpError(NOT_BEGUN, Margins(0, 0, 0, 0))

        result = run_stress_test(trace, recipe, self.effort, threads=self.threads, progress=go_on)
        metrics: dict[str, Value] = {
            "growth_ratio": result.growth_ratio,
            "lasts": int(result.stable),
            "endured_calls": result.calls,
        }
        return Replayed({**metrics, "failed": 0})


def stress_test_each(
    runner: Runner,
    candidates: Sequence[SearchCandidate],
    traces: Sequence[Trace],
    effort: StressEffort = SHORT,
    until: float = inf,
) -> None:
    """Stress-test every candidate on every trace but for the pairs that the study holds, and store the results.

    One trace after the other, as the loops of a trace are made once for all allocators. A candidate that fails on a
    trace is not tested for longer on the next ones that it passed. Nothing begins after ``until``, a time of
    `time.perf_counter`. The study holds a pair if it was tested for as many calls, or failed.

    Raises HeapwrightError after an interrupt; finished tests are stored.
    """
    study, ended, tested = runner.study, runner.study.endured(effort.calls), runner.study.endured()
    remaining = [[candidate for candidate in candidates if (candidate.id, trace.name) not in ended] for trace in traces]
    pairs, new = len(candidates) * len(traces), [item for each in remaining for item in each]
    meter = Meter(runner.progress, "explored", pairs, 1, runner.workers, what="stress test", until=until)
    meter.finished = pairs - len(new)
    meter.expect(new)
    failed: set[str] = set()
    waiting: list[tuple[str, str, Mapping[str, Value]]] = []
    stored = time.perf_counter()

    def store_when_due() -> None:
        nonlocal waiting, stored
        if waiting and time.perf_counter() - stored > _STORED_SECONDS:
            study.set_endurance(waiting)
            waiting, stored = [], time.perf_counter()

    try:
        stop_rule = StopRule(runner.interrupt, until=until)
        for trace, heaps in zip(traces, remaining, strict=True):
            tasks = []
            for item in heaps:
                if item.id in failed and (item.id, trace.name) in tested:
                    meter.pass_over(item, 1)
                else:
                    tasks.append(EvaluationTask(item, PartialResult((), 1)))
            evaluator = Evaluator([trace], StressTesting(effort, runner.workers.threads_of_each(len(tasks))))
            with closing(runner.evaluations(tasks, evaluator, meter, store_when_due, stop_rule)) as outcomes:
                for task, result in outcomes:
                    waiting += [(task.candidate.id, trace.name, metrics) for metrics in result.metrics.values()]
                    failed |= {task.candidate.id for metrics in result.metrics.values() if not metrics["lasts"]}
    finally:
        study.set_endurance(waiting)


def stress_test_best(
    runner: Runner, candidates: Mapping[str, SearchCandidate], traces: Sequence[Trace], time_budget: TimeBudget
) -> None:
    """Stress-test the front briefly, and the recommendations for longer.

    A recipe that fails leaves the front, and the next one takes its place and is tested in turn. If time is short, the
    recommendations come first, and ``time_budget`` notes what there was no time for.
    """
    study, until = runner.study, time_budget.stress_tests_until

    def run(ids: Iterable[str], effort: StressEffort) -> bool:
        """Test these recipes; returns whether any of them had not been tested for as long before."""
        known = study.endured(effort.calls)
        new = [id for id in dict.fromkeys(ids) if any((id, trace.name) not in known for trace in traces)]
        stress_test_each(runner, [candidates[id] for id in new], traces, effort, until)
        return bool(new)

    if not len(study.combined.front_rows(study.objectives)):
        return
    for _ in range(MOST_PICKED):
        new = until < inf and run(recommended(study), SHORT)
        new |= run([member.id for member in study.front()], SHORT)
        new |= run(recommended(study), LONG)
        if not new or time.perf_counter() >= until:
            break
    if until < inf:
        known, front = study.endured(SHORT.calls), [member.id for member in study.front()]
        done = sum(all((id, trace.name) in known for trace in traces) for id in front)
        time_budget.note("stress test of the front", done, len(front))
        known, picked = study.endured(LONG.calls), set(recommended(study))
        done = sum(all((id, trace.name) in known for trace in traces) for id in picked)
        time_budget.note("longer stress test of recommendations", done, len(picked))


def recommended(study: Analysis) -> list[str]:
    """The ids of all recommendations and of the steps shown with each."""
    deciding = Deciding(study, study.objectives)
    decisions = [deciding.on(study.pick(how)) for how in PICKS]
    steps = [other.heap.id for decision in decisions for other in decision.others if other.why == "step"]
    return [*(decision.pick.id for decision in decisions), *steps]
