"""From raw records to calls on objects, against a simulated heap that hands addresses out again."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heapwright._traces import history as raw_history
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

A, B = 0x1000, 0x2000

Row = tuple[int, int, int, int]
"""Kind, address, size, thread."""


def raw(rows: list[Row]) -> np.ndarray:
    records = np.zeros(len(rows), raw_history.RECORD)
    for i, (kind, pointer, size, thread) in enumerate(rows):
        records[i] = (1000 * i, pointer, size, thread, 0, kind, 0)
    return records


def calls(rows: list[Row]) -> tuple[list[tuple[int, int, int]], list[str]]:
    """The calls (op, id, size) that raw rows become, and the notes; the same in windows of every length."""
    columns, notes = in_windows(raw(rows), len(rows))
    trace = Trace.from_columns(**columns)
    result = list(zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True))
    for window in (1, 2, 5):
        parts, notes_too = in_windows(raw(rows), window)
        assert sorted(notes_too) == sorted(notes)
        assert Trace.from_columns(**parts).live_bytes[-1] == trace.live_bytes[-1]
        if raw_history._FREED not in [row[0] for row in rows]:
            assert {key: values.tolist() for key, values in parts.items()} == {
                key: values.tolist() for key, values in columns.items()
            }
    return result, notes


def in_windows(records: np.ndarray, window: int) -> tuple[dict[str, Any], list[str]]:
    history = raw_history.History()
    parts = [history.feed(records[at : at + window]) for at in range(0, len(records), window)]
    columns: dict[str, Any] = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    trace = Trace.from_columns(**columns)
    assert history.calls == len(trace)
    assert (history.peak_bytes, history.peak_objects) == (trace.peak_live_bytes, trace.peak_live_objects)
    made_by_engine(records, window, parts, history)
    return columns, history.notes


def made_by_engine(
    records: np.ndarray, window: int, expected: list[dict[str, Any]], history: raw_history.History
) -> None:
    """The engine makes the same calls of a process that neither inherits nor forks."""
    alone = raw_history.History(alone=True)
    for at, columns in zip(range(0, len(records), window), expected, strict=True):
        made = alone.feed(records[at : at + window])
        assert {key: values.tolist() for key, values in made.items()} == {
            key: values.tolist() for key, values in columns.items()
        }
        assert {key: values.dtype for key, values in made.items()} == {
            key: values.dtype for key, values in columns.items()
        }
    for name in ("calls", "threads", "peak_bytes", "peak_objects", "failed", "notes"):
        assert getattr(alone, name) == getattr(history, name), name


def test_an_address_given_out_again_is_another_object() -> None:
    rows = [(raw_history._MALLOC, A, 8, 0), (raw_history._FREE, A, 0, 0), (raw_history._CALLOC, A, 9, 0)]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0), (CALLOC, 1, 9)], [])


def test_another_thread_gets_the_old_address_while_a_realloc_runs() -> None:
    rows = [
        (raw_history._MALLOC, A, 8, 0),
        (raw_history._BEGIN, A, 100, 0),
        (raw_history._MALLOC, A, 7, 1),
        (raw_history._END, B, 100, 0),
        (raw_history._FREE, A, 0, 1),
        (raw_history._FREE, B, 0, 0),
    ]
    expected = [(MALLOC, 0, 8), (MALLOC, 1, 7), (REALLOC, 0, 100), (FREE, 1, 0), (FREE, 0, 0)]
    assert calls(rows) == (expected, [])


def test_two_threads_swap_addresses_in_overlapping_reallocs() -> None:
    rows = [
        (raw_history._MALLOC, A, 1, 0),
        (raw_history._MALLOC, B, 2, 1),
        (raw_history._BEGIN, A, 10, 0),
        (raw_history._BEGIN, B, 20, 1),
        (raw_history._END, A, 20, 1),
        (raw_history._END, B, 10, 0),
        (raw_history._FREE, A, 0, 0),
    ]
    expected = [(MALLOC, 0, 1), (MALLOC, 1, 2), (REALLOC, 1, 20), (REALLOC, 0, 10), (FREE, 1, 0)]
    assert calls(rows) == (expected, [])


def test_a_realloc_to_nothing_frees_where_it_began() -> None:
    rows = [
        (raw_history._MALLOC, A, 8, 0),
        (raw_history._BEGIN, A, 0, 0),
        (raw_history._MALLOC, A, 9, 1),
        (raw_history._FREED, A, 0, 0),
    ]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0), (MALLOC, 1, 9)], [])


def test_threads_are_numbered_from_zero_up_to_65535_and_then_again() -> None:
    records = raw([(raw_history._MALLOC, A + at, 1, at) for at in range(65538)])
    assert in_windows(records, 70000)[0]["tid"].tolist() == [*range(65536), 0, 1]
    assert in_windows(records[65530:], 3)[0]["tid"].tolist() == [*range(8)]


def test_a_failed_realloc_leaves_the_object_as_it_was() -> None:
    rows = [
        (raw_history._MALLOC, A, 8, 0),
        (raw_history._BEGIN, A, 1 << 40, 0),
        (raw_history._FAILED, A, 1 << 40, 0),
        (raw_history._FREE, A, 0, 0),
    ]
    assert calls(rows) == ([(MALLOC, 0, 8), (FREE, 0, 0)], [])


def test_a_realloc_cut_off_by_a_kill_leaves_the_object_live() -> None:
    rows = [(raw_history._MALLOC, A, 8, 0), (raw_history._BEGIN, A, 100, 0), (raw_history._MALLOC, A, 7, 1)]
    assert calls(rows) == ([(MALLOC, 0, 8), (MALLOC, 1, 7)], [])


def test_blocks_from_before_the_recording() -> None:
    rows = [
        (raw_history._FREE, A, 0, 0),
        (raw_history._BEGIN, B, 50, 0),
        (raw_history._END, A, 50, 0),
        (raw_history._FREE, A, 0, 0),
        (raw_history._FREE, B, 0, 0),
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
        (raw_history._MALLOC, A, 8, 0),
        (raw_history._MALLOC, B, 5, 0),
        (raw_history._MALLOC, A, 9, 0),
        (raw_history._FREE, A, 0, 0),
    ]
    assert calls(rows) == (
        [(MALLOC, 0, 8), (MALLOC, 1, 5), (FREE, 0, 0), (MALLOC, 2, 9), (FREE, 2, 0)],
        ["frees that the recorder did not see, inserted where the address is allocated again: 1"],
    )


def test_a_call_for_too_much_is_left_out_and_what_it_becomes_later_is_not() -> None:
    rows = [
        (raw_history._MALLOC, A, 3 << 30, 0),
        (raw_history._BEGIN, A, 10, 0),
        (raw_history._END, B, 10, 0),
        (raw_history._BEGIN, B, 3 << 30, 0),
        (raw_history._END, A, 3 << 30, 0),
        (raw_history._FREE, A, 0, 0),
    ]
    notes = [
        "blocks allocated before the recording, counted from their realloc: 1",
        "calls for more than 2^31 bytes, left out: 2",
    ]
    assert calls(rows) == ([(MALLOC, 0, 10), (FREE, 0, 0)], notes)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """Raw rows of three threads on a heap with eight addresses, and the calls on objects they stand for.

    A realloc's old address may be taken by another thread before the realloc ends, as in a real allocator.
    """
    rows: list[Row] = []
    expected: list[tuple[int, int, int]] = []
    unused = set(range(1, 9))
    held: dict[int, int] = {}  # address -> object
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
            rows.append((raw_history._END, address, size, thread))
            expected.append((REALLOC, object_, size))
        elif len(held) and draw(st.booleans()):
            address = draw(st.sampled_from(sorted(held)))
            object_ = held.pop(address)
            unused.add(address)
            if draw(st.booleans()):
                rows.append((raw_history._FREE, address, 0, thread))
                expected.append((FREE, object_, 0))
            else:
                rows.append((raw_history._BEGIN, address, size, thread))
                moving[thread] = (object_, size)
        elif unused:
            address = draw(st.sampled_from(sorted(unused)))
            unused.discard(address)
            held[address] = born
            rows.append((raw_history._MALLOC, address, size, thread))
            expected.append((MALLOC, born, size))
            born += 1
    return rows, expected


@given(histories())
def test_any_history_becomes_the_calls_it_stands_for(history: tuple[list[Row], list[tuple[int, int, int]]]) -> None:
    rows, expected = history
    if expected:
        assert calls(rows) == (expected, [])
