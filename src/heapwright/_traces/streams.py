"""Traces of any length: read a window at a time, changed on the way, and kept in memory or written in parts.

A `Stream` takes memory for a window and for the live objects, not for all calls. `Stream.of` reads a file or a `Trace`,
functions derive other streams from it, and `trace`, `write` and `totals` consume it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heapwright._support.errors import HeapwrightError
from heapwright._traces.live_objects import LiveObjects, Totals
from heapwright._traces.tables import WINDOW, reading, writing_to
from heapwright._traces.trace import Trace, check_version
from heapwright._traces.validation import (
    LABEL_TYPES,
    OPTIONAL,
    REQUIRED,
    Columns,
    PrecedingCalls,
    check_labels,
    in_words,
    validated,
)

COLUMNS = {**REQUIRED, **OPTIONAL, **LABEL_TYPES}
"""The columns of every window, with their types."""

Windows = Callable[[], Iterator[Columns]]


@dataclass(frozen=True)
class Written:
    """A trace that was written a window at a time.

    Attributes:
        path: the file.
        events: calls in it.
        requested_peak_bytes: largest sum of live requested bytes.
        live_objects_peak: largest number of live objects.
        metadata: the file's key-value metadata.
        repairs: what reading its sources dropped or changed, in words.
    """

    path: Path
    events: int
    requested_peak_bytes: int
    live_objects_peak: int
    metadata: dict[str, str]
    repairs: tuple[str, ...]


class Stream:
    """A trace as windows of its columns (`COLUMNS`, valid), which can be iterated more than once.

    Attributes:
        name: what reports call the trace.
        phases, sites: the names that the columns phase and site point into.
        metadata: text to text; complete after an iteration of the windows.
        repairs: what reading dropped or changed, in words; complete after an iteration of the windows.
    """

    def __init__(
        self,
        name: str,
        windows: Windows,
        *,
        phases: Sequence[str] = ("",),
        sites: Sequence[str] = ("",),
        metadata: dict[str, str] | None = None,
        repairs: list[str] | None = None,
    ) -> None:
        self.name = name
        self.windows = windows
        self.phases, self.sites = tuple(phases), tuple(sites)
        self.metadata = {} if metadata is None else metadata
        self.repairs = [] if repairs is None else repairs

    @classmethod
    def of(cls, trace: Trace | str | os.PathLike[str], repair: bool = False) -> Stream:
        """The windows of a trace. Raises HeapwrightError as `Trace.read`, for a faulty row when it is reached."""
        if not isinstance(trace, Trace):
            return _of_file(Path(trace), repair)

        def windows() -> Iterator[Columns]:
            for start in range(0, len(trace), WINDOW):
                yield {key: getattr(trace, key)[start : start + WINDOW] for key in COLUMNS}

        repairs = [f"{trace.path or trace.name}: {item}" for item in trace.repairs]
        labels = {"phases": trace.phases, "sites": trace.sites}
        return cls(trace.name, windows, **labels, metadata=dict(trace.metadata), repairs=repairs)

    def trace(self) -> Trace:
        """The whole trace, in memory. Raises HeapwrightError if there is no call."""
        parts = list(self.windows())
        columns: dict[str, Any] = {
            key: np.concatenate([window[key] for window in parts] or [np.empty(0, dtype)])
            for key, dtype in COLUMNS.items()
        }
        return Trace.from_columns(
            **columns, phases=self.phases, sites=self.sites, name=self.name, metadata=self.metadata
        )

    def write(self, path: str | os.PathLike[str]) -> Written:
        """Write it as Parquet, all of it or nothing; raises HeapwrightError as `Trace.write`, or without a call."""
        path, totals = Path(path), Totals()
        with writing_to(path, {"phase": self.phases, "site": self.sites}) as table:
            for window in self.windows():
                totals.add(window)
                table.add(window)
            check_version(self.metadata, str(path))
            table.write(path, self.metadata)
        repairs = tuple(self.repairs)
        return Written(path, totals.events, totals.peak_bytes, totals.peak_objects, dict(self.metadata), repairs)

    def totals(self) -> Totals:
        """The totals of the trace."""
        totals = Totals()
        for window in self.windows():
            totals.add(window)
        return totals

    def alive_after(self, event: int) -> Columns:
        """The objects live after a call, counted from 0: their columns, as in `LiveObjects`."""
        living = LiveObjects()
        for window in self.windows():
            living.advance({key: values[: event + 1 - living.rows] for key, values in window.items()})
            if living.rows > event:
                break
        return living.columns


def _of_file(path: Path, repair: bool) -> Stream:
    with reading(path) as table:
        names, metadata, rows = table.names, table.metadata, table.rows
    check_version(metadata, str(path))
    check_labels({}, names, str(path))
    if not rows:
        raise HeapwrightError(f"{path}: no calls; a trace has at least one row")
    repairs: list[str] = []

    def windows() -> Iterator[Columns]:
        living, latest, read = LiveObjects(), -1, 0
        counts: dict[str, int] = {}
        with reading(path) as table:
            for raw in table.windows():
                born = living.columns.get("row", np.empty(0, np.int64))
                ids = living.columns.get("id", np.empty(0, np.uint32))
                window, result = validated(raw, str(path), repair, PrecedingCalls(read, ids, born, latest))
                read += len(raw["op"])
                latest = max(latest, int(window["ts_us"].max(initial=-1)))
                living.advance({key: window[key] for key in ("op", "id")})
                for words, count in result.items():
                    counts[words] = counts.get(words, 0) + count
                repairs[:] = [f"{path}: {item}" for item in in_words(counts)]
                if len(window["op"]):
                    yield window

    return Stream(path.stem, windows, phases=names["phase"], sites=names["site"], metadata=metadata, repairs=repairs)
