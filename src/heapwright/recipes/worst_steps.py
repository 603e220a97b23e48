"""Worst steps: the most metadata accesses that any malloc and any free of a recipe takes, by formula, or why none is.

What is counted is what a replay counts: loads and stores of at most 4 bytes. The bound holds for any trace of malloc,
calloc and free at the recipe's own alignment, refused requests included. A realloc that moves is a malloc and a free,
and copies; a larger alignment cuts a block at both ends. Each function below sums the accesses of the function of the
core that it is named after, each case at its dearest; what excludes one another in few programs is added up, so that a
bound lies above what any trace shows: docs/metrics.md says by how much.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from heapwright.recipes.policy import policy
from heapwright.recipes.pools import ROUNDED_UP, Buddy, Fixed, General, Owner, Partition, Quick
from heapwright.recipes.recipe import Recipe


class WorstSteps(NamedTuple):
    """The most accesses of a malloc and of a free; both None where nothing bounds them, and then the reason."""

    malloc: int | None
    free: int | None
    reason: str

    @property
    def most(self) -> int | None:
        """Of any malloc or free."""
        return None if self.malloc is None or self.free is None else max(self.malloc, self.free)

    def short(self) -> str:
        """What a column of a table says."""
        return "unbounded" if self.most is None else f"{self.most:,}"

    def sentence(self) -> str:
        """What headers and reports say."""
        if self.most is None:
            return f"a call is unbounded: {self.reason}"
        return f"a malloc or free takes at most {self.most:,} accesses"


class _UnboundedError(Exception):
    """Why there is no bound."""


class _Calls(NamedTuple):
    """Accesses of a pool's calls at most: to find a block or grow, and to release one."""

    malloc: int
    free: int


_OWNED = 2
"""Accesses to ask a pool whether it owns a block."""
_COUNTED = 24
"""Accesses of the heap's own counters in a call."""
_REFUSED = 2


@lru_cache(maxsize=1024)  # a recipe is replayed on one trace after another
def worst_steps(recipe: Recipe) -> WorstSteps:
    """The most metadata accesses that any malloc, and any free, of the recipe takes; see the module."""
    try:
        calls = _heap(recipe.canonical())
    except _UnboundedError as error:
        return WorstSteps(None, None, str(error))
    return WorstSteps(calls.malloc, calls.free, "")


def _heap(recipe: Recipe) -> _Calls:
    if recipe.checks != "none":
        raise _UnboundedError(f'what the checks of level "{recipe.checks}" look at has no bound by formula')
    if recipe.threads == "cached":
        raise _UnboundedError("a thread's cache is filled and emptied many blocks at a time")
    if recipe.memory:
        raise _UnboundedError("several memories are asked in turn, and have no bound by formula")
    values = policy(recipe)["pools"]
    owners = [
        _owner(pool, laid_out)
        for pool, laid_out in zip(recipe.pools, values, strict=True)
        if not isinstance(pool, Quick)
    ]
    release = _OWNED * len(owners) + max(calls.free for calls in owners)
    lists = [laid_out["quick"] for laid_out in values if "quick" in laid_out]
    hit = sum(_pop(quick) for quick in lists)
    flush = sum(_flush(quick, quick["count"], release) for quick in lists)
    flush_one = max((_flush(quick, 1, release) for quick in lists if _over_limit(recipe, quick)), default=0)
    passes = 2 if lists else 1  # once more when the lists have been emptied, because it would be refused
    found = sum(calls.malloc for calls in owners) * (2 if lists else 1)
    malloc = passes * (hit + found + 2 * flush) + _REFUSED
    free = release + sum(_push(quick) for quick in lists) + flush_one + (_capacity(values) if lists else 0)
    counted = _COUNTED if recipe.counters else 0
    return _Calls(malloc + counted, free + counted)


def _owner(pool: Owner, laid_out: dict[str, Any]) -> _Calls:
    if isinstance(pool, General):
        return _general(pool, laid_out["general"])
    if isinstance(pool, Fixed):
        return _fixed(pool, laid_out["fixed"])
    if isinstance(pool, Buddy):
        return _buddy(pool, laid_out["buddy"])
    if isinstance(pool, Partition):
        return _partition(pool, laid_out["partition"])
    raise _UnboundedError("closing holes moves any number of objects")


def _width(field: dict[str, int]) -> int:
    """Accesses of a number: one, or one a byte."""
    return 1 if field["natural"] else field["bytes"]


# ---- quick lists


def _link(values: dict[str, Any]) -> int:
    return _width(values["links"]["field"])


def _account(quick: dict[str, Any]) -> int:
    limited = quick["limit_blocks"] or quick["limit_bytes"]
    return (2 if limited else 0) + (2 if quick["flush_share"] else 0)


def _pop(quick: dict[str, Any]) -> int:
    return 3 * _link(quick) + _account(quick)


def _push(quick: dict[str, Any]) -> int:
    return 1 + 3 * _link(quick) + _account(quick)


def _over_limit(recipe: Recipe, quick: dict[str, Any]) -> bool:
    return any(isinstance(pool, Quick) and pool.flush == "over-limit" for pool in recipe.pools) and bool(quick)


def _flush(quick: dict[str, Any], lists: int, release: int) -> int:
    """Accesses to empty so many lists, and to see that they are."""
    if quick["limit_blocks"]:
        kept = quick["limit_blocks"]
    elif quick["limit_bytes"]:
        kept = quick["limit_bytes"] // max(1, min(quick["sizes"], default=quick["block_least"] - quick["block_header"]))
    else:
        raise _UnboundedError("a flush empties lists of any length, at the latest before a request is refused")
    return 6 + int(lists) * (int(kept) * (_pop(quick) + release) + _link(quick))


def _capacity(values: list[dict[str, Any]]) -> int:
    """Accesses to tell what a block's list is."""
    return 1 + max(_width(pool[kind][field]) for pool in values for kind, field in _NAMED if kind in pool)


_NAMED = (("general", "word"), ("fixed", "word"), ("buddy", "word"), ("partition", "field"))


# ---- blocks of any size


class _Steps:
    """Accesses of the core's functions on a general pool, at most."""

    def __init__(self, pool: General, g: dict[str, Any]) -> None:
        self.pool, self.g = pool, g
        self.word, link = _width(g["word"]), _width(g["links"]["field"])
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

    def take(self) -> int:
        """To hand out a block that was found, whole or split; beside a victim the old one is filed."""
        place = 2 * self.a_link + self.linked + self.unlink + self.insert
        rest = 4 + self.write_free + 2 * self.word if self.victim else 1 + self.write_free
        return self.reach + place + self.word + self.clear + self.mark_used + rest

    def reuse(self) -> int:
        return 3 + self.word + self.clear

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
        """To look at the bins of a small request, and into the victim."""
        if not self.victim:
            return 0
        close = 2 + self.pool.close_bins * (self.a_link + self.mark) + 2 * self.a_link + self.word
        return 2 * self.a_link + (close if self.pool.close_bins else 0) + 2 * (3 + self.word)

    def release(self) -> int:
        word, merged = self.word, self.a_link + self.unlink
        found = word + self.pad + word + self.write_free + self.insert + 2
        if self.pool.coalesce == "never":
            return found
        found += 1 + word + merged + (4 if self.pool.search_from != "start" else 0)
        if self.pool.coalesce == "immediate":
            found += word + merged
        return found + (self.mark_used + 10 if self.victim else 1)

    def grow(self) -> int:
        grown = 5 + self.word + self.clear
        if self.pool.grow_least:
            grown += self.release() + self.search() + self.take()
        return grown


def _general(pool: General, g: dict[str, Any]) -> _Calls:
    _require_bound(pool, g)
    steps = _Steps(pool, g)
    malloc = steps.small() + steps.search() + max(steps.take(), steps.reuse(), 2 + steps.grow()) + steps.pad
    return _Calls(malloc, steps.release())


def _require_bound(pool: General, g: dict[str, Any]) -> None:
    """Raise _UnboundedError where a call may pass any number of blocks."""
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
        (_walks(pool) and not pool.search_most, f"{pool.fit} fit walks a list of free blocks of any length"),
    )
    for holds, reason in reasons:
        if holds:
            raise _UnboundedError(reason)


def _walks(pool: General) -> bool:
    """Whether a search looks at more than the first block of a list."""
    return pool.bins not in ROUNDED_UP


# ---- the other kinds


def _fixed(pool: Fixed, f: dict[str, Any]) -> _Calls:
    word, link, grows = _width(f["word"]), _width(f["links"]["field"]), pool.counts == "grow"
    if grows and pool.find == "first-fit":
        raise _UnboundedError("first fit walks a class's chain of blocks of any length")
    tried = len(pool.sizes) if pool.fall_through else 1
    free = _OWNED + word + 3 * link + 1
    if not isinstance(pool.counts, str):
        flags = (sum(pool.counts) if tried > 1 else max(pool.counts)) if pool.find == "first-fit" else 0
        return _Calls(flags + tried * (3 * link + 4), free)
    carved = max(1, *(pool.page // max(1, size + pool.header) for size in pool.sizes), 1)
    return _Calls(2 * tried * 3 * link + 3 + carved * (word + 3 * link) + 3 * link, free)


def _buddy(pool: Buddy, y: dict[str, Any]) -> _Calls:
    word, link, orders = _width(y["word"]), _width(y["links"]["field"]), y["orders"]
    listed, unlisted = word + 5 * link, 4 * link
    if pool.max_block and not pool.region:
        raise _UnboundedError("a free at the top gives back any number of free blocks of the largest size before it")
    malloc = 10 + orders * link + unlisted + orders * listed + 2 * word
    largest = pool.min_block << orders - 1
    steps = max(orders, pool.region.bit_length()) + 1  # sizes tried for the block before the top
    lowered = (2 * orders + pool.region // largest) * (steps * word + unlisted)
    return _Calls(malloc, 2 + word + orders * (word + unlisted) + max(listed, lowered))


def _partition(pool: Partition, g: dict[str, Any]) -> _Calls:
    number = _width(g["field"])
    if isinstance(pool.count, str):
        raise _UnboundedError("a search walks a list of free groups of any length")
    walked = pool.count * 2 * number
    each = 20 * number + 20
    return _Calls(walked + each, walked + 2 * each)
