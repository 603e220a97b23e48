"""Sizes of heaps: the numbers that `fit` accepts, and results in the words of the system that a heap goes into."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heapwright._support.errors import ParameterError

if TYPE_CHECKING:
    from heapwright._platforms.size_options import OptionLines


def option_lines(platform: str | None, current: str | None, heap: str, reserve: int) -> OptionLines | None:
    """The lines that give `heap` its reserve in bytes on a platform, or where `current` is the heap; None: unknown."""
    from heapwright._platforms.size_options import HeapIdentity, implied, size_options

    options = size_options().get(platform or "")
    if platform is None and current is not None:
        options = implied(HeapIdentity.of_recipe(current))
    if options is None:
        return None
    chosen = HeapIdentity.of_recipe(heap)
    return options.heap_lines(chosen, reserve, in_place=bool(options.port) and not options.is_own(chosen))


def heap_of_system(name: str) -> str:
    """The reference allocator that a system has, as nuttx-mm for nuttx; any other name as it is.

    Raises ParameterError where a system has several.
    """
    from heapwright._platforms.size_options import size_options

    options = size_options().get(name)
    heaps = list(options.own) if options is not None else []
    if len(heaps) > 1:
        raise ParameterError(f"{name!r} has {' or '.join(heaps)}; give one of them", parameter="current")
    return heaps[0] if heaps else name


def check_fit_numbers(copies: int | None, step: int | None, share: float, growth: float, live: int | None) -> None:
    """Raise ParameterError for a number that `fit` does not accept."""
    if copies is not None and copies < 0:
        raise ParameterError(f"{copies}; must be 0 or more", parameter="copies")
    if step is not None and step < 1:
        raise ParameterError(f"{step}; must be 1 or more", parameter="step")
    if not 0 < share <= 1:
        raise ParameterError(f"{share}; must be above 0 and at most 1", parameter="share")
    if not 0 < growth < math.inf:
        raise ParameterError(f"{growth}; must be above 0 and finite", parameter="growth")
    if live is not None and growth != 1:
        raise ParameterError("says the same as growth; give one of them", parameter="live")
