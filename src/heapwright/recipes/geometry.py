"""Geometry: how large blocks, headers, links and arenas are, from a pool's keys alone."""

from __future__ import annotations

from typing import NamedTuple

from heapwright.recipes.pools import (
    BINS_PER_OCTAVE,
    LINEAR_UP_TO,
    LINKS,
    MAX_REACH,
    MAX_REQUEST,
    BinsPerOctave,
    Buddy,
    Compact,
    Fixed,
    General,
    Owner,
    Partition,
    Pool,
    Quick,
)

GUARD_BYTES = 4
"""Bytes behind each payload at the level of checks that guards payloads."""


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is at least `value`."""
    return -(-value // unit) * unit


def power_above(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << (value - 1).bit_length()


def has_tags(pool: General) -> bool:
    """Boundary tags tell a freed block whether its predecessor is free; nothing but immediate coalescing asks."""
    return pool.boundary_tags and pool.coalesce == "immediate"


def flags_in_word(pool: General) -> int:
    """Number of flag bits in the word: in use, and with tags in free blocks whether the block before is."""
    return 2 if has_tags(pool) and pool.tag_in == "block" else 1


class Geometry(NamedTuple):
    """What all blocks of a heap share, and the sizes that follow from it and a pool's keys; all in bytes.

    Attributes:
        align: alignment of payloads.
        link_bytes: width of a link in metadata; 2 counts in units of `align`.
        guard: bytes behind each payload that tell of an overflow.
    """

    align: int = 8
    link_bytes: int = 4
    guard: int = 0

    @property
    def link_reach(self) -> int:
        """Largest arena that links can address."""
        return 0xFFFF * self.align if self.link_bytes == 2 else MAX_REACH

    def least_handle(self, pool: Compact) -> int:
        """Bytes of the smallest handle: an address, without headers a size and a link, too; 32 bits with the caller."""
        number = self.link_bytes if pool.handles == "arena" else 4
        return number if pool.header else 3 * number

    def largest_object(self, pool: Compact) -> int:
        """Bytes of the largest object whose size a compact pool can store, in units of the alignment."""
        width = min(pool.header // 2, 4) or (self.link_bytes if pool.handles == "arena" else 4)
        return min(((1 << (8 * width)) - 1) * self.align - pool.header, MAX_REQUEST)

    def least_buddy(self, pool: Buddy) -> int:
        """Bytes of the smallest block that a buddy pool may have: header and links, or a payload of one unit."""
        return power_above(pool.header + max(2 * self.link_bytes, self.align + self.guard))

    def largest_block(self, pool: Buddy) -> int:
        """Bytes of the largest block of a buddy pool: as asked for, within its region and its links' reach."""
        reach = min(self.link_reach, MAX_REACH - 1)
        most = 1 << (min(pool.region or reach, reach).bit_length() - 1)
        return min(pool.max_block or most, most)

    def links_in_header(self, pool: General) -> int:
        """Bytes at the end of the header that a free block's links take; 0 where they lie in the payload.

        The first link begins at a multiple of what addresses are counted in, or of its width where the alignment
        allows.
        """
        if pool.links_in == "payload":
            return 0
        unit = self.align if self.link_bytes == 2 else min(self.align, self.link_bytes)
        return round_up(LINKS[pool.free_list] * self.link_bytes, unit)

    def word_bytes(self, pool: General) -> int:
        """Bytes of the word at a block's start, 1 to 4: what the header has beside links, a tag taking as much."""
        room = pool.header - self.links_in_header(pool)
        return max(1, min(4, room // (2 if has_tags(pool) and pool.tag_in == "header" else 1)))

    def reach_of(self, pool: General) -> int:
        """Largest arena in bytes that the links, the size field and the bins of a pool reach."""
        width, flags, unit = self.word_bytes(pool), flags_in_word(pool), pool.unit or self.align
        raw = width == 4 and unit >= 1 << flags
        sizes = MAX_REACH if raw else ((1 << (8 * width - flags)) - 1) * unit
        return min(sizes, self.link_reach, pool.max_block or MAX_REACH, MAX_REACH)

    def metadata_block(self, pool: General) -> int:
        """Bytes of a block that holds nothing but its metadata while it is free."""
        tag = self.word_bytes(pool) if has_tags(pool) and pool.tag_in == "block" else 0
        links = LINKS[pool.free_list] * self.link_bytes if pool.links_in == "payload" else 0
        guarded = self.align + self.trailer(pool) if self.guard else 0
        return self.whole_block(pool.header + max(links + tag, guarded), pool)

    def least_block(self, pool: General) -> int:
        """Bytes of the smallest block unless asked for: it also has room for a payload of one alignment unit."""
        handed_out = self.whole_block(pool.header + self.align + self.trailer(pool), pool)
        return max(self.metadata_block(pool), handed_out)

    def padding(self, pool: General) -> int:
        """Bytes by which the payload may have to be moved up, where blocks start at units below the alignment."""
        return max(0, self.align - (pool.unit or self.align))

    def overhead(self, pool: General) -> int:
        """Bytes of a block in use that are not its payload."""
        return pool.header + self.padding(pool) + self.trailer(pool)

    def trailer(self, pool: General) -> int:
        """Bytes of a block in use behind its payload."""
        return pool.trailer + self.guard

    def whole_block(self, size: int, pool: General) -> int:
        """The size rounded up to what the pool hands out."""
        block = round_up(size, pool.unit or self.align)
        return power_above(block) if pool.round_to == "power-of-two" else block

    def smallest_block(self, pool: General) -> int:
        """Bytes of the smallest block as asked for, but at least what it needs; whole units."""
        if not pool.min_block:
            return self.least_block(pool)
        return self.whole_block(max(pool.min_block, self.metadata_block(pool)), pool)

    def smallest_cached_block(self, pool: General) -> int:
        """Bytes of the smallest block that can also be kept in a quick list, which is linked through its payload."""
        smallest = self.smallest_block(pool)
        return self.whole_block(
            max(smallest, pool.header + max(self.link_bytes, self.align + self.trailer(pool))), pool
        )

    def bin_shape(self, pool: General) -> tuple[int, BinsPerOctave]:
        """Return (linear_up_to, bins_per_octave) as they act.

        Octaves in which a bin is narrower than a unit hold one size a bin, which is what linear bins do; linear bins
        for blocks smaller than the smallest are none.
        """
        unit = pool.unit or self.align
        per_octave = pool.bins_per_octave or BINS_PER_OCTAVE[pool.bins]
        linear = min(LINEAR_UP_TO[pool.bins], 512 * unit) if pool.linear_up_to is None else pool.linear_up_to
        least = per_octave * unit if per_octave > 1 else 0
        return (least if linear <= max(least, self.smallest_key(pool)) else linear), per_octave

    def smallest_key(self, pool: General) -> int:
        """Size of the smallest block as bins count it."""
        smallest = self.smallest_block(pool)
        return smallest - pool.header - self.trailer(pool) if pool.bin_by == "payload" else smallest

    def largest_served(self, pool: Owner) -> int:
        """The largest request that a pool could serve in an arena without bounds."""
        if isinstance(pool, Fixed):
            return round_up(max(pool.sizes), self.align)
        if isinstance(pool, Buddy):
            return self.largest_block(pool) - pool.header - self.guard
        if isinstance(pool, Compact):
            return self.largest_object(pool)
        if isinstance(pool, Partition) and pool.count != "grow":
            return min(pool.count * round_up(pool.size, self.align) - self.guard, MAX_REQUEST)
        return MAX_REQUEST

    def reach(self, pools: tuple[Pool, ...]) -> int | None:
        """Largest arena that the links and headers of all pools can address; None: none below 2^31 bytes."""
        reaches = [self.link_reach, *(self.reach_of(pool) for pool in pools if isinstance(pool, General))]
        return min((reach for reach in reaches if reach < MAX_REACH), default=None)

    def capacity(self, size: int, below: tuple[Pool, ...]) -> int:
        """Payload bytes of the block that the pool below gives a request of `size` bytes.

        A list holds blocks, so two requests that get the same block share it. Left as it is where no pool below would
        serve a request of the whole payload.
        """
        owners = [pool for pool in below if not isinstance(pool, Quick)]
        capacity = self.capacity_in(owners[0], size)
        served = any(pool.takes(capacity) and capacity <= self.largest_served(pool) for pool in owners)
        return capacity if served else size

    def capacity_in(self, pool: Owner, size: int) -> int:
        """Payload bytes of the block that a pool gives for a request of `size` bytes, if quick lists keep it."""
        if isinstance(pool, General):
            overhead = self.overhead(pool)
            return max(self.whole_block(size + overhead, pool), self.smallest_cached_block(pool)) - overhead
        if isinstance(pool, Buddy):
            beside = pool.header + self.guard
            return max(power_above(size + beside), pool.min_block) - beside
        if isinstance(pool, Partition):
            return round_up(size + self.guard, round_up(pool.size, self.align)) - self.guard
        return round_up(max(size, self.link_bytes), self.align)

    def capacity_for(self, size: int, pool: General) -> int:
        """Payload bytes of the block that a general pool cuts for a request of `size` bytes."""
        overhead = self.overhead(pool)
        block = max(self.whole_block(size + overhead, pool), self.smallest_block(pool))
        return min(block - overhead, MAX_REQUEST)
