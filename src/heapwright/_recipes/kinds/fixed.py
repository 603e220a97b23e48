"""Fixed pools: classes of blocks of one size each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import mul, or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, BlockShape, Size, sizes_summary, sizes_title
from heapwright._recipes.kinds.bounds import NEVER, OWNED, AccessBounds, UnboundedError, WorstCase, rounded, width
from heapwright._recipes.limits import MAX_CLASSES, MAX_REQUEST
from heapwright._recipes.model import field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes


MAPPED_FROM = 4
"""Classes with counts from which on maps give the class: fewer are compared as fast one by one."""

MAP_STEPS_A_CLASS = 16
"""Most bytes of a region's map for each class, up to `HW_MAP_STEPS`: one address in 32 then needs a second look."""


class Fixed(BasePool):
    """Classes of blocks of one size each."""

    number: ClassVar[int] = lib.HW_FIXED
    word: ClassVar[str] = "word"

    kind: Literal["fixed"] = "fixed"
    sizes: tuple[Size, ...] = field(
        strict=False, min_length=1, max_length=MAX_CLASSES, description="payload bytes of each class"
    )
    counts: Literal["grow"] | Annotated[tuple[Size, ...], field(strict=False)] = field(
        default="grow", description='blocks of each class, or "grow"'
    )
    header: int = field(default=0, ge=0, le=16, description="bytes before the payload")
    find: Literal["freelist", "first-fit"] = field(default="freelist", description="how a free block is found")
    fall_through: bool = field(default=False, description="an exhausted class borrows from the next larger ones")
    page: int = field(default=0, ge=0, le=MAX_REQUEST, description="bytes carved at a time when growing; 0: one block")

    # ---- sizes

    def largest_served(self, geometry: Geometry) -> int:
        return round_up(max(self.sizes), geometry.align)

    def largest_on_fast_path(self, geometry: Geometry) -> int:
        return self.largest_served(geometry) if self._is_mapped else super().largest_on_fast_path(geometry)

    # ---- rules

    @classmethod
    def crowding(cls, pools: Sequence[BasePool]) -> Iterator[tuple[int, str]]:
        growing = [index for index, pool in enumerate(pools) if isinstance(pool, cls) and pool.counts == "grow"]
        if len(growing) > 1:
            yield growing[1], f"pool {growing[0] + 1} already grows; put the sizes of both into one fixed pool"

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        classes = [round_up(size, geometry.align) for size in self.sizes]
        if len(set(classes)) < len(classes):
            twice = max(size for size in classes if classes.count(size) > 1)
            yield f'"sizes": two classes have {twice} bytes at align {geometry.align}; valid: each class once'
        if self.min_size > max(self.sizes):
            yield f'"min_size" {self.min_size} is above the largest class, {max(self.sizes)}; it would take no request'
        if self.find == "freelist" and min(classes) < geometry.link_bytes:
            least = geometry.link_bytes
            yield f'"sizes": a free block of {min(classes)} bytes cannot hold its link; valid: {least} and more'
        elif self.counts == "grow" and min(classes) < geometry.link_bytes:
            # a hardened link to the last block before the arena's end would be one that leads outside
            least = geometry.link_bytes
            yield f'"sizes": growing blocks of {min(classes)} bytes are smaller than a link; valid: {least} and more'
        if self.counts == "grow":
            yield from self._growth_contradictions(pools[-1], geometry)
        elif len(self.counts) != len(self.sizes):
            yield f'"counts" has {len(self.counts)} numbers for {len(self.sizes)} sizes; valid: as many, or "grow"'
        elif self.page:
            yield '"page" needs "counts" "grow"; classes with counts are laid out once'

    def _growth_contradictions(self, last: BasePool, geometry: Geometry) -> Iterator[str]:
        if self.header == 0:
            yield '"counts" "grow" needs a "header" that names the class of a block; valid: 1 to 16'
        elif self.find == "first-fit" and self.header < 4 + geometry.link_bytes:
            yield (
                f'"find" "first-fit" chains growing blocks through a "header" of {self.header}; '
                f"valid: {4 + geometry.link_bytes} to 16"
            )
        shared = last.shared_header
        if shared is not None and shared != self.header:
            yield (
                f'"header" {self.header} differs from the {shared} of the {last.kind_name} pool it shares the arena '
                f"with; valid: {shared}, or another header there"
            )
        if last.grows_descriptors:
            yield (
                f"both its blocks and the descriptors of the {last.kind_name} pool would grow from the end of the "
                'arena; valid: one of them with "counts"'
            )

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Fixed:
        return _canonical(self, geometry)

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Fixed:
        blocks = [self.capacity(size, geometry) for size in self.sizes]
        sizes = tuple(dict.fromkeys(blocks))
        if self.counts == "grow":
            return self.model_copy(update={"sizes": sizes})
        counts = dict.fromkeys(sizes, 0)
        for size, count in zip(blocks, self.counts, strict=True):
            counts[size] += count
        return self.model_copy(update={"sizes": sizes, "counts": tuple(counts.values())})

    # ---- words

    def summary(self) -> str:
        counts = "growing" if self.counts == "grow" else f"counts {sizes_summary(self.counts)}"
        page = f" by pages of {self.page}" if self.page else ""
        words = [f"fixed {sizes_summary(self.sizes)} {counts}{page} {self.find}"]
        words += [f"header {self.header}"] if self.header else []
        words += ["falling through"] if self.fall_through else []
        return ", ".join(words) + self.range_summary()

    def title(self) -> str:
        return f"blocks of {sizes_title(self.sizes)}"

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return self.header

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return round_up(min(self.sizes) + self.header, align)

    @property
    def is_bounded(self) -> bool:
        return self.find == "freelist"

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        return self.counts == "grow"

    @property
    def carves_from_end(self) -> bool:
        return self.counts == "grow"

    @property
    def moves_bounds(self) -> bool:
        return self.counts == "grow"

    @property
    def takes_from_end(self) -> bool:
        return self.counts == "grow"

    @property
    def end_header(self) -> int:
        return self.header if self.counts == "grow" else 0

    @property
    def classes(self) -> tuple[int, ...]:
        return () if self.counts == "grow" else self.sizes

    def with_classes(self, sizes: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
        return {"sizes": list(sizes), "counts": list(counts)}

    def serves_empty(self, values: Mapping[str, Any]) -> bool:
        return True

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        shape = super().block_shape(geometry, others)
        return shape._replace(mixed=others or min(self.sizes) < shape.least)

    def control(self, layout: lay.Layout) -> tuple[lay.Field, ...]:
        """What it keeps in the arena behind the flags of its blocks, in the order of memory."""
        count, link, grow = len(self.sizes), layout.link_bytes, self.counts == "grow"
        first_fit = self.find == "first-fit"
        return (
            lay.Field("heads_at", count * link, link, present=grow or not first_fit),
            lay.Field("carved_at", 4 * count, 4, present=not grow),
            lay.Field("tails_at", count * link, link, present=grow and first_fit),
            lay.Field("end_at", 4, present=grow, absent=layout.heap["shared_limit_at"]),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        links = layout.links()
        grow = self.counts == "grow"
        first_fit = self.find == "first-fit"
        if grow and first_fit and self.header % layout.link_bytes:  # the chain runs through the headers
            links["field"]["natural"] = 0
        counts = [] if isinstance(self.counts, str) else list(self.counts)
        flags = first_fit or layout.checks != "none"
        flags_at = [layout.take(blocks, 1, "flags_at") for blocks in counts] if flags else []  # a byte a block
        return {
            "links": links,
            "word": layout.word(self.header),
            "count": len(self.sizes),
            "sizes": list(self.sizes),
            **_doubling(self.sizes),
            "counts": counts,
            "grow": int(grow),
            "page": self.page,
            "header": self.header,
            "trailer": layout.geometry.guard,
            "first_fit": int(first_fit),
            "flags": int(flags),
            "fall_through": int(self.fall_through),
            "align": layout.align,
            "flags_at": flags_at,
            "mapped": int(self._is_mapped),
            **self._size_map(),
            "limit_at": layout.heap["shared_limit_at"] if grow else 0,
            "high_at": layout.heap["shared_high_at"] if grow else 0,
            **layout.place(self.control(layout)),
        }

    def place_region(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.counts == "grow":
            return
        values["blocks_at"] = []
        for size, count in zip(values["sizes"], values["counts"], strict=True):
            values["blocks_at"].append(layout.align_payload(self.header, layout.align))
            layout.cursor += count * round_up(size + self.header + values["trailer"], layout.align)
        values["end"] = layout.cursor
        values |= self._region_map(values["blocks_at"], values["end"])

    @property
    def _is_mapped(self) -> bool:
        return self.counts != "grow" and len(self.sizes) >= MAPPED_FROM

    def _size_map(self) -> dict[str, Any]:
        """How the class of a request is found; the canonical form has sorted the sizes."""
        sizes = self.sizes
        if not self._is_mapped or _doubling(sizes)["doubles"]:
            return {"size_step": 0, "size_even": 0, "size_map": []}
        step, even = _step(sizes[:-1], sizes[-1], lib.HW_MAP_STEPS)
        least = [0, *range(1, sizes[-1] + 1, 1 << step)]
        return {"size_step": step, "size_even": int(even), "size_map": [bisect_left(sizes, size) for size in least]}

    def _region_map(self, blocks_at: Sequence[int], end: int) -> dict[str, Any]:
        """How the class of an address is found."""
        if not self._is_mapped:
            return {"region_step": 0, "region_even": 0, "region_map": [], "ends_at": []}
        starts, size = [at - blocks_at[0] for at in blocks_at], end - blocks_at[0]
        step, even = _step(starts, size, min(lib.HW_MAP_STEPS, MAP_STEPS_A_CLASS * len(starts)))
        return {
            "region_step": step,
            "region_even": int(even),
            "region_map": [bisect_right(starts, at) - 1 for at in range(0, size, 1 << step)],
            "ends_at": [*blocks_at[1:], end],
        }

    def place_shared(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.counts == "grow":  # blocks carved from the end may reach this far
            layout.align_payload(self.header, layout.align)

    def region_bytes(self, geometry: Geometry) -> int:
        if self.counts == "grow":
            return 0
        strides = (round_up(size + self.header + geometry.guard, geometry.align) for size in self.sizes)
        return sum(count * stride for count, stride in zip(self.counts, strides, strict=True))

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        word, link, grows = width(values["word"]), width(values["links"]["field"]), self.counts == "grow"
        if grows and self.find == "first-fit":
            raise UnboundedError("first fit walks a class's chain of blocks of any length")
        tried = len(self.sizes) if self.fall_through else 1
        free = OWNED + word + 3 * link + 1
        if not isinstance(self.counts, str):
            flags = (sum(self.counts) if tried > 1 else max(self.counts)) if self.find == "first-fit" else 0
            return AccessBounds(flags + tried * (3 * link + 4), free)
        carved = max(1, *(self.page // max(1, size + self.header) for size in self.sizes), 1)
        return AccessBounds(2 * tried * 3 * link + 3 + carved * (word + 3 * link) + 3 * link, free)

    def worst_cases_of(self, laid_out: Any, classes: Sequence[tuple[int, int, int]]) -> Iterator[WorstCase]:
        """The bytes of blocks for objects of which ``count`` of each class are live at once, each of least to most.

        Exact for the blocks that it has: any order of such objects is served if every class of blocks has one for each
        object that may come to it, and else some order fails. ``classes``: (count, least, most) of each.
        """
        if self.fall_through:  # what has borrowed a larger block keeps it from a larger object
            return
        fixed = laid_out.fixed
        sizes = [int(fixed.sizes[at]) for at in range(len(self.sizes))]
        needed = [0] * len(sizes)
        for count, least, most in classes:
            if most > sizes[-1]:
                return
            for at in range(bisect_left(sizes, least), bisect_left(sizes, most) + 1):
                needed[at] += count
        strides = [round_up(size + self.header + int(fixed.trailer), int(fixed.align)) for size in sizes]
        if self.counts == "grow":
            carved = [-(-self.page // stride) if self.page else 1 for stride in strides]
            blocks = zip(needed, carved, strict=True)
            counts = [round_up(count, page) if count else 0 for count, page in blocks]
            yield WorstCase(sum(map(mul, counts, strides)), "blocks of each class")
        elif all(count <= self.counts[at] for at, count in enumerate(needed)):
            yield WorstCase(0, "a block for each object")

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return bool(laid_out.fixed.grow)

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        fixed = laid_out.fixed
        return None if fixed.grow else int(sum(fixed.counts[index] for index in range(fixed.count)))

    @classmethod
    def own_bytes(cls, laid_out: Any) -> int:
        fixed = laid_out.fixed
        if fixed.grow:
            return 0
        strides = [round_up(fixed.sizes[at] + fixed.header + fixed.trailer, fixed.align) for at in range(fixed.count)]
        return int(sum(stride * fixed.counts[at] for at, stride in enumerate(strides)))

    @classmethod
    def own_region(cls, laid_out: Any) -> tuple[int, int] | None:
        fixed = laid_out.fixed
        return None if fixed.grow else (int(fixed.blocks_at[0]), int(fixed.end))

    @classmethod
    def least_accesses(cls, laid_out: Any, sizes: Sizes) -> tuple[Sizes, int]:
        import numpy as np

        fixed = laid_out.fixed
        requests, frees = (2, 1) if fixed.first_fit else (3, 3)  # a flag is enough
        return np.where(cls.least_blocks(laid_out, sizes) < NEVER, requests, NEVER), frees

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        import numpy as np

        fixed = laid_out.fixed
        classes = np.sort(np.array([fixed.sizes[at] for at in range(fixed.count)], np.int64))
        strides = rounded(classes + fixed.header + fixed.trailer, fixed.align)
        return np.append(strides, NEVER)[np.searchsorted(classes, sizes)]

    # ---- what is attacked and proved

    @property
    def is_listed(self) -> bool:
        return self.counts == "grow" or self.find == "freelist"

    @property
    def has_header(self) -> bool:
        return self.header > 0

    @property
    def has_marks(self) -> bool:
        return True

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        yield from self.sizes

    def merges(self, align: int) -> bool:
        return self.counts != "grow"

    @property
    def covers(self) -> bool:
        return self.counts != "grow"

    def serves(self, align: int) -> str:
        return "0" if len(self.sizes) > 1 else super().serves(align)

    def marks(self, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        if not values["grow"]:
            yield values["carved_at"], 4 * values["count"]

    @property
    def walks_pages(self) -> bool:
        return self.page > 0


def _step(bounds: Sequence[int], end: int, most: int) -> tuple[int, bool]:
    """Log2 of the step in which at most `most` steps cover 0 to `end`, and whether all bounds are multiples of it.

    It is the largest such one where that is enough.
    """
    least = (-(-end // most) - 1).bit_length()
    common = reduce(or_, bounds)
    even = (common & -common).bit_length() - 1
    return max(least, even), even >= least


def _doubling(sizes: Sequence[int]) -> dict[str, int]:
    """Whether sizes are powers of two one after the other, from 2 on, but for the bytes that each lacks."""
    lacks = sizes[1] - 2 * sizes[0] if len(sizes) > 1 else -1
    least = sizes[0] + lacks
    doubles = lacks >= 0 and least > 1 and least & (least - 1) == 0
    if not doubles or any(size + lacks != least << place for place, size in enumerate(sizes)):
        return {"doubles": 0, "lacks": 0}
    return {"doubles": 1, "lacks": lacks}


@lru_cache(maxsize=65536)
def _canonical(pool: Fixed, geometry: Geometry) -> Fixed:
    classes = [round_up(size, geometry.align) for size in pool.sizes]
    changes: dict[str, Any] = {"sizes": tuple(sorted(classes))}
    if pool.counts != "grow":
        changes["counts"] = tuple(count for _, count in sorted(zip(classes, pool.counts, strict=True)))
    if len(classes) == 1:
        changes["fall_through"] = False
    if pool.page < 2 * round_up(pool.header + min(classes) + geometry.guard, geometry.align):
        changes["page"] = 0
    if pool.max_size is not None and pool.max_size >= max(classes):
        changes["max_size"] = None
    return pool.model_copy(update=pool.request_range() | changes)
