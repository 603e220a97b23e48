"""Live objects, followed through the windows of a trace in memory that grows only with their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.calls import Calls, number_objects
from heapwright._traces.validation import CALLOC, FREE, Columns

_OF_BIRTH = ("op", "row", "kept")
"""Columns that a realloc does not change."""


class LiveObjects:
    """The live objects after the calls so far.

    Attributes:
        allocated: number of objects allocated so far.
        rows: number of calls so far.
        number: uint32, one for each live object: its number in the order of allocation, ascending.
        columns: the same objects as calls that allocate them: op and row (int64, of the call) are of their allocation,
            all others, such as size and site, of their latest request. Empty before the first call.
    """

    def __init__(self) -> None:
        self.allocated = 0
        self.rows = 0
        self.number = np.empty(0, np.uint32)
        self.columns: Columns = {}

    def __len__(self) -> int:
        return len(self.number)

    def prepend_live(self, window: Columns) -> Columns:
        """The calls of a window behind an allocation of each live object."""
        if not len(self):
            return window
        return {key: np.concatenate([self.columns[key], values]) for key, values in window.items()}

    def advance(self, window: Columns) -> Columns:
        """Process the next calls, which must be valid, and return the object of each.

        The result has the `number` of the object (uint32, in the order of allocation), and of its allocation the `row`,
        the `op`, and `kept` if windows have such a column. All windows have the same columns. O(calls + live objects).
        """
        window = window | {"row": np.arange(self.rows, self.rows + len(window["op"]))}
        led, carried = self.prepend_live(window), len(self)
        object_, count = number_objects(led["op"], led["id"])
        allocated = self.allocated + count - carried
        number = np.concatenate([self.number, np.arange(self.allocated, allocated, dtype=np.uint32)])
        requests = np.flatnonzero(led["op"] != FREE)
        latest = np.empty(count, np.intp)
        latest[object_[requests]] = requests  # of several assignments to one index the last one stays
        birth = np.flatnonzero(led["op"] <= CALLOC)
        lives = np.ones(count, bool)
        lives[object_[led["op"] == FREE]] = False
        self.columns = {key: values[(birth if key in _OF_BIRTH else latest)[lives]] for key, values in led.items()}
        self.number = number[lives]
        self.allocated = allocated
        self.rows += len(window["op"])
        of_call = object_[carried:]
        return {"number": number[of_call]} | {key: led[key][birth][of_call] for key in _OF_BIRTH if key in led}


class Totals:
    """Totals of a trace, summed up window by window.

    Attributes:
        events: calls.
        peak_bytes, peak_objects: the most live requested bytes, and live objects.
        peak_event: the first call after which the bytes are most, counted from 0.
        first_us, last_us: the first and last known time; -1 if there is none.
        living: the objects live in the end.
    """

    def __init__(self) -> None:
        self.events = 0
        self.peak_bytes = self.peak_objects = self.peak_event = 0
        self.first_us = self.last_us = -1
        self.living = LiveObjects()
        self._threads = np.zeros(1 << 16, bool)

    @property
    def threads(self) -> int:
        """Number of threads that call."""
        return int(np.count_nonzero(self._threads))

    @property
    def seconds(self) -> float | None:
        """Seconds from the first to the last known time, None if no time is known."""
        return None if self.first_us < 0 else (self.last_us - self.first_us) / 1e6

    def add(self, window: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Add the next calls; return the live bytes after each, and the row that allocated its object."""
        led, carried = self.living.prepend_live(window), len(self.living)
        live = np.empty(len(led["op"]), np.int64)
        calls = Calls.of(*(led[key] for key in ("op", "id", "size", "align", "ts_us", "tid")))
        calls.largest_live_sum(after=live)
        live = live[carried:]
        if len(live) and live.max() > self.peak_bytes:
            self.peak_event = self.events + int(live.argmax())
            self.peak_bytes = int(live.max())
        self.peak_objects = max(self.peak_objects, calls.slots)
        known = window["ts_us"][window["ts_us"] >= 0]
        if len(known):
            self.first_us = int(known[0]) if self.first_us < 0 else self.first_us
            self.last_us = int(known[-1])
        self._threads[window["tid"]] = True
        self.events += len(window["op"])
        return live, self.living.advance(window)["row"]
