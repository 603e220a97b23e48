"""Profile: traces whose answers are known by construction, and obvious counts of all that is vectorised."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_traces import packets_of, stack, trace_of
from traces_random import labelled_traces

from heapwright._traces.holders import GROUPS, holders_of, short_names, size_class
from heapwright._traces.profile import births_and_deaths, locality_of_frees, order_of_frees, profile, sample_events
from heapwright._traces.streams import Stream
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC
from heapwright._traffic.profile import profile_packets


def queue(length: int, rounds: int) -> Trace:
    calls = [(MALLOC, at, 10) for at in range(length)]
    for at in range(rounds):
        calls += [(FREE, at, 0), (MALLOC, length + at, 10)]
    return trace_of(*calls, *((FREE, rounds + at, 0) for at in range(length)))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Random valid traces in which ids come back after their free."""
    live: list[int] = []
    calls: list[tuple[int, int, int]] = []
    for choice in draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=80)):
        size = choice % 97
        if live and choice % 5 == 0:
            calls.append((REALLOC, live[choice % len(live)], size))
        elif live and choice % 5 in (1, 2):
            calls.append((FREE, live.pop(choice % len(live)), 0))
        else:
            identifier = next(at for at in range(1000) if at not in live)
            live.append(identifier)
            calls.append((MALLOC, identifier, size))
    return trace_of(*calls)


def obvious_lives(trace: Trace) -> list[tuple[int, int]]:
    """(birth, death or -1) of every object, by walking the calls."""
    lives: list[list[int]] = []
    current: dict[int, int] = {}
    for at, (operation, identifier) in enumerate(zip(trace.op.tolist(), trace.id.tolist(), strict=True)):
        if operation == MALLOC:
            current[identifier] = len(lives)
            lives.append([at, -1])
        elif operation == FREE:
            lives[current[identifier]][1] = at
    return [(birth, death) for birth, death in lives]


def test_counts_sizes_and_shares() -> None:
    trace = trace_of((MALLOC, 0, 16), (1, 1, 16), (MALLOC, 2, 40), (REALLOC, 2, 64), (FREE, 0, 0))
    result = profile(trace)
    counts = {key: result[key] for key in ("events", "mallocs", "callocs", "reallocs", "frees", "requests")}
    assert counts == {"events": 5, "mallocs": 2, "callocs": 1, "reallocs": 1, "frees": 1, "requests": 4}
    assert result["sizes"] == [
        {"size": 16, "count": 2, "share": 0.5},
        {"size": 40, "count": 1, "share": 0.25},
        {"size": 64, "count": 1, "share": 0.25},
    ]
    assert (result["distinct_sizes"], result["top_two_share"], result["sizes_for_90_percent"]) == (3, 0.75, 3)
    assert (result["requested_bytes"], result["requested_peak_bytes"], result["requested_peak_event"]) == (136, 96, 3)
    assert result["live"] == {"event": [0, 1, 2, 3, 4], "bytes": [16, 32, 72, 96, 80], "objects": [1, 2, 3, 3, 2]}
    assert result["never_freed"] == {"objects": 2, "bytes": 80, "share": pytest.approx(2 / 3)}


def test_sizes_for_90_percent_is_the_least_number_of_sizes() -> None:
    calls = [(MALLOC, at, 8 if at < 9 else 16) for at in range(10)]
    assert profile(trace_of(*calls))["sizes_for_90_percent"] == 1
    calls.append((MALLOC, 10, 16))
    assert profile(trace_of(*calls))["sizes_for_90_percent"] == 2


def test_lifetimes_on_both_clocks() -> None:
    trace = trace_of((MALLOC, 0, 100), (MALLOC, 1, 7), (REALLOC, 1, 9), (FREE, 1, 0), (FREE, 0, 0))
    lifetimes = profile(trace)["lifetimes"]
    assert (lifetimes["events"]["p10"], lifetimes["events"]["max"]) == (2, 4)
    assert (lifetimes["bytes"]["p10"], lifetimes["bytes"]["max"]) == (9, 16)
    assert lifetimes["events"]["histogram"] == [
        {"from": 1, "to": 2, "count": 0},
        {"from": 2, "to": 4, "count": 1},
        {"from": 4, "to": 8, "count": 1},
    ]


def test_a_trace_without_frees() -> None:
    result = profile(trace_of((MALLOC, 0, 8), (MALLOC, 1, 8)))
    assert result["lifetimes"]["events"] == {
        "p10": None, "p25": None, "p50": None, "p75": None, "p90": None, "p99": None, "max": None, "histogram": []
    }  # fmt: skip
    assert result["locality"][0] == {"within_frees": 1, "share": None, "by_chance": None}
    assert result["free_order"] == {"score": None, "youngest_share": None, "oldest_share": None}


def test_a_queue_and_a_stack_are_told_apart() -> None:
    oldest_first = {"score": 0.0, "youngest_share": 0.0, "oldest_share": 1.0}
    assert order_of_frees(births_and_deaths(queue(20, 300))) == oldest_first
    youngest_first = {"score": 1.0, "youngest_share": 1.0, "oldest_share": 0.0}
    assert order_of_frees(births_and_deaths(stack(50))) == youngest_first


def test_what_lives_for_ever_does_not_make_a_queue_look_like_a_stack() -> None:
    calls = [(MALLOC, 1000 + at, 8) for at in range(100)]
    served = queue(20, 100)
    calls += zip(served.op.tolist(), served.id.tolist(), served.size.tolist(), strict=True)
    assert order_of_frees(births_and_deaths(trace_of(*calls)))["score"] == 0.0


def test_neighbours_in_a_queue_die_together_and_random_deaths_follow_chance() -> None:
    assert locality_of_frees(births_and_deaths(queue(50, 500)))[0]["share"] == 1.0
    generator = np.random.default_rng(7)
    live = list(range(100))
    calls = [(MALLOC, at, 8) for at in live]
    for at in range(100, 30_000):
        calls.append((FREE, live.pop(int(generator.integers(len(live)))), 0))
        calls.append((MALLOC, at, 8))
        live.append(at)
    for row in locality_of_frees(births_and_deaths(trace_of(*calls))):
        assert row["share"] == pytest.approx(row["by_chance"], abs=0.01)


@given(traces())
@settings(max_examples=200, deadline=None)
def test_vectorised_counts_equal_obvious_ones(trace: Trace) -> None:
    objects = births_and_deaths(trace)
    lives = obvious_lives(trace)
    assert list(zip(objects.birth.tolist(), objects.death.tolist(), strict=True)) == lives
    assert order_of_frees(objects) == pytest.approx(obvious_order(lives), nan_ok=True)
    assert locality_of_frees(objects, (3,)) == [pytest.approx(obvious_locality(lives, 3))]


def obvious_order(lives: list[tuple[int, int]]) -> dict[str, Any]:
    scores = []
    freed = [life for life in lives if life[1] >= 0]
    for birth, death in freed:
        others = [other for other in freed if other[0] < death < other[1]]
        if others:
            scores.append(sum(other[0] < birth for other in others) / len(others))
    if not scores:
        return {"score": None, "youngest_share": None, "oldest_share": None}
    ends = {key: sum(score == end for score in scores) / len(scores) for key, end in (("young", 1), ("old", 0))}
    return {"score": sum(scores) / len(scores), "youngest_share": ends["young"], "oldest_share": ends["old"]}


def obvious_locality(lives: list[tuple[int, int]], window: int) -> dict[str, Any]:
    deaths = sorted(death for _, death in lives if death >= 0)
    together, chances = [], []
    for (_, item), (birth, other) in pairwise(lives):
        if (item >= 0 and item < birth) or (item < 0 and other < 0):
            continue
        first = min(death for death in (item, other) if death >= 0)
        later = [death for death in deaths if death > first][:window]
        alive = sum(born < first and not 0 <= death <= first for born, death in lives)
        together.append(max(item, other) in later if min(item, other) >= 0 else False)
        chances.append(1 - (1 - 1 / alive) ** window)
    if not together:
        return {"within_frees": window, "share": None, "by_chance": None}
    shares = {"share": sum(together) / len(together), "by_chance": sum(chances) / len(chances)}
    return {"within_frees": window, **shares}


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300), st.integers(4, 60))
def test_samples_keep_the_peak_and_both_ends(values: list[int], points: int) -> None:
    array = np.array(values, dtype=np.int64)
    sample = sample_events(array, points)
    assert len(sample) <= points
    assert array[sample].max() == array.max()
    assert (sample[0], sample[-1]) == (0, len(values) - 1)
    assert (np.diff(sample) > 0).all()


def test_packets_have_ip_sizes_where_there_are_any() -> None:
    result = profile_packets(packets_of([40, 1500, 40, 0], [54, 1514, 54, 60], [1, 2, 1, 0]), "p")
    assert (result["packets"], result["size_column"], result["flows"], result["seconds"]) == (4, "ip_len", 2, 1.5)
    assert [(row["size"], row["count"]) for row in result["sizes"]] == [(40, 2), (1500, 1)]
    assert result["sizes"][0]["share"] == pytest.approx(2 / 3)


def test_packets_without_ip_have_frame_sizes() -> None:
    result = profile_packets(packets_of([0, 0], [10, 26], [0, 0]), "p")
    assert (result["size_column"], result["bytes"], result["flows"]) == ("frame_len", 36, 0)


def peak_of_profile(rounds: int) -> int:
    """Most bytes that Python and numpy hold while a trace of 2 * rounds calls is profiled, the trace not counted."""
    ids = np.arange(rounds, dtype=np.uint32)
    op = np.tile(np.array([MALLOC, FREE], np.uint8), rounds)
    trace = Trace.from_columns(op=op, id=ids.repeat(2), size=(ids % 100).repeat(2))
    tracemalloc.start()
    try:
        profile(trace)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_longer_trace_takes_at_most_18_bytes_a_call_to_profile() -> None:
    shorter, longer = 1_000_000, 2_000_000
    assert peak_of_profile(longer // 2) - peak_of_profile(shorter // 2) <= 18 * (longer - shorter)


# ---- who holds the live bytes --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(labelled_traces(), st.booleans(), st.integers(1, 40))
def test_who_holds_the_live_bytes_is_what_a_walk_over_the_calls_finds(trace: Trace, named: bool, points: int) -> None:
    if not named:
        trace = Trace.from_columns(op=trace.op, id=trace.id, size=trace.size)
    moments = np.unique(np.append(np.linspace(0, len(trace) - 1, points).astype(np.int64), len(trace) - 1))
    peak = int(trace.live_bytes.argmax())
    result = holders_of(Stream.of(trace), moments, peak)
    output = result["live_by"]
    assert output["key"] == ("site" if named else "size")
    alive: dict[int, tuple[str, int]] = {}
    for at in range(len(trace)):
        if trace.op[at] == FREE:
            del alive[int(trace.id[at])]
        else:
            alive[int(trace.id[at])] = trace.sites[trace.site[at]], int(trace.size[at])
        if at in moments:
            by: dict[str, int] = {}
            for site, size in alive.values():
                group = site if named else size_class(size)
                group = group if group in output["groups"] else "others"
                by[group] = by.get(group, 0) + size
            place = output["event"].index(at)
            assert {group: row[place] for group, row in zip(output["groups"], output["bytes"], strict=True)} == {
                group: by.get(group, 0) for group in output["groups"]
            }
            assert sum(by.values()) == trace.live_bytes[at]
        if at == peak:
            rows = sorted((row["site"], row["size"]) for row in result["at_peak"] for _ in range(row["objects"]))
            assert rows == sorted(alive.values())
    assert len(output["groups"]) <= GROUPS + 1
    assert all(row["bytes"] == row["size"] * row["objects"] for row in result["at_peak"])


def test_classes_of_sizes_are_powers_of_two() -> None:
    assert [size_class(size) for size in (0, 1, 2, 3, 64, 127, 1024, 2047, 1 << 31)] == [
        "0 B",
        "1 B",
        "2-3 B",
        "2-3 B",
        "64-127 B",
        "64-127 B",
        "1-2 KiB",
        "1-2 KiB",
        "2048-4096 MiB",
    ]


def test_a_site_is_short_where_that_tells_it_from_others() -> None:
    assert short_names(["/lib/a.so:f", "main;parse;src/node.c:3", "x/main.c:1", "y/main.c:1"]) == {
        "/lib/a.so:f": "a.so:f",
        "main;parse;src/node.c:3": "node.c:3",
        "x/main.c:1": "x/main.c:1",
        "y/main.c:1": "y/main.c:1",
    }


def test_a_trace_of_nothing_but_empty_requests_has_one_group() -> None:
    result = holders_of(Stream.of(trace_of((MALLOC, 0, 0), (FREE, 0, 0))), np.array([0, 1]), 0)
    assert result["live_by"]["bytes"] == [[0, 0]]
    assert result["at_peak"] == [{"site": "", "size": 0, "objects": 1, "bytes": 0}]
