"""Peak blockers: long-lived objects between holes when the arena is fullest, and replays without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._recipes.geometry import round_up
from heapwright._recipes.policy import policy_struct
from heapwright._replay.arena_sizes import depends_on_arena, footprint_where
from heapwright._replay.engine import arena_bytes_of, least_arena
from heapwright._replay.snapshots import Frame, Region, filming, holes
from heapwright._traces.validation import CALLOC, FREE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

LONG_SHARE = 0.25
"""An object that is freed is long-lived from this share of the trace's calls on."""

MOST_TRIED = 8
"""Objects next to holes that are left out of a replay, one at a time, to measure the arena without them; the same
number of evenly picked objects measures chance: without any one object, others are placed differently.
"""
MOST_CALLS = 1 << 24
"""Calls of all these replays, about: of a long trace fewer objects are tested, but always one."""
SEARCHES = 16
"""Replays for a footprint, about, if placement depends on the arena's size."""


@dataclass(frozen=True)
class Relocation:
    """Arena size with one object relocated: to static memory, or to a pool of its own.

    Attributes:
        birth: the call that made the object.
        death: the call that frees it, None if none does.
        bytes: its largest size, rounded up to the recipe's alignment: the memory that it takes elsewhere.
        requested: its largest size.
        arena: bytes that the trace without the object needs.
        footprint: bytes that the whole trace needs.
        hole: bytes of free memory right below it when the arena is fullest.
        tried: number of objects next to holes that were left out in turn, including this one.
        chance: the most that is saved without an object that was picked without regard to holes.
        picked: number of such objects.
    """

    birth: int
    death: int | None
    bytes: int
    requested: int
    arena: int
    footprint: int
    hole: int = 0
    tried: int = 1
    chance: int = 0
    picked: int = 0

    @property
    def gain(self) -> int:
        """Bytes that are saved in all; negative where more are needed."""
        return self.footprint - self.arena - self.bytes


_SLICE = 1 << 18
"""Calls taken at a time."""


def is_long(blocks: NDArray[Any], calls: int) -> NDArray[np.bool_]:
    """Mask of the blocks of a frame that hold long-lived objects, in a trace of this number of calls."""
    lives = blocks["birth"] >= 0
    life = blocks["death"].astype(np.int64) - blocks["birth"]
    long: NDArray[np.bool_] = lives & ((blocks["death"] < 0) | (life >= LONG_SHARE * calls))
    return long


def cap(trace: Trace, recipe: Recipe, frame: Frame, within: Iterable[Region], needed: int) -> Relocation | None:
    """The long-lived object whose absence saves most, of those next to the largest holes of a frame.

    Up to `MOST_TRIED` objects are tested, each by a replay of the trace without it, and the same number of others. If
    none saves anything, it is the object between the most free bytes. `needed`: the footprint of the whole trace. None
    if no long-lived object lies next to a hole, or requests fail in each of these replays.
    """
    tries = _tries(trace, recipe)
    tried = []
    for block, hole in _candidates(frame, within, len(trace))[:tries]:
        item = _without(trace, recipe, (int(block["birth"]), int(block["death"])), needed)
        tried += [replace(item, hole=hole)] if item else []
    if not tried:
        return None
    best = max(tried, key=lambda item: item.gain)
    best = best if best.gain > 0 else tried[0]
    others = [_without(trace, recipe, lives, needed) for lives in _picked(trace, {item.birth for item in tried}, tries)]
    gains = [other.gain for other in others if other]
    return replace(best, tried=len(tried), chance=max(gains, default=0), picked=len(gains))


def _tries(trace: Trace, recipe: Recipe) -> int:
    replays = MOST_CALLS // (2 * len(trace) * (SEARCHES if depends_on_arena(recipe) else 1))
    return min(max(replays, 1), MOST_TRIED)


def _picked(trace: Trace, but: set[int], count: int) -> list[tuple[int, int]]:
    """Allocating and freeing calls of objects spread evenly over a trace, without those of the calls in `but`."""
    death = trace.calls.deaths()
    births = (_next_birth(trace, at) for at in np.linspace(0, len(trace), count, endpoint=False).astype(int).tolist())
    return [(birth, int(death[birth])) for birth in dict.fromkeys(births) if birth is not None and birth not in but]


def _next_birth(trace: Trace, at: int) -> int | None:
    """The first call from `at` on that allocates an object; None if none does."""
    for start in range(at, len(trace), _SLICE):
        births = np.flatnonzero(trace.op[start : start + _SLICE] <= CALLOC)
        if len(births):
            return start + int(births[0])
    return None


def _candidates(frame: Frame, within: Iterable[Region], calls: int) -> list[tuple[Any, int]]:
    """Long-lived blocks next to holes, with the free bytes right below; blocks between the most free bytes first."""
    blocks = frame.blocks[is_long(frame.blocks, calls)]
    free = holes(frame.blocks, frame.extent, within)
    starts = {int(hole["offset"]): int(hole["size"]) for hole in free}
    ends = {int(hole["offset"] + hole["size"]): int(hole["size"]) for hole in free}
    results = []
    for block in blocks:
        below = ends.get(int(block["offset"]), 0)
        above = starts.get(int(block["offset"] + block["size"]), 0)
        if below or above:
            results.append((below + above, block, below))
    results.sort(key=lambda item: (-item[0], int(item[1]["offset"])))
    return [(block, below) for _, block, below in results]


def _without(trace: Trace, recipe: Recipe, lives: tuple[int, int], needed: int) -> Relocation | None:
    """`lives`: the calls that allocate and free the object that is left out."""
    struct = policy_struct(recipe)
    ample = arena_bytes_of(struct, None)

    def replayed(size: int) -> Any:
        with filming(trace, recipe, size, lives) as film:
            film.go_on(len(trace) - 1)
        return film.found

    def serves(size: int) -> bool:
        return size >= least_arena(struct) and not replayed(size).failed

    result = replayed(ample)
    if result.failed:
        return None
    birth, death = lives
    requested = _largest_size(trace, birth, death)
    return Relocation(
        birth=birth,
        death=death if death >= 0 else None,
        bytes=round_up(max(requested, 1), recipe.align),
        requested=requested,
        arena=footprint_where(serves, recipe, struct, result, ample),
        footprint=needed,
    )


def _largest_size(trace: Trace, birth: int, death: int) -> int:
    """The largest size of the object allocated by call `birth` and freed by call `death` (-1: never)."""
    largest = 0
    for start in range(birth, death + 1 if death >= 0 else len(trace), _SLICE):
        part = slice(start, min(start + _SLICE, death + 1 if death >= 0 else len(trace)))
        mine = (trace.calls.slot[part] == trace.calls.slot[birth]) & (trace.op[part] != FREE)
        largest = max(largest, int(trace.size[part][mine].max(initial=0)))
    return largest
