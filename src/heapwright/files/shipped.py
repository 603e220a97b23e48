"""TOML files that ship with the package, by name: the zoo's recipes and the ready-made adapters."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import resources

from heapwright.errors import HeapwrightError


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
        close = get_close_matches(name, files, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(close)}?" if close else f"{valid}: {', '.join(files)}"
        raise HeapwrightError(f"{name}: {what}; {guess} (or give {instead})")
    return files[name]
