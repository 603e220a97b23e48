"""The least footprint: what no arena of a recipe that serves a trace can stay below, from one pass over the trace.

Every live object has a block of its own, and no block for a request is smaller than what the recipe's alignment,
headers and least blocks say, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright.recipes.policy import policy_struct
from heapwright.replay.engine import arena_holding, control_bytes

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


def _least_blocks(struct: Any, sizes: Sizes) -> Sizes:
    """The smallest block that any pool has for requests of these sizes; 0 for one that none can serve."""
    pools = [struct.pools[at] for at in range(struct.pool_count)]
    blocks = [_BLOCKS[pool.kind](pool, sizes) for pool in pools if pool.kind in _BLOCKS]
    least = np.minimum.reduce(blocks)
    return np.where(least == _NEVER, 0, least)


def _rounded(sizes: Sizes, unit: int) -> Sizes:
    return -(-sizes // unit) * unit


def _powers(sizes: Sizes) -> Sizes:
    return np.left_shift(1, np.ceil(np.log2(sizes)).astype(np.int64))


def _general(pool: Any, sizes: Sizes) -> Sizes:
    general = pool.general
    blocks = np.maximum(_rounded(sizes + general.overhead, 1 << general.unit_shift), general.min_block)
    return _powers(blocks) if general.powers else blocks


def _fixed(pool: Any, sizes: Sizes) -> Sizes:
    fixed = pool.fixed
    classes = np.sort(np.array([fixed.sizes[at] for at in range(fixed.count)], np.int64))
    at = np.searchsorted(classes, sizes)
    strides = np.append(_rounded(classes + fixed.header + fixed.trailer, fixed.align), np.int64(_NEVER))
    return strides[at]


def _buddy(pool: Any, sizes: Sizes) -> Sizes:
    return _powers(np.maximum(sizes + pool.buddy.header + pool.buddy.trailer, 1 << pool.buddy.min_block_log2))


def _partition(pool: Any, sizes: Sizes) -> Sizes:
    size, descriptor, trailer = (int(getattr(pool.partition, key)) for key in ("partition", "descriptor", "trailer"))
    return -(-(sizes + trailer) // size) * (size + descriptor)


def _compact(pool: Any, sizes: Sizes) -> Sizes:
    beside: int = pool.compact.header + (pool.compact.handle if pool.compact.in_arena else 0)
    return sizes + beside


_BLOCKS: dict[int, Callable[[Any, Sizes], Sizes]] = {
    lib.HW_GENERAL: _general,
    lib.HW_FIXED: _fixed,
    lib.HW_BUDDY: _buddy,
    lib.HW_PARTITION: _partition,
    lib.HW_COMPACT: _compact,
}
