"""A study at an address of S3 while it is written: a file of this machine that is sent there whole, now and then."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from heapwright._support import database, remote
from heapwright._support.errors import HeapwrightError

EVERY_SECONDS = 300.0
"""What an exploration may lose whose machine goes: a study of some megabytes is sent in less than a second."""


class Sending:
    """Sends one study to its address."""

    def __init__(self, path: Path) -> None:
        """Begin with one that is as it is there."""
        self._path = path
        self._sent_at = time.monotonic()

    @classmethod
    def of(cls, path: Path) -> Sending | None:
        """Sender of a study that is being written; None for a file of this machine."""
        return cls(path) if remote.is_address(path) else None

    def now_and_then(self, connection: database.Connection) -> None:
        """Send it between two transactions, if the last time was long ago. What goes wrong shows `at_end`."""
        if time.monotonic() - self._sent_at < EVERY_SECONDS:
            return
        connection.execute("CHECKPOINT")  # everything is in one file
        with suppress(HeapwrightError):
            remote.send(self._path)
        self._sent_at = time.monotonic()

    def at_end(self) -> None:
        """Send it once it is closed; raises HeapwrightError where that fails, and says where the file is kept."""
        try:
            remote.send(self._path)
        except HeapwrightError as error:
            raise HeapwrightError(f"{error}; the study is kept as {remote.kept(self._path)}") from error
