"""Logs of several processes: each has its own heap, and a trace is of one."""

from __future__ import annotations

from collections.abc import Hashable

from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.source import Source


class Processes:
    """The histories of a log's processes, of which the one with most calls is the log's."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._histories: dict[Hashable, LogHistory] = {}

    def history(self, process: Hashable) -> LogHistory:
        """The history of a process; begun where there is none yet."""
        result = self._histories.get(process)
        if result is None:
            result = self._histories[process] = LogHistory(self._source.folder)
        return result

    def largest(self) -> LogHistory:
        """The history with the most calls; its caveats count the other processes."""
        result = max(self._histories.values(), key=len, default=LogHistory())
        if others := sum(len(history) > 0 for history in self._histories.values()) - (len(result) > 0):
            result.caveats.append(f"{others} smaller {'process' if others == 1 else 'processes'} of the log left out")
        return result
