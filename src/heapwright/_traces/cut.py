"""Parts of a trace: a stretch of its calls or of its time, or what some threads, phases or sites allocate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import HeapwrightError, ParameterError, did_you_mean
from heapwright._traces.live_objects import LiveObjects, Totals
from heapwright._traces.patterns import matching
from heapwright._traces.streams import COLUMNS, Stream
from heapwright._traces.validation import FREE, Columns

Place = int | timedelta
"""A number of calls or a time, from the beginning or the end of a trace."""


def cut(
    trace: Stream,
    *,
    first: Place | None = None,
    last: Place | None = None,
    start: Place | None = None,
    stop: Place | None = None,
    threads: Sequence[int] = (),
    phases: Sequence[str] = (),
    sites: Sequence[str] = (),
    live: bool = False,
    close: bool = True,
) -> Stream:
    """Return a part of a trace, or all of it if the part is longer.

    Args:
        trace: the whole.
        first, last: how many calls, or how long a time.
        start, stop: from which call on, counted from 0, or from which time, and before which; without `first` and
            `last`.
        threads, phases, sites: keep the objects that are allocated there, with all their calls; none stands for all. In
            the name of a site ``*`` stands for any letters.
        live: begin with allocations of the objects of these threads and sites that are live when the part begins, at
            their sizes then; else calls on these objects are left out.
        close: free what is live at the end, in order of birth and at the time of the last call; else it stays live.

    The name is the trace's with ``~first``, ``~last`` or ``~part``; the metadata is the trace's and ``cut_of``, its
    name, ``cut_calls``, such as ``4000-7999``, counted from 0, ``cut_threads``, ``cut_phases``, ``cut_sites`` if
    these are given, and ``inherited``, the number of first calls that allocate objects of `live`. Times start at 0.
    O(calls).

    Raises HeapwrightError if no call is left, if the trace has no such thread, phase or site, or if a time is given for
    a trace without times; some of these only when the windows are read.
    """
    if sum((first is not None, last is not None, start is not None or stop is not None)) > 1:
        raise HeapwrightError("cut: give either first or last, or start and stop")
    if all(item is None for item in (first, last, start, stop)) and not (threads or phases or sites):
        raise HeapwrightError("cut: give either first or last, start or stop, or threads, phases or sites")
    stretch = _Stretch(first=first, last=last, start=start, stop=stop)
    stretch.check()
    places = _Places(
        threads=np.array(sorted(set(threads))),
        phases=_indices(trace.phases, phases, "phases"),
        sites=_indices(trace.sites, sites, "sites"),
    )
    end = "first" if first is not None else "last" if last is not None else "part"
    metadata = {key: value for key, value in trace.metadata.items() if key != "inherited"}
    metadata |= {"cut_of": trace.name}
    for key, names in (("threads", map(str, threads)), ("phases", phases), ("sites", sites)):
        if text := "\n".join(names):
            metadata[f"cut_{key}"] = text

    def windows() -> Iterator[Columns]:
        part = _Part(trace, stretch.bounds(trace), places, live, close, metadata)
        return part.windows()

    return Stream(
        f"{trace.name}~{end}",
        windows,
        phases=trace.phases,
        sites=trace.sites,
        metadata=metadata,
        repairs=trace.repairs,
    )


@dataclass(frozen=True)
class _Stretch:
    """The calls of a part, in the terms of the caller."""

    first: Place | None = None
    last: Place | None = None
    start: Place | None = None
    stop: Place | None = None

    def check(self) -> None:
        for name, place in vars(self).items():
            least = 0 if name in ("start", "stop") else 1
            if isinstance(place, int) and place < least:
                raise ParameterError(f"{place} calls; must be {least} or more", parameter=name)
            if isinstance(place, timedelta) and place < timedelta(0):
                raise ParameterError(f"{place.total_seconds():g} s; must be 0 or more", parameter=name)

    def bounds(self, trace: Stream) -> _Bounds:
        """Bounds counted from the beginning of the trace, which is read to its end only if that matters."""
        if self.first is not None:
            return _Bounds(stop=self.first, includes_stop=isinstance(self.first, timedelta), parameter="first")
        if self.last is None:
            return _Bounds(self.start or 0, self.stop)
        totals = Totals()
        for window in trace.windows():
            totals.add(window)
        if isinstance(self.last, int):
            return _Bounds(max(0, totals.events - self.last))
        whole = timedelta(microseconds=totals.last_us - totals.first_us)
        return _Bounds(max(timedelta(0), whole - self.last), parameter="last")


@dataclass(frozen=True)
class _Bounds:
    """The first call or time of a part, and the one that ends it."""

    start: Place = 0
    stop: Place | None = None
    includes_stop: bool = False
    parameter: str | None = None
    """The parameter that set the bounds, if it was neither start nor stop."""

    @property
    def in_time(self) -> str | None:
        """The parameter that is a time; None if all are counts."""
        named = next((name for name in ("start", "stop") if isinstance(getattr(self, name), timedelta)), None)
        return named and (self.parameter or named)

    def inside(self, row: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the calls are; their numbers and their times since the first."""
        after = time >= _microseconds(self.start) if isinstance(self.start, timedelta) else row >= self.start
        if self.stop is None:
            return after
        if not isinstance(self.stop, timedelta):
            return after & (row < self.stop)
        stop = _microseconds(self.stop) + self.includes_stop
        return after & (time < stop)


@dataclass(frozen=True)
class _Places:
    """Threads, phases and sites whose objects are kept; None or nothing means all."""

    threads: NDArray[np.int64]
    phases: NDArray[np.intp] | None
    sites: NDArray[np.intp] | None

    @property
    def anywhere(self) -> bool:
        """Whether no place is named."""
        return not len(self.threads) and self.phases is None and self.sites is None

    def chosen(self, calls: Columns) -> NDArray[np.bool_]:
        """Which of the calls are made in one of the threads and at one of the sites."""
        chosen = np.ones(len(calls["op"]), bool)
        if len(self.threads):
            chosen &= np.isin(calls["tid"], self.threads)
        return chosen if self.sites is None else chosen & np.isin(calls["site"], self.sites)

    def in_phase(self, calls: Columns) -> NDArray[np.bool_]:
        """Which of the calls are made in one of the phases."""
        return np.ones(len(calls["op"]), bool) if self.phases is None else np.isin(calls["phase"], self.phases)


@dataclass
class _Part:
    """One way through the trace."""

    trace: Stream
    bounds: _Bounds
    places: _Places
    live: bool
    close: bool
    metadata: dict[str, str]
    living: LiveObjects = field(default_factory=LiveObjects)
    begun: bool = False
    since: int | None = None
    """The time at which the part begins, in microseconds; None before it is known."""
    last: Columns | None = None
    """The latest call that is kept."""

    def windows(self) -> Iterator[Columns]:
        first_us: int | None = None
        inside_rows: tuple[int, int] | None = None
        for window in self.trace.windows():
            if self.bounds.in_time and (window["ts_us"] < 0).any():
                raise HeapwrightError(
                    f"{self.trace.name}: some calls have no time; give a number of calls", parameter=self.bounds.in_time
                )
            first_us = int(window["ts_us"][0]) if first_us is None else first_us
            row = np.arange(self.living.rows, self.living.rows + len(window["op"]))
            inside = self.bounds.inside(row, window["ts_us"] - first_us)
            of_part = np.flatnonzero(inside)
            if len(of_part):
                low = int(row[of_part[0]]) if inside_rows is None else inside_rows[0]
                inside_rows = low, int(row[of_part[-1]])
            ends = inside_rows is not None and not inside[-1]
            if ends:  # calls after the part must not change the live objects
                length = int(of_part[-1]) + 1 if len(of_part) else 0
                window, inside = {key: values[:length] for key, values in window.items()}, inside[:length]
            yield from self._kept(window, inside)
            if ends:
                break
        self._note_rows(inside_rows)
        if self.close:
            yield from self._closing()

    def _kept(self, window: Columns, inside: NDArray[np.bool_]) -> Iterator[Columns]:
        """The calls of a window that belong to the part; a window is split at the begin of the part."""
        in_phase = self.places.in_phase(window)
        if not self.begun and (begins := np.flatnonzero(inside & in_phase)).size:
            self.begun, at = True, int(begins[0])
            before = {key: values[:at] for key, values in window.items()} | {"kept": np.zeros(at, bool)}
            self.living.advance(before)
            if self.live:
                yield from self._alive(int(window["ts_us"][at]))
            window = {key: values[at:] for key, values in window.items()}
            inside, in_phase = inside[at:], in_phase[at:]
        births = inside & in_phase & self.places.chosen(window)
        object_ = self.living.advance(window | {"kept": births})
        kept = inside & object_["kept"]
        if kept.any():
            yield self._from_0({key: values[kept] for key, values in (window | {"id": object_["number"]}).items()})

    def _alive(self, now: int) -> Iterator[Columns]:
        """Allocations of the objects that are live when the part begins, at `now` in microseconds, -1 if unknown."""
        alive = self.living.columns
        if not len(self.living):
            return
        alive["kept"] = self.places.chosen(alive)
        if alive["kept"].any():
            self.metadata["inherited"] = str(np.count_nonzero(alive["kept"]))
            calls = alive | {"id": self.living.number, "ts_us": np.full(len(self.living), now)}
            yield self._from_0({key: calls[key][alive["kept"]] for key in COLUMNS})

    def _closing(self) -> Iterator[Columns]:
        """Frees of the objects live at the end, with the thread, phase, site and time of the last call."""
        kept = self.living.columns["kept"]
        count = np.count_nonzero(kept)
        if not count:
            return
        assert self.last is not None
        frees = {key: np.repeat(values, count) for key, values in self.last.items()}
        op, none = np.full(count, FREE, np.uint8), np.zeros(count, np.uint32)
        yield frees | {
            "op": op,
            "id": self.living.number[kept],
            "size": none,
            "align": none,
            "low": none.astype(np.uint8),
            "failed": none.astype(np.uint8),
        }

    def _from_0(self, calls: Columns) -> Columns:
        """The calls at times that begin with the part."""
        time = calls["ts_us"]
        if self.since is None and (known := time[time >= 0]).size:
            self.since = int(known[0])
        calls["ts_us"] = np.where(time >= 0, time - (self.since or 0), -1)
        self.last = {key: values[-1:] for key, values in calls.items()}
        return calls

    def _note_rows(self, rows: tuple[int, int] | None) -> None:
        """Note the range of calls in the metadata; raise HeapwrightError if no call is left."""
        name = self.trace.name
        if rows is None:
            raise HeapwrightError(f"{name}: it has {self.living.rows:,} calls, none of which is in this part")
        if self.last is None and self.places.anywhere:
            raise HeapwrightError(f"{name}: calls {rows[0]} to {rows[1]} all use objects allocated earlier; take more")
        if self.last is None:
            raise HeapwrightError(f"{name}: calls {rows[0]} to {rows[1]}: nothing is allocated there; take others")
        self.metadata["cut_calls"] = f"{rows[0]}-{rows[1]}"


def _microseconds(time: timedelta) -> int:
    return time // timedelta(microseconds=1)


def _indices(names: Sequence[str], wanted: Sequence[str], parameter: str) -> NDArray[np.intp] | None:
    """The indices of the wanted names, in which ``*`` stands for any letters; None if no name is wanted."""
    if not wanted:
        return None
    results: set[int] = set()
    for item in wanted:
        matches = matching(item, names)
        if not matches:
            valid = [name for name in names if name]
            hint = did_you_mean(item, valid) if valid else "the trace names none"
            raise HeapwrightError(f"{item}: not among the trace's {parameter}; {hint}")
        results.update(matches)
    return np.array(sorted(results))
