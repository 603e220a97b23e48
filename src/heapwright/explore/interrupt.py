"""Ctrl-C as a flag."""

from __future__ import annotations

import signal
import threading


class Interrupt:
    """Turns the first Ctrl-C into a flag, so that it cannot fall into the middle of a transaction."""

    def __init__(self) -> None:
        """Begin without one."""
        self.seen = False
        self._in_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupt:
        if self._in_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
