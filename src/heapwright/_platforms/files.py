"""Writes the files of a platform: a heap with its port, and hooks that record heap calls."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._generate.emit import (
    NOTHING,
    Surroundings,
    check_prefix,
    described,
    generated_files,
    recipe_file,
    write_files,
)
from heapwright._generate.package import package_files
from heapwright._platforms.catalogue import hooks
from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._generate.emit import Banner
    from heapwright._platforms.catalogue import Platform
    from heapwright._recipes.recipe import Recipe


def platform_files(platform: Platform, prefix: str) -> dict[str, str]:
    """Return the text of each of a platform's files, by its name."""
    return {_prefixed(name, prefix): _prefixed(platform.text(name), prefix) for name in platform.files}


def write_hooks(name: str, directory: Path, prefix: str) -> list[Path]:
    """Write what records heap calls, of a platform or by a tracer of Linux, and the page of what to do with it.

    Raises HeapwrightError for a name that has no hooks.
    """
    files = hooks(name)
    check_prefix(prefix)
    return write_files({_prefixed(file, prefix): _prefixed(text, prefix) for file, text in files.items()}, directory)


def generate_for(
    platform: Platform,
    recipe: Recipe,
    directory: Path,
    prefix: str,
    about: Banner,
    watched: bool = False,
    package: bool = False,
) -> list[Path]:
    """Write heap and platform into `directory`, as `heapwright._generate.emit.generate` writes a heap alone.

    `about.notice` may say what checks cost; what the platform raises comes ahead of it. Raises HeapwrightError also
    where the platform cannot do with the recipe, or builds a heap in a way of its own, and it is to be a `package`.
    """
    if package and platform.builds:
        raise HeapwrightError(
            f"{platform.name}: {platform.builds}, and its page says how; leave the package out", parameter="package"
        )
    about = replace(about, notice=" ".join(filter(None, (raised(platform, recipe), about.notice))))
    recipe = platform.adapted(recipe)
    heap = _heap_files(platform, recipe, prefix, about, watched) | recipe_file(recipe, prefix, about)
    pages = platform_files(platform, prefix)
    if about.reserve:
        page = f"{prefix}_README.md"
        title, rest = pages[page].split("\n", 1)
        sizes = _prefixed(_in_options(platform, recipe, about.reserve_bytes), prefix)
        pages[page] = f"{title}\n\n{about.reserve}\n{sizes}{rest}"
    files = {**heap, **pages}
    packed = package_files(files, prefix, described(recipe), replaces=True) if package else {}
    return write_files(files | packed, directory)


def _in_options(platform: Platform, recipe: Recipe, reserve: int | None) -> str:
    """The memory to reserve as the platform's options, a paragraph and a block of code; "" if they are not known."""
    from heapwright._platforms.size_options import HeapIdentity, size_options

    options = size_options().get(platform.name) or size_options().get(platform.like or "")
    if reserve is None or options is None:
        return ""
    heap = HeapIdentity.of_recipe(recipe.name or recipe.hash)
    part = options.heap_lines(heap, reserve, in_place=bool(options.port))
    if part is None:
        return ""
    code = "\n".join(f"    {line}" for line in part.lines)
    return f"\n{part.file[0].upper()}{part.file[1:]}, {part.counts}:\n\n{code}\n"


def firmware_files(platform: Platform, recipe: Recipe, prefix: str) -> dict[str, str]:
    """Heap and port for a recipe of `Platform.adapted`, by their names: what `generate_for` would write."""
    return _heap_files(platform, recipe, prefix, NOTHING, False) | platform_files(platform, prefix)


def _heap_files(platform: Platform, recipe: Recipe, prefix: str, about: Banner, watched: bool) -> dict[str, str]:
    functions = platform.functions + (platform.cache_functions if recipe.threads == "cached" else ())
    into = Surroundings(functions, platform.traps, platform.entropy)
    return generated_files(recipe, prefix, about, into, watched)


def raised(platform: Platform, recipe: Recipe) -> str:
    """A sentence on the alignment that the platform raises; empty where it does not."""
    if recipe.align >= platform.align:
        return ""
    return f"Objects are aligned to {platform.align} bytes, raised from {recipe.align}: {platform.name} needs it."


def _prefixed(text: str, prefix: str) -> str:
    """The text with the names of another heap: app_, APP_ and their kin in words of their own."""
    text = re.sub(r"(?<![A-Za-z0-9_])app(?=_)", prefix, text)
    return re.sub(r"(?<![A-Za-z0-9_])APP(?=_)", prefix.upper(), text)
