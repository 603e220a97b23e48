"""Replays: trace x recipe -> metrics.

A replay drives the C core with the recipe's policy at run time and counts every metadata access. The arena is address
space of which only what is touched costs memory; its default size is what the recipe's links reach, so that one replay
also tells the smallest arena. The native calls release the GIL: threads replay in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from heapwright._native import lib
from heapwright.recipes.policy import Structure, policy_struct, structure_of
from heapwright.recipes.worst_steps import worst_steps
from heapwright.replay.energy import EnergyTable, with_energy
from heapwright.replay.engine import GivenUpError, Margins, Watch, control_bytes, margins_of, run, so_far
from heapwright.replay.metrics import SHIPPING_METRICS, TARGET_METRICS, Value
from heapwright.replay.reach import reach_bytes
from heapwright.replay.smallest import fit_from, footprint, high_water_mark, server

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace


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
    """Run the trace on a fresh heap of the recipe and return every metric of `heapwright.replay.metrics.METRICS`.

    Args:
        trace: the calls.
        recipe: the allocator.
        arena: bytes of the arena, None for as much as the recipe reaches.
        check_payload: fill every object with a pattern and verify it before it is freed, moved, or resized.
        check_invariants: run the core's checker after every call (slow), and check payloads.
        fit: also find `smallest_arena_bytes`.
        watch: asked now and then whether the replay is worth going on with; where it is not, `GivenUpError` is raised.

    Refused requests are counted in `failed`. Deterministic. Raises HeapwrightError where the
    arena cannot hold the heap's control data, CorruptHeapError where a check fails.
    """
    check = lib.HW_CHECK_PAYLOAD if check_payload else lib.HW_CHECK_NOTHING
    if check_invariants:
        check = lib.HW_CHECK_INVARIANTS
    return with_energy(_replayed(trace, recipe, arena, check, fit, watch).metrics)


def refused_low(trace: Trace, recipe: Recipe, arena: int | None = None) -> int:
    """How many of the requests that `replay` refuses have low priority. O(calls): it replays."""
    return int(run(trace, recipe, policy_struct(recipe), arena)[0].failed_low)


class Replayed(NamedTuple):
    """What a replay found: its metrics, and how far thresholds may be moved; None where that is not known."""

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
    """`replay` in as much as the recipe reaches, with its margins; ``energies`` in place of the default table.

    They are not those of the replays that find `smallest_arena_bytes`, or the footprint of a recipe whose decisions
    depend on the arena's size.
    """
    replayed = _replayed(trace, recipe, None, lib.HW_CHECK_NOTHING, fit, watch)
    return Replayed(with_energy(replayed.metrics, energies), replayed.margins)


def _replayed(trace: Trace, recipe: Recipe, arena: int | None, check: int, fit: bool, watch: Watch | None) -> Replayed:
    struct = policy_struct(recipe)
    found, arena_bytes = run(trace, recipe, struct, arena, check, watch)
    needed = footprint(trace, recipe, struct, found, arena_bytes, _watched(trace, recipe, struct, found, watch))
    metrics = _metrics(trace, recipe, found, needed, arena_bytes if arena is not None else None)
    if fit:
        metrics["smallest_arena_bytes"] = fit_from(trace, recipe, struct, found, None)
    return Replayed(metrics, margins_of(found))


def _watched(
    trace: Trace, recipe: Recipe, struct: Any, found: Any, watch: Watch | None
) -> Callable[[int], bool] | None:
    """Whether an arena serves the trace, where a run found this; ``watch`` is asked before each try. None without."""
    if watch is None:
        return None

    def asked(size: int) -> bool:
        told = so_far(found, len(trace), high_water_mark(struct, found))
        if not watch(told):
            raise GivenUpError(told, margins_of(found))
        return server(trace, recipe, struct)(size)

    return asked


class _Shared(NamedTuple):
    """What the metrics of recipes of one structure have in common."""

    control: int
    reach: int | None
    worst_steps: int | None


@lru_cache(maxsize=4096)
def _shared(structure: Structure) -> _Shared:
    struct = structure.struct()
    return _Shared(control_bytes(struct), reach_bytes(struct), worst_steps(structure.recipe).most)


def _metrics(trace: Trace, recipe: Recipe, found: Any, needed: int, arena: int | None) -> dict[str, Value]:
    """All but the energy, which has its place."""
    control, reach, most_steps = _shared(structure_of(recipe))
    requested, covered, headers = found.requested_peak, found.covered, found.peak_headers
    # Where blocks merge later, what was headers holds payload: their sum at the high-water mark is not the least used.
    allocated = max(covered - headers, requested)
    mean, reads, writes = found.mean_requested, found.reads, found.writes

    def ratio(value: float, whole: float) -> float | None:
        return value / whole if whole else None

    return {
        "requested_peak_bytes": requested,
        "allocated_peak_bytes": allocated,
        "fragmentation": allocated / requested - 1 if requested else None,
        "fragmentation_with_headers": covered / requested - 1 if requested else None,
        "footprint_bytes": needed,
        "internal_bytes": found.peak_capacity - found.peak_requested,
        "external_bytes": needed - control - headers - found.peak_capacity,
        "header_bytes": headers,
        "accesses": reads + writes,
        "reads": reads,
        "writes": writes,
        "accesses_malloc_max": found.malloc_max,
        "accesses_malloc_p999": found.malloc_p999,
        "accesses_realloc_max": found.realloc_max,
        "accesses_free_max": found.free_max,
        "accesses_free_p999": found.free_p999,
        "energy_nJ": None,
        "moved_bytes": found.moved,
        "failed": found.failed,
        "admitted_fraction": ratio(found.admitted_bytes, found.requested_bytes),
        "utilisation": ratio(mean, needed if arena is None else arena),
        "pool_utilisation": ratio(mean, allocated if arena is None else arena - control - headers),
        "smallest_arena_bytes": None,
        "lower_bound_bytes": trace.lower_bound(recipe.align),
        "reach_bytes": reach,
        **dict.fromkeys(SHIPPING_METRICS),
        "worst_steps": most_steps,
        "ns_per_event": None,
        **dict.fromkeys(TARGET_METRICS),
    }
