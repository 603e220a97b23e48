"""What a list of allocators says of each: overhead, smallest block, bounded or not, bytes of code, growth."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from heapwright.recipes.policy import policy
from heapwright.recipes.pools import ROUNDED_UP, Compact, Fixed, General, Pool, Quick
from heapwright.recipes.recipe import Recipe


class Facts(NamedTuple):
    """What a list of allocators says of one; sizes in bytes."""

    overhead_bytes: tuple[int, ...]
    """Header and trailer of a block, or a partition's descriptor; one a pool where these differ."""
    smallest_block_bytes: int
    """Smallest block of any pool, header included."""
    bounded: bool
    """Whether malloc and free take a time that does not grow with the number of blocks."""
    code_bytes: int | None
    """malloc, free and realloc together on a Cortex-M3 at -Os; None where not measured."""
    growth_ratio: float | None
    """Footprint at constant live bytes after 10,000,000 calls (1,000,000 where calls may walk) over that after 100,000;
    None where not measured."""
    lasts: bool | None
    """Whether it grows by no more than best fit does and 5 %, and refused nothing that fits twice."""


def facts(recipe: Recipe) -> Facts:
    """Return what the recipe's keys say about cost: see `Facts`."""
    canonical = recipe.canonical()
    values = policy(canonical)["pools"]
    blocks = [
        (_overhead(pool, laid_out), _smallest(pool, laid_out, recipe.align))
        for pool, laid_out in zip(canonical.pools, values, strict=True)
        if not isinstance(pool, Quick)
    ]
    overheads = tuple(dict.fromkeys(overhead for overhead, _ in blocks))
    bounded = all(map(_is_bounded, canonical.pools))
    smallest = min(size for _, size in blocks)
    growth, lasts = _endurance().get(recipe.hash, (None, None))
    return Facts(overheads, smallest, bounded, _code_bytes().get(recipe.hash), growth, lasts)


@cache
def _code_bytes() -> dict[str, int]:
    """Hash -> bytes of code on a Cortex-M3, as bench/zoo_code_bytes.py measured them."""
    return {hash: int(size) for _, hash, size in _rows("code_bytes.csv")}


@cache
def _endurance() -> dict[str, tuple[float, bool]]:
    """Hash -> growth, and whether that lasts, as bench/zoo_endurance.py found them."""
    return {hash: (float(growth), lasts == "1") for _, hash, growth, lasts, _ in _rows("endurance.csv")}


def _rows(file: str) -> list[list[str]]:
    """The rows of a file of this folder, behind a line that says how it was made and one of headings."""
    text = (resources.files(__package__) / file).read_text(encoding="utf-8")
    return [line.split(",") for line in text.splitlines()[2:]]


def _overhead(pool: Pool, laid_out: dict[str, Any]) -> int:
    if isinstance(pool, General):
        return int(laid_out["general"]["overhead"])
    if pool.kind == "partition":
        return pool.descriptor_bytes
    assert not isinstance(pool, Quick)
    return pool.header


def _smallest(pool: Pool, laid_out: dict[str, Any], align: int) -> int:
    if isinstance(pool, General):
        return int(laid_out["general"]["min_block"])
    if isinstance(pool, Fixed):
        return -(-(min(pool.sizes) + pool.header) // align) * align
    if isinstance(pool, Compact):
        return pool.header + align
    assert not isinstance(pool, Quick)
    return pool.size if pool.kind == "partition" else pool.min_block


def _is_bounded(pool: Pool) -> bool:
    """Whether neither searches nor merges of the pool depend on how many blocks there are."""
    if isinstance(pool, Quick):
        return not pool.flush_from and bool(pool.limit_blocks)
    if isinstance(pool, Fixed):
        return pool.find == "freelist"
    if isinstance(pool, General):
        filed_at_once = pool.free_list == "double" and {pool.order, pool.large_order} <= {"lifo", "fifo", None}
        merges = pool.coalesce == "never" or (pool.coalesce == "immediate" and pool.boundary_tags)
        searches = pool.bins in ROUNDED_UP or pool.search_most > 0
        return filed_at_once and merges and searches and not pool.unsorted
    return pool.kind == "buddy"
