"""Long-run need: the arena that a recipe needs to serve a future, traffic like a recording's that goes on for long.

A recording covers minutes; a heap runs for years. `heapwright._traces.futures.resample` makes a future of a recording,
and a replay of it shows where free memory splinters or waits unused. docs/choosing.md has how well this need predicted
the need on real runs of millions of calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from heapwright._recipes.policy import policy_struct
from heapwright._replay.arena_sizes import footprint, high_water_mark
from heapwright._replay.engine import GivenUpError, Margins, ReplayProgress, run
from heapwright._replay.worst_case import worst_case
from heapwright._traces.live_bound import LiveBound

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._replay.engine import Watch
    from heapwright._replay.metrics import Value
    from heapwright._traces.trace import Trace

UNBOUNDED = 1.10
"""Growth over the last nine tenths of a future, over best fit's there, above which a need counts as infinite.

Of the recipes that grew by more than a tenth on a future of a million calls, three quarters did so on eight real long
runs, too; of those that failed loops at constant live bytes one third did.
"""

CALLS = 500_000
"""Default calls of a future, a compromise. Of two programs judged at 300,000 and 1,000,000 calls
the longer future ranked one better (.80 for .70) and the other the same (.77 for .79)."""

_BASE = 0.1
"""Share of a future after which growth is measured: a decade of calls before its end."""

_NONE_YET = ReplayProgress(*[0] * 9)


@dataclass(frozen=True)
class LongRun:
    """Need of a recipe on a future.

    Attributes:
        arena: bytes of the smallest arena that serves it; None if requests fail, or it grows without bound. Of a
            future with a `LiveBound` the arena that is proved to serve any order (`worst_case`); None without a proof.
        footprint: bytes at the end, bounded or not.
        growth: the footprint at the end over that after a tenth of the calls, over best fit's on the same future.
        calls: number of calls of the future.
        accesses: mean loads and stores of metadata per call.
        malloc_max: loads and stores of the worst-case malloc or calloc.
        free_max: loads and stores of the worst-case free.
        failed: number of failed requests.
    """

    arena: int | None
    footprint: int
    growth: float
    calls: int
    accesses: float
    malloc_max: int
    free_max: int
    failed: int

    def metrics(self) -> dict[str, Value]:
        """By the keys of `heapwright._replay.metrics.LONG_RUN_METRICS`."""
        return {
            "long_run_bytes": self.arena,
            "long_run_accesses": self.accesses,
            "long_run_growth": self.growth,
            "long_run_calls": self.calls,
            "long_run_malloc_max": self.malloc_max,
            "long_run_free_max": self.free_max,
        }


def long_run(future: Trace, recipe: Recipe, watch: Watch | None = None) -> LongRun:
    """Replay a future with a recipe: O(calls), some 50 ns a call.

    ``watch`` is called now and then; if it returns False, `GivenUpError` is raised. Raises HeapwrightError if the
    recipe's control data has no room.
    """
    struct = policy_struct(recipe)
    covered, result, ample = _covered(future, recipe, struct, watch)
    mark = covered[max(covered)]
    growth = _growth(covered) / max(1.0, _best_fit_growth(future))
    failed = int(result.failed)
    if LiveBound.of(future) is not None:  # every future of these objects is enclosed, not only this one
        enough = worst_case(future, recipe)
        arena = None if failed or enough is None else enough.bytes
    else:
        # two-level good fit may fail in an arena of its high-water mark: its free blocks have other sizes there
        arena = None if failed or growth > UNBOUNDED else footprint(future, recipe, struct, result, ample)
    return LongRun(
        arena=arena,
        footprint=mark,
        growth=growth,
        calls=len(future),
        accesses=float(result.reads + result.writes) / max(len(future), 1),
        malloc_max=int(result.malloc_max),
        free_max=int(result.free_max),
        failed=failed,
    )


def _covered(future: Trace, recipe: Recipe, struct: Any, watch: Watch | None = None) -> tuple[dict[int, int], Any, int]:
    """High-water marks in bytes after some numbers of calls, the engine's counts, and the arena of the replay."""
    covered = dict[int, int]()

    def take(so_far: ReplayProgress) -> bool:
        covered[so_far.calls] = so_far.footprint_bytes
        if watch is not None and not watch(_NONE_YET):
            raise GivenUpError(_NONE_YET, Margins(0, 0, 0, 0))
        return True

    result, arena = run(future, recipe, struct, None, watch=take)
    covered[len(future)] = high_water_mark(struct, result)
    return covered, result, arena


def _growth(covered: dict[int, int]) -> float:
    """The last footprint over that after `_BASE` of the calls."""
    end = max(covered)
    before = [covered[calls] for calls in covered if calls <= _BASE * end]
    return covered[end] / max(1, before[-1] if before else covered[min(covered)])


_OF_BEST_FIT = WeakKeyDictionary["Trace", float]()


def _best_fit_growth(future: Trace) -> float:
    """Growth of best fit, which any allocator has to some degree: a longer run has a worse peak."""
    from heapwright._recipes.pools import BEST_FIT
    from heapwright._recipes.recipe import Recipe

    if future not in _OF_BEST_FIT:
        best_fit = Recipe.unchecked((BEST_FIT,))
        _OF_BEST_FIT[future] = _growth(_covered(future, best_fit, policy_struct(best_fit))[0])
    return _OF_BEST_FIT[future]
