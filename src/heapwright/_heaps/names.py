"""What a heap's name means, and the recipe of a name; nothing here replays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

from heapwright._recipes.recipe import ALIGNMENTS, Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import is_address

Kind = Literal["zoo", "recipe", "study", "library", "file", "adapter", "sources", "front"]

_BEHIND = ("library", "file", "adapter", "sources")
_C_LIBRARY = {"malloc": "lib:glibc"}
_FILE = re.compile(r"\.c$|\.so(\.\d+)*$")


class HeapName(NamedTuple):
    """A heap's name, taken apart.

    `kind` says what the parts are: a zoo NAME; a RECIPE.toml; STUDY and its ID; the NAME of lib:NAME; a C file or
    shared object; an ADAPTER.toml; the path of the sources and the ADAPTER of ADAPTER=PATH; or RECIPE and FOREIGN of
    RECIPE+FOREIGN.
    """

    kind: Kind
    first: str
    second: str = ""

    @property
    def is_recipe(self) -> bool:
        """Whether it names a recipe, rather than a third-party allocator."""
        return self.kind in ("zoo", "recipe", "study")


def parse(text: str) -> HeapName:
    """Take a heap's name apart; whether anything has that name shows only when it is resolved."""
    if text.startswith("lib:"):
        return HeapName("library", text.removeprefix("lib:"))
    if not Path(text).exists() and (combined := _combined(text)):
        return combined
    if _FILE.search(text):
        return HeapName("file", text)
    if text.endswith(".toml"):
        from heapwright._heaps.foreign.adapter import is_adapter

        return HeapName("adapter" if is_adapter(Path(text)) else "recipe", text)
    study, colon, identifier = text.rpartition(":")
    if colon and not (is_address(text) and "/" in identifier):  # that of the scheme, or before a port
        return HeapName("study", study, identifier)
    folded = text.lower()
    return HeapName("zoo", folded if folded.partition("@")[0] in catalogue.names() else text)


def _combined(text: str) -> HeapName | None:
    """ADAPTER=PATH or RECIPE+FOREIGN; None if the text is neither."""
    adapter, equals, place = text.partition("=")
    if equals and ("+" not in adapter or Path(adapter).exists()):
        return HeapName("sources", place, adapter)
    for plus in re.finditer(r"\+", text):
        front, behind = text[: plus.start()], _C_LIBRARY.get(text[plus.end() :], text[plus.end() :])
        if _can_stand_in_front(parse(front)) and parse(behind).kind in _BEHIND:
            return HeapName("front", front, behind)
    return None


def _can_stand_in_front(name: HeapName) -> bool:
    return name.is_recipe and not (name.kind == "zoo" and "/" in name.first)


def is_heap(text: str) -> bool:
    """Whether the text reads as the name of a heap, and not as that of a file which is none."""
    name = parse(text)
    if name.kind == "zoo":
        return name.first.partition("@")[0] in catalogue.names() and not Path(text).exists()
    return name.kind in ("recipe", "adapter", "file") or not Path(text).exists()


def picked_up(text: str) -> list[tuple[Path, Path]]:
    """The adapters that a file's name implies, and the files in whose folders they lie."""
    name = parse(text)
    if name.kind == "front":
        return picked_up(name.second)
    if name.kind != "file":
        return []
    from heapwright._heaps.foreign import names as foreign_names

    adapter = foreign_names.adapter_beside(Path(name.first))
    return [(adapter, Path(name.first))] if adapter.is_file() else []


def resolve_recipe(text: str) -> Recipe:
    """Find the recipe of that name: a zoo NAME, NAME@ALIGN for it at another alignment, a RECIPE.toml, or STUDY:ID.

    Raises HeapwrightError where no recipe has that name, or cannot have that alignment.
    """
    name = parse(text)
    if name.kind == "zoo":
        zoo, at, align = name.first.partition("@")
        if zoo not in catalogue.names() and Path(text).is_file():
            raise HeapwrightError(f"{text}: a file, and no heap; of a study take one, as {text}:balanced or {text}:ID")
        if at and align not in map(str, ALIGNMENTS):
            raise HeapwrightError(f"{text}: {align!r} is no alignment; valid: {', '.join(map(str, ALIGNMENTS))}")
        return catalogue.load(zoo).at_alignment(int(align)) if at else catalogue.load(zoo)
    if name.kind == "recipe":
        return Recipe.load(text)
    if name.kind == "study":
        from heapwright._studies.analysis import Analysis

        with Analysis.open(name.first) as study:
            return study.recipe(name.second)
    raise HeapwrightError(f"{text}: no recipe but a foreign heap; replay and fit take those, this does not")
