"""A log that is followed while it is written: its calls are handed on as they come, and become a trace in the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import FORMATS, Imported, Reading
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source
from heapwright._traces.logs.wire import Wire
from heapwright._traces.tables import room_beside
from heapwright._traces.validation import Columns

LIVE_FORMATS = ("text", "board")
"""Those that boards write as lines."""

_WAIT_SECONDS = 0.1
"""How long the wire alone is looked at."""

_START = 1 << 16
"""Bytes that a format is looked for in: the last that came."""


class Follower(Protocol):
    """Who follows a log.

    Attributes:
        every: seconds between two looks.
        sites: is set to what the column site stands for, which grows.
    """

    every: float
    sites: Sequence[str]

    def take(self, columns: Columns) -> None:
        """Take the calls that have come, in the columns of a trace; an id names one object for ever."""

    def look(self, repairs: list[str]) -> None:
        """All calls up to now were taken; `repairs` is what had to be done to them, in words."""

    def going_on(self) -> bool:
        """Whether more is to be read; asked many times a second."""


def follow_log(
    wire: Wire, output: Path, follower: Follower, format_name: str | None = None, elf: Path | None = None
) -> Imported:
    """Write the trace of a log that is still being written, once its wire or the follower ends it.

    The trace is the one that `convert_log` makes of the same bytes. They are kept in OUTPUT.log until it is written, so
    that nothing is lost where this process is killed. A KeyboardInterrupt while nothing comes ends it, too.

    Args:
        wire: what is read.
        output: the trace.
        follower: who follows.
        format_name: one of LIVE_FORMATS, None to find it by what comes.
        elf: the board's program, which names the sites that it tells.

    Raises HeapwrightError where no call came (the bytes are kept where a format was named), OUTPUT.log is there
    already, or `output` cannot be written.
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
                file.truncate()  # no line of it is a call, whichever way it is read
            where = f"; they are in {kept}" if format_name else ""
            info = f"no heap call is among the {came:,} bytes that came{where}" if came else "nothing came"
            raise HeapwrightError(f"{wire.path}: {info}")
        imported = Reading(source, result).write(output)
    kept.unlink()
    return imported


@contextlib.contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    """A file that is removed again where nothing was written to it."""
    try:
        file = path.open("xb", buffering=0)
    except FileExistsError:
        raise HeapwrightError(
            f"{path}: is there already; what was read by a live view that was killed: import it, or remove it"
        ) from None
    with file:
        try:
            yield file
        finally:
            if not file.tell():
                path.unlink()


class _LiveSource(Source):
    """Bytes as they come, which are kept; the follower looks in between."""

    def __init__(self, wire: Wire, folder: Path, kept: BinaryIO, follower: Follower) -> None:
        super().__init__(wire.path, folder)
        self._wire, self._kept, self._follower = wire, kept, follower
        self._first = b""
        self._history: LogHistory | None = None
        self._ended = False
        self._next_look = 0.0

    def find(self, formats: list[Format]) -> Format | None:
        """Read until one of the formats is seen; None where it ends before."""
        for piece in self._read():
            self._first = (self._first + piece)[-_START:]
            for format in formats:
                if format.matches(self._first):
                    return format
        return None

    def history(self) -> LogHistory:
        self._history = super().history()
        self._history.follower = self._follower.take
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
