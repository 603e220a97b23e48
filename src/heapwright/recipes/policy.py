"""From a recipe to the policy that the C core runs: every field of `struct hw_policy`, the derived ones included.

The control data is laid out here, once, for replay and for generated code alike:

    null node | refused, misused, seal of the end | end of the shared part, its high-water mark | counters | pools

All numbers are bytes or addresses (offsets from the arena's base) unless the field says otherwise; `csrc/policy.h`
documents each field.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from heapwright._native import ffi, lib
from heapwright.errors import HeapwrightError
from heapwright.recipes.geometry import flags_in_word, power_above, round_up
from heapwright.recipes.pools import (
    FLUSH_STEPS,
    MAX_REACH,
    MAX_REQUEST,
    ROUNDED_UP,
    Buddy,
    Compact,
    Fixed,
    General,
    Partition,
    Pool,
    Quick,
)
from heapwright.recipes.recipe import Recipe

KINDS = {
    "quick": lib.HW_QUICK,
    "general": lib.HW_GENERAL,
    "fixed": lib.HW_FIXED,
    "buddy": lib.HW_BUDDY,
    "partition": lib.HW_PARTITION,
    "compact": lib.HW_COMPACT,
}
FREE_LISTS = {"double": lib.HW_DOUBLE, "single": lib.HW_SINGLE, "implicit": lib.HW_IMPLICIT, "tree": lib.HW_TREE}
CHECKS = {
    "none": lib.HW_CHECKS_NONE,
    "frees": lib.HW_CHECKS_FREES,
    "neighbours": lib.HW_CHECKS_NEIGHBOURS,
    "full": lib.HW_CHECKS_FULL,
}
KEYS = {
    "none": lib.HW_KEYS_NONE,
    "frees": lib.HW_KEYS_NONE,
    "neighbours": lib.HW_KEYS_PLAIN,
    "full": lib.HW_KEYS_MIXED,
}
KEY_WORDS = {lib.HW_KEYS_NONE: 0, lib.HW_KEYS_PLAIN: 1, lib.HW_KEYS_MIXED: 4}
ORDERS = {"lifo": lib.HW_LIFO, "fifo": lib.HW_FIFO, "address": lib.HW_ADDRESS, "size": lib.HW_SIZE}
FITS = {
    "first": lib.HW_FIRST,
    "next": lib.HW_NEXT,
    "best": lib.HW_BEST,
    "worst": lib.HW_WORST,
    "exact": lib.HW_EXACT,
}
COALESCE = {
    "never": lib.HW_NEVER,
    "immediate": lib.HW_IMMEDIATE,
    "forward": lib.HW_FORWARD,
    "lazy": lib.HW_LAZY,
    "deferred": lib.HW_DEFERRED,
    "sweep": lib.HW_SWEEP,
}
SEARCH_FROM = {
    "start": lib.HW_FROM_START,
    "freed": lib.HW_FROM_FREED,
    "lowest-free": lib.HW_FROM_LOWEST_FREE,
    "tried": lib.HW_FROM_TRIED,
}
TOPS = {"last": lib.HW_TOP_LAST, "bump": lib.HW_TOP_BUMP, "list": lib.HW_TOP_LIST, "extend": lib.HW_TOP_EXTEND}
RESIZES = {
    "in-place": lib.HW_RESIZE_IN_PLACE,
    "both-sides": lib.HW_RESIZE_BOTH_SIDES,
    "keep": lib.HW_RESIZE_KEEP,
    "keep-half": lib.HW_RESIZE_KEEP_HALF,
    "move": lib.HW_RESIZE_MOVE,
}
FLUSHES = {
    "before-refusing": lib.HW_FLUSH_BEFORE_REFUSING,
    "over-limit": lib.HW_FLUSH_OVER_LIMIT,
    "before-growing": lib.HW_FLUSH_BEFORE_GROWING,
}

THREADS = {"none": lib.HW_THREADS_NONE, "lock": lib.HW_THREADS_LOCK, "cached": lib.HW_THREADS_CACHED}

CACHE_NUMBERS = 3
"""Words ahead of the lists in a thread's cache, as `csrc/threads.h` has them."""

CACHE_FINE = 3
"""Classes of a cache to an octave, as a power of two, as `csrc/threads.h` has them."""


class BeyondReachError(HeapwrightError):
    """Control data and regions of a recipe are larger than the arena that its links and headers address."""


def policy(recipe: Recipe) -> dict[str, Any]:
    """The policy of a recipe as nested dicts and lists that mirror `struct hw_policy`.

    The recipe is taken in its canonical form. Raises BeyondReachError where the control data and the regions with a
    size of their own are beyond what the recipe's links reach, HeapwrightError for a recipe in several memories.
    """
    require_one_memory(recipe)
    return _Layout(recipe.canonical()).values


def require_one_memory(recipe: Recipe) -> None:
    """Raise HeapwrightError for a recipe in several memories: what asks here cannot do with it."""
    if recipe.memory:
        raise HeapwrightError(
            f"{recipe.name or recipe.hash}: lies in several memories ({', '.join(recipe.parts())}), and only replay "
            "and generate take it whole; give each memory's pools a recipe of their own"
        )


@lru_cache(maxsize=64)
def policy_struct(recipe: Recipe) -> Any:
    """The recipe's policy as a C struct (`struct hw_policy *`), not to be changed. Raises as `policy` does.

    Those of the last recipes are kept: making one takes as long as a replay of a thousand calls, and most recipes are
    replayed on several traces.
    """
    return ffi.new("struct hw_policy *", policy(recipe))


def _log2(value: int) -> int:
    return value.bit_length() - 1


def cache_class(units: int) -> int:
    """The class of blocks of so many units in a thread's cache."""
    coarse = _log2(units | 1 << CACHE_FINE) - CACHE_FINE
    return (coarse << CACHE_FINE) + (units >> coarse)


def cache_units(of: int) -> int:
    """Units of the smallest block of a class."""
    coarse = max((of >> CACHE_FINE) - 1, 0)
    return of - (coarse << CACHE_FINE) << coarse


def _has_pairs(pool: Pool, values: dict[str, Any]) -> bool:
    """Whether a node of the pool's lists is a link and one more, or a mark, behind it."""
    if isinstance(pool, Quick):
        return bool(values["marks"])
    return isinstance(pool, Buddy) or (isinstance(pool, General) and pool.free_list in ("double", "tree"))


def _doubling(sizes: Sequence[int]) -> dict[str, int]:
    """Whether sizes are powers of two one after the other, from 2 on, but for the bytes that each lacks."""
    lacks = sizes[1] - 2 * sizes[0] if len(sizes) > 1 else -1
    least = sizes[0] + lacks
    doubles = lacks >= 0 and least > 1 and least & (least - 1) == 0
    if not doubles or any(size + lacks != least << place for place, size in enumerate(sizes)):
        return {"doubles": 0, "lacks": 0}
    return {"doubles": 1, "lacks": lacks}


def _serves_empty(pool: dict[str, Any]) -> bool:
    """Whether a pool's arithmetic takes 0 bytes for what it takes 1 byte for."""
    if pool["kind"] == KINDS["quick"]:
        quick = pool["quick"]
        return bool(round_up(quick["block_header"] + 1, 1 << quick["block_unit_shift"]) <= quick["block_least"])
    if pool["kind"] == KINDS["general"]:
        general = pool["general"]
        return bool(round_up(general["overhead"] + 1, 1 << general["unit_shift"]) <= general["min_block"])
    return pool["kind"] in (KINDS["fixed"], KINDS["buddy"])


class _Layout:
    """Places the control data, then the regions, then the shared part."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.geometry = recipe.geometry
        self.align = recipe.align
        self.cursor = 0
        self.full = recipe.checks == "full"
        self.keyed = KEYS[recipe.checks]
        self.keys = KEY_WORDS[self.keyed]
        pools = recipe.pools
        doubles = any(isinstance(pool, Buddy) or getattr(pool, "free_list", "") == "double" for pool in pools)
        self._take(2 * recipe.link_bytes if doubles else 0, 1)
        heap = {
            "refused_at": self._take(4, 4),
            "misused_at": self._take(4, 4) if recipe.checks != "none" else 0,
            "end_seal_at": self._take(4, 4) if recipe.checks != "none" else 0,
            "keys": self.keys,
            "keys_at": self._take(4 * self.keys, 4) if self.keys else 0,
            "waiting_at": self._take(4 + 4 * lib.HW_WAITING, 4) if self.full else 0,
            "shared_limit_at": self._take(4, 4),
            "shared_high_at": self._take(4, 4),
            "counters_at": self._take(16, 4) if recipe.counters else 0,
        }
        self.heap = heap
        self.values: dict[str, Any] = {}
        last = max(index for index, pool in enumerate(pools) if not isinstance(pool, Quick))
        self.cached = recipe.threads == "cached"
        heap["caches_at"] = self._take(4, 4) if self.cached else 0
        if self.cached:
            self.cache = self._cache_lists()
            self.depot_at = self._take(8 + 4 * self.cache["count"], 4)
        laid_out = [self._pool(index, index == last) for index in range(len(pools))]
        self._take(max(0, recipe.control_bytes - self.cursor), 1)
        control = self._regions(laid_out)
        spent = self.cursor - sum(map(self._region_bytes, pools))
        kinds = (values[pool.kind] for pool, values in zip(pools, laid_out, strict=True))
        grown = next((kind for kind in kinds if kind.get("grow") or kind.get("in_arena")), None)
        self.values = {
            "align": self.align,
            "checks": CHECKS[recipe.checks],
            "pool_count": len(pools),
            "keeps": int(any(isinstance(pool, Quick) for pool in pools)),
            "flushes": int(any(isinstance(pool, Quick) and pool.flush == "before-growing" for pool in pools)),
            "empty_as_one": int(all(map(_serves_empty, laid_out))),
            "control": control,
            "spent": spent,
            "arena_align": max([16, *(pool.unit for pool in pools if isinstance(pool, General))]),
            "fixed_end": self.cursor,
            "reach": self.geometry.reach(pools) or MAX_REACH,
            "shared_end_at": grown["end_at"] if grown else heap["shared_limit_at"],
            "grows_down": int(grown is not None),
            "end_header": next((pool.header for pool in pools if isinstance(pool, Fixed) and pool.counts == "grow"), 0),
            **heap,
            **self._threads(),
            "guard": {"bytes": 4, "natural": int(all(map(self._ends_on_words, pools)))},
            "pools": laid_out,
        }
        for pool, values in zip(pools, laid_out, strict=True):
            if "links" in values[pool.kind]:
                values[pool.kind]["links"] |= self._hardened(self.values, _has_pairs(pool, values[pool.kind]))
        if self.cursor > self.values["reach"]:
            raise BeyondReachError(
                f"{recipe.name or recipe.summary()}: control data and regions take {self.cursor} bytes, its links and "
                f'headers reach {self.values["reach"]}; use "link_bytes" 4, a larger header or smaller regions'
            )

    def _take(self, size: int, align: int) -> int:
        at = round_up(self.cursor, align)
        self.cursor = at + size
        return at

    def _links(self) -> dict[str, Any]:
        width = self.recipe.link_bytes
        return {
            "field": {"bytes": width, "natural": int(self.align % width == 0)},
            "shift": _log2(self.align) if width == 2 else 0,
        }

    def _hardened(self, heap: dict[str, Any], pairs: bool) -> dict[str, int]:
        """What links are held to."""
        told = {"keyed": self.keyed, "keys_at": heap["keys_at"], "misused_at": heap["misused_at"]}
        if self.recipe.checks not in ("neighbours", "full"):
            return {"hardened": 0, "pairs": 0, "end_at": 0, **told}
        return {"hardened": 1, "pairs": int(pairs), "end_at": heap["shared_end_at"], **told}

    def _ends_on_words(self, pool: Pool) -> bool:
        """Whether all payloads of a pool end at multiples of 4."""
        if self.align % 4:
            return False
        if isinstance(pool, General):
            return pool.unit % 4 == 0 and (pool.header + pool.trailer) % 4 == 0
        return not isinstance(pool, Buddy) or pool.header % 4 == 0

    def _word(self, header: int, width: int | None = None) -> dict[str, int]:
        """The field at the start of a block's header: up to 4 bytes, natural where every header starts aligned."""
        width = width or max(1, min(header, 4))
        natural = width in (1, 2, 4) and self.align % width == 0 and header % width == 0
        return {"bytes": width, "natural": int(natural)}

    def _pool(self, index: int, last: bool) -> dict[str, Any]:
        pool = self.recipe.pools[index]
        largest = min(pool.max_size or MAX_REQUEST, self._largest_request(pool))
        limits: dict[str, Any] = {
            "kind": KINDS[pool.kind],
            "min_size": pool.min_size,
            "max_size": largest,
            "at_hand": min(largest, self._at_hand(pool)),
            "last": int(last),
            "cached": int(any(isinstance(above, Quick) for above in self.recipe.pools[:index])),
        }
        if isinstance(pool, Quick):
            limits["quick"] = self._quick(pool, index)
        elif isinstance(pool, General):
            limits["general"] = self._general(pool, bool(limits["cached"]) or self.cached)
        elif isinstance(pool, Buddy):
            limits["buddy"] = self._buddy(pool)
        elif isinstance(pool, Partition):
            limits["partition"] = self._partition(pool)
        elif isinstance(pool, Compact):
            limits["compact"] = self._compact(pool)
        else:
            limits["fixed"] = self._fixed(pool)
        return limits

    def _largest_request(self, pool: Pool) -> int:
        """A request whose block would be beyond the pool's reach has no bin, and is not asked for."""
        if isinstance(pool, General):
            reach, overhead = self.geometry.reach_of(pool), self.geometry.overhead(pool)
            largest = reach - pool.unit
            if pool.round_to == "power-of-two":
                largest = 1 << _log2(reach - 1)
            return min(MAX_REQUEST, max(0, largest - overhead))
        if isinstance(pool, Buddy):
            return self.geometry.largest_block(pool) - pool.header - self.geometry.guard
        if isinstance(pool, Compact):
            return self.geometry.largest_object(pool)
        return MAX_REQUEST

    def _at_hand(self, pool: Pool) -> int:
        """The largest request for which a block may be at hand: beside a victim, what may be cut from it."""
        if isinstance(pool, General) and pool.victim_up_to:
            return self.geometry.capacity_for(pool.victim_up_to, pool)
        return MAX_REQUEST

    # ---- threads

    def _threads(self) -> dict[str, Any]:
        """What the caches of threads need: lists as a quick pool above all others would have them."""
        unused = {"cache_bytes": 0, "cache_largest": 0, "cache_object": 0, "cache_cuts": 0, "depot_at": 0, "cache": {}}
        unused |= {"cache_finds_new": 0, "cache_tabled": 0, "cache_ranks": []}
        if not self.cached:
            return {"threads": THREADS[self.recipe.threads], **unused}
        return {
            "threads": THREADS[self.recipe.threads],
            "cache_bytes": self.recipe.cache_bytes,
            "cache_largest": self.cache["up_to"] - self.cache["block_header"],
            "cache_object": 4 * CACHE_NUMBERS + 8 * self.cache["count"],
            "cache_cuts": int(self._is_cut()),
            "cache_finds_new": int(any(isinstance(one, General) and one.top == "list" for one in self.recipe.pools)),
            "cache_tabled": int(bool(self._cache_ranks())),
            "cache_ranks": self._cache_ranks(),
            "depot_at": self.depot_at,
            "cache": self.cache,
        }

    def _cache_lists(self) -> dict[str, Any]:
        """Lists as a quick pool above all others would have them, but of classes of sizes."""
        lists = self._lists(Quick(up_to=self.recipe.cache_up_to), self.recipe.pools)
        if lists["block_doubles"]:
            return lists
        shift = lists["block_unit_shift"]
        first, last = cache_class(lists["block_least"] >> shift), cache_class((lists["up_to"] >> shift) - 1) + 1
        return lists | {"count": last - first + 1, "up_to": cache_units(last) << shift}

    def _cache_ranks(self) -> list[int]:
        """1 + the list of blocks of so many units, 0 below the smallest; empty where the list is computed."""
        shift = self.cache["block_unit_shift"]
        units = self.cache["up_to"] >> shift
        if self.cache["block_doubles"] or units >= lib.HW_CACHE_UNITS or not self.cache["block_header"]:
            return []
        first = cache_class(self.cache["block_least"] >> shift)
        return [max(0, cache_class(size) - first + 1) for size in range(units + 1)]

    def _is_cut(self) -> bool:
        """Whether one block of the heap may become several: all come from one pool, whose blocks lie back to back."""
        owners = [pool for pool in self.recipe.pools if not isinstance(pool, Quick)]
        pool = owners[0]
        return (
            len(owners) == 1
            and isinstance(pool, General)
            and pool.split != "never"
            and pool.round_to != "power-of-two"
            and not self.geometry.padding(pool)
        )

    # ---- quick

    def _quick(self, pool: Quick, index: int) -> dict[str, Any]:
        link = self.recipe.link_bytes
        lists = self._lists(pool, self.recipe.pools[index + 1 :])
        limited = pool.limit_blocks is not None or pool.limit_bytes is not None
        smallest = min(lists["sizes"], default=lists["block_least"] - lists["block_header"])
        return lists | {
            "marks": int(self.recipe.checks != "none" and smallest >= 2 * link),
            "heads_at": self._take(lists["count"] * link, link),
            "counts_at": self._take(4 * lists["count"], 4) if limited else 0,
            "cached_at": self._take(4, 4) if lists["flush_share"] else 0,
            "grown_at": self._take(4, 4) if lists["flush_growth"] else 0,
            "misses_at": self._take(4, 4) if lists["flush_growth"] else 0,
        }

    def _lists(self, pool: Quick, pools: tuple[Pool, ...]) -> dict[str, Any]:
        """What a quick pool caches above others, and how it finds the list."""
        owners = [other for other in pools if not isinstance(other, Quick)]
        below = owners[0]
        if isinstance(below, General):
            header, unit = self.geometry.overhead(below) - self.geometry.padding(below), below.unit
            least = self._least(below, cached=True)
        elif isinstance(below, Buddy):
            header, unit, least = below.header + self.geometry.guard, below.min_block, below.min_block
        elif isinstance(below, Partition):
            header, unit, least = self.geometry.guard, below.size, below.size
        else:
            header, unit, least = 0, self.align, max(self.align, round_up(self.recipe.link_bytes, self.align))

        odd = isinstance(below, General) and below.round_to == "power-of-two"  # powers, and what was not split
        powers = odd or isinstance(below, Buddy)
        if pool.sizes is None:
            assert pool.up_to is not None
            up_to = self.geometry.capacity_in(below, pool.up_to) + header
            sizes: list[int] = []
            count = _log2(up_to // least) + 1 if powers else (up_to - least) // unit + 1
        else:
            up_to = 0
            sizes = list(dict.fromkeys(self.geometry.capacity_in(below, size) for size in pool.sizes))
            count = len(sizes)

        def block(request: int) -> int:
            rounded = max(round_up(request + header, unit), least)
            return power_above(rounded) if powers else rounded

        def before(size: int) -> int:
            """The size of blocks below this one."""
            return size // 2 if powers else size - unit

        return {
            "links": self._links(),
            "count": count,
            "by_size": int(pool.sizes is None),
            "up_to": up_to,
            "sizes": sizes,
            "limit_blocks": pool.limit_blocks or 0,
            "limit_bytes": pool.limit_bytes or 0,
            "flush": FLUSHES[pool.flush],
            "flush_from": pool.flush_from,
            "flush_share": round(pool.flush_share * FLUSH_STEPS),
            "flush_growth": round(pool.flush_growth * FLUSH_STEPS),
            "flush_large": (pool.flush_large or MAX_REQUEST) if pool.flush_growth else 0,
            "apart": int(pool.keep == "apart"),
            "mixed": int(odd or len(owners) > 1 or (isinstance(below, Fixed) and min(below.sizes) < least)),
            "least": [0 if size <= block(0) - header else before(size + header) - header + 1 for size in sizes],
            "largest": max(sizes, default=up_to - header),
            "align": self.align,
            "block_header": header,
            "block_unit_shift": _log2(unit),
            "block_doubles": int(powers),
            "block_least": least,
        }

    # ---- general

    def _least(self, pool: General, cached: bool) -> int:
        """Smallest block; one that a quick list may hold has room for a link whatever its own list needs."""
        if cached:
            return self.geometry.smallest_cached_block(pool)
        return pool.min_block

    def _general(self, pool: General, cached: bool) -> dict[str, Any]:
        recipe = self.recipe
        tags = pool.boundary_tags
        flag_bits = flags_in_word(pool)
        word = self._word(pool.header, self.geometry.word_bytes(pool))
        least = self._least(pool, cached)
        raw = word["bytes"] == 4 and pool.unit >= 1 << flag_bits
        shared = pool.region == 0
        roves = pool.fit == "next" or pool.search_from == "lowest-free"
        partial = pool.fit == "best" and pool.search_percent < 100 and pool.free_list != "implicit"
        split_least = least if pool.split == "always" else max(least, pool.split if isinstance(pool.split, int) else 0)
        values = {
            "links": self._links(),
            "word": word,
            "header": pool.header,
            "trailer": self.geometry.trailer(pool),
            "overhead": self.geometry.overhead(pool),
            "pad": self.geometry.padding(pool),
            "node": pool.header - self.geometry.links_in_header(pool),
            "align": self.align,
            "unit_shift": _log2(pool.unit),
            "min_block": least,
            "powers": int(pool.round_to == "power-of-two"),
            "boundary_tags": int(tags),
            "tag_in_header": int(tags and pool.tag_in == "header"),
            "free_list": FREE_LISTS[pool.free_list],
            "order": ORDERS[pool.order],
            "large_order": ORDERS[pool.large_order or pool.order],
            "unsorted": int(pool.unsorted),
            "fit": FITS[pool.fit],
            "search_percent": pool.search_percent if partial else 100,
            "search_most": pool.search_most,
            "search_from": SEARCH_FROM[pool.search_from],
            "split": int(pool.split != "never"),
            "split_least": split_least,
            "split_tail": int(pool.split_from == "tail"),
            "coalesce": COALESCE[pool.coalesce],
            "coalesce_from": pool.coalesce_from,
            "refile": int(pool.remainder == "filed"),
            "merge_enough": int(pool.merge_until == "enough"),
            "keep_place": int(pool.merged == "in-place"),
            "top": TOPS[pool.top],
            "end_word": int(tags and pool.top == "list"),
            "grow_least": round_up(pool.grow_least, pool.unit),
            "resize": RESIZES[pool.resize],
            "bin_round_up": int(pool.bins in ROUNDED_UP),
            "bin_unmark": int(pool.bins in ROUNDED_UP),
            "victim_up_to": pool.victim_up_to,
            "close_bins": pool.close_bins,
            "region": pool.region,
            "checks": CHECKS[recipe.checks],
            "size_raw": int(raw),
            "flag_bits": flag_bits,
            "size_shift": _log2(pool.unit),
            "unsorted_at": self._take(2 * recipe.link_bytes, max(self.align, 4)) if pool.unsorted else 0,
            "remainder_at": self._take(4, 4) if pool.unsorted else 0,
            "top_at": self._take(4, 4),
            "high_at": self.heap["shared_high_at"] if shared else self._take(4, 4),
            "limit_at": self.heap["shared_limit_at"] if shared else self._take(4, 4),
            "rover_at": self._take(4, 4) if roves else 0,
            "count_at": self._take(4, 4) if partial else 0,
            "pending_at": self._take(4, 4) if pool.coalesce == "deferred" else 0,
            "victim_at": self._take(8, 4) if pool.victim_up_to else 0,
        }
        shape = self._bins(pool, least)
        bins = shape["bins"]
        values |= shape
        tails = "fifo" in (pool.order, pool.large_order)
        stride = self.recipe.link_bytes * (2 if tails else 1)
        if recipe.link_bytes == 2 and (pool.free_list == "double" or tails):
            stride = round_up(stride, self.align)
        values["list_stride"] = stride
        values["summary_at"] = self._take(4, 4) if bins > 32 else 0
        spare = 4 if pool.close_bins else 0  # a word without marks: close bins are looked up in two words at a time
        values["bitmap_at"] = self._take(round_up(bins, 32) // 8 + spare, 4) if bins else 0
        lists = 0 if pool.free_list == "implicit" else max(bins, 1)
        values["lists_at"] = self._take(lists * stride, max(self.align, 4)) if lists else 0
        return values

    def _bins(self, pool: General, least: int) -> dict[str, int]:
        if pool.bins == "none":
            keys: tuple[str, ...] = (
                "bins",
                "bin_linear",
                "bin_steps_log2",
                "bin_first",
                "bin_octave",
                "bin_linear_bins",
            )
            keys += ("bin_less", "bin_last")
            return dict.fromkeys(keys, 0)
        linear, per_octave = pool.linear_up_to or 0, pool.bins_per_octave or 1
        less = pool.header + self.geometry.trailer(pool) if pool.bin_by == "payload" else 0
        first = (least - less) // pool.unit
        linear_bins = max(0, linear // pool.unit - first)
        octave = _log2(linear) if linear_bins else _log2(least - less)
        octaves = (self.geometry.reach_of(pool) - 1).bit_length() - octave
        bins = linear_bins + max(1, octaves) * per_octave
        last = 0 < pool.most_bins < bins
        return {
            "bins": pool.most_bins if last else bins,
            "bin_last": int(last),
            "bin_linear": linear if linear_bins else 0,
            "bin_steps_log2": _log2(per_octave),
            "bin_first": first,
            "bin_octave": octave,
            "bin_linear_bins": linear_bins,
            "bin_less": less,
        }

    # ---- fixed

    def _fixed(self, pool: Fixed) -> dict[str, Any]:
        link = self.recipe.link_bytes
        links = self._links()
        count = len(pool.sizes)
        grow = pool.counts == "grow"
        first_fit = pool.find == "first-fit"
        if grow and first_fit and pool.header % link:  # the chain runs through the headers
            links["field"]["natural"] = 0
        counts = [] if isinstance(pool.counts, str) else list(pool.counts)
        flags = first_fit or self.recipe.checks != "none"
        flags_at = [self._take(blocks, 1) for blocks in counts] if flags and not grow else []
        return {
            "links": links,
            "word": self._word(pool.header),
            "count": count,
            "sizes": list(pool.sizes),
            **_doubling(pool.sizes),
            "counts": counts,
            "grow": int(grow),
            "page": pool.page,
            "header": pool.header,
            "trailer": self.geometry.guard,
            "first_fit": int(first_fit),
            "flags": int(flags),
            "fall_through": int(pool.fall_through),
            "align": self.align,
            "heads_at": self._take(count * link, link) if grow or not first_fit else 0,
            "carved_at": 0 if grow else self._take(4 * count, 4),
            "tails_at": self._take(count * link, link) if grow and first_fit else 0,
            "flags_at": flags_at,
            "limit_at": self.heap["shared_limit_at"] if grow else 0,
            "high_at": self.heap["shared_high_at"] if grow else 0,
            "end_at": self._take(4, 4) if grow else self.heap["shared_limit_at"],
        }

    # ---- buddy

    def _buddy(self, pool: Buddy) -> dict[str, Any]:
        link = self.recipe.link_bytes
        shared = pool.region == 0
        orders = _log2(self.geometry.largest_block(pool) // pool.min_block) + 1
        stride = round_up(link, self.align) if link == 2 else link  # 2-byte links to the heads count in units, too
        return {
            "links": self._links(),
            "word": self._word(pool.header),
            "header": pool.header,
            "trailer": self.geometry.guard,
            "region": pool.region,
            "checks": int(self.recipe.checks != "none"),
            "min_block_log2": _log2(pool.min_block),
            "orders": orders,
            "list_stride": stride,
            "top_at": self._take(4, 4),
            "high_at": self.heap["shared_high_at"] if shared else self._take(4, 4),
            "limit_at": self.heap["shared_limit_at"] if shared else self._take(4, 4),
            "lists_at": self._take(orders * stride, max(self.align, 4)),
        }

    # ---- partition

    def _partition(self, pool: Partition) -> dict[str, Any]:
        width = self.recipe.link_bytes
        grow = pool.count == "grow"
        aligned = pool.descriptor_bytes % width == 0 and (not grow or self.align % width == 0)
        reach = MAX_REACH // pool.size if grow else pool.count
        assert isinstance(reach, int)
        return {
            "field": {"bytes": width, "natural": int(aligned)},
            "partition": pool.size,
            "most": min(reach, (1 << (8 * width - 1)) - 1),
            "grow": int(grow),
            "descriptor": pool.descriptor_bytes,
            "trailer": self.geometry.guard,
            "lists": pool.lists,
            "order": ORDERS[pool.order],
            "fit": FITS[pool.fit],
            "coalesce": COALESCE[pool.coalesce],
            "checks": CHECKS[self.recipe.checks],
            "misused_at": self.heap["misused_at"],
            "head_at": self._take(4 * pool.lists, 4),
            "bitmap_at": self._take(4, 4) if pool.lists > 1 else 0,
            "top_at": self._take(4, 4),
            "high_at": self.heap["shared_high_at"] if grow else self._take(4, 4),
            "limit_at": self.heap["shared_limit_at"] if grow else 0,
            "end_at": self._take(4, 4) if grow else 0,
        }

    # ---- compact

    def _compact(self, pool: Compact) -> dict[str, Any]:
        in_arena = pool.handles == "arena"
        links = self._links()
        width = links["field"]["bytes"]
        links["field"]["natural"] = int(self.align % width == 0 and pool.handle_bytes % width == 0)
        half = min(pool.header // 2, 4)
        natural = half in (1, 2, 4) and self.align % half == 0 and pool.header % half == 0
        numbers = [8 * half] if half else []
        numbers += [8 * self.recipe.link_bytes] if in_arena else []
        return {
            "links": links,
            "word": {"bytes": half or 4, "natural": int(natural)},
            "header": pool.header,
            "align": self.align,
            "lazy": int(pool.when == "lazy"),
            "in_arena": int(in_arena),
            "handle": pool.handle_bytes if in_arena else 0,
            "size_shift": _log2(self.align),
            "most": min([(1 << bits) - 1 for bits in numbers], default=0xFFFFFFFF),
            "head_at": 0 if pool.header else self._take(4, 4),
            "unused_at": self._take(4, 4) if in_arena else 0,
            "handles_at": self._take(4, 4) if in_arena else 0,
            "holes_at": self._take(4, 4) if pool.when == "lazy" else 0,
            "top_at": self._take(4, 4),
            "high_at": self.heap["shared_high_at"],
            "limit_at": self.heap["shared_limit_at"],
            "end_at": self._take(4, 4) if in_arena else 0,
        }

    # ---- regions

    def _aligned_for(self, header: int, unit: int) -> int:
        """The next address at which a block starts so that its payload is a multiple of `unit`.

        With all sizes multiples of the unit, so are all payloads: what aligned_alloc cuts off is a block, too.
        """
        return round_up(self.cursor + header, unit) - header

    def _start_of(self, pool: General) -> int:
        """Where the first block starts: aligned itself where blocks start at units below the alignment."""
        if pool.unit < self.align:
            return round_up(self.cursor, self.align)
        return self._aligned_for(pool.header, pool.unit)

    def _regions(self, laid_out: list[dict[str, Any]]) -> int:
        """Lays out the regions with a size of their own, then the shared part's start; returns the control's end."""
        control = self.cursor
        for pool, values in zip(self.recipe.pools, laid_out, strict=True):
            if isinstance(pool, General) and pool.region:
                self.cursor = self._start_of(pool)
                values["general"]["start"] = self.cursor
                self.cursor += pool.region
            elif isinstance(pool, Buddy) and pool.region:
                self.cursor = self._aligned_for(pool.header, self.align)
                values["buddy"]["start"] = self.cursor
                self.cursor += pool.region
            elif isinstance(pool, Partition) and pool.count != "grow":
                self._counted_partitions(pool, pool.count, values["partition"])
            elif isinstance(pool, Fixed) and not isinstance(pool.counts, str):
                self._counted_classes(pool, values["fixed"])
        for pool, values in zip(self.recipe.pools, laid_out, strict=True):
            if isinstance(pool, General) and pool.region == 0:
                self.cursor = self._start_of(pool)
                values["general"]["start"] = self.cursor
            elif isinstance(pool, Fixed) and pool.counts == "grow":  # blocks carved from the end may reach this far
                self.cursor = self._aligned_for(pool.header, self.align)
            elif isinstance(pool, Buddy) and pool.region == 0:
                self.cursor = self._aligned_for(pool.header, self.align)
                values["buddy"]["start"] = self.cursor
            elif isinstance(pool, Compact):
                self.cursor = self._aligned_for(pool.header, self.align)
                values["compact"]["start"] = self.cursor
            elif isinstance(pool, Partition) and pool.count == "grow":
                self.cursor = round_up(self.cursor, self.align)
                values["partition"]["start"] = self.cursor
        return control

    def _region_bytes(self, pool: Pool) -> int:
        """Bytes of a region of its own that blocks can cover."""
        if isinstance(pool, (General, Buddy)):
            return pool.region
        if isinstance(pool, Partition):
            return 0 if isinstance(pool.count, str) else pool.count * pool.size
        if isinstance(pool, Fixed) and not isinstance(pool.counts, str):
            strides = (round_up(size + pool.header, self.align) for size in pool.sizes)
            return sum(count * stride for count, stride in zip(pool.counts, strides, strict=True))
        return 0

    def _counted_partitions(self, pool: Partition, count: int, values: dict[str, Any]) -> None:
        values["descriptors"] = self._take(count * pool.descriptor_bytes, self.recipe.link_bytes)
        values["start"] = self._take(count * pool.size, self.align)
        values["end"] = self.cursor

    def _counted_classes(self, pool: Fixed, values: dict[str, Any]) -> None:
        values["blocks_at"] = []
        for size, count in zip(values["sizes"], values["counts"], strict=True):
            self.cursor = self._aligned_for(pool.header, self.align)
            values["blocks_at"].append(self.cursor)
            self.cursor += count * round_up(size + pool.header + values["trailer"], self.align)
        values["end"] = self.cursor
