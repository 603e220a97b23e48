"""Endurance: whether a heap lasts. A recording tells minutes; here its calls and its sizes come again and again.

Loops of nine kinds, made from the trace's sizes, and the trace itself, pass after pass, go on at constant live bytes. A
heap that lasts covers as much after 10,000,000 calls as after 100,000: what it covers beyond is fragmentation that
never ends, or memory that waits in lists where nothing fetches it. And in an arena of twice what its live blocks take
it refuses nothing.

The kinds are those in which allocators are known to leak or to fragment: Wilson et al. 1995, section 2.4 (ramps, peaks,
plateaus, phases); Larson and Krishnan 1998 (one thread frees what another asks for); Robson 1977 (sizes that drift).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright.recipes.policy import policy_struct
from heapwright.replay.engine import DEFAULT_ARENA, SoFar, arena_bytes_of, arena_holding, explain, memory_of, run
from heapwright.traces.calls import number_objects, pointer
from heapwright.traces.validation import FREE

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

LOOPS = ("shrink", "grow", "resize", "phases", "queue", "drift", "saw-tooth", "aligned", "refill")
"""What a loop does; in the order of `HW_LOOP_...` in native.h, which says what each is."""

PASSES = "passes"
"""The trace again and again, some of each pass's objects freed in the next one, in another order."""

LASTS = 1.05
"""A heap lasts where its footprint grows by no more; less than a twentieth is the end of a curve that becomes flat."""

SIZES = 10_000
"""Sizes that loops draw from; a trace with more requests has them sampled evenly over its ordered requests."""

FEWEST = 128
"""Objects of the largest size that fit into what may live: with fewer, footprints rise for long by chance alone."""

OUTLIVE = 8
"""One object in so many outlives its free, until the next pass."""


@dataclass(frozen=True)
class Effort:
    """How long heaps are tried.

    Attributes:
        calls: of each loop, unless its footprint is flat before.
        base: calls with whose footprint later ones are compared.
        enough: calls after which a loop may end, where the footprint did not change while they grew tenfold.
        live_bytes: most that live at once; fewer where the trace never has so many.
        cramped: calls in the arena of twice the live blocks.
    """

    calls: int = 10_000_000
    base: int = 100_000
    enough: int = 1_000_000
    live_bytes: int = 1 << 18
    cramped: int = 1_000_000


FULL = Effort()

SHORT = Effort(calls=100_000, base=20_000, enough=100_000, live_bytes=1 << 16, cramped=50_000)
"""For each of some hundred heaps of an exploration."""


@dataclass(frozen=True)
class Endurance:
    """How a heap endures.

    Attributes:
        footprint_bytes: loop -> calls -> bytes of the arena that the heap had covered by then.
        growth_ratio: the worst of the loops: footprint at the end over that after `Effort.base` calls.
        worst: the loop that it is of.
        refused: loop -> requests refused in an arena of twice what its live blocks take, where any were.
    """

    footprint_bytes: Mapping[str, Mapping[int, int]]
    growth_ratio: float
    worst: str
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def lasts(self) -> bool:
        """Whether it stays within `LASTS` and refuses nothing that fits twice."""
        return self.growth_ratio <= LASTS and not self.refused

    @property
    def calls(self) -> int:
        """The most that any loop made."""
        return max(max(one) for one in self.footprint_bytes.values())

    def why_not(self) -> str | None:
        """Why it does not last, in words; None where it does."""
        if self.growth_ratio > LASTS:
            percent = 100 * (self.growth_ratio - 1)
            return f"grows by {percent:.0f} % at constant live bytes ({self.worst}, {self.calls:,} calls)"
        if self.refused:
            loop = next(iter(self.refused))
            return f"refuses requests where its live blocks fit twice ({loop})"
        return None


@dataclass(frozen=True)
class Endured:
    """Whether a heap lasts: loops at constant live bytes, and the trace pass after pass.

    Attributes:
        trace, heap: their names.
        growth_ratio: footprint at the end over that after 100,000 calls, or a tenth of fewer, the worst of the loops.
        worst: that loop.
        lasts: whether `growth_ratio` is at most 1.05, and nothing was refused.
        refused: the loops in which an arena of twice what the live blocks take refused a request.
        calls: most calls of a loop.
        footprint_bytes: loop -> calls -> bytes of the arena covered by then.
    """

    trace: str
    heap: str
    growth_ratio: float
    worst: str
    lasts: bool
    refused: tuple[str, ...]
    calls: int
    footprint_bytes: Mapping[str, Mapping[int, int]]

    def __repr__(self) -> str:
        told = "lasts" if self.lasts else "does not last"
        return f"<Endured {self.heap} on {self.trace}: {told}, grows {self.growth_ratio:.3f} x ({self.worst})>"


def endure(
    trace: Trace,
    recipe: Recipe,
    effort: Effort = FULL,
    *,
    seed: int = 1,
    progress: Callable[[str], None] = lambda loop: None,
) -> Endurance:
    """Try how a recipe endures what a trace asks for. ``progress`` is told each loop before it begins.

    Time grows with the calls: some seconds for ten million calls of each loop. Raises `HeapwrightError` where the
    heap's own control data has no room, and where the system has no memory.
    """
    struct = policy_struct(recipe)
    found: dict[str, Mapping[int, int]] = {}
    refused: dict[str, int] = {}
    for kind, loop in enumerate(LOOPS):
        progress(loop)
        made = _Loop(trace, kind, effort, seed)
        footprints, ample = made.run(recipe, struct, arena_bytes_of(struct, DEFAULT_ARENA))
        if loop == "aligned" and ample.failed:
            continue  # no pool of it can cut a block to an alignment
        found[loop] = footprints
        cramped = min(arena_holding(struct, int(struct.fixed_end) + 2 * int(ample.blocks)), int(struct.reach))
        if ample.failed:
            refused[loop] = int(ample.failed)
        elif count := made.refused(recipe, struct, cramped):
            refused[loop] = count
    progress(PASSES)
    found[PASSES] = _passes(trace, recipe, struct, effort, seed)
    ratios = {loop: _growth(one, effort.base) for loop, one in found.items()}
    worst = max(ratios, key=lambda loop: ratios[loop])
    return Endurance(found, ratios[worst], worst, refused)


def _growth(footprints: Mapping[int, int], base: int) -> float:
    """The last footprint over that after `base` calls, or over the first where there are none so early."""
    first = [bytes_ for calls, bytes_ in footprints.items() if calls <= base]
    values = list(footprints.values())
    return values[-1] / (first[-1] if first else values[0])


def points(calls: int) -> list[int]:
    """The calls at which footprints are told: four to a decade from 1,000 on, and the last."""
    told = [round(1000 * 10 ** (quarter / 4)) for quarter in range(100)]
    return [*(point for point in told if point < calls), calls]


# ---- loops ---------------------------------------------------------------------------------------------------------


class _Loop:
    """A loop over a trace's sizes."""

    def __init__(self, trace: Trace, kind: int, effort: Effort, seed: int) -> None:
        self._effort = effort
        sizes, live = drawn(trace, effort.live_bytes)
        self._sizes = sizes  # the loop points to them
        mean = max(1, int(sizes.mean()))
        objects = min(4 * live // mean + 64, 1 << 20)
        period = max(objects, 1000)
        self._told = (kind, pointer("uint32_t", sizes), len(sizes), live, objects, period, seed)
        self._calls = ffi.new("struct hw_calls *", {"slots": objects})

    def run(self, recipe: Recipe, struct: Any, arena: int) -> tuple[dict[int, int], Any]:
        """Footprints by calls, and what else came of it, in an arena of so many bytes."""
        return self._ran(recipe, struct, arena, points(self._effort.calls), self._effort.enough, at_refusal=False)

    def refused(self, recipe: Recipe, struct: Any, arena: int) -> int:
        """Whether such an arena refuses a request: 1 or 0."""
        cramped = self._effort.cramped
        _, endured = self._ran(recipe, struct, arena, [cramped], cramped, at_refusal=True)
        return int(endured.failed)

    def _ran(
        self, recipe: Recipe, struct: Any, arena: int, at: list[int], enough: int, *, at_refusal: bool
    ) -> tuple[dict[int, int], Any]:
        loop = ffi.new("struct hw_loop *", (*self._told, 4, enough, int(at_refusal)))
        footprints, endured = ffi.new("uint64_t[]", len(at)), ffi.new("struct hw_endured *")
        memory = _memory(struct, self._calls, arena)
        code = lib.hw_endure(struct, loop, memory, arena, ffi.new("uint64_t[]", at), len(at), footprints, endured)
        explain(code, recipe, struct, arena)
        told = zip(at, footprints[0 : endured.points], strict=False)
        return {calls: arena_holding(struct, int(used)) for calls, used in told}, endured


def _memory(struct: Any, calls: Any, arena: int) -> Any:
    class _Slots:
        struct = calls

    return memory_of(struct, _Slots, arena)  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def drawn(trace: Trace, live_bytes: int) -> tuple[NDArray[np.uint32], int]:
    """The sizes that loops draw from, ascending, uint32[n], and how many bytes live at most.

    These are the trace's peak, and no more than `live_bytes`; sizes above a `FEWEST`th of that are left out, unless
    there are no others: then so many of the smaller half are live.
    """
    asked = np.sort(np.maximum(trace.size[trace.op != FREE], 1))
    live = min(trace.peak_live_bytes, live_bytes)
    kept = asked[asked <= live // FEWEST]
    if not len(kept):
        kept = asked[: max(1, len(asked) // 2)]
    step = max(1, len(kept) // SIZES)
    return np.ascontiguousarray(kept[::step], np.uint32), max(live, FEWEST * int(kept[-1]))


# ---- the trace again and again -------------------------------------------------------------------------------------


def _passes(trace: Trace, recipe: Recipe, struct: Any, effort: Effort, seed: int) -> dict[int, int]:
    """Footprints by calls of the trace, pass after pass, up to a tenth of the calls of a loop."""
    again = repeated(trace, max(effort.base, effort.calls // 10), seed)
    told: dict[int, int] = {}

    def watch(so_far: SoFar) -> bool:
        told[so_far.calls] = so_far.footprint_bytes
        return True

    found, _ = run(again, recipe, struct, None, watch=watch)
    told[len(again)] = arena_holding(struct, int(struct.fixed_end + found.shared))
    return told


@lru_cache(maxsize=2)
def repeated(trace: Trace, calls: int, seed: int) -> Trace:
    """The trace for about so many calls, at least twice; of each pass one object in `OUTLIVE` lives into the next.

    These, and those that the trace never frees, are freed in the next pass: the first where that pass's own would be,
    in another order, the others spread over all of it.
    """
    from heapwright.traces.trace import Trace

    rng = np.random.default_rng(seed)
    count, passes = len(trace), max(2, -(-calls // max(1, len(trace))))
    numbers, _ = number_objects(trace.op, trace.id)
    born = numbers.astype(np.int64)
    freed_at = np.flatnonzero(trace.op == FREE)
    later = freed_at[rng.random(len(freed_at)) < 1 / OUTLIVE]
    left = np.setdiff1d(np.unique(born), np.unique(born[freed_at]))
    spread = np.sort(rng.integers(0, count, len(left)))
    columns: list[list[NDArray[Any]]] = [[], [], [], []]
    lives_in = int(born.max()) + 1
    for number in range(passes):
        ids = born + number * lives_in
        ids[later] = born[later[rng.permutation(len(later))]] + (number - 1) * lives_in
        keep = np.ones(count, bool)
        keep[later] = number > 0
        one: list[NDArray[Any]] = [values[keep] for values in (trace.op, ids, trace.size, trace.align)]
        if number:
            gone, zeros = rng.permutation(left) + (number - 1) * lives_in, np.zeros(len(left), np.int64)
            extra = (zeros + FREE, gone, zeros, zeros)
            one = [np.insert(values, spread, more) for values, more in zip(one, extra, strict=True)]
        for column, values in zip(columns, one, strict=True):
            column.append(values)
    op, id, size, align = (np.concatenate(column) for column in columns)
    return Trace.from_columns(op=op, id=id, size=size, align=align, name=f"{trace.name}, {passes} passes")
