"""C for a program, from a recipe.

Names are loaded when they are first used: the build of the native module reads the core with `known`, before anything
that the package depends on is there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from heapwright._generate.emit import generate, generated_files

__all__ = ["generate", "generated_files"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from heapwright._generate import emit

    return getattr(emit, name)
