"""A recipe's generated code, as a heap that somebody else brought: it tells where each object of a trace lies."""

from __future__ import annotations

from pathlib import Path

from heapwright.generate import generate
from heapwright.generate.emit import replayed_secret
from heapwright.heaps import heaps
from heapwright.heaps.foreign.heap import ForeignHeap
from heapwright.recipes.recipe import Recipe

_ADAPTER = """
style = "arena"
sources = ["row_heap.c"]
align = {align}
init = "heap = row_init(memory, bytes)"
malloc = "row_malloc(heap, size)"
free = "row_free(heap, pointer)"
realloc = "row_realloc(heap, pointer, size)"
defines = {{ ROW_HEAP_ALIGN_UNCHECKED = 1 }}
flags = ["-D{secret}"]
"""


def foreign(name: str) -> ForeignHeap:
    """A heap of that name, or adapter, built for 32 bits."""
    heap = heaps.resolve(name, 32)
    assert isinstance(heap, ForeignHeap)
    return heap


def as_foreign(recipe: Recipe, folder: Path) -> ForeignHeap:
    """The C of a recipe, generated into that folder; links and guards are masked as a replay masks them."""
    generate(recipe, folder, "row")
    adapter = folder / "row.toml"
    adapter.write_text(_ADAPTER.format(align=recipe.align, secret=replayed_secret("row")), encoding="utf-8")
    return foreign(str(adapter))
