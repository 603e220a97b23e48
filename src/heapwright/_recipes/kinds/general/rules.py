"""Contradictions between keys of a general pool, or with other pools, and what would be valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heapwright._recipes.geometry import Geometry
from heapwright._recipes.kinds.base import BasePool, region_contradictions
from heapwright._recipes.kinds.general.keys import MAX_BINS, GeneralKeys


def contradictions(pool: GeneralKeys, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
    """Yield what no reading of the keys can make sense of."""
    if pool.unit & (pool.unit - 1):
        yield f'"unit" {pool.unit} is not valid; valid: 0 (= align) or a power of two'
        return
    if 0 < pool.unit < geometry.align:
        yield from _padding_contradictions(pool, pools, geometry, index)
    yield from _search_contradictions(pool)
    yield from _top_contradictions(pool, pools)
    if pool.grows_down:
        yield from _far_contradictions(pool, pools, geometry, index)
    listed = not all(above.owns_blocks for above in pools[:index])
    if pool.bins != "none":
        least = pool.smallest_cached_block(geometry) if listed else pool.smallest_block(geometry)
        yield from _bin_contradictions(pool, geometry, least)
    if pool.round_to == "bin" and (not pool.rounds_up or pool.top != "list" or listed):
        yield (
            '"round_to" "bin" gives a malloc all of the bin that it is rounded up to; it needs "bins" "two-level" or '
            '"half-fit", "top" "list" and no quick pool above; valid otherwise: unit, power-of-two'
        )
    yield from _queue_contradictions(pool)
    yield from _victim_contradictions(pool)
    yield from _header_contradictions(pool, geometry)
    if pool.max_block & (pool.max_block - 1):
        yield f'"max_block" {pool.max_block} is not valid; valid: 0 or a power of two'
    least = pool.metadata_block(geometry)
    if 0 < pool.min_block < least:
        yield f'"min_block" {pool.min_block} cannot hold header, links and tag; valid: 0 (the least), {least} or more'
    if not pool.grows_down:
        yield from region_contradictions(pool.region, pools, geometry, index, max(least, pool.min_block))


def _far_contradictions(pool: GeneralKeys, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
    last = pools[-1]
    if index + 1 == len(pools) or last.shared_top != "last" or last.grows_down:
        yield (
            '"place" "ends" grows toward the last pool, and shares what lies between; make the last one a general pool '
            'with "top" "last" and no "region"'
        )
        return
    if last.shared_header != pool.header:
        yield (
            f'"header" {pool.header} differs from the {last.shared_header} of the pool toward which it grows; '
            f"valid: {last.shared_header}, or another header there"
        )
    if sum(other.carves_from_end for other in pools) > 1:
        yield "another pool is taken from the arena's far end, too; valid: one of them"
    if pool.top != "last" or pool.region or not pool.is_tagged or pool.free_list == "implicit":
        yield (
            '"place" "ends" gives its lowest block back to what lies between; it needs "top" "last", "boundary_tags" '
            'true, "coalesce" "immediate", a "free_list" other than "implicit", and no "region"'
        )
    if pool.unit > geometry.align:
        yield f'"unit" {pool.unit} would have to divide the arena\'s end; valid with "place" "ends": 0 (= align)'


def _padding_contradictions(
    pool: GeneralKeys, pools: Sequence[BasePool], geometry: Geometry, index: int
) -> Iterator[str]:
    if (
        pool.unit != pool.header
        or pool.unit < 4
        or pool.is_tagged
        or pool.links_in == "header"
        or geometry.link_bytes == 2
        or not all(above.owns_blocks for above in pools[:index])
    ):
        yield (
            f'"unit" {pool.unit} is below "align" {geometry.align}, so payloads float in their blocks; it needs a '
            f'"header" of the same 4 or 8 bytes, "link_bytes" 4, "links_in" "payload", no "boundary_tags" and no quick '
            f"pool above; valid otherwise: 0 (= align) or a power of two from {geometry.align} up"
        )


def _turn_contradictions(pool: GeneralKeys) -> Iterator[str]:
    in_turn = pool.bins != "none" and not pool.rounds_up and pool.fit == "first"
    if pool.search_from == "tried" and not (
        in_turn and not pool.unsorted and (pool.large_order or pool.order) == "fifo" == pool.order
    ):
        yield (
            '"search_from" "tried" takes the blocks of a bin in turn; it needs "bins" that are searched (exact, lea, '
            'power-of-two), "order" "fifo", "fit" "first" and no "unsorted"'
        )


def _place_contradictions(pool: GeneralKeys) -> Iterator[str]:
    unsorted = pool.bins == "none" and pool.has_lists and pool.order in ("lifo", "fifo")
    if pool.merged != "filed" and (pool.coalesce != "immediate" or not unsorted):
        yield f'"merged" "{pool.merged}" needs "coalesce" "immediate" and one list in "order" "lifo" or "fifo"'
    if pool.resize in ("both-sides", "down-first", "smaller-side") and (not pool.is_tagged or pool.victim_up_to):
        yield (
            f'"resize" "{pool.resize}" looks at the block ahead; it needs "boundary_tags", "coalesce" "immediate" '
            'and no "victim_up_to"; valid: in-place, keep, move'
        )
    if pool.coalesce == "sweep" and (pool.bins != "none" or not pool.has_lists or pool.order == "size"):
        yield '"coalesce" "sweep" passes over one list before each search; it needs one list, not in "order" "size"'


def _top_contradictions(pool: GeneralKeys, pools: Sequence[BasePool]) -> Iterator[str]:
    if pool.top in ("bump", "extend") and pool.is_tagged:
        yield (
            f'"top" "{pool.top}" leaves free blocks below memory that has no header to say so; '
            'valid with "boundary_tags" true: last, list'
        )
    if pool.top != "last" and pool.victim_up_to:
        yield f'"top" "{pool.top}" is not valid with "victim_up_to"; valid: last'
    if pool.top == "extend" and (pool.order != "address" or pool.bins != "none" or not pool.has_lists):
        yield '"top" "extend" looks for the last free block; it needs "order" "address" and one list with links'
    end = next((other for other in pools if other.carves_from_end), None)
    if pool.top == "list" and pool.region == 0 and end:
        yield f'"top" "list" leaves nothing to the {end.kind_name} pool that grows; valid: last, bump, or a "region"'
    yield from _surplus_contradictions(pool)


def _surplus_contradictions(pool: GeneralKeys) -> Iterator[str]:
    """What keeps a search from the surplus of a minimum sbrk increment."""
    unfit = pool.bins != "none" or pool.fit == "exact" or pool.search_most or pool.split == "never"
    if pool.grow_least and (pool.top != "bump" or unfit):
        yield (
            '"grow_least" leaves a surplus that the next search must find; it needs "top" "bump", "bins" "none", a '
            '"split", no "fit" "exact" and no "search_most"'
        )


def _header_contradictions(pool: GeneralKeys, geometry: Geometry) -> Iterator[str]:
    links = pool.links_in_header(geometry)
    words = 2 if pool.is_tagged and pool.tag_in == "header" else 1
    if pool.header < links + words:
        held = ["a size", *(["the size of the block before"] if words == 2 else []), *(["links"] if links else [])]
        yield (
            f'"header" {pool.header} cannot hold {", ".join(held)}; valid: {links + words} to 16, '
            '"links_in" "payload", "tag_in" "block"'
        )


def _search_contradictions(pool: GeneralKeys) -> Iterator[str]:
    yield from _place_contradictions(pool)
    yield from _turn_contradictions(pool)
    yield from _start_contradictions(pool)
    yield from _structure_contradictions(pool)
    if pool.coalesce == "lazy":
        yield from _deferred_merge_contradictions(pool)


def _start_contradictions(pool: GeneralKeys) -> Iterator[str]:
    """Where a search starts, and how far it goes."""
    if pool.search_most and not pool.has_lists:
        yield (
            f'"search_most" {pool.search_most} counts free blocks of a list; valid with "free_list" '
            f'"{pool.free_list}": 0'
        )
    if pool.search_from == "freed" and pool.fit != "next":
        yield f'"search_from" "freed" is where a next fit starts; valid with "fit" "{pool.fit}": start'
    if pool.search_from == "lowest-free" and (pool.fit not in ("first", "exact") or pool.free_list != "implicit"):
        yield '"search_from" "lowest-free" needs "free_list" "implicit" and "fit" "first"; lists begin with free blocks'


def _structure_contradictions(pool: GeneralKeys) -> Iterator[str]:
    """What bins and fits need of the structure that holds the free blocks."""
    if pool.bins != "none" and not pool.has_lists:
        yield f'"bins" "{pool.bins}" needs lists of free blocks; valid with "free_list" "{pool.free_list}": "none"'
    if pool.fit == "best" and 0 < pool.search_percent < 100 and not pool.has_lists:
        yield (
            f'"search_percent" {pool.search_percent} is a share of the blocks in a list; '
            f'valid with "free_list" "{pool.free_list}": 100'
        )
    if pool.free_list == "tree" and pool.fit not in ("first", "best"):
        yield f'"fit" "{pool.fit}" is no order that a tree keeps; valid with "free_list" "tree": first, best'
    if pool.bins != "none" and pool.fit == "next":
        yield f'"fit" "next" roves over one list; valid with "bins" "{pool.bins}": first, best, worst, exact'


def _deferred_merge_contradictions(pool: GeneralKeys) -> Iterator[str]:
    """What coalescing during a search needs: it meets blocks in the order of addresses."""
    if pool.free_list == "tree":
        yield (
            '"coalesce" "lazy" merges blocks that a search passes one after another; valid with "free_list" "tree": '
            "immediate, never, forward, deferred"
        )
    if pool.has_lists and pool.order != "address":
        yield (
            f'"coalesce" "lazy" merges blocks that are neighbours in the list; valid with "order" "{pool.order}": '
            'immediate, never, forward, deferred (valid with "lazy": "order" "address", "free_list" "implicit")'
        )
    if pool.bins != "none":
        yield (
            f'"coalesce" "lazy" merges while one list is searched; valid with "bins" "{pool.bins}": '
            "immediate, never, forward, deferred"
        )


def _bin_contradictions(pool: GeneralKeys, geometry: Geometry, least: int) -> Iterator[str]:
    if pool.linear_up_to is not None and pool.linear_up_to & (pool.linear_up_to - 1):
        yield f'"linear_up_to" {pool.linear_up_to} is not valid; valid: 0 or a power of two'
        return
    _, per_octave = pool.bin_shape(geometry)
    linear, linear_bins = pool.linear_bins(geometry, least)
    smallest = least - pool.bin_less(geometry)
    if smallest < 0 or (smallest == 0 and linear_bins == 0):
        yield (
            f'"bin_by" "payload" has no bin for blocks of {least} bytes, which are header and trailer alone; '
            f'valid: block, or a "min_block" from {pool.bin_less(geometry) + 1} on'
        )
        return
    octaves = 31 - (max(linear, smallest).bit_length() - 1)
    bins = linear_bins + per_octave * octaves
    if pool.most_bins and (pool.most_bins <= linear_bins or pool.rounds_up):
        yield (
            f'"most_bins" {pool.most_bins} leaves no bin for all larger blocks; valid: 0, or from {linear_bins + 1} on '
            "where requests are not rounded up to bins"
        )
    if min(bins, pool.most_bins or bins) > MAX_BINS:
        yield f'"linear_up_to" and "bins_per_octave" make {bins} bins; at most {MAX_BINS}'


def _queue_contradictions(pool: GeneralKeys) -> Iterator[str]:
    if pool.large_order is not None and pool.bins == "none":
        yield f'"large_order" "{pool.large_order}" is the order of bins; valid with "bins" "none": none, see "order"'
    if pool.unsorted and (pool.bins == "none" or pool.rounds_up or pool.free_list != "double" or pool.victim_up_to):
        yield (
            '"unsorted" needs "bins" that are searched from the request\'s own (exact, lea, power-of-two), "free_list" '
            '"double" and no "victim_up_to"'
        )


def _victim_contradictions(pool: GeneralKeys) -> Iterator[str]:
    if pool.victim_up_to and (pool.bins == "none" or not pool.is_tagged or pool.tag_in == "header"):
        yield (
            '"victim_up_to" needs "bins" other than "none", "boundary_tags" true, "tag_in" "block" and '
            '"coalesce" "immediate"'
        )
    if pool.close_bins and (pool.bins != "exact" or pool.fit == "exact"):
        yield '"close_bins" looks for larger blocks in exact bins; it needs "bins" "exact" and no "fit" "exact"'
