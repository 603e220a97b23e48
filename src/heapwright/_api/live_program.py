"""A running program, whose heap calls are read as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heapwright._api.arguments import AnyHeap, PathLike, label_of, listed, one_line_errors, recipe_of
from heapwright._recipes.zoo.catalogue import RECOMMENDED
from heapwright._replay.incremental import HeapUsage, RunningHeap, running
from heapwright._support.errors import ParameterError
from heapwright._traces.live_objects_stream import LiveObjectsStream
from heapwright._traces.logs import Imported, elf_of
from heapwright._traces.logs.live import LIVE_FORMATS, follow_log
from heapwright._traces.logs.wire import Wire
from heapwright._traces.validation import Columns

BAUD = 115200


@dataclass(frozen=True)
class Moment:
    """A program's heap at a time.

    Attributes:
        seconds: since it is followed.
        calls: that came so far.
        live_bytes, live_objects: allocated now; bytes are the requested ones.
        peak_bytes, peak_objects: the most of each so far.
        at_peak: the objects at the peak of bytes: sizes in bytes and numbers of objects, most bytes first.
        holders: the call sites that held them, and bytes, most first; none if the log has no sites.
        curve: live bytes along the calls, the most in each of up to 2,049 stretches.
        heaps: what each heap has come to, by the name it was given by.
        repairs: what had to be left out or put in, in words.
        failed: how many requests failed so far, their largest size, and when the latest did, in words; "" for none.
    """

    seconds: float
    calls: int
    live_bytes: int
    live_objects: int
    peak_bytes: int
    peak_objects: int
    at_peak: list[tuple[int, int]]
    holders: list[tuple[str, int]]
    curve: list[int]
    heaps: dict[str, HeapUsage]
    repairs: list[str]
    failed: str = ""


@dataclass(frozen=True)
class FollowedProgram:
    """A log that was followed to its end: the trace that was written of it, and how it stood in the end."""

    trace: Imported
    last: Moment


@one_line_errors
def live(
    source: PathLike,
    output: PathLike,
    heaps: AnyHeap | Sequence[AnyHeap] = RECOMMENDED,
    *,
    arena: int | None = None,
    format: str | None = None,
    baud: int = BAUD,
    elf: PathLike | None = None,
    every: float = 1.0,
    show: Callable[[Moment], None] = lambda moment: None,
    going_on: Callable[[], bool] = lambda: True,
) -> FollowedProgram:
    """Follow a program's heap calls while it runs; a Parquet trace stays, the one that `convert_log` makes of the log.

    What was read is kept in OUTPUT.log until the trace is written. A KeyboardInterrupt while nothing comes ends it.

    Args:
        source: a serial port, a pseudo-terminal, a file that grows, a pipe, HOST:PORT or the path of a socket that
            listens, or "-" for standard input.
        output: the trace.
        heaps: recipes, or their names, that replay the calls as they come.
        arena: bytes of each heap's arena; None for an ample one, 256 MiB.
        format: "text" or "board", None to find it by what comes.
        baud: of a serial port, bits a second.
        elf: the board's program, which names the call sites in the log.
        every: seconds between two moments that are shown, above 0.
        show: is called with them.
        going_on: asked many times a second whether to go on.

    Raises HeapwrightError where there is no such source, no call came, OUTPUT.log is there already, the trace cannot be
    written, or for a heap that is no recipe or that the arena cannot hold.
    """
    if format is not None and format not in LIVE_FORMATS:
        raise ParameterError(f"{format!r} is not followed; valid: {', '.join(LIVE_FORMATS)}", parameter="format")
    with ExitStack() as open_:
        running_heaps = {label_of(heap): open_.enter_context(running(recipe_of(heap), arena)) for heap in listed(heaps)}
        follower = _Follower(running_heaps, show, going_on, every)
        wire = open_.enter_context(Wire(str(source), baud))
        trace = follow_log(wire, Path(output), follower, format, elf_of(elf))
        last = follower.moment(list(trace.repairs))
    return FollowedProgram(trace, last)


class _Follower:
    """Hands the calls that come on to heaps, and shows what they come to."""

    def __init__(
        self,
        heaps: dict[str, RunningHeap],
        show: Callable[[Moment], None],
        going_on: Callable[[], bool],
        every: float,
    ) -> None:
        self.every, self.going_on = every, going_on
        self.sites: Sequence[str] = ("",)
        self._heaps, self._show = heaps, show
        self._alive = LiveObjectsStream()
        self._failed, self._largest_failed, self._latest_failed = 0, 0, ""
        self._began = time.monotonic()

    def feed(self, columns: Columns) -> None:
        slots = self._alive.feed(columns)
        self._note_failures(columns)
        for heap in self._heaps.values():
            heap.take(columns, slots)

    def _note_failures(self, columns: Columns) -> None:
        """Count the requests of some calls that failed on the program's own heap."""
        failed = columns.get("failed")
        if failed is None or not failed.any():
            return
        rows = np.flatnonzero(failed)
        sizes = columns["size"][rows]
        self._failed += len(sizes)
        self._largest_failed = max(self._largest_failed, int(sizes.max()))
        latest = self._alive.calls - len(failed) + int(rows[-1])
        self._latest_failed = f"the latest of {int(sizes[-1]):,} B at call {latest:,}"

    def look(self, repairs: list[str]) -> None:
        self._show(self.moment(repairs))

    def moment(self, repairs: list[str]) -> Moment:
        alive = self._alive
        return Moment(
            seconds=time.monotonic() - self._began,
            calls=alive.calls,
            live_bytes=alive.bytes,
            live_objects=alive.objects,
            peak_bytes=alive.peak_bytes,
            peak_objects=alive.peak_objects,
            at_peak=alive.at_peak(),
            holders=[(self.sites[site], held) for site, held in alive.holders()] if len(self.sites) > 1 else [],
            curve=alive.curve(),
            heaps={name: heap.standing() for name, heap in self._heaps.items()},
            repairs=repairs,
            failed=self._failures_in_words(),
        )

    def _failures_in_words(self) -> str:
        if not self._failed:
            return ""
        plural = "s" * (self._failed != 1)
        return f"{self._failed:,} request{plural} of up to {self._largest_failed:,} B failed, {self._latest_failed}"
