"""Lower bounds on the footprint and the accesses of a recipe that serves a trace, from one pass and without a replay.

Footprint: every live object has a block of its own, and the recipe's alignment, headers and least blocks give a least
size of each block in any pool. Accesses: each kind of pool has a least number of accesses for a malloc and a free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heapwright._recipes.kinds.bounds import NEVER
from heapwright._recipes.policy import Structure, structure_of
from heapwright._recipes.pools import kind_of
from heapwright._replay.engine import STRETCH, ReplayProgress, arena_holding, control_bytes
from heapwright._traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

Sizes = NDArray[np.int64]

RemainingAccesses = NDArray[np.uint64]
"""Accesses that a replay makes at least after each `STRETCH` calls, and 0 for its end."""

_PIECE = 1 << 16

_STRUCTURES = 4096
"""Structures whose bounds are kept. No threshold makes a block smaller or a call cheaper than these bounds."""


class LeastFootprints:
    """The least footprints of recipes on some traces."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        """Take the traces."""
        self._calls = _SizedCalls(traces)
        self._of_structure = lru_cache(_STRUCTURES)(self._of)

    def of(self, recipe: Recipe) -> list[int]:
        """Bytes below which no footprint of the recipe on each of the traces can end, if it serves all requests."""
        return self._of_structure(structure_of(recipe))

    def _of(self, structure: Structure) -> list[int]:
        struct = structure.struct()
        live = self._calls.once(_least_blocks(struct, self._calls.sizes), _largest_live)
        fixed, control = int(struct.fixed_end), control_bytes(struct)
        return [arena_holding(struct, max(fixed, control + most)) for most in live]


class LeastAccesses:
    """The least accesses of recipes on some traces, or on their remaining calls."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        """Take the traces."""
        self._calls = _SizedCalls(traces)
        self._of_structure = lru_cache(_STRUCTURES)(self._of)

    def of(self, recipe: Recipe) -> list[RemainingAccesses]:
        """Lower bounds on the recipe's remaining accesses on each of the traces, if it serves all requests.

        The bound of a realloc is 0: some objects stay as they are.
        """
        return self._of_structure(structure_of(recipe))

    def _of(self, structure: Structure) -> list[RemainingAccesses]:
        requests, free = _least_accesses(structure.struct(), self._calls.sizes)
        if structure.recipe.threads == "cached":  # caches of threads have no lower bound
            requests, free = requests * 0, 0
        least = int(requests.min())
        return self._calls.once(requests.astype(np.uint8), partial(_to_come, free=free, least=least), (free, least))


def in_all(to_come: RemainingAccesses, so_far: ReplayProgress | None) -> int:
    """Least accesses of a whole replay with this progress; None of a replay that has not begun."""
    return so_far.accesses + int(to_come[-(-so_far.calls // STRETCH)]) if so_far else int(to_come[0])


Also = tuple[int, ...]

_Found = TypeVar("_Found")


class _SizedCalls:
    """Calls of some traces by the size of their requests; equal work is done once."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.sizes: Sizes = np.unique(np.concatenate([np.unique(_asked(trace)) for trace in traces])).astype(np.int64)
        self._calls = [(trace, places, np.unique(places)) for trace in traces for places in [self._places(trace)]]
        self._found: dict[tuple[bytes, int, Also], Any] = {}

    def _places(self, trace: Trace) -> NDArray[Any]:
        """Index of each call's size among all sizes."""
        places = np.empty(len(trace), np.min_scalar_type(len(self.sizes)))
        for start in range(0, len(trace), _PIECE):  # the search takes 8 bytes a call
            piece = slice(start, start + _PIECE)
            places[piece] = np.searchsorted(self.sizes, _asked(trace)[piece])
        return places

    def once(self, each: NDArray[Any], work: Callable[[Trace, NDArray[Any]], _Found], also: Also = ()) -> list[_Found]:
        """Result of work on each trace, with the value in ``each`` of each call's size; ``also`` is part of its key."""
        return self._kept(-1, each, also, lambda: [self._on(at, each, work, also) for at in range(len(self._calls))])

    def _on(self, at: int, each: NDArray[Any], work: Callable[[Trace, NDArray[Any]], _Found], also: Also) -> _Found:
        trace, places, used = self._calls[at]
        return self._kept(at, each[used], also, lambda: work(trace, each[places]))

    def _kept(self, at: int, each: NDArray[Any], also: Also, work: Callable[[], _Found]) -> _Found:
        """Result of work, cached by a digest of the values, which have thousands of bytes."""
        key = blake2b(each.tobytes(), digest_size=16).digest(), at, also
        if key not in self._found:
            self._found[key] = work()
        result: _Found = self._found[key]
        return result


def _asked(trace: Trace) -> NDArray[Any]:
    """Size of each request; 1 for frees."""
    return np.maximum(trace.size, 1)


def _largest_live(trace: Trace, blocks: Sizes) -> int:
    return trace.largest_live_sum(blocks)


def _to_come(trace: Trace, each: NDArray[np.uint8], free: int, least: int) -> RemainingAccesses:
    """The sum from each `STRETCH`th call on, and 0: of ``each`` call that is a request, of ``free`` for a free.

    Where some request is aligned, and so asks for more than its size, of the ``least`` for all.
    """
    made = np.full(len(trace), least, np.uint8) if trace.align.any() else each
    made[trace.op == FREE] = free
    made[trace.op == REALLOC] = 0
    sums = np.add.reduceat(made, np.arange(0, len(made), STRETCH), dtype=np.uint64) if len(made) else made
    return np.append(np.cumsum(sums[::-1], dtype=np.uint64)[::-1], np.uint64(0))


def _least_accesses(struct: Any, sizes: Sizes) -> tuple[Sizes, int]:
    """Least accesses of requests of these sizes, and of a free, over all pools; 0 for sizes that no pool serves."""
    requests, frees = zip(*(kind_of(pool).least_accesses(pool, sizes) for pool in _pools(struct)), strict=True)
    least = np.minimum.reduce(requests)
    return np.where(least == NEVER, 0, least), min(frees)


def _pools(struct: Any) -> list[Any]:
    return [struct.pools[at] for at in range(struct.pool_count)]


def _least_blocks(struct: Any, sizes: Sizes) -> Sizes:
    """The smallest block in any pool for requests of these sizes; 0 for a size that no pool serves."""
    blocks = [kind_of(pool).least_blocks(pool, sizes) for pool in _pools(struct) if kind_of(pool).owns_blocks]
    least = np.minimum.reduce(blocks)
    return np.where(least == NEVER, 0, least)
