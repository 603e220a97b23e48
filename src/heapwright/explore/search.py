"""Exploration: every recipe of a space on every trace, the metrics stored as a study.

Replays run in threads, because the native engine releases the interpreter lock; the calling thread alone writes.
"""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heapwright.errors import HeapwrightError, ParameterError
from heapwright.explore.picks import design, shortlist
from heapwright.explore.stored import Role
from heapwright.explore.study import Identity, Result, Study, TraceInfo
from heapwright.replay.energy import EnergyTable, default_energy_table, with_energy
from heapwright.replay.metrics import TARGET_METRICS, Value, parse_objectives
from heapwright.traces.copies import each_copy

if TYPE_CHECKING:
    from heapwright.explore.space import AnySpace
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

DEFAULT_OBJECTIVES = ("footprint_bytes", "accesses")

COPIES = 6
"""Copies of a trace that the best recipes are tried on: three of each standard kind, as in docs/robustness.md."""

RIVALS = ("tlsf", "newlib-nano")
"""The zoo's that are tried on copies in any case: what most would take otherwise."""

Strategy = Literal["exhaustive", "random"]

_BATCH_RESULTS = 500
_BATCH_SECONDS = 2.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Progress:
    """How far an exploration is: replays stored by all runs, those there are to do, this run's count and time."""

    what: Literal["exploring", "copies", "held out"]
    finished: int
    total: int
    evaluated: int
    seconds: float

    @property
    def rate(self) -> float:
        """Replays a second in this run."""
        return self.evaluated / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds the rest takes at this run's rate; None before the first replay."""
        return (self.total - self.finished) / self.rate if self.evaluated else None


@dataclass(frozen=True)
class Exploration:
    """What an exploration did: the study's file, the recipes it holds for all traces, replays, time, the front's ids.

    ``recipes`` counts no heap that is only shown beside them. ``evaluations`` and ``seconds`` are this run's alone; a
    resumed exploration repeats nothing that is stored. ``complete`` says whether these are all recipes of the space.
    """

    study: Path
    recipes: int
    evaluations: int
    seconds: float
    complete: bool
    front: list[str]


@dataclass(frozen=True)
class _Candidate:
    id: str
    recipe: Recipe
    zoo_name: str | None
    ranked: bool = True


_Task = tuple[_Candidate, "Trace"]
_Replay = Callable[["Trace", "Recipe", Sequence[tuple[int, int]]], Mapping[str, Value]]
_Done = queue.SimpleQueue[Result | BaseException]
_Results = Generator[Result | None, None, None]


def explore(
    traces: Sequence[Trace],
    space: AnySpace,
    objectives: str | Sequence[str] = DEFAULT_OBJECTIVES,
    study_path: Path | str = "study.duckdb",
    jobs: int | None = None,
    *,
    held_out: Sequence[Trace] = (),
    copies: int = COPIES,
    strategy: Strategy = "exhaustive",
    limit: int | None = None,
    seed: int = 0,
    energy_table: EnergyTable | None = None,
    prune: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Replay every recipe of the space on every trace and store the metrics as a study.

    Args:
        traces: at least one, with different names.
        space: the recipes to try. ``exhaustive`` takes them in the space's order, the first ``limit`` of them;
            ``random`` takes ``limit`` of them drawn with ``seed``. The space's zoo comes on top of the limit.
        objectives: metric keys. ``ns_per_event`` and ``smallest_arena_bytes`` are measured only if they are objectives:
            they cost many replays each; so are ``code_bytes`` and ``instructions_*``, which cost compiles.
        study_path: the file to write. Where it exists, what it holds is not repeated.
        jobs: threads; default one for every processor.
        held_out: traces that the front, what lies near it and the zoo are replayed on afterwards, stored apart and
            never ranked by.
        copies: perturbed copies of each trace, drawn with ``seed``, that the front and what lies near it are replayed
            on; 0 for none. A pick has to hold on them (`heapwright.explore.picks`).
        energy_table: energy of an access by SRAM size, in place of the default one.
        prune: give a replay up once a finished recipe is known to beat it in both of the default objectives, and
            store it without metrics: the front is the same, the cloud behind it is not. The zoo is always finished.
            For one trace: on several, recipes are ranked by ratios to bests that only the end tells.
        progress: called from this thread about ten times a second.

    Raises:
        HeapwrightError: names that clash, an unknown objective, pruning by other objectives than the default ones or
            on several traces, a study that cannot be written or belongs to another exploration
            (`Study.create_or_resume`), or Ctrl-C: what was finished is stored and the same call goes on.
    """
    keys = parse_objectives(objectives)
    _check_names([*traces, *held_out])
    if limit is not None and limit < 1:
        raise ParameterError(f"{limit}: leaves no recipe to try; give 1 or more", parameter="limit")
    if prune and sorted(keys) != sorted(DEFAULT_OBJECTIVES):
        raise ParameterError(f"works for the objectives {','.join(DEFAULT_OBJECTIVES)} only", parameter="prune")
    if prune and len(traces) > 1:
        raise ParameterError("works on one trace only: several are ranked by the best of each", parameter="prune")
    if copies < 0:
        raise ParameterError(f"{copies}; must be 0 or more", parameter="copies")
    start = time.perf_counter()
    table = energy_table or default_energy_table()
    candidates = _candidates(space)
    identity = Identity.of(traces, keys, space.digest, len(space), table, space.align)
    with _Interrupt() as interrupt, Study.create_or_resume(study_path, identity) as study:
        chosen = _choose(list(candidates.values()), strategy, limit, seed)
        run = _Run(study, replay_for(keys, table), replay_for((), table), jobs or _processors(), interrupt, progress)
        run.evaluate(chosen, traces, finished=_Finished(study) if prune else None)
        front = [member.id for member in study.front()]
        designs = {id: design(candidate.recipe) for id, candidate in candidates.items()}
        near = [study.combined.ids[row] for row in shortlist(study.combined, keys, designs)]
        tried = {one.zoo_name: one.id for one in chosen if one.zoo_name}
        rivals = [tried[name] for name in RIVALS if name in tried]
        run.evaluate_on_copies([candidates[id] for id in dict.fromkeys(near + rivals)], traces, copies, seed)
        if held_out:
            study.set_apart([TraceInfo.of(trace) for trace in held_out], "held out")
            run.evaluate([candidates[id] for id in dict.fromkeys([*near, *tried.values()])], held_out, "held out")
        seconds = time.perf_counter() - start
        return Exploration(study.path, study.ranked, run.evaluated, seconds, study.complete, front)


def _check_names(traces: Sequence[Trace]) -> None:
    if not traces:
        raise HeapwrightError("explore: no trace given; heapwright record makes one")
    seen: set[str] = set()
    for trace in traces:
        if trace.name in seen:
            raise HeapwrightError(f"{trace.path or trace.name}: two traces are named {trace.name}; rename one file")
        seen.add(trace.name)


def replay_for(objectives: Sequence[str], table: EnergyTable) -> _Replay:
    """The replay of one recipe on one trace, measuring on request what the objectives need."""
    from heapwright.host.timing import ns_per_event
    from heapwright.replay.replay import replay

    timed, fitted = "ns_per_event" in objectives, "smallest_arena_bytes" in objectives
    on_target = set(objectives) & set(TARGET_METRICS)

    def measure(trace: Trace, recipe: Recipe, better: Sequence[tuple[int, int]]) -> Mapping[str, Value]:
        found = with_energy(replay(trace, recipe, fit=fitted, better=better), table)
        if timed:
            found["ns_per_event"] = ns_per_event(trace, recipe)
        if on_target:
            from heapwright.target.objectives import target_metrics

            found |= target_metrics(trace, recipe, on_target)
        return found

    return measure


def _candidates(space: AnySpace) -> dict[str, _Candidate]:
    """The recipes of the space by id, the zoo's named, then the zoo's at other alignments, which are not ranked."""
    found = {}
    for recipe in space.recipes():
        named = space.zoo.get(recipe.hash)
        found[recipe.hash] = _Candidate(recipe.hash, named or recipe, named.name if named else None)
    for recipe in space.beside:
        found[recipe.hash] = _Candidate(recipe.hash, recipe, f"{recipe.name}@{recipe.align}", ranked=False)
    return found


def _choose(candidates: list[_Candidate], strategy: Strategy, limit: int | None, seed: int) -> list[_Candidate]:
    """The zoo, then what the strategy takes of the rest, shuffled so that the rate seen early holds to the end."""
    zoo = [candidate for candidate in candidates if candidate.zoo_name]
    rest = [candidate for candidate in candidates if not candidate.zoo_name]
    if strategy == "exhaustive":
        rest = rest[:limit]
    return zoo + random.Random(seed).sample(rest, min(len(rest), limit or len(rest)))


def _processors() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Interrupt:
    """Turns the first Ctrl-C into a flag, so that it cannot fall into the middle of a transaction."""

    def __init__(self) -> None:
        self.seen = False
        self._in_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> _Interrupt:
        if self._in_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


_SHOWN: Mapping[Role, Literal["exploring", "copies", "held out"]] = {
    "explored": "exploring",
    "copy": "copies",
    "held out": "held out",
}


@dataclass
class _Run:
    """Evaluates lists of candidates into a study and counts what it did."""

    study: Study
    replay: _Replay
    plain_replay: _Replay
    jobs: int
    interrupt: _Interrupt
    progress: Callable[[Progress], None] | None
    evaluated: int = 0

    def evaluate(
        self,
        candidates: Sequence[_Candidate],
        traces: Sequence[Trace],
        role: Role = "explored",
        finished: _Finished | None = None,
    ) -> None:
        """Replay every candidate on every trace but for the pairs that the study has, and store the results."""
        meter = _Meter(self.progress, role, len(candidates) * len(traces))
        self._evaluate(candidates, traces, self.replay, meter, finished)

    def evaluate_on_copies(
        self, candidates: Sequence[_Candidate], traces: Sequence[Trace], count: int, seed: int
    ) -> None:
        """The same on so many copies of every trace, made one at a time, for the metrics of a plain replay."""

        def made() -> Iterator[Trace]:
            return chain.from_iterable(each_copy(trace, count, seed=seed) for trace in traces if count)

        self.study.set_apart([TraceInfo.of(copy) for copy in made()], "copy")
        meter = _Meter(self.progress, "copy", len(candidates) * len(traces) * count)
        for copy in made():
            self._evaluate(candidates, [copy], self.plain_replay, meter)

    def _evaluate(
        self,
        candidates: Sequence[_Candidate],
        traces: Sequence[Trace],
        replay: _Replay,
        meter: _Meter,
        finished: _Finished | None = None,
    ) -> None:
        stored = self.study.finished(meter.role)
        tasks = [(one, trace) for one in candidates for trace in traces if (one.id, trace.name) not in stored]
        meter.stored += len(candidates) * len(traces) - len(tasks)
        writer = _Writer(self.study, meter.role)
        with closing(_replays(tasks, replay, self.jobs, self.interrupt, finished)) as results, writer:
            for result in results:
                if result is not None:
                    writer.add(result)
                    if finished:
                        finished.add(result)
                    meter.evaluated += 1
                    self.evaluated += 1
                writer.write_when_due()
                meter.report_when_due()
        meter.report()
        if self.interrupt.seen:
            raise HeapwrightError(
                f"{self.study.path}: interrupted with {meter.finished:,} of {meter.total:,} replays stored; "
                "the same command goes on from there"
            )


class _Finished:
    """What finished recipes need, as the bounds beyond which another replay of the same trace is hopeless.

    Written by the thread that collects results; workers read `front`, which is replaced as a whole.
    """

    def __init__(self, study: Study) -> None:
        self.front: tuple[tuple[int, int], ...] = ()
        for member in study.front():
            self._improve(_needs(member.metrics))

    def add(self, result: Result) -> None:
        """Take note of a result: a ranked recipe that served everything may bound others."""
        if result.metrics["failed"] == 0 and result.ranked:
            self._improve(_needs(result.metrics))

    def _improve(self, point: tuple[int, int]) -> None:
        kept: list[tuple[int, int]] = []
        for footprint, accesses in sorted((*self.front, point)):
            if not kept or accesses < kept[-1][1]:
                kept.append((footprint, accesses))
        self.front = tuple(kept)


def _needs(metrics: Mapping[str, Value]) -> tuple[int, int]:
    footprint, accesses = (metrics[key] for key in DEFAULT_OBJECTIVES)
    assert footprint is not None and accesses is not None
    return int(footprint), int(accesses)


class _Writer:
    """Gathers results into transactions. On leaving its context, also by an exception, it stores the rest."""

    def __init__(self, study: Study, role: Role) -> None:
        self._study = study
        self._role = role
        self._batch: list[Result] = []
        self._written = time.perf_counter()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def add(self, result: Result) -> None:
        self._batch.append(result)

    def write_when_due(self) -> None:
        if len(self._batch) >= _BATCH_RESULTS or time.perf_counter() - self._written >= _BATCH_SECONDS:
            self._write()

    def _write(self) -> None:
        batch, self._batch = self._batch, []  # a batch that cannot be written is not tried again on leaving
        if batch:
            self._study.add(batch, self._role)
        self._written = time.perf_counter()


class _Meter:
    """Tells a callback how far the replays on the traces of a role are."""

    def __init__(self, callback: Callable[[Progress], None] | None, role: Role, total: int) -> None:
        self.role = role
        self.total = total
        self.stored = 0
        self.evaluated = 0
        self._callback = callback
        self._start = self._reported = time.perf_counter()

    @property
    def finished(self) -> int:
        return self.stored + self.evaluated

    def report_when_due(self) -> None:
        if time.perf_counter() - self._reported >= _POLL_SECONDS:
            self.report()

    def report(self) -> None:
        self._reported = time.perf_counter()
        if self._callback:
            seconds = self._reported - self._start
            self._callback(Progress(_SHOWN[self.role], self.finished, self.total, self.evaluated, seconds))


def _replays(
    tasks: Sequence[_Task], replay: _Replay, jobs: int, interrupt: _Interrupt, finished: _Finished | None
) -> _Results:
    """Results of the tasks as they finish, and None about ten times a second where none does.

    After an interrupt, or an exception in a worker, no further task is begun; those under way still count. The
    exception is raised at the end.
    """
    pending = deque(tasks)
    done: _Done = queue.SimpleQueue()
    workers = [
        threading.Thread(target=_work, args=(pending, replay, done, finished)) for _ in range(min(jobs, len(tasks)))
    ]
    for worker in workers:
        worker.start()
    errors: list[BaseException] = []
    try:
        while any(worker.is_alive() for worker in workers) or not done.empty():
            yield _next_result(done, errors)
            if errors or interrupt.seen:
                pending.clear()
    finally:
        pending.clear()
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]


def _next_result(done: _Done, errors: list[BaseException]) -> Result | None:
    """The next result, if one comes soon; an exception goes to ``errors`` instead."""
    try:
        item = done.get(timeout=_POLL_SECONDS)
    except queue.Empty:
        return None
    if isinstance(item, Result):
        return item
    errors.append(item)
    return None


def _work(pending: deque[_Task], replay: _Replay, done: _Done, finished: _Finished | None) -> None:
    """One worker: takes tasks until there is none."""
    try:
        while pending:
            try:
                one, trace = pending.popleft()
            except IndexError:  # another worker took the last one
                break
            better = finished.front if finished and not one.zoo_name else ()
            metrics = replay(trace, one.recipe, better)
            done.put(Result(one.id, one.recipe, one.zoo_name, trace.name, metrics, one.ranked))
    except BaseException as error:  # raised again by the thread that collects
        done.put(error)
