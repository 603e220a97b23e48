"""Campaigns that coverage guides, on Python: an input that reaches new lines is kept, and others are made of it."""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import heapwright

Line = tuple[CodeType, int]
PACKAGE = Path(heapwright.__file__).parent


class Draws(random.Random):
    """Random numbers that are read from bytes, so that a changed byte changes a draw; behind their end any."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._left = data

    def random(self) -> float:
        return self.getrandbits(32) / (1 << 32) if self._left else super().random()

    def getrandbits(self, bits: int, /) -> int:
        size = (bits + 7) // 8
        if len(self._left) < size:
            self._left = b""
            return super().getrandbits(bits)
        drawn, self._left = self._left[:size], self._left[size:]
        return int.from_bytes(drawn, "big") >> (8 * size - bits)


class Lines:
    """The lines of one folder of the package that ran."""

    def __init__(self, name: str) -> None:
        folder = PACKAGE / name
        assert folder.is_dir(), folder
        self.seen: set[Line] = set()
        self._folder = str(folder)

    def grow(self, act: Callable[[], object]) -> bool:
        """Whether an act runs lines that none has run before."""
        before = len(self.seen)
        tracing = sys.gettrace()
        sys.settrace(self._enter)
        try:
            act()
        finally:
            sys.settrace(tracing)
        return len(self.seen) > before

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._step if frame.f_code.co_filename.startswith(self._folder) else None

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen.add((frame.f_code, frame.f_lineno))
        return self._step


def campaign(
    name: str,
    lines: Lines,
    seeds: list[bytes],
    mutate: Callable[[random.Random, list[bytes]], bytes],
    act: Callable[[bytes], object],
    seconds: float,
) -> tuple[int, list[bytes]]:
    """How many inputs were tried, and those that reached new lines; `act` raises where one is handled wrongly.

    These are kept in `HEAPWRIGHT_CORPUS`, where the next campaign of this name begins with them.
    """
    folder = os.environ.get("HEAPWRIGHT_CORPUS")
    place = Path(folder) / name if folder else None
    corpus = list(seeds)
    if place:
        place.mkdir(parents=True, exist_ok=True)
        corpus += [file.read_bytes() for file in sorted(place.iterdir())]
    for data in corpus:
        lines.grow(lambda: act(data))  # noqa: B023 - called at once
    begun, tried, new = len(lines.seen), len(corpus), []
    end, draw = time.process_time() + seconds, random.Random(f"{name} {len(corpus)} {begun}")
    while time.process_time() < end:
        data = mutate(draw, corpus)
        tried += 1
        if lines.grow(lambda: act(data)):  # noqa: B023
            corpus.append(data)
            new.append(data)
            if place:
                (place / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
    return tried, new
