"""Sizes at the edges of a recipe's classes, and programs that ask for them, run under the compiler's sanitizers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heapwright.recipes.pools import (
    MAX_REACH,
    MAX_REQUEST,
    ROUNDED_UP,
    Buddy,
    Fixed,
    General,
    Partition,
    Pool,
    Quick,
)
from heapwright.recipes.recipe import Recipe

ROOMS = (640, 1 << 13, 1 << 17, 1 << 22)
"""Bytes for blocks in the arenas of programs: from some that soon refuse to one that has most classes."""

MOST_EDGES = 6000
"""Sizes that a harness holds; where a recipe has more, so many drawn of them."""

PROGRAMS = 1500
"""Programs of 40 calls that are drawn; a tenth of them where a walk takes a list's length for each block."""

MOST_PAIRS = 6000
"""Pairs of neighbouring sizes that are tried; where there are more, so many drawn of them."""

SIZE_MAX = (1 << 64) - 1

_BEYOND = (MAX_REQUEST, MAX_REACH, 1 << 32, (1 << 32) + 8, SIZE_MAX // 2, SIZE_MAX - 64, SIZE_MAX)
"""Where sizes wrap or are refused whatever the recipe."""


def edge_sizes(recipe: Recipe, values: Mapping[str, Any], arenas: Sequence[int]) -> list[int]:
    """Requests in bytes, ascending, at which a class of the recipe ends, and the ones before and behind.

    Args:
        recipe: the heap.
        values: its policy.
        arenas: bytes of the arenas; what is left of each is an edge, too.
    """
    edges = {1, *_BEYOND}
    for pool, policy in zip(recipe.pools, values["pools"], strict=True):
        edges |= {pool.min_size, pool.max_size or MAX_REQUEST, policy["at_hand"]}
        edges.update(_edges_of_pool(pool, policy))
    edges |= {left // part for arena in arenas for left in [arena - values["fixed_end"]] for part in (1, 2)}
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted(size for size in near if 0 <= size <= SIZE_MAX)


def _edges_of_pool(pool: Pool, policy: Mapping[str, Any]) -> Iterator[int]:
    """The largest requests that classes of one pool take."""
    if isinstance(pool, Quick):
        quick = policy["quick"]
        yield from quick["sizes"] or range(0, (pool.up_to or 0) + 1, quick["align"])
        yield from quick["least"]
        yield from (quick["largest"], pool.flush_from, pool.flush_large)
    elif isinstance(pool, General):
        general = policy["general"]
        blocks = [general["min_block"], general["min_block"] + general["split_least"], pool.coalesce_from]
        blocks += [pool.grow_least, *bin_edges(general)]
        yield pool.victim_up_to
        yield from (block - general["overhead"] for block in blocks)
    elif isinstance(pool, Buddy):
        yield from ((1 << bits) - pool.header for bits in range(pool.min_block.bit_length() - 1, 32))
    elif isinstance(pool, Fixed):
        yield from pool.sizes
    elif isinstance(pool, Partition):
        yield from (pool.size * count for count in (1, 2, 3, 4, pool.lists, pool.lists + 1))


def bin_edges(general: Mapping[str, Any]) -> Iterator[int]:
    """The smallest block, in bytes, of each bin of a general pool."""
    if general["powers"]:
        yield from (1 << bits for bits in range(4, 31))
    if not general["bins"]:
        return
    unit, less, steps = 1 << general["unit_shift"], general["bin_less"], general["bin_steps_log2"]
    if general["bin_linear_bins"]:
        yield from range(less + general["bin_first"] * unit, less + general["bin_linear"], unit)
    first = max(general["bin_linear"], 1 << general["bin_octave"])
    for octave in range(first.bit_length() - 1, 31):
        yield from (less + (1 << octave) + (step << octave >> steps) for step in range(1 << steps))


def neighbours(edges: Sequence[int], bound: int, seed: int, most: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs of sizes up to `bound`, as indices, at most seven apart: at most `most` of them, and how many there are."""
    fitting = sum(size <= bound for size in edges)
    found = [(i, k) for i in range(fitting) for k in range(max(i - 7, 0), min(i + 8, fitting)) if i != k]
    if len(found) <= most:
        return found, len(found)
    return sorted(random.Random(seed).sample(found, most)), len(found)


def merges(pool: Pool, align: int) -> bool:
    """Whether all free memory is one piece again once all is freed, by design.

    Not where memory once taken from the top never goes back, nor where payloads float in their blocks.
    """
    if isinstance(pool, General):
        limited = pool.fit == "exact" or pool.search_most > 0 or pool.search_percent < 100
        kept = pool.top in ("bump", "extend") or 0 < pool.unit < align
        return pool.coalesce not in ("never", "forward") and pool.coalesce_from == 0 and not limited and not kept
    if isinstance(pool, Partition):
        return pool.coalesce != "never"
    return not isinstance(pool, Fixed) or pool.counts != "grow"


def covers(recipe: Recipe) -> bool:
    """Whether the high-water mark lies behind every object: where nothing is taken from the arena's end downwards."""
    (first, *others) = [pool for pool in recipe.pools if not isinstance(pool, Quick)]
    if isinstance(first, General):
        return not others and first.split_from == "head"
    return not others and not isinstance(first, Partition) and getattr(first, "counts", "") != "grow"


def serves(recipe: Recipe) -> str:
    """When a heap has to serve `size` bytes because a free piece holds `largest`, as a C expression."""
    owners = [pool for pool in recipe.pools if not isinstance(pool, Quick)]
    pool = owners[0]
    if len(owners) > 1 or pool.min_size or pool.max_size:
        return "0"
    if isinstance(pool, Fixed) and len(pool.sizes) > 1:
        return "0"
    if not isinstance(pool, General):
        return "largest != 0 && size <= largest"
    if pool.fit == "exact" or pool.search_most or pool.search_percent < 100 or pool.grow_least:
        return "0"
    if pool.round_to == "power-of-two":
        return "size < largest / 4u - 64u && largest > 256u"
    if pool.bins in ROUNDED_UP:
        return f"size < largest && size + size / {pool.bins_per_octave or 1}u + {4 * recipe.align}u <= largest"
    return "largest != 0 && size <= largest"


def waste(values: Mapping[str, Any]) -> str:
    """The most bytes that an object of `size` bytes may use, as a C expression; SIZE_MAX where nothing is split."""
    owners = [pool for pool in values["pools"] if "quick" not in pool]
    if any("general" not in pool or pool["general"]["split"] != 1 or pool["general"]["powers"] for pool in owners):
        return "SIZE_MAX"
    most = max(
        (1 << one["unit_shift"]) + one["min_block"] + one["split_least"] for pool in owners for one in [pool["general"]]
    )
    return f"size + {most}u"


def _control(pool: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Where control data lies that the checker vouches for, and how many bytes: bitmaps, tops, counts of blocks."""
    general = pool.get("general", {})
    bins = general.get("bins", 0)
    if bins:
        yield general["bitmap_at"], -(-bins // 32) * 4
    if bins > 32:
        yield general["summary_at"], 4
    if top := (general or pool.get("buddy", {})).get("top_at"):
        yield top, 4
    fixed = pool.get("fixed", {})
    if fixed and not fixed["grow"]:
        yield fixed["carved_at"], 4 * fixed["count"]


def initialiser(value: Any) -> str:
    """A C initialiser of nested mappings and lists; what is empty is left out and becomes zero."""
    if isinstance(value, Mapping):
        fields = (f".{key} = {initialiser(item)}" for key, item in value.items() if item not in ({}, []))
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, Sequence):
        return "{" + ", ".join(map(initialiser, value)) + "}"
    return f"{value}u"


def told_edges(edges: Sequence[int]) -> list[str]:
    """The sizes as C constants."""
    return [f"{edge}ull" for edge in edges]


def edge_names(recipe: Recipe, values: Mapping[str, Any], compared: bool, seed: int = 1) -> dict[str, Any]:
    """What the template of the harness asks for: the recipe's sizes and what it promises.

    Args:
        recipe: the heap.
        values: its policy.
        compared: whether the core runs beside it; a heap with a lock or caches is always alone.
        seed: of what is drawn by chance.
    """
    arenas = [-(-int(values["fixed_end"]) // 16) * 16 + room for room in ROOMS]
    arenas = [min(arena, int(values["reach"])) for arena in arenas]
    edges = edge_sizes(recipe, values, arenas)
    all_edges = len(edges)
    if len(edges) > MOST_EDGES:
        edges = sorted(random.Random(seed).sample(edges, MOST_EDGES))
    walked = any(isinstance(pool, Fixed) and pool.counts == "grow" and pool.page for pool in recipe.pools)
    pairs, all_pairs = neighbours(edges, ROOMS[-1] // 3, seed, MOST_PAIRS)
    return {
        "arenas": arenas,
        "edges": told_edges(edges),
        "all_edges": all_edges,
        "pairs": pairs,
        "all_pairs": all_pairs,
        "programs": PROGRAMS // 10 if walked else PROGRAMS,
        "seed": f"{0x9E3779B97F4A7C15 ^ seed}ull",
        "control": values["control"],
        "fixed_end": values["fixed_end"],
        "covers": int(covers(recipe)),
        "serves": serves(recipe),
        "waste": waste(values),
        "merges": all(merges(pool, recipe.align) for pool in recipe.pools if not isinstance(pool, Quick)),
        "fills": int(not any(isinstance(pool, Quick) for pool in recipe.pools)),
        "compared": compared and recipe.threads == "none",
        "bytewise": compared and recipe.threads == "none" and not values["keys"],
        "marks": [span for pool in values["pools"] for span in _control(pool)],
        "policy": initialiser(values),
    }
