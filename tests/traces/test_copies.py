"""Perturbed copies: what every kind keeps, and that they are drawn from the seed alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from case_tables import each
from hypothesis import given, settings
from hypothesis import strategies as st
from traces_random import labelled_traces, random_trace

import heapwright as hw
from heapwright._cli.trace import KINDS as CHOICES
from heapwright._traces.copies import KINDS, STANDARD, Blocks, Kind, Lifetimes, Load, Sizes, Streams, Together, copies
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"

shares = st.floats(0.01, 0.99)
others = st.one_of(
    st.builds(Lifetimes, shares, st.floats(0.01, 20)),
    st.builds(Streams, shares),
    st.builds(Blocks, st.integers(2, 60), st.integers(1, 8)),
    st.builds(Load, st.integers(2, 4), shares),
)
sizes = st.builds(Sizes, shares)
kinds = st.one_of(sizes, others, st.builds(Together, sizes, others))


def one_copy(trace: Trace, kind: Kind, seed: int = 0) -> Trace:
    (copy,) = copies(trace, 1, kinds=[kind], seed=seed)
    return copy


def lives(trace: Trace) -> list[tuple[tuple[int, ...], ...]]:
    """Every object's calls in order, as operation, size and alignment; the objects sorted."""
    objects, count = trace.objects()
    results: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
    for object_, op, size, align in zip(objects, trace.op, trace.size, trace.align, strict=True):
        results[object_].append((int(op), 0 if op == FREE else int(size), int(align)))
    return sorted(tuple(item) for item in results)


def operations(trace: Trace) -> list[tuple[int, ...]]:
    return sorted(tuple(call[0] for call in item) for item in lives(trace))


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), kinds, st.integers(0, 99))
def test_every_copy_is_valid_and_says_what_it_is(trace: Trace, kind: Kind, seed: int) -> None:
    copy = one_copy(trace, kind, seed)
    assert copy.name == f"app~{kind.name}-1"
    assert copy.metadata["copy_of"] == "app"
    assert copy.metadata["copy_kind"] == kind.name
    assert copy.metadata["copy_seed"] == str(seed)
    assert copy.metadata["pointer_bytes"] == "4"
    assert (copy.phases, copy.sites) == (trace.phases, trace.sites)
    assert (copy.ts_us.min() >= 0) == (trace.ts_us.min() >= 0)


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), kinds, st.integers(0, 99))
def test_every_object_lives_as_one_of_the_original(trace: Trace, kind: Kind, seed: int) -> None:
    copy = one_copy(trace, kind, seed)
    if isinstance(kind, Together):
        assert set(operations(copy)) <= set(operations(trace))
    elif isinstance(kind, Sizes):
        assert operations(copy) == operations(trace)
    elif isinstance(kind, Blocks):
        assert set(lives(copy)) <= set(lives(trace))
    else:
        times = kind.times if isinstance(kind, Load) else 1
        assert lives(copy) == sorted(lives(trace) * times)


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), shares, st.integers(0, 99))
def test_sizes_move_class_by_class_within_the_spread(trace: Trace, spread: float, seed: int) -> None:
    copy = one_copy(trace, Sizes(spread), seed)
    assert np.array_equal(copy.op, trace.op)
    assert np.array_equal(copy.objects()[0], trace.objects()[0])
    assert np.array_equal(copy.ts_us, trace.ts_us)
    requested = trace.op != FREE
    moved = dict(zip(trace.size[requested].tolist(), copy.size[requested].tolist(), strict=True))
    assert [moved[size] for size in trace.size[requested].tolist()] == copy.size[requested].tolist()
    for size, new in moved.items():
        assert abs(new - size) <= max(size * spread + 0.5, 1)
        assert (new == 0) == (size == 0)


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), shares, others, st.integers(0, 99))
def test_other_sizes_go_with_another_change(trace: Trace, spread: float, other: Kind, seed: int) -> None:
    copy = one_copy(trace, Together(Sizes(spread), other), seed)
    assert copy.name == f"app~sizes+{other.name}-1"
    known = set(trace.size[trace.op != FREE].tolist())
    for size in set(copy.size[copy.op != FREE].tolist()):
        assert any(abs(size - item) <= max(item * spread + 0.5, 1) for item in known)


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), shares, st.floats(0.01, 20), st.integers(0, 99))
def test_lifetimes_keep_the_requests_and_delay_frees(trace: Trace, share: float, stretch: float, seed: int) -> None:
    copy = one_copy(trace, Lifetimes(share, stretch), seed)
    for column in ("op", "size", "align", "tid", "site"):
        requested, kept = (getattr(item, column)[item.op != FREE] for item in (trace, copy))
        assert np.array_equal(requested, kept)
    assert copy.peak_live_bytes >= trace.peak_live_bytes
    assert copy.live_bytes[-1] == trace.live_bytes[-1]


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), st.integers(2, 4), shares, st.integers(0, 99))
def test_load_raises_the_peak_by_its_factor_at_most(trace: Trace, times: int, shift: float, seed: int) -> None:
    copy = one_copy(trace, Load(times, shift), seed)
    assert len(copy) == times * len(trace)
    assert trace.peak_live_bytes <= copy.peak_live_bytes <= times * trace.peak_live_bytes


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), shares, st.integers(0, 99))
def test_streams_keep_their_order(trace: Trace, shift: float, seed: int) -> None:
    copy = one_copy(trace, Streams(shift), seed)

    def streams(item: Trace) -> dict[tuple[int, ...], list[int]]:
        """The operations of every stream's births and resizings in order."""
        objects, _ = item.objects()
        born = item.op <= CALLOC
        of = dict(zip(objects[born], zip(item.tid[born], item.site[born], item.size[born], strict=True), strict=True))
        results: dict[tuple[int, ...], list[int]] = {}
        for object_, op, size in zip(objects, item.op, item.size, strict=True):
            results.setdefault(of[object_], []).append(int(size) if op == REALLOC else -int(op))
        return results

    assert streams(copy) == streams(trace)


@settings(max_examples=25, deadline=None)
@given(labelled_traces(), st.integers(2, 60), st.integers(1, 8), st.integers(0, 99))
def test_blocks_keep_what_outlives_them(trace: Trace, blocks: int, reach: int, seed: int) -> None:
    copy = one_copy(trace, Blocks(blocks, reach), seed)
    never = [item for item in lives(trace) if item[-1][0] != FREE]
    length = -(-len(trace) // blocks)
    births = np.flatnonzero(trace.op <= CALLOC)
    deaths = np.full(len(births), len(trace) * 2)
    deaths[trace.objects()[0][trace.op == FREE]] = np.flatnonzero(trace.op == FREE)
    assert int((deaths - births > length).sum()) <= copy.objects()[1]
    assert [item for item in lives(copy) if item[-1][0] != FREE] == never


@given(st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_a_copy_depends_on_seed_kind_and_number_alone(seed: int) -> None:
    trace = random_trace(random.Random(seed), 200)
    many = {copy.name: copy for copy in copies(trace, 12, seed=seed)}
    for copy in copies(trace, 3, kinds=["streams"], seed=seed):
        if copy.name in many:
            assert same(copy, many[copy.name])
    assert [copy.name for copy in copies(trace, 7, seed=seed)] == list(many)[:7]
    first, second = copies(trace, 2, kinds=["sizes"], seed=seed)
    assert not same(first, second)
    assert not same(first, copies(trace, 1, kinds=["sizes"], seed=seed + 1)[0])


def same(one: Trace, other: Trace) -> bool:
    columns = ("op", "id", "size", "align", "ts_us", "tid", "phase", "site")
    return all(np.array_equal(getattr(one, column), getattr(other, column)) for column in columns)


def test_blocks_of_a_phase_are_drawn_from_that_phase() -> None:
    """Two phases that ask for different sizes: no object of one turns up among those of the other."""
    calls = np.arange(400)
    trace = Trace.from_columns(
        op=np.where(calls % 2, FREE, 0),
        id=calls // 2,
        size=np.where(calls < 200, 16, 100),
        phase=np.where(calls < 200, 0, 1),
        phases=("start", "work"),
    )
    copy = one_copy(trace, Blocks(20, 20))
    assert np.array_equal(copy.size == 16, copy.phase == 0)
    assert (np.diff(copy.phase.astype(int)) >= 0).all()


@each(
    ("wrong", "says"),
    [
        (lambda: Sizes(1.0), r"sizes.spread: 1.0; must be above 0 and below 1"),
        (lambda: Lifetimes(0.0), r"lifetimes.share: 0.0; must be above 0 and at most 1"),
        (lambda: Lifetimes(0.5, 0.0), r"lifetimes.stretch: 0.0; must be above 0"),
        (lambda: Streams(2), r"streams.shift: 2; must be above 0 and at most 1"),
        (lambda: Streams(0), r"streams.shift: 0; must be above 0 and at most 1"),
        (lambda: Blocks(1), r"blocks.blocks: 1; must be 2 or more"),
        (lambda: Blocks(8, 0), r"blocks.reach: 0; must be 1 or more"),
        (lambda: Load(1), r"load.times: 1; must be 2 to 1000"),
        (lambda: hw.copies(BROKER, 0), r"count: 0; must be 1 or more"),
        (lambda: hw.copies(BROKER, seed=-1), r"seed: -1; must be 0 or more"),
        (lambda: hw.copies(BROKER, kinds=["size"]), r"kinds: size: no such kind of copy; did you mean sizes"),
        (lambda: hw.copies(BROKER, kinds=[]), r"kinds: none given; valid: sizes\+blocks, load"),
    ],
)
def test_what_cannot_be_used_is_said(wrong: object, says: str) -> None:
    with pytest.raises(hw.HeapwrightError, match=says):
        wrong()  # type: ignore[operator]


def test_the_bounds_that_are_told_can_be_used() -> None:
    for kind in (Lifetimes(1, 1000), Streams(1), Blocks(2, 1), Load(2), Load(1000)):
        assert len(one_copy(Trace.from_columns(op=[0, 0, FREE, FREE], id=[0, 1, 0, 1], size=[8, 9, 0, 0]), kind)) > 0


def test_the_command_line_offers_all_kinds() -> None:
    assert tuple(KINDS) == CHOICES
    assert [kind.name for kind in STANDARD] == list(CHOICES[: len(STANDARD)])


def test_copies_of_a_shipped_trace_survive_a_file(tmp_path: Path) -> None:
    result = hw.copies(BROKER, len(KINDS), kinds=list(KINDS))
    assert [copy.name.split("~")[1] for copy in result] == [f"{kind}-1" for kind in KINDS]
    for copy in result:
        copy.write(tmp_path / f"{copy.name}.parquet")
        again = hw.read_trace(tmp_path / f"{copy.name}.parquet")
        assert again.name == copy.name
        assert again.metadata["copy_parameters"] == copy.metadata["copy_parameters"]
        assert again.peak_live_bytes == copy.peak_live_bytes
