"""Bounds of a general pool: the most accesses of its calls, the arena that theorems say is enough, and thresholds.

A threshold is compared with sizes, and decides nothing else: from which remainder a block is split, from which size on
it merges, and up to which request the last remainder serves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from heapwright._recipes.geometry import round_up
from heapwright._recipes.kinds.bounds import (
    AccessBounds,
    BlockLoad,
    Thresholds,
    UnboundedError,
    WorstCase,
    powers,
    rounded,
    width,
)
from heapwright._recipes.kinds.general.keys import GeneralKeys

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

_COVERED = 6
"""More loads for what is covered at both ends, which lists above ask for up to three times before the heap grows."""


class _Steps:
    """Accesses of the core's functions on a general pool, at most."""

    def __init__(self, pool: GeneralKeys, g: Mapping[str, Any]) -> None:
        self.pool, self.g = pool, g
        self.word, link = width(g["word"]), width(g["links"]["field"])
        self.a_link = link
        double, tails = pool.free_list == "double", "fifo" in (pool.order, pool.large_order)
        roves = 2 if pool.fit == "next" else 0
        self.mark = 0 if not g["bins"] else 4 if g["bins"] > 32 else 2
        self.linked = (4 if double else 2) * link
        self.insert = self.mark + 3 * link + self.linked + 1
        self.unlink = (3 if double else 2) * link + (2 * link if tails else 0) + roves
        self.unlink += (self.mark if g["bin_unmark"] else 0) + (8 * link if pool.search_from == "tried" else 0)
        tags = self.word if g["boundary_tags"] else 0
        self.write_free, self.mark_used = self.word + tags, 2 * tags
        self.clear = self.word if g["tag_in_header"] else 0
        self.pad = self.word if g["pad"] else 0
        self.reach = 3 if pool.top == "list" else 0
        self.victim = bool(pool.victim_up_to)
        self.far = pool.grows_down

    def take(self) -> int:
        """To hand out a free block, whole or split; the previous last remainder is filed."""
        place = 2 * self.a_link + self.linked + self.unlink + self.insert
        rest = 4 + self.write_free + 2 * self.word if self.victim else 1 + self.write_free
        return self.reach + place + self.word + self.clear + self.mark_used + rest

    def reuse(self) -> int:
        return (5 if self.far else 3) + self.word + self.clear

    def walk(self) -> int:
        """To pass as many blocks of a list as a search may."""
        step = self.word + self.a_link
        if self.pool.search_from == "tried":
            step += self.unlink + 3 * self.a_link + self.linked + 1
        return 2 * self.a_link + self.pool.search_most * step

    def search(self) -> int:
        """To look for a block, in all bins where these are marked for longer than they hold any."""
        g, link = self.g, self.a_link
        if not g["bins"]:
            return (2 if self.pool.fit == "next" else 1) * self.walk() + 2 + 2 * link
        head = 2 * link + self.word
        above = 3 + head
        if not g["bin_unmark"]:
            above += g["bins"] * (1 + link + self.mark) + -(-g["bins"] // 32) * 2
        if g["bin_round_up"]:
            return above
        return link + self.word + 2 * self.walk() + above

    def small(self) -> int:
        """To look at the bins of a small request, and at the last remainder."""
        if not self.victim:
            return 0
        close = 2 + self.pool.close_bins * (self.a_link + self.mark) + 2 * self.a_link + self.word
        return 2 * self.a_link + (close if self.pool.close_bins else 0) + 2 * (3 + self.word)

    def release(self) -> int:
        word, merged = self.word, self.a_link + self.unlink
        result = word + self.pad + word + self.write_free + self.insert + 2
        if self.pool.coalesce == "never":
            return result
        result += 1 + word + merged + (4 if self.pool.search_from != "start" else 0)
        if self.pool.coalesce == "immediate":
            result += word + merged
        if self.far:
            result += 1 + self.mark_used  # where the first block begins, and the tag of the block behind it
        return result + (self.mark_used + 10 if self.victim else 1)

    def grow(self) -> int:
        grown = (6 + _COVERED if self.far else 5) + self.word + self.clear
        if self.pool.grow_least:
            grown += self.release() + self.search() + self.take()
        return grown


def worst_calls(pool: GeneralKeys, g: Mapping[str, Any]) -> AccessBounds:
    """Most accesses of its calls. Raises UnboundedError where nothing bounds them."""
    _require_bound(pool, g)
    steps = _Steps(pool, g)
    malloc = steps.small() + steps.search() + max(steps.take(), steps.reuse(), 2 + steps.grow()) + steps.pad
    return AccessBounds(malloc, steps.release())


def _require_bound(pool: GeneralKeys, g: Mapping[str, Any]) -> None:
    """Raise UnboundedError where a call may pass any number of blocks."""
    ordered = {pool.order, pool.large_order} & {"address", "size"}
    merges = pool.coalesce in ("immediate", "forward")
    in_order = "/".join(sorted(map(str, ordered)))
    untagged = pool.coalesce == "immediate" and not pool.boundary_tags
    reasons = (
        (pool.free_list == "implicit", "a search walks all blocks"),
        (pool.free_list == "tree", "a tree of free blocks may be as deep as it has blocks"),
        (pool.coalesce == "deferred", "merging passes all blocks"),
        (pool.coalesce in ("lazy", "sweep"), "a search merges any number of blocks that it passes"),
        (untagged, "without boundary tags a free walks to its neighbours"),
        (pool.unsorted, "a search files a queue of any length"),
        (bool(ordered), f"a freed block walks to its place in a list in order of {in_order}"),
        (pool.free_list == "single" and merges, "what merges is looked for in its list from the head on"),
        (pool.top == "extend", "the last free block is looked for through the whole list"),
        (pool.search_percent < 100 and pool.fit == "best", "a search looks at a share of all free blocks"),
        (not pool.rounds_up and not pool.search_most, f"{pool.fit} fit walks a list of free blocks of any length"),
    )
    for holds, reason in reasons:
        if holds:
            raise UnboundedError(reason)


def passes_none_by(pool: GeneralKeys, general: Any, largest: int) -> bool:
    """Whether a request fails only if no free block would do, but for some of its own bin, and free neighbours
    are always one block; `largest` is the largest block of any request.
    """
    own_bin_alone = pool.bins != "none" and (not general.bin_last or largest <= _first_of_last_bin(general))
    return (
        not pool.region
        and 1 << general.unit_shift >= general.align
        and pool.coalesce == "immediate"
        and general.coalesce_from <= general.min_block
        and pool.split != "never"
        and pool.fit != "exact"
        and general.search_percent == 100
        and (not pool.search_most or own_bin_alone)
        and not pool.grow_least
    )


def _first_of_last_bin(general: Any) -> int:
    """The smallest block, in bytes, of the last bin: `bin_of` of csrc/general/freelist.h the other way round."""
    steps = int(general.bin_steps_log2)
    octaves, step = divmod(int(general.bins) - 1 - int(general.bin_linear_bins), 1 << steps)
    return int(general.bin_less) + step_of(int(general.bin_octave) + octaves, step, steps)


def step_of(octave: int, step: int, steps_log2: int) -> int:
    """Where a step of an octave begins, beyond `bin_less`, where bins divide each into 2^`steps_log2`."""
    return (1 << octave) + (step << octave >> steps_log2)


def filled(blocks: Sizes, general: Any) -> Sizes:
    """Blocks rounded up to the smallest of a bin: `bin_filled` of csrc/general/freelist.h."""
    import numpy as np

    keys = np.maximum(blocks - general.bin_less, 1)
    steps = np.maximum(powers(keys + 1) >> 1 + general.bin_steps_log2, 1)
    unit = 1 << general.unit_shift
    return np.where(keys < general.bin_linear, blocks, rounded(rounded(keys, steps) + general.bin_less, unit))


def worst_cases(pool: GeneralKeys, general: Any, load: BlockLoad, *, placed: bool) -> Iterator[WorstCase]:
    """Yield the arenas, beyond control data, that theorems say are enough; `general` is the pool's C struct.

    `placed`: no list and no realloc keeps a block from where the strategy puts it, which all theorems but that on any
    fit ask for.
    """
    unit = 1 << general.unit_shift
    unsplit = int(general.split_least) - unit  # the most that a block has beyond its request
    slack = unit + int(general.overhead)  # where blocks begin, and a word behind the last one
    result = _least_found(pool, general, load)
    # Any fit: when memory grows for a block, every hole is too small for it, and lies before another live block: one
    # below the top is part of the memory above, unless that is never merged or is a free block like others. Lists in
    # front of the pool are empty by then. The last remainder may cut one hole in three.
    ends = pool.top in _TOP_IS_APART
    holes = (load.others + (2 if pool.victim_up_to else 0) + ends) * (result - unit)
    yield WorstCase(load.live + load.others * unsplit + holes + slack, "any fit")
    if not placed or pool.top == "extend" or pool.search_most or pool.victim_up_to or pool.unsorted:
        return
    if _is_first_fit(pool):
        live = load.live + load.live // load.smallest * unsplit
        harmonic = sum(1 / size for size in range(1, (load.largest + unsplit) // unit + 1))
        yield WorstCase(math.ceil(harmonic * live / math.log(2)) + slack, "first fit: Robson 1977; Knuth 2.5, ex. 43")
    if pool.bins == "half-fit" and general.powers and unsplit < load.smallest:
        octaves = (load.largest // load.smallest - 1).bit_length()
        yield WorstCase(2 * load.live * (1 + octaves) + slack, "half fit: Ogasawara 1995; o1heap")


def _least_found(pool: GeneralKeys, general: Any, load: BlockLoad) -> int:
    """Bytes of a free block from which on a search for the largest block finds it among any other free blocks."""
    import numpy as np

    unit = 1 << int(general.unit_shift)
    size = round_up(load.largest, int(unit))
    if pool.rounds_up:  # it starts at the first bin of which all blocks are large enough
        return int(filled(np.array([size]), general)[0])
    most_free = load.others + bool(pool.victim_up_to) + (pool.top in _TOP_IS_APART)
    if not pool.search_most or most_free <= pool.search_most:
        return size
    return size + max(unit, (1 << size.bit_length() - 1) // (pool.bins_per_octave or 1))


_TOP_IS_APART = ("bump", "extend", "list")
"""Tops with which a free block may lie just below the memory that was never used, or be it."""


def _is_first_fit(pool: GeneralKeys) -> bool:
    """Whether the lowest hole that is large enough is taken, from its start, memory never used among them."""
    by_address = pool.free_list in ("implicit", "tree") or pool.order == "address"
    return (
        by_address
        and pool.fit == "first"
        and pool.bins == "none"
        and pool.search_from == "start"
        and pool.split_from == "head"
        and pool.top != "bump"
    )


# ---- thresholds

NEVER = (1 << 32) - 1
"""The threshold of a pool that never splits: no remainder reaches it."""


def least_thresholds(pool: GeneralKeys) -> dict[str, Any]:
    """The keys of a canonical pool with each threshold that it has at its least."""
    split = "never" if pool.split == "never" else "always"
    return {"split": split, "coalesce_from": 0, "victim_up_to": int(pool.victim_up_to > 0)}


def put_thresholds(pool: GeneralKeys, laid_out: Any) -> None:
    """Set a canonical pool's thresholds in the C struct (`struct hw_pool`) of one that differs in nothing else."""
    general = laid_out.general
    smallest = general.min_block
    general.split_least = max(smallest, pool.split) if isinstance(pool.split, int) else smallest
    general.coalesce_from, general.victim_up_to = pool.coalesce_from, pool.victim_up_to


def take_thresholds(laid_out: Any, checks: bool) -> Thresholds:
    """See `BasePool.take_thresholds`."""
    general = laid_out.general
    split = general.split_least if general.split or general.victim_up_to else NEVER
    merge, merges_all = general.coalesce_from, general.coalesce_from <= general.min_block
    general.coalesce_from = merges_all
    if not general.victim_up_to:
        general.split = 0
    if not general.close_bins:  # else it also decides which bins are adjacent
        general.split_least = 0
    small = None
    if not checks and _is_cut_for_requests(laid_out):
        small = int(laid_out.fast_max)
        laid_out.fast_max, general.victim_up_to = 0, 1
    return Thresholds(int(split), 1 if merges_all else int(merge), small)


def _is_cut_for_requests(laid_out: Any) -> bool:
    """Whether the threshold of the last remainder is only compared with requests, and with all in the same way."""
    general = laid_out.general
    if not general.victim_up_to or general.powers:
        return False
    block = max(round_up(general.victim_up_to + general.overhead, 1 << general.unit_shift), general.min_block)
    return bool(laid_out.fast_max == block - general.overhead)
