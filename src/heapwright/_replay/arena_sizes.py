"""Arena sizes: the smallest arena that serves a trace, and the footprint of a run in an ample arena."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from heapwright._native import ffi, lib
from heapwright._recipes.geometry import round_up
from heapwright._recipes.policy import policy_struct
from heapwright._replay.engine import arena_holding, explain, least_arena, memory_of, note_wiped, run
from heapwright._replay.lower_bounds import LeastFootprints

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

FINER = 16
"""Number of smaller steps in which the step with the first success is searched again."""

BISECTED_CALLS = 500_000
"""Calls above which the smallest arena is bisected, although a smaller one may serve by chance."""

AMPLE_HEADERS = 4096
"""Upper bound on the bytes of a block's overhead."""

FOOTPRINT_STEPS = 64
"""Resolution of the search for a footprint above a high-water mark that does not serve."""


def smallest_arena(
    serves: Callable[[int], bool], low: int, guess: int, unit: int, enough: int | None = None, steps: int = 0
) -> int:
    """A multiple of `unit` that serves although the next lower one does not, near `guess` or below it.

    Args:
        serves: whether an arena of a size in bytes serves the whole trace.
        low: no smaller arena serves.
        guess: bytes that probably serve.
        unit: step in bytes.
        enough: an arena that is known to serve; None if every arena from some size on serves.
        steps: 0 if any arena larger than one that serves does so too: then a good guess takes two probes, a bad one a
            bisection. Otherwise the search rises from `low` in steps of 1 / `steps` of the size, and in finer steps
            before the first success; it may miss a success that spans less than a step. O(`steps`) probes a doubling.
    """
    high = -(-max(guess, low) // unit) * unit
    failed = low // unit * unit - unit
    step = unit
    while not serves(high):
        if not steps:
            failed = high
        high, step = high + step, 2 * step
        if enough is not None and high >= enough:
            high = -(-enough // unit) * unit
            break
    return _first(serves, failed, high, unit, steps) if steps else _bisected(serves, failed, high, unit)


def _bisected(serves: Callable[[int], bool], failed: int, high: int, unit: int) -> int:
    probe = high - unit
    while high - failed > unit:
        if serves(probe):
            high = probe
        else:
            failed = probe
        probe = (failed + high) // 2 // unit * unit
    return high


def _first(serves: Callable[[int], bool], failed: int, high: int, unit: int, steps: int) -> int:
    """The first success above `failed`, in ever finer steps; `high` is known to serve."""
    finest = False
    part = steps
    while not finest:
        step = max((failed + unit) // part // unit, 1) * unit
        finest = step == unit
        size = failed + unit if finest else failed + step
        while size < high and not serves(size):
            failed, size = size, size + max(step, size // part // unit * unit)
        high = min(size, high)
        part *= FINER
    return high


def fit(trace: Trace, recipe: Recipe, *, step: int | None = None) -> int | None:
    """Smallest arena in bytes that serves the whole trace, control data counted; None if none does.

    `step` rounds it up to a multiple; None is one alignment unit. A heap that takes fresh memory from its top last
    needs exactly its high-water mark, which two replays prove. If placement depends on the arena's size, a larger arena
    may fail although a smaller one serves: the search then rises from the lower bound in steps of
    1 / `fit_steps(trace)` of the size, and in finer ones. Above `BISECTED_CALLS` calls it bisects.
    """
    ample = ample_run(trace, recipe)
    return fit_from(trace, recipe, ample.struct, ample.result, step, ample.serves)


def fit_steps(trace: Trace) -> int:
    """Steps of the search for the smallest arena if placement depends on the arena's size; 0 for a bisection.

    On a long trace each step would cost a second: there the search assumes that larger arenas serve.
    """
    if len(trace) > BISECTED_CALLS:
        return 0
    return 512 if len(trace) <= 20_000 else 128


@dataclass(frozen=True)
class AmpleRun:
    """Run of a trace on a recipe in an arena of its reach.

    Attributes:
        struct: the recipe's policy.
        result: the engine's counts.
        arena: bytes of the arena.
        proved: see `proved_from`.
        serves: returns whether an arena of some bytes serves the whole trace. Each size is replayed once, and only if
            it is neither proved nor below the lower bound of every footprint.
    """

    struct: Any
    result: Any
    arena: int
    proved: int | None
    serves: Callable[[int], bool]


_LAST_RUN = WeakKeyDictionary["Trace", tuple[str, AmpleRun]]()


def ample_run(trace: Trace, recipe: Recipe) -> AmpleRun:
    """Replay once in an ample arena, unless this was the last recipe replayed so on the trace."""
    hash, last = _LAST_RUN.get(trace, ("", None))
    if last is None or hash != recipe.hash:
        struct = policy_struct(recipe)
        result, arena = run(trace, recipe, struct, None)
        least = LeastFootprints([trace]).of(recipe)[0] if depends_on_arena(recipe) and not result.failed else 0
        proved = proved_from(result, arena)
        last = AmpleRun(struct, result, arena, proved, cache(server(trace, recipe, struct, least, proved)))
        _LAST_RUN[trace] = recipe.hash, last
    return last


def proved_from(result: Any, arena: int) -> int | None:
    """Bytes of an arena from which on every one serves as the run in `arena` bytes did; None if not known.

    The engine watched the run's choices: none meets the end of the arena in any of these (`native/arena_margin.h`).
    """
    size = int(result.same_from)
    return size if size and not result.failed and size <= arena else None


def fit_from(
    trace: Trace,
    recipe: Recipe,
    struct: Any,
    result: Any,
    step: int | None,
    serves: Callable[[int], bool] | None = None,
) -> int | None:
    """`fit` after a run in an ample arena, with its result; `serves` replaces the recipe's own `server`."""
    if result.failed:
        return None
    unit = step or recipe.align
    serves = serves or server(trace, recipe, struct)
    exact = high_water_mark(struct, result)
    low = max(int(struct.fixed_end), trace.lower_bound(recipe.align))
    steps = fit_steps(trace) if depends_on_arena(recipe) else 0
    enough = smallest_arena(serves, low, exact, unit, steps=steps)
    return exact if step is None and enough - unit < exact < enough and serves(exact) else enough


def server(
    trace: Trace, recipe: Recipe, struct: Any, least: int = 0, proved: int | None = None
) -> Callable[[int], bool]:
    """Function that returns whether an arena of some bytes serves the whole trace; a run ends at the first failure.

    Arenas below ``least`` bytes are known not to, and arenas of at least ``proved`` bytes are known to: none of these
    is replayed.
    """
    calls, least = trace.calls_at(recipe.sites), max(least, least_arena(struct))
    wiped = ffi.new("int *")

    def serves(size: int) -> bool:
        if size < least:
            return False
        if proved is not None and size >= proved:
            return True
        code = lib.hw_serves(struct, calls.struct, memory_of(struct, calls, size), size, wiped)
        note_wiped(struct, wiped[0])
        explain(min(code, 0), recipe, struct, size)
        return bool(code)

    return serves


def high_water_mark(struct: Any, result: Any) -> int:
    """Bytes of the arena that a run in an ample one has used, including partly empty regions."""
    return arena_holding(struct, int(struct.fixed_end + result.shared))


def footprint(
    trace: Trace, recipe: Recipe, struct: Any, result: Any, arena: int, serves: Callable[[int], bool] | None = None
) -> int:
    """Bytes of an arena that serves as much of the trace as a run in `arena` bytes did, with its result.

    See `footprint_where`; `serves` replaces the recipe's own `server`.
    """
    if not depends_on_arena(recipe):
        return high_water_mark(struct, result)
    largest = int(trace.size.max(initial=0)) + int(trace.align.max(initial=0))
    serves = serves or server(trace, recipe, struct, proved=proved_from(result, arena))
    return footprint_where(serves, recipe, struct, result, arena, largest)


def footprint_where(
    serves: Callable[[int], bool], recipe: Recipe, struct: Any, result: Any, arena: int, largest: int | None = None
) -> int:
    """`footprint` with a function `serves` that returns whether an arena of some bytes serves all calls.

    `largest` is an upper bound on a request with its alignment; None if not known.

    The footprint is the high-water mark, which is enough for all heaps that take fresh memory last. If placement
    depends on the arena's size it may not be enough. Then, if no request failed, the next larger arena that serves is
    searched for, in steps of 1 / `FOOTPRINT_STEPS` of the size, and in finer ones at the end.
    """
    mark = high_water_mark(struct, result)
    if result.failed or not depends_on_arena(recipe) or _was_ample(recipe, mark, arena, largest) or serves(mark):
        return mark
    low = round_up(mark + 1, recipe.align)
    return smallest_arena(serves, low, low, recipe.align, enough=arena, steps=FOOTPRINT_STEPS)


def _was_ample(recipe: Recipe, mark: int, arena: int, largest: int | None) -> bool:
    """Whether a run in an arena of `arena` bytes is the same as in one of `mark` bytes, its high-water mark.

    It is if only an arena that runs short matters, and this one never did: above the mark there was room for the
    largest block, which powers of two and alignments make at most four times the request, and for the least growth.
    """
    if largest is None or recipe.reserve or fills_arena(recipe):
        return False
    return arena - mark >= mark + 4 * largest + AMPLE_HEADERS


def depends_on_arena(recipe: Recipe) -> bool:
    """Whether placement depends on the arena's size although no request failed.

    It does if all memory is one free block from the start, if the free block at the top is extended once memory is
    short, or if requests of low priority leave a reserve. Every other heap meets the end of the arena only when it
    would grow beyond it, and behaves the same in all larger arenas.
    """
    return recipe.reserve > 0 or fills_arena(recipe) or "extend" in _shared_tops(recipe)


def fills_arena(recipe: Recipe) -> bool:
    """Whether all memory is one free block from the start: searches meet that block, and its size."""
    return "list" in _shared_tops(recipe)


def _shared_tops(recipe: Recipe) -> list[str]:
    return [pool.shared_top for pool in recipe.pools]
