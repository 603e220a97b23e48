"""Logs of several processes or heaps: a trace is of one."""

from __future__ import annotations

from collections.abc import Hashable

from heapwright._support.errors import HeapwrightError
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


class Heaps:
    """The histories of a log's heaps or memories, by their names in the log."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._histories: dict[str, LogHistory] = {}

    def history(self, heap: str) -> LogHistory:
        """The history of a heap; begun if there is none yet."""
        result = self._histories.get(heap)
        if result is None:
            result = self._histories[heap] = LogHistory(self._source.folder)
        return result

    def chosen(self) -> LogHistory:
        """The history of the heap that the source asks for, by default the one with the most calls.

        Its caveats name the others. Raises HeapwrightError if the log has no heap of that name.
        """
        heaps = {name: history for name, history in self._histories.items() if len(history)}
        self._source.heaps = tuple(sorted(heaps, key=lambda name: -len(heaps[name])))
        wanted = self._source.heap
        if wanted is not None and wanted not in heaps:
            raise HeapwrightError(
                f"{self._source.path}: no heap {wanted!r} in it; heaps: {', '.join(self._source.heaps)}",
                parameter="heap",
            )
        if not heaps:
            return LogHistory()
        name = self._source.heaps[0] if wanted is None else wanted
        result = heaps[name]
        others = [f"{other} ({_calls(heaps[other])})" for other in self._source.heaps if other != name]
        if others:
            result.caveats.append(f"the log is of several heaps: this trace is of {name}; others: {', '.join(others)}")
        return result


def _calls(history: LogHistory) -> str:
    return f"{len(history):,} call{'s' * (len(history) != 1)}"
