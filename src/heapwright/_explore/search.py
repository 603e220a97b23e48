"""Exploration of a design space on traces: the steps from ranking recipes to judging the best; the result is a study.

Threads or the workers of a Dask cluster replay; the calling thread alone writes.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from heapwright._explore.budget import TimeBudget
from heapwright._explore.default_space import bounded_recipes
from heapwright._explore.evaluation import EvaluationOutcome, Evaluator, SearchCandidate
from heapwright._explore.local_search import LIMIT, MetricsByTrace, seek
from heapwright._explore.options import Options, Strategy
from heapwright._explore.portfolio import first_of
from heapwright._explore.runner import Meter, Progress, Runner, Trials
from heapwright._explore.schedule import COMPLETE, Exploring, FinishingRule
from heapwright._explore.shortlist import Shortlist
from heapwright._explore.space import WideSpace, adapted
from heapwright._explore.stress_test import stress_test_best
from heapwright._explore.successive_halving import race, starters
from heapwright._explore.validation import Validation
from heapwright._explore.workers import Interrupt, Threads, WorkerPool
from heapwright._measure.metrics import replay_for
from heapwright._recipes.zoo.catalogue import names
from heapwright._replay.engine import GROWING
from heapwright._replay.metrics import ON_RECORDING, TIME, Value
from heapwright._studies.analysis import Analysis
from heapwright._studies.recommendations import DEPLOYED, UNTUNED, WELL_KNOWN
from heapwright._studies.records import Identity, Run, TraceInfo
from heapwright._studies.tables import Role
from heapwright._support.engine import engine
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.gc_tuning import seldom_collected
from heapwright._support.remote import writable
from heapwright._support.subprocesses import processors
from heapwright._support.version import __version__
from heapwright._traces.live_bound import LiveBound
from heapwright._traces.pieces import short
from heapwright._traffic.workloads.made import futures_of, futures_of_pieces

if TYPE_CHECKING:
    from heapwright._explore.space import AnySpace
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class Exploration:
    """Result of an exploration: the study's file, the recipes it holds for all traces, replays, time, the front's ids.

    ``recipes`` counts no allocator that is shown but not ranked. ``evaluations`` and ``seconds`` are those of this run;
    a resumed exploration computes nothing twice. ``complete``: whether these are all recipes of the space.
    ``tolerance``: how far this front is from theirs at most, as a share, 0 for the same front, None if too little is
    known of some recipes. ``given_up`` counts recipes whose replays were begun and not finished. ``short`` says in
    words what there was no time for within a budget.
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
"""Recipes nearest to the front that are replayed on copies and the hold-out set if there is no long-run test."""


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
    """Evaluate the recipes of the space on every trace and store the metrics as a study.

    Args:
        traces: at least one, with different names.
        space: the recipes to evaluate.
        study_path: the file to write. If it exists, stored results are not computed again.
        options: how.
        held_out: traces on which the front, recipes near it, and the reference allocators are replayed afterwards,
            stored apart and never ranked by.
        earlier: recipes near which a search begins, in addition to the reference allocators.
        progress: called from this thread about ten times a second.

    Long traces are explored by their pieces (`Options.by_pieces`): the study then has the shortlist on whole traces.

    Raises:
        HeapwrightError: names that clash, a strategy, tolerance or budget that the space does not have, a study that
            cannot be written or belongs to another exploration (`StudyFile.create_or_resume`), a cluster that cannot be
            used or is lost, or Ctrl-C: finished results are stored and the same call continues.
    """
    _check_names([*traces, *held_out])
    parts = [short(trace) for trace in traces] if options.takes_pieces(traces) else list(traces)
    if all(part is trace for part, trace in zip(parts, traces, strict=True)):
        beside = _Beside(held_out, earlier, progress, partial(futures_of, traces))
        return _explore(traces, space, study_path, options, beside)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pieces.duckdb"
        beside = _Beside((), earlier, progress, partial(futures_of_pieces, traces, parts))
        done = _explore(parts, space, path, options, beside)
        with Analysis.open(path) as study:
            shortlist = Shortlist.of(study, traces, parts, options, done.evaluations)
    return _explore(traces, space, study_path, options, _Beside(held_out, earlier, progress, shortlist=shortlist))


class _Beside(NamedTuple):
    """Further arguments of `explore`, and the recipes to replay if pieces of the traces have chosen them."""

    held_out: Sequence[Trace]
    earlier: Sequence[Recipe]
    progress: Callable[[Progress], None] | None
    futures: Callable[[int, int], list[Trace]] = lambda calls, seed: []
    """Futures of the traces, of a number of calls and drawn with a seed."""
    shortlist: Shortlist | None = None


def _explore(
    traces: Sequence[Trace], space: AnySpace, study_path: Path | str, options: Options, beside: _Beside
) -> Exploration:
    """`explore` by whole traces; of the shortlist alone if there is one."""
    held_out, earlier, progress, _, shortlist = beside
    start, keys, energies = time.perf_counter(), options.keys, options.energies
    finishing, strategy = options.effort_for(space), options.strategy_for(space)
    ranked = tuple(dict.fromkeys(ON_RECORDING.get(key, key) for key in keys))
    evaluator = Evaluator(traces, replay_for(ranked, energies), ranked if set(ranked) <= set(GROWING) else ())
    is_new = not writable(Path(study_path)).exists() and options.dask is None and shortlist is None
    with prefetching(evaluator, _zoo_of(space) if is_new else ()):
        candidates = _candidates(space, _bounded(traces, space)) if shortlist is None else shortlist.by_id
        identity = Identity.of(traces, keys, space.digest, len(space), energies, space.align, options.same_device)
    pool = _worker_pool(options.jobs, options.dask)
    with pool as workers, Interrupt() as interrupt, Analysis.create_or_resume(study_path, identity) as study:
        study.add_run(_run(space, strategy, options))
        study.set_facts([*traces, *held_out])
        study.set_platform(None if space.platform is None else space.platform.name)
        current = options.current or _recorded_on(traces)
        if current is not None:
            study.set_current(current)
        # drawn now, while little memory is in use, and with the first run's seed: needs on other futures do not compare
        has_futures = options.stress_test and shortlist is None
        futures = beside.futures(options.future, study.runs()[0].seed) if has_futures else []
        time_budget = _time_budget(finishing, options, traces, held_out, workers.jobs)
        runner = Runner(study, workers, interrupt, progress)
        steps = _Steps(runner, options, space, traces, held_out, ranked, time_budget, candidates)
        if shortlist is not None:
            steps.finish(evaluator, shortlist)
            return _exploration(runner, start, time_budget, shortlist)
        named = steps.rank(evaluator, finishing, strategy, current)
        if isinstance(space, WideSpace) and strategy != "exhaustive":
            steps.search_locally(space, earlier)
        time_budget.end_exploring()
        steps.judge(futures, named)
        return _exploration(runner, start, time_budget)


def _exploration(
    runner: Runner, start: float, time_budget: TimeBudget, shortlist: Shortlist | None = None
) -> Exploration:
    """Result of the exploration that began at ``start``, a time of `time.perf_counter`."""
    study = runner.study
    return Exploration(
        study.path,
        study.ranked if shortlist is None else shortlist.tried,
        runner.evaluated + (0 if shortlist is None else shortlist.evaluations),
        time.perf_counter() - start,
        study.complete,
        study.tolerance,
        study.given_up,
        [member.id for member in study.front()],
        time_budget.short,
    )


@dataclass
class _Steps:
    """Steps of an exploration: ranking on the recordings, then the best on other traces and in the long run."""

    runner: Runner
    options: Options
    space: AnySpace
    traces: Sequence[Trace]
    held_out: Sequence[Trace]
    objectives: Sequence[str]
    """The objectives that a replay of a recording measures."""
    time_budget: TimeBudget
    candidates: dict[str, SearchCandidate]
    """By their ids."""

    def rank(
        self, evaluator: Evaluator, finishing: FinishingRule, strategy: Strategy, current: str | None
    ) -> list[str]:
        """Evaluate the recipes that the strategy chooses; ids of the reference allocators to judge in any case."""
        options, first = self.options, first_of(self.traces, self.space.align)
        portfolio = [made.hash for recipe in first if (made := adapted(recipe, self.space.platform)) is not None]
        chosen = _choose(list(self.candidates.values()), strategy, options.limit, options.seed)
        chosen = _ordered(chosen, portfolio)
        exploring = Exploring(self.runner, Trials(self.runner.study, evaluator, "explored"))
        is_whole = len(chosen) == len(self.candidates)
        exploring.run(chosen, finishing, portfolio, ranked=is_whole, time_budget=self.time_budget)
        ids = {item.zoo_name: item.id for item in chosen if item.zoo_name}
        reference = [ids[name] for name in (*WELL_KNOWN, *UNTUNED, *DEPLOYED, current) if name in ids]
        return [*reference, *(item.id for item in chosen if item.always)]

    def search_locally(self, space: WideSpace, earlier: Sequence[Recipe]) -> None:
        """Search a wide space by local steps; what it evaluates, and what earlier runs did, joins the candidates."""
        study, limit = self.runner.study, self.options.limit or LIMIT
        meter = Meter(self.runner.progress, "explored", limit, len(self.traces), self.runner.workers)
        replay = replay_for(tuple(self.objectives), self.options.energies)
        trials = _RecordingTrials(study, Evaluator(self.traces, replay), "explored")
        evaluate = partial(_evaluate, self.runner, trials, meter)
        first = first_of(self.traces, space.align)
        found = seek(study, space, evaluate, limit=limit, seed=self.options.seed, earlier=earlier, first=first)
        self.candidates |= {recipe.hash: SearchCandidate(recipe.hash, recipe, None) for recipe in found}
        others = study.recipes(without=self.candidates)
        self.candidates |= {
            item.hash: SearchCandidate(item.hash, item, name) for item, name, ranked in others if ranked
        }

    def judge(self, futures: list[Trace], named: Sequence[str]) -> None:
        """Long-run need, perturbed and held-out traces, stress test and host times of the best and the named ones."""
        runner, options, traces, time_budget = self.runner, self.options, self.traces, self.time_budget
        if options.stress_test:
            near = race(runner, self.candidates, traces, futures, named, time_budget.stress_tests_until)
            futures.clear()  # frees memory for what follows
        else:
            near = starters(runner.study, self.candidates)[:NEAREST]
        self._validate([self.candidates[id] for id in dict.fromkeys([*near, *named])])
        if options.stress_test and not runner.study.proved:
            stress_test_best(runner, self.candidates, traces, time_budget)
        if TIME in options.keys and runner.evaluated and time.perf_counter() < time_budget.until:
            from heapwright._explore.host_timing import Turns, time_in_turn

            recipes = {id: self.candidates[id].recipe for id in near}
            time_in_turn(runner, Turns(recipes, traces, options.copies, options.seed, self.held_out))

    def finish(self, evaluator: Evaluator, shortlist: Shortlist) -> None:
        """Replay a shortlist on the whole traces, and store what the pieces showed."""
        runner, study, chosen = self.runner, self.runner.study, list(shortlist.candidates)
        exploring = Exploring(runner, Trials(study, evaluator, "explored"))
        exploring.run(chosen, COMPLETE, ranked=False, time_budget=self.time_budget)
        whole = study.per_trace([item.id for item in chosen], ["footprint_bytes"])
        study.set_pieces(shortlist.calls, shortlist.tried)
        study.set_long_run(shortlist.long_run_with(whole))
        study.set_endurance(shortlist.stress)
        self._validate(chosen)
        if self.options.stress_test and not study.proved:
            stress_test_best(runner, self.candidates, shortlist.parts, self.time_budget)

    def _validate(self, best: Sequence[SearchCandidate]) -> None:
        """Replay candidates on perturbed and held-out traces."""
        runner, options = self.runner, self.options
        validation = Validation(runner, replay_for((), options.energies), self.time_budget)
        validation.on_copies(best, self.traces, options.copies, options.seed)
        if self.held_out:
            runner.study.set_apart([TraceInfo.of(trace) for trace in self.held_out], "held out")
            replay = replay_for(tuple(self.objectives), options.energies)
            validation.on(best, self.held_out, "held out", replay)


MOST_PREFETCHED_CALLS = 50_000
"""Longer traces are not prefetched: their replays take as long as making the space, and could not be interrupted."""


@contextmanager
def prefetching(evaluator: Evaluator, zoo: Iterable[SearchCandidate]) -> Iterator[None]:
    """Context in which a thread replays the reference allocators while the space is being made.

    ``evaluator`` keeps the results until their turn. Nothing is prefetched if times are measured, which takes a machine
    that does nothing else.
    """
    left = threading.Event()

    def work() -> None:
        with suppress(Exception):  # raised again when the recipe has its turn
            for item in zoo:
                if left.is_set():
                    break
                evaluator.prefetch(item)

    worker = threading.Thread(target=work)
    if evaluator.objectives and sum(map(len, evaluator.traces)) <= MOST_PREFETCHED_CALLS:
        worker.start()
    try:
        yield
    finally:
        left.set()
        if worker.is_alive():
            worker.join()


def _run(space: AnySpace, strategy: Strategy, options: Options) -> Run:
    """The run that a study records: when, by which version, and how it was made."""
    built, begun = engine(), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    requested = options.command, strategy, options.seed, options.in_words(), space.text
    return Run(begun, __version__, built.digest, built.commit, *requested)


def _recorded_on(traces: Sequence[Trace]) -> str | None:
    """The reference allocator that all traces were recorded on; None if unknown or several."""
    recorded = {trace.metadata.get("allocator") for trace in traces}
    return next(iter(recorded & set(names()))) if len(recorded) == 1 and recorded <= set(names()) else None


def _time_budget(
    finishing: FinishingRule, options: Options, traces: Sequence[Trace], held_out: Sequence[Trace], jobs: int
) -> TimeBudget:
    """The time budget of all steps."""
    calls, of_held_out = sum(map(len, traces)), sum(map(len, held_out))
    replays = options.copies + of_held_out / max(calls, 1)
    until = inf if finishing.until is None else finishing.until
    return TimeBudget(until, options.copies * calls, replays, options.stress_test, jobs)


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


def _candidates(space: AnySpace, bounded: Sequence[Recipe] = ()) -> dict[str, SearchCandidate]:
    """Recipes of the space by id, then reference allocators at their own alignments, which are not ranked.

    ``bounded``: what serves any order, and so is always evaluated if it is in the space.
    """
    results, always = {}, {recipe.canonical().hash for recipe in bounded}
    for recipe in space.recipes():
        named = space.zoo.get(recipe.hash)
        name = named.name if named else None
        results[recipe.hash] = SearchCandidate(recipe.hash, named or recipe, name, always=recipe.hash in always)
    for recipe in space.unranked:
        results[recipe.hash] = SearchCandidate(recipe.hash, recipe, f"{recipe.name}@{recipe.align}", ranked=False)
    return results


def _choose(
    candidates: list[SearchCandidate], strategy: Strategy, limit: int | None, seed: int
) -> list[SearchCandidate]:
    """What is always evaluated, then what the strategy takes, shuffled so that early rates forecast later ones."""
    zoo = [candidate for candidate in candidates if candidate.zoo_name or candidate.always]
    rest = [candidate for candidate in candidates if not (candidate.zoo_name or candidate.always)]
    if strategy == "exhaustive":
        rest = rest[:limit]
    return zoo + random.Random(seed).sample(rest, min(len(rest), limit or len(rest)))


def _bounded(traces: Sequence[Trace], space: AnySpace) -> list[Recipe]:
    """What serves any order of the objects of traces that all have a bound, as the space's platform has it."""
    bounds = [bound for trace in traces if (bound := LiveBound.of(trace)) is not None]
    made = bounded_recipes(bounds, space.align) if len(bounds) == len(traces) else []
    return [recipe for item in made if (recipe := adapted(item, space.platform)) is not None]


def _ordered(chosen: Sequence[SearchCandidate], first: Sequence[str]) -> list[SearchCandidate]:
    """Reference allocators, the portfolio in its order, then the others as they were."""
    rank = {id: at for at, id in enumerate(first)}
    return sorted(chosen, key=lambda item: -1 if item.zoo_name or item.always else rank.get(item.id, len(rank)))


def _worker_pool(jobs: int | None, dask: str | None) -> AbstractContextManager[WorkerPool]:
    """Threads, or the workers of a Dask cluster."""
    if dask is None:
        return nullcontext(Threads(jobs or processors()))
    from heapwright._explore.dask_workers import LOCAL, cluster

    if jobs is not None and dask != LOCAL:
        raise ParameterError(f"{dask} has as many as its workers; leave it out", parameter="jobs")
    return cluster(dask, jobs or processors())


class _RecordingTrials(Trials):
    """Trials that keep the metrics of the last batch."""

    def __init__(self, study: Analysis, evaluator: Evaluator, role: Role) -> None:
        super().__init__(study, evaluator, role)
        self.last: dict[str, dict[str, Mapping[str, Value]]] = {}

    def take(self, item: SearchCandidate, result: EvaluationOutcome) -> None:
        super().take(item, result)
        self.last[item.id] = {self.traces[at].name: metrics for at, metrics in result.metrics.items()}


def _evaluate(runner: Runner, trials: _RecordingTrials, meter: Meter, recipes: Sequence[Recipe]) -> MetricsByTrace:
    """Replay recipes that a search proposes, metered as a part of it; the metrics that were not stored before."""
    candidates = [SearchCandidate(recipe.hash, recipe, None) for recipe in recipes]
    meter.expect(candidates)
    for item in candidates:
        meter.pass_over(item, len(trials.traces) - trials.partial_result(item.id).remaining)
    trials.last = {}
    runner.run(candidates, trials, meter)
    return trials.last
