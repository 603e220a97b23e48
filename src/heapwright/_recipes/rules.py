"""Contradictions between pools and keys of a recipe, and what would be valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heapwright._recipes.geometry import Geometry
from heapwright._recipes.pools import KINDS, Lists, Pool, owners_in


def contradictions(pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[tuple[int, str]]:
    """Yield what no reading of the keys can make sense of: the pool's index, and the problem in words."""
    for kind in KINDS.values():
        yield from kind.crowding(pools)
    for index, pool in enumerate(pools):
        if pool.max_size is not None and pool.min_size > pool.max_size:
            yield index, f'"min_size" {pool.min_size} is above "max_size" {pool.max_size}; it would take no request'
        yield from ((index, problem) for problem in pool.contradictions(pools, geometry, index))


def memory_contradictions(
    sizes: Mapping[str, int], threads: str, pools: tuple[Pool, ...]
) -> Iterator[tuple[int | None, str]]:
    """Yield why pools cannot lie in memories of these names; an index is the pool's, None the heap's."""
    valid = f"valid: {', '.join(sizes)}" if sizes else 'no table "memory" names any'
    for index, pool in enumerate(pools):
        if pool.memory not in sizes:
            info = f'"memory" "{pool.memory}" is none of the recipe\'s' if pool.memory else '"memory" is missing'
            yield index, f"{info}; {valid}"
        elif pool.moves_objects:
            yield index, f"objects of a {pool.kind} pool move within one memory; it needs a recipe of its own"
    yield from ((None, problem) for problem in _order_contradictions(sizes, pools))
    if threads == "cached":
        yield None, '"threads" "cached" keeps blocks of one heap; with several memories valid: "none", "lock"'


def _order_contradictions(sizes: Mapping[str, int], pools: tuple[Pool, ...]) -> Iterator[str]:
    """Yield which memory has no pool, and why the order of the pools is not that of the memories."""
    used = [pool.memory for pool in pools if pool.memory in sizes]
    for name in sizes:
        if name not in used:
            yield f'"memory" "{name}" has no pool; give one memory = "{name}", or leave it out'
    order = list(sizes)
    if used != sorted(used, key=order.index):
        yield f'pools are tried in order: those of a memory are adjacent, in the order of "memory": {", ".join(sizes)}'


def counter_contradictions(reserve: int, counters: bool | str, threads: str, pools: tuple[Pool, ...]) -> Iterator[str]:
    """Yield why the heap cannot count its bytes and calls, or leave a reserve free."""
    if reserve and any(pool.moves_objects for pool in pools):
        yield '"reserve" is for objects that stay where they are; valid: 0 with pools that move them'
    if reserve and threads == "cached":
        yield '"reserve" counts under the lock, which "threads" "cached" is there to avoid; use "lock"'
    if counters and threads == "cached":
        yield 'counters are kept under the lock, which "threads" "cached" is there to avoid; use "threads" "lock"'


def guard_contradictions(threads: str, pools: tuple[Pool, ...]) -> Iterator[str]:
    """Yield why payloads cannot be guarded."""
    valid = 'valid: "none", "frees", "neighbours"'
    for moving in _moving(pools):
        yield f'"checks" "full" guards objects that stay where they are, and those of a {moving} pool move; {valid}'
    if threads == "cached":
        yield f'"checks" "full" looks at every free, and "threads" "cached" keeps most from the heap; {valid}'


def thread_contradictions(cached: tuple[int, int] | None, pools: tuple[Pool, ...], geometry: Geometry) -> Iterator[str]:
    """Yield why threads cannot share pools; with caches, `cached` is the largest request in them, and most bytes."""
    if moving := _moving(pools):
        yield f'"threads": objects of a {moving[0]} pool move while other threads use them; valid: "none"'
        return
    if cached is None:
        return
    up_to, most = cached
    if geometry.align < 4 or geometry.link_bytes < 4:
        yield '"threads" "cached" keeps links of 4 bytes in blocks; valid with "align" 4, 8 or 16 and "link_bytes" 4'
        return
    owners = owners_in(pools)
    lists = Lists(up_to=up_to)
    yield from (f'"threads" "cached": {problem}' for _, problem in contradictions((lists, *owners), geometry))
    least = 2 * owners[0].capacity(up_to, geometry) if owners else 0
    if most < least:
        yield f'"cache_bytes" {most} holds too few blocks of "cache_up_to" {up_to} bytes; valid: {least} and more'


def _moving(pools: tuple[Pool, ...]) -> list[str]:
    """Kinds of the pools whose objects move, each once."""
    return list(dict.fromkeys(pool.kind for pool in pools if pool.moves_objects))
