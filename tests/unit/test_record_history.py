"""From raw records to calls on objects, against a simulated heap that hands addresses out again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heapwright.traces import record
from heapwright.traces.trace import Trace
from heapwright.traces.validation import CALLOC, FREE, MALLOC, REALLOC

A, B = 0x1000, 0x2000

Row = tuple[int, int, int, int]
"""Kind, address, size, thread."""


def raw(rows: list[Row]) -> np.ndarray:
    records = np.zeros(len(rows), record._RECORD)
    for i, (kind, pointer, size, thread) in enumerate(rows):
        records[i] = (1000 * i, pointer, size, thread, 0, 0, kind)
    return records


def calls(rows: list[Row]) -> tuple[list[tuple[int, int, int]], list[str]]:
    """The calls (op, id, size) that raw rows become, and the notes."""
    columns, notes = record._history(raw(rows))
    trace = Trace.from_columns(**columns)
    return list(zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True)), notes


def test_an_address_given_out_again_is_another_object() -> None:
    rows = [(record._MALLOC, A, 8, 0), (record._FREE, A, 0, 0), (record._CALLOC, A, 9, 0)]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0), (CALLOC, 1, 9)], [])


def test_another_thread_gets_the_old_address_while_a_realloc_runs() -> None:
    rows = [
        (record._MALLOC, A, 8, 0),
        (record._BEGIN, A, 100, 0),
        (record._MALLOC, A, 7, 1),
        (record._END, B, 100, 0),
        (record._FREE, A, 0, 1),
        (record._FREE, B, 0, 0),
    ]
    expected = [(MALLOC, 0, 8), (MALLOC, 1, 7), (REALLOC, 0, 100), (FREE, 1, 0), (FREE, 0, 0)]
    assert calls(rows) == (expected, [])


def test_two_threads_swap_addresses_in_overlapping_reallocs() -> None:
    rows = [
        (record._MALLOC, A, 1, 0),
        (record._MALLOC, B, 2, 1),
        (record._BEGIN, A, 10, 0),
        (record._BEGIN, B, 20, 1),
        (record._END, A, 20, 1),
        (record._END, B, 10, 0),
        (record._FREE, A, 0, 0),
    ]
    expected = [(MALLOC, 0, 1), (MALLOC, 1, 2), (REALLOC, 1, 20), (REALLOC, 0, 10), (FREE, 1, 0)]
    assert calls(rows) == (expected, [])


def test_a_realloc_to_nothing_frees_where_it_began() -> None:
    rows = [
        (record._MALLOC, A, 8, 0),
        (record._BEGIN, A, 0, 0),
        (record._MALLOC, A, 9, 1),
        (record._FREED, A, 0, 0),
    ]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0), (MALLOC, 1, 9)], [])


def test_threads_are_numbered_from_zero_up_to_65535_and_then_again() -> None:
    records = raw([(record._MALLOC, A + at, 1, at) for at in range(65538)])
    assert record._history(records)[0]["tid"].tolist() == [*range(65536), 0, 1]
    assert record._history(records[65530:])[0]["tid"].tolist() == [*range(8)]


def test_a_failed_realloc_leaves_the_object_as_it_was() -> None:
    rows = [
        (record._MALLOC, A, 8, 0),
        (record._BEGIN, A, 1 << 40, 0),
        (record._FAILED, A, 1 << 40, 0),
        (record._FREE, A, 0, 0),
    ]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0)], [])


def test_a_realloc_cut_off_by_a_kill_leaves_the_object_live() -> None:
    rows = [(record._MALLOC, A, 8, 0), (record._BEGIN, A, 100, 0), (record._MALLOC, A, 7, 1)]
    assert calls(rows) == ([(MALLOC, 0, 8), (MALLOC, 1, 7)], [])


def test_blocks_from_before_the_recording() -> None:
    rows = [
        (record._FREE, A, 0, 0),
        (record._BEGIN, B, 50, 0),
        (record._END, A, 50, 0),
        (record._FREE, A, 0, 0),
        (record._FREE, B, 0, 0),
    ]
    assert calls(rows) == (
        [(MALLOC, 0, 50), (FREE, 0, 0)],
        [
            "frees of blocks allocated before the recording, left out: 2",
            "blocks allocated before the recording, counted from their realloc: 1",
        ],
    )


def test_a_free_nobody_saw_is_put_before_the_address_is_given_out_again() -> None:
    rows = [
        (record._MALLOC, A, 8, 0),
        (record._MALLOC, B, 5, 0),
        (record._MALLOC, A, 9, 0),
        (record._FREE, A, 0, 0),
    ]
    assert calls(rows) == (
        [(MALLOC, 0, 8), (MALLOC, 1, 5), (FREE, 0, 0), (MALLOC, 2, 9), (FREE, 2, 0)],
        ["frees the recorder did not see, put where the address was given out again: 1"],
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """Raw rows of three threads on a heap with eight addresses, and the calls on objects they stand for.

    A realloc's old address may be taken by another thread before the realloc ends, as in a real allocator.
    """
    rows: list[Row] = []
    expected: list[tuple[int, int, int]] = []
    unused, held = set(range(1, 9)), {}  # held: address -> object
    moving: dict[int, tuple[int, int]] = {}  # thread -> object, new size
    born = 0
    for _ in range(draw(st.integers(1, 60))):
        thread, size = draw(st.integers(0, 2)), draw(st.integers(1, 100))
        if thread in moving:
            object_, size = moving[thread]
            choices = sorted(unused)
            if not choices:
                continue
            address = draw(st.sampled_from(choices))
            del moving[thread]
            unused.discard(address)
            held[address] = object_
            rows.append((record._END, address, size, thread))
            expected.append((REALLOC, object_, size))
        elif held and draw(st.booleans()):
            address = draw(st.sampled_from(sorted(held)))
            object_ = held.pop(address)
            unused.add(address)
            if draw(st.booleans()):
                rows.append((record._FREE, address, 0, thread))
                expected.append((FREE, object_, 0))
            else:
                rows.append((record._BEGIN, address, size, thread))
                moving[thread] = (object_, size)
        elif unused:
            address = draw(st.sampled_from(sorted(unused)))
            unused.discard(address)
            held[address] = born
            rows.append((record._MALLOC, address, size, thread))
            expected.append((MALLOC, born, size))
            born += 1
    return rows, expected


@given(histories())
def test_any_history_becomes_the_calls_it_stands_for(history: tuple[list[Row], list[tuple[int, int, int]]]) -> None:
    rows, expected = history
    if expected:
        assert calls(rows) == (expected, [])
