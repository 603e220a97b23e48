"""Orders of objects within a bound, such as a ring's packets, that need the largest arena known.

With `heapwright._replay.worst_case` they enclose what a heap really needs: the theorem says how much is enough for any
order, and an order says how much is not. Sources: J. M. Robson 1971 (see there), whose programs have a bound on bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heapwright._replay.arena_sizes import fit
from heapwright._replay.worst_case import block_sizes
from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_bound import KEY, LiveBound
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

_MOST_CALLS = 50_000
"""Calls up to which every size that blocks have takes its turn; beyond it powers of two do."""


def worst_order(bound: LiveBound, recipe: Recipe) -> tuple[Trace, int]:
    """The order of objects within a bound that needs the largest arena of the orders known, and that arena in bytes.

    - Each round fills the bound with objects of its largest size and, between them, of a size that fits into no hole
      yet; these are then freed. So half of what is allocated stays, and the holes are each a little too small: any heap
      that takes a hole if one is large enough needs about 2 - 1/count times the payload.
    - As many objects of every size in turn, from the smallest: the worst for classes that keep their blocks.

    Of each class of the bound that is not the largest all objects are live throughout, between the first ones. O(sizes
    that blocks have x count). Raises HeapwrightError if no arena serves one of them.
    """
    sizes = [size for size in _largest_requests(bound.largest, recipe) if size >= bound.classes[0].least]
    traces = [_filled_rounds(bound, sizes), _ascending(bound, sizes)]
    needs = [fit(trace, recipe) for trace in traces]
    if None in needs:
        raise HeapwrightError(f"{recipe.name or recipe.hash}: no arena serves every order of {bound}")
    known = [(need, at) for at, need in enumerate(needs) if need is not None]
    arena, at = max(known)
    return traces[at], arena


def _largest_requests(most: int, recipe: Recipe) -> list[int]:
    """The largest request of each block size of requests up to `most`, descending."""
    requests = np.arange(1, most + 1)
    blocks = block_sizes(recipe, requests)[0]
    last = np.append(np.flatnonzero(np.diff(blocks)), most - 1)
    return [int(requests[at]) for at in last[::-1]]


class _Program:
    """Calls of a program with malloc and free, numbered objects."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int]] = []
        self._objects = 0

    def malloc(self, size: int) -> int:
        self._rows.append((MALLOC, self._objects, size))
        self._objects += 1
        return self._objects - 1

    def free(self, objects: Sequence[int]) -> None:
        self._rows += [(FREE, number, 0) for number in objects]

    def trace(self, name: str, bound: LiveBound) -> Trace:
        op, id, size = zip(*self._rows, strict=True)
        return Trace.from_columns(op=op, id=id, size=size, name=name, metadata={KEY: bound.text})


def _filled_rounds(bound: LiveBound, sizes: Sequence[int]) -> Trace:
    largest, others = bound.classes[0], [item.most for item in bound.classes[1:] for _ in range(item.objects)]
    rounds, calls = largest.objects.bit_length(), _Program()
    too_small = [sizes[min(at, len(sizes) - 1)] for at in range(rounds, 0, -1)]
    if others:
        smaller, holes = sizes[min(rounds + 1, len(sizes) - 1)], []
        for _ in range(largest.objects):
            if others:
                calls.malloc(others.pop())
            holes.append(calls.malloc(smaller))
        for size in others:
            calls.malloc(size)
        calls.free(holes)
    free = largest.objects
    for size in too_small:
        made = [calls.malloc(largest.most if at % 2 or free == 1 else size) for at in range(free)]
        if free > 1:
            calls.free(made[::2])
        free = len(made[::2]) if free > 1 else 0
    return calls.trace("filled", bound)


def _ascending(bound: LiveBound, sizes: Sequence[int]) -> Trace:
    largest, calls = bound.classes[0], _Program()
    for item in bound.classes[1:]:
        for _ in range(item.objects):
            calls.malloc(item.most)
    made: list[int] = []
    powers = [size for size in sizes if size == largest.most or size.bit_length() != (size + 8).bit_length()]
    for size in reversed(sizes if len(sizes) * largest.objects <= _MOST_CALLS else powers):
        calls.free(made)
        made = [calls.malloc(size) for _ in range(largest.objects)]
    return calls.trace("ascending", bound)
