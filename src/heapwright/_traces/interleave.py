"""Calls of several processes or traces in one order, that of their times, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from heapwright._traces.validation import Columns

Stream = tuple[int, Iterator[Columns]]
"""A time before which nothing in it happens, and pieces of columns, one of which is a time that never decreases."""


def together(streams: Sequence[Stream], key: str = "ts_us") -> Iterator[Columns]:
    """Give the columns of all streams, sorted by the time `key`; of equal times the stream given first comes first.

    Of each stream that has begun one piece is held at a time.
    """
    waiting = sorted(range(len(streams)), key=lambda at: streams[at][0])
    held: dict[int, Columns] = {}
    while waiting or held:
        ends = [(int(columns[key][-1]), at) for at, columns in held.items()]
        if waiting and (not ends or streams[waiting[0]][0] <= min(ends)[0]):
            held[waiting.pop(0)] = {}
        else:
            # All that is held of the stream that ends first; with it, of streams before it, what is at the same time.
            end, first = min(ends)
            cuts = {at: int(np.searchsorted(held[at][key], end + (at <= first))) for at in sorted(held)}
            yield _sorted([_slice(held[at], 0, cut) for at, cut in cuts.items()], key)
            held = {at: _slice(held[at], cut, None) for at, cut in cuts.items()}
        filled = {
            at: columns if len(columns.get(key, ())) else _next(streams[at][1], key) for at, columns in held.items()
        }
        held = {at: columns for at, columns in filled.items() if columns}


def _next(stream: Iterator[Columns], key: str) -> Columns:
    """The next piece that is not empty, or an empty dictionary at the end."""
    return next((columns for columns in stream if len(columns[key])), {})


def _slice(columns: Columns, start: int, stop: int | None) -> Columns:
    return {name: values[start:stop] for name, values in columns.items()}


def _sorted(parts: list[Columns], key: str) -> Columns:
    whole = {name: np.concatenate([columns[name] for columns in parts]) for name in parts[0]}
    order = np.argsort(whole[key], kind="stable")
    return {name: values[order] for name, values in whole.items()}
