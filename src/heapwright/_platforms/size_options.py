"""The options by which each system is given the bytes of its heap, and its fixed blocks, in its own words."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from heapwright._recipes.geometry import round_up
from heapwright._support.errors import HeapwrightError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class OptionLines:
    """Lines for one file of a program.

    Attributes:
        file: the file, or the place, that they go into.
        counts: what they are for, and what their numbers include, in words.
        lines: the lines.
        includes: what the number of a heap's line includes; "" of other lines.
    """

    file: str
    counts: str
    lines: tuple[str, ...]
    includes: str = ""


@dataclass(frozen=True)
class HeapIdentity:
    """An allocator as this module knows it: the name of a reference allocator, or of the adapter of its original.

    Attributes:
        label: what tables call it.
        name: its name without an alignment, as `tlsf`.
        is_original: whether it is the system's own source, through an adapter.
    """

    label: str
    name: str
    is_original: bool = False

    @classmethod
    def of_recipe(cls, label: str) -> HeapIdentity:
        """The name of a recipe, as `tlsf` or `tlsf@4`."""
        return cls(label, label.partition("@")[0])


@dataclass(frozen=True)
class SizeOptions:
    """The options of a system; the head of size_options.toml describes each attribute."""

    name: str
    title: str
    file: str
    sources: tuple[str, ...]
    heap: tuple[str, ...] = ()
    counts: str = ""
    own: Mapping[str, int] = field(default_factory=dict)
    originals: Mapping[str, int] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    model: str = ""
    port: tuple[str, ...] = ()
    port_counts: str = ""
    pool: tuple[str, ...] = ()
    pool_counts: str = ""
    unit: int = 8
    most: int | None = None
    recorders: tuple[str, ...] = ()

    @property
    def own_names(self) -> str:
        """The names by which `--heap` is the system's own heap, in words."""
        adapters = [f"{name}=SOURCES" for name in self.originals if name not in self.own]
        return " or ".join([*self.own, *adapters])

    def is_own(self, heap: HeapIdentity) -> bool:
        """Whether an allocator is the one that the system has now."""
        return heap.name in (self.originals if heap.is_original else self.own)

    def heap_lines(self, heap: HeapIdentity, arena: int, in_place: bool = False) -> OptionLines | None:
        """The lines that give an allocator an arena; None if the system has none of these.

        Args:
            heap: the allocator.
            arena: bytes, as `fit` gives them.
            in_place: whether it is generated code in place of the system's heap.
        """
        lines, counts = (self.port, self.port_counts) if in_place else (self.heap, self.counts)
        if not lines:
            return None
        more = (self.originals if heap.is_original else self.own).get(heap.name, 0)
        size = round_up(max(arena - more, self.unit), self.unit)
        instead = (
            f" in place of {self.title}'s own heap (--heap {self.own_names})" if in_place and self.own_names else ""
        )
        above = self.most is not None and size > self.most
        limit = f"; {self.title} accepts {self.most:,} bytes at most" if above else ""
        includes = f"it counts {counts}{limit}"
        text = f"for {heap.label}{instead}; {includes}"
        return OptionLines(self.file, text, tuple(line.format(bytes=size) for line in lines), includes)

    def pool_lines(self, size: int, count: int) -> tuple[str, ...]:
        """The lines that make `count` fixed blocks for objects of `size` bytes."""
        names = {"size": size, "block": round_up(size, self.unit), "count": count, "unit": self.unit}
        return tuple(line.format(**names) for line in self.pool)


@cache
def size_options() -> dict[str, SizeOptions]:
    """The options of every system, by its name, in the order of the table."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {name: _read(name, keys) for name, keys in table.items()}


def options_of(name: str) -> SizeOptions:
    """The options of a system. Raises HeapwrightError for an unknown one."""
    if result := size_options().get(name):
        return result
    raise HeapwrightError(
        f"{name}: no system whose options are known; {did_you_mean(name, size_options())}", parameter="platform"
    )


def implied(heap: HeapIdentity, recorder: str = "") -> SizeOptions | None:
    """The system that a log or an allocator belongs to; None if none does, or several do.

    Args:
        heap: the allocator.
        recorder: the format of the log that a trace was imported from, "" if it has none.
    """
    found = [options for options in size_options().values() if recorder in options.recorders]
    found = found or [options for options in size_options().values() if options.is_own(heap) and heap.name not in options.shared]
    return found[0] if len(found) == 1 else None


def _read(name: str, keys: Mapping[str, Any]) -> SizeOptions:
    lists = {key: tuple(value) for key, value in keys.items() if isinstance(value, list)}
    return SizeOptions(**{"name": name, **keys, **lists})
