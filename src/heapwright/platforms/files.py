"""Writes what goes into a platform, a heap with its glue, and what makes it tell its heap calls: hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.errors import HeapwrightError
from heapwright.generate.emit import check_prefix, generated_files, write_files
from heapwright.platforms.catalogue import platforms

if TYPE_CHECKING:
    from heapwright.platforms.catalogue import Platform
    from heapwright.recipes.recipe import Recipe
    from heapwright.replay.metrics import Value


def platform_files(platform: Platform, prefix: str) -> dict[str, str]:
    """Return the text of each of a platform's files, by its name."""
    return {_prefixed(name, prefix): _prefixed(platform.text(name), prefix) for name in platform.files}


def write_hooks(platform: Platform, directory: Path, prefix: str = "app") -> list[Path]:
    """Write the C that records the calls of the heap that a platform has now, and the page of what to do with it.

    Raises HeapwrightError for a platform that has no hooks.
    """
    if not platform.hooks:
        having = ", ".join(name for name, one in platforms().items() if one.hooks)
        raise HeapwrightError(f"{platform.name}: no hooks record its heap; they do for {having}", parameter="platform")
    check_prefix(prefix)
    texts = {_prefixed(name, prefix): _prefixed(text, prefix) for name, text in platform.hooks.items()}
    return write_files(texts, directory)


def generate_for(
    platform: Platform,
    recipe: Recipe,
    directory: Path,
    prefix: str = "app",
    tuned_for: str | None = None,
    metrics: Mapping[str, Value] | None = None,
) -> list[Path]:
    """Write heap and platform into `directory`, as `heapwright.generate.emit.generate` writes a heap alone.

    Where the platform has a lock, that is the lock of the recipe; where it tells what a heap counts, the recipe gets
    counters. Raises HeapwrightError also where the platform cannot
    do with the recipe.
    """
    platform.require(recipe, recipe.name or recipe.hash)
    if platform.lock:
        recipe = recipe.model_copy(update={"threads": "none"})
    if platform.counters:
        recipe = recipe.model_copy(update={"counters": True})
    heap = generated_files(recipe, prefix, tuned_for, metrics, platform.functions, platform.traps)
    return write_files({**heap, **platform_files(platform, prefix)}, directory)


def _prefixed(text: str, prefix: str) -> str:
    """The text with the names of another heap: app_, APP_ and their kin in words of their own."""
    text = re.sub(r"(?<![A-Za-z0-9_])app(?=_)", prefix, text)
    return re.sub(r"(?<![A-Za-z0-9_])APP(?=_)", prefix.upper(), text)
