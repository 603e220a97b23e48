"""Buddy pools: blocks whose sizes are powers of two, split into and merged from halves (Knuth, TAOCP 1, 2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2, power_above, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, BlockShape, region_contradictions
from heapwright._recipes.kinds.bounds import AccessBounds, BlockLoad, UnboundedError, WorstCase, powers, width
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST
from heapwright._recipes.model import field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

NO_ORDER = (
    '"header" 0: free reads the order of a block from its header, and its payload is the program\'s; valid: 1 to 16'
)


class Buddy(BasePool):
    """Blocks whose sizes are powers of two, split into and merged from halves."""

    number: ClassVar[int] = lib.HW_BUDDY
    hints: ClassVar[Mapping[tuple[str, int], str]] = {("header", 0): NO_ORDER}
    word: ClassVar[str] = "word"

    kind: Literal["buddy"] = "buddy"
    min_block: int = field(default=16, ge=1, le=2**30, description="smallest block with header, bytes; a power of two")
    max_block: int = field(
        default=0, ge=0, le=2**30, description="largest block, bytes; a power of two, 0: what the arena holds"
    )
    header: int = field(default=4, ge=1, le=16, description="bytes before the payload")
    region: int = field(default=0, ge=0, le=MAX_REQUEST, description="bytes of a region of its own; 0: shares the rest")

    # ---- sizes

    def least_block(self, geometry: Geometry) -> int:
        """Bytes of the smallest block that it may have: header and links, or a payload of one unit."""
        return power_above(self.header + max(2 * geometry.link_bytes, geometry.align + geometry.guard))

    def largest_block(self, geometry: Geometry) -> int:
        """Bytes of the largest block: as asked for, within its region and its links' reach."""
        reach = min(geometry.link_reach, MAX_REACH - 1)
        most = 1 << (min(self.region or reach, reach).bit_length() - 1)
        return min(self.max_block or most, most)

    def largest_served(self, geometry: Geometry) -> int:
        return self.largest_block(geometry) - self.header - geometry.guard

    def largest_request(self, geometry: Geometry) -> int:
        return self.largest_served(geometry)

    def capacity(self, size: int, geometry: Geometry) -> int:
        overhead = self.header + geometry.guard
        return max(power_above(size + overhead), self.min_block) - overhead

    # ---- rules

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        least = self.least_block(geometry)
        for key in ("min_block", "max_block"):
            value = getattr(self, key)
            if value & (value - 1):
                yield f'"{key}" {value} is not valid; valid: a power of two'
                return
        if self.min_block < least:
            yield f'"min_block" {self.min_block} cannot hold header and links; valid: {least} or a larger power of two'
            return
        if 0 < self.max_block < self.min_block:
            yield f'"max_block" {self.max_block} is below "min_block" {self.min_block}; valid: 0 (no bound), or more'
            return
        largest = self.largest_served(geometry)
        if self.min_size > largest:
            yield (
                f'"min_size" {self.min_size} is above what the largest block holds, {largest}; it would take no request'
            )
        yield from region_contradictions(self.region, pools, geometry, index, self.min_block)

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Buddy:
        return _canonical(self, geometry)

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Buddy:
        return self.model_copy(update={"min_block": max(self.min_block, self.least_block(geometry))})

    # ---- words

    def summary(self) -> str:
        words = [f"buddy from {self.min_block} B"]
        words += [f"to {self.max_block} B"] if self.max_block else []
        words = [" ".join(words)]
        words += [f"header {self.header}"] if self.header != 4 else []
        words += [f"region {self.region}"] if self.region else []
        return ", ".join(words) + self.range_summary()

    def title(self) -> str:
        return "buddies"

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return self.header

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return self.min_block

    @property
    def is_bounded(self) -> bool:
        return True

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        return self.region == 0

    @property
    def shared_header(self) -> int | None:
        return None if self.region else self.header

    @property
    def has_null_node(self) -> bool:
        return True

    def ends_on_words(self, align: int) -> bool:
        return self.header % 4 == 0

    def serves_empty(self, values: Mapping[str, Any]) -> bool:
        return True

    def has_pairs(self, values: Mapping[str, Any]) -> bool:
        return True

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        return BlockShape(self.header + geometry.guard, self.min_block, self.min_block, powers=True, mixed=others)

    def control(self, layout: lay.Layout) -> tuple[lay.Field, ...]:
        """What it keeps in the arena, in the order of memory."""
        orders, stride = self._orders(layout.geometry), self._stride(layout)
        return (
            lay.Field("top_at", 4),
            *layout.shared_bounds(self.region == 0),
            lay.Field("lists_at", orders * stride, max(layout.align, 4)),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        return {
            "links": layout.links(),
            "word": layout.word(self.header),
            "header": self.header,
            "trailer": layout.geometry.guard,
            "region": self.region,
            "checks": int(layout.checks != "none"),
            "min_block_log2": log2(self.min_block),
            "orders": self._orders(layout.geometry),
            "list_stride": self._stride(layout),
            **layout.place(self.control(layout)),
        }

    def _orders(self, geometry: Geometry) -> int:
        return log2(self.largest_block(geometry) // self.min_block) + 1

    def _stride(self, layout: lay.Layout) -> int:
        """Bytes from one list's head to the next: 2-byte links to the heads count in units, too."""
        link = layout.link_bytes
        return round_up(link, layout.align) if link == 2 else link

    def place_region(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.region:
            values["start"] = layout.align_payload(self.header, layout.align)
            layout.cursor += self.region

    def place_shared(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.region == 0:
            values["start"] = layout.align_payload(self.header, layout.align)

    def region_bytes(self, geometry: Geometry) -> int:
        return self.region

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        word, link, orders = width(values["word"]), width(values["links"]["field"]), values["orders"]
        listed, unlisted = word + 5 * link, 4 * link
        if self.max_block and not self.region:
            raise UnboundedError("a free at the top gives back any number of free blocks of the largest size before it")
        malloc = 10 + orders * link + unlisted + orders * listed + 2 * word
        largest = self.min_block << orders - 1
        steps = max(orders, self.region.bit_length()) + 1  # sizes tried for the block before the top
        lowered = (2 * orders + self.region // largest) * (steps * word + unlisted)
        return AccessBounds(malloc, 2 + word + orders * (word + unlisted) + max(listed, lowered))

    def worst_cases(self, laid_out: Any, load: BlockLoad, *, lists: bool, reallocs: bool) -> Iterator[WorstCase]:
        """(1 + log2 of largest / smallest) times what is live is never split and used up (Knuth 2.5, exercise 41).

        That is for a memory which is there from the start. One that grows block by block may have one more block of
        each size split than it would need: less than two largest blocks together.

        After any calls: of as many aligned blocks of the largest size as objects are live, one is free, since
        each other object lies in one of them. A block that the top cuts is one more.
        """
        if self.region:
            return
        yield WorstCase((load.others + 2) * load.largest, "buddies: a free one for each object")
        if lists or reallocs:
            return
        octaves = (load.largest // load.smallest).bit_length() - 1
        yield WorstCase((1 + octaves) * load.live + 2 * load.largest, "buddies: Knuth 2.5, ex. 41")

    def exact_blocks(self, laid_out: Any, sizes: Sizes, align: int) -> tuple[Sizes, int]:
        return self.least_blocks(laid_out, sizes), 1 << laid_out.buddy.min_block_log2

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return not laid_out.buddy.region

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        buddy = laid_out.buddy
        return int(buddy.region >> buddy.min_block_log2) if buddy.region else None

    @classmethod
    def own_bytes(cls, laid_out: Any) -> int:
        return int(laid_out.buddy.region)

    @classmethod
    def own_region(cls, laid_out: Any) -> tuple[int, int] | None:
        buddy = laid_out.buddy
        return (int(buddy.start), int(buddy.start + buddy.region)) if buddy.region else None

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        import numpy as np

        buddy = laid_out.buddy
        return powers(np.maximum(sizes + buddy.header + buddy.trailer, 1 << buddy.min_block_log2))

    # ---- what is attacked and proved

    @property
    def is_linked_both_ways(self) -> bool:
        return True

    @property
    def is_listed(self) -> bool:
        return True

    @property
    def has_header(self) -> bool:
        return True

    @property
    def tells_top(self) -> bool:
        return True

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        yield from ((1 << bits) - self.header for bits in range(self.min_block.bit_length() - 1, 32))

    def marks(self, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        if values["top_at"]:
            yield values["top_at"], 4


@lru_cache(maxsize=65536)
def _canonical(pool: Buddy, geometry: Geometry) -> Buddy:
    largest = pool.largest_block(geometry)
    unbounded = largest == pool.model_copy(update={"max_block": 0}).largest_block(geometry)
    changes: dict[str, Any] = {
        "max_block": 0 if unbounded else largest,
        "region": pool.region // pool.min_block * pool.min_block,
    }
    return pool.model_copy(update=pool.request_range(pool.largest_served(geometry)) | changes)
