"""The most that a heap was used for, in a replay or on a device: generated heaps write it to a block of 116 bytes.

`struct PREFIX_field` of generated headers is the layout of the block: no padding, in the device's byte order. It comes
as raw bytes, or as hexadecimal digits in the lines of a log or of a debugger.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from struct import Struct
from typing import TYPE_CHECKING

from heapwright._native import ffi, lib
from heapwright._recipes.policy import CLASSES, policy_struct
from heapwright._replay.engine import arena_bytes_of, explain, memory_of

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

COUNTS = ("nothing", "bytes", "classes")
"""What a device counts, by the number in its block."""

BLOCK_BYTES = 116

_LAYOUT = f"4sBBH10I{CLASSES}H{CLASSES}HI"
_MAGIC = b"HWF1"
_SMALLEST = 16
"""Bytes, exclusive: where the first class of blocks ends; each other one ends at twice the end of the one before."""

_ADDRESS = re.compile(r"^\s*(?:0x)?[0-9A-Fa-f]+(?:\s*<[^>]*>)?:\s", re.MULTILINE)
"""What a debugger writes ahead of the bytes of a line."""
_BETWEEN = r"(?:[\s,:]|\\x|0x)*"
_FIRST = {order: _BETWEEN.join(f"{byte:02x}" for byte in _MAGIC[::step]) for order, step in (("<", 1), (">", -1))}
_DIGITS = re.compile(rf"{_BETWEEN}([0-9A-Fa-f]{{2}})")


@dataclass(frozen=True)
class Usage:
    """The most that a heap was used for.

    Attributes:
        arena: bytes that blocks and control data can cover.
        peak: bytes that they ever covered; an arena of this size serves the same calls.
        refused: number of requests that failed.
        used_peak: most bytes in used blocks, headers included; 0 if the heap has no counters.
        largest_refused: bytes of the largest request that failed; 0 if the heap has no counters.
        blocks: most used blocks at a time, by class (`class_text`); all 0 if the heap does not count them.
    """

    arena: int
    peak: int
    refused: int = 0
    used_peak: int = 0
    largest_refused: int = 0
    blocks: tuple[int, ...] = (0,) * CLASSES

    def combined(self, other: Usage) -> Usage:
        """The larger number of both, for a heap that serves two recordings."""
        numbers = {key: max(getattr(self, key), getattr(other, key)) for key in _NUMBERS}
        return Usage(**numbers, blocks=tuple(map(max, self.blocks, other.blocks)))


_NUMBERS = ("arena", "peak", "refused", "used_peak", "largest_refused")


@dataclass(frozen=True)
class FieldBlock:
    """A block that a device sent.

    Attributes:
        usage: the most that its heap was used for, in all boots.
        boots: number of boots; 0 if the device does not count them.
        recipe: the first 8 digits of the hash of the heap's recipe.
        counts: what the device counts, one of `COUNTS`.
        recorded: peaks of the recordings that the heap was tailored to; None if the heap does not know them.
        line, lines: where the block begins in a text, from 1, and on how many lines it is; 0 in raw bytes.
    """

    usage: Usage
    boots: int
    recipe: str
    counts: str
    recorded: Usage | None
    line: int = 0
    lines: int = 0


def usage_after(trace: Trace, recipe: Recipe, arena: int | None = None) -> Usage:
    """The most that the recipe's heap was used for after the trace, in an arena of this many bytes; None: its reach.

    Raises HeapwrightError for an arena that is too small for the control data.
    """
    struct = policy_struct(recipe)
    size = arena_bytes_of(struct, arena)
    calls = trace.calls_at(recipe.sites)
    result = ffi.new("uint32_t[]", lib.HW_USAGE)
    code = lib.hw_usage_after(struct, calls.struct, memory_of(struct, calls, size), size, result)
    explain(code, recipe, struct, size)
    numbers = list(result)
    used, peak, refused, used_peak, largest_refused = numbers[:-CLASSES]
    return Usage(used, peak, refused, used_peak, largest_refused, tuple(numbers[-CLASSES:]))


def usage_of(traces: Sequence[Trace], recipe: Recipe) -> Usage | None:
    """The most that the recipe's heap is used for by any of the traces; None if it lies in several memories."""
    return None if recipe.memory else reduce(Usage.combined, (usage_after(trace, recipe) for trace in traces))


def least_bytes(number: int) -> int:
    """Bytes of the smallest block of a class, header included."""
    return _SMALLEST << number >> 1


def class_text(number: int) -> str:
    """The sizes of the blocks of a class, header included: "16 to 31 bytes"."""
    end = _SMALLEST << number
    if number == 0:
        return f"less than {end} bytes"
    return f"{end // 2:,} bytes or more" if number == CLASSES - 1 else f"{end // 2:,} to {end - 1:,} bytes"


def read_blocks(content: bytes) -> list[FieldBlock]:
    """The blocks in a file: raw bytes, or text with hexadecimal digits. What is damaged is left out."""
    if b"\0" in content:
        return [*_raw_blocks(content)]
    return [*text_blocks(content.decode("utf-8", errors="replace"))]


def text_blocks(text: str) -> Iterator[FieldBlock]:
    """The blocks whose bytes are hexadecimal digits in a text; blanks, commas, colons, 0x and ends of lines may lie
    between them, addresses ahead of them."""
    text = _ADDRESS.sub(lambda match: " " * (len(match[0]) - 1) + match[0][-1], text)
    for order, first in _FIRST.items():
        for match in re.finditer(first, text, re.IGNORECASE):
            at, octets = match.start(), bytearray()
            while len(octets) < BLOCK_BYTES and (digits := _DIGITS.match(text, at)):
                octets.append(int(digits[1], 16))
                at = digits.end()
            if block := _block(bytes(octets), order):
                line, more = text.count("\n", 0, match.start()) + 1, text.count("\n", match.start(), at)
                yield replace(block, line=line, lines=1 + more)


def _raw_blocks(content: bytes) -> Iterator[FieldBlock]:
    for order, magic in (("<", _MAGIC), (">", _MAGIC[::-1])):
        for match in re.finditer(re.escape(magic), content):
            if block := _block(content[match.start() : match.start() + BLOCK_BYTES], order):
                yield block


def _block(octets: bytes, order: str) -> FieldBlock | None:
    """The block of these bytes; None if they are damaged or of another version."""
    layout = Struct(order + _LAYOUT)
    if len(octets) < layout.size or layout.size != BLOCK_BYTES:
        return None
    _, version, counts, size, *numbers, check = layout.unpack(octets)
    if version != 1 or size != BLOCK_BYTES or counts >= len(COUNTS) or check != zlib.crc32(octets[:-4]):
        return None
    recipe, boots, arena, peak, used_peak, refused, largest, _, recorded_peak, recorded_used = numbers[:10]
    blocks, recorded = tuple(numbers[10 : 10 + CLASSES]), tuple(numbers[10 + CLASSES :])
    known = Usage(0, recorded_peak, 0, recorded_used, 0, recorded) if recorded_peak else None
    usage = Usage(arena, peak, refused, used_peak, largest, blocks)
    return FieldBlock(usage, boots, f"{recipe:08x}", COUNTS[counts], known)
