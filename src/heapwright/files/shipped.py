"""TOML files that ship with the package, by name: the zoo's recipes and the ready-made adapters."""

from __future__ import annotations

from functools import cache
from importlib import resources

from heapwright.files.errors import HeapwrightError, did_you_mean


@cache
def toml_files(package: str) -> dict[str, str]:
    """Name of each TOML file in a package -> its text, in alphabetical order of the names."""
    files = [file for file in resources.files(package).iterdir() if file.name.endswith(".toml")]
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(files, key=lambda file: file.name)
    }


def toml_text(package: str, name: str, what: str, valid: str, instead: str) -> str:
    """Return the text of one of them.

    Raises HeapwrightError for an unknown name: "NAME: `what`; did you mean ...?", or "`valid`: " and all names, then
    "(or give `instead`)".
    """
    files = toml_files(package)
    if name not in files:
        raise HeapwrightError(f"{name}: {what}; {did_you_mean(name, files, valid)} (or give {instead})")
    return files[name]
