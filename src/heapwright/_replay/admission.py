"""The least memory that admits a share of what a trace asks for: an arena, or how many blocks a pool has and how large.

A heap that refuses a request drops it, and the trace goes on without it: a loss system (Elsayed and Galal, "Building
better memory management for high performance wired/wireless networks: Part 2").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._recipes.geometry import round_up
from heapwright._recipes.policy import BeyondReachError, policy_struct
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._replay.arena_sizes import high_water_mark, smallest_arena
from heapwright._replay.engine import least_arena, run
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

if TYPE_CHECKING:
    from heapwright._replay.metrics import Value

_PROSE = ("name", "year", "source", "about")

LEAST_BLOCK = 16
"""The smallest block that is tried where a pool's size is to be found."""


@dataclass(frozen=True)
class Admission:
    """The least memory in which a heap serves a share of a trace's requests, and of their bytes.

    Attributes:
        trace, heap: their names.
        swept: of a trace that a sweep made, the value of its option; else None.
        share: what was asked for.
        arena_bytes: the arena, control data counted; None where none serves so much, and so is all that follows.
        sizes, counts: bytes of each class of blocks, and how many it has; empty where the heap grows.
        admitted_requests: the share of the requests that is served there.
        admitted_fraction, utilisation: the metrics of these names there.
        recipe: the heap with these sizes and counts, as TOML; of a pool of another size without its name and source.
    """

    trace: str
    heap: str
    swept: float | None
    share: float
    arena_bytes: int | None
    sizes: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    admitted_requests: float | None = None
    admitted_fraction: Value = None
    utilisation: Value = None
    recipe: str | None = None


EvaluationOutcome = tuple[Recipe, int, tuple[int, ...], tuple[int, ...]]
"""A heap, its arena in bytes, and the sizes and counts of its blocks."""


def admit(trace: Trace, recipe: Recipe, share: float) -> Admission:
    """The least memory in which a heap serves so large a share of the requests, and of their bytes.

    Args:
        trace: the calls.
        recipe: the allocator. Where a pool grows, the least arena is bisected. Where its only pool behind quick lists
            has blocks of its own size and number, these are found: of one class the size, too, from `LEAST_BLOCK` to
            the largest request; of several the numbers alone, each class serving that share of what it is asked for.
        share: above 0 and at most 1.

    More memory can refuse what less would have served; the search takes it that it does not. Raises HeapwrightError
    for pools of which neither is known, ParameterError for another share.
    """
    if not 0 < share <= 1:
        raise ParameterError(f"{share}; must be above 0 and at most 1", parameter="admit")
    owners = [at for at, pool in enumerate(recipe.pools) if pool.owns_blocks]
    if not recipe.memory and any(recipe.pools[at].shares_the_rest for at in owners):
        result = _in_arena(trace, recipe, share)
    elif not recipe.memory and len(owners) == 1 and recipe.pools[owners[0]].classes:
        result = _Pool(trace, recipe, owners[0], share).least()
    else:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: no pool of it grows, and none is the only one with counts, so which to "
            "enlarge is not known; give it one such pool, in one memory"
        )
    heap = recipe.name or recipe.hash
    if result is None:
        return Admission(trace.name, heap, None, share, None)
    sized, arena, sizes, counts = result
    metrics = replay(trace, sized, arena=arena)
    served = 1 - int(metrics["failed"] or 0) / max(_requests(trace), 1)
    shares = served, metrics["admitted_fraction"], metrics["utilisation"]
    return Admission(trace.name, heap, None, share, arena, sizes, counts, *shares, sized.to_toml())


def _in_arena(trace: Trace, recipe: Recipe, share: float) -> EvaluationOutcome | None:
    struct = policy_struct(recipe)
    result, ample = run(trace, recipe, struct, None)
    if not _admits(result, trace, share):
        return None
    least = least_arena(struct)

    def serves(size: int) -> bool:
        return size >= least and _admits(run(trace, recipe, struct, size)[0], trace, share)

    guess = high_water_mark(struct, result)
    return recipe, smallest_arena(serves, least, guess, recipe.align, enough=ample), (), ()


def _admits(result: Any, trace: Trace, share: float) -> bool:
    """Whether a run served so large a share of the requests, and of their bytes."""
    refused = result.requested_bytes - result.admitted_bytes
    return bool(result.failed <= (1 - share) * _requests(trace) and refused <= (1 - share) * result.requested_bytes)


def _requests(trace: Trace) -> int:
    return int((trace.op != FREE).sum())


class _Pool:
    """The search for the numbers and the size of the blocks of a recipe's pool."""

    def __init__(self, trace: Trace, recipe: Recipe, at: int, share: float) -> None:
        self._trace, self._recipe, self._at, self._share = trace, recipe, at, share

    def least(self) -> EvaluationOutcome | None:
        """The classes that take the least memory; None where none admits the share."""
        sizes = tuple(round_up(size, self._recipe.align) for size in self._recipe.pools[self._at].classes)
        if len(sizes) > 1:
            return self._of_several(tuple(sorted(sizes)))
        best: EvaluationOutcome | None = None
        for size in self._ladder(sizes[0]):
            count = self._count(self._trace, size, best[1] if best else None)
            result = self._found((size,), (count,)) if count else None
            if result and (best is None or result[1] < best[1]):
                best = result
        return best

    def _ladder(self, own: int) -> Iterator[int]:
        """The pool's own size first; then the largest request, powers of two, and half-way between them."""
        align = self._recipe.align
        top = round_up(max(int(self._trace.size.max(initial=0)), 1), align)
        ladder = {round_up(size, align) for bits in range(4, top.bit_length()) for size in (1 << bits, 3 << bits - 1)}
        yield own
        yield from sorted({top, *(size for size in ladder if LEAST_BLOCK <= size < top)} - {own}, reverse=True)

    def _of_several(self, sizes: tuple[int, ...]) -> EvaluationOutcome | None:
        """Each class serves the share of the objects that it is the smallest for; then more of each, if need be."""
        parts = list(_parts(self._trace, sizes))
        ample = [part.peak_live_objects if part else 1 for part in parts]
        if not self._admits(self._trace, sizes, ample):
            return None
        counts = [(part and self._count(part, size)) or 1 for part, size in zip(parts, sizes, strict=True)]
        while not self._admits(self._trace, sizes, counts):  # what is larger than any class was not theirs
            counts = [min(count + count // 64 + 1, most) for count, most in zip(counts, ample, strict=True)]
        return self._found(sizes, tuple(counts))

    def _count(self, trace: Trace, size: int, below: int | None = None) -> int | None:
        """The least number of blocks of a size that serves the share; None where none, or none in `below` bytes."""
        largest = int(trace.size.max(initial=1))
        try:
            most = self._most(size, trace.peak_live_objects * max(1, -(-largest // size)), below)
            if most < 1 or not self._admits(trace, (size,), (most,)):
                return None
        except ContradictionError:  # blocks too small for a link
            return None
        return smallest_arena(lambda count: count > 0 and self._admits(trace, (size,), (count,)), 1, most, 1)

    def _most(self, size: int, wanted: int, below: int | None) -> int:
        """The most blocks of a size, up to so many, that the recipe reaches, in less than `below` bytes."""

        def fits(count: int) -> bool:
            try:
                memory = self._memory((size,), (count,))
            except BeyondReachError:
                return False
            return below is None or memory < below

        return wanted if fits(wanted) else bisect_left(range(1, wanted), True, key=lambda count: not fits(count))

    def _admits(self, trace: Trace, sizes: Sequence[int], counts: Sequence[int]) -> bool:
        recipe = self._built(sizes, counts)
        return _admits(run(trace, recipe, policy_struct(recipe), None)[0], trace, self._share)

    def _memory(self, sizes: Sequence[int], counts: Sequence[int]) -> int:
        return least_arena(policy_struct(self._built(sizes, counts)))

    def _built(self, sizes: Sequence[int], counts: Sequence[int]) -> Recipe:
        data = {key: value for key, value in self._recipe.to_dict().items() if key not in _PROSE}
        data["pool"][self._at] |= self._recipe.pools[self._at].with_classes(sizes, counts)
        return Recipe.from_dict(data)

    def _found(self, sizes: tuple[int, ...], counts: tuple[int, ...]) -> EvaluationOutcome:
        return self._built(sizes, counts), self._memory(sizes, counts), sizes, counts


def _parts(trace: Trace, sizes: Sequence[int]) -> Iterator[Trace | None]:
    """Trace of the objects that each size class serves, in ascending order of sizes; None for a class without any."""
    objects, count = trace.objects()
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, objects, trace.size)
    classes = np.searchsorted(np.array(sizes), largest)[objects]
    for at in range(len(sizes)):
        calls = classes == at
        columns: dict[str, NDArray[Any]] = {
            "op": trace.op,
            "size": trace.size,
            "ts_us": trace.ts_us,
            "align": trace.align,
            "low": trace.low,
            "id": objects,
        }
        yield Trace.from_columns(**{key: column[calls] for key, column in columns.items()}) if calls.any() else None
