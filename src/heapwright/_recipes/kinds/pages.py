"""Pages: pages of objects of one size without headers, which any class takes once they are empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, BlockShape, Size, sizes_summary, sizes_title, whole
from heapwright._recipes.kinds.bounds import NEVER, OWNED, AccessBounds, rounded, width
from heapwright._recipes.limits import MAX_CLASSES
from heapwright._recipes.model import Conversion, field

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

DESCRIPTION_BYTES = 8
"""Of a page, beside the bits of its free objects: class and objects in use, and two numbers of pages."""

MOST_PAGES = 0xFFFF
"""Numbers of pages have 2 bytes; 0 is none."""

PageBytes = Annotated[Literal[512, 1024, 2048, 4096], Conversion(whole)]


class Room(NamedTuple):
    """What a page holds: bytes for objects, words of bits behind them, and the bytes that a bit stands for."""

    room: int
    words: int
    unit: int


class Pages(BasePool):
    """Pages of objects of one size without headers, which any class takes once they are empty."""

    number: ClassVar[int] = lib.HW_PAGES
    word: ClassVar[str] = "word"
    starts_because: ClassVar[str] = "they lie at the far end as it is"

    kind: Literal["pages"] = "pages"
    page_bytes: PageBytes = field(default=1024, description="bytes of a page")
    sizes: tuple[Size, ...] | None = field(
        default=None,
        strict=False,
        min_length=1,
        max_length=MAX_CLASSES,
        description="payload bytes of each class",
    )
    up_to: int | None = field(
        default=None, ge=1, le=4096, description="payload bytes of the largest class, where classes are evenly spaced"
    )
    spacing: int = field(
        default=0, ge=0, le=4096, description="bytes from one such class to the next; 0: the alignment"
    )

    # ---- sizes

    def class_sizes(self, geometry: Geometry) -> tuple[int, ...]:
        """Payload bytes of each class, ascending: multiples of the alignment."""
        if self.up_to is None:
            return tuple(sorted({round_up(size, geometry.align) for size in self.sizes or ()}))
        step = round_up(max(self.spacing, 1), geometry.align)
        return tuple(range(step, round_up(self.up_to, step) + 1, step))

    def page_room(self, geometry: Geometry) -> Room:
        """How a page is divided between objects and its description."""
        strides = self._strides(geometry)
        unit = min((stride & -stride for stride in strides), default=geometry.align)
        words = 1
        while self.page_bytes - DESCRIPTION_BYTES - 4 * words > 32 * words * unit:
            words += 1
        return Room(self.page_bytes - DESCRIPTION_BYTES - 4 * words, words, unit)

    def _strides(self, geometry: Geometry) -> list[int]:
        return [round_up(size + geometry.guard, geometry.align) for size in self.class_sizes(geometry)]

    def largest_served(self, geometry: Geometry) -> int:
        return self.class_sizes(geometry)[-1]

    def largest_request(self, geometry: Geometry) -> int:
        return self.largest_served(geometry)

    def capacity(self, size: int, geometry: Geometry) -> int:
        least = max(size, geometry.link_bytes)
        return next((held for held in self.class_sizes(geometry) if held >= least), size)

    # ---- rules

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        if (self.sizes is None) == (self.up_to is None):
            yield 'needs either "sizes" (bytes of each class) or "up_to" (evenly spaced classes)'
            return
        if self.up_to is None and self.spacing:
            yield '"spacing" needs "up_to", the largest class; "sizes" says where each lies'
        classes = self.class_sizes(geometry)
        if len(classes) < len(self.sizes or ()):
            yield f'"sizes": two classes are the same at align {geometry.align}; valid: each class once'
        if len(classes) > MAX_CLASSES:
            yield f'"up_to" makes {len(classes)} classes; valid: at most {MAX_CLASSES}, with a larger "spacing"'
        room = self.page_room(geometry).room
        if classes[-1] + geometry.guard > room:
            largest = (room - geometry.guard) // geometry.align * geometry.align
            yield f'"page_bytes" {self.page_bytes} holds no object of {classes[-1]} bytes; valid: up to {largest}'
        if self.min_size > classes[-1]:
            yield f'"min_size" {self.min_size} is above the largest class, {classes[-1]}; it would take no request'
        other = next((pool for at, pool in enumerate(pools) if at != index and pool.takes_from_end), None)
        if other:
            yield f"both its pages and the {other.kind_name} pool would grow from the arena's end; valid: one of them"

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Pages:
        return _canonical(self, geometry)

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Pages:
        if self.up_to is not None:
            return self.model_copy()
        return self.model_copy(update={"sizes": self.class_sizes(geometry)})

    # ---- words

    def summary(self) -> str:
        if self.up_to is None:
            words = f"pages of {self.page_bytes} B for {sizes_summary(self.sizes or ())}"
        else:
            words = f"pages of {self.page_bytes} B up to {self.up_to} B"
        return words + (f" by {self.spacing} B" if self.spacing else "") + self.range_summary()

    def title(self) -> str:
        return f"pages of {sizes_title(self.sizes or (self.up_to or 0,))}"

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return 0

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return round_up(values["sizes"][0] + values["trailer"], align)

    @property
    def is_bounded(self) -> bool:
        return True

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        return True

    @property
    def takes_from_end(self) -> bool:
        return True

    @property
    def carves_from_end(self) -> bool:
        return True

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        shape = super().block_shape(geometry, others)
        return shape._replace(mixed=others or self.class_sizes(geometry)[0] < shape.least)

    def control(self, layout: lay.Layout, count: int) -> tuple[lay.Field, ...]:
        """What it keeps in the arena for so many classes, in the order of memory."""
        return (
            lay.Field("heads_at", 2 * (count + 1), 2),
            lay.Field("given_at", 4),
            lay.Field("seen_at", 4),
            lay.Field("end_at", 4),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        geometry = layout.geometry
        sizes = self.class_sizes(geometry)
        room, words, unit = self.page_room(geometry)
        step = sizes[0]
        even = step & (step - 1) == 0 and all(size == step * (at + 1) for at, size in enumerate(sizes))
        return {
            "links": layout.links(),
            "word": layout.word(0, 4),
            "number": layout.word(0, 2),
            "count": len(sizes),
            "sizes": list(sizes),
            "counts": [room // stride for stride in self._strides(geometry)],
            "even": int(even),
            "step_log2": log2(step) if even else 0,
            "page_log2": log2(self.page_bytes),
            "trailer": geometry.guard,
            "align": layout.align,
            "unit_shift": log2(unit),
            "words": words,
            "room": room,
            "state": room + 4 * words,
            "most": MOST_PAGES,
            "limit_at": layout.heap["shared_limit_at"],
            "high_at": layout.heap["shared_high_at"],
            **layout.place(self.control(layout, len(sizes))),
        }

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        word, number, words = width(values["word"]), width(values["number"]), values["words"]
        link, unlink = 4 * number + 4, 8 * number + 5
        result = 4 + word + 4 * number
        begun = 20 + (words + 1) * word + link
        cut = (words + 4) * word + unlink
        merged = 2 + 4 * word + unlink + link + 12
        return AccessBounds(2 * result + 4 * word + unlink + begun + cut, OWNED + 2 + 5 * word + unlink + merged)

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return True

    @classmethod
    def largest_arena(cls, struct: Any, laid_out: Any) -> int:
        if not laid_out.last:  # whatever else shares the arena has no such bound
            return int(struct.reach)
        pages = laid_out.pages
        return int(min(struct.reach, round_up(struct.fixed_end + (pages.most << pages.page_log2), struct.align)))

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        import numpy as np

        pages = laid_out.pages
        classes = np.array([pages.sizes[at] for at in range(pages.count)], np.int64)
        strides = rounded(classes + pages.trailer, pages.align)
        return np.append(strides, NEVER)[np.searchsorted(classes, sizes)]

    # ---- what is attacked and proved

    @property
    def has_marks(self) -> bool:
        return True

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        yield from values["sizes"]

    def merges(self, align: int) -> bool:
        return False

    @property
    def covers(self) -> bool:
        return False

    def serves(self, align: int) -> str:
        return "0"

    def marks(self, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        yield values["heads_at"], 2 * (values["count"] + 1)


@lru_cache(maxsize=65536)
def _canonical(pool: Pages, geometry: Geometry) -> Pages:
    changes = {"sizes": pool.class_sizes(geometry), "up_to": None, "spacing": 0}
    return pool.model_copy(update=pool.request_range(pool.largest_served(geometry)) | changes)
