"""The threshold of Python's cyclic garbage collector.

Exploring makes few cycles and many long-lived objects, each of which every collection would visit.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 200_000
"""New objects between two collections; Python's default is some hundred."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect at most once for every `OBJECTS` new objects; a disabled collector stays disabled."""
    before = gc.get_threshold()
    if 0 < before[0] < OBJECTS:
        gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
