"""Exploration: every recipe of a space on every trace, the metrics stored as a study.

A crew replays, of threads or of the workers of a Dask cluster; the calling thread alone writes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._explore.ahead import trying_ahead
from heapwright._explore.budget import TimeBudget
from heapwright._explore.evaluation import EvaluationOutcome, Evaluator, SearchCandidate
from heapwright._explore.local_search import LIMIT, Told, seek
from heapwright._explore.options import Options, Strategy
from heapwright._explore.portfolio import first_of
from heapwright._explore.runner import Meter, Progress, Runner, Trials
from heapwright._explore.schedule import Exploring, FinishingRule
from heapwright._explore.space import WideSpace
from heapwright._explore.stress_test import try_what_may_ship
from heapwright._explore.successive_halving import race, starters
from heapwright._explore.validation import Validation
from heapwright._explore.workers import Interrupt, Threads, WorkerPool
from heapwright._measure.metrics import replay_for
from heapwright._recipes.zoo.catalogue import names
from heapwright._replay.engine import GROWING
from heapwright._replay.long_run import futures_of
from heapwright._replay.metrics import ON_RECORDING, TIME, Value
from heapwright._studies.analysis import Analysis
from heapwright._studies.recommendations import DEPLOYED, RIVALS, UNTUNED
from heapwright._studies.records import Identity, Run, TraceInfo
from heapwright._studies.tables import Role
from heapwright._support.engine import engine
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.gc_tuning import seldom_collected
from heapwright._support.remote import writable
from heapwright._support.subprocesses import processors
from heapwright._support.version import __version__

if TYPE_CHECKING:
    from heapwright._explore.space import AnySpace
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class Exploration:
    """What an exploration did: the study's file, the recipes it holds for all traces, replays, time, the front's ids.

    ``recipes`` counts no heap that is only shown beside them. ``evaluations`` and ``seconds`` are this run's alone; a
    resumed exploration repeats nothing that is stored. ``complete`` says whether these are all recipes of the space;
    ``tolerance`` how much more than their front this one needs at most, as a share, which is 0 for the same front, and
    None where recipes are left that nobody knows enough of. ``given_up`` counts those begun and not finished.
    ``short`` tells in words what there was no time for within a budget.
    """

    study: Path
    recipes: int
    evaluations: int
    seconds: float
    complete: bool
    tolerance: float | None
    given_up: int
    front: list[str]
    short: list[str] = field(default_factory=list)


NEAREST = 100
"""Recipes nearest to the front that are tried on copies and the hold-out set where no future is replayed."""


@seldom_collected()
def explore(
    traces: Sequence[Trace],
    space: AnySpace,
    study_path: Path | str,
    options: Options,
    *,
    held_out: Sequence[Trace] = (),
    earlier: Sequence[Recipe] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Replay every recipe of the space on every trace and store the metrics as a study.

    Args:
        traces: at least one, with different names.
        space: the recipes to try.
        study_path: the file to write. Where it exists, what it holds is not repeated.
        options: how.
        held_out: traces that the front, what lies near it and the zoo are replayed on afterwards, stored apart and
            never ranked by.
        earlier: recipes near which a search begins, beside the zoo.
        progress: called from this thread about ten times a second.

    Raises:
        HeapwrightError: names that clash, a strategy, tolerance or budget that the space does not have, a study that
            cannot be written or belongs to another exploration (`StudyFile.create_or_resume`), a cluster that cannot be
            used or is lost, or Ctrl-C: what was finished is stored and the same call goes on.
    """
    _check_names([*traces, *held_out])
    effort, strategy = options.effort_for(space), options.strategy_for(space)
    start = time.perf_counter()
    keys, table = options.keys, options.energies
    ranked = tuple(dict.fromkeys(ON_RECORDING.get(key, key) for key in keys))
    measure = replay_for(ranked, table)
    trier = Evaluator(traces, measure, ranked if set(ranked) <= set(GROWING) else ())
    new = not writable(Path(study_path)).exists() and options.dask is None
    with trying_ahead(trier, _zoo_of(space) if new else ()):
        candidates = _candidates(space)
        identity = Identity.of(traces, keys, space.digest, len(space), table, space.align, options.same_device)
    hired = _crew(options.jobs, options.dask)
    with hired as crew, Interrupt() as interrupt, Analysis.create_or_resume(study_path, identity) as study:
        study.add_run(_run(space, strategy, options))
        current = options.current or _recorded_on(traces)
        if current is not None:
            study.set_current(current)
        # drawn while there is little in memory; needs of another future do not compare
        futures = futures_of(traces, options.future, study.runs()[0].seed) if options.endurance else []
        first = first_of(traces, space.align)
        tried_first = [item.hash for item in first]
        chosen = _choose(list(candidates.values()), strategy, options.limit, options.seed)
        chosen = _ordered(chosen, tried_first)
        runner = Runner(study, crew, interrupt, progress)
        exploring = Exploring(runner, Trials(study, trier, "explored"))
        shares, all_ = _shares(effort, options, traces, held_out, crew.jobs), len(chosen) == len(candidates)
        exploring.run(chosen, effort, tried_first, ranked=all_, shares=shares)
        if isinstance(space, WideSpace) and strategy != "exhaustive":
            most = options.limit or LIMIT
            meter = Meter(progress, "explored", most, len(traces), crew)
            trying = partial(_try, runner, _Told(study, Evaluator(traces, measure), "explored"), meter)
            sought = seek(study, space, trying, limit=most, seed=options.seed, earlier=earlier, first=first)
            candidates |= {item.hash: SearchCandidate(item.hash, item, None) for item in sought}
            others = study.recipes(without=candidates)
            candidates |= {item.hash: SearchCandidate(item.hash, item, name) for item, name, ranked in others if ranked}
        shares.end_exploring()
        tried = {item.zoo_name: item.id for item in chosen if item.zoo_name}
        named = [tried[name] for name in (*RIVALS, *UNTUNED, *DEPLOYED, current) if name in tried]
        if options.endurance:
            near = race(runner, candidates, traces, futures, named, shares.lasting_until)
            futures.clear()  # what follows needs the memory
        else:
            near = starters(study, candidates)[:NEAREST]
        elsewhere = Validation(runner, replay_for((), table), shares)
        apart = [candidates[id] for id in dict.fromkeys([*near, *named])]
        elsewhere.on_copies(apart, traces, options.copies, options.seed)
        if held_out:
            study.set_apart([TraceInfo.of(trace) for trace in held_out], "held out")
            elsewhere.on(apart, held_out, "held out", replay_for(ranked, table))
        if options.endurance:
            try_what_may_ship(runner, candidates, traces, shares)
        if TIME in keys and runner.evaluated and time.perf_counter() < shares.until:
            from heapwright._explore.host_timing import Turns, time_in_turn

            again = {id: candidates[id].recipe for id in near}
            time_in_turn(runner, Turns(again, traces, options.copies, options.seed, held_out))
        return Exploration(
            study.path,
            study.ranked,
            runner.evaluated,
            time.perf_counter() - start,
            study.complete,
            study.tolerance,
            study.given_up,
            [member.id for member in study.front()],
            shares.short,
        )


def _run(space: AnySpace, strategy: Strategy, options: Options) -> Run:
    """What a study keeps of how it was made."""
    built, begun = engine(), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    requested = options.command, strategy, options.seed, options.told(), space.text
    return Run(begun, __version__, built.digest, built.commit, *requested)


def _recorded_on(traces: Sequence[Trace]) -> str | None:
    """The reference allocator that all traces were recorded on, where they tell one."""
    info = {trace.metadata.get("allocator") for trace in traces}
    return next(iter(info & set(names()))) if len(info) == 1 and info <= set(names()) else None


def _shares(
    effort: FinishingRule, options: Options, traces: Sequence[Trace], held_out: Sequence[Trace], jobs: int
) -> TimeBudget:
    """How the time of a budget is shared out."""
    calls, apart = sum(map(len, traces)), sum(map(len, held_out))
    replays = options.copies + apart / max(calls, 1)
    until = inf if effort.until is None else effort.until
    return TimeBudget(until, options.copies * calls, replays, options.endurance, jobs)


def _check_names(traces: Sequence[Trace]) -> None:
    if not traces:
        raise HeapwrightError("explore: no trace given; heapwright record makes one")
    seen: set[str] = set()
    for trace in traces:
        if trace.name in seen:
            raise HeapwrightError(f"{trace.path or trace.name}: two traces are named {trace.name}; rename one file")
        seen.add(trace.name)


def _zoo_of(space: AnySpace) -> list[SearchCandidate]:
    return [SearchCandidate(id, recipe, recipe.name) for id, recipe in space.zoo.items()]


def _candidates(space: AnySpace) -> dict[str, SearchCandidate]:
    """The recipes of the space by id, the zoo's named, then the zoo's at other alignments, which are not ranked."""
    results = {}
    for recipe in space.recipes():
        named = space.zoo.get(recipe.hash)
        results[recipe.hash] = SearchCandidate(recipe.hash, named or recipe, named.name if named else None)
    for recipe in space.beside:
        results[recipe.hash] = SearchCandidate(recipe.hash, recipe, f"{recipe.name}@{recipe.align}", ranked=False)
    return results


def _choose(
    candidates: list[SearchCandidate], strategy: Strategy, limit: int | None, seed: int
) -> list[SearchCandidate]:
    """The zoo, then what the strategy takes of the rest, shuffled so that the rate seen early holds to the end."""
    zoo = [candidate for candidate in candidates if candidate.zoo_name]
    rest = [candidate for candidate in candidates if not candidate.zoo_name]
    if strategy == "exhaustive":
        rest = rest[:limit]
    return zoo + random.Random(seed).sample(rest, min(len(rest), limit or len(rest)))


def _ordered(chosen: Sequence[SearchCandidate], first: Sequence[str]) -> list[SearchCandidate]:
    """The zoo, what other traces taught in its order, then the others as they were."""
    rank = {id: at for at, id in enumerate(first)}
    return sorted(chosen, key=lambda item: -1 if item.zoo_name else rank.get(item.id, len(rank)))


def _crew(jobs: int | None, dask: str | None) -> AbstractContextManager[WorkerPool]:
    """Who replays."""
    if dask is None:
        return nullcontext(Threads(jobs or processors()))
    from heapwright._explore.dask_workers import LOCAL, cluster

    if jobs is not None and dask != LOCAL:
        raise ParameterError(f"{dask} has as many as its workers; leave it out", parameter="jobs")
    return cluster(dask, jobs or processors())


class _Told(Trials):
    """Trials that keep what they found last."""

    def __init__(self, study: Analysis, trier: Evaluator, role: Role) -> None:
        super().__init__(study, trier, role)
        self.told: dict[str, dict[str, Mapping[str, Value]]] = {}

    def take(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        super().take(item, result)
        self.told[item.id] = {self.traces[at].name: metrics for at, metrics in result.metrics.items()}


def _try(runner: Runner, trials: _Told, meter: Meter, recipes: Sequence[Recipe]) -> Told:
    """Replay recipes that a search proposed, metered as a part of it; what was found of them now."""
    candidates = [SearchCandidate(recipe.hash, recipe, None) for recipe in recipes]
    meter.expect(candidates)
    for item in candidates:
        meter.pass_over(item, len(trials.traces) - trials.known(item.id).left)
    trials.told = {}
    runner.run(candidates, trials, meter)
    return trials.told
