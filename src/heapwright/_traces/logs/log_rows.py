"""The rows of a trace as the calls of a log become them, with times, threads and sites."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._traces.logs.changes import Changes
from heapwright._traces.logs.scanner import Scanner
from heapwright._traces.tables import TableWriter
from heapwright._traces.trace import Trace
from heapwright._traces.validation import Columns

LATEST_NS = 1 << 62
"""Later times count as this."""


class LogRows:
    """The rows of the calls of a log.

    Attributes:
        now_ns: time of the next calls in nanoseconds, from any origin; -1 if the log has none.
        follower: receives the calls, a window at a time and whenever `flush` is called; None for no follower.
    """

    follower: Callable[[Columns], None] | None = None

    def __init__(self, folder: Path | None, window: int) -> None:
        """Keep long traces in parts in `folder`, None for in memory; rows are collected a window at a time."""
        self.now_ns = -1
        self._window = window
        self._site_names = [""]
        self._rows = TableWriter(folder, {"site": self._site_names})
        self._rows_before = 0
        self._ops, self._ids, self._sizes, self._times = array("B"), array("I"), array("I"), array("q")
        self._threads, self._sites, self._aligns, self._failed = (Changes() for _ in range(4))
        self._first_ns: int | None = None
        self._latest_ns = 0
        self._thread: object = None
        self._site = ""
        self._thread_numbers: dict[object, int] = {}
        self._site_numbers = {"": 0}
        self._thread_of_name, self._site_of_name = (np.zeros(0, np.int64) for _ in range(2))

    def __len__(self) -> int:
        return self._rows_before + len(self._ops)

    @property
    def site_names(self) -> list[str]:
        """The names that the column site indexes; the list grows while the log is read."""
        return self._site_names

    def set_thread(self, thread: object) -> None:
        """Set the thread of the next calls; `thread` is any identity of a thread."""
        if thread != self._thread:
            self._thread = thread
            number = self._thread_numbers.setdefault(thread, len(self._thread_numbers))
            self._threads.put(len(self._ops), number & 0xFFFF)

    def set_site(self, site: str) -> None:
        """Set the call site of the next calls."""
        if site != self._site:
            self._site = site
            self._sites.put(len(self._ops), self._number_of_site(site))

    def _number_of_site(self, site: str) -> int:
        number = self._site_numbers.setdefault(site, len(self._site_numbers))
        if number == len(self._site_names):
            self._site_names.append(site)
        return number

    def trace(self, name: str, metadata: dict[str, str]) -> Trace:
        """The trace, of a history in memory; raises HeapwrightError if there was no call."""
        self.flush()
        columns: dict[str, Any] = self._rows.columns()
        if "site" in columns:
            columns["sites"] = tuple(self._site_names)
        return Trace.from_columns(**columns, name=name, metadata=metadata)

    def write(self, path: Path, metadata: dict[str, str]) -> None:
        """Write the trace as Parquet; raises HeapwrightError if there was no call."""
        self.flush()
        self._rows.write(path, metadata)

    def _take_rows(self, scanner: Scanner, state: Any) -> None:
        """Append the rows that the engine has made."""
        rows = scanner.rows.arrays
        if len(self._thread_of_name) < scanner.names:
            more = np.full(scanner.names - len(self._thread_of_name), -1)
            self._thread_of_name = np.append(self._thread_of_name, more)
            self._site_of_name = np.append(self._site_of_name, more)
        threads = rows["thread"][: state.threads]
        fresh = threads[self._thread_of_name[threads] < 0].tolist()
        for name in dict.fromkeys(fresh):
            number = self._thread_numbers.setdefault(scanner.thread(name), len(self._thread_numbers))
            self._thread_of_name[name] = number
        sites = rows["site"][: state.sites]
        for name in dict.fromkeys(sites[self._site_of_name[sites] < 0].tolist()):
            self._site_of_name[name] = self._number_of_site(scanner.site(name))
        if state.threads:
            numbers = self._thread_of_name[threads].astype(np.uint32) & np.uint32(0xFFFF)
            self._threads.extend(rows["thread_row"][: state.threads], numbers)
            self._thread = scanner.thread(state.thread)
        if state.sites:
            self._sites.extend(rows["site_row"][: state.sites], self._site_of_name[sites].astype(np.uint32))
            self._site = scanner.site(state.site)
        self._aligns.extend(rows["align_row"][: state.aligns], rows["align"][: state.aligns])
        self._ops.frombytes(rows["op"][: state.rows].tobytes())
        self._ids.frombytes(rows["id"][: state.rows].tobytes())
        self._sizes.frombytes(rows["size"][: state.rows].tobytes())
        self._times.frombytes(rows["now_ns"][: state.rows].tobytes())
        if len(self._ops) == self._window:
            self.flush()

    def _append(self, op: int, number: int, size: int) -> None:
        self._ops.append(op)
        self._ids.append(number)
        self._sizes.append(size)
        self._times.append(self.now_ns if self.now_ns < LATEST_NS else LATEST_NS)
        if len(self._ops) == self._window:
            self.flush()

    def flush(self) -> None:
        """Pass the calls since the last flush to the table and the follower."""
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
        """Times since the first known one, -1 before it; they never decrease."""
        times = np.array(self._times, np.int64)
        begin = 0
        if self._first_ns is None:
            has_time = times >= 0
            if not has_time.any():
                return np.full(len(times), -1)
            begin = int(has_time.argmax())
            self._first_ns = self._latest_ns = int(times[begin])
        rest = times[begin:]
        np.maximum.accumulate(np.maximum(rest, self._latest_ns), out=rest)
        self._latest_ns = int(rest[-1]) if len(rest) else self._latest_ns
        rest -= self._first_ns
        rest //= 1000
        return times
