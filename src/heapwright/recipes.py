"""Recipes: complete descriptions of allocators, as TOML tables of pools that are tried in order.

A recipe is read and validated here, brought into canonical form (recipes that behave alike become equal) and given a
content hash. `docs/recipes.md` is the reference of every key.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import tomli_w
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from heapwright.errors import HeapwrightError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_REQUEST = 0x7FFF0000
"""Largest request in bytes that the core serves, so that no 32-bit sum of sizes overflows."""

MAX_REACH = 1 << 31
"""No arena is larger: offsets have 32 bits and sums of two sizes must not overflow."""

MAX_CLASSES = 64
MAX_UP_TO = 4096
MAX_BINS = 1024
"""A bitmap of bins and a one-word summary of it: 32 words of 32 bits."""

MAX_CLOSE_BINS = 30
"""The core sees them in one 32-bit window of the bitmap, behind the exact bin itself."""

DESCRIPTOR_FIELDS = 4
"""Numbers in the descriptor of a group of partitions: how many, where it starts, and two links."""

MAX_POOLS, MAX_QUICK_POOLS, MAX_GENERAL_POOLS = 8, 2, 4

FLUSH_STEPS = 1024
"""`flush_share` is kept in 1024ths, so that firmware compares it with a shift."""

Bins = Literal["none", "exact", "lea", "two-level", "half-fit", "power-of-two"]
BinsPerOctave = Literal[1, 2, 4, 8, 16, 32]
Alignment = Literal[1, 2, 4, 8, 16]
LinkBytes = Literal[2, 4]

ROUNDED_UP = ("two-level", "half-fit")
"""Bins that are searched only where every block is large enough (good fit): the request is rounded up to a bin."""

LINEAR_UP_TO: dict[Bins, int] = {"exact": 2048, "lea": 256, "two-level": 128, "half-fit": 0, "power-of-two": 0}
BINS_PER_OCTAVE: dict[Bins, BinsPerOctave] = {"exact": 4, "lea": 4, "two-level": 32, "half-fit": 1, "power-of-two": 1}
LINKS = {"double": 2, "single": 1, "implicit": 0}

NO_ORDER = (
    '"header" 0: free reads the order of a block from its header, and its payload is the program\'s; valid: 1 to 16'
)

NO_HEADER = (
    '"header" 0: splitting, coalescing and free read the size of a block from its header; '
    'valid: 1 to 16 (blocks without headers are fixed pools with "counts")'
)


def _whole(value: Any) -> Any:
    """Refuse what merely equals a whole number (true, 4.0), before a Literal accepts it."""
    if value is not None and type(value) is not int:
        raise PydanticCustomError("whole", "not a whole number")
    return value


Size = Annotated[int, Field(strict=True, ge=1, le=MAX_REQUEST)]


class ContradictionError(HeapwrightError):
    """Keys that are valid each for itself but not together."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True)


class _Pool(_Table):
    min_size: int = Field(default=0, ge=0, le=MAX_REQUEST, description="smallest request it takes, bytes")
    max_size: int | None = Field(default=None, ge=1, le=MAX_REQUEST, description="largest request it takes, bytes")

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
    flush: Literal["never", "over-limit", "before-growing"] = Field(default="never", description="when blocks go back")
    flush_from: int = Field(
        default=0,
        ge=0,
        le=MAX_REQUEST,
        description="a request from this size on empties the lists, bytes; 0: none does",
    )
    flush_share: float = Field(
        default=0.0, ge=0, le=1, description="cached share of the heap from which a flush is tried"
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
    free_list: Literal["double", "single", "implicit"] = Field(
        default="double", description="how free blocks are linked"
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
    bins_per_octave: Annotated[BinsPerOctave | None, BeforeValidator(_whole)] = Field(
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
    top: Literal["last", "bump", "list"] = Field(
        default="last", description="memory never used: taken last, taken last and never given back, or a free block"
    )
    grow_least: int = Field(default=0, ge=0, le=MAX_REQUEST, description="least bytes taken from the top at a time")
    resize: Literal["in-place", "both-sides", "keep", "move"] = Field(
        default="in-place",
        description="realloc resizes where it can; slides down, too; keeps what fits; always takes a new block",
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

KINDS: dict[str, type[_Table]] = {
    "quick": Quick,
    "general": General,
    "fixed": Fixed,
    "buddy": Buddy,
    "partition": Partition,
    "compact": Compact,
}
"""The model of each kind of pool."""


class Recipe(_Table):
    """One allocator: heap-wide settings and pools tried in order.

    `Recipe.load`, `parse` and `from_dict` raise a one-line `HeapwrightError` for input that cannot be used; calling
    the class itself raises pydantic's `ValidationError` for the same reasons. Recipes are immutable and hashable.
    """

    name: str = Field(default="", description="what to call it")
    year: int | None = Field(default=None, ge=1950, le=2100, description="when it was published or first used")
    source: str = Field(default="", description="paper, section or program it follows")
    about: str = Field(default="", description="what is documented and what was chosen")
    align: Annotated[Alignment, BeforeValidator(_whole)] = Field(default=4, description="alignment of payloads, bytes")
    link_bytes: Annotated[LinkBytes, BeforeValidator(_whole)] = Field(
        default=4, description="width of a link in metadata, bytes; 2 counts in units of align"
    )
    checks: bool = Field(default=False, description="free and realloc ignore and count wrong pointers")
    pools: tuple[Annotated[Pool, Field(discriminator="kind")], ...] = Field(
        validation_alias=AliasChoices("pool"), strict=False, min_length=1, max_length=MAX_POOLS
    )

    @model_validator(mode="after")
    def _consistent(self) -> Recipe:
        for where, problem in _contradictions(self):
            raise PydanticCustomError("contradiction", "{problem}", {"problem": problem, "pool": where})
        return self

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a TOML file. Raises HeapwrightError naming the file, pool and key; OSError where it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise HeapwrightError(f"{path}: not UTF-8 text ({error.reason}); a recipe is a TOML file") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, where: str = "recipe") -> Recipe:
        """Read TOML text; `where` names it in errors. Raises HeapwrightError."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise HeapwrightError(f"{where}: not valid TOML: {error}") from None
        return cls.from_dict(data, where)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "recipe") -> Recipe:
        """Build from the data of a TOML file or of `to_dict`; `where` names it in errors.

        Raises HeapwrightError, and its subclass ContradictionError where every key is valid for itself.
        """
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            problem = f"{where}: {_one_line(error, data)}"
            if error.errors(include_url=False)[0]["type"] == "contradiction":
                raise ContradictionError(problem) from None
            raise HeapwrightError(problem) from None

    @classmethod
    def unchecked(cls, pools: tuple[Pool, ...], align: int = 4, link_bytes: int = 4, checks: bool = False) -> Recipe:
        """Build from parts known to be valid together, several times faster; nothing is checked."""
        return cls.model_construct(pools=pools, align=align, link_bytes=link_bytes, checks=checks)

    def canonical(self) -> Recipe:
        """Return the form that all recipes of the same behaviour share (name, year, source and about are kept).

        Defaults that depend on other keys are filled in (`min_block`, `unit`, `linear_up_to`, `bins_per_octave`),
        keys without effect are reset, sizes are those of the blocks handed out, in ascending order. Idempotent.
        """
        pools = _canonical_pools(self.pools, self.align, self.link_bytes)
        return self if pools == self.pools else self.model_copy(update={"pools": pools})

    @property
    def hash(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 of the canonical form as JSON, without the descriptive keys."""
        pools = _canonical_pools(self.pools, self.align, self.link_bytes)
        heap = {"align": self.align, "link_bytes": self.link_bytes, "checks": self.checks}
        keys = [f'"{key}":{json.dumps(value)}' for key, value in heap.items() if value != _HEAP_DEFAULTS[key]]
        content = ",".join([*sorted(keys), f'"pool":[{",".join(map(_pool_json, pools))}]'])
        return hashlib.sha256(f"{{{content}}}".encode()).hexdigest()[:12]

    @property
    def reach(self) -> int | None:
        """Largest arena in bytes that the recipe's links and headers can address; None: none below 2^31 bytes."""
        reaches = [(2**16 - 1) * self.align] if self.link_bytes == 2 else []
        for pool in self.pools:
            if isinstance(pool, General):
                bound = reach_of(pool, self.align, self.link_bytes)
                reaches += [bound] if bound < MAX_REACH else []
        return min(reaches, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the TOML data: keys in the reference's order, without those whose absence means the same."""
        heap = _non_default(self, skip={"pools"})
        pools = [
            {"kind": pool.kind, **_non_default(_without_resolved(pool, self), skip={"kind"})} for pool in self.pools
        ]
        return {**heap, "pool": pools}

    def to_toml(self) -> str:
        """Return the recipe as TOML; reading it back gives a recipe with the same hash."""
        data = self.to_dict()
        pools = data.pop("pool")
        tables = ["[[pool]]\n" + "".join(f"{key} = {json.dumps(pool[key])}\n" for key in pool) for pool in pools]
        return "\n".join([tomli_w.dumps(data, multiline_strings=True), *tables]).lstrip()

    def summary(self) -> str:
        """Return one short line for people: pools, then what differs from the defaults."""
        heap = [f"align {self.align}"] if self.align != 4 else []
        heap += ["2-byte links"] if self.link_bytes == 2 else []
        heap += ["checks"] if self.checks else []
        pools = " + ".join(_SUMMARIES[pool.kind](_without_resolved(pool, self)) for pool in self.pools)
        return ", ".join([pools, *heap])


_HEAP_DEFAULTS = {key: field.default for key, field in Recipe.model_fields.items()}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe file, for editors."""
    return Recipe.model_json_schema(by_alias=True, mode="validation")


# ---- Contradictions: what no reading of the keys can make sense of -------------------------------------------------

_Found = Iterator[tuple[int | None, str]]


def _contradictions(recipe: Recipe) -> _Found:
    yield from _crowding(recipe.pools)
    for index, pool in enumerate(recipe.pools):
        if pool.max_size is not None and pool.min_size > pool.max_size:
            yield index, f'"min_size" {pool.min_size} is above "max_size" {pool.max_size}; it would take no request'
        if isinstance(pool, Quick):
            problems = _quick_contradictions(pool, recipe, index)
        elif isinstance(pool, General):
            problems = _general_contradictions(pool, recipe, index)
        elif isinstance(pool, Buddy):
            problems = _buddy_contradictions(pool, recipe, index)
        elif isinstance(pool, Partition):
            problems = _partition_contradictions(pool, recipe, index)
        elif isinstance(pool, Compact):
            problems = _compact_contradictions(pool, recipe)
        else:
            problems = _fixed_contradictions(pool, recipe)
        yield from ((index, problem) for problem in problems)


def _crowding(pools: tuple[Pool, ...]) -> _Found:
    quick = [index for index, pool in enumerate(pools) if isinstance(pool, Quick)]
    general = [index for index, pool in enumerate(pools) if isinstance(pool, General)]
    growing = [index for index, pool in enumerate(pools) if isinstance(pool, Fixed) and pool.counts == "grow"]
    if len(quick) > MAX_QUICK_POOLS:
        yield quick[MAX_QUICK_POOLS], f"at most {MAX_QUICK_POOLS} quick pools; one holds up to {MAX_CLASSES} sizes"
    if len(general) > MAX_GENERAL_POOLS:
        yield general[MAX_GENERAL_POOLS], f"at most {MAX_GENERAL_POOLS} general pools"
    if len(growing) > 1:
        yield growing[1], f"pool {growing[0] + 1} already grows; put the sizes of both into one fixed pool"


def _quick_contradictions(pool: Quick, recipe: Recipe, index: int) -> Iterator[str]:
    below = recipe.pools[index + 1 :]
    if all(isinstance(other, Quick) for other in below):
        yield "no pool below it to take blocks from; valid: a general or fixed pool after it"
        return
    first = next(other for other in below if not isinstance(other, Quick))
    if isinstance(first, Partition) and first.size & (first.size - 1):
        yield f"the partitions below it have {first.size} bytes; valid below a quick pool: powers of two"
    if (pool.sizes is None) == (pool.up_to is None):
        yield 'needs either "sizes" (a list of request sizes) or "up_to" (every block size up to that of a request)'
        return
    if pool.flush == "over-limit" and pool.limit_blocks is None and pool.limit_bytes is None:
        yield '"flush" "over-limit" has no limit to go over; add "limit_blocks" or "limit_bytes"'
    cached = [size for size in pool.sizes or () if pool.takes(size)]
    if pool.sizes is not None and not cached:
        yield '"sizes" has none between "min_size" and "max_size"'
    for size in cached:
        yield from _quick_size_contradictions(size, pool, below, recipe)
    for other in recipe.pools[:index]:
        if isinstance(other, Quick):
            yield from _shared_sizes(pool, other)


def _quick_size_contradictions(size: int, pool: Quick, below: tuple[Pool, ...], recipe: Recipe) -> Iterator[str]:
    if not any(_can_serve(other, size, recipe) for other in below if not isinstance(other, Quick)):
        yield f'"sizes": no pool below serves {size} bytes; valid: sizes that a general or fixed pool after it takes'
        return
    capacity = _capacity(size, below, recipe.align, recipe.link_bytes)
    if pool.limit_bytes is not None and pool.limit_bytes < capacity:
        yield f'"limit_bytes" {pool.limit_bytes} keeps no block of {capacity} bytes; valid: {capacity} or more'


def _shared_sizes(pool: Quick, earlier: Quick) -> Iterator[str]:
    if pool.up_to is not None and earlier.up_to is not None:
        yield 'a second "up_to" caches what the first does; valid: one quick pool with "up_to"'
    bound = pool.up_to or earlier.up_to or 0
    mine, others = set(pool.sizes or ()), set(earlier.sizes or ())
    shared = (mine & others) | {size for size in mine | others if size <= bound}
    if shared:
        yield f"{min(shared)} bytes is cached by two quick pools; valid: each size in one"


def _can_serve(pool: Owner, size: int, recipe: Recipe) -> bool:
    return pool.takes(size) and size <= _largest_served(pool, recipe.align, recipe.link_bytes)


def _largest_served(pool: Owner, align: int, link_bytes: int) -> int:
    """The largest request in bytes that a pool could serve in an arena without bounds."""
    if isinstance(pool, Fixed):
        return _round_up(max(pool.sizes), align)
    if isinstance(pool, Buddy):
        return largest_block(pool, align, link_bytes) - pool.header
    if isinstance(pool, Compact):
        return largest_object(pool, align, link_bytes)
    if isinstance(pool, Partition) and pool.count != "grow":
        return min(pool.count * _round_up(pool.size, align), MAX_REQUEST)
    return MAX_REQUEST


def _general_contradictions(pool: General, recipe: Recipe, index: int) -> Iterator[str]:
    if pool.unit % recipe.align or pool.unit & (pool.unit - 1):
        yield f'"unit" {pool.unit} is not valid; valid: 0 (= align) or a power of two from align ({recipe.align}) up'
        return
    yield from _search_contradictions(pool)
    yield from _top_contradictions(pool, recipe)
    if pool.bins != "none":
        yield from _bin_contradictions(pool, recipe)
    yield from _queue_contradictions(pool)
    yield from _victim_contradictions(pool)
    yield from _header_contradictions(pool, recipe)
    if pool.max_block & (pool.max_block - 1):
        yield f'"max_block" {pool.max_block} is not valid; valid: 0 or a power of two'
    least = _metadata_block(pool, recipe.align, recipe.link_bytes)
    if 0 < pool.min_block < least:
        yield f'"min_block" {pool.min_block} cannot hold header, links and tag; valid: 0 (the least), {least} or more'
    yield from _region_contradictions(pool, recipe, index, max(least, pool.min_block))


def _turn_contradictions(pool: General) -> Iterator[str]:
    in_turn = pool.bins != "none" and pool.bins not in ROUNDED_UP and pool.fit == "first"
    if pool.search_from == "tried" and not (
        in_turn and not pool.unsorted and (pool.large_order or pool.order) == "fifo" == pool.order
    ):
        yield (
            '"search_from" "tried" takes the blocks of a bin in turn; it needs "bins" that are searched (exact, lea, '
            'power-of-two), "order" "fifo", "fit" "first" and no "unsorted"'
        )


def _place_contradictions(pool: General) -> Iterator[str]:
    unsorted = pool.bins == "none" and pool.free_list != "implicit" and pool.order in ("lifo", "fifo")
    if pool.merged == "in-place" and (pool.coalesce != "immediate" or not unsorted):
        yield '"merged" "in-place" needs "coalesce" "immediate" and one list in "order" "lifo" or "fifo"'
    if pool.resize == "both-sides" and (not _has_tags(pool) or pool.victim_up_to):
        yield (
            '"resize" "both-sides" looks at the block ahead; it needs "boundary_tags", "coalesce" "immediate" '
            'and no "victim_up_to"; valid: in-place, keep, move'
        )
    if pool.coalesce == "sweep" and (pool.bins != "none" or pool.free_list == "implicit" or pool.order == "size"):
        yield '"coalesce" "sweep" passes over one list before each search; it needs one list, not in "order" "size"'


def _grows(pool: Pool) -> bool:
    return isinstance(pool, Fixed) and pool.counts == "grow"


def _top_contradictions(pool: General, recipe: Recipe) -> Iterator[str]:
    if pool.top == "bump" and _has_tags(pool):
        yield (
            '"top" "bump" leaves free blocks below memory that has no header to say so; valid with "boundary_tags" '
            "true: last, list"
        )
    if pool.top != "last" and pool.victim_up_to:
        yield f'"top" "{pool.top}" is not valid with "victim_up_to"; valid: last'
    if pool.top == "list" and pool.region == 0 and any(_grows(other) for other in recipe.pools):
        yield '"top" "list" leaves nothing to the fixed pool that grows; valid: last, bump, or a "region"'
    if pool.grow_least and (
        pool.top != "bump" or pool.bins != "none" or pool.fit == "exact" or pool.search_most or pool.split == "never"
    ):
        yield (
            '"grow_least" leaves a surplus that the next search must find; it needs "top" "bump", "bins" "none", a '
            '"split", no "fit" "exact" and no "search_most"'
        )


def _header_contradictions(pool: General, recipe: Recipe) -> Iterator[str]:
    links = links_in_header(pool, recipe.align, recipe.link_bytes)
    words = 2 if _has_tags(pool) and pool.tag_in == "header" else 1
    if pool.header < links + words:
        held = ["a size", *(["the size of the block before"] if words == 2 else []), *(["links"] if links else [])]
        yield (
            f'"header" {pool.header} cannot hold {", ".join(held)}; valid: {links + words} to 16, '
            '"links_in" "payload", "tag_in" "block"'
        )


def _search_contradictions(pool: General) -> Iterator[str]:
    yield from _place_contradictions(pool)
    yield from _turn_contradictions(pool)
    if pool.search_most and pool.free_list == "implicit":
        yield f'"search_most" {pool.search_most} counts free blocks of a list; valid with "free_list" "implicit": 0'
    if pool.search_from == "freed" and pool.fit != "next":
        yield f'"search_from" "freed" is where a next fit starts; valid with "fit" "{pool.fit}": start'
    if pool.search_from == "lowest-free" and (pool.fit not in ("first", "exact") or pool.free_list != "implicit"):
        yield '"search_from" "lowest-free" needs "free_list" "implicit" and "fit" "first"; lists begin with free blocks'
    if pool.free_list == "implicit" and pool.bins != "none":
        yield f'"bins" "{pool.bins}" needs lists of free blocks; valid with "free_list" "implicit": "none"'
    if pool.free_list == "implicit" and pool.fit == "best" and 0 < pool.search_percent < 100:
        yield (
            f'"search_percent" {pool.search_percent} is a share of the blocks in a list; '
            'valid with "free_list" "implicit": 100'
        )
    if pool.bins != "none" and pool.fit == "next":
        yield f'"fit" "next" roves over one list; valid with "bins" "{pool.bins}": first, best, worst, exact'
    if pool.free_list != "implicit" and pool.coalesce == "lazy" and pool.order != "address":
        yield (
            f'"coalesce" "lazy" merges blocks that are neighbours in the list; valid with "order" "{pool.order}": '
            'immediate, never, forward, deferred (valid with "lazy": "order" "address", "free_list" "implicit")'
        )
    if pool.bins != "none" and pool.coalesce == "lazy":
        yield (
            f'"coalesce" "lazy" merges while one list is searched; valid with "bins" "{pool.bins}": '
            "immediate, never, forward, deferred"
        )


def _bin_contradictions(pool: General, recipe: Recipe) -> Iterator[str]:
    if pool.linear_up_to is not None and pool.linear_up_to & (pool.linear_up_to - 1):
        yield f'"linear_up_to" {pool.linear_up_to} is not valid; valid: 0 or a power of two'
        return
    linear, per_octave = _bin_shape(pool, recipe.align, recipe.link_bytes)
    smallest = _smallest_key(pool, recipe.align, recipe.link_bytes)
    octaves = 31 - (max(linear, smallest).bit_length() - 1)
    bins = max(0, linear - smallest) // (pool.unit or recipe.align) + per_octave * octaves
    linear_bins = max(0, linear - smallest) // (pool.unit or recipe.align)
    if pool.most_bins and (pool.most_bins <= linear_bins or pool.bins in ROUNDED_UP):
        yield (
            f'"most_bins" {pool.most_bins} leaves no bin for all larger blocks; valid: 0, or from {linear_bins + 1} on '
            "where requests are not rounded up to bins"
        )
    if min(bins, pool.most_bins or bins) > MAX_BINS:
        yield f'"linear_up_to" and "bins_per_octave" make {bins} bins; at most {MAX_BINS}'


def _queue_contradictions(pool: General) -> Iterator[str]:
    if pool.large_order is not None and pool.bins == "none":
        yield f'"large_order" "{pool.large_order}" is the order of bins; valid with "bins" "none": none, see "order"'
    if pool.unsorted and (
        pool.bins == "none" or pool.bins in ROUNDED_UP or pool.free_list != "double" or pool.victim_up_to
    ):
        yield (
            '"unsorted" needs "bins" that are searched from the request\'s own (exact, lea, power-of-two), "free_list" '
            '"double" and no "victim_up_to"'
        )


def _victim_contradictions(pool: General) -> Iterator[str]:
    if pool.victim_up_to and (pool.bins == "none" or not _has_tags(pool) or pool.tag_in == "header"):
        yield (
            '"victim_up_to" needs "bins" other than "none", "boundary_tags" true, "tag_in" "block" and '
            '"coalesce" "immediate"'
        )
    if pool.close_bins and (pool.bins != "exact" or pool.fit == "exact"):
        yield '"close_bins" looks for larger blocks in exact bins; it needs "bins" "exact" and no "fit" "exact"'


def _compact_contradictions(pool: Compact, recipe: Recipe) -> Iterator[str]:
    if len(recipe.pools) > 1:
        yield "moves its blocks, which no other pool could follow; valid: a compact pool alone in its recipe"
    if 0 < pool.header < 4:
        yield f'"header" {pool.header} cannot hold a size and a handle; valid: 0 (handles hold them), 4 to 16'
        return
    least = least_handle(pool, recipe.link_bytes)
    if 0 < pool.handle_bytes < least:
        held = "an address" if pool.header else "an address, a size and a link"
        yield f'"handle_bytes" {pool.handle_bytes} cannot hold {held}; valid: 0 (the least), {least} or more'
    largest = largest_object(pool, recipe.align, recipe.link_bytes)
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what a header can tell, {largest}; it would take no request'


def _region_contradictions(pool: General | Buddy, recipe: Recipe, index: int, least: int) -> Iterator[str]:
    if pool.region == 0 and index + 1 < len(recipe.pools):
        yield 'shares the rest of the arena and must be the last pool; move it there or give it a "region" in bytes'
    if 0 < pool.region < least:
        yield f'"region" {pool.region} cannot hold a block; valid: 0 (the rest of the arena) or {least} and more'
    if recipe.reach is not None and pool.region > recipe.reach:
        yield f'"region" {pool.region} is beyond what its links and headers reach; valid: up to {recipe.reach}'


def _fixed_contradictions(pool: Fixed, recipe: Recipe) -> Iterator[str]:
    classes = [_round_up(size, recipe.align) for size in pool.sizes]
    if len(set(classes)) < len(classes):
        twice = max(size for size in classes if classes.count(size) > 1)
        yield f'"sizes": two classes have {twice} bytes at align {recipe.align}; valid: each class once'
    if pool.min_size > max(pool.sizes):
        yield f'"min_size" {pool.min_size} is above the largest class, {max(pool.sizes)}; it would take no request'
    if pool.find == "freelist" and min(classes) < recipe.link_bytes:
        yield f'"sizes": a free block of {min(classes)} bytes cannot hold its link; valid: {recipe.link_bytes} and more'
    if pool.counts == "grow":
        yield from _growth_contradictions(pool, recipe)
    elif len(pool.counts) != len(pool.sizes):
        yield f'"counts" has {len(pool.counts)} numbers for {len(pool.sizes)} sizes; valid: as many, or "grow"'
    elif pool.page:
        yield '"page" needs "counts" "grow"; classes with counts are laid out once'


def _growth_contradictions(pool: Fixed, recipe: Recipe) -> Iterator[str]:
    if pool.header == 0:
        yield '"counts" "grow" needs a "header" that names the class of a block; valid: 1 to 16'
    elif pool.find == "first-fit" and pool.header < 4 + recipe.link_bytes:
        yield (
            f'"find" "first-fit" chains growing blocks through a "header" of {pool.header}; '
            f"valid: {4 + recipe.link_bytes} to 16"
        )
    last = recipe.pools[-1]
    if isinstance(last, General | Buddy) and last.region == 0 and last.header != pool.header:
        yield (
            f'"header" {pool.header} differs from the {last.header} of the {last.kind} pool it shares the arena with; '
            f"valid: {last.header}, or another header there"
        )
    if isinstance(last, Partition) and last.count == "grow":
        yield (
            "both its blocks and the descriptors of the partition pool would grow from the end of the arena; "
            'valid: one of them with "counts"'
        )


def _buddy_contradictions(pool: Buddy, recipe: Recipe, index: int) -> Iterator[str]:
    least = _power_above(max(pool.header + 2 * recipe.link_bytes, pool.header + recipe.align))
    for key in ("min_block", "max_block"):
        value = getattr(pool, key)
        if value & (value - 1):
            yield f'"{key}" {value} is not valid; valid: a power of two'
            return
    if pool.min_block < least:
        yield f'"min_block" {pool.min_block} cannot hold header and links; valid: {least} or a larger power of two'
        return
    if 0 < pool.max_block < pool.min_block:
        yield f'"max_block" {pool.max_block} is below "min_block" {pool.min_block}; valid: 0 (no bound), or more'
        return
    largest = largest_block(pool, recipe.align, recipe.link_bytes) - pool.header
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what the largest block holds, {largest}; it would take no request'
    yield from _region_contradictions(pool, recipe, index, pool.min_block)


def _partition_contradictions(pool: Partition, recipe: Recipe, index: int) -> Iterator[str]:
    least = DESCRIPTOR_FIELDS * recipe.link_bytes
    if pool.descriptor_bytes < least:
        yield (
            f'"descriptor_bytes" {pool.descriptor_bytes} cannot hold count, start and two links of {recipe.link_bytes} '
            f"bytes; valid: {least} or more"
        )
    if pool.size < recipe.link_bytes and any(isinstance(other, Quick) for other in recipe.pools[:index]):
        yield f'"size" {pool.size} cannot hold the link of a quick pool above; valid: {recipe.link_bytes} and more'
    if pool.count == "grow":
        if index + 1 < len(recipe.pools):
            yield 'shares the rest of the arena and must be the last pool; move it there or give it a "count"'
        return
    most = (1 << (8 * recipe.link_bytes - 1)) - 1
    if pool.count > most:
        yield f'"count" {pool.count} is more than links of {recipe.link_bytes} bytes can number; valid: up to {most}'
    largest = _largest_served(pool, recipe.align, recipe.link_bytes)
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what all partitions hold, {largest}; it would take no request'


# ---- Canonical form ------------------------------------------------------------------------------------------------


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _power_above(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << (value - 1).bit_length()


def least_handle(pool: Compact, link_bytes: int) -> int:
    """Bytes of the smallest handle: an address, without headers also a size and a link; on 32 bits with the caller."""
    number = link_bytes if pool.handles == "arena" else 4
    return number if pool.header else 3 * number


def largest_object(pool: Compact, align: int, link_bytes: int) -> int:
    """Bytes of the largest object whose size a compact pool can store, in units of the alignment."""
    width = min(pool.header // 2, 4) or (link_bytes if pool.handles == "arena" else 4)
    return min(((1 << (8 * width)) - 1) * align - pool.header, MAX_REQUEST)


def largest_block(pool: Buddy, align: int, link_bytes: int) -> int:
    """Bytes of the largest block of a buddy pool: as asked for, and no larger than its region or its links' reach."""
    reach = (2**16 - 1) * align if link_bytes == 2 else 2**31 - 1
    most = 1 << (min(pool.region or reach, reach).bit_length() - 1)
    return min(pool.max_block or most, most)


def _has_tags(pool: General) -> bool:
    """Boundary tags tell a freed block whether its predecessor is free; nothing but immediate coalescing asks."""
    return pool.boundary_tags and pool.coalesce == "immediate"


def links_in_header(pool: General, align: int, link_bytes: int) -> int:
    """Bytes at the end of the header that a free block's links take; 0 where they lie in the payload.

    The first link begins at a multiple of what addresses are counted in, or of its width where the alignment allows.
    """
    if pool.links_in == "payload":
        return 0
    return _round_up(LINKS[pool.free_list] * link_bytes, align if link_bytes == 2 else min(align, link_bytes))


def word_bytes(pool: General, align: int, link_bytes: int) -> int:
    """Bytes of the word at a block's start, 1 to 4: what the header has beside links, a tag taking as much."""
    room = pool.header - links_in_header(pool, align, link_bytes)
    return max(1, min(4, room // (2 if _has_tags(pool) and pool.tag_in == "header" else 1)))


def flags_in_word(pool: General) -> int:
    """Number of flag bits in the word: in use, and with tags in free blocks whether the block before is."""
    return 2 if _has_tags(pool) and pool.tag_in == "block" else 1


def reach_of(pool: General, align: int, link_bytes: int) -> int:
    """Largest arena in bytes that the links, the size field and the bins of a pool reach."""
    width, flags, unit = word_bytes(pool, align, link_bytes), flags_in_word(pool), pool.unit or align
    raw = width == 4 and unit >= 1 << flags
    sizes = MAX_REACH if raw else ((1 << (8 * width - flags)) - 1) * unit
    links = 0xFFFF * align if link_bytes == 2 else MAX_REACH
    return min(sizes, links, pool.max_block or MAX_REACH, MAX_REACH)


def _metadata_block(pool: General, align: int, link_bytes: int) -> int:
    """Bytes of a block that holds nothing but its metadata while it is free."""
    tag = word_bytes(pool, align, link_bytes) if _has_tags(pool) and pool.tag_in == "block" else 0
    links = LINKS[pool.free_list] * link_bytes if pool.links_in == "payload" else 0
    return _whole_block(pool.header + links + tag, pool, align)


def _least_block(pool: General, align: int, link_bytes: int) -> int:
    """Bytes of the smallest block unless asked for: it also has room for a payload of one alignment unit."""
    handed_out = _whole_block(pool.header + align + pool.trailer, pool, align)
    return max(_metadata_block(pool, align, link_bytes), handed_out)


def _whole_block(size: int, pool: General, align: int) -> int:
    """The size rounded up to what the pool hands out."""
    block = _round_up(size, pool.unit or align)
    return 1 << (block - 1).bit_length() if pool.round_to == "power-of-two" else block


def _smallest_block(pool: General, align: int, link_bytes: int) -> int:
    """Bytes of the smallest block as asked for, but at least what it needs; whole units."""
    if not pool.min_block:
        return _least_block(pool, align, link_bytes)
    return _whole_block(max(pool.min_block, _metadata_block(pool, align, link_bytes)), pool, align)


def smallest_cached_block(pool: General, align: int, link_bytes: int) -> int:
    """Bytes of the smallest block that can also be kept in a quick list, which is linked through its payload."""
    smallest = _smallest_block(pool, align, link_bytes)
    return _whole_block(max(smallest, pool.header + max(link_bytes, align + pool.trailer)), pool, align)


def _bin_shape(pool: General, align: int, link_bytes: int) -> tuple[int, BinsPerOctave]:
    """Return (linear_up_to, bins_per_octave) as they act.

    Octaves in which a bin is narrower than a unit hold one size a bin, which is what linear bins do; linear bins for
    blocks smaller than the smallest are none.
    """
    unit = pool.unit or align
    per_octave = pool.bins_per_octave or BINS_PER_OCTAVE[pool.bins]
    linear = min(LINEAR_UP_TO[pool.bins], 512 * unit) if pool.linear_up_to is None else pool.linear_up_to
    least = per_octave * unit if per_octave > 1 else 0
    return (least if linear <= max(least, _smallest_key(pool, align, link_bytes)) else linear), per_octave


def _smallest_key(pool: General, align: int, link_bytes: int) -> int:
    """Size of the smallest block as bins count it."""
    smallest = _smallest_block(pool, align, link_bytes)
    return smallest - pool.header - pool.trailer if pool.bin_by == "payload" else smallest


def _bins_name(pool: General, linear: int, per_octave: int, unit: int) -> Bins:
    """Name a shape of bins by the design whose default it is, else by the family's parameterised member."""
    if pool.bins in ROUNDED_UP:
        return "half-fit" if (linear, per_octave) == (0, 1) else "two-level"
    if pool.close_bins:
        return "exact"
    if (linear, per_octave) == (0, 1):
        return "power-of-two"
    return "lea" if (linear, per_octave) == (max(256, 4 * unit), 4) else "exact"


def _least_remainder(pool: General, unit: int, min_block: int) -> Literal["always", "never"] | int:
    if isinstance(pool.split, str):
        return pool.split
    return "always" if pool.split <= min_block else _round_up(pool.split, unit)


@lru_cache(maxsize=65536)
def _canonical_general(pool: General, align: int, link_bytes: int) -> General:
    order = "address" if pool.free_list == "implicit" else pool.order
    if not pool.victim_up_to and pool.close_bins:  # best fit takes the next filled bin anyway
        pool = pool.model_copy(update={"close_bins": 0})
    unit = pool.unit or align
    min_block = _smallest_block(pool, align, link_bytes)
    changes: dict[str, Any] = {"unit": unit, "min_block": min_block, "boundary_tags": _has_tags(pool)}
    if not _has_tags(pool):
        changes["tag_in"] = "block"
    if pool.free_list == "implicit":
        changes["links_in"] = "payload"
    if order in ("address", "size") or pool.bins != "none" or pool.free_list == "implicit":
        changes["remainder"] = "in-place"  # the order says where it belongs
    if pool.coalesce != "lazy":
        changes["merge_until"] = "end"
    if pool.grow_least:
        changes["grow_least"] = 0 if pool.grow_least <= min_block else _round_up(pool.grow_least, unit)
    if pool.max_block == MAX_REACH:
        changes["max_block"] = 0
    changes["order"] = order
    if pool.bins == "none":
        changes |= {"linear_up_to": None, "bins_per_octave": None, "bin_by": "block", "most_bins": 0}
    else:
        linear, per_octave = _bin_shape(pool, align, link_bytes)
        bins = _bins_name(pool, linear, per_octave, unit)
        changes |= {"bins": bins, "linear_up_to": linear, "bins_per_octave": per_octave}
        changes["large_order"] = None if pool.large_order == order else pool.large_order
    if pool.bins in ROUNDED_UP or (
        pool.fit == "best" and (pool.search_percent == 0 or (pool.large_order or order) == "size")
    ):
        changes["fit"] = "first"
    fit_searches = changes.get("fit", pool.fit) == "best"
    changes["search_percent"] = pool.search_percent if fit_searches else 100
    changes["split"] = _least_remainder(pool, unit, min_block)
    if pool.split == "never" or pool.fit == "exact":
        changes["split_from"] = "head"
    merging = pool.coalesce != "never" and pool.coalesce_from > min_block
    changes["coalesce_from"] = _round_up(pool.coalesce_from, unit) if merging else 0
    if pool.victim_up_to:
        small = min(pool.victim_up_to, pool.max_size or MAX_REQUEST)
        changes["victim_up_to"] = capacity_for(small, pool, align, link_bytes)
    changes["region"] = pool.region // unit * unit
    return pool.model_copy(update=_request_range(pool) | changes)


@lru_cache(maxsize=65536)
def _canonical_fixed(pool: Fixed, align: int) -> Fixed:
    classes = [_round_up(size, align) for size in pool.sizes]
    changes: dict[str, Any] = {"sizes": tuple(sorted(classes))}
    if pool.counts != "grow":
        changes["counts"] = tuple(count for _, count in sorted(zip(classes, pool.counts, strict=True)))
    if len(classes) == 1:
        changes["fall_through"] = False
    if pool.page < 2 * _round_up(pool.header + min(classes), align):
        changes["page"] = 0
    if pool.max_size is not None and pool.max_size >= max(classes):
        changes["max_size"] = None
    return pool.model_copy(update=_request_range(pool) | changes)


@lru_cache(maxsize=65536)
def _canonical_buddy(pool: Buddy, align: int, link_bytes: int) -> Buddy:
    largest = largest_block(pool, align, link_bytes)
    unbounded = largest == largest_block(pool.model_copy(update={"max_block": 0}), align, link_bytes)
    changes: dict[str, Any] = {
        "max_block": 0 if unbounded else largest,
        "region": pool.region // pool.min_block * pool.min_block,
    }
    return pool.model_copy(update=_request_range(pool, largest - pool.header) | changes)


@lru_cache(maxsize=65536)
def _canonical_partition(pool: Partition, align: int, link_bytes: int) -> Partition:
    changes: dict[str, Any] = {"size": _round_up(pool.size, align)}
    if pool.order == "size":  # the first group that is large enough is the smallest
        changes["fit"] = "first"
    return pool.model_copy(update=_request_range(pool, _largest_served(pool, align, link_bytes)) | changes)


@lru_cache(maxsize=65536)
def _canonical_compact(pool: Compact, align: int, link_bytes: int) -> Compact:
    changes: dict[str, Any] = {"handle_bytes": pool.handle_bytes or least_handle(pool, link_bytes)}
    return pool.model_copy(update=_request_range(pool, largest_object(pool, align, link_bytes)) | changes)


@lru_cache(maxsize=65536)
def _canonical_quick(pool: Quick, below: tuple[Pool, ...], align: int, link_bytes: int) -> Quick:
    changes = _request_range(pool)
    if pool.sizes is not None:
        cached = {_capacity(size, below, align, link_bytes) for size in pool.sizes if pool.takes(size)}
        changes |= {"sizes": tuple(sorted(cached)), "min_size": 0, "max_size": None}
    elif pool.up_to is not None:
        changes["up_to"] = min(_capacity(pool.up_to, below, align, link_bytes), MAX_UP_TO)
        if pool.max_size is not None and pool.max_size >= pool.up_to:
            changes["max_size"] = None
    share = round(pool.flush_share * FLUSH_STEPS) / FLUSH_STEPS
    changes["flush_share"] = share if pool.flush == "before-growing" else 0.0
    return pool.model_copy(update=changes)


def _request_range(pool: Pool, largest: int = MAX_REQUEST) -> dict[str, Any]:
    """A request of size 0 is served as 1 byte, and none above `largest` is served at all."""
    return {
        "min_size": 0 if pool.min_size == 1 else pool.min_size,
        "max_size": None if pool.max_size is not None and pool.max_size >= largest else pool.max_size,
    }


def _capacity(size: int, below: tuple[Pool, ...], align: int, link_bytes: int) -> int:
    """Payload bytes of the block that the pool below gives a request of `size` bytes.

    A list holds blocks, so two requests that get the same block share it. Left as it is where no pool below would
    serve a request of the whole payload.
    """
    owners = [pool for pool in below if not isinstance(pool, Quick)]
    capacity = _capacity_in(owners[0], size, align, link_bytes)
    served = any(pool.takes(capacity) and capacity <= _largest_served(pool, align, link_bytes) for pool in owners)
    return capacity if served else size


def _capacity_in(pool: Owner, size: int, align: int, link_bytes: int) -> int:
    """Payload bytes of the block that a pool gives for a request of `size` bytes, if quick lists hold its blocks."""
    if isinstance(pool, General):
        return capacity_for(size, pool, align, link_bytes)
    if isinstance(pool, Buddy):
        return max(_power_above(size + pool.header), pool.min_block) - pool.header
    if isinstance(pool, Partition):
        return _round_up(size, _round_up(pool.size, align))
    return _round_up(max(size, link_bytes), align)


def capacity_for(size: int, pool: General, align: int = 4, link_bytes: int = 4) -> int:
    """Payload bytes of the block that a general pool cuts for a request of `size` bytes."""
    overhead = pool.header + pool.trailer
    block = max(_whole_block(size + overhead, pool, align), _smallest_block(pool, align, link_bytes))
    return min(block - overhead, MAX_REQUEST)


def _canonical_pools(pools: tuple[Pool, ...], align: int, link_bytes: int) -> tuple[Pool, ...]:
    canonical: list[Pool] = []
    for index, pool in enumerate(pools):
        if isinstance(pool, Quick):
            canonical.append(_canonical_quick(pool, pools[index + 1 :], align, link_bytes))
        elif isinstance(pool, General):
            canonical.append(_canonical_general(pool, align, link_bytes))
        elif isinstance(pool, Buddy):
            canonical.append(_canonical_buddy(pool, align, link_bytes))
        elif isinstance(pool, Partition):
            canonical.append(_canonical_partition(pool, align, link_bytes))
        elif isinstance(pool, Compact):
            canonical.append(_canonical_compact(pool, align, link_bytes))
        else:
            canonical.append(_canonical_fixed(pool, align))
    return tuple(canonical)


@lru_cache(maxsize=65536)
def _pool_json(pool: Pool) -> str:
    data = {"kind": pool.kind, **_non_default(pool, skip={"kind"})}
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


# ---- Writing -------------------------------------------------------------------------------------------------------


def _non_default(table: _Table, skip: set[str]) -> dict[str, Any]:
    """Keys whose value is not the default, in the order of declaration, lists for tuples."""
    found = {}
    for key, field in type(table).model_fields.items():
        value = getattr(table, key)
        if key not in skip and (field.is_required() or value != field.default):
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


def _without_resolved(pool: Pool, recipe: Recipe) -> Pool:
    """Undo what canonical() fills in, where the absent key means the same."""
    if isinstance(pool, Compact) and pool.handle_bytes == least_handle(pool, recipe.link_bytes):
        return pool.model_copy(update={"handle_bytes": 0})
    if not isinstance(pool, General):
        return pool
    changes: dict[str, Any] = {}
    if pool.unit == recipe.align:
        changes["unit"] = 0
    if pool.min_block == _least_block(pool, recipe.align, recipe.link_bytes):
        changes["min_block"] = 0
    if not pool.boundary_tags and pool.coalesce != "immediate":
        changes["boundary_tags"] = True
    if pool.free_list == "implicit":
        changes["order"] = "lifo"
    if pool.bins != "none":
        shape = _bin_shape(pool, recipe.align, recipe.link_bytes)
        absent = _bin_shape(pool.model_copy(update={"linear_up_to": None}), recipe.align, recipe.link_bytes)
        changes["linear_up_to"] = None if shape == absent else pool.linear_up_to
        changes["bins_per_octave"] = None if shape[1] == BINS_PER_OCTAVE[pool.bins] else pool.bins_per_octave
    return pool.model_copy(update=changes)


def _quick_summary(pool: Quick) -> str:
    sizes = f"up to {pool.up_to}" if pool.sizes is None else _sizes_summary(pool.sizes)
    words = [f"quick {sizes}"]
    words += [f"limit {pool.limit_blocks} blocks"] if pool.limit_blocks else []
    words += [f"limit {pool.limit_bytes} B"] if pool.limit_bytes else []
    words += [f"flush {pool.flush}"] if pool.flush != "never" else []
    words += [f"above {pool.flush_share:.4g}"] if pool.flush_share else []
    words += [f"flush for {pool.flush_from} B"] if pool.flush_from else []
    return " ".join(words) + _range_summary(pool)


def _general_summary(pool: General) -> str:
    bins = {"none": f"{pool.free_list}/{pool.order}", "exact": "exact bins", "power-of-two": "power-of-two bins"}
    where = "implicit" if pool.free_list == "implicit" else bins.get(pool.bins, pool.bins)
    if pool.bins != "none" and (pool.free_list, pool.order) != ("double", "lifo"):
        where += f" {pool.free_list}/{pool.order}"
    shape = [f"linear to {pool.linear_up_to}"] if pool.linear_up_to is not None else []
    shape += [f"{pool.bins_per_octave} an octave"] if pool.bins_per_octave is not None else []
    fit = "good-fit" if pool.bins in ROUNDED_UP else f"{pool.fit}-fit"
    fit += f" {pool.search_percent}%" if pool.fit == "best" and pool.search_percent != 100 else ""
    split = f"split from {pool.split} B" if isinstance(pool.split, int) else f"split {pool.split}"
    split += " off the tail" if pool.split_from == "tail" else ""
    merge = f"coalesce {pool.coalesce}" + (f" from {pool.coalesce_from} B" if pool.coalesce_from else "")
    words = [" ".join(["general", where, *(f"({part})" for part in shape), fit]), split, merge]
    words += [f"victim {pool.victim_up_to}"] if pool.victim_up_to else []
    words += [f"close bins {pool.close_bins}"] if pool.close_bins else []
    words += [] if pool.boundary_tags else ["no tags"]
    words += ["tags in headers"] if pool.tag_in == "header" else []
    words += ["links in headers"] if pool.links_in == "header" else []
    words += [f"search from {pool.search_from}"] if pool.search_from != "start" else []
    words += [f"search at most {pool.search_most}"] if pool.search_most else []
    words += ["remainders filed"] if pool.remainder == "filed" else []
    words += ["merged in place"] if pool.merged == "in-place" else []
    words += ["merge until enough"] if pool.merge_until == "enough" else []
    words += [f"top {pool.top}"] if pool.top != "last" else []
    words += [f"grow at least {pool.grow_least} B"] if pool.grow_least else []
    words += [f"resize {pool.resize}"] if pool.resize != "in-place" else []
    words += [f"large bins {pool.large_order}"] if pool.large_order else []
    words += ["unsorted queue"] if pool.unsorted else []
    words += [f"at most {pool.most_bins} bins"] if pool.most_bins else []
    words += ["bins by payload"] if pool.bin_by == "payload" else []
    words += ["powers of two"] if pool.round_to == "power-of-two" else []
    for key in ("header", "trailer", "min_block", "max_block", "unit", "region"):
        if getattr(pool, key) != General.model_fields[key].default:
            words.append(f"{key.replace('_', ' ')} {getattr(pool, key)}")
    return ", ".join(words) + _range_summary(pool)


def _fixed_summary(pool: Fixed) -> str:
    counts = "growing" if pool.counts == "grow" else f"counts {_sizes_summary(pool.counts)}"
    page = f" by pages of {pool.page}" if pool.page else ""
    words = [f"fixed {_sizes_summary(pool.sizes)} {counts}{page} {pool.find}"]
    words += [f"header {pool.header}"] if pool.header else []
    words += ["falling through"] if pool.fall_through else []
    return ", ".join(words) + _range_summary(pool)


def _buddy_summary(pool: Buddy) -> str:
    words = [f"buddy from {pool.min_block} B"]
    words += [f"to {pool.max_block} B"] if pool.max_block else []
    words = [" ".join(words)]
    words += [f"header {pool.header}"] if pool.header != 4 else []
    words += [f"region {pool.region}"] if pool.region else []
    return ", ".join(words) + _range_summary(pool)


def _partition_summary(pool: Partition) -> str:
    words = [f"partitions of {pool.size} B"]
    words += ["growing" if pool.count == "grow" else f"count {pool.count}"]
    words[0] += f" {pool.order}/{pool.fit}-fit"
    words += [f"descriptors of {pool.descriptor_bytes} B"] if pool.descriptor_bytes != 32 else []
    words += [f"coalesce {pool.coalesce}"] if pool.coalesce != "immediate" else []
    return ", ".join(words) + _range_summary(pool)


def _compact_summary(pool: Compact) -> str:
    words = [f"compact {pool.when}", "handles in the arena" if pool.handles == "arena" else "handles with the caller"]
    words += [f"of {pool.handle_bytes} B"] if pool.handle_bytes else []
    words += [f"header {pool.header}"] if pool.header != 4 else []
    return ", ".join(words) + _range_summary(pool)


_SUMMARIES: dict[str, Any] = {
    "quick": _quick_summary,
    "general": _general_summary,
    "fixed": _fixed_summary,
    "buddy": _buddy_summary,
    "partition": _partition_summary,
    "compact": _compact_summary,
}


def _sizes_summary(sizes: tuple[int, ...]) -> str:
    if len(sizes) <= 9:
        return ",".join(map(str, sizes))
    return ",".join(map(str, sizes[:4])) + f",...,{sizes[-1]} ({len(sizes)} sizes)"


def _range_summary(pool: Pool) -> str:
    if pool.max_size is not None:
        return f" for {pool.min_size} to {pool.max_size} B"
    return f" from {pool.min_size} B" if pool.min_size else ""


# ---- Errors: one line that names the pool, the key and what would be valid -----------------------------------------


def _one_line(error: ValidationError, data: Mapping[str, Any]) -> str:
    details = error.errors(include_url=False)
    # A list whose items are wrong is reported as too short, too.
    details = [detail for detail in details if len(detail["loc"]) > 1 or detail["type"] != "too_short"] or details
    first = details[0]
    if first["type"] == "contradiction":
        index = first["ctx"]["pool"]
        return f"{_pool_name(index, data)}: {first['ctx']['problem']}"
    message = _explain(first, data)
    keys = {detail["loc"][:4] for detail in details}
    return message + (f" (and {len(keys) - 1} more)" if len(keys) > 1 else "")


def _pool_name(index: int, data: Mapping[str, Any]) -> str:
    pools = data.get("pool", data.get("pools"))
    pool = pools[index] if isinstance(pools, list | tuple) else None
    kind = pool.get("kind") if isinstance(pool, Mapping) else getattr(pool, "kind", None)
    return f"pool {index + 1}" + (f" ({kind})" if isinstance(kind, str) and kind in KINDS else "")


def _explain(detail: ErrorDetails, data: Mapping[str, Any]) -> str:
    table, prefix, path = Recipe, "", list(detail["loc"])
    if path[:1] == ["pool"] and len(path) > 1:
        prefix = _pool_name(int(path[1]), data) + ": "
        if len(path) == 2:
            return prefix + _explain_pool(detail)
        return prefix + _explain_key(detail, KINDS[str(path[2])], str(path[3]))
    return prefix + _explain_key(detail, table, str(path[0]) if path else "")


def _explain_pool(detail: ErrorDetails) -> str:
    kinds = ", ".join(KINDS)
    if detail["type"] == "union_tag_not_found":
        return f'"kind" is missing; valid: {kinds}'
    if detail["type"] == "union_tag_invalid":
        return f'"kind" {_quoted(detail["input"]["kind"])} is not valid; valid: {kinds}'
    return "is not a table; valid: [[pool]] with a kind"


def _explain_key(detail: ErrorDetails, table: type[_Table], key: str) -> str:
    names = {"pool" if name == "pools" else name: field for name, field in table.model_fields.items()}
    if detail["type"] == "extra_forbidden":
        close = get_close_matches(key, names, n=1)
        guess = f'; did you mean "{close[0]}"?' if close else ";"
        return f'unknown key "{key}"{guess} valid: {", ".join(names)}'
    if table is General and key == "header" and detail["input"] == 0:
        return NO_HEADER
    if table is Buddy and key == "header" and detail["input"] == 0:
        return NO_ORDER
    if key == "pool":
        return f"needs 1 to {MAX_POOLS} [[pool]] tables; valid kinds: {', '.join(KINDS)}"
    if detail["type"] == "missing":
        return f'"{key}" is missing; valid: {_valid(names[key])}'
    return f'"{key}": {_quoted(detail["input"])} is not valid; valid: {_valid(names[key])}'


def _quoted(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _valid(field: FieldInfo) -> str:
    """Say what values a field takes, from its type and bounds."""
    return ", ".join(_valid_of(*part) for part in _alternatives(field.annotation, field.metadata))


def _alternatives(annotation: Any, metadata: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Every member of a union with its constraints, without None."""
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = [constraint for part in inner for constraint in getattr(part, "metadata", ())]
    if get_origin(annotation) in (Literal, tuple) or not get_args(annotation):
        if annotation is not NoneType:
            yield annotation, metadata
        return
    for part in get_args(annotation):
        yield from _alternatives(part, metadata)


def _valid_of(annotation: Any, metadata: list[Any]) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, get_args(annotation)))
    if get_origin(annotation) is tuple:
        return f"a list of 1 to {MAX_CLASSES} whole numbers from 1 to {MAX_REQUEST}"
    bounds = [
        getattr(constraint, side) for side in ("ge", "le") for constraint in metadata if hasattr(constraint, side)
    ]
    span = f" from {bounds[0]} to {bounds[1]}" if bounds else ""
    return {bool: "true, false", int: "a whole number" + span, float: "a number" + span, str: "text"}[annotation]
