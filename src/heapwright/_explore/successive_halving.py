"""Successive halving of recipes on ever longer parts of a future, until few are replayed on all of it.

The recording ranks thousands of recipes cheaply, and its nearest few are often the ones that fragment in the long run.
So the first round has many recipes, several of each design, and each round keeps those nearest to the front so far
(Jamieson and Talwalkar 2016, with the distance to a front in place of one loss). All are replayed on the same future,
so their needs compare.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.pruning import PartialResult
from heapwright._explore.runner import Meter, Runner
from heapwright._replay.long_run import long_run
from heapwright._replay.metrics import METRICS, ON_RECORDING, Value
from heapwright._replay.replay import Replayed
from heapwright._studies import pareto
from heapwright._studies.recommendations import COST_STEP, MEMORY, MEMORY_STEP

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.engine import Watch
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace

ROUNDS = ((1 / 20, 480), (1 / 5, 120), (1, 40))
"""Rounds: share of the future that is replayed, and number of recipes."""

OF_A_DESIGN = 24
"""Most recipes of one design in the first round: others of the same design differ in a threshold alone."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LongRunReplay:
    """Replay of a future, or of its beginning, in place of a trace."""

    def __call__(self, trace: Trace, recipe: Recipe, watch: Watch | None) -> Replayed:
        """The metrics of `LONG_RUN_METRICS`, and `footprint_bytes` at the end, growth without bound or not."""
        result = long_run(trace, recipe, watch)
        return Replayed({**result.metrics(), "footprint_bytes": result.footprint, "failed": result.failed})


def race(
    runner: Runner,
    candidates: Mapping[str, SearchCandidate],
    traces: Sequence[Trace],
    futures: Sequence[Trace],
    always: Iterable[str] = (),
    until: float = inf,
) -> list[str]:
    """Successive halving; ids of the recipes replayed on all of every future, nearest to the front first.

    The results are stored.

    ``candidates``: recipes by id, for which the study has results on all traces; ``always``: ids of those that reach
    the last round in any case. Nothing begins after ``until``, a time of `time.perf_counter`; results so far are
    stored then. Raises HeapwrightError after an interrupt.
    """
    study = runner.study
    always = [id for id in dict.fromkeys(always) if id in candidates and study.combined.row(id) is not None]
    ordered = starters(study, candidates)
    if until < inf:  # first what any answer needs, in time or not; later rounds find it stored
        _replayed(runner, [candidates[id] for id in always if candidates[id].always], traces, futures, True, inf)
        _replayed(runner, [candidates[id] for id in always], traces, futures, True, until)
    for share, most in ROUNDS:
        ids = list(dict.fromkeys([*always, *ordered[:most]]))
        whole = share == 1
        parts = [future if whole else _beginning(future, share) for future in futures]
        result = _replayed(runner, [candidates[id] for id in ids], traces, parts, whole, until)
        if time.perf_counter() >= until and not whole:
            break
        ordered = _by_distance(study, result)
    return ordered


def starters(study: Analysis, candidates: Mapping[str, SearchCandidate]) -> list[str]:
    """Ids of the recipes of the first round, nearest to the front on the recordings first, few of each design."""
    results = study.combined
    keys = [ON_RECORDING.get(key, key) for key in study.objectives]
    rows = np.flatnonzero(results.serving(keys))
    if not len(rows):
        return []
    points = pareto.ratios_to_best(results.points(keys)[rows], results.directions_of(keys))
    order = np.argsort(distances(points, keys), kind="stable")
    of_design, nearest = Counter[object](), list[str]()
    for at in order:
        item = candidates.get(results.ids[rows[at]])
        if item is not None and of_design[item.design] < OF_A_DESIGN:
            of_design[item.design] += 1
            nearest.append(item.id)
    return nearest


def distances(points: Floats, keys: Sequence[str]) -> Floats:
    """Distance of points from their front, in steps of the price: the least, over members, of the largest ratio."""
    steps = np.log([MEMORY_STEP if key in MEMORY else COST_STEP for key in keys])
    scaled = np.exp(np.log(points) / steps)
    members = scaled[pareto.front(scaled, ["min"] * len(keys))]
    return pareto.distances(scaled, members)


def _beginning(future: Trace, share: float) -> Trace:
    calls = max(1, int(share * len(future)))
    columns = ("ts_us", "tid", "op", "id", "size", "align", "low", "failed", "phase", "site")
    return replace(future, **{key: getattr(future, key)[:calls] for key in columns})


def _by_distance(study: Analysis, result: Mapping[str, Sequence[Mapping[str, Value]]]) -> list[str]:
    """Ids of the recipes without failed requests on the futures, nearest to the front there first."""
    served = [id for id, each in result.items() if not any(item["failed"] for item in each)]
    if not served:
        return []
    points = np.stack([_values(study, key, served, result) for key in study.objectives], axis=1)
    known = np.flatnonzero(np.isfinite(points).all(axis=1))
    if not len(known):
        return []
    order = np.argsort(distances(points[known], study.objectives), kind="stable")
    return [served[known[at]] for at in order]


def _values(
    study: Analysis, key: str, ids: Sequence[str], result: Mapping[str, Sequence[Mapping[str, Value]]]
) -> Floats:
    """The worst ratio to the best over all futures, float64[n] of at least 1; else on the traces."""
    if key not in ON_RECORDING:
        results = study.combined
        rows = [row for id in ids if (row := results.row(id)) is not None]
        values = results.columns[key][rows][:, np.newaxis]
        direction = METRICS[key].direction
    else:
        measured = "footprint_bytes" if key == "long_run_bytes" else key
        values = np.array([[float(item[measured] or 0) for item in result[id]] for id in ids])
        direction = "min"
    ratios: Floats = pareto.ratios_to_best(values, [direction] * values.shape[1]).max(axis=1)
    return ratios


def _replayed(
    runner: Runner,
    some: Sequence[SearchCandidate],
    traces: Sequence[Trace],
    futures: Sequence[Trace],
    whole: bool,
    until: float,
) -> dict[str, list[Mapping[str, Value]]]:
    """The metrics on each future of the recipes that ended on all of them; those of whole futures are stored.

    Pairs that the study holds are not replayed again.
    """
    study = runner.study
    stored = study.long_run([item.id for item in some], [len(future) for future in futures]) if whole else {}
    open_ = [item for item in some if item.id not in stored]
    results: dict[str, list[Mapping[str, Value]]] = {id: [*each] for id, each in stored.items()}
    meter = Meter(runner.progress, "explored", len(some), len(futures), runner.workers, what="futures", until=until)
    meter.finished = len(stored) * len(futures)
    meter.expect(open_)
    evaluator = Evaluator(futures, LongRunReplay())
    tasks = [EvaluationTask(item, PartialResult((), len(futures))) for item in open_]
    waiting: list[tuple[str, str, Mapping[str, Value]]] = []
    stop_rule = StopRule(runner.interrupt, until=until)
    try:
        with closing(runner.evaluations(tasks, evaluator, meter, lambda: None, stop_rule)) as outcomes:
            for task, item in outcomes:
                if len(item.metrics) == len(futures):
                    results[task.candidate.id] = [item.metrics[at] for at in range(len(futures))]
                    waiting += [(task.candidate.id, trace.name, item.metrics[at]) for at, trace in enumerate(traces)]
    finally:
        if whole:
            study.set_long_run(waiting)
    return results
