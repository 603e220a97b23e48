"""Several memory regions: which objects go into which, in which order, and how much each must hold.

Each region gets a heap of its own. A request goes to the first region of the order that takes its size and has room,
as FreeRTOS's heap_5, ESP-IDF's capabilities and Zephyr's multi-heap do. Every order of the regions is replayed, each
without and with a largest size for the first region, so that small objects do not break up the larger one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

from heapwright._recipes.recipe import Recipe
from heapwright._replay.memories import replay_memories, route
from heapwright._replay.reserve import with_margin
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

MOST_REGIONS = 4
"""As many as a recipe can have memories."""

MOST_PLACEMENTS = 3
"""Placements of a heap that are tried on the other traces and the futures."""

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
    require_regions(regions)
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


def require_regions(regions: Sequence[int]) -> None:
    """Raise ParameterError for too few or too many regions."""
    if not 2 <= len(regions) <= MOST_REGIONS:
        raise ParameterError(f"{len(regions)} regions; give 2 to {MOST_REGIONS}", parameter="regions")


@dataclass(frozen=True)
class RegionPick:
    """The heap of several that serves traces in some regions, and how.

    Attributes:
        heap: its name.
        placement: on the first trace, the best that serves most.
        failed: requests that failed on the traces, with this placement.
        failed_future: the same on the futures; 0 if `failed` is not 0, or there are none.
        tried: how many heaps were placed.
        passed_over: the preferred heaps that fail requests, and how many each fails at best, in their order.
        orders_that_fail: orders of the regions in which this heap fails requests of the first trace with any limit.
    """

    heap: str
    placement: Placement
    failed: int
    failed_future: int
    tried: int
    passed_over: tuple[tuple[str, int], ...]
    orders_that_fail: tuple[tuple[int, ...], ...]

    @property
    def serves(self) -> bool:
        """Whether nothing failed."""
        return not self.failed and not self.failed_future

    @property
    def recipe(self) -> Recipe:
        """The heap in its regions, `region1` first, as a recipe with several memories."""
        return self.placement.recipe


def pick_for_regions(
    traces: Sequence[Trace], heaps: Mapping[str, Recipe], regions: Sequence[int], futures: Sequence[Trace] = ()
) -> RegionPick | None:
    """The first heap that serves all traces and futures in some regions; else the one that fails the fewest requests.

    Args:
        traces: one or more; the first decides the order and the largest request of the first region.
        heaps: recipes by name, the preferred first; those in several memories, or without room for their control
            data, are left out.
        regions: bytes of each, 2 to `MOST_REGIONS` of them.
        futures: longer traces, of which a placement must serve all, too.

    Returns None if no heap can be placed. Raises ParameterError for too few or too many regions.
    """
    require_regions(regions)
    best: RegionPick | None = None
    passed_over: dict[str, int] = {}
    for name, recipe in heaps.items():
        try:
            found = _placed_best(traces, (name, recipe), regions, futures)
        except HeapwrightError:
            continue
        found = replace(found, tried=1 + len(passed_over), passed_over=tuple(passed_over.items()))
        if found.serves:
            return found
        passed_over[name] = found.failed + found.failed_future
        if best is None or (found.failed, found.failed_future) < (best.failed, best.failed_future):
            best = found
    return None if best is None else replace(best, tried=len(passed_over))


def _placed_best(
    traces: Sequence[Trace], heap: tuple[str, Recipe], regions: Sequence[int], futures: Sequence[Trace]
) -> RegionPick:
    """The placement of one heap, of its best on the first trace, that fails the fewest requests of all."""
    name, recipe = heap
    every = placements(traces[0], recipe, regions)
    serving = [item for item in every if not item.failed]
    wrong = tuple(sorted({item.order for item in every} - {item.order for item in serving}))
    results: list[RegionPick] = []
    for placement in serving[:MOST_PLACEMENTS] or every[:1]:
        failed = placement.failed + sum(_failures(trace, placement.recipe) for trace in traces[1:])
        later = 0 if failed else sum(_failures(future, placement.recipe) for future in futures)
        results.append(RegionPick(name, placement, failed, later, 1, (), wrong))
        if results[-1].serves:
            break
    return min(results, key=lambda item: (item.failed, item.failed_future))


def _failures(trace: Trace, recipe: Recipe) -> int:
    return int(route(trace, recipe).found.failed)


class MemoryUse(NamedTuple):
    """What a memory of a recipe in several takes on a trace.

    Attributes:
        memory: its name.
        bytes: its size in the recipe.
        used_bytes: its high-water mark, control data included.
        recommended_bytes: 20 % more (`heapwright._replay.reserve.MARGIN`).
        failed: requests of the trace that no memory served.
        failed_then: the same if each memory has its recommended size.
    """

    memory: str
    bytes: int
    used_bytes: int
    recommended_bytes: int
    failed: int
    failed_then: int


def memory_uses(trace: Trace, recipe: Recipe) -> list[MemoryUse]:
    """What each memory of a recipe takes, in its order. Raises HeapwrightError for a recipe in one memory."""
    if not recipe.memory:
        raise HeapwrightError(f"{recipe.name or recipe.hash}: lies in one memory; fit finds its arena")
    whole, each = replay_memories(trace, recipe)
    used = {name: int(metrics["footprint_bytes"] or 0) for name, metrics in each.items()}
    sizes = {name: with_margin(bytes_) for name, bytes_ in used.items()}
    then = _failures(trace, Recipe.from_dict({**recipe.to_dict(), "memory": sizes}))
    failed = int(whole["failed"] or 0)
    return [MemoryUse(name, size, used[name], sizes[name], failed, then) for name, size in dict(recipe.memory).items()]


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
