"""Bounds: what calls come to at most, in accesses of a pool's malloc and free, and in bytes of the arena."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Sizes = NDArray[np.int64]

OWNED = 2
"""Accesses to ask a pool whether it owns a block."""


class UnboundedError(Exception):
    """Why there is no bound."""


class AccessBounds(NamedTuple):
    """Upper bounds on accesses of a pool's calls: to find a block or grow, and to release one."""

    malloc: int
    free: int


def width(field: Mapping[str, Any]) -> int:
    """Accesses of a number: one, or one a byte."""
    return 1 if field["natural"] else int(field["bytes"])


class WorstCase(NamedTuple):
    """An arena in bytes that is enough for any program like the trace, and the theorem that says so."""

    bytes: int
    theorem: str


class BlockLoad(NamedTuple):
    """Load on a heap in bytes of its blocks: live at once, the largest block, the smallest.

    ``most_objects``: most live blocks at once; None is as many as the bytes allow.
    """

    live: int
    largest: int
    smallest: int
    most_objects: int | None = None

    @property
    def others(self) -> int:
        """Most other blocks that are live when one is requested."""
        fitting = (self.live - self.smallest) // self.smallest
        return fitting if self.most_objects is None else min(fitting, self.most_objects - 1)


class Thresholds(NamedTuple):
    """What of a pool's policy is only ever compared with sizes, in bytes; see `heapwright._explore.result_cache`.

    `small` is the largest request that the last remainder serves; None if there is none, or if it decides more.
    """

    split: int
    merge: int
    small: int | None


NEVER = (1 << 63) - 1
"""Stands for what a pool serves none with, among blocks and accesses by the sizes of requests: the largest int64."""


def rounded(sizes: Sizes, unit: int) -> Sizes:
    """The smallest multiples of `unit` that are at least these sizes."""
    return -(-sizes // unit) * unit


def powers(sizes: Sizes) -> Sizes:
    """The smallest powers of two that are at least these sizes, 1 and more."""
    import numpy as np

    return np.left_shift(1, np.ceil(np.log2(sizes)).astype(np.int64))
