"""What a list of allocators says of each: overhead, smallest block, bounds, code, growth, and how it was verified."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo.catalogue import load


class Facts(NamedTuple):
    """What a list of allocators says of one; sizes in bytes."""

    overhead_bytes: tuple[int, ...]
    """Header and trailer of a block, or the descriptor that it has elsewhere; one a pool where these differ."""
    smallest_block_bytes: int
    """Smallest block of any pool, header included."""
    bounded: bool
    """Whether malloc and free take a time that does not grow with the number of blocks."""
    code_bytes: int | None
    """malloc, free and realloc together on a Cortex-M3 at -Os; None where not measured."""
    growth_ratio: float | None
    """Footprint at constant live bytes after 10,000,000 calls (1,000,000 where calls may walk) over that after 100,000;
    None where not measured."""
    stable: bool | None
    """Whether it grows by no more than best fit does and 5 %, and refused nothing that fits twice."""
    verified: str | None
    """"address": every object of some traces lies where the original puts it. "footprint": its smallest arenas are the
    original's. "text": made after its source, no original was run for comparison. "own": it is the original. None if it
    is no recipe of the zoo."""
    verified_against: str | None
    """The original that it was compared with, and its version; None where there was none."""
    verified_calls: tuple[str, ...]
    """The calls that were compared, as malloc, free, realloc, aligned: a realloc that is not among them as a malloc and
    a free; empty where there was no original."""

    @property
    def verification(self) -> str:
        """The two above in words, empty for None."""
        words = {
            "address": f"by address ({', '.join(self.verified_calls)}), against {self.verified_against}",
            "footprint": f"by footprint ({', '.join(self.verified_calls)}), against {self.verified_against}",
            "text": "against the text only; the original was not run",
            "own": "our own design",
        }
        return words[self.verified] if self.verified else ""


def facts(recipe: Recipe) -> Facts:
    """Return what the recipe's keys say about cost: see `Facts`."""
    canonical = recipe.canonical()
    values = policy(canonical)["pools"]
    blocks = [
        (pool.overhead_bytes(laid_out[pool.kind]), pool.smallest_bytes(laid_out[pool.kind], recipe.align))
        for pool, laid_out in zip(canonical.pools, values, strict=True)
        if pool.owns_blocks
    ]
    overheads = tuple(dict.fromkeys(overhead for overhead, _ in blocks))
    bounded = all(pool.is_bounded for pool in canonical.pools)
    smallest = min(size for _, size in blocks)
    growth, stable = _endurance().get(recipe.hash, (None, None))
    verified = _verified().get(recipe.hash, (None, None, ()))
    return Facts(overheads, smallest, bounded, _code_bytes().get(recipe.hash), growth, stable, *verified)


@cache
def _code_bytes() -> dict[str, int]:
    """Hash -> bytes of code on a Cortex-M3, as bench/zoo_code_bytes.py measured them."""
    return {hash: int(size) for _, hash, size in _rows("code_bytes.csv")}


@cache
def _endurance() -> dict[str, tuple[float, bool]]:
    """Hash -> long-run growth, and whether it stays bounded, as bench/zoo_endurance.py measured them."""
    return {hash: (float(growth), stable == "1") for _, hash, growth, stable, _ in _rows("endurance.csv")}


@cache
def _verified() -> dict[str, tuple[str, str | None, tuple[str, ...]]]:
    """Hash -> how the recipe of that name was verified, against what, and with which calls."""
    rows = _rows("verified.csv")
    return {load(name).hash: (how, against or None, tuple(calls.split())) for name, how, against, calls in rows}


def _rows(file: str) -> list[list[str]]:
    """The rows of a file of this folder, behind a line that says how it was made and one of headings."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return [line.split(",") for line in text.splitlines()[2:]]
