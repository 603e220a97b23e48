"""Streams of calls in one order: as one stable sort of them all would have it, however they come in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heapwright._traces.interleave import Stream, together
from heapwright._traces.validation import Columns

PIECES = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5)


def in_pieces(number: int, lengths: Sequence[int], times: Sequence[int], begun: list[int]) -> Iterator[Columns]:
    """The calls of one stream at these times, reported by `call`; it says in `begun` that it has been read."""
    begun.append(number)
    ends = np.cumsum([0, *lengths])
    for start, stop in pairwise(ends.tolist()):
        yield {"when": np.array(times[start:stop], np.int64), "call": np.arange(start, stop) + 1000 * number}


@given(st.lists(st.tuples(PIECES, st.integers(0, 3)), max_size=4))
def test_calls_come_as_a_stable_sort_has_them(given: list[tuple[list[list[int]], int]]) -> None:
    begun: list[int] = []
    streams: list[Stream] = []
    columns: list[Columns] = []
    for number, (pieces, early) in enumerate(given):
        times = sorted(time for piece in pieces for time in piece)
        lengths = [len(piece) for piece in pieces]
        streams.append((min(times, default=0) - early, in_pieces(number, lengths, times, begun)))
        columns += in_pieces(number, lengths, times, [])
    results = list(together(streams, "when"))
    assert sorted(begun) == list(range(len(given)))
    output = {key: np.concatenate([np.empty(0, int), *(item[key] for item in results)]) for key in ("when", "call")}
    whole = {key: np.concatenate([np.empty(0, int), *(column[key] for column in columns)]) for key in ("when", "call")}
    order = np.argsort(whole["when"], kind="stable")
    assert output["when"].tolist() == whole["when"][order].tolist()
    assert output["call"].tolist() == whole["call"][order].tolist()


def test_a_stream_waits_until_the_others_are_there() -> None:
    begun: list[int] = []
    streams = [(50, in_pieces(0, [1], [60], begun)), (0, in_pieces(1, [2, 1, 1], [0, 40, 49, 70], begun))]
    seen = [(columns["when"].tolist(), tuple(begun)) for columns in together(streams, "when")]
    assert seen == [([0, 40], (1,)), ([49], (1,)), ([60], (1, 0)), ([70], (1, 0))]
