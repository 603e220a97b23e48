"""Interface of a pool of any kind: the keys that all kinds have, and the methods with their usual results.

`values` are the fields of a pool's policy by name, as `lay_out` returns them; `laid_out` is the same pool in the C
struct (`struct hw_pool`). Both are of the recipe's canonical form. `pools` are all of the recipe, `below` those after
one. Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from heapwright._recipes.geometry import Geometry, round_up
from heapwright._recipes.kinds.bounds import AccessBounds, BlockLoad, Thresholds, WorstCase
from heapwright._recipes.limits import MAX_REACH, MAX_REQUEST, MAX_SITES
from heapwright._recipes.model import Table, field

if TYPE_CHECKING:
    from typing_extensions import Self

    from heapwright._recipes.kinds.bounds import Sizes
    from heapwright._recipes.kinds.layout import Layout


def whole(value: Any) -> Any:
    """Refuse what merely equals a whole number (true, 4.0), before a Literal accepts it."""
    if value is not None and type(value) is not int:
        raise ValueError("not a whole number")
    return value


Size = Annotated[int, field(strict=True, ge=1, le=MAX_REQUEST)]


class BlockShape(NamedTuple):
    """How large the blocks are that a pool hands to lists of freed blocks above it.

    Attributes:
        header: bytes of a block that are not its payload.
        unit: blocks are multiples of it.
        least: bytes of the smallest.
        powers: whether they are powers of two.
        mixed: whether the size of a block may be another than that of the request's list.
    """

    header: int
    unit: int
    least: int
    powers: bool
    mixed: bool


class BasePool(Table):
    """A pool of any kind."""

    number: ClassVar[int]
    """Of the kind, in `enum hw_pool_kind`."""
    owns_blocks: ClassVar[bool] = True
    """Whether blocks belong to it; else it keeps those of the pools below."""
    moves_objects: ClassVar[bool] = False
    """Whether objects are reached through handles, and move."""
    aligns: ClassVar[bool] = False
    """Whether it serves alignments above the heap's own."""
    has_thresholds: ClassVar[bool] = False
    """Whether two replays may differ in nothing but sizes that are compared."""
    hints: ClassVar[Mapping[tuple[str, int], str]] = {}
    """Messages for values that the model rejects, by key and value, if the bounds alone do not explain why."""
    removed_keys: ClassVar[Mapping[str, str]] = {}
    """Keys that version 0.2.0 was the last to read, with what to use instead."""
    space_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that a space file has beyond the model's."""
    word: ClassVar[str] = ""
    """The field of the policy that says how a block's size or place is read; empty if nothing reads it."""

    min_size: int = field(default=0, ge=0, le=MAX_REQUEST, description="smallest request it takes, bytes")
    max_size: int | None = field(default=None, ge=1, le=MAX_REQUEST, description="largest request it takes, bytes")
    memory: str = field(default="", description="name of the memory that it lies in, where the recipe has several")
    sites: tuple[Annotated[str, field(min_length=1)], ...] = field(
        default=(),
        strict=False,
        max_length=MAX_SITES,
        description="call sites that it serves alone, as traces name them; * stands for any letters",
    )

    @property
    def kind_name(self) -> str:
        """The kind as recipes call it."""
        return str(type(self).model_fields["kind"].default)

    def takes(self, size: int) -> bool:
        """Whether the pool is offered a request of `size` bytes."""
        return self.min_size <= size and (self.max_size is None or size <= self.max_size)

    # ---- sizes

    def largest_served(self, geometry: Geometry) -> int:
        """The largest request that it could serve in an arena without bounds."""
        return MAX_REQUEST

    def largest_request(self, geometry: Geometry) -> int:
        """The largest request that it is offered: no block of a larger one is within its reach."""
        return MAX_REQUEST

    def largest_on_fast_path(self, geometry: Geometry) -> int:
        """The largest request for which a block may be at hand."""
        return MAX_REQUEST

    def reach(self, geometry: Geometry) -> int:
        """Largest arena that its links and headers address; `MAX_REACH` where nothing bounds it."""
        return MAX_REACH

    def capacity(self, size: int, geometry: Geometry) -> int:
        """Payload bytes of the block that it gives for a request of `size` bytes, if lists above it keep it."""
        return round_up(max(size, geometry.link_bytes), geometry.align)

    # ---- rules

    @classmethod
    def crowding(cls, pools: Sequence[BasePool]) -> Iterator[tuple[int, str]]:
        """Yield why there are too many pools of the kind: the index of the first beyond, and the problem in words."""
        yield from ()

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        """Yield what no reading of its keys can make sense of; it is the one at `index`."""
        yield from ()

    @property
    def has_victim(self) -> bool:
        """Whether small requests are cut from one region, which is kept outside all bins."""
        return False

    @property
    def odd_blocks(self) -> str:
        """A message on its block sizes, if lists above it cannot be computed from them; else empty."""
        return ""

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> Self:
        """The form that all pools of the same behaviour share."""
        return self

    def without_resolved(self, geometry: Geometry) -> Self:
        """Undo what `canonical` fills in, where the absent key means the same."""
        return self

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> Self:
        """Round what depends on the alignment."""
        return self.model_copy()

    def without_thresholds(self) -> Self:
        """A pool that differs from this one in nothing but what `set_thresholds` sets."""
        return self

    @classmethod
    def each_list_once(cls, pools: tuple[BasePool, ...], geometry: Geometry) -> tuple[BasePool, ...]:
        """Leave out what another pool of the kind has, too."""
        return pools

    def request_range(self, largest: int = MAX_REQUEST) -> dict[str, Any]:
        """A request of size 0 is served as 1 byte, and none above `largest` is served at all."""
        return {
            "min_size": 0 if self.min_size == 1 else self.min_size,
            "max_size": None if self.max_size is not None and self.max_size >= largest else self.max_size,
        }

    @property
    def hashed_keys(self) -> dict[str, Any]:
        """Former keys with a value that follows from others, which its content hash has always had."""
        return {}

    # ---- words

    def summary(self) -> str:
        """The kind and what differs from the defaults, in one short line for people."""
        raise NotImplementedError

    def title(self) -> str:
        """A short name of its design in two or three words, which other designs may share."""
        raise NotImplementedError

    def range_summary(self) -> str:
        """What requests it takes, where not all."""
        sites = f" of {len(self.sites)} site{'s' * (len(self.sites) > 1)}" if self.sites else ""
        if self.max_size is not None:
            return f" for {self.min_size} to {self.max_size} B{sites}"
        return (f" from {self.min_size} B" if self.min_size else "") + sites

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        """Bytes of a block in use that lists of allocators call its overhead."""
        raise NotImplementedError

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        """Bytes of the smallest block, header included."""
        raise NotImplementedError

    @property
    def is_bounded(self) -> bool:
        """Whether neither searches nor merges depend on how many blocks there are."""
        return False

    @property
    def doubt(self) -> str | None:
        """Why such a pool is a low-confidence design (`heapwright._studies`), in words; None for a robust one."""
        return "its pools take memory that no other pool gets back"

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        """Whether a larger arena gives it more memory."""
        return False

    @property
    def shared_top(self) -> str:
        """How memory never used is taken from what it shares with others; empty where that is not chosen."""
        return ""

    @property
    def lists_fresh_memory(self) -> bool:
        """Whether memory never used is a free block."""
        return False

    @property
    def moves_bounds(self) -> bool:
        """Whether words of the control data say where its blocks end, and calls change them."""
        return True

    @property
    def outside_bytes(self) -> int:
        """Bytes that the program keeps for each object outside the arena."""
        return 0

    @property
    def reference_words(self) -> int:
        """Pointers that the program keeps for each object which moves; 0 where objects stay."""
        return 0

    @property
    def has_null_node(self) -> bool:
        """Whether ends of lists are written to as if they were nodes."""
        return False

    @property
    def grows_down(self) -> bool:
        """Whether it grows downwards from the arena's far end, toward the last pool."""
        return False

    @property
    def takes_from_end(self) -> bool:
        """Whether it takes memory from the arena's end downwards."""
        return False

    @property
    def carves_from_end(self) -> bool:
        """Whether blocks are carved from the arena's end."""
        return False

    @property
    def end_mark(self) -> int:
        """Bytes behind the blocks at the arena's end that mark where these end."""
        return 0

    @property
    def grows_descriptors(self) -> bool:
        """Whether what it takes from the arena's end describes blocks elsewhere."""
        return False

    @property
    def shared_header(self) -> int | None:
        """Bytes of the header of its blocks where it shares the rest, and all blocks there must have as many."""
        return None

    @property
    def end_header(self) -> int:
        """Bytes of the header of blocks that are taken from the arena's end."""
        return 0

    @property
    def arena_align(self) -> int:
        """What the arena's base must be a multiple of."""
        return 16

    @property
    def flushes_before_growing(self) -> bool:
        """Whether a request that would raise the high-water mark first returns blocks that it keeps."""
        return False

    @property
    def refills(self) -> bool:
        """Whether several blocks are cut for a list at a time."""
        return False

    @property
    def gives_back_idle(self) -> bool:
        """Whether blocks that it keeps go back once they waited for long."""
        return False

    @property
    def rounds_requests(self) -> bool:
        """Whether it asks the pools below for more than a request needs."""
        return False

    @property
    def classes(self) -> tuple[int, ...]:
        """Bytes of the blocks of each class that has a number of its own; empty where it has none."""
        return ()

    def with_classes(self, sizes: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
        """The keys that give it `counts` blocks of these `sizes`, of as many classes as it has."""
        raise NotImplementedError

    def cuts(self, geometry: Geometry) -> bool:
        """Whether one block may become several, back to back."""
        return False

    def ends_on_words(self, align: int) -> bool:
        """Whether all payloads end at multiples of 4, where `align` is one."""
        return True

    def serves_empty(self, values: Mapping[str, Any]) -> bool:
        """Whether its arithmetic takes 0 bytes for what it takes 1 byte for."""
        return False

    def has_pairs(self, values: Mapping[str, Any]) -> bool:
        """Whether a node of its lists is a link and one more, or a mark, behind it."""
        return False

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        """Shape of the blocks that free-list caches above it keep; `others` is true if these serve more pools."""
        align = geometry.align
        least = max(align, round_up(geometry.link_bytes, align))
        return BlockShape(0, align, least, powers=False, mixed=others)

    def lay_out(self, layout: Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        """The fields of its policy, and its control data placed; `listed`: caches above it keep its blocks."""
        raise NotImplementedError

    def place_region(self, layout: Layout, values: dict[str, Any]) -> None:
        """Place a region with a size of its own."""

    def place_shared(self, layout: Layout, values: dict[str, Any]) -> None:
        """Move the start of the shared part to where its blocks may begin."""

    def end_at(self, values: Mapping[str, Any]) -> int:
        """Where the arena keeps the address of its end, of a pool that takes from there."""
        return int(values["end_at"])

    def face(self, values: dict[str, Any], last: Mapping[str, Any]) -> None:
        """Note where the last pool, of these values, begins and ends, if blocks grow toward its own."""

    def region_bytes(self, geometry: Geometry) -> int:
        """Bytes of a region of its own that blocks can cover."""
        return 0

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        """Most accesses of its calls. Raises UnboundedError where nothing bounds them."""
        raise NotImplementedError

    def worst_cases(self, laid_out: Any, load: BlockLoad, *, lists: bool, reallocs: bool) -> Iterator[WorstCase]:
        """Yield the arenas, beyond control data, that theorems say are enough; none where none holds.

        lists: free-list caches lie above it, which are emptied before a request fails. reallocs: the program
        resizes blocks.
        """
        yield from ()

    def exact_blocks(self, laid_out: Any, sizes: Sizes, align: int) -> tuple[Sizes, int]:
        """The blocks that requests get where splitting is exact, and the smallest that any gets."""
        return -(-sizes // align) * align, align

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        """Whether a larger arena gives it more memory."""
        return False

    @classmethod
    def largest_arena(cls, struct: Any, laid_out: Any) -> int:
        """The largest arena that it uses, where it shares what others leave."""
        return int(struct.reach)

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        """The largest number of objects alive at once; None if nothing bounds it."""
        return None

    @classmethod
    def own_bytes(cls, laid_out: Any) -> int:
        """Bytes of the region with a size of its own that holds blocks and descriptors; 0 where there is none."""
        return 0

    @classmethod
    def own_region(cls, laid_out: Any) -> tuple[int, int] | None:
        """Where the region with a size of its own begins and ends; None where there is none."""
        return None

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        """The smallest blocks that it has for requests of these sizes; `NEVER` where it has none."""
        raise NotImplementedError

    @classmethod
    def least_accesses(cls, laid_out: Any, sizes: Sizes) -> tuple[Sizes, int]:
        """Accesses that serving requests of these sizes takes at least where the pool does, and a free of an object.

        `NEVER` where it serves none. A block is taken from a list, or cut where blocks begin: a head and what
        lies behind it are read and the head is written. One that is freed gets the head for its link, and the head
        leads to it.
        """
        return sizes * 0 + 3, 3

    def set_thresholds(self, laid_out: Any, geometry: Geometry) -> None:
        """Set those of this canonical pool in the struct of one that differs in nothing else."""

    @classmethod
    def take_thresholds(cls, laid_out: Any, checks: bool) -> Thresholds:
        """The thresholds, which are then the same in all structs that differ in nothing else."""
        raise NotImplementedError

    # ---- what is attacked and proved

    @property
    def is_linked_both_ways(self) -> bool:
        """Whether a list through blocks is linked both ways."""
        return False

    @property
    def is_listed(self) -> bool:
        """Whether a list runs through free blocks."""
        return False

    @property
    def has_header(self) -> bool:
        """Whether a block has a header."""
        return False

    @property
    def has_bins(self) -> bool:
        """Whether free blocks are kept by their sizes, in bins that are computed."""
        return False

    @property
    def tells_top(self) -> bool:
        """Whether a block's size says where the memory in use ends."""
        return False

    @property
    def has_marks(self) -> bool:
        """Whether there is a bitmap, flags or counts of blocks, or a list."""
        return self.is_listed

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        """The largest requests that its classes take."""
        yield from ()

    def merges(self, align: int) -> bool:
        """Whether all free memory is one piece again once all is freed, by design."""
        return True

    @property
    def covers(self) -> bool:
        """Whether the high-water mark lies behind every object, where it is the only pool."""
        return True

    def serves(self, align: int) -> str:
        """When it has to serve `size` bytes because a free piece holds `largest`, as a C expression."""
        return "largest != 0 && size <= largest"

    def wasted(self, values: Mapping[str, Any]) -> int | None:
        """The most bytes that an object may use beyond its own; None where nothing bounds them."""
        return None

    def rounding(self, values: Mapping[str, Any]) -> int:
        """The most bytes by which a request is rounded up before the pools below are tried."""
        return 0

    def marks(self, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Where control data lies that the checker vouches for, and how many bytes."""
        yield from ()

    @property
    def walks_pages(self) -> bool:
        """Whether a walk takes a list's length for each block."""
        return False


@lru_cache(maxsize=65536)
def bare(pool: BasePool) -> Any:
    """A pool without its thresholds; equal ones are the same object."""
    return _same(pool.without_thresholds())


@lru_cache(maxsize=4096)
def _same(pool: BasePool) -> BasePool:
    return pool


def reach_of(pools: Sequence[BasePool], geometry: Geometry) -> int | None:
    """Largest arena that the links and headers of all pools can address; None: none below 2^31 bytes."""
    reaches = [geometry.link_reach, *(pool.reach(geometry) for pool in pools)]
    return min((reach for reach in reaches if reach < MAX_REACH), default=None)


def capacities_below(sizes: Iterable[int], below: Sequence[BasePool], geometry: Geometry) -> list[int]:
    """Payload bytes of the block that the pool below gives a request of each size.

    A list holds blocks, so two requests that get the same block share it. Left as it is where no pool below would serve
    a request of the whole payload.
    """
    owners = [(pool, pool.largest_served(geometry)) for pool in below if pool.owns_blocks]
    results = [(size, owners[0][0].capacity(size, geometry)) for size in sizes]
    return [
        capacity if any(pool.takes(capacity) and capacity <= largest for pool, largest in owners) else size
        for size, capacity in results
    ]


def can_serve(pool: BasePool, size: int, geometry: Geometry) -> bool:
    """Whether the pool could serve a request of `size` bytes."""
    return pool.takes(size) and size <= pool.largest_served(geometry)


def region_contradictions(
    region: int, pools: Sequence[BasePool], geometry: Geometry, index: int, least: int
) -> Iterator[str]:
    """Yield why a pool cannot have a region of this size; `least` is its smallest block; all in bytes."""
    if region == 0 and index + 1 < len(pools):
        yield 'shares the rest of the arena and must be the last pool; move it there or give it a "region" in bytes'
    if 0 < region < least:
        yield f'"region" {region} cannot hold a block; valid: 0 (the rest of the arena) or {least} and more'
    reach = reach_of(pools, geometry)
    if reach is not None and region > reach:
        yield f'"region" {region} is beyond what its links and headers reach; valid: up to {reach}'


def sizes_summary(sizes: Sequence[int]) -> str:
    """Sizes in words, the middle of many left out."""
    if len(sizes) <= 9:
        return ",".join(map(str, sizes))
    return ",".join(map(str, sizes[:4])) + f",...,{sizes[-1]} ({len(sizes)} sizes)"


def sizes_title(sizes: Sequence[int]) -> str:
    """Sizes in a title: a few in full, many by the first and the last."""
    return ", ".join(map(str, sizes)) if len(sizes) <= 4 else f"{sizes[0]} to {sizes[-1]}"
