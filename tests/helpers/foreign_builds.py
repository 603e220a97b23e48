"""A recipe's generated code, as a heap from elsewhere, and where objects lie in its replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tool_requirements import programs_of_32_bits

from heapwright._generate import generate
from heapwright._generate.emit import replayed_secret
from heapwright._heaps import heaps
from heapwright._heaps.foreign.heap import ForeignHeap
from heapwright._recipes.recipe import Recipe
from heapwright._replay.snapshots import filming
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE

_ADAPTER = """
style = "arena"
sources = ["row_heap.c"]
align = {align}
init = "heap = row_init(memory, bytes)"
malloc = "row_malloc(heap, size)"
free = "row_free(heap, pointer)"
realloc = "row_realloc(heap, pointer, size)"
aligned_alloc = "row_aligned_alloc(heap, align, size)"
defines = {{ ROW_HEAP_ALIGN_UNCHECKED = 1 }}
flags = ["-O0", "-D{secret}"]
"""


def foreign(name: str) -> ForeignHeap:
    """A heap of that name, or adapter, built for 32 bits, where that can be."""
    programs_of_32_bits()
    heap = heaps.resolve(name, 32)
    assert isinstance(heap, ForeignHeap)
    return heap


def as_foreign(recipe: Recipe, folder: Path) -> ForeignHeap:
    """The C of a recipe, generated into that folder; links and guards are masked as a replay masks them."""
    generate(recipe, folder, "row")
    adapter = folder / "row.toml"
    adapter.write_text(_ADAPTER.format(align=recipe.align, secret=replayed_secret("row")), encoding="utf-8")
    return foreign(str(adapter))


def replayed(trace: Trace, heap: Recipe, arena: int) -> NDArray[np.int64]:
    """Where each call's object lies in the replay, as `addresses` prints it for generated code."""
    result = np.full(len(trace), -1, np.int64)
    with filming(trace, heap, arena) as film:
        for call in np.flatnonzero(trace.op != FREE).tolist():
            film.go_on(call)
            alive = film.alive()
            mine = alive[alive["slot"] == trace.calls.slot[call]]
            result[call] = int(mine["at"][0]) if len(mine) else -1
    return result
