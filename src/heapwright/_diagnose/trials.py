"""Cures of a trace, each tried by replay: other allocators, pools or static buffers for a size, strings of one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._diagnose.model import Cure, number
from heapwright._heaps.heaps import RecipeHeap, resolve
from heapwright._support.errors import HeapwrightError
from heapwright._traces.size_uses import SizeUse, size_uses
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

if TYPE_CHECKING:
    from heapwright._heaps.heaps import Heap

USUAL = "freertos-heap4"
"""The allocator that is assumed if none is given: first fit with coalescing, as in FreeRTOS and others."""

CANDIDATES = ("best-fit-fast-free", "zephyr-sys-heap", "tlsf", "small")
"""Best fit, the heap of Zephyr, TLSF, and the project's own for heaps of that size: what people can switch to."""

LARGE_SHARE = 0.02
"""A size is worth a place of its own if its objects take that share of the peak, or more."""
MOST_SIZES = 3
LEAST_GAIN = 0.01
"""A cure must save that share of what the heap needs."""

GROWING_REALLOCS = 16
"""An object that is resized that often, by `SMALL_STEP` bytes or fewer, grows like a string that is appended to."""
SMALL_STEP = 64


def usual_heap(trace: Trace, heaps: Sequence[Heap]) -> tuple[Heap, str]:
    """The allocator that a trace is judged on, and how it was found out, in words; empty if the user said it."""
    if heaps:
        return heaps[0], ""
    name = trace.metadata.get("allocator", "")
    try:
        return resolve(name or USUAL), "the allocator of such a log" if name else "assumed"
    except HeapwrightError:
        return resolve(USUAL), "assumed"


def large_sizes(trace: Trace) -> list[SizeUse]:
    """The sizes that are worth a place of their own: used again and again, and a good part of the peak."""
    least = LARGE_SHARE * trace.peak_live_bytes
    uses = [item for item in size_uses(trace) if item.bytes >= least and item.objects > item.most and item.size]
    return uses[:MOST_SIZES]


def without(trace: Trace, size: int) -> Trace | None:
    """The trace without the objects of a size; None if there are no others."""
    number_of, count = trace.objects()
    births = trace.op <= CALLOC
    sizes, resized = np.zeros(count, np.int64), np.zeros(count, bool)
    sizes[number_of[births]] = trace.size[births]
    resized[number_of[trace.op == REALLOC]] = True
    kept = ~((sizes == size) & ~resized)[number_of]
    return _part(trace, kept, trace.size) if kept.any() else None


def at_final_size(trace: Trace) -> Trace:
    """The trace in which each object that grows again and again is allocated at its largest size at once."""
    grows = growing(trace)
    number_of, count = trace.objects()
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, number_of[trace.op != FREE], trace.size[trace.op != FREE].astype(np.int64))
    size = np.where(grows[number_of] & (trace.op <= CALLOC), largest[number_of], trace.size)
    return _part(trace, ~(grows[number_of] & (trace.op == REALLOC)), size.astype(np.uint32))


def growing(trace: Trace) -> NDArray[np.bool_]:
    """Which objects grow by many small reallocs, one an object."""
    number_of, count = trace.objects()
    resizes = trace.op == REALLOC
    if not resizes.any():
        return np.zeros(count, bool)
    rows = np.flatnonzero(trace.op != FREE)
    order = rows[np.argsort(number_of[rows], kind="stable")]
    same = number_of[order][1:] == number_of[order][:-1]
    step = trace.size[order][1:].astype(np.int64) - trace.size[order][:-1].astype(np.int64)
    small = same & (step >= 0) & (step <= SMALL_STEP)
    many: NDArray[np.bool_] = np.bincount(number_of[order][1:][small], minlength=count) >= GROWING_REALLOCS
    return many


def _part(trace: Trace, kept: NDArray[np.bool_], size: NDArray[np.uint32]) -> Trace:
    return Trace.from_columns(
        op=trace.op[kept],
        id=trace.id[kept],
        size=size[kept],
        ts_us=trace.ts_us[kept],
        tid=trace.tid[kept],
        align=trace.align[kept],
        name=trace.name,
    )


def cures_of(trace: Trace, heap: Heap, need: int, more: Sequence[Heap] = ()) -> list[Cure]:
    """The cures that save memory on the trace, that of fewest bytes first. Each is tried by replay."""
    usual: list[Heap] = [other for other in map(resolve, CANDIDATES) if other != heap]
    tried = [(_other(trace, heap, other, need), other) for other in usual]
    changes = [cure for cure, _ in tried] + [_other(trace, heap, other, need) for other in more if other != heap]
    cures = [*_static(trace, heap, need), *_pools(trace, heap, need), *_strings(trace, heap, need), *changes]
    best = min(tried, key=lambda item: need if item[0].after is None else item[0].after, default=None)
    if best is not None:
        cures += _pools(trace, best[1], need)
    least = need * (1 - LEAST_GAIN)
    return sorted(
        (item for item in cures if item.after is not None and item.after <= least), key=lambda item: item.after or 0
    )


def _static(trace: Trace, heap: Heap, need: int) -> Iterator[Cure]:
    for use in large_sizes(trace):
        rest = without(trace, use.size)
        left = heap.fit(rest) if rest is not None else 0
        if left is not None:
            buffers = use.most * _rounded(use.size, 8)
            plural = "s" if use.most > 1 else ""
            text = f"{use.most:,} static buffer{plural} of {number(use.size)} B (the rest on {heap.label})"
            yield Cure(text, need, left + buffers)


def _pools(trace: Trace, heap: Heap, need: int) -> Iterator[Cure]:
    """A fixed pool for a size in front of the heap."""
    if not isinstance(heap, RecipeHeap) or heap.recipe.memory or heap.recipe.sites:
        return
    for use in large_sizes(trace):
        pooled = with_pool(heap, use)
        after = pooled.fit(trace) if pooled else None
        if after is not None:
            text = f"a fixed pool of {use.most:,} x {number(use.size)} B in front of {heap.label}"
            yield Cure(text, need, after, "heapwright explore")


def with_pool(heap: RecipeHeap, use: SizeUse) -> RecipeHeap | None:
    """The heap with a fixed pool for a size before its own pools; None if it cannot have one."""
    recipe = heap.recipe
    size = _rounded(use.size, recipe.align)
    pool = f'[[pool]]\nkind = "fixed"\nsizes = [{size}]\ncounts = [{use.most}]\nmin_size = {use.size}\n\n'
    head, *pools = recipe.to_toml().split("[[pool]]")
    try:
        result = type(recipe).parse(head + pool + "".join(f"[[pool]]{item}" for item in pools))
    except HeapwrightError:
        return None
    return RecipeHeap(result.model_copy(update={"name": ""}))


def _rounded(size: int, align: int) -> int:
    return -(-size // align) * align


def _strings(trace: Trace, heap: Heap, need: int) -> Iterator[Cure]:
    grown = int(growing(trace).sum())
    if grown:
        after = heap.fit(at_final_size(trace))
        if after is not None:
            objects = "object that grows" if grown == 1 else f"{grown:,} objects that grow"
            text = f"allocate the {objects} by small reallocs at the final size at once (String.reserve)"
            yield Cure(text, need, after)


def _other(trace: Trace, heap: Heap, other: Heap, need: int) -> Cure:
    after = other.fit(trace)
    return Cure(f"{other.label} in place of {heap.label}", need, after, f"heapwright generate {other.label}")
