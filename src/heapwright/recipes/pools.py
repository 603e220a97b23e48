"""Pools: the stages of an allocator, a model of every kind with its keys, types and bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from heapwright._native import lib

MAX_REQUEST = lib.HW_MAX_REQUEST
"""Largest request in bytes that the core serves, so that no 32-bit sum of sizes overflows."""

MAX_REACH = 1 << 31
"""No arena is larger: offsets have 32 bits and sums of two sizes must not overflow."""

MAX_CLASSES = lib.HW_MAX_CLASSES

MAX_UP_TO = 4096

MAX_BINS = 1024
"""A bitmap of bins and a one-word summary of it: 32 words of 32 bits."""

MAX_CLOSE_BINS = 30
"""The core sees them in one 32-bit window of the bitmap, behind the exact bin itself."""

MAX_GROUP_LISTS = 32
"""The bitmap of the lists of free groups is one word."""

DESCRIPTOR_FIELDS = 4
"""Numbers in the descriptor of a group of partitions: how many, where it starts, and two links."""

MAX_MEMORIES = 4
"""Each is asked in turn, and has a look at each free."""

MEMORY_NAME = "^[a-z][a-z0-9]{0,30}$"
"""What a memory may be called: part of a C name."""

MAX_POOLS, MAX_QUICK_POOLS, MAX_GENERAL_POOLS = lib.HW_MAX_POOLS, 2, 4


FLUSH_STEPS = 1024
"""`flush_share` and `flush_growth` are kept in 1024ths, so that firmware compares them with a shift."""

Flush = Literal["before-refusing", "over-limit", "before-growing"]

Bins = Literal["none", "exact", "lea", "two-level", "half-fit", "power-of-two"]

BinsPerOctave = Literal[1, 2, 4, 8, 16, 32]

ROUNDED_UP = ("two-level", "half-fit")
"""Bins that are searched only where every block is large enough (good fit): the request is rounded up to a bin."""

LINEAR_UP_TO: dict[Bins, int] = {"exact": 2048, "lea": 256, "two-level": 128, "half-fit": 0, "power-of-two": 0}

BINS_PER_OCTAVE: dict[Bins, BinsPerOctave] = {"exact": 4, "lea": 4, "two-level": 32, "half-fit": 1, "power-of-two": 1}

LINKS = {"double": 2, "single": 1, "implicit": 0, "tree": 2}


def whole(value: Any) -> Any:
    """Refuse what merely equals a whole number (true, 4.0), before a Literal accepts it."""
    if value is not None and type(value) is not int:
        raise PydanticCustomError("whole", "not a whole number")
    return value


def _flush_name(value: Any) -> Any:
    """What flushes before refusing was called "never" while it did not."""
    return "before-refusing" if value == "never" else value


Size = Annotated[int, Field(strict=True, ge=1, le=MAX_REQUEST)]


class Table(BaseModel):
    """A TOML table: keys that are not declared are errors, numbers are not taken for text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True)


class _Pool(Table):
    min_size: int = Field(default=0, ge=0, le=MAX_REQUEST, description="smallest request it takes, bytes")
    max_size: int | None = Field(default=None, ge=1, le=MAX_REQUEST, description="largest request it takes, bytes")
    memory: str = Field(default="", description="name of the memory that it lies in, where the recipe has several")

    def takes(self, size: int) -> bool:
        """Whether the pool is offered a request of `size` bytes."""
        return self.min_size <= size and (self.max_size is None or size <= self.max_size)


class Quick(_Pool):
    """Exact-size caches in front of the pools below; their blocks come from and belong to those pools."""

    kind: Literal["quick"] = "quick"
    sizes: tuple[Size, ...] | None = Field(
        default=None,
        strict=False,
        min_length=1,
        max_length=MAX_CLASSES,
        description="request sizes that have a list, bytes",
    )
    up_to: int | None = Field(
        default=None, ge=1, le=MAX_UP_TO, description="largest request that has a list, one for every block size, bytes"
    )
    limit_blocks: int | None = Field(default=None, ge=1, le=MAX_REQUEST, description="most blocks a list keeps")
    limit_bytes: int | None = Field(default=None, ge=1, le=MAX_REQUEST, description="most payload bytes a list keeps")
    flush: Annotated[Flush, BeforeValidator(_flush_name)] = Field(
        default="before-refusing", description="when blocks go back, at the latest before a request is refused"
    )
    flush_from: int = Field(
        default=0,
        ge=0,
        le=MAX_REQUEST,
        description="a request from this size on empties the lists, bytes; 0: none does",
    )
    flush_share: float = Field(
        default=0.0, ge=0, le=1, description="cached share of the heap from which a flush is tried"
    )
    flush_growth: float = Field(
        default=0.0, ge=0, le=1, description="share by which a heap that only grows may grow before the next flush"
    )
    flush_large: int = Field(
        default=0,
        ge=0,
        le=MAX_REQUEST,
        description="a request from this size on flushes whenever the heap would grow, bytes; 0: none does",
    )
    keep: Literal["all", "apart"] = Field(
        default="all", description='"apart": a block that free memory borders is merged, as far as its header tells'
    )


class General(_Pool):
    """Blocks of any size, each with a header."""

    kind: Literal["general"] = "general"
    header: int = Field(default=4, ge=1, le=16, description="bytes before the payload")
    trailer: int = Field(default=0, ge=0, le=16, description="bytes behind the payload, such as guard bytes")
    boundary_tags: bool = Field(default=True, description="a free block repeats its size for the block behind it")
    tag_in: Literal["block", "header"] = Field(
        default="block", description="the tag is the free block's last word, or lies in the header behind it"
    )
    free_list: Literal["double", "single", "implicit", "tree"] = Field(
        default="double", description="how free blocks are found"
    )
    links_in: Literal["payload", "header"] = Field(default="payload", description="where a free block's links lie")
    order: Literal["lifo", "fifo", "address", "size"] = Field(default="lifo", description="order of a free list")
    large_order: Literal["lifo", "fifo", "address", "size"] | None = Field(
        default=None, description="order of bins of more than one size, where that differs"
    )
    unsorted: bool = Field(default=False, description="free blocks wait in a queue before they are filed in bins")
    bins: Bins = Field(default="none", description="one free list, or one a range of sizes")
    linear_up_to: int | None = Field(
        default=None, ge=0, le=2**20, description="block sizes below this have a bin each, bytes; 0 or a power of two"
    )
    bins_per_octave: Annotated[BinsPerOctave | None, BeforeValidator(whole)] = Field(
        default=None, description="bins between a power of two and the next"
    )
    most_bins: int = Field(
        default=0, ge=0, le=MAX_BINS, description="the last of so many bins holds all larger blocks; 0: no bound"
    )
    bin_by: Literal["block", "payload"] = Field(
        default="block", description="bins are ranges of sizes with or without header and trailer"
    )
    max_block: int = Field(
        default=0, ge=0, le=2**31, description="largest block, and so the largest arena, bytes; 0: no bound"
    )
    victim_up_to: int = Field(
        default=0, ge=0, le=MAX_REQUEST, description="largest request that carves from the victim, bytes"
    )
    close_bins: int = Field(default=0, ge=0, le=64, description="bins beyond an empty exact one that are tried first")
    fit: Literal["first", "next", "best", "worst", "exact"] = Field(
        default="first", description="which free block is taken"
    )
    search_percent: int = Field(
        default=100, ge=0, le=100, description="share of the free blocks a best fit looks at, per cent"
    )
    search_most: int = Field(
        default=0, ge=0, le=MAX_REQUEST, description="most free blocks that one search of a list looks at; 0: all"
    )
    search_from: Literal["start", "freed", "lowest-free", "tried"] = Field(
        default="start", description="where a search starts"
    )
    split: Literal["always", "never"] | Annotated[int, Field(ge=0, le=MAX_REQUEST)] = Field(
        default="always", description="least remainder, bytes"
    )
    split_from: Literal["head", "tail"] = Field(default="head", description="end of the block the request is cut from")
    remainder: Literal["in-place", "filed"] = Field(
        default="in-place", description="a remainder takes the place of the block that was split, or is filed anew"
    )
    coalesce: Literal["immediate", "never", "forward", "lazy", "deferred", "sweep"] = Field(
        default="immediate", description="when free neighbours merge"
    )
    coalesce_from: int = Field(default=0, ge=0, le=MAX_REQUEST, description="smallest block that merges, bytes")
    merge_until: Literal["end", "enough"] = Field(
        default="end", description="a lazy merge takes all free blocks behind, or ends once the block is large enough"
    )
    merged: Literal["filed", "in-place"] = Field(
        default="filed", description="a free block that one behind it joins is filed anew, or keeps its place"
    )
    top: Literal["last", "bump", "list", "extend"] = Field(
        default="last",
        description="memory never used: taken last, taken last and never given back (until short), or a free block",
    )
    grow_least: int = Field(default=0, ge=0, le=MAX_REQUEST, description="least bytes taken from the top at a time")
    resize: Literal["in-place", "both-sides", "keep", "keep-half", "move"] = Field(
        default="in-place",
        description="realloc resizes where it can; slides down, too; keeps what fits (and fills half); always moves",
    )
    min_block: int = Field(
        default=0, ge=0, le=MAX_REQUEST, description="smallest block with header, bytes; 0: the least"
    )
    unit: int = Field(default=0, ge=0, le=4096, description="block sizes are multiples of this, bytes; 0: align")
    round_to: Literal["unit", "power-of-two"] = Field(
        default="unit", description="sizes of the blocks that are handed out"
    )
    region: int = Field(default=0, ge=0, le=MAX_REQUEST, description="bytes of a region of its own; 0: shares the rest")


class Fixed(_Pool):
    """Classes of blocks of one size each."""

    kind: Literal["fixed"] = "fixed"
    sizes: tuple[Size, ...] = Field(
        strict=False, min_length=1, max_length=MAX_CLASSES, description="payload bytes of each class"
    )
    counts: Literal["grow"] | Annotated[tuple[Size, ...], Field(strict=False)] = Field(
        default="grow", description='blocks of each class, or "grow"'
    )
    header: int = Field(default=0, ge=0, le=16, description="bytes before the payload")
    find: Literal["freelist", "first-fit"] = Field(default="freelist", description="how a free block is found")
    fall_through: bool = Field(default=False, description="an exhausted class borrows from the next larger ones")
    page: int = Field(default=0, ge=0, le=MAX_REQUEST, description="bytes carved at a time when growing; 0: one block")


class Buddy(_Pool):
    """Blocks whose sizes are powers of two, split into and merged from halves."""

    kind: Literal["buddy"] = "buddy"
    min_block: int = Field(default=16, ge=1, le=2**30, description="smallest block with header, bytes; a power of two")
    max_block: int = Field(
        default=0, ge=0, le=2**30, description="largest block, bytes; a power of two, 0: what the arena holds"
    )
    header: int = Field(default=4, ge=1, le=16, description="bytes before the payload")
    region: int = Field(default=0, ge=0, le=MAX_REQUEST, description="bytes of a region of its own; 0: shares the rest")


class Partition(_Pool):
    """Groups of contiguous partitions of one size, with their descriptors outside the data."""

    kind: Literal["partition"] = "partition"
    size: int = Field(default=512, ge=1, le=2**20, description="bytes of a partition")
    count: Literal["grow"] | Size = Field(default="grow", description='number of partitions, or "grow"')
    descriptor_bytes: int = Field(default=32, ge=4, le=256, description="bytes of a partition's descriptor")
    lists: int = Field(
        default=1,
        ge=1,
        le=MAX_GROUP_LISTS,
        description="lists of free groups, one a number of partitions; the last holds all larger ones",
    )
    order: Literal["address", "lifo", "size"] = Field(default="address", description="order of the free groups")
    fit: Literal["first", "best"] = Field(default="first", description="which free group is taken")
    coalesce: Literal["immediate", "never"] = Field(default="immediate", description="when free groups merge")


class Compact(_Pool):
    """Blocks that move, reached through handles; the only pool of its recipe."""

    kind: Literal["compact"] = "compact"
    when: Literal["lazy", "eager"] = Field(default="lazy", description="when holes are closed")
    handles: Literal["caller", "arena"] = Field(default="caller", description="where handles lie")
    handle_bytes: int = Field(default=0, ge=0, le=64, description="bytes of a handle; 0: the least")
    header: int = Field(default=4, ge=0, le=16, description="bytes before the payload; 0: handles hold sizes and chain")

    @property
    def reference_words(self) -> int:
        """Pointers that the caller keeps for each object: the reference, or with size and chain a struct hw_handle."""
        return 3 if self.header == 0 and self.handles == "caller" else 1


Owner = General | Fixed | Buddy | Partition | Compact
"""Pools that blocks belong to."""

Pool = Quick | Owner

KINDS: dict[str, type[Table]] = {
    "quick": Quick,
    "general": General,
    "fixed": Fixed,
    "buddy": Buddy,
    "partition": Partition,
    "compact": Compact,
}
"""The model of each kind of pool."""
