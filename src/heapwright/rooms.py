"""Rooms that answer a call: `heapwright.explore` holds modules, and `heapwright.explore(...)` explores."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # as in heapwright/__init__.py: typing's own takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any


class _Answering(type(sys)):  # type: ignore[misc]
    """A package that bears the name of a function of the Python API, and passes calls on to it.

    So `import heapwright.replay.metrics as m` finds the package, and `heapwright.replay(trace, "tlsf")` the function;
    signature and documentation are the function's.
    """

    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(importlib.import_module("heapwright.api"), self.__name__.split(".")[1])
        return function

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
    """Let a room, by its full name, pass calls on to the function of its name in `heapwright.api`."""
    sys.modules[room].__class__ = _Answering
