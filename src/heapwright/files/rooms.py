"""Rooms that answer a call: `heapwright.explore` holds modules, and `heapwright.explore(...)` explores."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in heapwright/__init__.py: typing's own takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any


_find: Callable[[str], Callable[..., Any]]
"""Finds the function of a name; the package tells it, so that rooms know nothing of what stands above them."""


class _Answering(type(sys)):  # type: ignore[misc]
    """A package that bears the name of a function of the Python API, and passes calls on to it.

    So `import heapwright.replay.metrics as m` finds the package, and `heapwright.replay(trace, "tlsf")` the function;
    signature and documentation are the function's.
    """

    def _function(self) -> Callable[..., Any]:
        return _find(self.__name__.split(".")[1])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function()(*args, **kwargs)

    @property
    def __signature__(self) -> Signature:
        from inspect import signature

        return signature(self._function())

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._function().__doc__


def answers_calls(room: str) -> None:
    """Let a room, by its full name, pass calls on to the function of its name."""
    sys.modules[room].__class__ = _Answering


def answer_with(find: Callable[[str], Callable[..., Any]]) -> None:
    """Let `find` tell, by name, the functions to which rooms pass calls on."""
    global _find
    _find = find
