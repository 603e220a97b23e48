"""Call sites that pools serve alone: their classes, what a recipe may say of them, and their names in C."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from heapwright._recipes.kinds.base import BasePool

Classes = tuple[tuple[str, ...], ...]
"""The names of each class of sites; that of class 1 comes first."""


def site_classes(pools: Iterable[BasePool]) -> Classes:
    """The lists of sites that pools name, each once, in the order of the pools: their classes are 1, 2, ..."""
    return tuple(dict.fromkeys(pool.sites for pool in pools if pool.sites))


def site_contradictions(pools: Sequence[BasePool], threads: str) -> Iterator[tuple[int | None, str]]:
    """Yield why pools cannot serve call sites alone: the pool's index, None for the heap; the problem in words."""
    sited = [index for index, pool in enumerate(pools) if pool.sites]
    if not sited:
        return
    if threads == "cached":
        yield None, '"threads" "cached" keeps blocks of all sites in one list; with "sites" valid: "none", "lock"'
    for index in sited:
        if not pools[index].owns_blocks or pools[index].moves_objects:
            yield (
                index,
                f'a {pools[index].kind_name} pool cannot serve "sites" alone; its blocks are not its own, or move',
            )
    last = sited[-1]
    if last >= len(sited):
        yield last, 'a pool with "sites" comes before all pools without; move it up'
    if not any(pool.owns_blocks for pool in pools[last + 1 :]):
        yield last, 'no pool serves requests of other sites; give one below it no "sites"'


def c_names(classes: Classes) -> list[tuple[str, int, str]]:
    """An enumerator for each site: its name in C without a prefix, the number of its class, the site. O(sites)."""
    results: list[tuple[str, int, str]] = []
    taken: set[str] = set()
    for number, names in enumerate(classes, 1):
        for name in names:
            base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper() or f"CLASS_{number}"
            word, tries = base, 1
            while word in taken:
                tries += 1
                word = f"{base}_{tries}"
            taken.add(word)
            results.append((word, number, name))
    return results
