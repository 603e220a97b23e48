"""The raw file that the recorder leaves of a process (``recorder/raw_format.h``), read a window at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright._traces.history import RECORD, allocations
from heapwright._traces.sites import Module

_MAGIC = b"HWRAW03"
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("pointer_bytes", "u4"),
        ("record_bytes", "u4"),
        ("pid", "u4"),
        ("stopped", "i4"),
        ("started_ns", "u8"),
        ("started_ticks", "u8"),
        ("forked_ticks", "u8"),
        ("limit", "u8"),
        ("noted_ns", "u8"),
        ("noted_ticks", "u8"),
        ("end", "u8"),
        ("growing_ns", "u8"),
        ("processor_ns", "u8"),
        ("forked_from", "S48"),
        ("called", "S256"),
        ("title", "S256"),
        ("program", "S512"),
    ]
)
_MODULE = np.dtype([("begin", "u8"), ("end", "u8"), ("bias", "u8"), ("path", "S232")])
_PLACE = np.dtype([("what", "u8"), ("more", "u8")])
_RUN = np.dtype([("place", "i8"), ("thread", "u4"), ("ticks", "u8")])
_WINDOW = 1 << 16
_LATEST_NS = 1 << 61  # 73 years
_NO_CALLS = [lib.RAW_REALLOC_BEGIN, lib.RAW_REALLOC_FAILED]

Ticks = NDArray[np.uint64]


@dataclass(frozen=True)
class Window:
    """Some records in the order of events, which come after those of the windows before.

    Attributes:
        ticks: uint64, when each was, in the recorder's own unit.
        records: `RECORD`, without the empty ones.
        costs: uint64, nanoseconds, of the samples that were taken meanwhile.
    """

    ticks: Ticks
    records: NDArray[Any]
    costs: NDArray[np.uint64]


class RawFile:
    """What one process image left.

    Attributes:
        path: the file.
        allocations: records that gave out an address.
        ended: a limit of calls ended the records that `windows` gave.
    """

    def __init__(self, path: Path, header: Any) -> None:
        self.path = path
        self._header = header
        end = min(int(header["end"]), path.stat().st_size)
        self._places = max(0, end - lib.RAW_RECORDS_AT) // _PLACE.itemsize
        self.allocations = 0
        self.ended = False
        runs = [np.zeros(0, _RUN)]
        clock = (int(header["noted_ticks"]), int(header["noted_ns"]))
        for at in range(0, self._places, _WINDOW):
            places = self._read(at, min(self._places, at + _WINDOW))
            what = places["what"]
            self.allocations += allocations((what & 7).astype(np.uint8))
            begins = np.flatnonzero((what[:-1] & 255 == lib.RAW_RUN) & (what[1:] & 255 == lib.RAW_CLOCK))
            result = np.zeros(len(begins), _RUN)
            result["place"], result["thread"] = at + begins, what[begins] >> 8
            result["ticks"] = places["more"][begins + 1]
            runs.append(result)
            if len(begins):
                latest = begins[np.argmax(result["ticks"])] + 1
                clock = max(clock, (int(places["more"][latest]), int(what[latest] >> 8)))
        self._runs = np.concatenate(runs)
        self._runs = self._runs[self._runs["thread"] < len(self._runs)]  # a damaged file may name any thread
        passed = clock[0] - int(header["started_ticks"])
        self._ns_a_tick = clock[1] / passed if passed > 0 else 1.0

    @classmethod
    def open(cls, path: Path) -> RawFile | None:
        """The file at a path; None where it is no raw file, one of another version, or its header is damaged."""
        headers = np.fromfile(path, _HEADER, count=1)
        if not len(headers) or headers[0]["magic"] != _MAGIC or headers[0]["record_bytes"] != _PLACE.itemsize:
            return None
        if any(headers[0][field] > _LATEST_NS for field in ("started_ns", "noted_ns", "end", "growing_ns")):
            return None
        return cls(path, headers[0])

    @property
    def threads(self) -> int:
        """How many threads made calls, at most."""
        return int(self._runs["thread"].max(initial=0)) + 1

    def modules(self) -> list[Module]:
        """The executable and the libraries that made calls, where sites were recorded."""
        if int(self._header["end"]) <= lib.RAW_RECORDS_AT:
            return []
        result = np.fromfile(self.path, _MODULE, count=lib.RAW_MODULES, offset=lib.RAW_MODULES_AT)
        return [
            Module(int(begin), int(end), int(bias), Path(os.fsdecode(path.partition(b"\0")[0])))
            for begin, end, bias, path in result[result["end"] > 0]
        ]

    def number(self, field: str) -> int:
        """A number of the header."""
        return int(self._header[field])

    def text(self, field: str) -> str:
        """A text of the header."""
        return bytes(self._header[field]).partition(b"\0")[0].decode(errors="replace").strip()

    def windows(self) -> Iterator[Window]:
        """Give all records in the order of events, up to the limit of calls.

        Where that ended them, `ended` is true afterwards.
        """
        remaining = self.number("limit") or None
        for window in self._all_windows():
            if remaining is not None:
                done = np.cumsum(~np.isin(window.records["kind"], _NO_CALLS))
                keep = int(np.searchsorted(done, remaining))
                if keep < len(done):
                    self.ended = True
                    yield Window(window.ticks[: keep + 1], window.records[: keep + 1], window.costs)
                    return
                remaining -= int(done[-1]) if len(done) else 0
            yield window

    def _all_windows(self) -> Iterator[Window]:
        """Give all records in the order of events.

        A thread may take as long as it likes to fill a run. So what comes after the begin of a run that is not read
        yet is held back: at most one run of each thread.
        """
        runs = self._runs
        later = np.minimum.accumulate(runs["ticks"][::-1])[::-1]  # the earliest that this run or one after it holds
        held = Window(np.zeros(0, np.uint64), np.zeros(0, RECORD), np.zeros(0, np.uint64))
        first = 0
        while first < len(runs):
            stop = max(first + 1, int(np.searchsorted(runs["place"], runs["place"][first] + _WINDOW)))
            end = int(runs["place"][stop]) if stop < len(runs) else self._places
            window = self._decoded(self._read(int(runs["place"][first]), end), runs[first:stop])
            ticks = np.concatenate([held.ticks, window.ticks])
            records = np.concatenate([held.records, window.records])
            if np.any(ticks[1:] < ticks[:-1]):
                order = np.argsort(ticks, kind="stable")
                ticks, records = ticks[order], records[order]
            known = int(np.searchsorted(ticks, later[stop])) if stop < len(runs) else len(ticks)
            held = Window(ticks[known:], records[known:], window.costs[:0])
            yield Window(ticks[:known], records[:known], window.costs)
            first = stop

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        at = lib.RAW_RECORDS_AT + start * _PLACE.itemsize
        return np.fromfile(self.path, _PLACE, count=stop - start, offset=at)

    def _decoded(self, places: NDArray[Any], runs: NDArray[Any]) -> Window:
        """What stands in whole runs, in their order."""
        what, more = places["what"], places["more"]
        noted = np.where(what & 7 == 0, what & 255, 0)
        site = np.zeros(len(what) + 2, np.uint64)
        sited = np.flatnonzero(noted == lib.RAW_SITE)
        site[sited + 1 + (noted[np.minimum(sited + 1, len(what) - 1)] == lib.RAW_ALIGN)] = more[sited]
        align = np.zeros(len(what) + 1, np.uint8)
        aligned = np.flatnonzero(noted == lib.RAW_ALIGN)
        align[aligned + 1] = what[aligned] >> 8
        costs = what[noted == lib.RAW_COST] >> np.uint64(8)

        at = np.flatnonzero((what & 7 != 0) | (noted == lib.RAW_CLOCK))
        what, more, is_clock = what[at], more[at], noted[at] == lib.RAW_CLOCK
        low = np.where(is_clock, more, more >> np.uint64(32)).astype(np.uint32)
        since_first = np.concatenate([[0], np.cumsum((low[1:] - low[:-1]).view(np.int32), dtype=np.int64)])
        clock = np.flatnonzero(is_clock)[np.cumsum(is_clock) - 1]
        ticks = more[clock] + (since_first - since_first[clock]).view(np.uint64)
        run = np.searchsorted(runs["place"] - runs["place"][0], at, side="right") - 1
        # A handler that came between a call's look at the clock and its record may have begun the run.
        ticks = np.maximum(ticks, runs["ticks"][run])

        calls = np.flatnonzero(~is_clock)
        what, ticks = what[calls], ticks[calls]
        records = np.zeros(len(calls), RECORD)
        passed = (ticks - np.uint64(self.number("started_ticks"))).view(np.int64) * self._ns_a_tick
        records["time_ns"] = self.number("started_ns") + np.clip(passed, 0, _LATEST_NS).astype(np.int64)
        records["pointer"] = what & ~np.uint64(7)
        records["size"] = more[calls] & np.uint64(0xFFFFFFFF)
        records["thread"] = runs["thread"][run[calls]]
        records["align_log2"] = align[at[calls]]
        records["kind"] = what & 7
        records["site"] = site[at[calls]]
        return Window(ticks, records, costs)
