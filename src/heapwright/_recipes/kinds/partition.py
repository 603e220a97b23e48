"""Partition pools: groups of contiguous partitions of one size, with their descriptors outside the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, BlockShape, Size
from heapwright._recipes.kinds.bounds import AccessBounds, UnboundedError, width
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST
from heapwright._recipes.model import field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

MAX_GROUP_LISTS = 32
"""The bitmap of the lists of free groups is one word."""

DESCRIPTOR_FIELDS = 4
"""Numbers in the descriptor of a group of partitions: how many, where it starts, and two links."""


class Partition(BasePool):
    """Groups of contiguous partitions of one size, with their descriptors outside the data."""

    number: ClassVar[int] = lib.HW_PARTITION
    word: ClassVar[str] = "field"

    kind: Literal["partition"] = "partition"
    size: int = field(default=512, ge=1, le=2**20, description="bytes of a partition")
    count: Literal["grow"] | Size = field(default="grow", description='number of partitions, or "grow"')
    descriptor_bytes: int = field(default=32, ge=4, le=256, description="bytes of a partition's descriptor")
    lists: int = field(
        default=1,
        ge=1,
        le=MAX_GROUP_LISTS,
        description="lists of free groups, one a number of partitions; the last holds all larger ones",
    )
    order: Literal["address", "lifo", "size"] = field(default="address", description="order of the free groups")
    fit: Literal["first", "best"] = field(default="first", description="which free group is taken")
    coalesce: Literal["immediate", "never"] = field(default="immediate", description="when free groups merge")

    # ---- sizes

    def largest_served(self, geometry: Geometry) -> int:
        if self.count == "grow":
            return MAX_REQUEST
        return min(self.count * round_up(self.size, geometry.align) - geometry.guard, MAX_REQUEST)

    def capacity(self, size: int, geometry: Geometry) -> int:
        return round_up(size + geometry.guard, round_up(self.size, geometry.align)) - geometry.guard

    # ---- rules

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        link_bytes = geometry.link_bytes
        least = DESCRIPTOR_FIELDS * link_bytes
        if self.descriptor_bytes < least:
            yield (
                f'"descriptor_bytes" {self.descriptor_bytes} cannot hold count, start and two links of '
                f"{link_bytes} bytes; valid: {least} or more"
            )
        above = next((other.kind_name for other in pools[:index] if not other.owns_blocks), None)
        if self.size < link_bytes and above:
            yield f'"size" {self.size} cannot hold the link of a {above} pool above; valid: {link_bytes} and more'
        if self.count == "grow":
            if index + 1 < len(pools):
                yield 'shares the rest of the arena and must be the last pool; move it there or give it a "count"'
            return
        most = (1 << (8 * link_bytes - 1)) - 1
        if self.count > most:
            yield f'"count" {self.count} is more than links of {link_bytes} bytes can number; valid: up to {most}'
        largest = self.largest_served(geometry)
        if self.min_size > largest:
            yield f'"min_size" {self.min_size} is above what all partitions hold, {largest}; it would take no request'

    @property
    def odd_blocks(self) -> str:
        return f"the partitions below it have {self.size} bytes" if self.size & (self.size - 1) else ""

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Partition:
        return _canonical(self, geometry)

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Partition:
        return self.model_copy(update={"size": self.capacity(self.size, geometry)})

    # ---- words

    def summary(self) -> str:
        words = [f"partitions of {self.size} B"]
        words += ["growing" if self.count == "grow" else f"count {self.count}"]
        words[0] += f" {self.order}/{self.fit}-fit"
        words += [f"{self.lists} lists"] if self.lists > 1 else []
        words += [f"descriptors of {self.descriptor_bytes} B"] if self.descriptor_bytes != 32 else []
        words += [f"coalesce {self.coalesce}"] if self.coalesce != "immediate" else []
        return ", ".join(words) + self.range_summary()

    def title(self) -> str:
        return f"partitions of {self.size}"

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return self.descriptor_bytes

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return self.size

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        return self.count == "grow"

    @property
    def takes_from_end(self) -> bool:
        return self.count == "grow"

    @property
    def grows_descriptors(self) -> bool:
        return self.count == "grow"

    @property
    def classes(self) -> tuple[int, ...]:
        return () if self.count == "grow" else (self.size,)

    def with_classes(self, sizes: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
        return {"size": sizes[0], "count": counts[0]}

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        return BlockShape(geometry.guard, self.size, self.size, powers=False, mixed=others)

    def control(self, layout: lay.Layout) -> tuple[lay.Field, ...]:
        """What it keeps in the arena, in the order of memory; counted partitions have no end but their own."""
        grow = self.count == "grow"
        shared = layout.heap["shared_high_at"]
        return (
            lay.Field("head_at", 4 * self.lists),
            lay.Field("bitmap_at", 4, present=self.lists > 1),
            lay.Field("top_at", 4),
            lay.Field("high_at", 4, present=not grow, absent=shared),
            lay.Field("end_at", 4, present=grow),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        width = layout.link_bytes
        grow = self.count == "grow"
        aligned = self.descriptor_bytes % width == 0 and (not grow or layout.align % width == 0)
        reach = MAX_REACH // self.size if self.count == "grow" else self.count
        return {
            "field": {"bytes": width, "natural": int(aligned)},
            "partition": self.size,
            "most": min(reach, (1 << (8 * width - 1)) - 1),
            "grow": int(grow),
            "descriptor": self.descriptor_bytes,
            "trailer": layout.geometry.guard,
            "lists": self.lists,
            "order": lay.ORDERS[self.order],
            "fit": lay.FITS[self.fit],
            "coalesce": lay.COALESCE[self.coalesce],
            "checks": lay.CHECKS[layout.checks],
            "misused_at": layout.heap["misused_at"],
            "limit_at": layout.heap["shared_limit_at"] if grow else 0,
            **layout.place(self.control(layout)),
        }

    def place_region(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.count != "grow":
            values["descriptors"] = layout.take(self.count * self.descriptor_bytes, layout.link_bytes)
            values["start"] = layout.take(self.count * self.size, layout.align)
            values["end"] = layout.cursor

    def place_shared(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.count == "grow":
            values["start"] = layout.take(0, layout.align)

    def region_bytes(self, geometry: Geometry) -> int:
        return 0 if self.count == "grow" else self.count * self.size

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        number = width(values["field"])
        if self.count == "grow":
            raise UnboundedError("a search walks a list of free groups of any length")
        walked = self.count * 2 * number
        each = 20 * number + 20
        return AccessBounds(walked + each, walked + 2 * each)

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return bool(laid_out.partition.grow)

    @classmethod
    def largest_arena(cls, struct: Any, laid_out: Any) -> int:
        group = laid_out.partition
        return int(min(struct.reach, struct.fixed_end + group.most * (group.partition + group.descriptor)))

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        group = laid_out.partition
        return None if group.most >= MAX_REACH // group.partition else int(group.most)

    @classmethod
    def own_bytes(cls, laid_out: Any) -> int:
        group = laid_out.partition
        return 0 if group.grow else int(group.most * (group.partition + group.descriptor))

    @classmethod
    def own_region(cls, laid_out: Any) -> tuple[int, int] | None:
        group = laid_out.partition
        return None if group.grow else (int(group.descriptors), int(group.end))

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        group = laid_out.partition
        size, descriptor, trailer = int(group.partition), int(group.descriptor), int(group.trailer)
        return -(-(sizes + trailer) // size) * (size + descriptor)

    # ---- what is attacked and proved

    @property
    def has_marks(self) -> bool:
        return True

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        yield from (self.size * count for count in (1, 2, 3, 4, self.lists, self.lists + 1))

    def merges(self, align: int) -> bool:
        return self.coalesce != "never"

    @property
    def covers(self) -> bool:
        return False


@lru_cache(maxsize=65536)
def _canonical(pool: Partition, geometry: Geometry) -> Partition:
    changes: dict[str, Any] = {"size": round_up(pool.size, geometry.align)}
    if pool.count != "grow":
        changes["lists"] = min(pool.lists, pool.count)
    if pool.order == "size":  # the first group that is large enough is the smallest
        changes["fit"] = "first"
    return pool.model_copy(update=pool.request_range(pool.largest_served(geometry)) | changes)
