"""Heaps that are generated once for all tests that read or compile them, and the functions that each has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import object_cache

from heapwright._generate.emit import ALLOCATING, CHECKING, COUNTING, FLUSHING, LOOKING, MOVING, RESERVING
from heapwright._generate.wording import flushes
from heapwright._recipes.pools import Compact
from heapwright._recipes.recipe import Recipe


def entries(recipe: Recipe) -> tuple[str, ...]:
    """The functions of a recipe's heap, by the core's names, in the order of the header."""
    statistics, usage, check = LOOKING[:-2], LOOKING[-2:-1], LOOKING[-1:]
    flushing = FLUSHING if flushes(recipe) else ()
    counting = (COUNTING if recipe.counts else ()) + (RESERVING if recipe.reserve else ())
    checking = () if recipe.checks == "none" else CHECKING
    serving = MOVING if isinstance(recipe.pools[0], Compact) else ALLOCATING
    return serving + statistics + flushing + counting + usage + checking + check


def generated_once(base: Path) -> Callable[[Recipe], Path]:
    """The folder of a recipe's generated files, which tests only read; `base` is that of the run."""
    return cache(lambda recipe: object_cache.generated(recipe, base / "app_heap.c"))
