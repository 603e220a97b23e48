"""The keys of a general pool, and how large its blocks are."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from heapwright._recipes.geometry import Geometry, power_above, round_up
from heapwright._recipes.kinds.base import BasePool, whole
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST
from heapwright._recipes.model import Conversion, field

MAX_BINS = 1024
"""A bitmap of bins and a one-word summary of it: 32 words of 32 bits."""

Bins = Literal["none", "exact", "lea", "two-level", "half-fit", "power-of-two"]

Resize = Literal[
    "in-place",
    "both-sides",
    "down-first",
    "smaller-side",
    "with-rest",
    "keep",
    "keep-half",
    "trim",
    "shrink",
    "move",
]

BinsPerOctave = Literal[1, 2, 4, 8, 16, 32]

ROUNDED_UP = ("two-level", "half-fit")
"""Bins that are searched only where every block is large enough (good fit): the request is rounded up to a bin."""

LINEAR_UP_TO: dict[Bins, int] = {"exact": 2048, "lea": 256, "two-level": 128, "half-fit": 0, "power-of-two": 0}

BINS_PER_OCTAVE: dict[Bins, BinsPerOctave] = {"exact": 4, "lea": 4, "two-level": 32, "half-fit": 1, "power-of-two": 1}

LINKS = {"double": 2, "single": 1, "implicit": 0, "tree": 2}


class GeneralKeys(BasePool):
    """Blocks of any size, each with a header: the keys, and the sizes that follow from them; all in bytes."""

    kind: Literal["general"] = "general"
    place: Literal["start", "ends"] = field(
        default="start", description='"ends": it grows downwards from the arena\'s far end, toward the last pool'
    )
    header: int = field(default=4, ge=1, le=16, description="bytes before the payload")
    trailer: int = field(default=0, ge=0, le=16, description="bytes behind the payload, such as guard bytes")
    boundary_tags: bool = field(default=True, description="a free block repeats its size for the block behind it")
    tag_in: Literal["block", "header"] = field(
        default="block", description="the tag is the free block's last word, or lies in the header behind it"
    )
    free_list: Literal["double", "single", "implicit", "tree"] = field(
        default="double", description="how free blocks are found"
    )
    links_in: Literal["payload", "header"] = field(default="payload", description="where a free block's links lie")
    order: Literal["lifo", "fifo", "address", "size"] = field(default="lifo", description="order of a free list")
    large_order: Literal["lifo", "fifo", "address", "size"] | None = field(
        default=None, description="order of bins of more than one size, where that differs"
    )
    unsorted: bool = field(default=False, description="free blocks wait in a queue before they are filed in bins")
    bins: Bins = field(default="none", description="one free list, or one a range of sizes")
    linear_up_to: int | None = field(
        default=None, ge=0, le=2**20, description="block sizes below this have a bin each, bytes; 0 or a power of two"
    )
    bins_per_octave: Annotated[BinsPerOctave | None, Conversion(whole)] = field(
        default=None, description="bins between a power of two and the next"
    )
    most_bins: int = field(
        default=0,
        ge=0,
        le=MAX_BINS,
        description="number of bins, of which the last holds all larger blocks; 0: no bound",
    )
    bin_by: Literal["block", "payload"] = field(
        default="block", description="bins are ranges of sizes with or without header and trailer"
    )
    max_block: int = field(
        default=0, ge=0, le=2**31, description="largest block, and so the largest arena, bytes; 0: no bound"
    )
    victim_up_to: int = field(
        default=0, ge=0, le=MAX_REQUEST, description="largest request that is cut from the last remainder, bytes"
    )
    close_bins: int = field(default=0, ge=0, le=64, description="bins beyond an empty exact one that are tried first")
    fit: Literal["first", "next", "best", "worst", "exact"] = field(
        default="first", description="which free block is taken"
    )
    search_percent: int = field(
        default=100, ge=0, le=100, description="share of the free blocks a best fit looks at, per cent"
    )
    search_most: int = field(
        default=0, ge=0, le=MAX_REQUEST, description="most free blocks that one search of a list looks at; 0: all"
    )
    search_from: Literal["start", "freed", "lowest-free", "tried"] = field(
        default="start", description="where a search starts"
    )
    split: Literal["always", "never"] | Annotated[int, field(ge=0, le=MAX_REQUEST)] = field(
        default="always", description="least remainder, bytes"
    )
    split_from: Literal["head", "tail"] = field(default="head", description="end of the block the request is cut from")
    remainder: Literal["in-place", "filed"] = field(
        default="in-place", description="a remainder takes the place of the block that was split, or is filed again"
    )
    coalesce: Literal["immediate", "never", "forward", "lazy", "deferred", "sweep"] = field(
        default="immediate", description="when free neighbours merge"
    )
    coalesce_from: int = field(default=0, ge=0, le=MAX_REQUEST, description="smallest block that merges, bytes")
    merge_until: Literal["end", "enough"] = field(
        default="end", description="a lazy merge takes all free blocks behind, or ends once the block is large enough"
    )
    merged: Literal["filed", "in-place", "at-next"] = field(
        default="filed",
        description="a free block that one behind it joins is filed again, keeps its place, or takes the other's",
    )
    top: Literal["last", "bump", "list", "extend"] = field(
        default="last",
        description="memory never used: taken last, taken last and never given back (until short), or a free block",
    )
    grow_least: int = field(default=0, ge=0, le=MAX_REQUEST, description="least bytes taken from the top at a time")
    resize: Resize = field(
        default="in-place",
        description="realloc resizes where it can; slides down, too, or whenever it can; grows into the smaller free "
        "neighbour first; resizes where a free block is left; keeps what fits (and fills half); shrinks; moves",
    )
    min_block: int = field(
        default=0, ge=0, le=MAX_REQUEST, description="smallest block with header, bytes; 0: the least"
    )
    unit: int = field(default=0, ge=0, le=4096, description="block sizes are multiples of this, bytes; 0: align")
    round_to: Literal["unit", "power-of-two", "bin"] = field(
        default="unit",
        description="sizes of the blocks that are handed out; bin: the least of the bin that a malloc is rounded up to",
    )
    region: int = field(default=0, ge=0, le=MAX_REQUEST, description="bytes of a region of its own; 0: shares the rest")

    # ---- what a block holds

    @property
    def is_tagged(self) -> bool:
        """Whether boundary tags mark free predecessors of a freed block; only immediate coalescing reads them."""
        return self.boundary_tags and self.coalesce == "immediate"

    @property
    def flag_bits(self) -> int:
        """Number of flag bits in the word: in use, and with tags in free blocks whether the block before is."""
        return 2 if self.is_tagged and self.tag_in == "block" else 1

    @property
    def has_lists(self) -> bool:
        """Whether free blocks are linked one behind the other."""
        return self.free_list in ("double", "single")

    @property
    def rounds_up(self) -> bool:
        """Whether a request is rounded up to a bin, all of whose blocks are large enough."""
        return self.bins in ROUNDED_UP

    def links_in_header(self, geometry: Geometry) -> int:
        """Bytes at the end of the header that a free block's links take; 0 where they lie in the payload.

        The first link begins at a multiple of what addresses are counted in, or of its width where the alignment
        allows.
        """
        if self.links_in == "payload":
            return 0
        align, link_bytes = geometry.align, geometry.link_bytes
        return round_up(LINKS[self.free_list] * link_bytes, align if link_bytes == 2 else min(align, link_bytes))

    def word_bytes(self, geometry: Geometry) -> int:
        """Bytes of the word at a block's start, 1 to 4: the header without links; a tag takes as much."""
        room = self.header - self.links_in_header(geometry)
        return max(1, min(4, room // (2 if self.is_tagged and self.tag_in == "header" else 1)))

    # ---- sizes

    def reach(self, geometry: Geometry) -> int:
        """Largest arena in bytes that its links, size field and bins reach."""
        width, flags, unit = self.word_bytes(geometry), self.flag_bits, self.unit or geometry.align
        raw = width == 4 and unit >= 1 << flags
        sizes = MAX_REACH if raw else ((1 << (8 * width - flags)) - 1) * unit
        return min(sizes, geometry.link_reach, self.max_block or MAX_REACH, MAX_REACH)

    def metadata_block(self, geometry: Geometry) -> int:
        """Bytes of a block that holds nothing but its metadata while it is free."""
        tag = self.word_bytes(geometry) if self.is_tagged and self.tag_in == "block" else 0
        links = LINKS[self.free_list] * geometry.link_bytes if self.links_in == "payload" else 0
        guarded = geometry.align + self.trailer_bytes(geometry) if geometry.guard else 0
        return self.whole_block(self.header + max(links + tag, guarded), geometry)

    def least_block(self, geometry: Geometry) -> int:
        """Bytes of the smallest block by default: it also has room for a payload of one alignment unit."""
        handed_out = self.whole_block(self.header + geometry.align + self.trailer_bytes(geometry), geometry)
        return max(self.metadata_block(geometry), handed_out)

    def padding(self, geometry: Geometry) -> int:
        """Bytes by which the payload may have to be moved up, where blocks start at units below the alignment."""
        return max(0, geometry.align - (self.unit or geometry.align))

    def overhead(self, geometry: Geometry) -> int:
        """Bytes of a block in use that are not its payload."""
        return self.header + self.padding(geometry) + self.trailer_bytes(geometry)

    def trailer_bytes(self, geometry: Geometry) -> int:
        """Bytes of a block in use behind its payload."""
        return self.trailer + geometry.guard

    def whole_block(self, size: int, geometry: Geometry) -> int:
        """The size rounded up to what the pool hands out."""
        block = round_up(size, self.unit or geometry.align)
        return power_above(block) if self.round_to == "power-of-two" else block

    def smallest_block(self, geometry: Geometry) -> int:
        """Bytes of the smallest block as the recipe has it, but at least what it needs; whole units."""
        if not self.min_block:
            return self.least_block(geometry)
        return self.whole_block(max(self.min_block, self.metadata_block(geometry)), geometry)

    def smallest_cached_block(self, geometry: Geometry) -> int:
        """Bytes of the smallest block that lists above can keep, too, which are linked through payloads."""
        linked = self.header + max(geometry.link_bytes, geometry.align + self.trailer_bytes(geometry))
        return self.whole_block(max(self.smallest_block(geometry), linked), geometry)

    def bin_shape(self, geometry: Geometry) -> tuple[int, BinsPerOctave]:
        """Return (linear_up_to, bins_per_octave) as they act.

        Octaves in which a bin is narrower than a unit hold one size a bin, which is what linear bins do; linear bins
        for blocks smaller than the smallest are none.
        """
        unit = self.unit or geometry.align
        per_octave = self.bins_per_octave or BINS_PER_OCTAVE[self.bins]
        linear = min(LINEAR_UP_TO[self.bins], 512 * unit) if self.linear_up_to is None else self.linear_up_to
        least = per_octave * unit if per_octave > 1 else 0
        return (least if linear <= max(least, self.smallest_key(geometry)) else linear), per_octave

    def bin_less(self, geometry: Geometry) -> int:
        """Bytes of a block that bins do not count."""
        return self.header + self.trailer_bytes(geometry) if self.bin_by == "payload" else 0

    def smallest_key(self, geometry: Geometry) -> int:
        """Size of the smallest block as bins count it."""
        return self.smallest_block(geometry) - self.bin_less(geometry)

    def linear_bins(self, geometry: Geometry, least: int) -> tuple[int, int]:
        """Return (bound of their sizes in bytes, number) of the bins of one size each, the first for `least` bytes."""
        linear, per_octave = self.bin_shape(geometry)
        unit, key = self.unit or geometry.align, least - self.bin_less(geometry)
        if self.rounds_up and key == per_octave == linear:
            # a request is looked up as one byte less, and there is no bit for each step that far below
            linear = 2 * per_octave
        return linear, max(0, linear // unit - key // unit)

    def capacity(self, size: int, geometry: Geometry) -> int:
        overhead, least = _cached_blocks(self, geometry)
        return max(self.whole_block(size + overhead, geometry), least) - overhead

    def capacity_for(self, size: int, geometry: Geometry) -> int:
        """Payload bytes of the block that it cuts for a request of `size` bytes."""
        overhead = self.overhead(geometry)
        block = max(self.whole_block(size + overhead, geometry), self.smallest_block(geometry))
        return min(block - overhead, MAX_REQUEST)


@lru_cache(maxsize=65536)
def _cached_blocks(pool: GeneralKeys, geometry: Geometry) -> tuple[int, int]:
    """Bytes of a block in lists above that are not its payload, and of the smallest; needed for each size of a list."""
    return pool.overhead(geometry), pool.smallest_cached_block(geometry)
