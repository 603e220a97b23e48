"""What a trace needs, as the options of the system that it runs on: its heap, slabs, pools and buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._heaps import lwip_pools, tls_buffers
from heapwright._heaps.heaps import RecipeHeap, fit_each, resolve
from heapwright._platforms.catalogue import platforms
from heapwright._platforms.size_options import HeapIdentity, OptionLines, implied, options_of
from heapwright._replay.reserve import MARGIN
from heapwright._support.errors import HeapwrightError
from heapwright._support.writing import write_text
from heapwright._traces.size_uses import large_sizes, sizes_of_objects, without_objects

if TYPE_CHECKING:
    from heapwright._heaps.heaps import Heap
    from heapwright._platforms.size_options import SizeOptions
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace


@dataclass(frozen=True)
class Sizing:
    """A trace on an allocator, and for which load its sizes are.

    Attributes:
        trace: the recording.
        held_out: others that the sizes must serve, too.
        heap: the allocator.
        reserve: its recommended arena in bytes.
        scaled: how many times as much as recorded each trace needs.
    """

    trace: Trace
    held_out: Sequence[Trace]
    heap: Heap
    reserve: int
    scaled: Callable[[Trace], float] = lambda trace: 1.0

    def of(self, heap: Heap, change: Callable[[Trace], Trace | None]) -> int | None:
        """The recommended arena of an allocator for the traces after a change, in bytes; None if none serves them."""
        trace, *held_out = [changed for item in (self.trace, *self.held_out) if (changed := change(item)) is not None]
        return fit_each(trace, {"": heap}, held_out=held_out, scaled=self.scaled)[""].reserve

    def count(self, most: int) -> int:
        """How many blocks to reserve where the recording had `most` at once."""
        return math.ceil(round(most * MARGIN * self.scaled(self.trace), 6))


AUTO = "auto"
"""The system that the trace's log or the allocator belongs to."""


def system_of(name: str) -> SizeOptions | None:
    """The options of a system; None for `AUTO`. Raises HeapwrightError for an unknown one."""
    return None if name == AUTO else options_of(name)


def as_generated(heap: Heap, system: SizeOptions | None) -> Heap:
    """The allocator as `generate` writes it for a system with a port; the system's own and foreign ones unchanged.

    Raises HeapwrightError where the platform cannot use the recipe.
    """
    port = None if system is None else platforms().get(system.name)
    if system is None or port is None or not isinstance(heap, RecipeHeap) or system.is_own(_named(heap)):
        return heap
    return RecipeHeap(port.adapted(heap.recipe))


def sizes_in_options(system: SizeOptions | None, sizing: Sizing) -> tuple[OptionLines, ...]:
    """The option lines of a system for a trace on an allocator: its heap, then its pools, slabs and buffers.

    Without a system it is the one that the trace's log or the allocator belongs to; empty if none does.
    """
    heap = _named(sizing.heap)
    options = system or implied(heap, sizing.trace.metadata.get("recorder", ""))
    return () if options is None else tuple(part for part in _sizes(options, heap, sizing) if part is not None)


def _named(heap: Heap) -> HeapIdentity:
    if isinstance(heap, RecipeHeap):
        return HeapIdentity.of_recipe(heap.label)
    adapter = getattr(heap, "adapter", None)
    return HeapIdentity(heap.label, adapter.name if adapter is not None else heap.label, is_original=True)


def _sizes(options: SizeOptions, heap: HeapIdentity, sizing: Sizing) -> list[OptionLines | None]:
    lwip = _lwip(options, heap, sizing) if options.name == "lwip" else []
    parts = lwip or [_own(options, heap, sizing)]
    if options.port and not options.is_own(heap):
        parts.append(options.heap_lines(heap, sizing.reserve, in_place=True))
    if options.pool:
        parts += _pools(options, heap, sizing)
    if options.name in tls_buffers.SYSTEMS:
        parts += _tls(options, sizing)
    return parts


def _own(options: SizeOptions, heap: HeapIdentity, sizing: Sizing) -> OptionLines | None:
    """The line of the heap that the system has now."""
    if options.is_own(heap):
        return options.heap_lines(heap, sizing.reserve)
    if options.model:
        arena = sizing.of(resolve(options.model), lambda trace: trace)
        name = HeapIdentity(f"{options.title}'s own heap, estimated by {options.model}", options.model)
        return None if arena is None else options.heap_lines(name, arena)
    if options.own_names and options.port:
        return None
    lines = options.heap_lines(heap, sizing.reserve)
    if lines is None or not options.own_names:
        return lines
    own = f"{options.title}'s own heap is --heap {options.own_names}"
    return OptionLines(lines.file, f"{lines.counts}; {own}", lines.lines)


def _pools(options: SizeOptions, heap: HeapIdentity, sizing: Sizing) -> list[OptionLines | None]:
    """Blocks of one size for the sizes that take most, and the heap of all other objects."""
    uses = [use for use in large_sizes(sizing.trace) if use.most > 1]
    if not uses:
        return []
    sizes = {use.size for use in uses}
    lines = [line for use in uses for line in options.pool_lines(use.size, sizing.count(use.most))]
    taken = "; ".join(f"{use.most:,} of {use.size:,} B at most at once" for use in uses)
    pools = OptionLines("C", f"for the sizes that take most ({taken}); {options.pool_counts}", tuple(lines))
    if not (options.heap or options.port):
        return [pools]
    arena = sizing.of(sizing.heap, lambda trace: _without(trace, sizes))
    in_place = bool(options.port) and not options.is_own(heap)
    rest = None if arena is None else options.heap_lines(heap, arena, in_place)
    return [pools, None if rest is None else OptionLines(rest.file, "for all other objects", rest.lines)]


def _without(trace: Trace, sizes: set[int]) -> Trace | None:
    import numpy as np

    size, resized = sizes_of_objects(trace)
    return without_objects(trace, np.isin(size, list(sizes)) & ~resized)


def _lwip(options: SizeOptions, heap: HeapIdentity, sizing: Sizing) -> list[OptionLines | None]:
    """lwIP's own pools, and its heap without their objects."""
    pools = lwip_pools.pools_of_all((sizing.trace, *sizing.held_out))
    if not pools:
        return []
    rest = None
    for own in [sizing.heap] if options.is_own(heap) else [resolve(name) for name in options.own]:
        arena = sizing.of(own, lwip_pools.without_pools)
        rest = None if arena is None else options.heap_lines(_named(own), arena)
        if arena is not None and arena <= lwip_pools.SMALL_HEAP:
            break
    lines = lwip_pools.option_lines(pools, sizing.count)
    memory = () if rest is None else rest.lines
    why = "for lwIP's own heap and pools (MEMP_MEM_MALLOC 0)"
    return [OptionLines(options.file, why, (*memory, *lines))]


def write_lwip_header(recipe: Recipe, traces: Sequence[Trace], directory: Path, prefix: str) -> Path:
    """Write PREFIX_lwip_pools.h for a generated heap. Raises HeapwrightError if no trace has objects of pools."""
    names = [trace.name for trace in traces]
    if not lwip_pools.pools_of_all(traces):
        raise HeapwrightError(
            f"{', '.join(names)}: no objects of lwIP's pools; record with the hooks of lwip and -DAPP_TRACE_SITES=1",
            parameter="memp",
        )
    heap = RecipeHeap(recipe)
    sizing = Sizing(traces[0], traces[1:], heap, 0)
    arena = sizing.of(heap, lwip_pools.without_pools)
    if arena is None:
        raise HeapwrightError(
            f"{heap.label}: no arena serves {', '.join(names)} without lwIP's pools", parameter="memp"
        )
    (part,) = _lwip(options_of("lwip"), _named(heap), sizing)
    assert part is not None
    path = directory / f"{prefix}_lwip_pools.h"
    write_text(path, lwip_pools.header(prefix, part.lines, arena, names))
    return path


def _tls(options: SizeOptions, sizing: Sizing) -> list[OptionLines | None]:
    """The record buffers of TLS, and what smaller ones would save."""
    buffers = tls_buffers.buffers_of(sizing.trace)
    if buffers is None:
        return []
    lines = list(buffers.lines(options.name))
    for smaller in buffers.smaller():
        arena = sizing.of(sizing.heap, smaller.apply)
        if arena is not None and arena < sizing.reserve:
            lines.append(smaller.line(options.name, sizing.reserve, arena))
    file = "sdkconfig" if options.name == "esp-idf" else "mbedtls_config.h"
    return [OptionLines(file, buffers.summary(), tuple(lines))]
