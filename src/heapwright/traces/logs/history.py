"""Calls on addresses, in the order of a log, become calls on objects: the columns of a trace."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, MAX_SIZE, REALLOC

_LARGEST = (1 << 32) - 1


class History:
    """What a log tells, call by call; O(1) each, and some 17 bytes.

    Attributes:
        now_ns: time of the calls that follow in nanoseconds, from any origin; -1 where the log has none.
        caveats: what the log cannot tell, in words; readers add to it.
        skipped: lines or records that should have been a call and were none.
    """

    def __init__(self) -> None:
        self.now_ns = -1
        self.caveats: list[str] = []
        self.skipped = 0
        self._ops, self._ids, self._sizes, self._times = array("B"), array("I"), array("I"), array("q")
        self._threads, self._sites, self._aligns = _Changes(), _Changes(), _Changes()
        self._live: dict[int, int] = {}
        self._born = 0
        self._thread: object = None
        self._site = ""
        self._thread_numbers: dict[object, int] = {}
        self._site_numbers = {"": 0}
        self._unknown_frees = self._adopted = self._unseen_frees = 0

    def __len__(self) -> int:
        return len(self._ops)

    def set_thread(self, thread: object) -> None:
        """Say whose the calls that follow are; anything that tells threads apart."""
        if thread != self._thread:
            self._thread = thread
            number = self._thread_numbers.setdefault(thread, len(self._thread_numbers))
            self._threads.put(len(self), number & 0xFFFF)

    def set_site(self, site: str) -> None:
        """Say where in the program the calls that follow are made."""
        if site != self._site:
            self._site = site
            self._sites.put(len(self), self._site_numbers.setdefault(site, len(self._site_numbers)))

    def allocate(self, pointer: int, size: int, *, cleared: bool = False, align: int = 0) -> None:
        """Note a malloc or, `cleared`, a calloc that returned `pointer`, 0 where it failed."""
        if not pointer:
            return
        self._given(pointer)
        self._live[pointer] = self._born
        if 0 < align <= MAX_SIZE:
            self._aligns.put(len(self), align)
            self._aligns.put(len(self) + 1, 0)
        self._add(CALLOC if cleared else MALLOC, self._born, size)
        self._born += 1

    def release(self, pointer: int) -> None:
        """Note a free; nothing where `pointer` is 0."""
        number = self._live.pop(pointer, None)
        if number is not None:
            self._add(FREE, number, 0)
        elif pointer:
            self._unknown_frees += 1

    def resize(self, old: int, pointer: int, size: int) -> None:
        """Note a realloc of `old` that returned `pointer`."""
        self.end_resize(old, self.begin_resize(old), pointer, size)

    def begin_resize(self, old: int) -> int | None:
        """Take the address from its object while a realloc runs; returns what `end_resize` needs."""
        return self._live.pop(old, None)

    def end_resize(self, old: int, number: int | None, pointer: int, size: int) -> None:
        """Give the object of `begin_resize` its new address; 0 where the realloc failed, or freed it."""
        if not pointer and number is not None:
            if size:
                self._live.setdefault(old, number)
            else:
                self._add(FREE, number, 0)
        elif pointer and number is None:
            self._adopted += bool(old)
            self.allocate(pointer, size)
        elif pointer and number is not None:
            self._given(pointer)
            self._live[pointer] = number
            self._add(REALLOC, number, size)

    def end(self) -> None:
        """Free what is still alive, for logs that know that it was freed but not when."""
        for pointer in list(self._live):
            self.release(pointer)

    @property
    def notes(self) -> list[str]:
        """What was left out or put in, in words."""
        counts = {
            "frees of blocks allocated before the log, left out": self._unknown_frees,
            "blocks allocated before the log, counted from their realloc": self._adopted,
            "frees missing in the log, put where the address was given out again": self._unseen_frees,
            "lines or records that make no sense, left out": self.skipped,
        }
        return [f"{words}: {count}" for words, count in counts.items() if count]

    def trace(self, name: str, metadata: Mapping[str, str]) -> Trace:
        """The trace; raises HeapwrightError where there was no call."""
        columns: dict[str, Any] = {
            "op": np.frombuffer(self._ops, np.uint8),
            "id": np.frombuffer(self._ids, np.uint32),
            "size": np.frombuffer(self._sizes, np.uint32),
            "ts_us": self._microseconds(),
        }
        if len(self._thread_numbers) > 1:
            columns["tid"] = self._threads.column(len(self), np.uint16)
        if len(self._aligns.rows):
            columns["align"] = self._aligns.column(len(self), np.uint32)
        if len(self._site_numbers) > 1:
            columns |= {"site": self._sites.column(len(self), np.uint32), "sites": tuple(self._site_numbers)}
        return Trace.from_columns(**columns, name=name, metadata=metadata, repair=True)

    def _microseconds(self) -> NDArray[np.int64]:
        """Times since the first that is known, -1 before it; in place, for a log may be long."""
        times = np.frombuffer(self._times, np.int64)
        first = int((times >= 0).argmax())
        if times[first] >= 0:
            rest = times[first:]
            np.maximum.accumulate(rest, out=rest)
            rest -= rest[0]
            rest //= 1000
        return times

    def _given(self, pointer: int) -> None:
        """An address is given out: if an object still has it, the log lacks that one's free."""
        number = self._live.pop(pointer, None)
        if number is not None:
            self._unseen_frees += 1
            self._add(FREE, number, 0)

    def _add(self, op: int, number: int, size: int) -> None:
        self._ops.append(op)
        self._ids.append(number)
        self._sizes.append(size if size <= _LARGEST else _LARGEST)
        self._times.append(self.now_ns)


class _Changes:
    """A column that seldom changes: from which row on it has which value."""

    def __init__(self) -> None:
        self.rows, self.values = array("Q"), array("I")

    def put(self, row: int, value: int) -> None:
        self.rows.append(row)
        self.values.append(value)

    def column(self, rows: int, dtype: type) -> NDArray[Any]:
        """All rows; 0 before the first change."""
        begins = np.array([0, *self.rows, rows], np.int64)
        column: NDArray[Any] = np.repeat(np.array([0, *self.values], dtype), begins[1:] - begins[:-1])
        return column
