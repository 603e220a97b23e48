"""What caps an arena: objects that stand between holes when it is fullest, and replays without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright.recipes.geometry import round_up
from heapwright.recipes.policy import policy_struct
from heapwright.replay.engine import run
from heapwright.replay.film import BLOCK_TYPE, Frame, Region, holes
from heapwright.replay.smallest import depends_on_arena, footprint
from heapwright.traces.calls import Calls
from heapwright.traces.profile import births_and_deaths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

LONG_SHARE = 0.25
"""An object that is freed is long-lived from this share of the trace's calls on."""

MOST_TRIED = 8
"""Objects beside holes that are left out of a replay, one at a time, to see what an arena would need without them; and
as many picked evenly, to see what comes by chance: without any one object, others go elsewhere, and so on.
"""
MOST_CALLS = 1 << 24
"""Calls that these replays make in all, about: of a long trace fewer objects are tried, but always one."""
SEARCHES = 16
"""Replays that a footprint takes, about, where what goes where depends on the size of the arena."""


@dataclass(frozen=True)
class Elsewhere:
    """What an arena would need with an object somewhere else: static, or in a pool of its own.

    Attributes:
        birth: the call that made the object.
        death: the call that frees it, None if none does.
        bytes: the largest size that it is asked for, rounded up to the recipe's alignment: what it takes elsewhere.
        requested: that size.
        offset: of its block in the arena, when it is fullest.
        hole: bytes of free memory right below it then.
        arena: bytes that the trace without the object needs.
        footprint: bytes that the whole trace needs.
        chance: the most that is saved where an object is left out that was picked without regard to holes.
        picked: how many such objects were tried.
    """

    birth: int
    death: int | None
    bytes: int
    requested: int
    offset: int
    hole: int
    arena: int
    footprint: int
    chance: int = 0
    picked: int = 0

    @property
    def gain(self) -> int:
        """Bytes that are saved in all; negative where more are needed."""
        return self.footprint - self.arena - self.bytes


def is_long(blocks: NDArray[Any], calls: int) -> NDArray[np.bool_]:
    """Which blocks of a frame hold objects that live long, in a trace of so many calls: bool, one a block."""
    lives = blocks["birth"] >= 0
    life = blocks["death"].astype(np.int64) - blocks["birth"]
    long: NDArray[np.bool_] = lives & ((blocks["death"] < 0) | (life >= LONG_SHARE * calls))
    return long


def cap(trace: Trace, recipe: Recipe, frame: Frame, within: Iterable[Region], needed: int) -> Elsewhere | None:
    """The long-lived object whose absence saves most, of those beside the largest holes of a frame.

    Up to `MOST_TRIED` objects are tried, each by a replay of the trace without it, and as many others. Where none saves
    anything it is the one between the most free bytes. `needed`: the footprint of the whole trace. None where no
    long-lived object lies beside a hole, or the heap refuses requests without any of them.
    """
    tries = _tries(trace, recipe)
    beside = _candidates(frame, within, len(trace))[:tries]
    tried = [one for block, below in beside if (one := _without(trace, recipe, block, below, needed))]
    if not tried:
        return None
    best = max(tried, key=lambda one: one.gain)
    best = best if best.gain > 0 else tried[0]
    picked = [
        one for block in _picked(trace, {one.birth for one in tried}, tries)
        if (one := _without(trace, recipe, block, 0, needed))
    ]  # fmt: skip
    return replace(best, chance=max([0, *(one.gain for one in picked)]), picked=len(picked))


def _tries(trace: Trace, recipe: Recipe) -> int:
    replays = MOST_CALLS // (2 * len(trace) * (SEARCHES if depends_on_arena(recipe) else 1))
    return min(max(replays, 1), MOST_TRIED)


def _picked(trace: Trace, but: set[int], count: int) -> NDArray[Any]:
    """Objects spread evenly over the births of a trace, `but` those born by some calls, as blocks."""
    birth, death = births_and_deaths(trace)
    at = np.linspace(0, len(birth), count, endpoint=False).astype(np.intp) + len(birth) // (2 * count)
    blocks = np.zeros(count, BLOCK_TYPE)
    blocks["birth"], blocks["death"] = birth[at], death[at]
    return blocks[~np.isin(blocks["birth"], list(but))]


def _candidates(frame: Frame, within: Iterable[Region], calls: int) -> list[tuple[Any, int]]:
    """Long-lived blocks beside holes, with the bytes free right below: those between the most free bytes first."""
    blocks = frame.blocks[is_long(frame.blocks, calls)]
    free = holes(frame, within)
    starts = {int(hole["offset"]): int(hole["size"]) for hole in free}
    ends = {int(hole["offset"] + hole["size"]): int(hole["size"]) for hole in free}
    found = []
    for block in blocks:
        below = ends.get(int(block["offset"]), 0)
        above = starts.get(int(block["offset"] + block["size"]), 0)
        if below or above:
            found.append((below + above, block, below))
    found.sort(key=lambda one: (-one[0], int(one[1]["offset"])))
    return [(block, below) for _, block, below in found]


@dataclass(frozen=True)
class _Part:
    """A trace without an object, as far as replays need it."""

    name: str
    calls: Calls

    def __len__(self) -> int:
        return len(self.calls.op)


def _without(trace: Trace, recipe: Recipe, block: Any, below: int, needed: int) -> Elsewhere | None:
    rows = calls_of(trace, int(block["birth"]), int(block["death"]))
    rest = _Part(trace.name, trace.calls.without(rows))
    if not len(rest):
        return None
    struct = policy_struct(recipe)
    found, size = run(rest, recipe, struct, None)
    if found.failed:
        return None
    requested = int(trace.size[rows][trace.op[rows] != lib.HW_OP_FREE].max())
    return Elsewhere(
        birth=int(block["birth"]),
        death=int(block["death"]) if block["death"] >= 0 else None,
        bytes=round_up(max(requested, 1), recipe.align),
        requested=requested,
        offset=int(block["offset"]),
        hole=below,
        arena=footprint(rest, recipe, struct, found, size),
        footprint=needed,
    )


def calls_of(trace: Trace, birth: int, death: int) -> NDArray[np.intp]:
    """The calls of the object that lives from the call `birth` to `death`, -1: to the end."""
    end = death + 1 if death >= 0 else len(trace)
    slot = trace.calls.slot[birth]
    return np.flatnonzero(trace.calls.slot[birth:end] == slot) + birth
