"""Where the control data of a heap lies: a cursor that goes up through the arena, past lists of fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from heapwright._native import lib
from heapwright._recipes.geometry import Geometry, log2, round_up

CHECKS = {
    "none": lib.HW_CHECKS_NONE,
    "frees": lib.HW_CHECKS_FREES,
    "neighbours": lib.HW_CHECKS_NEIGHBOURS,
    "full": lib.HW_CHECKS_FULL,
}
ORDERS = {"lifo": lib.HW_LIFO, "fifo": lib.HW_FIFO, "address": lib.HW_ADDRESS, "size": lib.HW_SIZE}
FITS = {
    "first": lib.HW_FIRST,
    "next": lib.HW_NEXT,
    "best": lib.HW_BEST,
    "worst": lib.HW_WORST,
    "exact": lib.HW_EXACT,
}
COALESCE = {
    "never": lib.HW_NEVER,
    "immediate": lib.HW_IMMEDIATE,
    "forward": lib.HW_FORWARD,
    "lazy": lib.HW_LAZY,
    "deferred": lib.HW_DEFERRED,
    "sweep": lib.HW_SWEEP,
}


class Field(NamedTuple):
    """Control data of one name in the arena.

    Attributes:
        name: of the policy's field that says where it lies.
        size: bytes.
        align: what its address is a multiple of.
        present: whether the recipe has it.
        absent: what the policy says where it has not: 0, or where the heap keeps it for all its pools.
    """

    name: str
    size: int
    align: int = 4
    present: bool = True
    absent: int = 0


class Placed(NamedTuple):
    """Control data that has its place in the arena.

    Attributes:
        name: of the policy's field that says where it lies; empty for a word that no field names.
        address: where it begins.
        size: bytes.
        meaning: what it is, if no field says so.
    """

    name: str
    address: int
    size: int
    meaning: str = ""


class Layout:
    """The arena of a recipe up to the cursor, from which its pools compute their fields."""

    def __init__(self, geometry: Geometry, checks: str) -> None:
        """Begin at the arena's base; `checks` is the recipe's level."""
        self.geometry, self.checks = geometry, checks
        self.align, self.link_bytes = geometry.align, geometry.link_bytes
        self.heap: Mapping[str, int] = {}
        """Where the heap's own fields lie, which pools that share the rest of the arena use."""
        self.cursor = 0
        self.placed: list[Placed] = []
        """What lies ahead of the cursor, in the order in which it was placed."""

    def take(self, size: int, align: int, name: str = "", meaning: str = "") -> int:
        """Skip `size` bytes, aligned; returns where they begin. `placed` keeps control data by its name or meaning."""
        at = round_up(self.cursor, align)
        self.cursor = at + size
        if size and (name or meaning):
            self.placed.append(Placed(name, at, size, meaning))
        return at

    def place(self, fields: Iterable[Field]) -> dict[str, int]:
        """Skip fields, one behind the other in the order of the list; returns the address of each by its name."""
        return {
            field.name: self.take(field.size, field.align, field.name) if field.present else field.absent
            for field in fields
        }

    def align_payload(self, header: int, unit: int) -> int:
        """Move the cursor to the next address at which a block starts so that its payload is a multiple of `unit`.

        With all sizes multiples of the unit, so are all payloads: what aligned_alloc cuts off is a block, too.
        """
        self.cursor = round_up(self.cursor + header, unit) - header
        return self.cursor

    def shared_bounds(self, shared: bool) -> tuple[Field, Field]:
        """The high-water mark and the end of what a pool takes from; those of the heap where it shares the rest."""
        return (
            Field("high_at", 4, present=not shared, absent=self.heap["shared_high_at"]),
            Field("limit_at", 4, present=not shared, absent=self.heap["shared_limit_at"]),
        )

    def links(self) -> dict[str, Any]:
        """How links are stored."""
        width = self.link_bytes
        return {
            "field": {"bytes": width, "natural": int(self.align % width == 0)},
            "shift": log2(self.align) if width == 2 else 0,
        }

    def word(self, header: int, width: int | None = None) -> dict[str, int]:
        """The field at the start of a block's header: up to 4 bytes, natural where every header starts aligned."""
        width = width or max(1, min(header, 4))
        natural = width in (1, 2, 4) and self.align % width == 0 and header % width == 0
        return {"bytes": width, "natural": int(natural)}
