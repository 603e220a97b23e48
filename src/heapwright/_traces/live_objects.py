"""Who lives: objects followed through the windows of a trace, in memory for those that live alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.calls import Calls, number_objects
from heapwright._traces.validation import CALLOC, FREE, Columns

_OF_BIRTH = ("op", "row", "kept")
"""Columns that a realloc does not change."""


class LiveObjects:
    """The objects that live after the calls taken in so far.

    Attributes:
        born: objects that were born so far.
        rows: calls so far.
        number: uint32, one an object that lives: its number in the order of birth, rising.
        columns: the same objects as calls that allocate them: op and row (int64, of the call) are those of their birth,
            all others, such as size and site, those of their latest request. Empty before the first call.
    """

    def __init__(self) -> None:
        self.born = 0
        self.rows = 0
        self.number = np.empty(0, np.uint32)
        self.columns: Columns = {}

    def __len__(self) -> int:
        return len(self.number)

    def lead(self, window: Columns) -> Columns:
        """The calls that follow, behind an allocation of each object that lives."""
        if not len(self):
            return window
        return {key: np.concatenate([self.columns[key], values]) for key, values in window.items()}

    def follow(self, window: Columns) -> Columns:
        """Take in the calls that follow, which have to be valid; tell of each one's object.

        That is `number` (uint32, in the order of birth), and of its birth the `row`, the `op`, and `kept` where windows
        have such a column. All windows have the same columns. O(calls + living objects).
        """
        window = window | {"row": np.arange(self.rows, self.rows + len(window["op"]))}
        led, carried = self.lead(window), len(self)
        object_, count = number_objects(led["op"], led["id"])
        number = np.concatenate([self.number, np.arange(self.born, self.born + count - carried, dtype=np.uint32)])
        requests = np.flatnonzero(led["op"] != FREE)
        latest = np.empty(count, np.intp)
        latest[object_[requests]] = requests  # of several to one place the last one stays
        birth = np.flatnonzero(led["op"] <= CALLOC)
        lives = np.ones(count, bool)
        lives[object_[led["op"] == FREE]] = False
        self.columns = {key: values[(birth if key in _OF_BIRTH else latest)[lives]] for key, values in led.items()}
        self.number = number[lives]
        self.born += count - carried
        self.rows += len(window["op"])
        of_call = object_[carried:]
        return {"number": number[of_call]} | {key: led[key][birth][of_call] for key in _OF_BIRTH if key in led}


class Totals:
    """What a trace comes to, told by its windows.

    Attributes:
        events: calls.
        peak_bytes, peak_objects: the most live requested bytes, and live objects.
        peak_event: the first call after which the bytes are most, counted from 0.
        first_us, last_us: the first and last known time; -1 where none is.
        living: the objects that live in the end.
    """

    def __init__(self) -> None:
        self.events = 0
        self.peak_bytes = self.peak_objects = self.peak_event = 0
        self.first_us = self.last_us = -1
        self.living = LiveObjects()
        self._threads = np.zeros(1 << 16, bool)

    @property
    def threads(self) -> int:
        """How many threads call."""
        return int(np.count_nonzero(self._threads))

    @property
    def seconds(self) -> float | None:
        """Seconds from the first to the last known time, None where no time is known."""
        return None if self.first_us < 0 else (self.last_us - self.first_us) / 1e6

    def add(self, window: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take in the calls that follow; returns the live bytes after each, and the row of the birth of its object."""
        led, carried = self.living.lead(window), len(self.living)
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
        return live, self.living.follow(window)["row"]
