"""How often Python looks for garbage that is in cycles: exploring makes little of it, and many objects that stay, each
of which it would look at again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 200_000
"""So many new objects between two looks; by default Python has some hundred."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Have it look no more often than after `OBJECTS`; never where it never did."""
    before = gc.get_threshold()
    if 0 < before[0] < OBJECTS:
        gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
