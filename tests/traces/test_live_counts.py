"""Live counts: how many blocks of a size are live at once, counted by hand."""

from __future__ import annotations

import numpy as np

from heapwright._traces.live_counts import START_UP, live_counts
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

SHARES = (0.1, 0.5, 0.9, 1.0)


def test_requests_count_for_their_size_rounded_up_and_a_realloc_for_its_new_one() -> None:
    """After each call 1 2 2 1 0 0 blocks of 16 bytes are live, and 0 0 1 2 2 1 of 24."""
    calls = [(MALLOC, 1, 16), (CALLOC, 2, 10), (MALLOC, 3, 24), (REALLOC, 2, 20), (FREE, 1, 0), (FREE, 3, 0)]
    op, id, size = zip(*calls, strict=True)
    trace = Trace.from_columns(op=op, id=id, size=size)
    assert live_counts(trace, [16, 24, 32], 8, SHARES).tolist() == [[0, 1, 2, 2], [0, 1, 2, 2], [0, 0, 0, 0]]


def test_a_realloc_within_the_same_block_changes_nothing() -> None:
    calls = [(MALLOC, 1, 17), (REALLOC, 1, 24), (REALLOC, 1, 20), (FREE, 1, 0)]
    op, id, size = zip(*calls, strict=True)
    assert live_counts(Trace.from_columns(op=op, id=id, size=size), [24], 8, (1.0,)).tolist() == [[1]]


def test_an_id_that_is_used_again_is_another_object() -> None:
    calls = [(MALLOC, 1, 8), (FREE, 1, 0), (MALLOC, 1, 16), (MALLOC, 2, 8)]
    op, id, size = zip(*calls, strict=True)
    assert live_counts(Trace.from_columns(op=op, id=id, size=size), [8, 16], 8, (1.0,)).tolist() == [[1], [1]]


def test_a_request_for_nothing_takes_the_least_block() -> None:
    trace = Trace.from_columns(op=[MALLOC, MALLOC], id=[1, 2], size=[0, 3])
    assert live_counts(trace, [4, 8], 4, (1.0,)).tolist() == [[2], [0]]


def test_start_up_counts_for_the_most_ever_alone() -> None:
    """Of 40 calls the first two hold two blocks; one, then none, is live in the others."""
    assert START_UP == 0.05
    calls = [(MALLOC, 1, 8), (MALLOC, 2, 8), (FREE, 1, 0), (FREE, 2, 0)]
    calls += [call for at in range(3, 21) for call in ((MALLOC, at, 64), (FREE, at, 0))]
    op, id, size = zip(*calls, strict=True)
    counts = live_counts(Trace.from_columns(op=op, id=id, size=size), [8], 8, (0.9, 0.99, 1.0))
    assert counts.tolist() == [[0, 1, 2]]


def test_what_suffices_nine_tenths_of_the_time_is_not_exceeded_longer() -> None:
    draw, op, ids = np.random.default_rng(4), list[int](), list[int]()
    live: list[int] = []
    for number in range(3000):
        if live and draw.random() < len(live) / 40:
            op.append(FREE)
            ids.append(live.pop())
        else:
            op.append(MALLOC)
            ids.append(number)
            live.append(number)
    trace = Trace.from_columns(op=op, id=ids, size=[0 if item == FREE else 8 for item in op])
    counts = np.cumsum(np.where(np.array(op) == FREE, -1, 1))[int(START_UP * len(op)) :]
    ((tenth, half, most, ever),) = live_counts(trace, [8], 8, SHARES).tolist()
    assert tenth < half < most < ever
    for share, count in ((0.1, tenth), (0.5, half), (0.9, most)):
        assert (counts > count).mean() <= 1 - share + 1e-3 and (counts > count - 1).mean() > 1 - share - 1e-3


def test_no_sizes_have_no_counts() -> None:
    assert live_counts(Trace.from_columns(op=[MALLOC], id=[1], size=[8]), [], 8, SHARES).shape == (0, 4)
