"""Adversarial search for the calls that cost a heap most, within the sizes and the live bytes of a trace.

A program is a sequence of phases. Each phase frees some live blocks, and fills the free part of the budget with blocks
of one size, with small blocks between them that stay: pins. The programs of the literature are such sequences. The
search begins with these, changes one phase after another, and keeps each change that costs no less.

Sources: J. M. Robson 1971 and 1977 (see `heapwright._replay.worst_case`); D. E. Knuth, TAOCP 1, 2.5, exercises 41, 42.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.replay import replay
from heapwright._replay.worst_case import block_sizes
from heapwright._support.errors import ParameterError, did_you_mean
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.metrics import Value

Int64s = NDArray[np.int64]

OBJECTIVES = ("footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")
"""Metrics that a search can maximize; `accesses` are those of the worst-case malloc or free."""

MOST_CALLS = 50_000
"""Most calls of a program, which never has more calls than the trace."""

MOST_PHASES = 64
SHARES = (1.0, 1.0, 0.5, 0.25, 0.1)


class WorstFound(NamedTuple):
    """Result of the search: the calls that cost the heap most.

    Attributes:
        trace: the calls; the original trace if no program cost more.
        value: value of the objective on them.
        original: its value on the original trace.
    """

    trace: Trace
    value: int
    original: int


class Phase(NamedTuple):
    """Step of a program: free blocks, then fill.

    Attributes:
        release: blocks to free first: 0 for none, 1 for all but pins, k for all but every k-th in order of allocation.
        size, pin: indices into the sizes of the blocks that are then allocated, and of the pin before each; no pin: -1.
        share: share of the remaining budget to fill.
    """

    release: int
    size: int
    pin: int
    share: float


@dataclass(frozen=True)
class _Budget:
    """Budget of a program: its sizes, ascending, their block sizes, and the most live bytes."""

    sizes: Int64s
    blocks: Int64s
    live_bytes: int
    live_blocks: int
    calls: int

    @classmethod
    def of(cls, trace: Trace, recipe: Recipe) -> _Budget:
        sizes = np.unique(trace.size[trace.op != FREE]).astype(np.int64)
        blocks = block_sizes(recipe, sizes)[0]
        live = trace.largest_live_sum(block_sizes(recipe, trace.size)[0])
        return cls(sizes, blocks, trace.peak_live_bytes, live, min(len(trace), MOST_CALLS))


def find_worst(
    trace: Trace, recipe: Recipe, objective: str = "footprint_bytes", *, tries: int = 200, seed: int = 0
) -> WorstFound:
    """Search for the calls, within the sizes and the live bytes of a trace, that cost a recipe most.

    Args:
        trace: no program has other sizes, more live bytes at once (as requested, and in blocks as the recipe rounds
            them), or more calls; at most `MOST_CALLS`.
        recipe: the allocator.
        objective: one of `OBJECTIVES`.
        tries: number of replays; with the same seed, more of them never give a lower value.
        seed: another seed, another search.

    Programs with a failed request are skipped. The trace is named ``app~worst``, and its metadata has ``worst_of``,
    ``worst_heap``, ``worst_for``, ``worst_value``, ``worst_tries`` and ``worst_seed``.

    Raises ParameterError for an unknown objective, or less than one try.
    """
    if objective not in OBJECTIVES:
        raise ParameterError(
            f"{objective}: not searched for; {did_you_mean(objective, OBJECTIVES)}", parameter="objective"
        )
    if tries < 1:
        raise ParameterError(f"{tries}; must be 1 or more", parameter="tries")
    budget, random_ = _Budget.of(trace, recipe), random.Random(seed)
    original = _cost(replay(trace, recipe), objective)
    best, program, phases = original, trace, [Phase(0, len(budget.sizes) - 1, -1, 1.0)]
    known = _known_programs(len(budget.sizes))
    for _ in range(tries):
        tried = next(known, None) or _changed(phases, len(budget.sizes), random_)
        made = _program(tried, budget)
        result = replay(made, recipe)
        value = -1 if result["failed"] else _cost(result, objective)
        if value >= best:
            phases = tried
        if value > best:
            best, program = value, made
    info = {
        "worst_of": trace.name,
        "worst_heap": recipe.name or recipe.hash,
        "worst_for": objective,
        "worst_value": str(best),
        "worst_tries": str(tries),
        "worst_seed": str(seed),
    }
    named = replace(program, name=f"{trace.name}~worst", path=None, metadata={**program.metadata, **info})
    return WorstFound(named, best, original)


def _cost(result: Mapping[str, Value], objective: str) -> int:
    """The value of an objective in the metrics of a replay."""
    keys = ("accesses_malloc_max", "accesses_free_max") if objective == "accesses" else (objective,)
    return max(int(result[key] or 0) for key in keys)


def _known_programs(count: int) -> Iterator[list[Phase]]:
    """The programs of the literature, for this number of sizes."""
    last = count - 1
    for pin in (0, -1):
        yield [Phase(1, size, pin, 1.0) for size in _some(count, MOST_PHASES)]  # holes a size too small, pinned
        yield [Phase(1, size, pin, 0.5) for size in _some(count, MOST_PHASES)]
    for steps in (MOST_PHASES, 16, 8, 4):
        for release in (2, 3, 4):
            ladder = _some(count, steps)
            yield [Phase(0 if size == ladder[0] else release, size, -1, 1.0) for size in ladder]  # Robson's, Knuth's
    for small in _some(count, 6):
        for release in (2, 4, 8):
            yield [Phase(0, small, -1, 1.0), Phase(release, last, -1, 1.0)]  # a comb


def _some(count: int, most: int) -> list[int]:
    """At most ``most`` of the indices of ``count`` sizes, evenly spaced from the first to the last."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


def _changed(phases: list[Phase], count: int, random_: random.Random) -> list[Phase]:
    """The phases with one or a few of them changed, dropped, repeated or added."""
    changed = list(phases)
    for _ in range(random_.choice((1, 1, 2, 4))):
        place = random_.randrange(len(changed))
        what = random_.random()
        if what < 0.2 and len(changed) > 1:
            del changed[place]
        elif what < 0.5 and len(changed) < MOST_PHASES:
            changed.insert(place, _drawn(count, random_))
        elif what < 0.7:
            near = min(max(changed[place].size + random_.choice((-2, -1, 1, 2)), 0), count - 1)
            changed[place] = changed[place]._replace(size=near)
        else:
            changed[place] = _drawn(count, random_)
    return changed


def _drawn(count: int, random_: random.Random) -> Phase:
    pin = random_.choice((-1, 0, 0, random_.randrange(count)))
    return Phase(random_.choice((0, 1, 1, 2, 2, 3, 4, 8)), random_.randrange(count), pin, random_.choice(SHARES))


class _Calls:
    """Writer of a program's calls, and the objects that are live after them."""

    def __init__(self, budget: _Budget) -> None:
        self.budget = budget
        self.op: list[Int64s] = []
        self.id: list[Int64s] = []
        self.index: list[Int64s] = []
        self.calls = self.born = 0
        self.live: Int64s = np.empty((0, 3), np.int64)  # of each object number, index of its size, whether it is a pin

    def release(self, how: int) -> None:
        """Free the blocks of a phase (`Phase.release`)."""
        if not how or not len(self.live):
            return
        goes = np.arange(len(self.live)) % how != 0 if how > 1 else self.live[:, 2] == 0
        freed = self.live[goes][: self.budget.calls - self.calls]
        self._write(FREE, freed)
        self.live = self.live[~np.isin(self.live[:, 0], freed[:, 0])]

    def fill(self, phase: Phase) -> None:
        """Allocate blocks, and pins before them, until the budget is spent."""
        budget = self.budget
        group = [phase.pin, phase.size] if phase.pin >= 0 else [phase.size]
        used = self.live[:, 1]
        remaining = [
            budget.live_bytes - int(budget.sizes[used].sum()),
            budget.live_blocks - int(budget.blocks[used].sum()),
        ]
        takes = [max(int(budget.sizes[group].sum()), 1), int(budget.blocks[group].sum())]
        most = min(int(phase.share * room) // each for room, each in zip(remaining, takes, strict=True))
        count = max(min(most, (budget.calls - self.calls) // len(group)), 0)
        index = np.tile(np.array(group, np.int64), count)
        pin = np.tile(np.arange(len(group)) < len(group) - 1, count).astype(np.int64)
        born = np.column_stack([np.arange(self.born, self.born + len(index)), index, pin])
        self.born += len(index)
        self._write(MALLOC, born)
        self.live = np.concatenate([self.live, born])

    def _write(self, op: int, objects: Int64s) -> None:
        self.op.append(np.full(len(objects), op))
        self.id.append(objects[:, 0])
        self.index.append(objects[:, 1])
        self.calls += len(objects)


def _program(phases: list[Phase], budget: _Budget) -> Trace:
    calls = _Calls(budget)
    for phase in phases:
        calls.release(phase.release)
        calls.fill(phase)
    op, sizes = np.concatenate(calls.op), budget.sizes[np.concatenate(calls.index)]
    if not len(op):  # not even one block fits: the trace's largest alone does
        op, sizes, calls.id = np.array([MALLOC]), budget.sizes[-1:], [np.array([0])]
    return Trace.from_columns(op=op, id=np.concatenate(calls.id), size=np.where(op == FREE, 0, sizes), name="worst")
