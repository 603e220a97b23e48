"""Pieces of a trace: some stretches of its calls, and every object that outlives one."""

from __future__ import annotations

import numpy as np
import pytest

from heapwright._traces.pieces import LONG, STRETCHES, WORTH, pieces, short
from heapwright._traces.trace import Trace


def busy(calls: int, held: int = 40, seed: int = 3) -> Trace:
    """Short-lived objects among `held` ones that each live for a random part of the trace."""
    draw = np.random.default_rng(seed)
    rows = list[tuple[int, int, int]]()
    old = list[int]()
    for number in range(calls // 2):
        size = int(draw.integers(1, 400))
        if draw.random() < 0.02:
            old.append(number)
            rows.append((0, number, size))
            if len(old) > held:
                rows.append((3, old.pop(int(draw.integers(len(old)))), 0))
        else:
            rows += [(0, number, size), (3, number, 0)]
    op, id, sizes = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id, size=sizes, name="busy")


def test_the_peak_and_most_live_bytes_are_those_of_the_whole() -> None:
    whole = busy(40_000)
    part = pieces(whole, 4000)
    assert part.peak_live_bytes == whole.peak_live_bytes
    assert part.name == whole.name and part.metadata["pieces_of"] == str(len(whole))
    assert 4000 * (1 - 1 / STRETCHES) <= len(part) < 8000
    least, most = np.percentile(whole.live_bytes, [10, 90])
    assert np.percentile(part.live_bytes, 10) == pytest.approx(least, rel=0.1)
    assert np.percentile(part.live_bytes, 90) == pytest.approx(most, rel=0.1)


def test_an_object_has_all_its_calls_or_none() -> None:
    op = [0, 2, 2, 0, 3, 3] * 2000
    ids = np.repeat(np.arange(2000), 6) * 2 + np.tile([0, 0, 0, 1, 1, 0], 2000)
    whole = Trace.from_columns(op=op, id=ids, size=[8, 16, 24, 8, 0, 0] * 2000)
    part = pieces(whole, 1200)
    counts = np.bincount(part.objects()[0])
    assert set(counts.tolist()) == {2, 4}


def test_all_calls_from_one_on_can_be_left() -> None:
    whole = busy(40_000)
    part = pieces(whole, 2000, before=30_000)
    tail = len(whole) - 30_000
    assert (part.size[-tail:] == whole.size[-tail:]).all() and (part.op[-tail:] == whole.op[-tail:]).all()
    assert part.live_bytes[-tail:].tolist() == whole.live_bytes[-tail:].tolist()


def test_a_trace_whose_objects_nearly_all_live_on_is_taken_whole() -> None:
    growing = Trace.from_columns(op=[0] * 20_000, id=range(20_000), size=[16] * 20_000)
    assert WORTH < 1 and pieces(growing, 1000) is growing


def test_only_long_traces_are_cut_into_pieces() -> None:
    count = LONG // 2 + 1
    ring = Trace.from_columns(op=[0, 3] * count, id=np.repeat(np.arange(count), 2), size=[8, 0] * count)
    assert len(short(ring)) < LONG / 2 and short(ring) is short(ring)
    few = busy(4000)
    assert short(few) is few
