"""Whether what may ship lasts: a short form of endurance on the traces explored on, and the bound on a call.

Of the recipes that a study may come to ship alone: its front, what is near it, and the heaps that everybody knows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heapwright.errors import HeapwrightError
from heapwright.explore.rivals import Known
from heapwright.explore.running import Meter, Runner
from heapwright.explore.trying import Candidate, Patience, Task, Trier
from heapwright.recipes.worst_steps import worst_steps
from heapwright.replay.endurance import LONG, LONG_WALKING, SHORT, Effort, endure
from heapwright.replay.metrics import Value
from heapwright.replay.replay import Replayed

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.replay.engine import Watch
    from heapwright.traces.trace import Trace

_STORED_SECONDS = 2.0


@dataclass(frozen=True)
class Enduring:
    """What takes the place of a replay: whether a recipe lasts on what a trace asks for."""

    effort: Effort = SHORT

    def __call__(self, trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        """The metrics of `SHIPPING_METRICS`."""
        most = worst_steps(recipe).most
        found = endure(trace, recipe, LONG_WALKING if self.effort == LONG and most is None else self.effort)
        metrics: dict[str, Value] = {
            "growth_ratio": found.growth_ratio,
            "lasts": int(found.lasts),
            "endured_calls": self.effort.calls,
        }
        return Replayed({**metrics, "failed": 0})


def try_endurance(
    runner: Runner, candidates: Sequence[Candidate], traces: Sequence[Trace], effort: Effort = SHORT
) -> None:
    """Try every candidate on every trace but for the pairs that the study knows of, and store what comes of it.

    A pair is known that was tried for as many calls, or that does not last.

    Raises HeapwrightError after an interrupt; what was tried is stored.
    """
    study, names = runner.study, [trace.name for trace in traces]
    ended, tasks = study.endured(effort.calls), []
    meter = Meter(runner.progress, "explored", len(candidates), len(traces), runner.crew, what="endurance")
    for one in candidates:
        known = Known((), len(traces))
        known.ended[:] = [(one.id, name) in ended for name in names]
        task = Task(one, known)
        meter.finished += len(names) - task.replays
        if task.replays:
            tasks.append(task)
    meter.expect([task.one for task in tasks])
    patience, waiting, stored = Patience(runner.interrupt), [], time.perf_counter()
    with closing(
        runner.crew.tried(tasks, Trier(traces, Enduring(effort)), patience, meter.seconds_of_task)
    ) as outcomes:
        for outcome in outcomes:
            if outcome is not None:
                task, found = outcome
                waiting += [(task.one.id, names[at], metrics) for at, metrics in found.metrics.items()]
                if found.metrics:
                    meter.count(task.one, found)
            if waiting and time.perf_counter() - stored > _STORED_SECONDS:
                study.set_endurance(waiting)
                waiting, stored = [], time.perf_counter()
            meter.report_when_due()
    study.set_endurance(waiting)
    meter.report()
    if runner.interrupt.seen:
        raise HeapwrightError(f"{study.path}: interrupted with {meter.finished:,} of {meter.total:,} tried")
