"""Names of foreign heaps: libraries, shared objects, C files and adapters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from heapwright._generate.fallback_malloc import require_in_front
from heapwright._heaps.foreign import adapter as adapters
from heapwright._heaps.foreign.adapter import Adapter, WordSize
from heapwright._heaps.foreign.heap import ForeignHeap
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import ForeignHeapError, HeapwrightError

OWN_ALIGN = 8
"""Alignment that is verified of a C file without an adapter: malloc's on 32-bit ABIs."""
_OWN_FUNCTION = re.compile(r"^[\w\s*]*?\bheap_(init|malloc|free|calloc|realloc|aligned_alloc)\s*\([^;{]*\)\s*\{", re.M)
_SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")


def behind(front: Recipe, behind: ForeignHeap, text: str) -> ForeignHeap:
    """A recipe in front of a foreign heap. Raises HeapwrightError where either cannot stand so."""
    if behind.adapter.handle:
        raise HeapwrightError(f"{text}: objects of the heap behind the recipe move, and those of its pools would stay")
    require_in_front(front, text)
    return replace(behind, front=front, label=text)


def library(name: str, text: str, word_size: WordSize | None) -> ForeignHeap:
    """The ready-made heap that needs no sources. Raises HeapwrightError where there is none of that name."""
    if name not in adapters.libraries():
        raise HeapwrightError(f"{text}: no such library; known: {', '.join(adapters.libraries())} (or give a PATH.so)")
    adapter = adapters.ready_made(name)
    return ForeignHeap(adapter, Path(), text, (), adapter.library, word_size or adapter.word_size)


def adapter_beside(path: Path) -> Path:
    """Where the adapter of the same stem would be."""
    stem = _SHARED_OBJECT.sub("", path.name) if _SHARED_OBJECT.search(path.name) else path.stem
    return path.with_name(f"{stem}.toml")


def beside(path: Path) -> Adapter:
    """The adapter of the same stem; a shared object may do without one."""
    beside = adapter_beside(path)
    if beside.is_file():
        return Adapter.load(beside)
    if path.suffix == ".c" and (own := _of_names(path)):
        return own
    if path.suffix == ".c":
        fitting = [name for name in adapters.names() if _names_file(adapters.ready_made(name), path.name)]
        known = f"a ready-made one, as in {fitting[0]}={path}" if fitting else "one of the ready-made ones"
        needed = "must define heap_init, heap_malloc and heap_free, or have an adapter that says how to call it"
        raise HeapwrightError(f"{path}: {needed}: {beside.name} next to it, or {known}")
    return Adapter(style="libc", realloc="realloc", align=1)


def _of_names(path: Path) -> Adapter | None:
    """The adapter of a C file that defines heap_init, heap_malloc and heap_free, as `measure` takes it; else None."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    defined = set(_OWN_FUNCTION.findall(text))
    if not {"init", "malloc", "free"} <= defined:
        return None
    given = {key: f"heap_{key}" if key in defined else "" for key in ("realloc", "calloc", "aligned_alloc")}
    return Adapter(
        style="arena",
        sources=(path.name,),
        align=OWN_ALIGN,
        init="heap = heap_init(memory, bytes) ? memory : NULL",
        malloc="heap_malloc",
        free="heap_free",
        realloc=given["realloc"],
        calloc=given["calloc"],
        aligned_alloc=given["aligned_alloc"],
    )


def _names_file(adapter: Adapter, name: str) -> bool:
    return any(Path(source).name == name for source in adapter.sources)


def at_place(adapter: Adapter, place: Path, label: str, word_size: WordSize | None) -> ForeignHeap:
    """The heap of an adapter whose paths are relative to `place`, or which is that file.

    Raises HeapwrightError where nothing is there, ForeignHeapError where what is there is not what the adapter says.
    """
    place = place.expanduser()
    if not place.exists():
        raise HeapwrightError(
            f"{label}: {place} is missing; it would be the allocator's file or the folder of its sources"
        )
    place = place.resolve()
    root = place if place.is_dir() else place.parent
    if _SHARED_OBJECT.search(place.name):
        return ForeignHeap(adapter, root, label, (), str(place), _elf_word_size(place))
    library = _library_path(adapter, root)
    if library:
        return ForeignHeap(adapter, root, label, (), library, _elf_word_size(Path(library)))
    sources = [root / source for source in adapter.sources]
    if place.is_file():
        sources = [place, *sources[1:]]
    for source in sources:
        if not source.is_file():
            raise ForeignHeapError(
                f"{label}: {source} is missing; {adapter.source or 'the adapter lists it as a source'}"
            )
    return ForeignHeap(adapter, root, label, tuple(sources), adapter.library, word_size or adapter.word_size)


def _library_path(adapter: Adapter, root: Path) -> str:
    """The adapter's library where it is a path; empty for a soname, which the loader finds."""
    if "/" not in adapter.library:
        return ""
    path = root / adapter.library
    if not path.is_file():
        raise ForeignHeapError(f"{path}: the adapter's library is missing")
    return str(path)


def _elf_word_size(path: Path) -> WordSize:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            return 64 if ELFFile(file).elfclass == 64 else 32
    except ELFError:
        raise ForeignHeapError(f"{path}: not a shared object of this system (no ELF file, or a damaged one)") from None
