"""Replays: trace x recipe -> metrics.

A replay drives the C core with the recipe's policy at run time and counts every metadata access. The arena is address
space, of which only touched pages cost memory. Its default size is the recipe's reach, so that one replay also gives
the smallest arena. The native calls release the GIL: threads replay in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._recipes.policy import Structure, policy_struct, structure_of
from heapwright._recipes.worst_steps import worst_steps
from heapwright._replay.arena_sizes import fit_from, footprint, high_water_mark, proved_from, server
from heapwright._replay.energy import EnergyTable, with_energy
from heapwright._replay.engine import (
    GivenUpError,
    Margins,
    Watch,
    control_bytes,
    margins_of,
    run,
    run_each,
    so_far,
)
from heapwright._replay.metrics import LONG_RUN_METRICS, SHIPPING_METRICS, TARGET_METRICS, Value
from heapwright._replay.reach import reach_bytes

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


def replay(
    trace: Trace,
    recipe: Recipe,
    *,
    arena: int | None = None,
    check_payload: bool = False,
    check_invariants: bool = False,
    fit: bool = False,
    watch: Watch | None = None,
) -> dict[str, Value]:
    """Run the trace on a fresh heap of the recipe and return every metric of `heapwright._replay.metrics.METRICS`.

    Args:
        trace: the calls.
        recipe: the allocator.
        arena: bytes of the arena, None for the recipe's reach.
        check_payload: fill every object with a pattern and verify it before it is freed, moved, or resized.
        check_invariants: run the core's checker after every call (slow), and check payloads.
        fit: also find `smallest_arena_bytes`.
        watch: called now and then; if it returns False, the replay ends with `GivenUpError`.

    Failed requests are counted in `failed`. Deterministic. Raises HeapwrightError if the arena cannot hold the heap's
    control data, CorruptHeapError if a check fails.
    """
    check = lib.HW_CHECK_PAYLOAD if check_payload else lib.HW_CHECK_NOTHING
    if check_invariants:
        check = lib.HW_CHECK_INVARIANTS
    return with_energy(_replayed(trace, recipe, arena, check, fit, watch).metrics)


def refused_low(trace: Trace, recipe: Recipe, arena: int | None = None) -> int:
    """Number of failed requests in `replay` that have low priority. O(calls): it replays."""
    return int(run(trace, recipe, policy_struct(recipe), arena)[0].failed_low)


class Replayed(NamedTuple):
    """Result of a replay: its metrics, and the margins of its thresholds, None if not known."""

    metrics: dict[str, Value]
    margins: Margins | None = None


def replay_with_margins(
    trace: Trace,
    recipe: Recipe,
    *,
    fit: bool = False,
    watch: Watch | None = None,
    energies: EnergyTable | None = None,
) -> Replayed:
    """`replay` in an arena of the recipe's reach, with its margins; ``energies`` in place of the default table.

    The margins do not cover the replays for `smallest_arena_bytes`, or for the footprint of a recipe whose placement
    depends on the arena's size.
    """
    replayed = _replayed(trace, recipe, None, lib.HW_CHECK_NOTHING, fit, watch)
    return Replayed(with_energy(replayed.metrics, energies), replayed.margins)


BATCH = 32
"""Recipes that are replayed in a native call: its overhead per recipe is then below that of Python."""


def replay_recipes(
    trace: Trace,
    recipes: Sequence[Recipe],
    *,
    arena: int | None = None,
    fit: bool = False,
    energies: EnergyTable | None = None,
) -> list[Replayed]:
    """`replay_with_margins` for many recipes, `BATCH` to a native call, in an arena as of `replay`.

    Raises as `replay` does, for the first recipe with an error.
    """
    parts = [recipes[start : start + BATCH] for start in range(0, len(recipes), BATCH)]
    return [item for part in parts for item in _replayed_each(trace, part, arena, fit, energies)]


def _replayed_each(
    trace: Trace, recipes: Sequence[Recipe], arena: int | None, fit: bool, energies: EnergyTable | None
) -> list[Replayed]:
    structs = [policy_struct(recipe) for recipe in recipes]
    result, sizes = run_each(trace, recipes, structs, arena)
    each = list(zip(recipes, structs, result, strict=True))
    needed = [footprint(trace, *item, size) for item, size in zip(each, sizes, strict=True)]
    metrics = _metrics_of_each(trace, recipes, result, needed, None if arena is None else sizes)
    if fit:
        for info, item in zip(metrics, each, strict=True):
            info["smallest_arena_bytes"] = fit_from(trace, *item, None)
    return [Replayed(with_energy(info, energies), margins_of(item)) for info, item in zip(metrics, result, strict=True)]


def _replayed(trace: Trace, recipe: Recipe, arena: int | None, check: int, fit: bool, watch: Watch | None) -> Replayed:
    struct = policy_struct(recipe)
    result, arena_bytes = run(trace, recipe, struct, arena, check, watch)
    needed = footprint(
        trace, recipe, struct, result, arena_bytes, _watched(trace, recipe, struct, result, arena_bytes, watch)
    )
    given = None if arena is None else arena_bytes
    beside = _Beside(given, needed, trace.lower_bound(recipe.align), *_shared(structure_of(recipe)))
    metrics = _metrics(result, beside, max, _ratio)
    if fit:
        metrics["smallest_arena_bytes"] = fit_from(trace, recipe, struct, result, None)
    return Replayed(metrics, margins_of(result))


def _watched(
    trace: Trace, recipe: Recipe, struct: Any, result: Any, arena: int, watch: Watch | None
) -> Callable[[int], bool] | None:
    """Function that returns whether an arena serves the trace, after a run in one of ``arena`` bytes.

    ``watch`` is called before each replay.

    None if it is not needed.
    """
    if watch is None:
        return None

    serves, proved = server(trace, recipe, struct), proved_from(result, arena)

    def asked(size: int) -> bool:
        if proved is not None and size >= proved:
            return True
        info = so_far(result, len(trace), high_water_mark(struct, result))
        if not watch(info):
            raise GivenUpError(info, margins_of(result))
        return serves(size)

    return asked


class _Shared(NamedTuple):
    """Common data of the metrics of recipes with one structure."""

    control: int
    reach: int | None
    worst_steps: int | None


@lru_cache(maxsize=4096)
def _shared(structure: Structure) -> _Shared:
    struct = structure.struct()
    return _Shared(control_bytes(struct), reach_bytes(struct), worst_steps(structure.recipe).most)


_LATER, _ON_TARGET = dict.fromkeys([*LONG_RUN_METRICS, *SHIPPING_METRICS]), dict.fromkeys(TARGET_METRICS)


class _Beside(NamedTuple):
    """Metrics that follow from the engine's counts and other data: numbers of one replay, or columns of many.

    ``arena`` is None if its size was not given.
    """

    arena: Any
    needed: Any
    least: Any
    control: Any
    reach: Any
    worst_steps: Any


_COUNTS = {
    name: ("f8" if field.type.cname == "double" else "i8", field.offset)
    for name, field in ffi.typeof("struct hw_metrics").fields
    if field.type.cname in ("uint64_t", "double")
}

_ROW = np.dtype(
    {
        "names": [*_COUNTS],
        "formats": [format for format, _ in _COUNTS.values()],
        "offsets": [offset for _, offset in _COUNTS.values()],
        "itemsize": ffi.sizeof("struct hw_metrics"),
    }
)
"""Counts of the engine, with the names of `struct hw_metrics`."""


def _metrics_of_each(
    trace: Trace, recipes: Sequence[Recipe], result: Any, needed: list[int], arenas: list[int] | None
) -> list[dict[str, Value]]:
    """`_metrics` of many replays, computed by columns in a third of the time."""
    rows = np.frombuffer(ffi.buffer(result), _ROW)
    counts = SimpleNamespace(**{name: rows[name] for name in _COUNTS})
    control, reach, worst_steps = zip(*(_shared(structure_of(recipe)) for recipe in recipes), strict=True)
    least = [trace.lower_bound(recipe.align) for recipe in recipes]
    arena = None if arenas is None else np.array(arenas)
    beside = _Beside(arena, np.array(needed), least, np.array(control), reach, worst_steps)
    info = _metrics(counts, beside, np.maximum, _ratios)
    columns = [item.tolist() if isinstance(item, np.ndarray) else item or repeat(None) for item in info.values()]
    return [dict(zip(info, row, strict=True)) for row in zip(*columns, strict=False)]


def _ratio(value: float, whole: float, less: int = 0) -> float | None:
    return value / whole - less if whole else None


def _ratios(values: NDArray[Any], wholes: NDArray[Any], less: int = 0) -> list[float | None]:
    return [_ratio(*item, less) for item in zip(values.tolist(), wholes.tolist(), strict=True)]


def _metrics(
    counts: Any, beside: _Beside, most: Callable[[Any, Any], Any], ratio: Callable[..., Any]
) -> dict[str, Any]:
    """Metrics but the energy, whose place is kept: of one replay, or of many with `most` and `ratio` for columns."""
    arena, needed, control = beside.arena, beside.needed, beside.control
    requested, covered, headers = counts.requested_peak, counts.covered, counts.peak_headers
    # Where blocks merge later, what was headers holds payload: their sum at the high-water mark is not the least used.
    allocated = most(covered - headers, requested)
    mean, reads, writes = counts.mean_requested, counts.reads, counts.writes
    return {
        "requested_peak_bytes": requested,
        "allocated_peak_bytes": allocated,
        "fragmentation": ratio(allocated, requested, 1),
        "fragmentation_with_headers": ratio(covered, requested, 1),
        "footprint_bytes": needed,
        "internal_bytes": counts.peak_capacity - counts.peak_requested,
        "external_bytes": needed - control - headers - counts.peak_capacity,
        "header_bytes": headers,
        "accesses": reads + writes,
        "reads": reads,
        "writes": writes,
        "accesses_malloc_max": counts.malloc_max,
        "accesses_malloc_p999": counts.malloc_p999,
        "accesses_realloc_max": counts.realloc_max,
        "accesses_free_max": counts.free_max,
        "accesses_free_p999": counts.free_p999,
        "energy_nJ": None,
        "moved_bytes": counts.moved,
        "failed": counts.failed,
        "admitted_fraction": ratio(counts.admitted_bytes, counts.requested_bytes),
        "utilisation": ratio(mean, needed if arena is None else arena),
        "pool_utilisation": ratio(mean, allocated if arena is None else arena - control - headers),
        "smallest_arena_bytes": None,
        "lower_bound_bytes": beside.least,
        "reach_bytes": beside.reach,
        **_LATER,
        "worst_steps": beside.worst_steps,
        "ns_per_event": None,
        **_ON_TARGET,
    }
