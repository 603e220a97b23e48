"""Default design space: families of recipes around the designs that measured best, scaled to the traces' requests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, ref

from heapwright._recipes.geometry import Geometry
from heapwright._recipes.pools import MAX_CLASSES, MAX_REQUEST, Buddy, Fixed, General, Partition, Pool, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_bound import LiveBound

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


ORDINARY = 10_000
"""Recipes of the default space, unless the traces request too few sizes."""

FREELISTS = 9
"""Most sizes that get a freelist of their own; with none there are ten levels."""

SPECIAL_SHARE = 0.1
"""Share of the requests from which a size gets fixed blocks of its own (Mamagkakis et al. 2007, section 4, A)."""

REACH_MARGIN = 1.25
"""Narrow links and headers are tried if they reach this many times the peak of live bytes."""

COUNTED = (2, 4, 8, 16, 24, 32, 48)
"""How many of the most frequent sizes get a pool with a count."""

COUNT_SHARES = (0.1, 0.5, 0.9, 1.0)
"""Shares of the time during which a pool is to suffice."""

COUNT_ALIGN = 8
"""Bytes of which sizes of pools with counts are multiples, at any alignment, so that there are fewer sizes."""

COUNTED_CALLS = 120_000
"""Calls of the future from which counts are taken."""

LARGEST_COUNTED = 2048
"""Bytes of the largest block that gets a pool with a count."""

Family = Iterable[tuple[Pool, ...]]


class Demand(NamedTuple):
    """Requests of traces, as far as a design space depends on them."""

    sizes: tuple[tuple[int, float], ...]
    """(bytes, share of the requests), most frequent first; none above `MAX_REQUEST`, which every heap refuses."""
    largest: int
    """Largest of these requests in bytes."""
    peak_live_bytes: int
    """Most requested bytes that are live at once."""
    counts: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(bytes, blocks live at once during `COUNT_SHARES` of a future), of the most frequent sizes, most frequent first;
    sizes are rounded up to `COUNT_ALIGN`, and of several traces the largest counts."""
    bounds: tuple[LiveBound, ...] = ()
    """The bounds on what is live at once of the traces that have one; none unless all have."""

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> Demand:
        """Sum up traces: requests are malloc, calloc and realloc, and sizes of all traces have equal weight."""
        if traces and (kept := _DEMANDS.get(traces[0])) is not None and kept[0] == [ref(trace) for trace in traces]:
            return kept[1]
        demand = cls._of(traces)
        _DEMANDS[traces[0]] = [ref(trace) for trace in traces], demand
        return demand

    @classmethod
    def _of(cls, traces: Sequence[Trace]) -> Demand:
        import numpy as np

        from heapwright._traces.validation import FREE

        if not traces:
            raise HeapwrightError("space: no traces to build a space from; valid: at least one")
        requested = np.concatenate([trace.size[trace.op != FREE] for trace in traces])
        sizes, counts = np.unique(np.maximum(requested[requested <= MAX_REQUEST], 1), return_counts=True)
        order = np.lexsort((sizes, -counts))
        shares = tuple((int(sizes[i]), float(counts[i] / len(requested))) for i in order)
        bounds = [bound for trace in traces if (bound := LiveBound.of(trace)) is not None]
        return cls(
            shares,
            int(sizes.max(initial=1)),
            max(trace.peak_live_bytes for trace in traces),
            _counts(traces),
            tuple(bounds) if len(bounds) == len(traces) else (),
        )

    def size_at(self, share: float) -> int:
        """The least size, bytes, that at least such a share of these requests does not exceed; 0 for none of them."""
        ordered = sorted(self.sizes)
        reached = list(accumulate(of for _, of in ordered))
        return ordered[bisect_left(reached, share * reached[-1] * (1 - 1e-12))][0] if share else 0


_DEMANDS = WeakKeyDictionary["Trace", tuple[list["ref[Trace]"], Demand]]()
"""Demands by their first trace, with all traces that they are of."""


def _counts(traces: Sequence[Trace]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """`Demand.counts` from a future of each trace: a recording has fewer blocks live at once than a long run."""
    import numpy as np

    from heapwright._traces.live_counts import live_counts
    from heapwright._traces.pieces import short
    from heapwright._traces.validation import FREE
    from heapwright._traffic.workloads.made import future_of

    futures = [future_of(short(trace), COUNTED_CALLS, 0) for trace in traces]
    requested = np.concatenate([future.size[future.op != FREE] for future in futures]).astype(np.int64)
    blocks = np.maximum(-(-requested // COUNT_ALIGN) * COUNT_ALIGN, COUNT_ALIGN)
    sizes, often = np.unique(blocks[blocks <= LARGEST_COUNTED], return_counts=True)
    chosen = sizes[np.lexsort((sizes, -often))[: max(COUNTED)]].tolist()
    each = [live_counts(future, chosen, COUNT_ALIGN, COUNT_SHARES) for future in futures]
    largest = np.max(each, axis=0) if chosen else np.zeros((0, len(COUNT_SHARES)), np.int64)
    return tuple((size, tuple(map(int, row))) for size, row in zip(chosen, largest, strict=True))


class Levels:
    """The levels of each technique, scaled to what the traces ask for."""

    def __init__(self, demand: Demand, align: int) -> None:
        self.demand, self.align = demand, align
        self.frequent = frequent_capacities(demand, align)
        counts = range(1, len(self.frequent) + 1)
        self.freelists: list[tuple[Pool, ...]] = [(), *((Quick(sizes=tuple(self.frequent[:k])),) for k in counts)]
        self.few_freelists = self.freelists[:4]
        self.largest = max(demand.largest, 1024)
        self.splits: list[Any] = ["always", *_thresholds(32, self.largest, 8), "never"]
        self.few_splits: list[Any] = ["always", self.splits[4], "never"]
        self.merge_from = merge_from = _thresholds(64, self.largest // 2, 3)
        self.coalescing: list[dict[str, Any]] = [
            {"coalesce": "immediate"},
            *({"coalesce": "immediate", "coalesce_from": size} for size in merge_from),
            {"coalesce": "deferred"},
            *({"coalesce": "deferred", "coalesce_from": size} for size in merge_from[::2]),
            {"coalesce": "forward"},
            {"coalesce": "forward", "coalesce_from": merge_from[1]},
            {"coalesce": "never"},
        ]
        thresholds = [32, 64, 128, 256, 512, 1000, 2000]
        self.victims = [size for size in thresholds if size < demand.largest] + [min(_round_size(demand.largest), 4096)]
        self.up_to = [size for size in (32, 64, 128, 256, 512, 1024, 2048) if size < 2 * demand.largest]
        special = {size for size, share in demand.sizes if share >= SPECIAL_SHARE}
        special |= {2**exponent for exponent in range(6, 12) if 2**exponent < 2 * demand.largest}
        kingsley = {2**exponent - 4 for exponent in range(4, 13) if 2**exponent < 4 * demand.largest}
        self.classes = {"special": self.aligned(special), "kingsley": self.aligned(kingsley)}

    def aligned(self, sizes: Iterable[int]) -> list[int]:
        """Sizes of fixed blocks, each a multiple of the alignment, ascending."""
        return sorted({-(-size // self.align) * self.align for size in sizes})

    def reaches(self, recipe: Recipe) -> bool:
        """Whether links and headers reach the arena that the traces will need."""
        return recipe.reach is None or recipe.reach >= REACH_MARGIN * self.demand.peak_live_bytes


def frequent_capacities(demand: Demand, align: int) -> list[int]:
    """The most frequent sizes of blocks, as payload bytes: requests that get the same block count together."""
    shares: dict[int, float] = {}
    for size, share in demand.sizes:
        capacity = General().capacity_for(size, Geometry(align))
        shares[capacity] = shares.get(capacity, 0.0) + share
    return sorted(shares, key=lambda capacity: (-shares[capacity], capacity))[:FREELISTS]


def _thresholds(least: int, most: int, count: int) -> list[int]:
    """Sizes in geometric progression, each rounded up to 2^k or 1.5 x 2^k.

    Rounding matters: a threshold at a size of this trace, or just next to one, suits no other trace.
    """
    step = (most / least) ** (1 / (count - 1))
    return [_round_size(round(least * step**i)) for i in range(count)]


def _round_size(size: int) -> int:
    """The next 2^k or 1.5 x 2^k that a request can have, for at least 8 bytes."""
    power = 1 << (size - 1).bit_length()
    return min(power * 3 // 4 if size <= power * 3 // 4 else power, MAX_REQUEST)


def default_families(levels: Levels) -> Iterator[Iterable[Recipe]]:
    """The families of the default space (docs/spaces.md), the cheap ones to replay first."""
    for family in (
        _bounded_family,
        _counted_family,
        _idle_family,
        _limited_family,
        _victim_family,
        _few_bins_family,
        _bin_family,
        _tree_family,
        _quick_family,
        _fixed_family,
        _block_family,
        _buddy_family,
        _partition_family,
    ):
        yield _heaps(family(levels), levels.align)
    yield _narrow_family(levels)
    for family in (
        _dealt_grid,
        _order_family,
        _worst_family,
        _tail_family,
        _single_family,
        _lazy_family,
        _implicit_family,
    ):
        yield _heaps(family(levels), levels.align)


def _heaps(family: Family, align: int) -> Iterator[Recipe]:
    return (Recipe.unchecked(pools, align) for pools in family)


MERGING: tuple[Literal["immediate", "deferred"], ...] = ("immediate", "deferred")

LISTS: tuple[Literal["double", "single"], ...] = ("double", "single")

SEARCHES: tuple[Literal["first", "next", "best"], ...] = ("first", "next", "best")

EXACT_BEST: dict[str, Any] = {"bins": "exact", "fit": "best"}

GOOD_FIT: dict[str, Any] = {"bins": "two-level"}

FITS: list[dict[str, Any]] = [
    EXACT_BEST,
    GOOD_FIT,
    {"bins": "power-of-two", "fit": "first"},
    {"bins": "exact", "fit": "exact"},
    {"fit": "first"},
    {"fit": "next"},
    {"fit": "best", "search_percent": 10},
    {"fit": "best", "search_percent": 30},
    {"fit": "best", "search_percent": 60},
    {"fit": "best"},
]
"""Ten levels of fit: four over bins, six over one doubly linked list, last freed first. Worst fit is apart: it always
searches the whole list, and splinters what it finds.
"""


def _dealt_grid(levels: Levels) -> Family:
    """The grid of the techniques but for what makes a third of it and 1 % of fronts: docs/spaces.md has the numbers.

    Merging that is deferred from a size up is left out; deferred for all, and next fit, split always or never or from
    one size up.
    """
    for _, (*front, last) in _numbered_grid(levels):
        assert isinstance(last, General)
        deferred = last.coalesce == "deferred"
        thin = deferred or (last.bins == "none" and last.fit == "next")
        if not (deferred and last.coalesce_from) and (not thin or last.split in levels.few_splits):
            yield *front, last


def _numbered_grid(levels: Levels) -> Iterator[tuple[Techniques, tuple[Pool, ...]]]:
    axes = (list(enumerate(axis)) for axis in (FITS, levels.coalescing, levels.splits))
    for (fit, searching), (merge, merging), (split, splitting) in product(*axes):
        general = General(**searching, **merging, split=splitting)
        for lists, front in enumerate(levels.freelists):
            yield Techniques(lists, fit, split, merge), (*front, general)


class Techniques(NamedTuple):
    """The levels of a recipe of the grid: how often each of the four techniques of the 2006 paper is used."""

    freelists: int
    """How many of the most frequent sizes have a list."""
    fit: int
    """Index into `FITS`."""
    split: int
    """0 always, then thresholds that rise, the last level never."""
    coalesce: int
    """0 immediately, the last level never; between them from a size up, deferred, or forward only."""


def technique_grid(traces: Sequence[Trace], align: int) -> dict[Techniques, Recipe]:
    """Every combination of ten levels of each technique (Mamagkakis et al. 2006, section 5), by the levels it has.

    The default space has most of these combinations. Several of them may give the same recipe, which is then listed for
    each. Raises HeapwrightError if there is no trace.
    """
    levels = Levels(Demand.of(traces), align)
    return {key: Recipe.unchecked(pools, align) for key, pools in _numbered_grid(levels)}


def _shapes(units: Sequence[int] = ()) -> list[dict[str, Any]]:
    exact = [{**EXACT_BEST, "linear_up_to": size} for size in (512, 1024, 2048)]
    exact += [{**EXACT_BEST, "linear_up_to": 2048, "unit": unit} for unit in units]
    return [*exact, {"bins": "lea", "fit": "best"}, GOOD_FIT, {**GOOD_FIT, "bins_per_octave": 8}]


def _victim_family(levels: Levels) -> Family:
    """The largest single gain measured; the best threshold depends on the traffic, so all of them are tried."""
    flushed = Quick(up_to=32, flush="before-growing")
    fronts: list[tuple[Pool, ...]] = [*levels.few_freelists, (flushed,)]
    for shape, victim in product(_shapes((2 * levels.align,)), levels.victims):
        for close_bins in (0, 4, 30) if shape["bins"] == "exact" else (0,):
            general = General(**shape, victim_up_to=victim, close_bins=close_bins)
            yield from ((*front, general) for front in fronts)


def _bin_family(levels: Levels) -> Family:
    shapes: list[dict[str, Any]] = [
        {**EXACT_BEST, "linear_up_to": size, "bins_per_octave": steps}
        for size, steps in product((2048, 1024, 512, 256), (1, 4, 8))
    ]
    shapes += [{**GOOD_FIT, "bins_per_octave": steps} for steps in (32, 16, 8, 4)]
    shapes += [{"bins": bins, "fit": fit} for bins, fit in product(("lea", "power-of-two"), ("best", "first"))]
    shapes += [{"bins": "half-fit"}]
    orders: tuple[Literal["lifo", "fifo", "address", "size"], ...] = ("lifo", "fifo", "address", "size")
    for shape, order, merge in product(shapes, orders, MERGING):
        general = General(**shape, coalesce=merge, order=order)
        yield from ((*front, general) for front in levels.few_freelists)


def _few_bins_family(levels: Levels) -> Family:
    """Few bins, bounded searches, and short lists, as in the small reference allocators."""
    counts = [count for count in (1, 3, 6) if count <= len(levels.frequent)]
    fronts: list[tuple[Pool, ...]] = [(), *((Quick(sizes=tuple(levels.frequent[:n]), limit_blocks=4),) for n in counts)]
    fronts += [(Quick(up_to=size, limit_blocks=4),) for size in levels.up_to if size in (64, 128)]
    for front, (linear, steps, most) in product(fronts, ((64, 2, 0), (128, 2, 32), (256, 2, 64), (512, 2, 0))):
        shape = {**EXACT_BEST, "search_most": 16, "linear_up_to": linear, "bins_per_octave": steps, "most_bins": most}
        yield *front, General(**shape)
        for victim, close in product((64, 256, 1000), (0, 1, 4)):
            yield *front, General(**shape, victim_up_to=victim, close_bins=close)


def _tree_family(levels: Levels) -> Family:
    """General pools behind quick lists, which serve few sizes without a tree, or in front of bins."""
    fronts: list[tuple[Pool, ...]] = [*levels.freelists, *((Quick(up_to=size),) for size in levels.up_to)]
    fits: tuple[Literal["first", "best"], ...] = ("first", "best")
    varied: list[dict[str, Any]] = [{"split": split} for split in (*levels.splits[:6:2], "never")]
    varied += [{"coalesce": merge} for merge in ("forward", "never")]
    for front, fit, other in product(fronts, fits, varied):
        yield *front, General(free_list="tree", fit=fit, **other)


def _bases(levels: Levels) -> list[General]:
    """One pool of each promising design, to vary what is around it."""
    victim = levels.victims[-1]
    designs = [EXACT_BEST, {**EXACT_BEST, "victim_up_to": victim}, GOOD_FIT, {"fit": "first"}, {"fit": "best"}]
    return [General(**design) for design in designs]


def _quick_family(levels: Levels) -> Family:
    flushes: list[dict[str, Any]] = [
        {},
        {"flush": "over-limit", "limit_blocks": 16},
        {"flush": "before-growing"},
    ]
    limits: list[dict[str, Any]] = [
        {"limit_blocks": blocks, "flush": flush}
        for blocks, flush in product((4, 16, 64), ("before-refusing", "over-limit", "before-growing"))
    ]
    fronts = [Quick(up_to=size, **flush) for size, flush in product(levels.up_to, flushes)]
    for count in (2, 3, 6):
        if count <= len(levels.frequent):
            fronts += [Quick(sizes=tuple(levels.frequent[:count]), **limit) for limit in [*limits, *flushes[2:]]]
    return product(fronts, _bases(levels))


SMALL: dict[str, Any] = {**EXACT_BEST, "linear_up_to": 128, "bins_per_octave": 2, "most_bins": 32, "search_most": 16}
"""Few bins, as the reference allocator small has them."""

BINS: dict[str, Any] = {**EXACT_BEST, "linear_up_to": 2048, "bins_per_octave": 4, "search_most": 16}
"""Bins of one size each, as the reference allocator exact-bins has them."""


REFILL = 8
"""Blocks cut at a time where lists are refilled. Over ten programs a pair takes 159 instructions of x86-64 without, 117
with 8 and 112 with 16; a malloc's worst case grows with each block."""


def _generals() -> list[tuple[General, Literal["all", "apart"]]]:
    """Bounded general pools that stay flat on real runs, and what lists before each may keep."""
    return [
        (General(**BINS), "all"),
        (General(**BINS, victim_up_to=256, close_bins=1), "apart"),
        (General(**SMALL), "all"),
        (General(**SMALL, victim_up_to=256), "apart"),
    ]


def _idle_family(levels: Levels) -> Family:
    """Lists that return idle blocks: few accesses, and unused blocks are merged (docs/zoo/fast.md)."""
    lists: list[dict[str, Any]] = [{"up_to": size} for size in (68, 132, 260, 516)]
    lists += [{"up_to": size, "lists_per_octave": many} for size, many in product((260, 516, 1028, 1532), (4, 8))]
    lists = [kept for kept in lists if kept["up_to"] < 2 * levels.largest]
    lists += [{"sizes": tuple(levels.frequent[:count])} for count in (3, 6, 9) if count <= len(levels.frequent)]
    for share, kept, (general, keep) in product((1 / 8, 1 / 16, 1 / 32, 1 / 64), lists, _generals()):
        yield Quick(**kept, flush="idle", idle_share=share, keep=keep), general
    for share, kept, (general, keep) in product((1 / 16, 1 / 32), lists, _generals()):
        yield Quick(**kept, flush="idle", idle_share=share, keep=keep, refill=REFILL), general


def _limited_family(levels: Levels) -> Family:
    """Lists with a limit on their blocks, low enough to keep free memory from splintering."""
    lists: list[dict[str, Any]] = [{"up_to": size} for size in (68, 132, 260) if size < 2 * levels.largest]
    lists += [{"sizes": tuple(levels.frequent[:count])} for count in (2, 3, 6, 9) if count <= len(levels.frequent)]
    for kept, blocks, (general, _) in product(lists, (2, 4, 8, 16), _generals()):
        yield Quick(**kept, limit_blocks=blocks), general


def _counted_family(levels: Levels) -> Family:
    """Pools of the most frequent sizes with the counts that a future shows, without headers, before a general pool.

    Mamagkakis et al. 2006 (section 6) and 2007 (section 4) make such pools by hand. When a pool is full, the general
    pool serves its requests, so a count trades memory for accesses. Lists that return idle blocks lie between the two:
    at 1.7 times the load a broker made .86 of the accesses of fast with these lists, 1.55 without.
    """
    most = max(256, min(1532, levels.largest))
    behind: list[tuple[Quick, General]] = [
        (
            Quick(up_to=min(most, 516), lists_per_octave=8, flush="idle", idle_share=1 / 32, keep="apart"),
            General(**SMALL, victim_up_to=256),
        ),
        (Quick(up_to=min(most, 516), lists_per_octave=8, flush="idle", idle_share=1 / 32), General(**SMALL)),
        (
            Quick(up_to=most, lists_per_octave=4, flush="idle", idle_share=1 / 16, keep="apart"),
            General(**SMALL, victim_up_to=256),
        ),
        (Quick(up_to=260, flush="idle", idle_share=1 / 16), General(**SMALL)),
    ]
    seen = set[tuple[tuple[int, int], ...]]()
    for count, share in product(COUNTED, range(len(COUNT_SHARES))):
        chosen = ((levels.aligned([size])[0], blocks[share]) for size, blocks in levels.demand.counts[:count])
        merged: dict[int, int] = {}
        for size, blocks in chosen:
            merged[size] = merged.get(size, 0) + blocks
        classes = tuple(sorted((size, blocks) for size, blocks in merged.items() if blocks >= FEWEST_COUNTED))
        if not classes or classes in seen:
            continue
        seen.add(classes)
        sizes, counts = zip(*classes, strict=True)
        pool = Fixed(sizes=sizes, counts=counts, max_size=max(sizes))
        yield from ((pool, *pools) for pools in behind)


def _bounded_family(levels: Levels) -> Family:
    return (recipe.pools for recipe in bounded_recipes(levels.demand.bounds, levels.align))


def bounded_recipes(bounds: Sequence[LiveBound], align: int) -> list[Recipe]:
    """A fixed block for each object that a ring or a queue holds at most: what serves any order with the least RAM.

    Of several bounds it has the most blocks of each size. None without bounds, or with more sizes than a pool has.
    """
    blocks: dict[int, int] = {}
    for bound in bounds:
        for size, count in zip(*bound.fixed_blocks(align), strict=True):
            blocks[size] = max(blocks.get(size, 0), count)
    if not blocks or len(blocks) > MAX_CLASSES:
        return []
    sizes = tuple(sorted(blocks))
    return [Recipe.unchecked((Fixed(sizes=sizes, counts=tuple(blocks[size] for size in sizes)),), align)]


FEWEST_COUNTED = 2
"""Blocks below which a size gets no pool: it would cost a list head and save little."""


def _fixed_family(levels: Levels) -> Family:
    """Fixed classes in front of a general pool that serves what is larger."""
    counts = range(2, FREELISTS + 1)
    classes = [*levels.classes.values(), *(levels.aligned(levels.frequent[:count]) for count in counts)]
    growth: list[dict[str, Any]] = [{"header": 4, "page": page} for page in (0, 256, 1024, 4096)]
    growth += [{"header": 8, "find": "first-fit"}]
    designs: list[dict[str, Any]] = [EXACT_BEST, {**EXACT_BEST, "victim_up_to": levels.victims[-1]}, GOOD_FIT]
    designs += [{"fit": "first"}, {"fit": "first", "order": "address"}, {"free_list": "tree", "fit": "first"}]
    for sizes, grow, design in product(classes, growth, designs):
        if sizes:
            yield Fixed(sizes=tuple(sizes), **grow), General(**design, header=grow["header"])


def _block_family(levels: Levels) -> Family:
    for base, least, front in product(_bases(levels), (32, 64), levels.few_freelists):
        yield *front, base.model_copy(update={"min_block": least})


def _buddy_family(levels: Levels) -> Family:
    """Few levels: a buddy pool has no fit, split or coalescing to choose."""
    fronts: list[tuple[Pool, ...]] = [*levels.few_freelists, (Quick(up_to=128, flush="before-growing"),)]
    if levels.frequent:
        fronts.append((Fixed(sizes=tuple(sorted(levels.frequent[:3])), header=4),))
    served = max(levels.frequent, default=0) + 4 <= Buddy().largest_block(Geometry(levels.align))
    for min_block, front in product((16, 32, 64), fronts):
        if served and min_block >= 2 * levels.align:
            yield *front, Buddy(min_block=min_block)


def _partition_family(levels: Levels) -> Family:
    rules: list[dict[str, Any]] = [{}, {"fit": "best"}, {"order": "size"}, {"order": "lifo"}]
    for size, descriptor, rule in product((32, 64, 128, 256, 512), (16, 32), rules):
        pool = Partition(size=size, descriptor_bytes=descriptor, **rule)
        yield (pool,)
        yield from ((*front, pool) for front in levels.few_freelists[1:2] if not rule)


def _narrow_family(levels: Levels) -> Iterator[Recipe]:
    """2-byte links and 2- or 3-byte headers around the promising designs, if they reach far enough."""
    shapes = [*_shapes(), {"fit": "first"}, {"fit": "best"}]
    generals = [General(**shape) for shape in shapes]
    generals += [
        General(**shape, victim_up_to=victim)
        for shape, victim in product(shapes, levels.victims[1::2])
        if shape.get("bins") == "exact"
    ]
    fronts = [*levels.few_freelists[:2], *levels.freelists[2::2]]
    fronts += [(Quick(up_to=size),) for size in levels.up_to[1::2]]
    for general, header, link_bytes in product(generals, (2, 3, 4), (2, 4)):
        pool = general.model_copy(update={"header": header})
        for front in fronts:
            recipe = Recipe.unchecked((*front, pool), levels.align, link_bytes)
            if levels.reaches(recipe):
                yield recipe


def _order_family(levels: Levels) -> Family:
    orders: tuple[Literal["fifo", "address", "size"], ...] = ("fifo", "address", "size")
    fits: tuple[Literal["first", "best", "next", "worst"], ...] = ("first", "best", "next", "worst")
    for order, fit, split, merge in product(orders, fits, levels.few_splits, MERGING):
        general = General(order=order, fit=fit, split=split, coalesce=merge)
        yield from ((*front, general) for front in levels.few_freelists[::2])


def _worst_family(levels: Levels) -> Family:
    for merging, split, front in product(levels.coalescing, levels.few_splits, levels.few_freelists):
        yield *front, General(fit="worst", split=split, **merging)


def _tail_family(levels: Levels) -> Family:
    designs: list[dict[str, Any]] = [EXACT_BEST, GOOD_FIT, {"fit": "first"}, {"fit": "next"}, {"fit": "best"}]
    designs += [{"fit": "first", "order": "address"}]
    for design, merge, front in product(designs, MERGING, levels.few_freelists):
        yield *front, General(**design, coalesce=merge, split_from="tail")


def _single_family(levels: Levels) -> Family:
    """Few, because taking a block out of a single list, or finding a neighbour without tags, is a walk."""
    merging: list[dict[str, Any]] = [
        {"boundary_tags": True},
        {"boundary_tags": False},
        {"coalesce": "deferred"},
        {"coalesce": "never"},
    ]
    orders: tuple[Literal["lifo", "address"], ...] = ("lifo", "address")
    for free_list, order, fit, merge in product(LISTS, orders, SEARCHES[::2], merging):
        general = General(free_list=free_list, order=order, fit=fit, **merge)
        yield from ((*front, general) for front in levels.few_freelists[::2])


def _lazy_family(levels: Levels) -> Family:
    for free_list, fit, split in product(LISTS, SEARCHES, levels.few_splits[:2]):
        general = General(free_list=free_list, order="address", fit=fit, split=split, coalesce="lazy")
        yield from ((*front, general) for front in levels.few_freelists[::2])


def _implicit_family(levels: Levels) -> Family:
    """Few, because a search walks every block of the heap."""
    merging: list[dict[str, Any]] = [
        {"boundary_tags": True},
        {"boundary_tags": False},
        {"coalesce": "lazy"},
        {"coalesce": "deferred"},
    ]
    for fit, merge in product(SEARCHES, merging):
        general = General(free_list="implicit", fit=fit, **merge)
        yield from ((*front, general) for front in levels.few_freelists[::2])
