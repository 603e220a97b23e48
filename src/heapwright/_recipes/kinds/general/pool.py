"""General pools: blocks of any size, each with a header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2, round_up
from heapwright._recipes.kinds import layout as lay
from heapwright._recipes.kinds.base import BasePool, BlockShape
from heapwright._recipes.kinds.bounds import AccessBounds, BlockLoad, Thresholds, WorstCase, powers, rounded
from heapwright._recipes.kinds.general import bounds, rules
from heapwright._recipes.kinds.general.canonical import canonical_changes
from heapwright._recipes.kinds.general.keys import BINS_PER_OCTAVE, GeneralKeys
from heapwright._recipes.limits import MAX_REQUEST

if TYPE_CHECKING:
    from heapwright._recipes.kinds.bounds import Sizes

MAX_GENERAL_POOLS = 4

NO_HEADER = (
    '"header" 0: splitting, coalescing and free read the size of a block from its header; '
    'valid: 1 to 16 (blocks without headers are fixed pools with "counts")'
)

FREE_LISTS = {"double": lib.HW_DOUBLE, "single": lib.HW_SINGLE, "implicit": lib.HW_IMPLICIT, "tree": lib.HW_TREE}
SEARCH_FROM = {
    "start": lib.HW_FROM_START,
    "freed": lib.HW_FROM_FREED,
    "lowest-free": lib.HW_FROM_LOWEST_FREE,
    "tried": lib.HW_FROM_TRIED,
}
TOPS = {"last": lib.HW_TOP_LAST, "bump": lib.HW_TOP_BUMP, "list": lib.HW_TOP_LIST, "extend": lib.HW_TOP_EXTEND}
RESIZES = {
    "in-place": lib.HW_RESIZE_IN_PLACE,
    "both-sides": lib.HW_RESIZE_BOTH_SIDES,
    "keep": lib.HW_RESIZE_KEEP,
    "keep-half": lib.HW_RESIZE_KEEP_HALF,
    "move": lib.HW_RESIZE_MOVE,
    "trim": lib.HW_RESIZE_TRIM,
    "shrink": lib.HW_RESIZE_SHRINK,
    "with-rest": lib.HW_RESIZE_WITH_REST,
    "smaller-side": lib.HW_RESIZE_SMALLER_SIDE,
    "down-first": lib.HW_RESIZE_DOWN_FIRST,
}
MERGED = {
    "filed": lib.HW_MERGED_FILED,
    "in-place": lib.HW_MERGED_IN_PLACE,
    "at-next": lib.HW_MERGED_AT_NEXT,
}


class General(GeneralKeys):
    """Blocks of any size, each with a header."""

    number: ClassVar[int] = lib.HW_GENERAL
    aligns: ClassVar[bool] = True
    has_thresholds: ClassVar[bool] = True
    hints: ClassVar[Mapping[tuple[str, int], str]] = {("header", 0): NO_HEADER}
    removed_keys: ClassVar[Mapping[str, str]] = {"split_share": 'use "split", in bytes'}
    word: ClassVar[str] = "word"

    # ---- sizes

    def largest_request(self, geometry: Geometry) -> int:
        reach = self.reach(geometry)
        largest = 1 << log2(reach - 1) if self.round_to == "power-of-two" else reach - self.unit
        return min(MAX_REQUEST, max(0, largest - self.overhead(geometry)))

    def largest_on_fast_path(self, geometry: Geometry) -> int:
        """The largest request that is cut from the last remainder, if there is one."""
        return self.capacity_for(self.victim_up_to, geometry) if self.victim_up_to else MAX_REQUEST

    # ---- rules

    @classmethod
    def crowding(cls, pools: Sequence[BasePool]) -> Iterator[tuple[int, str]]:
        results = [index for index, pool in enumerate(pools) if isinstance(pool, cls)]
        if len(results) > MAX_GENERAL_POOLS:
            yield results[MAX_GENERAL_POOLS], f"at most {MAX_GENERAL_POOLS} general pools"

    def contradictions(self, pools: Sequence[BasePool], geometry: Geometry, index: int) -> Iterator[str]:
        return rules.contradictions(self, pools, geometry, index)

    @property
    def has_victim(self) -> bool:
        return self.victim_up_to > 0

    # ---- forms

    def canonical(self, below: Sequence[BasePool], geometry: Geometry) -> General:
        return _canonical(self, geometry)

    def without_thresholds(self) -> General:
        return self.model_copy(update=bounds.least_thresholds(self))

    def without_resolved(self, geometry: Geometry) -> General:
        changes: dict[str, Any] = {}
        if self.unit == geometry.align:
            changes["unit"] = 0
        if self.min_block == self.least_block(geometry):
            changes["min_block"] = 0
        if not self.boundary_tags and self.coalesce != "immediate":
            changes["boundary_tags"] = True
        if self.free_list == "implicit":
            changes["order"] = "lifo"
        if self.bins != "none":
            shape = self.bin_shape(geometry)
            absent = self.model_copy(update={"linear_up_to": None}).bin_shape(geometry)
            changes["linear_up_to"] = None if shape == absent else self.linear_up_to
            changes["bins_per_octave"] = None if shape[1] == BINS_PER_OCTAVE[self.bins] else self.bins_per_octave
        return self.model_copy(update=changes)

    def moved(self, below: Sequence[BasePool], old: Geometry, geometry: Geometry) -> General:
        changes: dict[str, Any] = {}
        if self.unit >= old.align:  # a smaller one, with padding in the block, is meant as it is
            changes["unit"] = max(self.unit, geometry.align)
        least = self.model_copy(update=changes).metadata_block(geometry)
        changes["min_block"] = self.min_block and max(self.min_block, least)
        return self.model_copy(update=changes)

    # ---- words

    def summary(self) -> str:
        split = f"split from {self.split} B" if isinstance(self.split, int) else f"split {self.split}"
        split += " off the tail" if self.split_from == "tail" else ""
        merge = f"coalesce {self.coalesce}" + (f" from {self.coalesce_from} B" if self.coalesce_from else "")
        info = (
            (self.victim_up_to, f"victim {self.victim_up_to}"),
            (self.close_bins, f"close bins {self.close_bins}"),
            (not self.boundary_tags, "no tags"),
            (self.tag_in == "header", "tags in headers"),
            (self.links_in == "header", "links in headers"),
            (self.search_from != "start", f"search from {self.search_from}"),
            (self.search_most, f"search at most {self.search_most}"),
            (self.remainder == "filed", "remainders filed"),
            (self.merged != "filed", f"merged {self.merged.replace('-', ' ')}"),
            (self.merge_until == "enough", "merge until enough"),
            (self.top != "last", f"top {self.top}"),
            (self.grows_down, "from the far end"),
            (self.grow_least, f"grow at least {self.grow_least} B"),
            (self.resize != "in-place", f"resize {self.resize}"),
            (self.large_order, f"large bins {self.large_order}"),
            (self.unsorted, "unsorted queue"),
            (self.most_bins, f"at most {self.most_bins} bins"),
            (self.bin_by == "payload", "bins by payload"),
            (self.round_to == "power-of-two", "powers of two"),
            (self.round_to == "bin", "rounded to bin"),
        )
        numbers = ("header", "trailer", "min_block", "max_block", "unit", "region")
        changed = (key for key in numbers if getattr(self, key) != type(self).model_fields[key].default)
        words = [self._free_list_summary(), split, merge, *(words for holds, words in info if holds)]
        words += [f"{key.replace('_', ' ')} {getattr(self, key)}" for key in changed]
        return ", ".join(words) + self.range_summary()

    def _free_list_summary(self) -> str:
        """The free list and the fit, in words."""
        bins = {"none": f"{self.free_list}/{self.order}", "exact": "exact bins", "power-of-two": "power-of-two bins"}
        where = bins.get(self.bins, self.bins) if self.has_lists else self.free_list
        if self.bins != "none" and (self.free_list, self.order) != ("double", "lifo"):
            where += f" {self.free_list}/{self.order}"
        shape = [f"(linear to {self.linear_up_to})"] if self.linear_up_to is not None else []
        shape += [f"({self.bins_per_octave} an octave)"] if self.bins_per_octave is not None else []
        fit = "good-fit" if self.rounds_up else f"{self.fit}-fit"
        fit += f" {self.search_percent}%" if self.fit == "best" and self.search_percent != 100 else ""
        return " ".join(["general", where, *shape, fit])

    def title(self) -> str:
        fit = "good fit" if self.rounds_up else f"{self.fit} fit"
        bins = f"{self.bins} bins" if self.bins != "none" and self.has_lists else fit
        victim = ["victim"] if self.victim_up_to else []
        merges = [] if self.coalesce == "immediate" else [f"merging {self.coalesce}"]
        return ", ".join([bins, *victim, *merges])

    def overhead_bytes(self, values: Mapping[str, Any]) -> int:
        return int(values["overhead"])

    def smallest_bytes(self, values: Mapping[str, Any], align: int) -> int:
        return int(values["min_block"])

    @property
    def is_bounded(self) -> bool:
        filed_at_once = self.free_list == "double" and {self.order, self.large_order} <= {"lifo", "fifo", None}
        merges = self.coalesce == "never" or (self.coalesce == "immediate" and self.boundary_tags)
        searches = self.rounds_up or self.search_most > 0
        return filed_at_once and merges and searches and not self.unsorted

    @property
    def doubt(self) -> str | None:
        if self.coalesce != "immediate" or self.coalesce_from:
            return "it does not merge every block as it is freed"
        if self.fit != "best" or not (self.bins in ("exact", "lea") or self.free_list == "tree"):
            return "it finds no best fit through exact bins or a tree"
        return None

    # ---- the arena

    @property
    def shares_the_rest(self) -> bool:
        return self.region == 0

    @property
    def moves_bounds(self) -> bool:
        return self.top != "list" or bool(self.victim_up_to)

    @property
    def grows_down(self) -> bool:
        return self.place == "ends"

    @property
    def takes_from_end(self) -> bool:
        return self.grows_down

    @property
    def carves_from_end(self) -> bool:
        return self.grows_down

    @property
    def end_header(self) -> int:
        return self.header if self.grows_down else 0

    @property
    def end_mark(self) -> int:
        return self.end_header

    @property
    def shared_top(self) -> str:
        return "" if self.region else self.top

    @property
    def lists_fresh_memory(self) -> bool:
        return self.top == "list"

    @property
    def shared_header(self) -> int | None:
        return None if self.region else self.header

    @property
    def has_null_node(self) -> bool:
        return self.free_list == "double"

    @property
    def arena_align(self) -> int:
        return max(16, self.unit)

    def cuts(self, geometry: Geometry) -> bool:
        return self.split != "never" and self.round_to != "power-of-two" and not self.padding(geometry)

    def ends_on_words(self, align: int) -> bool:
        return self.unit % 4 == 0 and (self.header + self.trailer) % 4 == 0

    def serves_empty(self, values: Mapping[str, Any]) -> bool:
        return bool(round_up(values["overhead"] + 1, 1 << values["unit_shift"]) <= values["min_block"])

    def has_pairs(self, values: Mapping[str, Any]) -> bool:
        return self.free_list in ("double", "tree")

    def block_shape(self, geometry: Geometry, others: bool) -> BlockShape:
        odd = self.round_to == "power-of-two"  # powers, and what was not split
        header = self.overhead(geometry) - self.padding(geometry)
        unit = self.unit or geometry.align
        return BlockShape(header, unit, self.smallest_cached_block(geometry), powers=odd, mixed=odd or others)

    def control(self, layout: lay.Layout, bins: int) -> tuple[lay.Field, ...]:
        """Its control data in the arena with `bins` bins, in the order of memory."""
        align = max(layout.align, 4)
        spare = 4 if self.close_bins else 0  # a word without marks: close bins are looked up in two words at a time
        lists = 0 if self.free_list == "implicit" else max(bins, 1)
        return (
            lay.Field("unsorted_at", 2 * layout.link_bytes, align, present=self.unsorted),
            lay.Field("remainder_at", 4, present=self.unsorted),
            lay.Field("top_at", 4),
            *layout.shared_bounds(self.region == 0),
            lay.Field("rover_at", 4, present=self.fit == "next" or self.search_from == "lowest-free"),
            lay.Field("count_at", 4, present=self._searches_share()),
            lay.Field("pending_at", 4, present=self.coalesce == "deferred"),
            lay.Field("victim_at", 8, present=self.victim_up_to > 0),
            lay.Field("summary_at", 4, present=bins > 32),
            lay.Field("bitmap_at", round_up(bins, 32) // 8 + spare, present=bins > 0),
            lay.Field("lists_at", lists * self._list_stride(layout), align, present=lists > 0),
        )

    def lay_out(self, layout: lay.Layout, below: Sequence[BasePool], listed: bool) -> dict[str, Any]:
        info = _laid_out(self, layout.geometry, layout.checks, listed)
        return {**info, **layout.place(self.control(layout, info["bins"]))}

    def _laid_out(self, layout: lay.Layout, listed: bool) -> dict[str, Any]:
        """The fields that do not depend on where its control data lies."""
        geometry = layout.geometry
        tags = self.boundary_tags
        word = layout.word(self.header, self.word_bytes(geometry))
        least = self.smallest_cached_block(geometry) if listed else self.min_block
        raw = word["bytes"] == 4 and self.unit >= 1 << self.flag_bits
        split_least = max(least, self.split) if isinstance(self.split, int) else least
        return {
            "links": layout.links(),
            "word": word,
            "header": self.header,
            "trailer": self.trailer_bytes(geometry),
            "overhead": self.overhead(geometry),
            "pad": self.padding(geometry),
            "node": self.header - self.links_in_header(geometry),
            "align": layout.align,
            "unit_shift": log2(self.unit),
            "min_block": least,
            "powers": int(self.round_to == "power-of-two"),
            "boundary_tags": int(tags),
            "tag_in_header": int(tags and self.tag_in == "header"),
            "free_list": FREE_LISTS[self.free_list],
            "order": lay.ORDERS[self.order],
            "large_order": lay.ORDERS[self.large_order or self.order],
            "unsorted": int(self.unsorted),
            "fit": lay.FITS[self.fit],
            "search_percent": self.search_percent if self._searches_share() else 100,
            "search_most": self.search_most,
            "search_from": SEARCH_FROM[self.search_from],
            "split": int(self.split != "never"),
            "split_least": split_least,
            "split_tail": int(self.split_from == "tail"),
            "coalesce": lay.COALESCE[self.coalesce],
            "coalesce_from": self.coalesce_from,
            "refile": int(self.remainder == "filed"),
            "merge_enough": int(self.merge_until == "enough"),
            "merged": MERGED[self.merged],
            "top": TOPS[self.top] if not self.grows_down else lib.HW_TOP_BELOW,
            "end_word": int(self.grows_down or (tags and self.top == "list")),
            "facing_at": 0,
            "grow_least": round_up(self.grow_least, self.unit),
            "resize": RESIZES[self.resize],
            "bin_round_up": int(self.rounds_up),
            "bin_fill": int(self.round_to == "bin"),
            "bin_unmark": int(self.rounds_up),
            "victim_up_to": self.victim_up_to,
            "close_bins": self.close_bins,
            "region": self.region,
            "checks": lay.CHECKS[layout.checks],
            "size_raw": int(raw),
            "flag_bits": self.flag_bits,
            "size_shift": log2(self.unit),
            **self._bin_fields(geometry, least),
            "list_stride": self._list_stride(layout),
            "heads_close": int(self._has_close_heads(layout)),
        }

    def _searches_share(self) -> bool:
        """Whether a search looks at a share of the free blocks, which are counted."""
        return self.fit == "best" and self.search_percent < 100 and self.free_list != "implicit"

    def _list_stride(self, layout: lay.Layout) -> int:
        """Bytes from one list's head to the next: a link to the first block, and to the last if the order is FIFO."""
        tails = "fifo" in (self.order, self.large_order)
        stride = layout.link_bytes * (2 if tails else 1)
        if layout.link_bytes == 2 and (self.free_list == "double" or tails) and not self._has_close_heads(layout):
            return round_up(stride, layout.align)
        return stride

    def _has_close_heads(self, layout: lay.Layout) -> bool:
        """Whether heads lie closer than 2-byte links count: none leads to one, unless links are vouched for."""
        tails = "fifo" in (self.order, self.large_order) or self.unsorted
        plain = self.free_list == "double" and self.bins != "none" and not tails
        return layout.link_bytes == 2 and layout.align > 2 and plain and layout.checks in ("none", "frees")

    def _bin_fields(self, geometry: Geometry, least: int) -> dict[str, int]:
        if self.bins == "none":
            keys = ("bins", "bin_linear", "bin_steps_log2", "bin_first", "bin_octave", "bin_linear_bins")
            return dict.fromkeys((*keys, "bin_less", "bin_last"), 0)
        per_octave, less = self.bins_per_octave or 1, self.bin_less(geometry)
        linear, linear_bins = self.linear_bins(geometry, least)
        first = (least - less) // self.unit
        octave = log2(linear) if linear_bins else log2(least - less)
        octaves = (self.reach(geometry) - 1).bit_length() - octave
        bins = linear_bins + max(1, octaves) * per_octave
        last = 0 < self.most_bins < bins
        return {
            "bins": self.most_bins if last else bins,
            "bin_last": int(last),
            "bin_linear": linear if linear_bins else 0,
            "bin_steps_log2": log2(per_octave),
            "bin_first": first,
            "bin_octave": octave,
            "bin_linear_bins": linear_bins,
            "bin_less": less,
        }

    def place_region(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.region:
            values["start"] = self._start(layout)
            layout.cursor += self.region

    def place_shared(self, layout: lay.Layout, values: dict[str, Any]) -> None:
        if self.region == 0 and not self.grows_down:
            values["start"] = self._start(layout)

    def end_at(self, values: Mapping[str, Any]) -> int:
        return int(values["top_at"])

    def face(self, values: dict[str, Any], last: Mapping[str, Any]) -> None:
        if self.grows_down:
            values |= {"start": last["start"], "facing_at": last["top_at"]}

    def _start(self, layout: lay.Layout) -> int:
        """Where the first block starts: aligned itself where blocks start at units below the alignment."""
        if self.unit < layout.align:
            return layout.take(0, layout.align)
        return layout.align_payload(self.header, self.unit)

    def region_bytes(self, geometry: Geometry) -> int:
        return self.region

    # ---- bounds

    def worst_calls(self, values: Mapping[str, Any]) -> AccessBounds:
        return bounds.worst_calls(self, values)

    def worst_cases(self, laid_out: Any, load: BlockLoad, *, lists: bool, reallocs: bool) -> Iterator[WorstCase]:
        keeps_more = reallocs and self.resize in ("keep", "keep-half")
        if keeps_more or not bounds.passes_none_by(self, laid_out.general, load.largest):
            return iter(())
        placed = not lists and (not reallocs or self.resize == "move")
        return bounds.worst_cases(self, laid_out.general, load, placed=placed)

    def exact_blocks(self, laid_out: Any, sizes: Sizes, align: int) -> tuple[Sizes, int]:
        smallest = int(laid_out.general.min_block)
        if laid_out.general.powers:
            smallest = 1 << (smallest - 1).bit_length()
        blocks = self.least_blocks(laid_out, sizes)
        return bounds.filled(blocks, laid_out.general) if laid_out.general.bin_fill else blocks, smallest

    # ---- what the C struct says

    @classmethod
    def grows_in(cls, laid_out: Any) -> bool:
        return not laid_out.general.region

    @classmethod
    def most_objects(cls, laid_out: Any) -> int | None:
        general = laid_out.general
        return int(general.region // general.min_block) if general.region else None

    @classmethod
    def own_bytes(cls, laid_out: Any) -> int:
        return int(laid_out.general.region)

    @classmethod
    def own_region(cls, laid_out: Any) -> tuple[int, int] | None:
        general = laid_out.general
        return (int(general.start), int(general.start + general.region)) if general.region else None

    @classmethod
    def least_blocks(cls, laid_out: Any, sizes: Sizes) -> Sizes:
        import numpy as np

        general = laid_out.general
        blocks = np.maximum(rounded(sizes + general.overhead, 1 << general.unit_shift), general.min_block)
        return powers(blocks) if general.powers else blocks

    @classmethod
    def least_accesses(cls, laid_out: Any, sizes: Sizes) -> tuple[Sizes, int]:
        """A block in a list has one more word, which is read or its link back is written.

        A block cut off the end of another leaves the list as it is, and the last remainder is in no list. Without
        lists a header says that a block is free, or the root of a tree leads to it alone.
        """
        general = laid_out.general
        if general.free_list not in (lib.HW_DOUBLE, lib.HW_SINGLE):
            return sizes * 0 + 3, 2
        return sizes * 0 + (4 if general.split_tail or general.victim_up_to else 5), 3

    def set_thresholds(self, laid_out: Any, geometry: Geometry) -> None:
        bounds.put_thresholds(self, laid_out)
        laid_out.fast_max = min(laid_out.max_size, self.largest_on_fast_path(geometry))

    @classmethod
    def take_thresholds(cls, laid_out: Any, checks: bool) -> Thresholds:
        return bounds.take_thresholds(laid_out, checks)

    # ---- what is attacked and proved

    @property
    def is_linked_both_ways(self) -> bool:
        return self.free_list in ("double", "tree")

    @property
    def is_listed(self) -> bool:
        return self.free_list != "implicit"

    @property
    def has_header(self) -> bool:
        return True

    @property
    def tells_top(self) -> bool:
        return True

    @property
    def has_bins(self) -> bool:
        return self.bins != "none"

    def edges(self, values: Mapping[str, Any]) -> Iterator[int]:
        blocks = [values["min_block"], values["min_block"] + values["split_least"], self.coalesce_from]
        blocks += [self.grow_least, *_bin_edges(values)]
        yield self.victim_up_to
        yield from (block - values["overhead"] for block in blocks)

    def merges(self, align: int) -> bool:
        """Not where memory once taken from the top never goes back, nor where payloads float in their blocks."""
        limited = self.fit == "exact" or self.search_most > 0 or self.search_percent < 100
        kept = self.top in ("bump", "extend") or 0 < self.unit < align
        return self.coalesce not in ("never", "forward") and self.coalesce_from == 0 and not limited and not kept

    @property
    def covers(self) -> bool:
        return self.split_from == "head"

    def serves(self, align: int) -> str:
        if self.fit == "exact" or self.search_most or self.search_percent < 100 or self.grow_least:
            return "0"
        if self.round_to == "power-of-two":
            return "size < largest / 4u - 64u && largest > 256u"
        if self.rounds_up:
            return f"size < largest && size + size / {self.bins_per_octave or 1}u + {4 * align}u <= largest"
        return super().serves(align)

    def wasted(self, values: Mapping[str, Any]) -> int | None:
        if values["split"] != 1 or values["powers"] or values["bin_fill"]:
            return None
        return int((1 << values["unit_shift"]) + values["min_block"] + values["split_least"])

    def marks(self, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        bins = values["bins"]
        if bins:
            yield values["bitmap_at"], -(-bins // 32) * 4
        if bins > 32:
            yield values["summary_at"], 4
        if values["top_at"]:
            yield values["top_at"], 4


def _bin_edges(values: Mapping[str, Any]) -> Iterator[int]:
    """The smallest block, in bytes, of each bin."""
    if values["powers"]:
        yield from (1 << bits for bits in range(4, 31))
    if not values["bins"]:
        return
    unit, less, steps = 1 << values["unit_shift"], values["bin_less"], values["bin_steps_log2"]
    if values["bin_linear_bins"]:
        yield from range(less + values["bin_first"] * unit, less + values["bin_linear"], unit)
    first = max(values["bin_linear"], 1 << values["bin_octave"])
    for octave in range(first.bit_length() - 1, 31):
        yield from (less + bounds.step_of(octave, step, steps) for step in range(1 << steps))


@lru_cache(maxsize=65536)
def _canonical(pool: General, geometry: Geometry) -> General:
    result = pool.model_copy(update=canonical_changes(pool, geometry))
    return pool if result == pool else result


@lru_cache(maxsize=4096)
def _laid_out(pool: General, geometry: Geometry, checks: str, listed: bool) -> Mapping[str, Any]:
    return pool._laid_out(lay.Layout(geometry, checks), listed)
