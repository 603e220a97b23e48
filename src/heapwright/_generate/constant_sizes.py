"""Calls whose sizes are constant, compiled where they are made: no class is computed, no function called on a hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heapwright._recipes.pools import ALIGNING, lists_in
from heapwright._support.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heapwright._recipes.pools import Lists, Pool
    from heapwright._recipes.recipe import Recipe


def constant_sizes(recipe: Recipe, values: Mapping[str, Any]) -> dict[str, object]:
    """What PREFIX_heap_inline.h says of a recipe's quick lists, from its policy; addresses from the arena's base."""
    at = values["sited"]
    pool = values["pools"][at]
    quick, below = (values["pools"][index][recipe.pools[index].kind] for index in (at, at + 1))
    header, unit, least = quick["block_header"], 1 << quick["block_unit_shift"], quick["block_least"]
    lists = [
        {"from": max(1, low, pool["min_size"]), "to": min(high, pool["max_size"]), "block": high + header}
        for low, high in zip(quick["least"], quick["sizes"], strict=True)
    ]
    return {
        "lists": [
            item | {"at": quick["heads_at"] + 4 * number}
            for number, item in enumerate(lists)
            if item["from"] <= item["to"]
        ],
        "from": max(1, pool["min_size"]),
        "to": min(quick["largest"], pool["max_size"]),
        "header": header,
        "unit": unit,
        "least": least,
        "heads": quick["heads_at"],
        "flags": (1 << below["flag_bits"]) - 1,
    }


def require_plain_lists(recipe: Recipe) -> None:
    """Raise ParameterError in one line for a recipe whose lists do more than to hold blocks."""
    problem = _problem(recipe.canonical())
    if problem:
        raise ParameterError(f"{recipe.name or recipe.hash}: {problem}; leave inline out", parameter="inline")


def _problem(recipe: Recipe) -> str | None:
    """Why a hit of the recipe's lists is more than to take a block off a list; None where it is not."""
    if recipe.memory:
        return "lies in several memories"
    if recipe.threads != "none":
        return f'"threads" "{recipe.threads}" needs a call'
    if recipe.checks != "none" or recipe.counts:
        return "checks and counters need a call"
    lists = lists_in(recipe.pools)
    unsited = [pool for pool in recipe.pools if not pool.sites]
    if len(lists) != 1 or len(unsited) != 2 or not unsited[1].aligns:
        return f"has not one pool of lists above one {ALIGNING} pool"
    if not _has_whole_words(recipe, unsited[1]):
        return "links or headers are no whole words"
    return _problem_of_lists(lists[0])


def _has_whole_words(recipe: Recipe, pool: Pool) -> bool:
    """Whether links, headers and blocks of a pool lie at multiples of four bytes."""
    return (
        recipe.link_bytes == 4
        and recipe.align >= 4
        and getattr(pool, "header", 0) % 4 == 0
        and getattr(pool, "unit", 0) >= recipe.align
    )


def _problem_of_lists(quick: Lists) -> str | None:
    """Why a hit of these lists is more than to take a block off a list; None where it is not."""
    if quick.limit_blocks is not None or quick.keep == "apart":
        return 'its lists keep an account of their blocks ("limit_blocks", "keep")'
    if quick.lists_per_octave:
        return 'its lists hold blocks of several requests\' sizes ("lists_per_octave")'
    return None
