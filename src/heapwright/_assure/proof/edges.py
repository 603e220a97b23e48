"""Sizes at the edges of a recipe's classes, and programs that ask for them, run under the compiler's sanitizers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from heapwright._recipes.pools import MAX_REACH, MAX_REQUEST, owners_in
from heapwright._recipes.recipe import Recipe

ROOMS = (640, 1 << 13, 1 << 17, 1 << 22)
"""Bytes for blocks in the arenas of programs: from some that soon refuse to one that has most classes."""

MOST_EDGES = 6000
"""Most sizes that a harness holds; if a recipe has more, that many are drawn of them."""

PROGRAMS = 1500
"""Programs of 40 calls that are drawn; a tenth of them where a walk takes a list's length for each block."""

MOST_PAIRS = 6000
"""Most pairs of neighbouring sizes that are tried; if there are more, that many are drawn of them."""

SIZE_MAX = (1 << 64) - 1

_BEYOND = (MAX_REQUEST, MAX_REACH, 1 << 32, (1 << 32) + 8, SIZE_MAX // 2, SIZE_MAX - 64, SIZE_MAX)
"""Sizes that wrap, or that every recipe refuses."""


def edge_sizes(recipe: Recipe, values: Mapping[str, Any], arenas: Sequence[int]) -> list[int]:
    """Requests in bytes, ascending, at which a class of the recipe ends, and the ones before and behind.

    Args:
        recipe: the heap.
        values: its policy.
        arenas: bytes of the arenas; what is left of each is an edge, too.
    """
    edges = {1, *_BEYOND}
    for pool, policy in zip(recipe.pools, values["pools"], strict=True):
        edges |= {pool.min_size, pool.max_size or MAX_REQUEST, policy["fast_max"]}
        edges.update(pool.edges(policy[pool.kind]))
    edges |= {remaining // part for arena in arenas for remaining in [arena - values["fixed_end"]] for part in (1, 2)}
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted(size for size in near if 0 <= size <= SIZE_MAX)


def neighbours(edges: Sequence[int], bound: int, seed: int, most: int) -> tuple[list[tuple[int, int]], int]:
    """Pairs of sizes up to `bound`, as indices, at most seven apart: at most `most` of them, and how many there are."""
    fitting = sum(size <= bound for size in edges)
    results = [(i, k) for i in range(fitting) for k in range(max(i - 7, 0), min(i + 8, fitting)) if i != k]
    if len(results) <= most:
        return results, len(results)
    return sorted(random.Random(seed).sample(results, most)), len(results)


def covers(recipe: Recipe) -> bool:
    """Whether the high-water mark lies behind every object: where nothing is taken from the arena's end downwards."""
    owners = owners_in(recipe.pools)
    return len(owners) == 1 and owners[0].covers


def serves(recipe: Recipe) -> str:
    """When a heap has to serve `size` bytes because a free piece holds `largest`, as a C expression."""
    owners = owners_in(recipe.pools)
    if len(owners) > 1 or owners[0].min_size or owners[0].max_size:
        return "0"
    return owners[0].serves(recipe.align)


def waste(recipe: Recipe, values: Mapping[str, Any]) -> str:
    """The most bytes that an object of `size` bytes may use, as a C expression; SIZE_MAX where nothing is split."""
    each = list(zip(recipe.pools, values["pools"], strict=True))
    most = [pool.wasted(its[pool.kind]) for pool, its in each if pool.owns_blocks]
    bounded = [size for size in most if size is not None]
    rounding = max(pool.rounding(its[pool.kind]) for pool, its in each)
    return f"size + {max(bounded) + rounding}u" if len(bounded) == len(most) else "SIZE_MAX"


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
        compared: whether the core runs the same calls; a heap with a lock or caches always runs alone.
        seed: of what is drawn by chance.
    """
    arenas = [-(-int(values["fixed_end"]) // 16) * 16 + room for room in ROOMS]
    arenas = [min(arena, int(values["reach"])) for arena in arenas]
    edges = edge_sizes(recipe, values, arenas)
    all_edges = len(edges)
    if len(edges) > MOST_EDGES:
        edges = sorted(random.Random(seed).sample(edges, MOST_EDGES))
    walked = any(pool.walks_pages for pool in recipe.pools)
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
        "caches": int(recipe.checks == "full" or any(pool["cached"] for pool in values["pools"])),
        "serves": serves(recipe),
        "waste": waste(recipe, values),
        "merges": all(pool.merges(recipe.align) for pool in owners_in(recipe.pools)),
        "fills": int(all(pool.owns_blocks for pool in recipe.pools)),
        "compared": compared and recipe.threads == "none",
        "bytewise": compared and recipe.threads == "none" and not values["keys"],
        "marks": [
            span for pool, its in zip(recipe.pools, values["pools"], strict=True) for span in pool.marks(its[pool.kind])
        ],
        "policy": initialiser(values),
    }
