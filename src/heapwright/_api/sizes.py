"""Sizes in the words of the system that a heap goes into."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heapwright._platforms.size_options import OptionLines


def option_lines(current: str, heap: str, reserve: int) -> OptionLines | None:
    """The lines that give `heap` its reserve in bytes on the system that has the heap `current`; None for no system."""
    from heapwright._platforms.size_options import HeapIdentity, implied

    options = implied(HeapIdentity.of_recipe(current))
    if options is None:
        return None
    chosen = HeapIdentity.of_recipe(heap)
    return options.heap_lines(chosen, reserve, in_place=bool(options.port) and not options.is_own(chosen))
