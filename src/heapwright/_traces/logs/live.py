"""Live reading of a log that is still being written: a follower gets its calls as they come; a trace is the result."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from heapwright._support.errors import HeapwrightError
from heapwright._traces.failures import with_life
from heapwright._traces.logs import FORMATS, Imported, Reading, rewritten
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source
from heapwright._traces.logs.wire import Wire
from heapwright._traces.tables import room_beside
from heapwright._traces.trace import Trace
from heapwright._traces.validation import Columns

LIVE_FORMATS = ("text", "board")
"""The formats that boards write as lines."""

_WAIT_SECONDS = 0.1
"""Longest time that a read of the wire may block."""

_START = 1 << 16
"""Number of the latest bytes in which a format is searched."""


class Follower(Protocol):
    """The consumer of a live log.

    Attributes:
        every: seconds between two calls of `look`.
        sites: is set to the names that the column site indexes, a list that grows.
    """

    every: float
    sites: Sequence[str]

    def feed(self, columns: Columns) -> None:
        """Process new calls, in the columns of a trace; an id is never reused for another object."""

    def look(self, repairs: list[str]) -> None:
        """Show the state after all calls so far; `repairs` lists the repairs of the log, in words."""

    def going_on(self) -> bool:
        """Whether to read on; called many times a second."""


def follow_log(
    wire: Wire, output: Path, follower: Follower, format_name: str | None = None, elf: Path | None = None
) -> Imported:
    """Read a log that is still being written until its wire or the follower ends it, then write its trace.

    The trace is the one that `convert_log` makes of the same bytes. OUTPUT.log holds the bytes until the trace is
    written, so that nothing is lost if this process is killed. A KeyboardInterrupt while no bytes come ends it, too.

    Args:
        wire: what is read.
        output: the trace.
        follower: receives the calls.
        format_name: one of LIVE_FORMATS, None to recognise it by its lines.
        elf: the board's program, which names its call sites.

    Raises HeapwrightError if no call came (OUTPUT.log stays if a format was named), if OUTPUT.log exists already, or if
    `output` cannot be written.
    """
    formats = [FORMATS[name] for name in ([format_name] if format_name else LIVE_FORMATS)]
    kept = output.with_name(f"{output.name}.log")
    with room_beside(output) as folder, _new(kept) as file:
        source = _LiveSource(wire, folder, file, follower)
        source.elf = elf
        result = source.find(formats)
        if result is None:
            came = file.tell()
            if format_name is None:
                file.seek(0)
                file.truncate()  # no line of it is a call in either format
            where = f"; they are in {kept}" if format_name else ""
            reason = f"no heap call is among the {came:,} bytes that came{where}" if came else "nothing came"
            raise HeapwrightError(f"{wire.path}: {reason}")
        read = Reading(source, result)
        imported = read.write(output)
        if read.history.failed:
            imported = rewritten(with_life(Trace.read(output), None, read.history.failed_resizes), output, read)
    kept.unlink()
    return imported


@contextlib.contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    """A new file that is removed in the end if nothing was written to it."""
    try:
        file = path.open("xb", buffering=0)
    except FileExistsError:
        raise HeapwrightError(
            f"{path}: exists already, from a live view that was killed; import it, or remove it"
        ) from None
    with file:
        try:
            yield file
        finally:
            if not file.tell():
                path.unlink()


class _LiveSource(Source):
    """A source of bytes as they come, which it stores; the follower looks in between."""

    def __init__(self, wire: Wire, folder: Path, kept: BinaryIO, follower: Follower) -> None:
        super().__init__(wire.path, folder)
        self._wire, self._kept, self._follower = wire, kept, follower
        self._first = b""
        self._history: LogHistory | None = None
        self._ended = False
        self._next_look = 0.0

    def find(self, formats: list[Format]) -> Format | None:
        """Read until the bytes match one of the formats, and return it; None if the wire ends before."""
        for piece in self._read():
            self._first = (self._first + piece)[-_START:]
            for format in formats:
                if format.matches(self._first):
                    return format
        return None

    def history(self) -> LogHistory:
        self._history = super().history()
        self._history.follower = self._follower.feed
        self._follower.sites = self._history.site_names
        return self._history

    def start(self, most: int) -> bytes:
        return self._first[:most]

    def _pieces(self) -> Iterator[bytes]:
        yield self._first
        yield from self._read()

    def _read(self) -> Iterator[bytes]:
        while not self._ended and self._follower.going_on():
            try:
                piece = self._wire.read(_WAIT_SECONDS)
            except KeyboardInterrupt:
                piece = None
            if piece is None:
                self._ended = True
                return
            if piece:
                self._kept.write(piece)
                yield piece
            if time.monotonic() >= self._next_look:
                self._look()

    def _look(self) -> None:
        notes = []
        if self._history is not None:
            self._history.flush()
            notes = self._history.notes
        self._follower.look(notes)
        self._next_look = time.monotonic() + self._follower.every
