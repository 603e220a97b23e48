"""Futures: what they keep of the recording, and that they are drawn from the seed alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from case_tables import each
from traces_random import random_trace

import heapwright as hw
from heapwright._explore.default_space import Demand
from heapwright._traces.futures import resample, steady_part
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, REALLOC

BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"


def server(requests: int = 400, *, shutdown: bool = True, times: bool = True) -> Trace:
    """Ten tables, then requests: a buffer that grows once, a message freed two requests later, and a session for every
    ten of them that lives for thirty; at the end all is freed.
    """
    rows: list[tuple[int, int, int, int, int]] = [(0, number, 600 + number, 0, 0) for number in range(10)]
    number, waiting, sessions = 10, [], []
    for request in range(requests):
        rows.append((1, number, 24, 0, 1))
        rows.append((2, number, 48, 0, 1))
        rows.append((0, number + 1, 40, 64, 2))
        rows.append((3, number, 0, 0, 1))
        waiting.append(number + 1)
        number += 2
        if request % 10 == 0:
            rows.append((0, number, 72, 0, 3))
            sessions.append(number)
            number += 1
        if len(waiting) > 2:
            rows.append((3, waiting.pop(0), 0, 0, 2))
        if len(sessions) > 2:
            rows.append((3, sessions.pop(0), 0, 0, 3))
    if shutdown:
        rows += [(3, item, 0, 0, 0) for item in [*range(10), *waiting, *sessions]]
    op, id_, size, align, site = zip(*rows, strict=True)
    return Trace.from_columns(
        op=op,
        id=id_,
        size=size,
        align=align,
        site=site,
        sites=("main", "buffer", "message", "session"),
        tid=[item % 3 for item in site],
        ts_us=np.arange(len(rows)) * 10 if times else None,
        name="server",
        metadata={"pointer_bytes": "4"},
    )


def lives(trace: Trace, start: int = 0) -> set[tuple[tuple[int, ...], ...]]:
    """The calls of each object allocated from a call on, as operation, size, alignment and site, without the free."""
    objects, count = trace.objects()
    results: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
    for at in range(len(trace)):
        if trace.op[at] != FREE:
            row = tuple(int(column[at]) for column in (trace.op, trace.size, trace.align, trace.site, trace.tid))
            results[objects[at]].append(row)
    born = np.flatnonzero(trace.op <= CALLOC)
    return {tuple(item) for item, at in zip(results, born, strict=True) if at >= start}


def same(first: Trace, second: Trace, calls: int | None = None) -> bool:
    columns = ("op", "id", "size", "align", "ts_us", "tid", "site", "phase", "low")
    return all(np.array_equal(getattr(first, key)[:calls], getattr(second, key)[:calls]) for key in columns)


def test_a_future_begins_with_the_recording_up_to_its_shutdown() -> None:
    trace = server()
    start, stop = steady_part(trace)
    assert start == 22  # the tables, and the requests until the first message is freed
    assert stop == len(trace) - 16  # ten tables, two messages, two sessions, and the two frees before them
    future = resample(trace, 5000)
    assert len(future) == stop + 5000
    assert same(future, trace, stop)
    assert (future.name, future.sites) == ("server~future", trace.sites)
    assert future.metadata["pointer_bytes"] == "4"
    assert future.metadata["resample_of"] == "server"
    assert (future.metadata["resample_calls"], future.metadata["resample_seed"]) == ("5000", "0")


def test_objects_of_a_future_are_those_of_the_recording() -> None:
    trace = server()
    future = resample(trace, 5000)
    _, stop = steady_part(trace)
    whole = lives(trace)
    assert {item for item in lives(future, stop) if item[0][0] != CALLOC or len(item) > 1} <= whole
    # a buffer that is cut off by the end of the future has not been resized yet
    assert lives(future, stop) <= whole | {item[:1] for item in whole}
    assert np.count_nonzero(future.op == REALLOC) > 500


def test_a_life_is_as_long_as_one_that_was_recorded() -> None:
    trace = server()
    future = resample(trace, 5000, swing=0, stalls=0)

    def message_lives(item: Trace, of: range) -> list[int]:
        number, count = item.objects()
        free = np.full(count, -1)
        free[number[item.op == FREE]] = np.flatnonzero(item.op == FREE)
        born = np.flatnonzero((item.op <= CALLOC) & (item.site == 2))
        return [int(free[number[at]] - at) for at in born if at in of and 0 <= free[number[at]] < of.stop]

    _, stop = steady_part(trace)
    recorded = message_lives(trace, range(20, stop))
    drawn = message_lives(future, range(stop, len(future)))
    assert set(recorded) == {12, 13, 14}
    # where blocks meet, calls of the one before still come, so that it is some calls more or fewer
    assert np.median(drawn) == np.median(recorded) == 12
    assert np.mean(drawn) == pytest.approx(np.mean(recorded), rel=0.05)


def test_what_start_up_leaves_is_never_freed() -> None:
    trace = server()
    future = resample(trace, 20_000)
    freed = future.objects()[0][future.op == FREE]
    assert set(range(10)).isdisjoint(freed.tolist())


def test_the_live_peak_stays_near_that_of_the_recording() -> None:
    trace = server()
    future = resample(trace, 50_000)
    tenths = [part.max() for part in np.array_split(future.live_bytes, 10)]
    assert max(tenths) <= 1.3 * trace.peak_live_bytes
    assert max(tenths[5:]) <= 1.1 * max(tenths[:5])


@each("size", [16, 4000])
def test_what_a_leak_leaves_does_not_accumulate(size: int) -> None:
    count = 600
    op = np.tile([0, 0, 3], count)
    id_ = np.column_stack([np.arange(count), np.full(count, count), np.full(count, count)]).ravel()
    trace = Trace.from_columns(op=op, id=id_, size=np.tile([size, 24, 0], count))
    future = resample(trace, 100_000, stalls=0)
    assert future.peak_live_objects <= trace.peak_live_objects + 2
    assert future.peak_live_bytes <= 1.01 * trace.peak_live_bytes + 48
    held = resample(trace, 100_000)
    assert 1.01 * trace.peak_live_bytes < held.peak_live_bytes < 1.3 * trace.peak_live_bytes


def test_a_life_that_the_end_cuts_off_is_drawn_from_longer_ones() -> None:
    # 64 bytes live for 30 or for 300 calls; live objects at the end of the recording get one of these lives
    draw = random.Random(1)
    rows: list[tuple[int, int]] = []
    due: dict[int, list[int]] = {}
    for number in range(4000):
        rows.append((0, number))
        due.setdefault(len(rows) + draw.choice((30, 300)), []).append(number)
        rows += [(3, item) for at in sorted(due) if at <= len(rows) for item in due.pop(at)]
    op, id_ = zip(*rows, strict=True)
    trace = Trace.from_columns(op=op, id=id_, size=[64] * len(rows))
    future = resample(trace, 30_000, swing=0, stalls=0)
    _, stop = steady_part(trace)
    assert future.live_objects[stop + 1000 :].mean() == pytest.approx(
        trace.live_objects[stop // 3 : stop].mean(), rel=0.1
    )
    assert future.peak_live_objects < 1.2 * trace.peak_live_objects


def test_no_more_big_objects_live_at_once_than_were_recorded() -> None:
    # a saw-tooth: three blocks of 1,000 bytes are taken and given back together
    op = np.tile([0, 0, 0, 3, 3, 3, 0, 3], 500)
    id_ = np.tile([1, 2, 3, 1, 2, 3, 4, 4], 500)
    size = np.tile([1000, 1000, 1000, 0, 0, 0, 8, 0], 500)
    trace = Trace.from_columns(op=op, id=id_, size=size)
    future = resample(trace, 50_000, block=100)
    number, count = future.objects()
    big = np.zeros(count, bool)
    big[number[future.size == 1000]] = True
    change = np.where(future.op == FREE, -1, 1) * big[number]
    assert np.cumsum(change).max() == 3


def test_while_a_consumer_stalls_more_lives_and_then_drains_in_order() -> None:
    trace = server(2000, shutdown=False)
    steady = resample(trace, 60_000, swing=0, stalls=0)
    stalled = resample(trace, 60_000, swing=0, stalls=1)
    assert stalled.live_objects[len(trace) :].max() >= steady.live_objects[len(trace) :].max()


@each("swing", [0.0, 0.3])
def test_another_seed_is_another_future_and_a_longer_one_begins_alike(swing: float) -> None:
    trace = server()
    first = resample(trace, 3000, seed=5, swing=swing)
    assert same(first, resample(trace, 3000, seed=5, swing=swing))
    assert not same(first, resample(trace, 3000, seed=6, swing=swing))
    assert same(first, resample(trace, 30_000, seed=5, swing=swing), len(first))


def test_a_future_is_the_same_on_every_machine() -> None:
    future = resample(server(), 2000, seed=3)
    weights = np.arange(1, len(future) + 1)
    assert [int((column.astype(np.int64) * weights).sum()) for column in (future.op, future.size)] == PINNED


PINNED = [14911086, 191357338]


def test_the_clock_goes_on_and_never_back() -> None:
    trace = server()
    future = resample(trace, 3000)
    assert (np.diff(future.ts_us) >= 0).all()
    pace = (future.ts_us[-1] - trace.ts_us[-1]) / 3000
    assert 8 < pace < 13  # 10 us a call when it was recorded
    assert (resample(server(times=False), 3000).ts_us == -1).all()


@each("seed", range(40))
def test_every_future_of_any_recording_is_valid(seed: int) -> None:
    draw = random.Random(seed)
    trace = random_trace(draw, draw.choice([1, 2, 3, 5, 20, 100, 1000]))
    future = resample(trace, draw.choice([1, 10, 500, 3000]), seed=seed, swing=draw.choice([None, 0, 0.5]))
    sizes = set(trace.size[trace.op != FREE].tolist())
    assert set(future.size[future.op != FREE].tolist()) <= sizes
    assert Trace.from_columns(op=future.op, id=future.id, size=future.size).peak_live_bytes == future.peak_live_bytes


def test_requests_for_no_bytes_come_again() -> None:
    future = resample(Trace.from_columns(op=[0, 3] * 50, id=[1, 1] * 50, size=[0, 0] * 50), 100)
    assert (len(future), future.peak_live_bytes) == (200, 0)


def test_a_recording_of_one_big_block_has_no_future() -> None:
    trace = Trace.from_columns(op=[0], id=[0], size=[100])
    assert same(resample(trace, 1000), trace)
    with pytest.raises(hw.HeapwrightError, match="no load of this recording has that live peak"):
        resample(trace, 1000, live=1000)


@each("times", [1, 2, 4])
def test_the_load_is_scaled_to_a_live_peak(times: int) -> None:
    """Once the recording's own objects have gone; and pools with learnt counts follow the load."""
    broker = Trace.read(BROKER)
    requested = times * broker.peak_live_bytes
    future = resample(broker, 100_000, live=requested)
    reached = int(future.live_bytes[len(future) // 2 :].max())
    assert requested / 1.1 < reached < 1.1 * requested
    count = {size: counts[-1] for size, counts in Demand.of([future]).counts}
    recorded = {size: counts[-1] for size, counts in Demand.of([broker]).counts}
    common = count.keys() & recorded.keys()
    ratio = sum(count[size] for size in common) / sum(recorded[size] for size in common)
    assert 0.6 * times < ratio < 1.7 * times


@each(
    ("options", "message"),
    [
        ({"calls": 0}, "calls: 0; must be 1 or more"),
        ({"seed": -1}, "seed: -1; must be 0 or more"),
        ({"swing": 1.0}, "swing: 1.0; must be 0 or more and below 1"),
        ({"stalls": -1.0}, "stalls: -1.0; must be 0 or more"),
        ({"block": 0}, "block: 0; must be 1 or more"),
        ({"live": 0}, "live: 0; must be 1 or more bytes"),
        ({"live": 1000, "calls": 1000}, "live: 1,000 bytes: no load of this recording has that live peak; those tried"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(hw.HeapwrightError, match=message):
        hw.resample(BROKER, **options)  # type: ignore[arg-type]


def test_a_future_survives_a_file(tmp_path: Path) -> None:
    future = hw.resample(BROKER, 20_000, seed=1)
    future.write(tmp_path / "future.parquet")
    assert same(Trace.read(tmp_path / "future.parquet"), future)
