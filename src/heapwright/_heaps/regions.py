"""Several memory regions: which objects go into which, in which order, and how much each must hold.

Each region gets a heap of its own. A request goes to the first region of the order that takes its size and has room,
as FreeRTOS's heap_5, ESP-IDF's capabilities and Zephyr's multi-heap do. Every order of the regions is replayed, each
without and with a largest size for the first region, so that small objects do not break up the larger one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from heapwright._recipes.recipe import Recipe
from heapwright._replay.memories import replay_memories, route
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

MOST_REGIONS = 4
"""As many as a recipe can have memories."""

LIMITS = (64, 256, 512, 1024, 2048, 4096, 16384)
"""Largest sizes of the first region that are tried, in bytes; those within the sizes of the trace."""


@dataclass(frozen=True)
class Placement:
    """One way to use the regions, replayed.

    Attributes:
        order: regions by their position in the list of the call, from 0, in the order in which they are tried.
        limit: largest request that the first of them takes, in bytes; None for any.
        failed: requests that no region served.
        used_bytes: high-water mark of each region, by its position.
        accesses: metadata memory accesses over all calls.
        recipe: the regions as a recipe with several memories, for `heapwright generate`.
    """

    order: tuple[int, ...]
    limit: int | None
    failed: int
    used_bytes: tuple[int, ...]
    accesses: int
    recipe: Recipe


def placements(trace: Trace, recipe: Recipe, regions: Sequence[int]) -> list[Placement]:
    """Replay a trace in every order of some regions, the best placement first: least failures, then most bytes spare.

    Args:
        trace: any.
        recipe: the heap of each region; one in one memory.
        regions: bytes of each, 2 to `MOST_REGIONS` of them.

    Raises:
        ParameterError: too few or too many regions.
        HeapwrightError: the recipe lies in several memories, or no region holds the heap's control data.

    At most 192 replays of the trace.
    """
    if not 2 <= len(regions) <= MOST_REGIONS:
        raise ParameterError(f"{len(regions)} regions; give 2 to {MOST_REGIONS}", parameter="regions")
    if recipe.memory:
        raise HeapwrightError(f"{recipe.name or 'the recipe'} says itself which memory its pools lie in; replay it")
    sizes = trace.size[trace.op != FREE]
    limits = [limit for limit in LIMITS if sizes.min() <= limit < sizes.max()]
    results = [
        _placed(trace, recipe, regions, order, limit)
        for order in _orders(regions)
        for limit in (None, *(limits if regions[order[0]] != max(regions) or len(set(regions)) == 1 else ()))
    ]
    spare = [min(size - used for size, used in zip(regions, result.used_bytes, strict=True)) for result in results]
    best = sorted(range(len(results)), key=lambda at: (results[at].failed, results[at].limit is not None, -spare[at]))
    return [results[at] for at in best]


class RegionContents(NamedTuple):
    """What a placement allocates in one region.

    Attributes:
        region: its position in the list that was given, from 0.
        objects: how many were allocated there.
        smallest, largest: their requested sizes in bytes; 0 without objects.
    """

    region: int
    objects: int
    smallest: int
    largest: int


def contents(trace: Trace, placement: Placement) -> list[RegionContents]:
    """Which objects a placement puts where, in the order in which the regions are tried. O(calls)."""
    where = route(trace, placement.recipe).where
    births = trace.op <= 1
    results = []
    for number, region in enumerate(placement.order, 1):
        sizes = trace.size[births & (where == number)]
        smallest = int(sizes.min()) if len(sizes) else 0
        results.append(RegionContents(region, len(sizes), smallest, int(sizes.max(initial=0))))
    return results


def in_regions(recipe: Recipe, sizes: Sequence[int], limit: int | None = None) -> Recipe:
    """The recipe in several memories of these sizes in bytes, `region1` first, which takes requests up to `limit`."""
    data = recipe.to_dict()
    tables = []
    for at in range(len(sizes)):
        for table in data["pool"]:
            own = {**table, "memory": f"region{at + 1}"}
            if at == 0 and limit is not None:
                own["max_size"] = min(limit, table.get("max_size") or limit)
            tables.append(own)
    memory = {f"region{at + 1}": size for at, size in enumerate(sizes)}
    return Recipe.from_dict({**data, "memory": memory, "pool": tables})


def _orders(regions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Orders of the regions that differ in sizes."""
    seen = set()
    for order in permutations(range(len(regions))):
        sizes = tuple(regions[at] for at in order)
        if sizes not in seen:
            seen.add(sizes)
            yield order


def _placed(
    trace: Trace, recipe: Recipe, regions: Sequence[int], order: tuple[int, ...], limit: int | None
) -> Placement:
    own = in_regions(recipe, [regions[at] for at in order], limit)
    whole, each = replay_memories(trace, own)
    used = dict(zip(order, (int(metrics["footprint_bytes"] or 0) for metrics in each.values()), strict=True))
    placed = tuple(used[at] for at in range(len(regions)))
    return Placement(order, limit, int(whole["failed"] or 0), placed, int(whole["accesses"] or 0), own)
