"""Explorations by a clock of their own: time goes on by what is replayed alone, one recipe after the other.

So all that depends on time comes out the same on every machine.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import short_explorations
from pool_recipes import random_trace

from heapwright._explore import (
    budget,
    evaluation,
    local_search,
    options,
    runner,
    schedule,
    search,
    stress_test,
    successive_halving,
    validation,
)
from heapwright._explore.evaluation import EvaluationOutcome, EvaluationTask, Evaluator, StopRule
from heapwright._explore.options import Options
from heapwright._explore.runner import Progress
from heapwright._explore.space import Space
from heapwright._recipes.recipe import Recipe
from heapwright._replay import engine
from heapwright._replay.engine import GivenUpError
from heapwright._replay.metrics import Value
from heapwright._traces.cut import cut
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMED = (
    budget,
    validation,
    stress_test,
    options,
    successive_halving,
    runner,
    schedule,
    search,
    evaluation,
    local_search,
)
SLOWEST = 7
A_CALL = 1e-4
"""Seconds of the cheapest recipe: a long trace, as the clock has it."""


@dataclass
class Clock:
    """Goes on when it is released."""

    seconds: float = 1000.0

    def perf_counter(self) -> float:
        return self.seconds

    thread_time = perf_counter

    def replayed(self, calls: int, recipe_hash: str) -> None:
        """Recipes take different times, each always the same."""
        self.seconds += calls * A_CALL * (1 + int(recipe_hash[:2], 16) % SLOWEST)


@dataclass
class SequentialPool:
    """Pool that evaluates one recipe after the other in the calling thread."""

    jobs: int = 2

    def threads_of_each(self, tasks: int) -> int:
        return 1

    def evaluations(
        self,
        tasks: Sequence[EvaluationTask],
        evaluator: Evaluator,
        stop_rule: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Generator[tuple[EvaluationTask, EvaluationOutcome] | None]:
        remaining = list(tasks)
        while remaining and not stop_rule.over:
            size = evaluator.batch(stop_rule)
            some, remaining = remaining[:size], remaining[size:]
            yield from zip(some, evaluator.evaluate_each(some, stop_rule), strict=True)
            yield None

    def run_alone(self, work: Any, go_on: Any) -> Any:
        return work(go_on)


@contextmanager
def in_its_own_time() -> Iterator[Clock]:
    """While time goes on by replays alone."""
    clock, replayed, together = Clock(), Evaluator._replayed, Evaluator._evaluate_together

    def one(evaluator: Evaluator, at: int, recipe: Any, watch: Any) -> Mapping[str, Value]:
        try:
            metrics = replayed(evaluator, at, recipe, watch)
        except GivenUpError as error:
            clock.replayed(error.so_far.calls, recipe.hash)
            raise
        clock.replayed(len(evaluator.traces[at]), recipe.hash)
        return metrics

    def several(evaluator: Evaluator, tasks: Sequence[EvaluationTask]) -> list[EvaluationOutcome]:
        for task in tasks:
            clock.replayed(sum(map(len, evaluator.traces)), task.candidate.id)
        return together(evaluator, tasks)

    with (
        mock.patch.object(Evaluator, "_replayed", one),
        mock.patch.object(Evaluator, "_evaluate_together", several),
        mock.patch.object(search, "_worker_pool", lambda jobs, dask: nullcontext(SequentialPool())),
        mock.patch.object(search, "prefetching", lambda *_: nullcontext()),
        mock.patch.object(runner, "_BATCH_SECONDS", 50.0),
        mock.patch.object(engine, "WATCHED_CALLS", 16),
        mock.patch.object(schedule, "LEAST_PIECE", 32),
        ExitStack() as patched,
    ):
        for module in TIMED:
            patched.enter_context(mock.patch.object(module, "time", clock))
        for module, form, effort in short_explorations.forms():
            patched.enter_context(mock.patch.object(module, form, effort))
        yield clock


def traces(*calls: int) -> list[Trace]:
    """The first calls of two servers."""
    names = ("mosquitto_broker", "lighttpd_server")
    read = [Trace.read(EXAMPLES / f"{name}.parquet") for name in names[: len(calls)]]
    return [cut(Stream.of(trace), first=count).trace() for trace, count in zip(read, calls, strict=True)]


def space_for(*calls: int, every: int) -> Space:
    """The zoo, and one in `every` recipes of the default space for these traces."""
    return Space([_recipes(calls)[::every]])


@cache
def _recipes(calls: tuple[int, ...]) -> list[Recipe]:
    return list(Space.default(traces(*calls)).recipes())


def wrong_progress(seed: int) -> list[str]:
    """What is wrong in the progress that an exploration with random settings reports, and of the time it takes."""
    draw = random.Random(seed)
    some = traces(*[(draw.choice((300, 1200, 4000)), draw.choice((300, 900, 2500))), (1200,)][draw.random() < 0.4])
    space, longest = space_for(1200, 900, every=draw.choice((60, 150, 400))), sum(map(len, some)) * A_CALL * SLOWEST
    budget, tolerance = draw.choice((None, 1.0, 20.0, 60.0, 200.0, 600.0, 6000.0)), draw.choice((None, 0.0, 0.01, 0.1))
    copies, lasting, same = draw.choice((0, 1, 3)), draw.random() < 0.1, draw.random() < 0.5
    requested: dict[str, Any] = {"copies": copies, "stress_test": lasting, "future": 2000, "same_device": same}
    how = partial(Options, budget=budget, tolerance=tolerance, **requested)
    output, held_out = list[Progress](), [random_trace(7, calls=2000)][: draw.randrange(2)]
    with tempfile.TemporaryDirectory() as folder, in_its_own_time() as clock:
        begun, path = clock.seconds, Path(folder, "s.duckdb")
        search.explore(some, space, path, how(), held_out=held_out, progress=output.append)
        took = clock.seconds - begun
    wrong = [f"{item}" for item in output if item.finished > item.total or (item.seconds_left or 0) < 0]
    if budget is None and (last := [item for item in output if item.what == "exploring"][-1]).finished != last.total:
        wrong.append(f"ended with {last}")
    if budget is not None and took > budget + longest:
        wrong.append(f"{took} seconds of {budget}")
    return wrong
