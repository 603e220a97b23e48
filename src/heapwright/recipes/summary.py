"""Summaries: a pool in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heapwright.recipes.pools import ROUNDED_UP, Buddy, Compact, Fixed, General, Partition, Pool, Quick


def pool_summary(pool: Pool) -> str:
    """Return the kind of a pool and what differs from the defaults, in one short line for people."""
    return _SUMMARIES[pool.kind](pool)


def _quick_summary(pool: Quick) -> str:
    sizes = f"up to {pool.up_to}" if pool.sizes is None else _sizes_summary(pool.sizes)
    words = [f"quick {sizes}"]
    words += [f"kept {pool.keep}"] if pool.keep != "all" else []
    words += [f"limit {pool.limit_blocks} blocks"] if pool.limit_blocks else []
    words += [f"limit {pool.limit_bytes} B"] if pool.limit_bytes else []
    words += [f"flush {pool.flush}"] if pool.flush != "before-refusing" else []
    words += [f"above {pool.flush_share:.4g}"] if pool.flush_share else []
    words += [f"each {pool.flush_growth:.4g}"] if pool.flush_growth else []
    words += [f"grown for {pool.flush_large} B"] if pool.flush_large else []
    words += [f"flush for {pool.flush_from} B"] if pool.flush_from else []
    return " ".join(words) + _range_summary(pool)


def _general_summary(pool: General) -> str:
    bins = {"none": f"{pool.free_list}/{pool.order}", "exact": "exact bins", "power-of-two": "power-of-two bins"}
    where = pool.free_list if pool.free_list in ("implicit", "tree") else bins.get(pool.bins, pool.bins)
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
    words += [f"{pool.lists} lists"] if pool.lists > 1 else []
    words += [f"descriptors of {pool.descriptor_bytes} B"] if pool.descriptor_bytes != 32 else []
    words += [f"coalesce {pool.coalesce}"] if pool.coalesce != "immediate" else []
    return ", ".join(words) + _range_summary(pool)


def _compact_summary(pool: Compact) -> str:
    words = [f"compact {pool.when}", "handles in the arena" if pool.handles == "arena" else "handles with the caller"]
    words += [f"of {pool.handle_bytes} B"] if pool.handle_bytes else []
    words += [f"header {pool.header}"] if pool.header != 4 else []
    return ", ".join(words) + _range_summary(pool)


_SUMMARIES: dict[str, Callable[[Any], str]] = {
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
