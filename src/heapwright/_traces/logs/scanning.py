"""Reading of a log by a scanner, and line by line what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._native import lib
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.scanner import Scanner
from heapwright._traces.logs.source import LONGEST_LINE, Source

_FIRST = 32
"""Lines that are read one by one at first: a format may learn from them how the others look."""

_MOST_LEFT = 8
"""If more than one line in this number is left, all are read one by one."""


class ScannedLog:
    """A log whose usual lines are scanned.

    Attributes:
        first: number of lines that are read one by one at first.
        forms: the numbers of forms that lines have fitted.
    """

    def __init__(
        self,
        source: Source,
        read_line: Callable[[bytes], None],
        history: LogHistory | Callable[[bytes], LogHistory],
    ) -> None:
        """`read_line` reads a line that fits no form; `history`: of all calls, or a function of the process."""
        self._source, self._read_line = source, read_line
        self._history = history
        self.first = _FIRST
        self.forms: set[int] = set()

    def read(self, scanner: Callable[[], Scanner | None]) -> None:
        """Read all lines; `scanner` is called after the first of them, and None reads the others one by one, too."""
        remaining = self.first
        scans = None if remaining else scanner()
        for text in self._source.texts():
            rest = text
            while remaining and rest:
                line, _, rest = rest.partition(b"\n")
                self._read_one(line)
                remaining -= 1
                scans = None if remaining else scanner()
            if not remaining and scans is None:
                for line in rest.split(b"\n")[:-1]:
                    self._read_one(line)
            elif scans is not None:
                self._scan(scans, rest)

    def _read_one(self, line: bytes) -> None:
        if len(line) <= LONGEST_LINE:
            self._source.losses.look(line)
            self._read_line(line.rstrip(b"\r"))

    def _scan(self, scanner: Scanner, text: bytes) -> None:
        begin = 0
        for events, reports, end in scanner.scan(text, LONGEST_LINE):
            for at in reports.tolist():
                self._source.losses.look(text[at : text.index(b"\n", at)])
            places = np.flatnonzero(events["kind"] == lib.HW_LOG_LINE)
            if len(places) * _MOST_LEFT > len(events):
                for line in text[begin:end].split(b"\n")[:-1]:
                    if len(line) <= LONGEST_LINE:
                        self._read_line(line.rstrip(b"\r"))
            else:
                self._make_calls(scanner, text, events, places)
            begin = end

    def _make_calls(self, scanner: Scanner, text: bytes, events: NDArray[Any], places: NDArray[np.intp]) -> None:
        self.forms.update(np.unique(events["form"][events["kind"] != lib.HW_LOG_LINE]).tolist())
        first = 0
        for place in [*places.tolist(), len(events)]:
            if place > first:
                self.make_calls(scanner, events[first:place])
            if place < len(events):
                at = int(events["at"][place])
                self._read_line(text[at : text.index(b"\n", at)].rstrip(b"\r"))
            first = place + 1

    def make_calls(self, scanner: Scanner, events: NDArray[Any]) -> None:
        """Make the calls of some events, each in the history of its process."""
        process = events["process"]
        if (process == process[0]).all():
            self._of(scanner, int(process[0])).make_calls(scanner, events, None)
            return
        numbers, at = np.unique(process, return_index=True)
        for number in numbers[np.argsort(at)].tolist():
            which = np.flatnonzero(process == number).astype(np.uint32)
            self._of(scanner, number).make_calls(scanner, events, which)

    def _of(self, scanner: Scanner, process: int) -> LogHistory:
        return self._history if isinstance(self._history, LogHistory) else self._history(scanner.name(process))
