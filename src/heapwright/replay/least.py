"""What a recipe that serves a trace needs at least, known without a replay, from one pass over the trace.

The footprint: every live object has a block of its own, and no block for a request is smaller than what the recipe's
alignment, headers and least blocks say, wherever it lies. The accesses: no pool serves or frees with fewer than its
kind says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright.recipes.policy import policy_struct
from heapwright.recipes.pools import kind_of
from heapwright.replay.engine import arena_holding, control_bytes
from heapwright.traces.validation import FREE, REALLOC

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

Sizes = NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max

_PIECE = 1 << 16


class LeastFootprints:
    """The least footprint of recipes on one trace; recipes whose blocks have the same sizes share a pass over it."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace whose recipes will be asked for."""
        self._trace = trace
        asked = np.maximum(trace.size, 1)
        self._sizes: Sizes = np.unique(asked).astype(np.int64)
        self._which = np.empty(len(trace), np.min_scalar_type(len(self._sizes)))
        for start in range(0, len(trace), _PIECE):  # what finds them takes 8 bytes a call
            piece = slice(start, start + _PIECE)
            self._which[piece] = np.searchsorted(self._sizes, asked[piece])
        self._live: dict[bytes, int] = {}

    def of(self, recipe: Recipe) -> int:
        """Bytes below which no footprint of the recipe on this trace can end, if it serves all requests."""
        struct = policy_struct(recipe)
        blocks = _least_blocks(struct, self._sizes)
        key = blocks.tobytes()
        if key not in self._live:
            self._live[key] = self._trace.largest_live_sum(blocks[self._which])
        return arena_holding(struct, max(int(struct.fixed_end), control_bytes(struct) + self._live[key]))


_STEP = 1024
"""Calls between two of those whose number of requests and frees still to come is kept."""


class LeastAccesses:
    """The least accesses of recipes on one trace, or on what is left of it."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace whose recipes will be asked for."""
        frees = trace.op == FREE
        self._to_come = np.stack([_to_come(~frees & (trace.op != REALLOC)), _to_come(frees)], axis=1)

    def of(self, recipe: Recipe, calls: int = 0) -> int:
        """Accesses that a heap of the recipe makes at least after so many calls, if it serves all requests; O(1).

        Of objects that are resized nothing is known: some stay as they are.
        """
        return int(self._to_come[min(-(-calls // _STEP), len(self._to_come) - 1)] @ _least_accesses(recipe))


@lru_cache(maxsize=64)  # asked again and again while the recipe is replayed
def _least_accesses(recipe: Recipe) -> tuple[int, int]:
    """Those of a request and of a free, whichever pool serves; nothing is known of caches of threads."""
    if recipe.threads == "cached":
        return 0, 0
    requests, frees = zip(*(kind_of(pool).least_accesses(pool) for pool in _pools(policy_struct(recipe))), strict=True)
    return min(requests), min(frees)


def _to_come(calls: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many there are from each `_STEP`th call on, int64[n], and 0."""
    each = np.add.reduceat(calls, np.arange(0, len(calls), _STEP), dtype=np.int64) if len(calls) else calls[:0]
    return np.append(np.cumsum(each[::-1])[::-1], 0)


def _pools(struct: Any) -> list[Any]:
    return [struct.pools[at] for at in range(struct.pool_count)]


def _least_blocks(struct: Any, sizes: Sizes) -> Sizes:
    """The smallest block that any pool has for requests of these sizes; 0 for one that none can serve."""
    blocks = [kind_of(pool).least_blocks(pool, sizes) for pool in _pools(struct) if kind_of(pool).owns_blocks]
    least = np.minimum.reduce(blocks)
    return np.where(least == _NEVER, 0, least)
