"""History of a log: its calls on addresses, in their order, become calls on objects, the columns of a trace."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import ffi, lib
from heapwright._traces.events import KNOWN, PENDING
from heapwright._traces.logs.blocks import LEFT_OUT, LiveBlocks, size_of
from heapwright._traces.logs.log_rows import LATEST_NS, LogRows
from heapwright._traces.logs.placeholders import Placeholders
from heapwright._traces.logs.scanner import Scanner
from heapwright._traces.validation import CALLOC, FREE, MALLOC, MAX_SIZE, REALLOC

_WINDOW = 1 << 17
_MOST_PLACEHOLDERS = 1 << 16
"""Largest number of placeholders for one gap of a log; a gap that claims more is damaged."""
_STATE = (
    "bytes",
    "objects",
    "next_number",
    "requests",
    "requested_bytes",
    "ended_bytes",
    "peak_without_ending",
    "unseen_frees",
)
"""What the engine keeps of a history under the same names (struct hw_log_state)."""
_LEAST_BITS = 4
_SLACK_BITS = 8
"""Placeholders ignore a difference below the peak divided by two to the power of this."""


class LogHistory(LogRows):
    """The calls of a log, one by one; O(log n) each, with n live objects.

    A live object takes some 150 bytes. No two may overlap: an allocation over live objects ends these, whose frees the
    log lacks.

    Attributes:
        caveats: limits of what the log records, in words; readers add to it.
        arena: bytes of the heap, if the log reports them; else 0.
        skipped: lines or records that should have been calls but are not valid.
        failed_resizes: numbers of the objects of failed reallocs, and of the objects that they should have resized.
        failed: requests that failed; `peak_bytes` and `peak_objects` leave them out.
        peak_bytes: largest sum of live requested bytes.
        peak_objects: largest number of live objects.
        most: limit of live bytes from here on, if the log reports it ahead and lacks calls; else None.
    """

    most: int | None = None

    def __init__(self, folder: Path | None = None, *, overlap: bool = False) -> None:
        """Keep long traces in parts in `folder`; None keeps all in memory.

        `overlap` allows objects to overlap: addresses of the log are numbers or hashes, or lie in several memories.
        """
        super().__init__(folder, _WINDOW)
        self.now_ns = -1
        self.caveats: list[str] = []
        self.skipped = self.arena = self.failed = 0
        self.peak_bytes = self.peak_objects = 0
        self.failed_resizes: list[tuple[int, int]] = []
        self._live = LiveBlocks(overlap)
        self._ended = LiveBlocks(overlap=True)  # sizes of objects that overlapping ones ended
        self._ended_bytes = self._peak_without_ending = 0
        self._bytes = self._objects = self._next_number = 0
        self._unknown_frees = self._adopted = self._unseen_frees = self._huge = 0
        self._overlapped = self._freed_later = 0
        self._losses: list[tuple[int, int]] = []  # calls, and after how many
        self._placeholders = Placeholders()
        self._unseen_objects = 0  # live objects that are not in _live, minus objects in it that are freed
        self._requests = self._requested_bytes = self._peak_without_placeholders = self._placeholders_begun = 0
        self._counted = False  # the log reports the live bytes
        self._owed_objects = self._owed_bytes = 0  # live by the reported counts, and not yet in the trace
        self._freed_early: dict[int, int] = {}  # address: size, of objects freed for others of unknown address
        self._old: int | None = None
        self._pending = np.zeros(0, PENDING)

    @property
    def lossy(self) -> bool:
        """Whether the log lacks calls."""
        return bool(self._losses)

    def allocate(self, pointer: int, size: int, *, cleared: bool = False, align: int = 0) -> None:
        """Note a malloc or, if `cleared`, a calloc that returned `pointer`, 0 if it failed.

        `align` is rounded up to a power of two, as C libraries do; 0 for none.
        """
        if not pointer:
            self.fail(size, cleared=cleared, align=align)
            return
        if not self._make_room(pointer, size):
            self._live.put(pointer, LEFT_OUT)
            return
        self._keep_below(size)
        if 0 < align <= MAX_SIZE:
            self._aligns.put(len(self._ops), 1 << (align - 1).bit_length())
            self._aligns.put(len(self._ops) + 1, 0)
        self._live.put(pointer, self._begin(CALLOC if cleared else MALLOC, size))
        self._requests += 1
        self._requested_bytes += size

    def fail(self, size: int, *, cleared: bool = False, align: int = 0) -> None:
        """Note a request of `size` bytes that failed; one of 0 bytes may return NULL without a failure.

        The trace holds it as allocated and freed at once; `heapwright._traces.failures.with_life` extends its life.
        """
        if not 0 < size <= MAX_SIZE:
            self._huge += size > MAX_SIZE
            return
        self.failed += 1
        if 0 < align <= MAX_SIZE:
            self._aligns.put(len(self._ops), 1 << (align - 1).bit_length())
            self._aligns.put(len(self._ops) + 1, 0)
        self._failed.put(len(self._ops), 1)
        self._failed.put(len(self._ops) + 1, 0)
        number = self._next_number
        self._next_number += 1
        for op, requested in ((CALLOC if cleared else MALLOC, size), (FREE, 0)):
            self._append(op, number, requested)

    def release(self, pointer: int, size: int | None = None) -> None:
        """Note a free, of `size` bytes if the log reports them; a `pointer` of 0 is ignored."""
        if (block := self._live.take(pointer)) is not None:
            self._free(block)
        elif pointer:
            if (size_ended := self._ended.take(pointer)) is not None:
                self._freed_later += 1
                self._ended_bytes -= size_ended
            elif not self._losses:
                self._unknown_frees += 1
            if self._losses:
                self._note_unseen_free(self._freed_early.pop(pointer, size))

    def release_all(self) -> None:
        """Note that all live objects are freed."""
        for block in self._live.take_all():
            self._free(block)
        self._ended.take_all()
        self._freed_early.clear()
        self._ended_bytes = self._unseen_objects = self._owed_objects = self._owed_bytes = 0
        while self._placeholders:
            self._free(self._placeholders.take_oldest())

    def lose(self, calls: int, more_objects: int, bytes_each: int | None = None) -> None:
        """Note that the log lacks `calls` calls here, after which `more_objects` more (or fewer) objects are live.

        From now on the number of live objects is known, but not all of their addresses. Placeholder objects of
        `bytes_each`, by default the mean of all sizes so far, replace the missing ones; a free of an unknown address
        frees the oldest placeholder.
        """
        self._note_loss(calls)
        if self._counted:
            self._owed_objects += more_objects
            return
        mean = self._mean_size if bytes_each is None else min(bytes_each, MAX_SIZE)
        for _ in range(min(abs(more_objects), calls, _MOST_PLACEHOLDERS)):
            if more_objects > 0:
                self._note_unseen_object(mean)
            else:
                self._note_unseen_free()

    def lose_counted(self, calls: int, came: tuple[int, int], freed: tuple[int, int], rise: int) -> None:
        """Note that `calls` calls are missing here, whose objects and bytes the log counts.

        `came`: objects and bytes by which the missing mallocs change what is live; `freed`: objects and bytes of other
        objects that were freed. In between, live bytes rose by `rise`.
        """
        self._note_loss(calls)
        self._counted = True
        self._rise_to(self._bytes + self._owed_bytes + rise)
        objects, size = self._free_early(min(freed[0], calls), freed[1])
        self._owed_objects += came[0] - freed[0] + objects
        self._owed_bytes += came[1] - freed[1] + size
        self._settle()

    def count(self, live: int, peak: int) -> None:
        """Note the live bytes that the log reports here, and their peak up to now."""
        self._counted = True
        if self._losses:
            self._rise_to(peak)
            self._owed_bytes = live - self._bytes
            self._settle()

    def stop_counting(self) -> None:
        """Note that the log no longer reports live bytes: from now on placeholders have the mean size."""
        self._unseen_objects = len(self._placeholders) if self._counted else self._unseen_objects
        self._counted = False

    def _note_loss(self, calls: int) -> None:
        if not self._losses:
            self._peak_without_placeholders = self.peak_bytes
        self._losses.append((calls, len(self)))

    def resize(self, old: int, pointer: int, size: int) -> None:
        """Note a realloc of `old` that returned `pointer`."""
        self.end_resize(old, self.begin_resize(old), pointer, size)

    def begin_resize(self, old: int) -> int | None:
        """Remove the object at `old` while a realloc runs, and return it for `end_resize`."""
        return self._live.take(old)

    def cancel_resize(self, old: int, block: int | None) -> None:
        """Put the object of `begin_resize` back: the log lacks the end of the realloc."""
        if block is not None and old not in self._live:
            self._live.place(old, 0)
            self._live.put(old, block)

    def end_resize(self, old: int, block: int | None, pointer: int, size: int) -> None:
        """Put the object of `begin_resize` at its new address; 0 if the realloc failed, or freed it."""
        if not pointer:
            if size:
                if block is not None and block != LEFT_OUT and size <= MAX_SIZE:
                    self.failed_resizes.append((self._next_number, block >> 32))
                self.fail(size)
                self.cancel_resize(old, block)
            elif block is not None:
                self._free(block)
        elif block is None or block == LEFT_OUT:
            if old and block is None:
                self._adopted += 1
                if self._losses:
                    self._note_unseen_free()
            self.allocate(pointer, size)
        elif self._make_room(pointer, size):
            self._keep_below(size - size_of(block))
            self._live.put(pointer, block >> 32 << 32 | size)
            self._add(REALLOC, block >> 32, size, size - (block & 0xFFFFFFFF))
        else:
            self._live.put(pointer, block)

    def make_calls(self, scanner: Scanner, events: NDArray[Any], which: NDArray[np.uint32] | None) -> None:
        """Make the calls of a scanner's events, of which `which` are the places, None for all; of a log without losses.

        The engine makes them up to the first that needs more than the live blocks.
        """
        first, count = 0, len(events) if which is None else len(which)
        while first < count:
            some = events[first:] if which is None else events
            places = None if which is None else which[first:]
            first += self._make_in_engine(scanner, some, places, count - first)
            if first < count:
                self._make_call(events[first if which is None else which[first]])
                first += 1

    def keep_old(self, pointer: int) -> None:
        """Note the object that the next `resize_old` resizes."""
        self._old = pointer

    def resize_old(self, pointer: int, size: int) -> None:
        """Note a realloc of the object of `keep_old`, if there is one."""
        if self._old is not None:
            old, self._old = self._old, None
            self.resize(old, pointer, size)

    def _make_in_engine(
        self, scanner: Scanner, events: NDArray[Any], which: NDArray[np.uint32] | None, count: int
    ) -> int:
        """Make calls as far as the engine can; returns how many were made."""
        known = {name: getattr(self, f"_{name}") for name in _STATE}
        state = ffi.new("struct hw_log_state *", known | {"skipped": self.skipped, "unknown_frees": 0})
        state.now_ns, state.first_row, state.overlap = min(self.now_ns, LATEST_NS), len(self._ops), self._live.overlap
        state.room = max(self._window - len(self._ops), 0)
        state.peak_bytes, state.peak_objects = self.peak_bytes, self.peak_objects
        state.old, state.has_old = self._old or 0, self._old is not None
        state.thread, state.site = scanner.number(self._thread), scanner.number(self._site)
        if len(self._pending) < scanner.names:
            more = scanner.names - len(self._pending)
            self._pending = np.append(self._pending, np.zeros(more, PENDING))
        state.live, state.ended, state.to = self._live.table, self._ended.table, scanner.rows.struct
        state.pending = ffi.cast("struct hw_log_pending *", self._pending.ctypes.data)
        some = ffi.cast("struct hw_log_event *", events.ctypes.data)
        places = ffi.NULL if which is None else ffi.cast("uint32_t *", which.ctypes.data)
        made = lib.hw_log_apply(state, some, places, count)
        for name in _STATE:
            setattr(self, f"_{name}", getattr(state, name))
        self.now_ns, self.skipped = state.now_ns, state.skipped
        self.peak_bytes, self.peak_objects = state.peak_bytes, state.peak_objects
        self._unknown_frees += 0 if self._losses else state.unknown_frees
        self._old = state.old if state.has_old else None
        self._take_rows(scanner, state)
        return int(made)

    def _make_call(self, event: Any) -> None:
        """Make the call of an event whose time, thread and site are set."""
        kind, address, size = int(event["kind"]), int(event["address"]), int(event["size"])
        if kind in (lib.HW_LOG_MALLOC, lib.HW_LOG_CALLOC):
            self.allocate(address, size, cleared=kind == lib.HW_LOG_CALLOC, align=int(event["align"]))
        elif kind == lib.HW_LOG_FREE:
            self.release(address)
        elif kind == lib.HW_LOG_FAIL:
            self.fail(size)
        elif kind == lib.HW_LOG_RESIZE:
            self.resize(int(event["old"]), address, size)
        elif kind == lib.HW_LOG_RESIZE_SELF:
            self.resize(address, address, size)
        elif kind == lib.HW_LOG_RESIZE_OLD:
            self.resize_old(address, size)
        elif kind == lib.HW_LOG_OLD:
            self.keep_old(address)
        elif kind == lib.HW_LOG_SKIPPED:
            self.skipped += 1
        elif kind != lib.HW_LOG_NOTHING:
            self._make_part(kind, int(event["thread"]), address, size)

    def _make_part(self, kind: int, thread: int, address: int, size: int) -> None:
        """Make the begin or the end of a thread's realloc."""
        if kind == lib.HW_LOG_BEGIN:
            begun = self.begin_resize(address)
            self._pending[thread] = (address, begun or 0, KNOWN if begun is not None else 1, 0)
            return
        old, block, state, _ = self._pending[thread].tolist()
        self._pending[thread] = 0, 0, 0, 0
        resized = block if state == KNOWN else None
        if kind == lib.HW_LOG_CANCEL:
            self.cancel_resize(old, resized)
        else:
            self.end_resize(old if state else 0, resized, address, size)

    @property
    def notes(self) -> list[str]:
        """Repairs of the log, in words: what was left out, and what was inserted."""
        counts = {
            "frees of blocks allocated before the log, left out": self._unknown_frees,
            "blocks allocated before the log, counted from their realloc": self._adopted,
            "frees missing in the log, inserted where the address is allocated again": self._unseen_frees,
            "calls for more than 2^31 bytes, left out": self._huge,
            "lines or records that make no sense, left out": self.skipped,
        }
        repairs = [f"{words}: {count}" for words, count in counts.items() if count]
        return repairs + ([self._overlaps] if self._overlapped else []) + ([self._missing] if self._losses else [])

    @property
    def _missing(self) -> str:
        most, after = max(self._losses)
        higher = max(self.peak_bytes - self._peak_without_placeholders, 0)
        places = f"{len(self._losses)} place{'s' * (len(self._losses) != 1)}"
        counted = ", from the byte counts of the log" if self._counted else ""
        return (
            f"calls missing in the log: {sum(calls for calls, _ in self._losses)} in {places}, the "
            f"most, {most}, after call {after:,}; {self._placeholders_begun} placeholder objects inserted, which raise "
            f"the peak by {higher:,} B{counted}"
        )

    @property
    def _overlaps(self) -> str:
        lower = max(self._peak_without_ending - self.peak_bytes, 0)
        later = f", {self._freed_later} of which the log frees later" if self._freed_later else ""
        return (
            f"frees missing in the log, inserted where other objects overlap: {self._overlapped}{later}; this lowers "
            f"the peak by {lower:,} B"
        )

    def _make_room(self, pointer: int, size: int) -> bool:
        """End the objects that overlap a new block of `size` bytes at `pointer`: the log lacks these frees.

        Returns False if `size` is too large for an object of a trace.
        """
        self._ended_bytes -= self._ended.take(pointer) or 0
        self._freed_early.pop(pointer, None)
        fits = size <= MAX_SIZE
        self._huge += not fits
        for address, block in self._live.place(pointer, max(size, 1) if fits else 0):
            if address == pointer:
                self._unseen_frees += 1
            else:
                self._overlapped += 1
                size_ended = 0 if self._losses else size_of(block)  # else a placeholder replaces it
                self._ended.put(address, size_ended)
                self._ended_bytes += size_ended
            self._free(block)
            if self._losses:
                self._note_unseen_object(size_of(block) if self._counted else min(size_of(block), self._mean_size))
        return fits

    @property
    def _mean_size(self) -> int:
        return self._requested_bytes // max(self._requests, 1)

    def _note_unseen_object(self, size: int) -> None:
        """Note one more live object, at an unknown address."""
        if self._counted:
            self._owed_objects += 1
            self._owed_bytes += size
            self._settle()
            return
        self._unseen_objects += 1
        if self._unseen_objects > 0:
            self._begin_placeholder(size)

    def _note_unseen_free(self, size: int | None = None) -> None:
        """Note that an unknown object, of `size` bytes if that is known, was freed."""
        if self._counted:
            mean = self._placeholders.bytes // len(self._placeholders) if self._placeholders else self._mean_size
            self._owed_objects -= 1
            self._owed_bytes -= mean if size is None else size
            self._settle()
            return
        self._unseen_objects -= 1
        if self._placeholders:
            self._free(self._placeholders.take_oldest())

    def _begin_placeholder(self, size: int) -> None:
        self._placeholders_begun += 1
        self._placeholders.add(self._begin(MALLOC, size))

    def _rise_to(self, peak: int) -> None:
        """Begin placeholder objects until `peak` bytes are live, as they once were during the missing calls."""
        if peak <= self.peak_bytes:
            return
        more, without = peak - self._bytes, self._peak_without_placeholders
        objects = min(more // max(self._mean_size, 1), self._losses[-1][0], _MOST_PLACEHOLDERS)
        objects = max(objects, -(-more // MAX_SIZE))
        begun = [self._begin(MALLOC, (peak - self._bytes) // remaining) for remaining in range(max(objects, 1), 0, -1)]
        self._placeholders_begun += len(begun)
        for block in begun:
            self._free(block)
        self._peak_without_placeholders = without

    def _keep_below(self, more: int) -> None:
        """Free objects if `more` bytes would exceed the limit of live bytes that the log reports."""
        if self.most is not None and self._bytes + more > self.most:
            self._owed_bytes = min(self._owed_bytes, self.most - self._bytes - more)
            self._settle()

    def _settle(self) -> None:
        """Match the live objects and bytes that the log reports, except for a negligible share of the peak."""
        slack = self.peak_bytes >> _SLACK_BITS
        while self._owed_objects < 0 and self._owed_bytes < 0 and self._placeholders:
            self._end_placeholder(max(self._owed_bytes // self._owed_objects, 0))
        while self._owed_bytes < -slack and self._placeholders.nearest(-self._owed_bytes) * 2 >= -self._owed_bytes:
            self._end_placeholder(-self._owed_bytes)
        if self._owed_bytes < -slack:
            objects, size = self._free_early(max(-self._owed_objects, 1), -self._owed_bytes)
            self._owed_objects += objects
            self._owed_bytes += size
        while self._owed_bytes < -slack and self._placeholders:
            self._end_placeholder(-self._owed_bytes)
        # Smaller placeholders would count objects that are live under another address.
        least = max(self._mean_size >> _LEAST_BITS, 1)
        for remaining in range(min(self._owed_objects, self._owed_bytes // least, _MOST_PLACEHOLDERS), 0, -1):
            self._begin_owed(self._owed_bytes // remaining)
        if self._owed_bytes > slack and self._placeholders:
            block = self._placeholders.take_nearest(self._owed_bytes)
            self._owed_bytes += size_of(block)
            self._free(block)
        if self._owed_bytes > slack:
            self._begin_owed(self._owed_bytes)
        self._owed_objects = max(self._owed_objects, 0)

    def _begin_owed(self, size: int) -> None:
        size = min(size, MAX_SIZE)
        self._owed_objects -= 1
        self._owed_bytes -= size
        self._begin_placeholder(size)

    def _end_placeholder(self, size: int) -> None:
        block = self._placeholders.take_nearest(size)
        self._owed_objects += 1
        self._owed_bytes += size_of(block)
        self._free(block)

    def _free_early(self, objects: int, size: int) -> tuple[int, int]:
        """Free some `objects` objects of `size` bytes in all, newest first, whose frees the log lacks.

        The last is the one whose size is nearest to the remaining bytes. Returns the objects and bytes freed.
        """
        remaining = size
        chosen: list[int] = []
        fitting = ((address, block) for address, block in self._live.newest_first())
        for address, block in islice(fitting, _MOST_PLACEHOLDERS):
            if len(chosen) >= objects - 1:
                break
            if size_of(block) <= remaining:
                chosen.append(address)
                remaining -= size_of(block)
        taken = [(address, self._live.take(address) or 0) for address in chosen]
        if objects:
            rest = self._live.newest_first()
            last = min(rest, key=lambda item: abs(size_of(item[1]) - remaining), default=None)
            if last is not None:
                taken.append((last[0], self._live.take(last[0]) or 0))
        for address, block in taken:
            self._freed_early[address] = size_of(block)
            self._free(block)
        return len(taken), sum(size_of(block) for _, block in taken)

    def _begin(self, op: int, size: int) -> int:
        """Note a new object and return it as number << 32 | size."""
        number = self._next_number
        self._next_number += 1
        self._objects += 1
        if self._objects > self.peak_objects:
            self.peak_objects = self._objects
        self._add(op, number, size, size)
        return number << 32 | size

    def _free(self, block: int) -> None:
        if block != LEFT_OUT:
            self._objects -= 1
            self._add(FREE, block >> 32, 0, -(block & 0xFFFFFFFF))

    def _add(self, op: int, number: int, size: int, more: int) -> None:
        self._bytes += more
        if self._bytes > self.peak_bytes:
            self.peak_bytes = self._bytes
        if self._losses and self._bytes - self._placeholders.bytes > self._peak_without_placeholders:
            self._peak_without_placeholders = self._bytes - self._placeholders.bytes
        if self._ended_bytes and self._bytes + self._ended_bytes > self._peak_without_ending:
            self._peak_without_ending = self._bytes + self._ended_bytes
        self._append(op, number, size)
