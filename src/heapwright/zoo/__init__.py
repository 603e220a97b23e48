"""The zoo: allocators with a name and a source, each a TOML recipe in this folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from heapwright.errors import HeapwrightError
from heapwright.named import toml_files, toml_text
from heapwright.policy import policy
from heapwright.recipes import MAX_CLASSES, ROUNDED_UP, Compact, Fixed, General, Pool, Quick, Recipe

SPECIAL_POOLS = "wifi-special-pools"
"""The recipe that `special_pools` derives from what a program or a network really asks for."""


def names() -> list[str]:
    """Return the names of all recipes, in alphabetical order."""
    return list(toml_files(__name__))


def text(name: str) -> str:
    """Return the TOML file of a recipe, with its prose and comments. Raises HeapwrightError for an unknown name."""
    return toml_text(__name__, name, "the zoo has no such allocator", "valid", "a RECIPE.toml or STUDY:ID")


@cache
def load(name: str) -> Recipe:
    """Return the recipe of that name. Raises HeapwrightError for an unknown name."""
    return Recipe.parse(text(name), f"zoo/{name}.toml")


def recipes() -> list[Recipe]:
    """Return all recipes, in alphabetical order of their names."""
    return [load(name) for name in names()]


def staying() -> list[Recipe]:
    """Return the recipes of heaps whose objects stay where they are: those that can stand for malloc."""
    return [recipe for recipe in recipes() if not isinstance(recipe.pools[0], Compact)]


# ---- facts ---------------------------------------------------------------------------------------------------------


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


def facts(recipe: Recipe) -> Facts:
    """Return what the recipe's keys say about cost: see `Facts`."""
    canonical = recipe.canonical()
    values = policy(canonical)["pools"]
    blocks = [
        (_overhead(pool), _smallest(pool, laid_out, recipe.align))
        for pool, laid_out in zip(canonical.pools, values, strict=True)
        if not isinstance(pool, Quick)
    ]
    overheads = tuple(dict.fromkeys(overhead for overhead, _ in blocks))
    bounded = all(map(_is_bounded, canonical.pools))
    return Facts(overheads, min(size for _, size in blocks), bounded, _code_bytes().get(recipe.hash))


@cache
def _code_bytes() -> dict[str, int]:
    """Hash -> bytes of code on a Cortex-M3, as bench/zoo_code_bytes.py measured them."""
    text = (resources.files(__name__) / "code_bytes.csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines()[2:]]
    return {hash: int(size) for _, hash, size in rows}


def _overhead(pool: Pool) -> int:
    if pool.kind == "partition":
        return pool.descriptor_bytes
    assert not isinstance(pool, Quick)
    return pool.header + (pool.trailer if isinstance(pool, General) else 0)


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
        return not pool.flush_from and (
            pool.flush == "never" or (pool.flush == "over-limit" and bool(pool.limit_blocks))
        )
    if isinstance(pool, Fixed):
        return pool.find == "freelist"
    if isinstance(pool, General):
        filed_at_once = pool.free_list == "double" and {pool.order, pool.large_order} <= {"lifo", "fifo", None}
        merges = pool.coalesce == "never" or (pool.coalesce == "immediate" and pool.boundary_tags)
        searches = pool.bins in ROUNDED_UP or pool.search_most > 0
        return filed_at_once and merges and searches and not pool.unsorted
    return pool.kind == "buddy"


# ---- recipes made for a profile --------------------------------------------------------------------------------------


def special_pools(path: Path) -> Recipe:
    """Derive special pools from a trace or packet table (Mamagkakis et al. 2007, section 4, A).

    Every size with at least 10 % of the requests becomes a class; the others are powers of two, from the first that
    holds the smallest request to the first that holds the largest. Raises HeapwrightError where the file cannot be
    used.
    """
    from heapwright.profile import FREQUENT_SHARE, profile_file

    profile = profile_file(path)
    sizes = profile["sizes"]
    if not sizes:
        raise HeapwrightError(f"{path}: asks for no memory; valid: a trace or packet table with requests")
    special = [entry["size"] for entry in sizes if entry["share"] >= FREQUENT_SHARE]
    model = load(SPECIAL_POOLS)
    classes = _classes(special, [entry["size"] for entry in sizes], model.align)
    pool = model.pools[0]
    assert isinstance(pool, Fixed)
    listed = ", ".join(map(str, sorted(special))) or "none"
    return model.model_copy(
        update={
            "about": f"Special pools for {profile['name']}: sizes with at least {FREQUENT_SHARE:.0%} of its requests "
            f"({listed}),\nand powers of two up to the largest.",
            "pools": (pool.model_copy(update={"sizes": classes}), *model.pools[1:]),
        }
    )


def _classes(special: Sequence[int], sizes: Sequence[int], align: int) -> tuple[int, ...]:
    """Special sizes and the powers of two around them, each class once when rounded up to the alignment."""
    least, largest = max(min(sizes), align), max(sizes)
    powers = [1 << bits for bits in range((least - 1).bit_length(), (largest - 1).bit_length() + 1)]
    if largest in special:
        powers = [power for power in powers if power < largest]
    by_class: dict[int, int] = {}
    for size in [*special, *powers]:
        by_class.setdefault(-(-max(size, align) // align), max(size, align))
    return tuple(sorted(by_class.values()))[:MAX_CLASSES]
