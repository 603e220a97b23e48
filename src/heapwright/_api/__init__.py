"""The Python API: what every command does, in one call each; `heapwright` hands these names on.

A trace is a path or a `Trace`, packets a path or a `PacketTable`. A heap is a name as on the command line (a zoo NAME,
RECIPE.toml, STUDY:ID, lib:NAME, ...), a path, a `Recipe`, or a member of a study (`study["ID"]`, `study.pick()`).
What cannot be used raises `HeapwrightError` with one line that says what, where, and what would be valid.

A name is loaded when it is first used, so that a command loads what it needs and no more.
"""

from __future__ import annotations

import re
from pathlib import Path

_LISTED = re.compile(r"^from (\S+) import (\w+) as (\w+)$", re.MULTILINE)

_HOME = {
    public: (module, name)
    for module, name, public in _LISTED.findall(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
}
"""The module of each name of the API, and its name there."""
_HOME["copy_kinds"] = _HOME.pop("_copies")

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inner = _HOME[name]
    home = importlib.import_module(module)
    result = getattr(home, inner) if hasattr(home, inner) else importlib.import_module(f"{module}.{inner}")
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return __all__
