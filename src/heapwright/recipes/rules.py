"""Rules: which keys contradict one another, and what would be valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heapwright.recipes.geometry import Geometry, has_tags, round_up
from heapwright.recipes.pools import (
    DESCRIPTOR_FIELDS,
    MAX_BINS,
    MAX_CLASSES,
    MAX_GENERAL_POOLS,
    MAX_QUICK_POOLS,
    ROUNDED_UP,
    Buddy,
    Compact,
    Fixed,
    General,
    Owner,
    Partition,
    Pool,
    Quick,
)

_Found = Iterator[tuple[int, str]]


def contradictions(pools: tuple[Pool, ...], geometry: Geometry) -> _Found:
    """Yield what no reading of the keys can make sense of: the pool's index, and the problem in words."""
    yield from _crowding(pools)
    for index, pool in enumerate(pools):
        if pool.max_size is not None and pool.min_size > pool.max_size:
            yield index, f'"min_size" {pool.min_size} is above "max_size" {pool.max_size}; it would take no request'
        if isinstance(pool, Quick):
            problems = _quick_contradictions(pool, pools, geometry, index)
        elif isinstance(pool, General):
            problems = _general_contradictions(pool, pools, geometry, index)
        elif isinstance(pool, Buddy):
            problems = _buddy_contradictions(pool, pools, geometry, index)
        elif isinstance(pool, Partition):
            problems = _partition_contradictions(pool, pools, geometry, index)
        elif isinstance(pool, Compact):
            problems = _compact_contradictions(pool, pools, geometry)
        else:
            problems = _fixed_contradictions(pool, pools, geometry)
        yield from ((index, problem) for problem in problems)


def memory_contradictions(
    sizes: Mapping[str, int], threads: str, pools: tuple[Pool, ...]
) -> Iterator[tuple[int | None, str]]:
    """Yield why pools cannot lie in memories of these names; an index is the pool's, None the heap's."""
    known = f"valid: {', '.join(sizes)}" if sizes else 'no table "memory" names any'
    for index, pool in enumerate(pools):
        if pool.memory not in sizes:
            told = f'"memory" "{pool.memory}" is none of the recipe\'s' if pool.memory else '"memory" is missing'
            yield index, f"{told}; {known}"
        elif isinstance(pool, Compact):
            yield index, "objects of a compact pool move within one memory; it needs a recipe of its own"
    order = list(dict.fromkeys(pool.memory for pool in pools if pool.memory in sizes))
    for name in sizes:
        if name not in order:
            yield None, f'"memory" "{name}" has no pool; give one memory = "{name}", or leave it out'
    places = [order.index(pool.memory) for pool in pools if pool.memory in sizes]
    if places != sorted(places) or order != [name for name in sizes if name in order]:
        yield (
            None,
            f'pools are tried in order, so those of a memory stand together, as "memory" has them: {", ".join(sizes)}',
        )
    if threads == "cached":
        yield None, '"threads" "cached" keeps blocks of one heap; with several memories valid: "none", "lock"'


def guard_contradictions(threads: str, pools: tuple[Pool, ...]) -> Iterator[str]:
    """Yield why payloads cannot be guarded."""
    valid = 'valid: "none", "frees", "neighbours"'
    if any(isinstance(pool, Compact) for pool in pools):
        yield f'"checks" "full" guards objects that stay where they are, and those of a compact pool move; {valid}'
    if threads == "cached":
        yield f'"checks" "full" looks at every free, and "threads" "cached" keeps most from the heap; {valid}'


def thread_contradictions(cached: tuple[int, int] | None, pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    """Yield why threads cannot share pools; with caches, `cached` is the largest request in them, and most bytes."""
    if any(isinstance(pool, Compact) for pool in pools):
        yield '"threads": objects of a compact pool move while other threads use them; valid: "none"'
        return
    if cached is None:
        return
    up_to, most = cached
    if geometry.align < 4 or geometry.link_bytes < 4:
        yield '"threads" "cached" keeps links of 4 bytes in blocks; valid with "align" 4, 8 or 16 and "link_bytes" 4'
        return
    owners = tuple(pool for pool in pools if not isinstance(pool, Quick))
    lists = Quick(up_to=up_to)
    yield from (f'"threads" "cached": {problem}' for _, problem in contradictions((lists, *owners), geometry))
    least = 2 * geometry.capacity_in(owners[0], up_to) if owners else 0
    if most < least:
        yield f'"cache_bytes" {most} holds too few blocks of "cache_up_to" {up_to} bytes; valid: {least} and more'


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


def _quick_contradictions(pool: Quick, pools: tuple[Pool, ...], geometry: Geometry, index: int) -> Iterator[str]:
    below = pools[index + 1 :]
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
    owners = [other for other in below if not isinstance(other, Quick)]
    if pool.keep == "apart" and not all(isinstance(other, General) and other.victim_up_to for other in owners):
        yield '"keep" "apart" is not valid here: every pool below needs "kind" "general" and "victim_up_to"; valid: all'
    if len({other.keep for other in pools if isinstance(other, Quick)}) > 1:
        yield f'"keep" "{pool.keep}" is not valid beside a quick pool that keeps otherwise; valid: the same for all'
    cached = [size for size in pool.sizes or () if pool.takes(size)]
    if pool.sizes is not None and not cached:
        yield '"sizes" has none between "min_size" and "max_size"'
    for size in cached:
        yield from _quick_size_contradictions(size, pool, below, geometry)
    for other in pools[:index]:
        if isinstance(other, Quick):
            yield from _shared_sizes(pool, other)


def _quick_size_contradictions(size: int, pool: Quick, below: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    if not any(_can_serve(other, size, geometry) for other in below if not isinstance(other, Quick)):
        yield f'"sizes": no pool below serves {size} bytes; valid: sizes that a general or fixed pool after it takes'
        return
    capacity = geometry.capacity(size, below)
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


def _can_serve(pool: Owner, size: int, geometry: Geometry) -> bool:
    return pool.takes(size) and size <= geometry.largest_served(pool)


def _general_contradictions(pool: General, pools: tuple[Pool, ...], geometry: Geometry, index: int) -> Iterator[str]:
    if pool.unit & (pool.unit - 1):
        yield f'"unit" {pool.unit} is not valid; valid: 0 (= align) or a power of two'
        return
    if 0 < pool.unit < geometry.align:
        yield from _padding_contradictions(pool, pools, geometry, index)
    yield from _search_contradictions(pool)
    yield from _top_contradictions(pool, pools)
    if pool.bins != "none":
        yield from _bin_contradictions(pool, geometry)
    yield from _queue_contradictions(pool)
    yield from _victim_contradictions(pool)
    yield from _header_contradictions(pool, geometry)
    if pool.max_block & (pool.max_block - 1):
        yield f'"max_block" {pool.max_block} is not valid; valid: 0 or a power of two'
    least = geometry.metadata_block(pool)
    if 0 < pool.min_block < least:
        yield f'"min_block" {pool.min_block} cannot hold header, links and tag; valid: 0 (the least), {least} or more'
    yield from _region_contradictions(pool, pools, geometry, index, max(least, pool.min_block))


def _padding_contradictions(pool: General, pools: tuple[Pool, ...], geometry: Geometry, index: int) -> Iterator[str]:
    if (
        pool.unit != pool.header
        or pool.unit < 4
        or has_tags(pool)
        or pool.links_in == "header"
        or geometry.link_bytes == 2
        or any(isinstance(above, Quick) for above in pools[:index])
    ):
        yield (
            f'"unit" {pool.unit} is below "align" {geometry.align}, so payloads float in their blocks; it needs a '
            f'"header" of the same 4 or 8 bytes, "link_bytes" 4, "links_in" "payload", no "boundary_tags" and no quick '
            f"pool above; valid otherwise: 0 (= align) or a power of two from {geometry.align} up"
        )


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
    unsorted = pool.bins == "none" and _has_lists(pool) and pool.order in ("lifo", "fifo")
    if pool.merged == "in-place" and (pool.coalesce != "immediate" or not unsorted):
        yield '"merged" "in-place" needs "coalesce" "immediate" and one list in "order" "lifo" or "fifo"'
    if pool.resize == "both-sides" and (not has_tags(pool) or pool.victim_up_to):
        yield (
            '"resize" "both-sides" looks at the block ahead; it needs "boundary_tags", "coalesce" "immediate" '
            'and no "victim_up_to"; valid: in-place, keep, move'
        )
    if pool.coalesce == "sweep" and (pool.bins != "none" or not _has_lists(pool) or pool.order == "size"):
        yield '"coalesce" "sweep" passes over one list before each search; it needs one list, not in "order" "size"'


def _has_lists(pool: General) -> bool:
    return pool.free_list in ("double", "single")


def _grows(pool: Pool) -> bool:
    return isinstance(pool, Fixed) and pool.counts == "grow"


def _top_contradictions(pool: General, pools: tuple[Pool, ...]) -> Iterator[str]:
    if pool.top in ("bump", "extend") and has_tags(pool):
        yield (
            f'"top" "{pool.top}" leaves free blocks below memory that has no header to say so; '
            'valid with "boundary_tags" true: last, list'
        )
    if pool.top != "last" and pool.victim_up_to:
        yield f'"top" "{pool.top}" is not valid with "victim_up_to"; valid: last'
    if pool.top == "extend" and (pool.order != "address" or pool.bins != "none" or not _has_lists(pool)):
        yield '"top" "extend" looks for the last free block; it needs "order" "address" and one list with links'
    if pool.top == "list" and pool.region == 0 and any(_grows(other) for other in pools):
        yield '"top" "list" leaves nothing to the fixed pool that grows; valid: last, bump, or a "region"'
    if pool.grow_least and (
        pool.top != "bump" or pool.bins != "none" or pool.fit == "exact" or pool.search_most or pool.split == "never"
    ):
        yield (
            '"grow_least" leaves a surplus that the next search must find; it needs "top" "bump", "bins" "none", a '
            '"split", no "fit" "exact" and no "search_most"'
        )


def _header_contradictions(pool: General, geometry: Geometry) -> Iterator[str]:
    links = geometry.links_in_header(pool)
    words = 2 if has_tags(pool) and pool.tag_in == "header" else 1
    if pool.header < links + words:
        held = ["a size", *(["the size of the block before"] if words == 2 else []), *(["links"] if links else [])]
        yield (
            f'"header" {pool.header} cannot hold {", ".join(held)}; valid: {links + words} to 16, '
            '"links_in" "payload", "tag_in" "block"'
        )


def _search_contradictions(pool: General) -> Iterator[str]:
    yield from _place_contradictions(pool)
    yield from _turn_contradictions(pool)
    if pool.search_most and not _has_lists(pool):
        yield (
            f'"search_most" {pool.search_most} counts free blocks of a list; valid with "free_list" '
            f'"{pool.free_list}": 0'
        )
    if pool.search_from == "freed" and pool.fit != "next":
        yield f'"search_from" "freed" is where a next fit starts; valid with "fit" "{pool.fit}": start'
    if pool.search_from == "lowest-free" and (pool.fit not in ("first", "exact") or pool.free_list != "implicit"):
        yield '"search_from" "lowest-free" needs "free_list" "implicit" and "fit" "first"; lists begin with free blocks'
    if pool.bins != "none" and not _has_lists(pool):
        yield f'"bins" "{pool.bins}" needs lists of free blocks; valid with "free_list" "{pool.free_list}": "none"'
    if pool.fit == "best" and 0 < pool.search_percent < 100 and not _has_lists(pool):
        yield (
            f'"search_percent" {pool.search_percent} is a share of the blocks in a list; '
            f'valid with "free_list" "{pool.free_list}": 100'
        )
    if pool.free_list == "tree" and pool.fit not in ("first", "best"):
        yield f'"fit" "{pool.fit}" is no order that a tree keeps; valid with "free_list" "tree": first, best'
    if pool.free_list == "tree" and pool.coalesce == "lazy":
        yield (
            '"coalesce" "lazy" merges blocks that a search passes one after another; valid with "free_list" "tree": '
            "immediate, never, forward, deferred"
        )
    if pool.bins != "none" and pool.fit == "next":
        yield f'"fit" "next" roves over one list; valid with "bins" "{pool.bins}": first, best, worst, exact'
    if _has_lists(pool) and pool.coalesce == "lazy" and pool.order != "address":
        yield (
            f'"coalesce" "lazy" merges blocks that are neighbours in the list; valid with "order" "{pool.order}": '
            'immediate, never, forward, deferred (valid with "lazy": "order" "address", "free_list" "implicit")'
        )
    if pool.bins != "none" and pool.coalesce == "lazy":
        yield (
            f'"coalesce" "lazy" merges while one list is searched; valid with "bins" "{pool.bins}": '
            "immediate, never, forward, deferred"
        )


def _bin_contradictions(pool: General, geometry: Geometry) -> Iterator[str]:
    if pool.linear_up_to is not None and pool.linear_up_to & (pool.linear_up_to - 1):
        yield f'"linear_up_to" {pool.linear_up_to} is not valid; valid: 0 or a power of two'
        return
    linear, per_octave = geometry.bin_shape(pool)
    smallest = geometry.smallest_key(pool)
    octaves = 31 - (max(linear, smallest).bit_length() - 1)
    bins = max(0, linear - smallest) // (pool.unit or geometry.align) + per_octave * octaves
    linear_bins = max(0, linear - smallest) // (pool.unit or geometry.align)
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
    if pool.victim_up_to and (pool.bins == "none" or not has_tags(pool) or pool.tag_in == "header"):
        yield (
            '"victim_up_to" needs "bins" other than "none", "boundary_tags" true, "tag_in" "block" and '
            '"coalesce" "immediate"'
        )
    if pool.close_bins and (pool.bins != "exact" or pool.fit == "exact"):
        yield '"close_bins" looks for larger blocks in exact bins; it needs "bins" "exact" and no "fit" "exact"'


def _compact_contradictions(pool: Compact, pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    if len(pools) > 1:
        yield "moves its blocks, which no other pool could follow; valid: a compact pool alone in its recipe"
    if 0 < pool.header < 4:
        yield f'"header" {pool.header} cannot hold a size and a handle; valid: 0 (handles hold them), 4 to 16'
        return
    least = geometry.least_handle(pool)
    if 0 < pool.handle_bytes < least:
        held = "an address" if pool.header else "an address, a size and a link"
        yield f'"handle_bytes" {pool.handle_bytes} cannot hold {held}; valid: 0 (the least), {least} or more'
    largest = geometry.largest_object(pool)
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what a header can tell, {largest}; it would take no request'


def _region_contradictions(
    pool: General | Buddy, pools: tuple[Pool, ...], geometry: Geometry, index: int, least: int
) -> Iterator[str]:
    if pool.region == 0 and index + 1 < len(pools):
        yield 'shares the rest of the arena and must be the last pool; move it there or give it a "region" in bytes'
    if 0 < pool.region < least:
        yield f'"region" {pool.region} cannot hold a block; valid: 0 (the rest of the arena) or {least} and more'
    reach = geometry.reach(pools)
    if reach is not None and pool.region > reach:
        yield f'"region" {pool.region} is beyond what its links and headers reach; valid: up to {reach}'


def _fixed_contradictions(pool: Fixed, pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    classes = [round_up(size, geometry.align) for size in pool.sizes]
    if len(set(classes)) < len(classes):
        twice = max(size for size in classes if classes.count(size) > 1)
        yield f'"sizes": two classes have {twice} bytes at align {geometry.align}; valid: each class once'
    if pool.min_size > max(pool.sizes):
        yield f'"min_size" {pool.min_size} is above the largest class, {max(pool.sizes)}; it would take no request'
    if pool.find == "freelist" and min(classes) < geometry.link_bytes:
        least = geometry.link_bytes
        yield f'"sizes": a free block of {min(classes)} bytes cannot hold its link; valid: {least} and more'
    if pool.counts == "grow":
        yield from _growth_contradictions(pool, pools, geometry)
    elif len(pool.counts) != len(pool.sizes):
        yield f'"counts" has {len(pool.counts)} numbers for {len(pool.sizes)} sizes; valid: as many, or "grow"'
    elif pool.page:
        yield '"page" needs "counts" "grow"; classes with counts are laid out once'


def _growth_contradictions(pool: Fixed, pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    if pool.header == 0:
        yield '"counts" "grow" needs a "header" that names the class of a block; valid: 1 to 16'
    elif pool.find == "first-fit" and pool.header < 4 + geometry.link_bytes:
        yield (
            f'"find" "first-fit" chains growing blocks through a "header" of {pool.header}; '
            f"valid: {4 + geometry.link_bytes} to 16"
        )
    last = pools[-1]
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


def _buddy_contradictions(pool: Buddy, pools: tuple[Pool, ...], geometry: Geometry, index: int) -> Iterator[str]:
    least = geometry.least_buddy(pool)
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
    largest = geometry.largest_block(pool) - pool.header - geometry.guard
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what the largest block holds, {largest}; it would take no request'
    yield from _region_contradictions(pool, pools, geometry, index, pool.min_block)


def _partition_contradictions(
    pool: Partition, pools: tuple[Pool, ...], geometry: Geometry, index: int
) -> Iterator[str]:
    least = DESCRIPTOR_FIELDS * geometry.link_bytes
    if pool.descriptor_bytes < least:
        yield (
            f'"descriptor_bytes" {pool.descriptor_bytes} cannot hold count, start and two links of '
            f"{geometry.link_bytes} bytes; valid: {least} or more"
        )
    if pool.size < geometry.link_bytes and any(isinstance(other, Quick) for other in pools[:index]):
        yield f'"size" {pool.size} cannot hold the link of a quick pool above; valid: {geometry.link_bytes} and more'
    if pool.count == "grow":
        if index + 1 < len(pools):
            yield 'shares the rest of the arena and must be the last pool; move it there or give it a "count"'
        return
    most = (1 << (8 * geometry.link_bytes - 1)) - 1
    if pool.count > most:
        yield f'"count" {pool.count} is more than links of {geometry.link_bytes} bytes can number; valid: up to {most}'
    largest = geometry.largest_served(pool)
    if pool.min_size > largest:
        yield f'"min_size" {pool.min_size} is above what all partitions hold, {largest}; it would take no request'
