"""Quick pools: free-list caches (fastbins) above other pools, which own the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2, power_above, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, Size, bare, can_serve, capacities_below, sizes_summary, sizes_title
from heapwright._recipes.kinds.bounds import NEVER, UnboundedError, width
from heapwright._recipes.limits import MAX_CLASSES, MAX_REQUEST, MAX_UP_TO
from heapwright._recipes.model import Conversion, field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

MAX_QUICK_POOLS = 2

IDLE_SHARE = 1 / 32
"""`idle_share` where a recipe says nothing: chosen on half of the traces, see docs/zoo/all-round.md."""

RELEASE_MOST = 2
"""`release_most` where a recipe says nothing. On seven long runs all-round and fast need the same memory within 1 %
with 1, 2, 3, 4 and 8. With 2 a malloc takes at most 127 accesses there, and 495 instructions of a Cortex-M3 on ten
recordings, with 4 it takes 173 and 590. With 1 lists outgrow what is given back if one request in eight does not use
them."""

MOST_REFILL = 128
"""Most blocks that are cut for a list at a time."""

MOST_AN_OCTAVE = 32
"""Most lists from a power of two to the next one."""

FLUSH_STEPS = 1024
"""`idle_share` is kept in 1024ths, so that firmware compares them with a shift."""

WAITING_SHARE = 1 / 16
"""Lists that release idle blocks at least once per this share of the heap are not a low-confidence design."""

WAITING_BLOCKS = 4
"""Other lists are not a low-confidence design if each holds at most this number of blocks."""

Flush = Literal["before-refusing", "over-limit", "before-growing", "idle"]

FLUSHES = {
    "before-refusing": lib.HW_FLUSH_BEFORE_REFUSING,
    "over-limit": lib.HW_FLUSH_OVER_LIMIT,
    "before-growing": lib.HW_FLUSH_BEFORE_GROWING,
    "idle": lib.HW_FLUSH_IDLE,
}


def _flush_name(value: Any) -> Any:
    """What flushes before refusing was called "never" while it did not."""
    return "before-refusing" if value == "never" else value


class Quick(BasePool):
    """Free-list caches (fastbins) above other pools, which own the blocks."""

    number: ClassVar[int] = lib.HW_QUICK
    owns_blocks: ClassVar[bool] = False
    removed_keys: ClassVar[Mapping[str, str]] = {
        "flush_growth": 'use "flush" "idle"',
        "flush_large": 'use "flush" "idle"',
        "flush_share": 'leave it out, or use "flush" "idle"',
        "limit_bytes": 'use "limit_blocks"',
    }
    space_keys: ClassVar[tuple[str, ...]] = ("most_frequent",)

    kind: Literal["quick"] = "quick"
    sizes: tuple[Size, ...] | None = field(
        default=None,
        strict=False,
        min_length=1,
        max_length=MAX_CLASSES,
        description="request sizes that have a list, bytes",
    )
    up_to: int | None = field(
        default=None, ge=1, le=MAX_UP_TO, description="largest request that has a list, one for every block size, bytes"
    )
    lists_per_octave: int = field(
        default=0,
        ge=0,
        le=MOST_AN_OCTAVE,
        description="lists from a power of two to the next; 0: one for every block size",
    )
    limit_blocks: int | None = field(default=None, ge=1, le=MAX_REQUEST, description="most blocks a list keeps")
    flush: Annotated[Flush, Conversion(_flush_name)] = field(
        default="before-refusing", description="when blocks go back, at the latest before a request fails"
    )
    flush_from: int = field(
        default=0,
        ge=0,
        le=MAX_REQUEST,
        description="a request from this size on empties the lists, bytes; 0: none does",
    )
    idle_share: float = field(
        default=IDLE_SHARE,
        ge=0,
        le=1,
        description='"idle": share of the heap that other requests take before idle blocks go back',
    )
    release_most: int = field(
        default=RELEASE_MOST,
        ge=0,
        le=MAX_REQUEST,
        description='"idle": most blocks that go back in one call, and before the heap grows; 0: any number',
    )
    refill: int = field(
        default=0,
        ge=0,
        le=MOST_REFILL,
        description='"idle": most blocks cut side by side for a list that misses repeatedly; 0: one',
    )
    keep: Literal["all", "apart"] = field(
        default="all",
        description='"apart": a block next to free memory coalesces at once, if its header shows that it is',
    )

    # ---- rules

    @classmethod
    def crowding(cls, pools: Sequence[BasePool]) -> Iterator[tuple[int, str]]:
        results = [index for index, pool in enumerate(pools) if isinstance(pool, cls)]
        if len(results) > MAX_QUICK_POOLS:
            yield (
                results[MAX_QUICK_POOLS],
                f"at most {MAX_QUICK_POOLS} quick pools; one holds up to {MAX_CLASSES} sizes",
            )

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        owners = [other for other in pools[index + 1 :] if other.owns_blocks]
        if not owners:
            yield "no pool below it to take blocks from; valid: a general or fixed pool after it"
            return
        if owners[0].odd_blocks:
            yield f"{owners[0].odd_blocks}; valid below a quick pool: powers of two"
        if (self.sizes is None) == (self.up_to is None):
            yield 'needs either "sizes" (a list of request sizes) or "up_to" (every block size up to that of a request)'
            return
        if self.flush == "over-limit" and self.limit_blocks is None:
            yield '"flush" "over-limit" has no limit to go over; add "limit_blocks"'
        yield from self._kept_contradictions(pools, owners)
        yield from self._octave_contradictions(owners, geometry)
        yield from self._refill_contradictions(pools, owners, geometry)
        if self.gives_back_idle and self.limit_blocks is not None:
            yield '"flush" "idle" is not valid with "limit_blocks"; valid: one of them'
        if self.sizes is not None:
            yield from self._size_contradictions(self.sizes, owners, geometry)
        for other in pools[:index]:
            if isinstance(other, Quick):
                yield from self._shared_sizes(other)

    def _kept_contradictions(self, pools: Sequence[BasePool], owners: Sequence[BasePool]) -> Iterator[str]:
        if self.keep == "apart" and not all(other.has_victim for other in owners):
            yield (
                '"keep" "apart" is not valid here: every pool below needs "kind" "general" and "victim_up_to"; '
                "valid: all"
            )
        if len({other.keep for other in pools if isinstance(other, Quick)}) > 1:
            yield f'"keep" "{self.keep}" is not valid with a quick pool of another "keep"; valid: the same for all'

    def _octave_contradictions(self, owners: Sequence[BasePool], geometry: Geometry) -> Iterator[str]:
        lists = self.lists_per_octave
        if not lists:
            return
        if lists == 1 or lists & (lists - 1):
            yield f'"lists_per_octave" {lists} is not valid; valid: 0, 2, 4, 8, 16, 32'
        if self.up_to is None:
            yield '"lists_per_octave" needs "up_to", the largest request that has a list'
        below = owners[0]
        if len(owners) > 1 or below.min_size or below.max_size is not None or below.sites:
            yield '"lists_per_octave" needs one pool below, which takes every size'
        elif below.block_shape(geometry, False)[3]:
            yield '"lists_per_octave" is not valid above blocks that are powers of two; valid: 0'

    def _refill_contradictions(
        self, pools: Sequence[BasePool], owners: Sequence[BasePool], geometry: Geometry
    ) -> Iterator[str]:
        if not self.refill:
            return
        if self.refill == 1:
            yield '"refill" 1 is not valid; valid: 0, which cuts one block, or 2 to 128'
        if not all(other.gives_back_idle for other in pools if isinstance(other, Quick)):
            yield '"refill" needs "flush" "idle" in each quick pool, so that what is not used goes back'
        below = owners[0]
        if len(owners) > 1 or below.min_size or below.max_size is not None or below.sites:
            yield '"refill" needs one pool below, which takes every size'
        elif not below.cuts(geometry):
            yield '"refill" needs a pool below that cuts blocks: "kind" "general" with "split" and no padding'

    def _size_contradictions(
        self, sizes: Sequence[int], owners: Sequence[BasePool], geometry: Geometry
    ) -> Iterator[str]:
        cached = [size for size in sizes if self.takes(size)]
        if not cached:
            yield '"sizes" has none between "min_size" and "max_size"'
        for size in cached:
            if not any(can_serve(other, size, geometry) for other in owners):
                yield (
                    f'"sizes": no pool below serves {size} bytes; '
                    "valid: sizes that a general or fixed pool after it takes"
                )

    def _shared_sizes(self, earlier: Quick) -> Iterator[str]:
        if self.up_to is not None and earlier.up_to is not None:
            yield 'a second "up_to" caches what the first does; valid: one quick pool with "up_to"'
        bound = self.up_to or earlier.up_to or 0
        mine, others = set(self.sizes or ()), set(earlier.sizes or ())
        shared = (mine & others) | {size for size in mine | others if size <= bound}
        if shared:
            yield f"{min(shared)} bytes is cached by two quick pools; valid: each size in one"

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Quick:
        return _canonical(self, tuple(map(bare, below)), geometry)  # blocks are as large without thresholds

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Quick:
        if self.sizes is None:
            return self.model_copy()
        blocks = sorted(set(capacities_below(filter(self.takes, self.sizes), below, geometry)))
        return self.model_copy(update={"sizes": tuple(blocks), "min_size": 0, "max_size": None})

    @classmethod
    def each_list_once(cls, pools: tuple[BasePool, ...], geometry: Geometry) -> tuple[BasePool, ...]:
        """Leave lists of the same blocks to "up_to", else to the first quick pool; one that keeps none goes."""
        covered = 0
        for index, pool in enumerate(pools):
            if isinstance(pool, cls) and pool.up_to is not None:
                [covered] = capacities_below([pool.up_to], pools[index + 1 :], geometry)
        taken: set[int] = set()
        kept: list[BasePool] = []
        for pool in pools:
            if isinstance(pool, cls) and pool.sizes is not None:
                sizes = tuple(size for size in pool.sizes if size > covered and size not in taken)
                taken.update(sizes)
                kept += [pool.model_copy(update={"sizes": sizes})] if sizes else []
            else:
                kept.append(pool)
        return tuple(kept)

    # ---- words

    def summary(self) -> str:
        sizes = f"up to {self.up_to}" if self.sizes is None else sizes_summary(self.sizes)
        info = (
            (self.lists_per_octave, f"{self.lists_per_octave} an octave"),
            (self.keep != "all", f"kept {self.keep}"),
            (self.limit_blocks, f"limit {self.limit_blocks} blocks"),
            (self.flush != "before-refusing", f"flush {self.flush}"),
            (self.gives_back_idle, f"each {self.idle_share:.4g}"),
            (self.gives_back_idle and self.release_most != RELEASE_MOST, self._release_summary()),
            (self.refill, f"up to {self.refill} cut at a time"),
            (self.flush_from, f"flush for {self.flush_from} B"),
        )
        return " ".join([f"quick {sizes}", *(words for holds, words in info if holds)]) + self.range_summary()

    def _release_summary(self) -> str:
        return f"{self.release_most} at a time" if self.release_most else "all at once"

    def title(self) -> str:
        return f"lists to {self.up_to}" if self.sizes is None else f"lists {sizes_title(self.sizes)}"

    @property
    def is_bounded(self) -> bool:
        return not self.flush_from and bool(self.limit_blocks)

    @property
    def doubt(self) -> str | None:
        if self.flush_from or (self.gives_back_idle and self.idle_share <= WAITING_SHARE):
            return None
        if self.limit_blocks is not None and self.limit_blocks <= WAITING_BLOCKS:
            return None
        return "freed blocks wait in its lists while the heap grows"

    # ---- the least

    @classmethod
    def least_accesses(cls, laid_out: Any, sizes: Sizes) -> tuple[Sizes, int]:
        """Only what may have a list is served by one, of which some keep account; what idles in any is served, too."""
        import numpy as np

        quick = laid_out.quick
        idles = quick.flush == lib.HW_FLUSH_IDLE
        if quick.by_size or idles:
            held = sizes <= (quick.up_to - quick.block_header if quick.by_size else quick.largest)
        else:
            lists = range(quick.count)
            least, most = (np.array([of[at] for at in lists]) for of in (quick.least, quick.sizes))
            held = ((sizes[:, np.newaxis] >= least) & (sizes[:, np.newaxis] <= most)).any(axis=1)
        account = 0 if idles else _account(quick.limit_blocks)
        return np.where(held, 3 + account, NEVER), 3

    # ---- the arena

    @property
    def flushes_before_growing(self) -> bool:
        return self.flush in ("before-growing", "idle")

    @property
    def gives_back_idle(self) -> bool:
        return self.flush == "idle"

    @property
    def refills(self) -> bool:
        return self.refill > 0

    @property
    def rounds_requests(self) -> bool:
        return self.lists_per_octave > 0

    def rounded_blocks(self, laid_out: Any, sizes: Sizes, blocks: Sizes) -> Sizes:
        """The blocks of requests, rounded up to the blocks of their lists."""
        import numpy as np

        if not self.lists_per_octave:
            return blocks
        unit = 1 << int(laid_out.quick.block_unit_shift)
        distinct, which = np.unique(blocks, return_inverse=True)
        of_lists = np.array([_class_block(int(block), self.lists_per_octave, unit) for block in distinct])
        return np.where(sizes <= int(laid_out.quick.largest), of_lists[which], blocks)

    def serves_empty(self, values: Mapping[str, Any]) -> bool:
        return bool(round_up(values["block_header"] + 1, 1 << values["block_unit_shift"]) <= values["block_least"])

    def has_pairs(self, values: Mapping[str, Any]) -> bool:
        return bool(values["marks"])

    def control(self, layout: lay.Layout, lists: int) -> tuple[lay.Field, ...]:
        """Control data of `lists` lists in the arena, in the order of memory."""
        link = layout.link_bytes
        limited = self.limit_blocks is not None
        return (
            lay.Field("heads_at", lists * link * (2 if self.gives_back_idle else 1), link),
            lay.Field("counts_at", 4 * lists, 4, present=limited),
            lay.Field("left_at", 4, present=self.gives_back_idle),
            lay.Field("refills_at", lists, 1, present=self.refill > 0),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        lists = self.lists(layout, below)
        smallest = min(lists["sizes"], default=lists["block_least"] - lists["block_header"])
        return {
            **lists,
            "marks": int(layout.checks != "none" and smallest >= 2 * layout.link_bytes),
            **layout.place(self.control(layout, lists["count"])),
        }

    def lists(self, layout: lay.Layout, below: Sequence[BasePool]) -> dict[str, Any]:
        """What it caches above other pools, and how it finds the list."""
        geometry = layout.geometry
        owners = [other for other in below if other.owns_blocks]
        header, unit, least, powers, mixed = owners[0].block_shape(geometry, len(owners) > 1)
        if self.sizes is None:
            assert self.up_to is not None
            up_to = owners[0].capacity(self.up_to, geometry) + header
            sizes: list[int] = []
            number = 0
            up_to = _class_block(up_to, self.lists_per_octave, unit)
            count = log2(up_to // least) + 1 if powers else (up_to - least) // unit + 1
            if self.lists_per_octave:
                number = _class_number(least, self.lists_per_octave, unit)
                count = _class_number(up_to, self.lists_per_octave, unit) - number + 1
        else:
            number, up_to = 0, 0
            sizes = list(dict.fromkeys(owners[0].capacity(size, geometry) for size in self.sizes))
            count = len(sizes)
        first = max(round_up(header, unit), least)  # the block of a request of 0 bytes
        first = power_above(first) if powers else first

        def before(size: int) -> int:
            """The size of blocks below this one."""
            return size // 2 if powers else size - unit

        return {
            "links": layout.links(),
            "count": count,
            "by_size": int(self.sizes is None),
            "up_to": up_to,
            "sizes": sizes,
            "limit_blocks": self.limit_blocks or 0,
            "flush": FLUSHES[self.flush],
            "flush_from": self.flush_from,
            "idle_share": _steps(self.idle_share) if self.gives_back_idle else 0,
            "release_most": self.release_most if self.gives_back_idle else 0,
            "refill": self.refill if self.gives_back_idle else 0,
            "octave_log2": log2(self.lists_per_octave) if self.lists_per_octave else 0,
            "first": number,
            "ranks": (ranks := _ranks(self.lists_per_octave, unit, least, up_to, header)),
            "tabled": int(bool(ranks)),
            "apart": int(self.keep == "apart"),
            "mixed": int(mixed),
            "least": [0 if size <= first - header else before(size + header) - header + 1 for size in sizes],
            "largest": max(sizes, default=up_to - header),
            "align": layout.align,
            "block_header": header,
            "block_unit_shift": log2(unit),
            "block_doubles": int(powers),
            "block_least": least,
        }

    # ---- bounds

    def hit(self, values: Mapping[str, Any]) -> int:
        """Accesses to take a block from a list."""
        account = _account(values["limit_blocks"])
        return 3 * width(values["links"]["field"]) + account

    def push(self, values: Mapping[str, Any]) -> int:
        """Accesses to put a block into a list."""
        return 1 + self.hit(values)

    def rounding(self, values: Mapping[str, Any]) -> int:
        octave = int(values["octave_log2"])  # a step of the last octave
        return (1 << max(int(values["up_to"]).bit_length() - 1 - octave, 0)) - 1 if octave else 0

    @property
    def spreads(self) -> bool:
        """Whether a call gives back a few blocks only, but for one that would be refused."""
        return self.gives_back_idle and self.release_most > 0 and not self.flush_from

    def turn(self, values: Mapping[str, Any], release: int) -> int:
        """Accesses to go on with a turn, of the request for which it is looked whether it is time, or the heap grows.

        What is added is the word that says so, the look at what idles, and how large the heap is for the next turn.
        """
        looked_at = lib.HW_TURN_LISTS * (4 * width(values["links"]["field"]) + (2 if self.refill else 0))
        release += 1 if self.refill else 0
        return 6 + self.hit(values) + int(values["release_most"]) * (self.hit(values) + release) + looked_at

    def refilling(self, values: Mapping[str, Any], malloc: int) -> int:
        """Accesses to cut as many blocks as a miss may, where a malloc of the pool below takes `malloc`."""
        if not self.refill:
            return 0
        each = 2 * width(values["links"]["field"]) + 8  # also the mark, the word and the tag
        return 2 * malloc + 8 + self.refill * each

    def empty(self, values: Mapping[str, Any], lists: int, release: int) -> int:
        """Accesses to empty `lists` lists, and to see that they are; `release` is what giving back a block takes."""
        kept = values["limit_blocks"]
        if not kept:
            raise UnboundedError("a flush empties lists of any length, at the latest before a request is refused")
        each = self.hit(values) + release
        return 6 + int(lists) * (int(kept) * each + width(values["links"]["field"]))

    # ---- what is attacked and proved

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        yield from values["sizes"] or range(0, (self.up_to or 0) + 1, values["align"])
        yield from values["least"]
        yield from (values["largest"], self.flush_from)


def _steps(share: float) -> int:
    return round(share * FLUSH_STEPS)


def _class_block(block: int, per_octave: int, unit: int) -> int:
    """The size of blocks of the list for such blocks, with `per_octave` lists between two powers of two."""
    if not per_octave or block <= 2 * per_octave * unit:
        return block
    return round_up(block, (1 << ((block - 1).bit_length() - 1)) // per_octave)


def _in_classes(pool: Quick, capacity: int, below: Sequence[BasePool], geometry: Geometry) -> int:
    """The payload bytes of the list for blocks of this capacity."""
    header, unit = next(other for other in below if other.owns_blocks).block_shape(geometry, False)[:2]
    return _class_block(capacity + header, pool.lists_per_octave, unit) - header


def _class_number(block: int, per_octave: int, unit: int) -> int:
    """The number of the list for such blocks, counted from blocks of one unit: `quick_class` of pool_quick.h."""
    last, shift = block - 1, log2(per_octave)
    step = max(last, per_octave * unit).bit_length() - 1 - shift
    return (last >> step) + ((step - log2(unit)) << shift)


def _ranks(per_octave: int, unit: int, least: int, up_to: int, header: int) -> list[int]:
    """1 + the list of the largest blocks up to each number of units, 0 below the smallest; empty if it is computed."""
    if not per_octave or not header or up_to // unit >= lib.HW_CACHE_UNITS:
        return []
    first, result = _class_number(least, per_octave, unit), [0] * (up_to // unit + 1)
    for units in range(least // unit, len(result)):
        block = units * unit
        number = _class_number(block, per_octave, unit) - first
        result[units] = number + (_class_block(block, per_octave, unit) == block)
    return result


def _account(limited: int) -> int:
    """Accesses for the account that is kept of what is cached."""
    return 2 if limited else 0


@lru_cache(maxsize=65536)
def _canonical(pool: Quick, below: tuple[BasePool, ...], geometry: Geometry) -> Quick:
    changes = pool.request_range()
    if pool.sizes is not None:
        cached = set(capacities_below(filter(pool.takes, pool.sizes), below, geometry))
        changes |= {"sizes": tuple(sorted(cached)), "min_size": 0, "max_size": None}
    elif pool.up_to is not None:
        [capacity] = capacities_below([pool.up_to], below, geometry)
        if pool.lists_per_octave:
            capacity = _in_classes(pool, capacity, below, geometry)
        changes["up_to"] = min(capacity, MAX_UP_TO)
        if pool.max_size is not None and pool.max_size >= pool.up_to:
            changes["max_size"] = None
    changes["idle_share"] = _steps(pool.idle_share) / FLUSH_STEPS if pool.gives_back_idle else IDLE_SHARE
    changes["release_most"] = pool.release_most if pool.gives_back_idle else RELEASE_MOST
    return pool.model_copy(update=changes)
