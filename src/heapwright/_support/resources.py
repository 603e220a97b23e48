"""TOML files that ship with the package, by name: the zoo's recipes and the ready-made adapters."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from heapwright._support.errors import HeapwrightError, did_you_mean

_ROOT = Path(__file__).parents[1]


@cache
def toml_files(package: str) -> dict[str, Path]:
    """Name of each TOML file in a package -> where it lies, in alphabetical order of the names."""
    return {path.stem: path for path in sorted(_ROOT.joinpath(*package.split(".")[1:]).glob("*.toml"))}


def toml_text(package: str, name: str, what: str, valid: str, instead: str) -> str:
    """Return the text of one of them.

    Raises HeapwrightError for an unknown name: "NAME: `what`; did you mean ...?", or "`valid`: " and all names, then
    "(or give `instead`)".
    """
    files = toml_files(package)
    if name not in files:
        raise HeapwrightError(f"{name}: {what}; {did_you_mean(name, files, valid)} (or give {instead})")
    return files[name].read_text(encoding="utf-8")
