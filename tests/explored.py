"""What explorations try, in which order, and when they give up, by a clock of their own: `python tests/explored.py`.

Time goes on by what is replayed and by nothing else, and one recipe is tried after the other; so all that depends on
time comes out the same on every machine. A line stands for one list of tasks: how many, on which pieces, and a digest
of what came of each. A change that means to try something else writes the table anew, and its commit says why.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import astuple, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import brief
from exploring import explore
from kinds import random_trace

from heapwright.decide.picks import PICKS
from heapwright.decide.study import Study
from heapwright.explore import budget, elsewhere, endurance, options, runner, schedule, search, trial, wide_search
from heapwright.explore.options import Options
from heapwright.explore.runner import Progress
from heapwright.explore.space import AnySpace, Space
from heapwright.explore.trial import Found, Patience, Task, Trier
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.recipe import Recipe
from heapwright.replay import engine
from heapwright.replay.engine import GivenUpError
from heapwright.replay.metrics import Value
from heapwright.traces.cut import cut
from heapwright.traces.streams import Stream
from heapwright.traces.trace import Trace

TABLE = Path(__file__).with_name("explored.txt")
EXAMPLES = Path(__file__).parents[1] / "examples"
TIMED = (budget, elsewhere, endurance, options, runner, schedule, search, trial, wide_search)
SLOWEST = 7
A_CALL = 1e-4
"""Seconds of the cheapest recipe: a long trace, as the clock has it."""


@dataclass
class Clock:
    """Goes on when it is told to."""

    seconds: float = 1000.0

    def perf_counter(self) -> float:
        return self.seconds

    thread_time = perf_counter

    def replayed(self, calls: int, recipe_hash: str) -> None:
        """Recipes take different times, each always the same."""
        self.seconds += calls * A_CALL * (1 + int(recipe_hash[:2], 16) % SLOWEST)


@dataclass
class InTurn:
    """A crew that tries one recipe after the other in the calling thread, and writes down what came of it."""

    lines: list[str]
    stops: int
    """After so many recipes an interrupt comes."""
    jobs: int = 2

    def threads_of_each(self, tasks: int) -> int:
        return 1

    def tried(
        self, tasks: Sequence[Task], trier: Trier, patience: Patience, seconds: Callable[[Task], float | None]
    ) -> Generator[tuple[Task, Found] | None]:
        told, left, done = hashlib.sha256(), list(tasks), 0
        expected = [seconds(task) for task in tasks]
        told.update(repr([one and round(one, 9) for one in expected]).encode())
        while left and not patience.over:
            size = trier.batch(patience)
            some, left = left[:size], left[size:]
            for task, found in zip(some, trier.found_each(some, patience), strict=True):
                told.update(_outcome(task, found).encode())
                done += 1
                self.stops -= 1
                yield task, found
            if self.stops <= 0:
                vars(patience.interrupt)["seen"] = True
            yield None
        pieces = "" if patience.pieces is None else f" on {list(patience.pieces)}"
        spared = "" if patience.spared is None else f" but near {patience.spared:g}"
        until = "" if patience.until == float("inf") else f" until {patience.until:.6f}"
        if tasks:
            self.lines.append(f"{done} of {len(tasks)}{pieces}{spared}{until}: {told.hexdigest()[:12]}")

    def apart(self, work: Any, go_on: Any) -> Any:
        return work(go_on)


def _outcome(task: Task, found: Found) -> str:
    known = found.known
    came = [astuple(one) if one else None for one in known.so_far]
    ended = sorted((at, repr(sorted(metrics.items(), key=str))) for at, metrics in found.metrics.items())
    return repr((task.one.id, found.begun, found.given_up, round(found.seconds, 9), known.ended.tolist(), came, ended))


@contextmanager
def in_its_own_time(lines: list[str], stops: int) -> Iterator[Clock]:
    """While time goes on by replays alone, and what is tried is written down."""
    clock, replayed, together = Clock(), Trier._replayed, Trier._together

    def one(trier: Trier, at: int, recipe: Any, watch: Any) -> Mapping[str, Value]:
        try:
            metrics = replayed(trier, at, recipe, watch)
        except GivenUpError as error:
            clock.replayed(error.so_far.calls, recipe.hash)
            raise
        clock.replayed(len(trier.traces[at]), recipe.hash)
        return metrics

    def several(trier: Trier, tasks: Sequence[Task]) -> list[Found]:
        for task in tasks:
            clock.replayed(sum(map(len, trier.traces)), task.one.id)
        return together(trier, tasks)

    with (
        mock.patch.object(Trier, "_replayed", one),
        mock.patch.object(Trier, "_together", several),
        mock.patch.object(search, "_crew", lambda jobs, dask: nullcontext(InTurn(lines, stops))),
        mock.patch.object(search, "trying_ahead", lambda *_: nullcontext()),
        mock.patch.object(runner, "_BATCH_SECONDS", 50.0),
        mock.patch.object(engine, "WATCHED_CALLS", 16),
        mock.patch.object(schedule, "LEAST_PIECE", 32),
        ExitStack() as patched,
    ):
        for module in TIMED:
            patched.enter_context(mock.patch.object(module, "time", clock))
        for module, form, effort in brief.forms():
            patched.enter_context(mock.patch.object(module, form, effort))
        yield clock


@dataclass
class Followed:
    """What callers hear of progress: a digest of each line, and the last one as it is."""

    told: Any = field(default_factory=hashlib.sha256)
    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        left = progress.seconds_left
        counted = progress.what, progress.finished, progress.total, progress.evaluated, progress.tolerance
        seconds = round(progress.seconds, 6), None if left is None else round(left, 6)
        self.told.update(repr((counted, seconds)).encode())
        self.last = progress


def traces(*calls: int) -> list[Trace]:
    """The first calls of two servers."""
    names = ("mosquitto_broker", "lighttpd_server")
    read = [Trace.read(EXAMPLES / f"{name}.parquet") for name in names[: len(calls)]]
    return [cut(Stream.of(trace), first=count).trace() for trace, count in zip(read, calls, strict=True)]


def space_for(*calls: int, every: int) -> Space:
    """The zoo, and one in so many recipes of the default space for these traces."""
    return Space([_recipes(calls)[::every]])


@cache
def _recipes(calls: tuple[int, ...]) -> list[Recipe]:
    return list(Space.default(traces(*calls)).recipes())


def explored(
    lines: list[str],
    some: Sequence[Trace],
    space: AnySpace,
    path: Path,
    *,
    held_out: Sequence[Trace] = (),
    stops: int = 1 << 30,
    **how: Any,
) -> None:
    """One exploration, with what it told at its end."""
    followed = Followed()
    with in_its_own_time(lines, stops) as clock:
        begun = clock.seconds
        try:
            done = explore(some, space, study_path=path, held_out=held_out, progress=followed, **how)
        except HeapwrightError as error:
            lines.append(str(error).partition(": ")[2])
            return
        took = clock.seconds - begun
    last = followed.last
    lines.append(f"progress {followed.told.hexdigest()[:12]}" + (f", {last.finished} of {last.total}" if last else ""))
    counted = f"{done.recipes} recipes, {done.evaluations} replays, {took:.6f} seconds, given up {done.given_up}"
    lines.append(f"{counted}, complete {done.complete}, tolerance {done.tolerance}")
    lines.append(" ".join(["front", *sorted(done.front)]))
    lines += done.short
    with Study.open(path) as study:
        lines.append(" ".join(["picks", *(study.pick(how).id for how in PICKS)]))


WIDE = """
default = true
[[pool]]
kind = "general"
fit = ["first", "best", "next"]
bins = ["none", "exact", "power-of-two"]
split = ["always", 16, 32, 64]
coalesce = ["immediate", "deferred", "never"]
header = [4, 8]
resize = ["move", "in-place"]
free_list = ["double", "single", "implicit"]
order = ["lifo", "fifo", "address"]
search_most = [0, 1, 2, 4, 8, 16, 32]
victim_up_to = [0, 64, 256, 512, 1024]
top = ["list", "extend"]
"""


def wide(folder: Path, some: Sequence[Trace]) -> AnySpace:
    (folder / "SPACE.toml").write_text(WIDE, encoding="utf-8")
    return Space.load(folder / "SPACE.toml", some)


def complete(lines: list[str], folder: Path) -> None:
    both, held_out, space = traces(1200, 900), [random_trace(7, calls=800)], space_for(1200, 900, every=400)
    path = folder / "s.duckdb"
    explored(lines, both, space, path, held_out=held_out, complete=True, copies=2, endurance=False)


def within_one_per_cent(lines: list[str], folder: Path) -> None:
    """Interrupted twice."""
    both = traces(1200, 900)
    space = space_for(1200, 900, every=40)
    for stops in (60, 200, 1 << 30):
        explored(lines, both, space, folder / "s.duckdb", stops=stops, tolerance=0.01, copies=0, endurance=False)


def exact(lines: list[str], folder: Path) -> None:
    both, space = traces(1200, 900), space_for(1200, 900, every=120)
    for one in (False, True):
        path = folder / f"{one}.duckdb"
        explored(lines, both, space, path, tolerance=0.0, copies=0, endurance=False, same_device=one)


def by_the_time(lines: list[str], folder: Path) -> None:
    alone = traces(1200)
    for every in (40, 250):
        space = space_for(1200, every=every)
        explored(lines, alone, space, folder / f"{every}.duckdb", copies=1, endurance=False)


def within_a_budget(lines: list[str], folder: Path, *, seconds: float, every: int, endurance: bool) -> None:
    both, held_out, space = traces(6000, 3000), [random_trace(7, calls=800)], space_for(6000, 3000, every=every)
    path = folder / "s.duckdb"
    explored(lines, both, space, path, held_out=held_out, budget=seconds, copies=2, endurance=endurance)


def searched(lines: list[str], folder: Path) -> None:
    both, path = traces(600, 450), folder / "s.duckdb"
    space = wide(folder, both)
    for stops in (100, 1 << 30):
        explored(lines, both, space, path, stops=stops, limit=150, copies=0, endurance=False)


def wrongly_told(seed: int) -> list[str]:
    """What is wrong of what an exploration with settings by chance tells of its progress, and of the time it takes."""
    draw = random.Random(seed)
    some = traces(*[(draw.choice((300, 1200, 4000)), draw.choice((300, 900, 2500))), (1200,)][draw.random() < 0.4])
    space, longest = space_for(1200, 900, every=draw.choice((60, 150, 400))), sum(map(len, some)) * A_CALL * SLOWEST
    budget, tolerance = draw.choice((None, 1.0, 20.0, 60.0, 200.0, 600.0, 6000.0)), draw.choice((None, 0.0, 0.01, 0.1))
    copies, lasting, same = draw.choice((0, 1, 3)), draw.random() < 0.1, draw.random() < 0.5
    how = partial(Options, budget=budget, tolerance=tolerance, copies=copies, endurance=lasting, same_device=same)
    told, held_out = list[Progress](), [random_trace(7, calls=2000)][: draw.randrange(2)]
    with tempfile.TemporaryDirectory() as folder, in_its_own_time([], 1 << 30) as clock:
        begun, path = clock.seconds, Path(folder, "s.duckdb")
        search.explore(some, space, path, how(), held_out=held_out, progress=told.append)
        took = clock.seconds - begun
    wrong = [f"{one}" for one in told if one.finished > one.total or (one.seconds_left or 0) < 0]
    if budget is None and (last := [one for one in told if one.what == "exploring"][-1]).finished != last.total:
        wrong.append(f"ended with {last}")
    if budget is not None and took > budget + longest:
        wrong.append(f"{took} seconds of {budget}")
    return wrong


EXPLORATIONS: Mapping[str, Callable[[list[str], Path], None]] = {
    "complete": complete,
    "within 1 %, interrupted twice": within_one_per_cent,
    "exact, of two devices and of one": exact,
    "by the time that all take": by_the_time,
    "a budget for all": partial(within_a_budget, seconds=1500, every=400, endurance=True),
    "a budget for some": partial(within_a_budget, seconds=500, every=60, endurance=False),
    "a budget for few": partial(within_a_budget, seconds=60, every=60, endurance=False),
    "a wide space, interrupted": searched,
}


def lines_of(name: str) -> list[str]:
    """What an exploration tells, tried anew."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        EXPLORATIONS[name](lines, Path(folder))
    return lines


def kept() -> dict[str, list[str]]:
    """The lines of the table."""
    parts = re.split(r"^(?=\S)", TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [part.splitlines() for part in parts if part]
    return {name: [line.strip() for line in lines] for name, *lines in found}


if __name__ == "__main__":
    parts = ["\n    ".join([name, *lines_of(name)]) for name in EXPLORATIONS]
    TABLE.write_text("\n".join(parts) + "\n", encoding="utf-8")
