"""Calls of several processes in one order, that of their times, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from heapwright.traces.history import Columns

Stream = tuple[int, Iterator[Columns]]
"""Microseconds before which nothing in it happens, and columns with a ``ts_us`` that never decreases."""


def together(streams: Sequence[Stream]) -> Iterator[Columns]:
    """Give the columns of all streams, sorted by time; of each that has begun one piece is held at a time."""
    waiting = sorted(streams, key=lambda stream: stream[0])
    running: list[Iterator[Columns]] = []
    held: list[Columns] = []
    while waiting or running:
        known = min((int(columns["ts_us"][-1]) for columns in held), default=-1)
        if waiting and (not running or waiting[0][0] <= known):
            running.append(waiting.pop(0)[1])
            held.append(_next(running[-1]))
        else:
            cuts = [int(np.searchsorted(columns["ts_us"], known, side="right")) for columns in held]
            ready = [_slice(columns, 0, cut) for columns, cut in zip(held, cuts, strict=True)]
            yield _sorted(ready)
            held = [_slice(columns, cut, None) for columns, cut in zip(held, cuts, strict=True)]
        for i in reversed(range(len(held))):
            if not held[i] or not len(held[i]["ts_us"]):
                held[i] = _next(running[i])
                if not held[i]:
                    del held[i], running[i]


def _next(stream: Iterator[Columns]) -> Columns:
    """The next piece that is not empty, or an empty dictionary at the end."""
    return next((columns for columns in stream if len(columns["ts_us"])), {})


def _slice(columns: Columns, start: int, stop: int | None) -> Columns:
    return {key: values[start:stop] for key, values in columns.items()}


def _sorted(parts: list[Columns]) -> Columns:
    whole = {key: np.concatenate([columns[key] for columns in parts]) for key in parts[0]}
    order = np.argsort(whole["ts_us"], kind="stable")
    return {key: values[order] for key, values in whole.items()}
