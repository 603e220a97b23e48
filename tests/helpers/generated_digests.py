"""The C that each zoo allocator is generated as, a digest a file: `generated_digests.py` writes the table anew.

A change of the core that firmware must not notice leaves it as it is; any other one writes it anew, and its commit says
what in the text has changed and why.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

TABLE = Path(__file__).with_name("generated_digests.txt")
CHECKED = ("tlsf", "lea-2.7.2", "victim-bins", "windows-xp", "freertos-heap4", "drr-proposed")
LEVELS = ("none", "frees", "neighbours", "full")
THREADS = ("lock", "cached")


def variants() -> dict[str, Recipe]:
    """The recipes of the zoo, some at every level of checks, and one with threads."""
    results = {name: zoo.load(name) for name in zoo.names()}
    for name in CHECKED:
        own = zoo.load(name).to_dict()
        results |= {f"{name}, checks={level}": Recipe.from_dict(own | {"checks": level}) for level in LEVELS}
    own = zoo.load("victim-bins").to_dict()
    results |= {f"victim-bins, threads={threads}": Recipe.from_dict(own | {"threads": threads}) for threads in THREADS}
    return results


def digest(text: str) -> str:
    """Of a file behind its opening comment, which repeats the recipe and names the release."""
    return hashlib.sha256(text.split("*/", 1)[1].encode()).hexdigest()


def lines_of(name: str, recipe: Recipe) -> list[str]:
    """A line a file: its digest, then the recipe and the file."""
    files = generated_files(recipe)
    return [f"{digest(files[file])}  {name}: {file}" for file in sorted(files) if "_test" not in file]


def kept() -> dict[str, list[str]]:
    """The lines of the table by recipe."""
    results: dict[str, list[str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        results.setdefault(line.split("  ", 1)[1].rpartition(": ")[0], []).append(line)
    return results


if __name__ == "__main__":
    table = [line for name, recipe in variants().items() for line in lines_of(name, recipe)]
    TABLE.write_text("".join(f"{line}\n" for line in table), encoding="utf-8")
