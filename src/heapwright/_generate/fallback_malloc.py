"""Pools in front of another allocator: which recipes can stand there, and what the functions behind them are called."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from heapwright._recipes.pools import HOW_TO_END
from heapwright._support.errors import HeapwrightError, ParameterError

if TYPE_CHECKING:
    from heapwright._generate.specialise import Specialised
    from heapwright._recipes.recipe import Recipe

ROUTED = ("malloc", "calloc", "realloc", "aligned_alloc", "free", "usable_size")
"""What `PREFIX_behind.c` defines; the same of the pools alone is called `PREFIX_pools_...`."""


def require_in_front(recipe: Recipe, heap: str) -> None:
    """Raise HeapwrightError in one line, with the heap's name, where nothing can stand behind the recipe."""
    grows = [pool for pool in recipe.pools if pool.owns_blocks and pool.shares_the_rest]
    if recipe.memory:
        problem = "lies in several memories, and only pools of one can stand in front of another heap; leave one"
    elif recipe.pools[0].moves_objects:
        problem = f"its objects move, and those of a heap behind it would stay; use no {recipe.pools[0].kind} pool"
    elif grows:
        problem = (
            f"the recipe has a {grows[0].kind} pool without bounds, so nothing would reach the heap behind it; "
            f"{HOW_TO_END}"
        )
    elif recipe.sites:
        problem = "its pools for call sites serve calls of their own, not those of a heap behind them; take one without"
    elif recipe.threads == "cached":
        problem = 'its caches of threads would be emptied by each request that goes on; give it threads = "lock"'
    else:
        return
    raise HeapwrightError(f"{heap}: {problem}")


def family(malloc: str) -> dict[str, str]:
    """The functions of an allocator that every family has, by what they do, from the name of its malloc.

    Raises ParameterError for a name from which those of the others do not follow.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", malloc, re.ASCII) or malloc.count("malloc") != 1:
        raise ParameterError(
            f"{malloc!r} does not show what realloc and free are called; valid: malloc, mi_malloc, k_malloc and such "
            "(for others give malloc, and define PREFIX_BEHIND_MALLOC, _REALLOC and _FREE)",
            parameter="behind",
        )
    return {name: malloc.replace("malloc", name) for name in ("malloc", "realloc", "free")}


def of_pools(parts: Specialised, prefix: str) -> Specialised:
    """Generated code with the functions in `ROUTED` called what they are of the pools alone."""
    own = re.compile(rf"\b{prefix}_(?=({'|'.join(ROUTED)})\b)")
    interface, functions, apart = (
        own.sub(f"{prefix}_pools_", text) for text in (parts.interface, parts.functions, parts.apart)
    )
    return replace(parts, interface=interface, functions=functions, apart=apart)
