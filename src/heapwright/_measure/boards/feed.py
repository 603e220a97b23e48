"""What goes into an image and what comes out: the trace as 8-byte events, its place, and the counts of its calls."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError
from heapwright._traces.validation import CALLOC, MALLOC

if TYPE_CHECKING:
    from heapwright._measure.boards.cpus import Cpu, Memory
    from heapwright._traces.trace import Trace

SKIPPED, REFUSED = 1 << 31, 1 << 30
"""Flags of a call's ticks, as in driver/driver.c."""

STUBS = 3
"""Calls that the driver measures before the trace's."""

FEED = struct.Struct("<10I")
OUTPUT_AT, PATH_AT, DATA_AT = 0x40, 0x80, 0x1000
"""Offsets in the slow memory: what is written, the file it is written to, and the events."""

MAX_ALIGN_LOG2 = 12


@dataclass(frozen=True)
class FeedLayout:
    """Addresses of everything that is given to an image."""

    events: int
    ticks: int
    objects: int
    end: int
    arena: int
    arena_bytes: int

    @classmethod
    def of(cls, memory: Memory, count: int, slots: int, arena_bytes: int, front: int) -> FeedLayout:
        """Place a trace and an arena, which goes into the fast memory where that has room for it.

        `front`: bytes in front of the arena that belong to the program.
        """
        front = -(-front // 65536) * 65536
        events = memory.slow + DATA_AT
        ticks = events + 8 * count
        objects = ticks + 4 * (count + STUBS)
        end = -(-(objects + 4 * slots) // 65536) * 65536
        if front + arena_bytes <= memory.arena_bytes:
            return cls(events, ticks, objects, end, memory.arena + front, arena_bytes)
        return cls(events, ticks, objects, end + front + arena_bytes, end + front, arena_bytes)


@dataclass(frozen=True)
class Input:
    """A trace as the driver takes it: uint32[calls, 2] events, how many objects live at a time, and the layout."""

    events: NDArray[np.uint32]
    slots: int
    layout: FeedLayout
    arena_used: int
    """Bytes of the arena to be read back after the last call."""

    @classmethod
    def of(
        cls,
        trace: Trace,
        cpu: Cpu,
        arena_bytes: int,
        arena_used: int = 0,
        *,
        reference_bytes: int = 0,
        callocs: bool = False,
    ) -> Input:
        """The trace for an arena of that many bytes.

        Args:
            trace, cpu: what is replayed, and on what.
            arena_bytes: of the arena.
            arena_used: its first bytes, to be read back.
            reference_bytes: that the program keeps for each object in front of the arena.
            callocs: whether a calloc is called as such, or as the malloc that it starts with.

        Raises HeapwrightError for alignments above 4096.
        """
        slots, records = trace.calls.slots, trace.calls.records()
        op, slot, align = records[:, 0] >> 30, records[:, 0] & 0x0FFFFFFF, records[:, 2]
        if slots > 1 << 28 or int(align.max(initial=0)) > 1 << MAX_ALIGN_LOG2:
            raise HeapwrightError(f"{trace.name}: cannot be measured; alignments go up to {1 << MAX_ALIGN_LOG2} bytes")
        aligned = (align > 1) & (op < 2)
        log2 = np.zeros(len(op), np.uint32)
        log2[aligned] = np.log2(align[aligned]).astype(np.uint32)
        op = np.where(aligned, log2 + 3, np.where((op == CALLOC) & (not callocs), MALLOC, op))
        events = np.column_stack([op << 28 | slot, records[:, 1]]).astype(np.uint32)
        layout = FeedLayout.of(cpu.memory, len(events), slots, arena_bytes, slots * reference_bytes)
        return cls(events, slots, layout, arena_used)

    def header(self) -> bytes:
        """The driver's `struct feed`."""
        at = self.layout
        return FEED.pack(len(self.events), at.events, at.ticks, at.objects, at.arena, at.arena_bytes, 0, 0, 0, 0)


COUNTS = (
    "instructions",
    "loads",
    "stores",
    "arena_loads",
    "arena_stores",
    "stack_bytes",
    "cycles_minimum",
    "cycles_nominal",
    "cycles_maximum",
)
"""What a back end may count of a call."""


@dataclass(frozen=True)
class BoardRun:
    """What one replay on an emulated core counted.

    Attributes:
        performed: int64, the trace's calls that were made, in order; those of refused objects are not.
        refused: bool, one for each performed call.
        counts: one array a key of COUNTS, one entry a performed call; None for what the back end cannot count.
        stubs: instructions of the driver's stubs.
        stub_value: what the last stub computed.
        started: the heap could be made in the arena.
        taken: most bytes that the heap took from sbrk.
        arena: uint8, the requested number of bytes of the arena from its start, after the last call.
    """

    performed: NDArray[np.int64]
    refused: NDArray[np.bool_]
    counts: dict[str, NDArray[np.int64] | None]
    stubs: tuple[int, ...]
    stub_value: int
    started: bool
    taken: int
    arena: NDArray[np.uint8] = field(repr=False)


STUB_VALUE = 0x5A


def check_stubs(run: BoardRun, cpu: Cpu, backend: str, remedy: str) -> None:
    """Refuse an emulator that counts or computes the driver's stubs wrongly; `remedy` says what to install."""
    if run.stubs == cpu.stub_instructions and run.stub_value == STUB_VALUE:
        return
    raise HeapwrightError(
        f"{backend}: self-test failed (stubs of {cpu.stub_instructions} instructions counted as {run.stubs}, value "
        f"{run.stub_value:#x} in place of {STUB_VALUE:#x}); {remedy}"
    )


def split_ticks(ticks: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Calls that were performed, and which of those were refused, from the flags of the trace's ticks."""
    performed = np.flatnonzero((ticks & SKIPPED) == 0)
    return performed.astype(np.int64), (ticks[performed] & REFUSED) != 0
