"""Geometry: what all blocks of a heap share; how large each is, its pool answers."""

from __future__ import annotations

from typing import NamedTuple

from heapwright._recipes.limits import MAX_REACH

GUARD_BYTES = 4
"""Bytes behind each payload at the level of checks that guards payloads."""


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is at least `value`."""
    return -(-value // unit) * unit


def power_above(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << (value - 1).bit_length()


def log2(value: int) -> int:
    """The exponent of the largest power of two that is at most `value`."""
    return value.bit_length() - 1


class Geometry(NamedTuple):
    """What all blocks of a heap share; all in bytes.

    Attributes:
        align: alignment of payloads.
        link_bytes: width of a link in metadata; 2 counts in units of `align`.
        guard: bytes behind each payload that reveal an overflow.
    """

    align: int = 8
    link_bytes: int = 4
    guard: int = 0

    @property
    def link_reach(self) -> int:
        """Largest arena that links can address."""
        return 0xFFFF * self.align if self.link_bytes == 2 else MAX_REACH
