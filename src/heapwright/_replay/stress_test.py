"""Stress test of a heap: whether its footprint is stable over a long run at constant live bytes.

Loops of nine kinds, made from the trace's sizes, and the trace itself, repeated, run at constant live bytes. The
footprint of a stable heap is the same after 10,000,000 calls as after 100,000: any growth is unbounded fragmentation,
or unused memory in lists. And in an arena of twice its live blocks it fails no request, or none that best fit serves.

A footprint is a maximum, and 100 times as many random moments have a worse one: best fit, which can use all of its free
memory, grows by 1 to 9 % for this reason. Growth beyond best fit's on the same calls is the heap's own. The growth of
one heap varies by seed, from -3 to 9 %: if it is too large with one seed, the mean over several counts.

The kinds are those in which allocators are known to leak or to fragment: Wilson et al. 1995, section 2.4 (ramps, peaks,
plateaus, phases); Larson and Krishnan 1998 (one thread frees what another allocates); Robson 1977 (sizes that drift).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._replay.arena_sizes import depends_on_arena
from heapwright._replay.engine import (
    DEFAULT_ARENA,
    ReplayProgress,
    arena_bytes_of,
    arena_holding,
    explain,
    memory_of,
    run,
)
from heapwright._traces.calls import number_objects, pointer
from heapwright._traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

LOOPS = ("shrink", "grow", "resize", "phases", "queue", "drift", "saw-tooth", "aligned", "refill")
"""The loops; in the order of `HW_LOOP_...` in native/types.h, which describes each."""

PASSES = "passes"
"""The loop that repeats the trace; some objects of each pass are freed in the next one, in another order."""

GUARD = 1.15
"""The stress test is passed if the footprint grows by no more, or by no more than this times best fit's growth.

No program makes these loops: constant live bytes at every size at once. So they guard against unrecorded loads,
with a wide bound, and rank nothing; `heapwright._replay.long_run` does.
"""

SIZES = 10_000
"""Sizes that loops draw from; a trace with more requests has them sampled evenly over its ordered requests."""

BESIDE = 8
"""Bytes that a live object counts in addition to its requested size, as in native/stress_test.h."""

FEWEST = 256
"""Objects of the largest size that may live at once: with fewer, footprints rise for long by chance alone."""

LEAST_OBJECTS = 64
"""Fewest live objects of a loop, for a heap with a short reach."""

WARM_PASSES = 2
"""Passes before which footprints are not compared: in the second the first objects of another pass are live."""

SEEDS = 5
"""Seeds over which growth is averaged if it is too large with the first."""

CLEARLY = 1.25
"""Growth above this multiple of the permitted growth occurs with every seed, so no other seed is tested."""

OUTLIVE = 8
"""One object in this many outlives its free, until the next pass."""


@dataclass(frozen=True)
class StressEffort:
    """Length and rules of the long-run test.

    Attributes:
        calls: calls of each loop, unless its footprint is flat before.
        base: calls after which the footprint is the reference for growth.
        enough: calls after which a loop may end, if the footprint did not change over a tenfold increase in calls.
        objects: number of live objects, about.
        cramped: calls in the arena of twice the live blocks.
        most: growth, beyond that of best fit, up to which a heap is stable.
        whole: whether loops continue after one has failed, and best fit's growth and the mean over seeds are measured
            even if the result is known without them.
        loops: the loops to run.
    """

    calls: int = 10_000_000
    base: int = 100_000
    enough: int = 1_000_000
    objects: int = 2000
    cramped: int = 1_000_000
    most: float = GUARD
    whole: bool = True
    loops: tuple[str, ...] = (*LOOPS, PASSES)


FULL = StressEffort()

SHORT = StressEffort(calls=50_000, base=10_000, enough=50_000, objects=500, cramped=20_000, whole=False)
"""For each candidate of an exploration: a heap that leaks grows by half or more in it."""


GUARDED = tuple(loop for loop in FULL.loops if loop != "refill")
"""The loops of `LONG`: all but one, which `SHORT` makes, as pools that never give memory back grow there.

Over more calls a heap with bounded calls grows there too: when blocks of one size are all replaced by blocks of another
size, it returns only a few blocks per call. `heapwright stress` shows by how much.
"""

LONG = StressEffort(calls=300_000, whole=False, loops=GUARDED)
"""For recommendations: it shows slow growth, as of size classes that take pages and never return them."""


@dataclass(frozen=True)
class StressTest:
    """Result of the stress test of a heap.

    Attributes:
        footprint_bytes: by loop and calls, the bytes of the arena that the heap had covered by then.
        growth: by loop, the footprint at the end over that after `StressEffort.base` calls, each over the most that
            live blocks took by then; the mean over `SEEDS` seeds if it was slightly too large with the first.
        best_fit: growth of best fit with the same seeds; 1 if it was not measured.
        refused: by loop, the failed requests in an arena of twice the live blocks, if there were any, and best fit in
            twice its own live blocks fails none, or none within twice the calls.
        most: as `StressEffort.most`.
    """

    footprint_bytes: Mapping[str, Mapping[int, int]]
    growth: Mapping[str, float]
    best_fit: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    most: float = GUARD

    @property
    def growing(self) -> list[str]:
        """The loops in which it grows by more than `most`, and by more than this factor times best fit's growth."""
        grown = self.growth.items()
        return [loop for loop, ratio in grown if ratio > _let_pass(self.most, self.best_fit.get(loop, 1.0))]

    @property
    def stable(self) -> bool:
        """Whether it grows in no loop, and fails no request in twice its live blocks that best fit serves."""
        return not self.growing and not self.refused

    @property
    def worst(self) -> str:
        """The loop with the largest growth; of the loops that failed, if there are any."""
        return max(self.growing or self.growth, key=lambda loop: self.growth[loop])

    @property
    def growth_ratio(self) -> float:
        """Its growth there."""
        return self.growth[self.worst]

    @property
    def calls(self) -> int:
        """The most calls of any loop but the passes, whose number depends on the trace."""
        return max(max(covered) for loop, covered in self.footprint_bytes.items() if loop != PASSES)

    def why_not(self) -> str | None:
        """Why it is not stable, in words; None if it is."""
        if self.stable:
            return None
        return grows(self.growth_ratio) if self.growing else REFUSES


REFUSES = "refuses requests where its live bytes fit twice"


def grows(growth_ratio: float) -> str:
    """Sentence about the growth of a heap at constant live bytes."""
    return f"grows by {100 * (growth_ratio - 1):.0f} % at constant live bytes"


def run_stress_test(
    trace: Trace,
    recipe: Recipe,
    effort: StressEffort = FULL,
    *,
    seed: int = 1,
    threads: int = 1,
    progress: Callable[[str], None] = lambda loop: None,
) -> StressTest:
    """Stress-test a recipe with the requests of a trace. ``progress`` is called with each loop before it begins.

    Each of the ``threads`` runs a loop at a time, with the same results for any number. Time grows with the calls: some
    seconds for ten million calls of each loop. Raises `HeapwrightError` if the heap's own control data has no room, or
    the system has no memory.
    """
    struct = policy_struct(recipe)
    effort = _suited(trace, struct, effort)
    info = StressTest({}, {}, {}, {}, effort.most)
    loops = [_Tried(loop, trace, recipe, struct, effort) for loop in _loops(trace, effort)]
    with closing(_in_order(loops, seed, threads, progress)) as outcomes:
        for loop, item in outcomes:
            if item is None:
                continue
            info = replace(
                info,
                footprint_bytes={**info.footprint_bytes, loop: item.footprints},
                growth={**info.growth, loop: item.grown},
                best_fit={**info.best_fit, loop: item.best_fit},
                refused={**info.refused, loop: item.refused} if item.refused else info.refused,
            )
            if not effort.whole and not info.stable:
                break
    return info


def _in_order(
    loops: Sequence[_Tried], seed: int, threads: int, progress: Callable[[str], None]
) -> Generator[tuple[str, _Outcome | None]]:
    """Each loop with its result, in order; close it to begin no further loop."""
    if threads == 1:
        for tried in loops:
            progress(tried.loop)
            yield tried.loop, tried.outcome(seed)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    pool, begun = ThreadPoolExecutor(threads), deque[tuple[str, Future[_Outcome | None]]]()
    try:
        for tried in loops:
            progress(tried.loop)
            begun.append((tried.loop, pool.submit(tried.outcome, seed)))
            if len(begun) == 2 * threads:
                loop, item = begun.popleft()
                yield loop, item.result()
        for loop, item in begun:
            yield loop, item.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _let_pass(most: float, best_fit: float) -> float:
    """Growth up to which a heap is stable, given best fit's growth."""
    return most * max(1.0, best_fit)


def _suited(trace: Trace, struct: Any, effort: StressEffort) -> StressEffort:
    """Fewer objects if the reach of a heap is too short for all: a limited arena is no leak."""
    _, live = drawn(trace, effort.objects)
    room = 4 * live
    if struct.reach >= room:
        return effort
    return replace(effort, objects=max(LEAST_OBJECTS, effort.objects * int(struct.reach) // room))


def _loops(trace: Trace, effort: StressEffort) -> tuple[str, ...]:
    """The loops to run. A short test omits passes of a long trace, and kinds of calls that the trace never makes."""
    brief = not effort.whole and len(trace) * 2 * WARM_PASSES > effort.calls
    without = {PASSES} if brief else set[str]()
    if not effort.whole:  # a program that never resizes is not judged by how a heap resizes
        without |= set() if (trace.op == REALLOC).any() else {"shrink", "grow", "resize"}
        without |= set() if trace.align.any() else {"aligned"}
    return tuple(loop for loop in effort.loops if loop not in without)


class _Outcome(NamedTuple):
    """Result of a loop: footprints by calls, their growth, best fit's growth, and failed requests."""

    footprints: Mapping[int, int]
    grown: float
    best_fit: float
    refused: int


@dataclass(frozen=True)
class _Tried:
    """Test of a heap in a loop."""

    loop: str
    trace: Trace
    recipe: Recipe
    struct: Any
    effort: StressEffort

    def outcome(self, seed: int) -> _Outcome | None:
        """The result of the loop; None if the heap cannot serve its requests."""
        effort, (footprints, grown, count) = self.effort, self.whole(seed)
        if count is None:
            return None
        known = not effort.whole and (count > 0 or grown <= effort.most)
        fit = 1.0 if known else best_fit_growth(self.trace, self.loop, effort, seed)
        if not known and 1 < grown / _let_pass(effort.most, fit) < CLEARLY:
            others = range(seed + 1, seed + SEEDS)
            grown = fsum([grown, *(self.covered(other)[1] for other in others)]) / SEEDS
            fit = fsum([fit, *(best_fit_growth(self.trace, self.loop, effort, other) for other in others)]) / SEEDS
        return _Outcome(footprints, grown, fit, count)

    def covered(self, seed: int) -> tuple[Mapping[int, int], float, Any]:
        """Footprints by calls, their growth, and the engine's result of the loop, None for passes."""
        if self.loop == PASSES:
            return *_passes(self.trace, self.recipe, self.struct, self.effort, seed), None
        return self._made(seed).run(self.recipe, self.struct, arena_bytes_of(self.struct, DEFAULT_ARENA))

    def whole(self, seed: int) -> tuple[Mapping[int, int], float, int | None]:
        """Footprints by calls, their growth, and failed requests.

        These are None if the heap cannot serve the loop's requests.
        """
        footprints, grown, ample = self.covered(seed)
        if ample is None:
            return footprints, grown, 0
        if ample.failed:  # no pool may be able to cut a block to an alignment
            return footprints, grown, None if self.loop == "aligned" else int(ample.failed)
        after = self.refuses_after(seed, footprints, ample)
        best = None if after is None else best_fit_refuses_after(self.trace, self.loop, self.effort, seed)
        return footprints, grown, int(after is not None and (best is None or 2 * after < best))

    def refuses_after(self, seed: int, footprints: Mapping[int, int], ample: Any) -> int | None:
        """The calls until a request fails in an arena of twice the live blocks; None if none fails.

        ``footprints`` and ``ample`` are the results of `covered` with that seed.
        """
        twice = arena_holding(self.struct, int(self.struct.fixed_end) + 2 * int(ample.blocks))
        cramped = min(twice, int(self.struct.reach))
        if footprints[max(footprints)] <= cramped and not depends_on_arena(self.recipe):
            return None  # it behaves the same there
        return self._made(seed).refuses_after(self.recipe, self.struct, cramped)

    def _made(self, seed: int) -> _Loop:
        return _Loop(self.trace, LOOPS.index(self.loop), self.effort, seed)


def best_fit_growth(trace: Trace, loop: str, effort: StressEffort = FULL, seed: int = 1) -> float:
    """Growth of best fit in a loop, which no heap can avoid."""
    return _covered_by_best_fit(trace, loop, effort, seed)[1]


@lru_cache(maxsize=16 * len(LOOPS))
def best_fit_refuses_after(trace: Trace, loop: str, effort: StressEffort = FULL, seed: int = 1) -> int | None:
    """The calls of a loop until best fit fails one in twice its live blocks; None if it fails none.

    It fails if `resize` has large objects, and no room to move one.
    """
    footprints, _, ample = _covered_by_best_fit(trace, loop, effort, seed)
    return _best_fit(trace, loop, effort).refuses_after(seed, footprints, ample)


@lru_cache(maxsize=16 * (len(LOOPS) + 1))
def _covered_by_best_fit(
    trace: Trace, loop: str, effort: StressEffort, seed: int
) -> tuple[Mapping[int, int], float, Any]:
    return _best_fit(trace, loop, effort).covered(seed)


def _best_fit(trace: Trace, loop: str, effort: StressEffort) -> _Tried:
    from heapwright._recipes.pools import BEST_FIT
    from heapwright._recipes.recipe import Recipe

    recipe = Recipe.unchecked((BEST_FIT,))
    return _Tried(loop, trace, recipe, policy_struct(recipe), effort)


def _growth(covered: Mapping[int, float], base: int) -> float:
    """The last value over that after `base` calls, or over the first if no value is so early."""
    first = [value for calls, value in covered.items() if calls <= base]
    values = list(covered.values())
    return values[-1] / (first[-1] if first else values[0])


def points(calls: int) -> list[int]:
    """The calls at which footprints are reported: four to a decade from 1,000 on, and the last."""
    info = [round(1000 * 10 ** (quarter / 4)) for quarter in range(100)]
    return [*(point for point in info if point < calls), calls]


# ---- loops ---------------------------------------------------------------------------------------------------------


class _Loop:
    """Loop over a trace's sizes."""

    def __init__(self, trace: Trace, kind: int, effort: StressEffort, seed: int) -> None:
        self._effort, self._of = effort, (trace, kind, effort, seed)
        sizes, live = drawn(trace, effort.objects)
        if LOOPS[kind] == "shrink":
            live //= 2  # half of its objects remain
        self._sizes = sizes  # the loop points to them
        objects = min(4 * effort.objects, 1 << 20)
        period = max(objects, 1000)
        self._told = (kind, pointer("uint32_t", sizes), len(sizes), live, objects, period, seed)
        self._calls = ffi.new("struct hw_calls *", {"slots": objects})

    def run(self, recipe: Recipe, struct: Any, arena: int) -> tuple[dict[int, int], float, Any]:
        """Footprints by calls, their growth, and the engine's result, in an arena of this size.

        Growth is that of each footprint over the most that live blocks took until then: the sizes that a loop drew are
        no property of the heap, and a later moment may have larger blocks.
        """
        effort, at = self._effort, points(self._effort.calls)
        result = self._replayed(recipe, struct, arena, at) if effort.calls <= min(effort.enough, _WRITTEN) else None
        info, endured = result or self._ran(recipe, struct, arena, at, effort.enough, at_refusal=False)
        footprints = {calls: arena_holding(struct, used) for calls, (used, _) in info.items()}
        shares = {calls: footprints[calls] / max(1, blocks) for calls, (_, blocks) in info.items()}
        return footprints, _growth(shares, effort.base), endured

    def _replayed(
        self, recipe: Recipe, struct: Any, arena: int, at: list[int]
    ) -> tuple[dict[int, tuple[int, int]], Any] | None:
        """The result of `_ran` for a heap without failed requests, by the replay of calls that are written once.

        None if a request fails.
        """
        written = _written(*self._of)
        if written is None:
            return None
        calls, _ = written
        covered, result = ffi.new("struct hw_covered[]", len(at) + 1), ffi.new("struct hw_metrics *")
        ends = ffi.new("uint64_t[]", [*at, int(calls.count) + 1])
        timeline = ffi.new("struct hw_timeline *", (ends, ffi.NULL, covered))
        options = ffi.new("struct hw_options *", (lib.HW_CHECK_NOTHING, ffi.NULL, timeline))
        memory = _memory(struct, calls, arena)
        explain(lib.hw_replay(struct, calls, memory, arena, options, result), recipe, struct, arena)
        if result.failed:
            return None
        most, info = 0, {}
        for calls_made, item in zip([*at, None], covered, strict=True):
            most = max(most, int(item.blocks))
            if calls_made is not None:
                info[calls_made] = int(item.footprint), most
        return info, ffi.new("struct hw_endured *", {"blocks": most})

    def calls(self) -> Any:
        """All calls of the loop: the same for every heap that fails none.

        `struct hw_calls *` and the columns that it points to; None without memory.
        """
        count, objects = self._effort.calls, int(self._calls.slots)
        room = count + 3 * objects  # no turn makes more
        op, slot, size, align, thread = np.empty(room, np.uint8), *np.empty((4, room), np.uint32)
        numbers = {"slot": slot, "size": size, "align": align, "thread": thread}
        columns = {"op": pointer("uint8_t", op)} | {key: pointer("uint32_t", item) for key, item in numbers.items()}
        written = ffi.new("struct hw_written *", {"room": room, **columns})
        made = int(lib.hw_loop_calls(self._struct(count, at_refusal=False), count, written))
        if not 0 <= made <= room:
            return None
        kept = {"op": op[:made].copy(), "slot": slot[:made].copy(), "size": size[:made].copy()}
        kept |= {key: item[:made].copy() for key, item in (("align", align), ("thread", thread)) if item[:made].any()}
        columns = {key: pointer("uint8_t" if key == "op" else "uint32_t", item) for key, item in kept.items()}
        struct = ffi.new("struct hw_calls *", {"count": made, "slots": objects, "threads": 2, **columns})
        lib.hw_total(struct, made, ffi.addressof(struct, "totals"))
        return struct, kept

    def refuses_after(self, recipe: Recipe, struct: Any, arena: int) -> int | None:
        """The calls until one has failed in an arena of this size; None if none fails."""
        cramped = self._effort.cramped
        _, endured = self._ran(recipe, struct, arena, [cramped], cramped, at_refusal=True)
        return int(endured.calls) if endured.failed else None

    def _ran(
        self, recipe: Recipe, struct: Any, arena: int, at: list[int], enough: int, *, at_refusal: bool
    ) -> tuple[dict[int, tuple[int, int]], Any]:
        loop = self._struct(enough, at_refusal=at_refusal)
        covered, endured = ffi.new("struct hw_covered[]", len(at)), ffi.new("struct hw_endured *")
        memory = _memory(struct, self._calls, arena)
        calls = ffi.new("uint64_t[]", at)
        where = ffi.new("struct hw_points *", (calls, len(at), covered))
        code = lib.hw_endure(struct, loop, memory, arena, where, endured)
        explain(code, recipe, struct, arena)
        info = zip(at, covered[0 : endured.points], strict=False)
        return {calls: (int(item.footprint), int(item.blocks)) for calls, item in info}, endured

    def _struct(self, enough: int, *, at_refusal: bool) -> Any:
        return ffi.new("struct hw_loop *", (*self._told, 4, enough, int(at_refusal)))


_WRITTEN = 1 << 20
"""Most calls of a loop that is written: some 9 bytes each."""


@lru_cache(maxsize=len(LOOPS) + 3)
def _written(trace: Trace, kind: int, effort: StressEffort, seed: int) -> Any:
    return _Loop(trace, kind, effort, seed).calls()


def _memory(struct: Any, calls: Any, arena: int) -> Any:
    class _Slots:
        struct = calls

    return memory_of(struct, _Slots, arena)  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def drawn(trace: Trace, objects: int) -> tuple[NDArray[np.uint32], int]:
    """The sizes that loops draw from, ascending, uint32[n], and the most bytes of live objects.

    The bytes are those of this number of objects at the mean of these sizes. The largest sizes are left out, until none
    exceeds the bytes divided by `FEWEST`, or by half the number of objects if that is less.
    """
    requested = np.sort(np.maximum(trace.size[trace.op != FREE], 1)).astype(np.int64)
    requested = np.minimum(requested, (1 << 31) // objects - BESIDE)  # live bytes are counted in 32 bits
    weights = requested + BESIDE
    live = objects * np.cumsum(weights) // np.arange(1, len(requested) + 1)
    last = int(np.flatnonzero(min(FEWEST, objects // 2) * weights <= live)[-1])
    kept = requested[: last + 1]
    step = max(1, len(kept) // SIZES)
    return np.ascontiguousarray(kept[::step], np.uint32), int(live[last])


# ---- the trace again and again -------------------------------------------------------------------------------------


def _passes(
    trace: Trace, recipe: Recipe, struct: Any, effort: StressEffort, seed: int
) -> tuple[Mapping[int, int], float]:
    """Footprints by calls of the repeated trace, and their growth.

    There are `StressEffort.calls` calls, and at most ten times the `base`. Growth is that of each footprint over the
    peak of live bytes by then: the objects that outlive a pass are drawn at random.
    """
    again = repeated(trace, max(min(10 * effort.base, effort.calls), len(trace) * 2 * WARM_PASSES), seed)
    info: dict[int, int] = {}

    def watch(so_far: ReplayProgress) -> bool:
        info[so_far.calls] = so_far.footprint_bytes
        return True

    result, _ = run(again, recipe, struct, None, watch=watch)
    info[len(again)] = arena_holding(struct, int(struct.fixed_end + result.shared))
    most = np.maximum.accumulate(again.live_bytes + BESIDE * again.live_objects)
    shares = {calls: footprint / int(most[calls - 1]) for calls, footprint in info.items()}
    return info, _growth(shares, max(effort.base, len(trace) * WARM_PASSES))


_KEPT = 1 << 18
"""Most calls of repeated traces that are kept for several seeds: some 30 bytes each."""


def repeated(trace: Trace, calls: int, seed: int) -> Trace:
    """The trace repeated for about this number of calls, at least twice; one object in `OUTLIVE` outlives its pass.

    The next pass frees these, in another order, in place of its own that outlive it. It also frees the objects that the
    trace never frees, spread over the pass.
    """
    return (_repeated_kept if calls <= _KEPT else _repeated_long)(trace, calls, seed)


def _repeated(trace: Trace, calls: int, seed: int) -> Trace:
    from heapwright._traces.trace import Trace

    rng = np.random.default_rng(seed)
    count, passes = len(trace), max(2, -(-calls // max(1, len(trace))))
    numbers, _ = number_objects(trace.op, trace.id)
    born = numbers.astype(np.int64)
    freed_at = np.flatnonzero(trace.op == FREE)
    later = freed_at[rng.random(len(freed_at)) < 1 / OUTLIVE]
    remaining = np.setdiff1d(np.unique(born), np.unique(born[freed_at]))
    row = count + len(remaining)
    extra = np.sort(rng.integers(0, count, len(remaining))) + np.arange(
        len(remaining)
    )  # frees of objects that the trace never frees
    own = np.setdiff1d(np.arange(row), extra)
    ids, lives_in = np.empty((passes, row), np.int64), int(born.max()) + 1
    ids[:, own] = born
    outliving, there = born[later], own[later]
    for item in range(passes if len(later) or len(remaining) else 0):
        ids[item, there] = rng.permutation(outliving) - lives_in
        if item:
            ids[item, extra] = rng.permutation(remaining) - lives_in
    ids += np.arange(passes)[:, np.newaxis] * lives_in
    kept = np.ones((passes, row), bool)
    kept[0, extra] = kept[0, there] = False

    def again(values: NDArray[Any], otherwise: int = 0) -> NDArray[Any]:
        item = np.full(row, otherwise, values.dtype)
        item[own] = values
        return np.tile(item, passes)[kept.ravel()]

    op, id = again(trace.op, FREE), ids[kept]
    size, align, low, site = (again(values) for values in (trace.size, trace.align, trace.low, trace.site))
    name = f"{trace.name}, {passes} passes"
    return Trace.from_columns(op=op, id=id, size=size, align=align, low=low, site=site, sites=trace.sites, name=name)


_repeated_kept = lru_cache(maxsize=2 * SEEDS)(_repeated)
_repeated_long = lru_cache(maxsize=2)(_repeated)
