"""Calls on addresses, in the order of a log, become calls on objects: the columns of a trace."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.logs.blocks import LEFT_OUT, LiveBlocks, size_of
from heapwright._traces.logs.placeholders import Placeholders
from heapwright._traces.tables import TableWriter
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, MAX_SIZE, REALLOC, Columns

_WINDOW = 1 << 17
_LATEST_NS = 1 << 62
_MOST_STAND_INS = 1 << 16
"""At a place where calls are missing; what claims to need more is damaged."""
_LEAST_BITS = 4
_SLACK_BITS = 8
"""Stand-ins do not follow what is less than the peak divided by two to the power of this."""


class LogHistory:
    """What a log tells, call by call; O(log n) each, of n objects that are alive.

    An object that is alive takes some 150 bytes. No two may overlap: an allocation where others still lie ends these,
    whose frees the log lacks.

    Attributes:
        now_ns: time of the calls that follow in nanoseconds, from any origin; -1 where the log has none.
        caveats: what the log cannot tell, in words; readers add to it.
        arena: bytes that the heap has, where the log tells; 0 where it does not.
        skipped: lines or records that should have been a call and were none.
        failed: requests that failed; `peak_bytes` and `peak_objects` are without them.
        peak_bytes: largest sum of live requested bytes.
        peak_objects: largest number of live objects.
        most: how many bytes live at most from here on, where the log tells it ahead and lacks calls; else None.
        follower: is handed the calls, a window at a time and whenever `flush` is called; None where nobody follows.
    """

    most: int | None = None
    follower: Callable[[Columns], None] | None = None

    def __init__(self, folder: Path | None = None, *, overlap: bool = False) -> None:
        """Keep long traces in parts in `folder`; None keeps all in memory.

        `overlap` says that objects may: what the log calls an address is a number or a hash, or is of several memories.
        """
        self.now_ns = -1
        self.caveats: list[str] = []
        self.skipped = self.arena = self.failed = 0
        self.peak_bytes = self.peak_objects = 0
        self._site_names = [""]
        self._rows = TableWriter(folder, {"site": self._site_names})
        self._rows_before = 0
        self._ops, self._ids, self._sizes, self._times = array("B"), array("I"), array("I"), array("q")
        self._threads, self._sites, self._aligns, self._failed = (_Changes() for _ in range(4))
        self._live = LiveBlocks(overlap)
        self._ended: dict[int, int] = {}  # address: size, of what other objects' addresses ended and nothing since
        self._ended_bytes = self._peak_without_ending = 0
        self._bytes = self._objects = self._born = 0
        self._first_ns: int | None = None
        self._latest_ns = 0
        self._thread: object = None
        self._site = ""
        self._thread_numbers: dict[object, int] = {}
        self._site_numbers = {"": 0}
        self._unknown_frees = self._adopted = self._unseen_frees = self._huge = 0
        self._overlapped = self._freed_later = 0
        self._losses: list[tuple[int, int]] = []  # calls, and after how many
        self._stand_ins = Placeholders()
        self._unseen = 0  # objects that live and are not in _live, less those that are and do not live
        self._asked = self._asked_bytes = self._peak_without_stand_ins = self._stood_in = 0
        self._counted = False  # the log tells how many bytes live
        self._owed_objects = self._owed_bytes = 0  # how many more live by what it tells
        self._given_up: dict[int, int] = {}  # address: size, of what was freed in the place of others that were

    def __len__(self) -> int:
        return self._rows_before + len(self._ops)

    @property
    def site_names(self) -> list[str]:
        """What the column site stands for; it grows as the log goes on."""
        return self._site_names

    @property
    def lossy(self) -> bool:
        """Whether it lacks calls."""
        return bool(self._losses)

    def set_thread(self, thread: object) -> None:
        """Say whose the calls that follow are; anything that tells threads apart."""
        if thread != self._thread:
            self._thread = thread
            number = self._thread_numbers.setdefault(thread, len(self._thread_numbers))
            self._threads.put(len(self._ops), number & 0xFFFF)

    def set_site(self, site: str) -> None:
        """Say where in the program the calls that follow are made."""
        if site != self._site:
            self._site = site
            number = self._site_numbers.setdefault(site, len(self._site_numbers))
            if number == len(self._site_names):
                self._site_names.append(site)
            self._sites.put(len(self._ops), number)

    def allocate(self, pointer: int, size: int, *, cleared: bool = False, align: int = 0) -> None:
        """Note a malloc or, `cleared`, a calloc that returned `pointer`, 0 where it failed.

        `align` is rounded up to a power of two, as C libraries do; 0 where none was asked for.
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
        self._asked += 1
        self._asked_bytes += size

    def fail(self, size: int, *, cleared: bool = False, align: int = 0) -> None:
        """Note a request of `size` bytes that failed; one of 0 bytes may return NULL and is none.

        The trace holds it as served and freed at once; `heapwright._traces.failures.with_life` lets it live longer.
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
        number = self._born
        self._born += 1
        for op, requested in ((CALLOC if cleared else MALLOC, size), (FREE, 0)):
            self._append(op, number, requested)

    def release(self, pointer: int, size: int | None = None) -> None:
        """Note a free, of so many bytes where the log tells; nothing where `pointer` is 0."""
        if (known := self._live.take(pointer)) is not None:
            self._free(known)
        elif pointer:
            if pointer in self._ended:
                self._freed_later += 1
                self._ended_bytes -= self._ended.pop(pointer)
            elif not self._losses:
                self._unknown_frees += 1
            if self._losses:
                self._stand_down(self._given_up.pop(pointer, size))

    def release_all(self) -> None:
        """Note that all that lives is freed."""
        for known in self._live.take_all():
            self._free(known)
        self._ended.clear()
        self._given_up.clear()
        self._ended_bytes = self._unseen = self._owed_objects = self._owed_bytes = 0
        while self._stand_ins:
            self._free(self._stand_ins.take_oldest())

    def lose(self, calls: int, more_objects: int, bytes_each: int | None = None) -> None:
        """Note that the log lacks so many calls here, after which `more_objects` more, or fewer, live than before.

        From now on the number of objects that live is known, but not all of their addresses. Stand-ins of `bytes_each`,
        by default the mean of all before, take the place of those that the log does not tell; the oldest is freed where
        an address is that nobody has.
        """
        self._note_loss(calls)
        if self._counted:
            self._owed_objects += more_objects
            return
        mean = self._mean_size if bytes_each is None else min(bytes_each, MAX_SIZE)
        for _ in range(min(abs(more_objects), calls, _MOST_STAND_INS)):
            if more_objects > 0:
                self._stand_in(mean)
            else:
                self._stand_down()

    def lose_counted(self, calls: int, came: tuple[int, int], freed: tuple[int, int], rise: int) -> None:
        """Note that so many calls are missing here, whose objects and bytes the log counts.

        `came`: how many more, or fewer, live of those whose mallocs are missing; `freed`: how many others were. In
        between `rise` bytes more lived than before.
        """
        self._note_loss(calls)
        self._counted = True
        self._rise_to(self._bytes + self._owed_bytes + rise)
        objects, size = self._give_up(min(freed[0], calls), freed[1])
        self._owed_objects += came[0] - freed[0] + objects
        self._owed_bytes += came[1] - freed[1] + size
        self._settle()

    def count(self, live: int, peak: int) -> None:
        """Note that the log says how many bytes live here, and how many did at most up to now."""
        self._counted = True
        if self._losses:
            self._rise_to(peak)
            self._owed_bytes = live - self._bytes
            self._settle()

    def stop_counting(self) -> None:
        """Note that the log says no longer how many bytes live: from now on stand-ins are of the mean size."""
        self._unseen = len(self._stand_ins) if self._counted else self._unseen
        self._counted = False

    def _note_loss(self, calls: int) -> None:
        if not self._losses:
            self._peak_without_stand_ins = self.peak_bytes
        self._losses.append((calls, len(self)))

    def resize(self, old: int, pointer: int, size: int) -> None:
        """Note a realloc of `old` that returned `pointer`."""
        self.end_resize(old, self.begin_resize(old), pointer, size)

    def begin_resize(self, old: int) -> int | None:
        """Take the address from its object while a realloc runs; returns what `end_resize` needs."""
        return self._live.take(old)

    def cancel_resize(self, old: int, known: int | None) -> None:
        """Give the object of `begin_resize` its address back: how the realloc ended is not in the log."""
        if known is not None and old not in self._live:
            self._live.place(old, 0)
            self._live.put(old, known)

    def end_resize(self, old: int, known: int | None, pointer: int, size: int) -> None:
        """Give the object of `begin_resize` its new address; 0 where the realloc failed, or freed it."""
        if not pointer:
            if size:
                self.fail(size)
                self.cancel_resize(old, known)
            elif known is not None:
                self._free(known)
        elif known is None or known == LEFT_OUT:
            if old and known is None:
                self._adopted += 1
                if self._losses:
                    self._stand_down()
            self.allocate(pointer, size)
        elif self._make_room(pointer, size):
            self._keep_below(size - size_of(known))
            self._live.put(pointer, known >> 32 << 32 | size)
            self._add(REALLOC, known >> 32, size, size - (known & 0xFFFFFFFF))
        else:
            self._live.put(pointer, known)

    @property
    def notes(self) -> list[str]:
        """What was left out or put in, in words."""
        counts = {
            "frees of blocks allocated before the log, left out": self._unknown_frees,
            "blocks allocated before the log, counted from their realloc": self._adopted,
            "frees missing in the log, put where the address was given out again": self._unseen_frees,
            "calls for more than 2^31 bytes, left out": self._huge,
            "lines or records that make no sense, left out": self.skipped,
        }
        info = [f"{words}: {count}" for words, count in counts.items() if count]
        return info + ([self._overlaps] if self._overlapped else []) + ([self._missing] if self._losses else [])

    @property
    def _missing(self) -> str:
        most, after = max(self._losses)
        higher = max(self.peak_bytes - self._peak_without_stand_ins, 0)
        places = f"{len(self._losses)} place{'s' * (len(self._losses) != 1)}"
        counted = ", as the log counts its bytes" if self._counted else ""
        return (
            f"calls missing in the log: {sum(calls for calls, _ in self._losses)} in {places}, the "
            f"most, {most}, after call {after:,}; {self._stood_in} objects stand for those they left: the peak is "
            f"{higher:,} B higher for it{counted}"
        )

    @property
    def _overlaps(self) -> str:
        lower = max(self._peak_without_ending - self.peak_bytes, 0)
        later = f", {self._freed_later} of which the log frees later" if self._freed_later else ""
        return (
            f"frees missing in the log, put where other objects got a part of the memory: {self._overlapped}{later}; "
            f"the peak is {lower:,} B lower for it"
        )

    def trace(self, name: str, metadata: dict[str, str]) -> Trace:
        """The trace, of a history in memory; raises HeapwrightError where there was no call."""
        self.flush()
        columns: dict[str, Any] = self._rows.columns()
        if "site" in columns:
            columns["sites"] = tuple(self._site_names)
        return Trace.from_columns(**columns, name=name, metadata=metadata)

    def write(self, path: Path, metadata: dict[str, str]) -> None:
        """Write the trace as Parquet; raises HeapwrightError where there was no call."""
        self.flush()
        self._rows.write(path, metadata)

    def _make_room(self, pointer: int, size: int) -> bool:
        """End what overlaps a new block of `size` bytes at `pointer`: the log lacks these frees.

        Returns whether they are an object of the trace, or too many for one.
        """
        self._ended_bytes -= self._ended.pop(pointer, 0)
        self._given_up.pop(pointer, None)
        fits = size <= MAX_SIZE
        self._huge += not fits
        for address, known in self._live.place(pointer, max(size, 1) if fits else 0):
            if address == pointer:
                self._unseen_frees += 1
            else:
                self._overlapped += 1
                self._ended[address] = 0 if self._losses else size_of(known)  # else a stand-in takes its place
                self._ended_bytes += self._ended[address]
            self._free(known)
            if self._losses:
                self._stand_in(size_of(known) if self._counted else min(size_of(known), self._mean_size))
        return fits

    @property
    def _mean_size(self) -> int:
        return self._asked_bytes // max(self._asked, 1)

    def _stand_in(self, size: int) -> None:
        """An object more lives than before, nobody knows where."""
        if self._counted:
            self._owed_objects += 1
            self._owed_bytes += size
            self._settle()
            return
        self._unseen += 1
        if self._unseen > 0:
            self._begin_stand_in(size)

    def _stand_down(self, size: int | None = None) -> None:
        """An object fewer lives than before, of so many bytes; nobody knows which."""
        if self._counted:
            mean = self._stand_ins.bytes // len(self._stand_ins) if self._stand_ins else self._mean_size
            self._owed_objects -= 1
            self._owed_bytes -= mean if size is None else size
            self._settle()
            return
        self._unseen -= 1
        if self._stand_ins:
            self._free(self._stand_ins.take_oldest())

    def _begin_stand_in(self, size: int) -> None:
        self._stood_in += 1
        self._stand_ins.add(self._begin(MALLOC, size))

    def _rise_to(self, peak: int) -> None:
        """Begin placeholder objects until `peak` bytes are live, as they once were between calls that are missing."""
        if peak <= self.peak_bytes:
            return
        more, without = peak - self._bytes, self._peak_without_stand_ins
        objects = max(min(more // max(self._mean_size, 1), self._losses[-1][0], _MOST_STAND_INS), -(-more // MAX_SIZE))
        begun = [self._begin(MALLOC, (peak - self._bytes) // remaining) for remaining in range(max(objects, 1), 0, -1)]
        self._stood_in += len(begun)
        for known in begun:
            self._free(known)
        self._peak_without_stand_ins = without

    def _keep_below(self, more: int) -> None:
        """Before so many bytes more live: free what did not live, where more than the log says would."""
        if self.most is not None and self._bytes + more > self.most:
            self._owed_bytes = min(self._owed_bytes, self.most - self._bytes - more)
            self._settle()

    def _settle(self) -> None:
        """Let as many objects and bytes live as the log says, up to a part of the peak that does not matter."""
        slack = self.peak_bytes >> _SLACK_BITS
        while self._owed_objects < 0 and self._owed_bytes < 0 and self._stand_ins:
            self._end_stand_in(max(self._owed_bytes // self._owed_objects, 0))
        while self._owed_bytes < -slack and self._stand_ins.nearest(-self._owed_bytes) * 2 >= -self._owed_bytes:
            self._end_stand_in(-self._owed_bytes)
        if self._owed_bytes < -slack:
            objects, size = self._give_up(max(-self._owed_objects, 1), -self._owed_bytes)
            self._owed_objects += objects
            self._owed_bytes += size
        while self._owed_bytes < -slack and self._stand_ins:
            self._end_stand_in(-self._owed_bytes)
        least = max(self._mean_size >> _LEAST_BITS, 1)  # smaller ones would stand for what lives under another name
        for remaining in range(min(self._owed_objects, self._owed_bytes // least, _MOST_STAND_INS), 0, -1):
            self._stand_for(self._owed_bytes // remaining)
        if self._owed_bytes > slack and self._stand_ins:
            known = self._stand_ins.take_nearest(self._owed_bytes)
            self._owed_bytes += size_of(known)
            self._free(known)
        if self._owed_bytes > slack:
            self._stand_for(self._owed_bytes)
        self._owed_objects = max(self._owed_objects, 0)

    def _stand_for(self, size: int) -> None:
        size = min(size, MAX_SIZE)
        self._owed_objects -= 1
        self._owed_bytes -= size
        self._begin_stand_in(size)

    def _end_stand_in(self, size: int) -> None:
        known = self._stand_ins.take_nearest(size)
        self._owed_objects += 1
        self._owed_bytes += size_of(known)
        self._free(known)

    def _give_up(self, objects: int, size: int) -> tuple[int, int]:
        """Free about so many objects of so many bytes whose frees are missing, the youngest; returns how many of each.

        The last is the one whose size comes nearest to what is left.
        """
        remaining = size
        chosen: list[int] = []
        fitting = ((address, known) for address, known in self._live.youngest())
        for address, known in islice(fitting, _MOST_STAND_INS):
            if len(chosen) >= objects - 1:
                break
            if size_of(known) <= remaining:
                chosen.append(address)
                remaining -= size_of(known)
        taken = [(address, self._live.take(address) or 0) for address in chosen]
        if objects:
            rest = self._live.youngest()
            last = min(rest, key=lambda item: abs(size_of(item[1]) - remaining), default=None)
            if last is not None:
                taken.append((last[0], self._live.take(last[0]) or 0))
        for address, known in taken:
            self._given_up[address] = size_of(known)
            self._free(known)
        return len(taken), sum(size_of(known) for _, known in taken)

    def _begin(self, op: int, size: int) -> int:
        """Note a new object; returns its number << 32 | size."""
        number = self._born
        self._born += 1
        self._objects += 1
        if self._objects > self.peak_objects:
            self.peak_objects = self._objects
        self._add(op, number, size, size)
        return number << 32 | size

    def _free(self, known: int) -> None:
        if known != LEFT_OUT:
            self._objects -= 1
            self._add(FREE, known >> 32, 0, -(known & 0xFFFFFFFF))

    def _add(self, op: int, number: int, size: int, more: int) -> None:
        self._bytes += more
        if self._bytes > self.peak_bytes:
            self.peak_bytes = self._bytes
        if self._losses and self._bytes - self._stand_ins.bytes > self._peak_without_stand_ins:
            self._peak_without_stand_ins = self._bytes - self._stand_ins.bytes
        if self._ended_bytes and self._bytes + self._ended_bytes > self._peak_without_ending:
            self._peak_without_ending = self._bytes + self._ended_bytes
        self._append(op, number, size)

    def _append(self, op: int, number: int, size: int) -> None:
        self._ops.append(op)
        self._ids.append(number)
        self._sizes.append(size)
        self._times.append(self.now_ns if self.now_ns < _LATEST_NS else _LATEST_NS)
        if len(self._ops) == _WINDOW:
            self.flush()

    def flush(self) -> None:
        """Hand on the calls that have come since the last time."""
        rows = len(self._ops)
        columns: Columns = {
            "ts_us": self._microseconds(),
            "tid": self._threads.column(rows, np.uint16),
            "op": np.array(self._ops, np.uint8),
            "id": np.array(self._ids, np.uint32),
            "size": np.array(self._sizes, np.uint32),
            "align": self._aligns.column(rows, np.uint32),
            "failed": self._failed.column(rows, np.uint8),
        }
        sites = self._sites.column(rows, np.uint32)
        if len(self._site_numbers) > 1:
            columns["site"] = sites
        del self._ops[:], self._ids[:], self._sizes[:], self._times[:]
        self._rows_before += rows
        self._rows.add(columns)
        if self.follower is not None and rows:
            self.follower(columns)

    def _microseconds(self) -> NDArray[np.int64]:
        """Times since the first that is known, -1 before it; they never decrease."""
        times = np.array(self._times, np.int64)
        begin = 0
        if self._first_ns is None:
            known = times >= 0
            if not known.any():
                return np.full(len(times), -1)
            begin = int(known.argmax())
            self._first_ns = self._latest_ns = int(times[begin])
        rest = times[begin:]
        np.maximum.accumulate(np.maximum(rest, self._latest_ns), out=rest)
        self._latest_ns = int(rest[-1]) if len(rest) else self._latest_ns
        rest -= self._first_ns
        rest //= 1000
        return times


class _Changes:
    """A column that seldom changes: from which row of a window on it has which value."""

    def __init__(self) -> None:
        self._rows, self._values = array("Q"), array("I")
        self._before = 0

    def put(self, row: int, value: int) -> None:
        self._rows.append(row)
        self._values.append(value)

    def column(self, rows: int, dtype: type) -> NDArray[Any]:
        """All rows of the window that ends now; the next begins with the last value."""
        begins = np.array([0, *self._rows, rows], np.int64)
        values: NDArray[Any] = np.array([self._before, *self._values], dtype)
        self._before = int(values[-1])
        del self._rows[:], self._values[:]
        column: NDArray[Any] = np.repeat(values, begins[1:] - begins[:-1])
        return column
