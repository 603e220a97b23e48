"""The zoo: allocators with a name and a source, each a TOML recipe in this folder."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import resources

from heapwright.errors import HeapwrightError
from heapwright.recipes import Recipe


@cache
def _files() -> dict[str, str]:
    """Name of each recipe -> its text, in alphabetical order of the names."""
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(".toml")]
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(files, key=lambda file: file.name)
    }


def names() -> list[str]:
    """Return the names of all recipes, in alphabetical order."""
    return list(_files())


def text(name: str) -> str:
    """Return the TOML file of a recipe, with its prose and comments. Raises HeapwrightError for an unknown name."""
    files = _files()
    if name not in files:
        close = get_close_matches(name, files, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(close)}?" if close else f"valid: {', '.join(files)}"
        raise HeapwrightError(f"{name}: the zoo has no such allocator; {guess} (or give a RECIPE.toml or STUDY:ID)")
    return files[name]


@cache
def load(name: str) -> Recipe:
    """Return the recipe of that name. Raises HeapwrightError for an unknown name."""
    return Recipe.parse(text(name), f"zoo/{name}.toml")


def recipes() -> list[Recipe]:
    """Return all recipes, in alphabetical order of their names."""
    return [load(name) for name in names()]
