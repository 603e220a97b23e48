"""Leaks: what grows in a straight line is named, what only fluctuates, fills or ends is not."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from heapwright._traces.leaks import LEAST_OBJECTS, Leak, find_leaks, leak_sentence
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """A program that is written call by call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int, int]] = []
        self.made = 0

    def malloc(self, size: int, site: int = 0) -> int:
        self.made += 1
        self.calls.append((MALLOC, self.made, size, site))
        return self.made

    def free(self, number: int) -> None:
        self.calls.append((FREE, number, 0, 0))

    def trace(self, sites: tuple[str, ...] = ("",), microseconds: int | None = None) -> Trace:
        op, number, size, site = (np.array(column) for column in zip(*self.calls, strict=True))
        times = None if microseconds is None else microseconds * np.arange(len(op))
        return Trace.from_columns(op=op, id=number, size=size, site=site, sites=sites, ts_us=times)


def churning(program: Program, turns: int, leak: int = 0, every: int = 40, site: int = 0) -> None:
    """Objects of mixed sizes come and go; each `every` turns one of `leak` bytes stays."""
    choice, live = random.Random(7), []
    for turn in range(turns):
        live.append(program.malloc(choice.choice([20, 40, 44, 80, 120, 600])))
        if len(live) > 60:
            program.free(live.pop(choice.randrange(len(live))))
        if leak and turn % every == 0:
            program.malloc(leak, site)


def test_objects_that_stay_at_a_steady_rate_are_a_leak() -> None:
    program = Program()
    churning(program, 3000, leak=72)
    trace = program.trace(microseconds=1000)
    (leak,) = find_leaks(trace)
    assert (leak.size, leak.site, leak.objects, leak.bytes) == (72, "", 75, 75 * 72)
    assert leak.bytes_per_call == pytest.approx(72 * leak.objects_per_call)
    assert leak.objects_per_call == pytest.approx(1 / 81, rel=0.05)  # 40 turns of two calls each, and its own
    hours = leak.hours_until(36_000)
    assert hours == pytest.approx(500 * 81 / 3.6e6, rel=0.05)  # 500 objects, one in 81 calls, a call a millisecond
    assert leak.calls_until(36_000) == pytest.approx(500 * 81, rel=0.05)


def test_without_times_the_rate_is_known_per_call_alone() -> None:
    program = Program()
    churning(program, 3000, leak=72)
    (leak,) = find_leaks(program.trace())
    assert leak.bytes_per_hour is None
    assert leak.hours_until(1000) is None


def test_what_comes_and_goes_is_no_leak() -> None:
    program = Program()
    churning(program, 3000)
    assert find_leaks(program.trace()) == ()


def test_a_leak_that_the_program_frees_when_it_ends_is_none() -> None:
    program = Program()
    churning(program, 3000, leak=72)
    lost = [number for _, number, size, _ in program.calls if size == 72]
    for number in lost:
        program.free(number)
    assert find_leaks(program.trace()) == ()


def test_frees_at_the_end_do_not_hide_a_leak() -> None:
    program = Program()
    churning(program, 3000, leak=72)
    freed = {number for op, number, _, _ in program.calls if op == FREE}
    for number in [number for op, number, size, _ in program.calls if op == MALLOC and size != 72]:
        if number not in freed:
            program.free(number)
    assert [leak.objects for leak in find_leaks(program.trace())] == [75]


def test_what_a_program_keeps_from_its_start_is_no_leak() -> None:
    program = Program()
    for _ in range(200):
        program.malloc(64)
    churning(program, 3000)
    assert find_leaks(program.trace()) == ()


def test_a_cache_that_is_full_before_the_end_is_no_leak() -> None:
    program, cache = Program(), []
    for _ in range(6000):
        cache.append(program.malloc(72))
        program.free(program.malloc(20))
        if len(cache) > 2500:
            program.free(cache.pop(0))
    assert find_leaks(program.trace()) == ()


def test_a_step_is_no_leak() -> None:
    program = Program()
    churning(program, 2500)
    for _ in range(40):
        program.malloc(72)
    churning(program, 2500)
    assert find_leaks(program.trace()) == ()


def test_fewer_objects_than_the_least_are_none() -> None:
    program = Program()
    churning(program, 3000, leak=72, every=3000 // (LEAST_OBJECTS - 1))
    assert find_leaks(program.trace()) == ()


def test_a_site_that_leaks_objects_of_several_sizes_is_named() -> None:
    program = Program()
    for turn in range(3000):
        program.free(program.malloc(100, site=1))
        if turn % 20 == 0:
            program.malloc(30 + turn % 7, site=2)
    (leak,) = find_leaks(program.trace(sites=("", "net.c:41", "json.c:90")))
    assert (leak.size, leak.site, leak.objects) == (None, "json.c:90", 150)


def test_an_object_counts_for_the_size_that_it_has_in_the_end() -> None:
    program = Program()
    for turn in range(3000):
        program.free(program.malloc(100))
        if turn % 20 == 0:
            number = program.malloc(16)
            program.calls.append((REALLOC, number, 48, 0))
    assert [(leak.size, leak.objects) for leak in find_leaks(program.trace())] == [(48, 150)]


def test_the_leak_of_most_bytes_comes_first() -> None:
    program = Program()
    for turn in range(3000):
        program.free(program.malloc(100))
        if turn % 20 == 0:
            program.malloc(24)
            program.malloc(512)
    assert [leak.size for leak in find_leaks(program.trace())] == [512, 24]


def test_a_leak_that_stopped_is_none() -> None:
    program = Program()
    for turn in range(6000):
        program.free(program.malloc(100))
        if turn % 20 == 0 and turn < 4000:
            program.malloc(72)
    assert find_leaks(program.trace()) == ()


def test_short_traces_have_none() -> None:
    program = Program()
    for _ in range(20):
        program.malloc(72)
    assert find_leaks(program.trace()) == ()


def test_a_count_that_bends_is_no_straight_line() -> None:
    program, held = Program(), []
    for turn in range(6000):
        program.free(program.malloc(20))
        if turn % 10 == 0 and not 2000 < turn < 3500:  # it stays for a while, then rises again
            held.append(program.malloc(72))
    assert len(held) == 451
    assert find_leaks(program.trace()) == ()


def test_the_moments_of_a_random_leak_do_not_hide_it() -> None:
    for seed in range(20):
        choice, program = random.Random(seed), Program()
        for _ in range(6000):
            program.free(program.malloc(20))
            if choice.random() < 0.02:
                program.malloc(72)
        assert [leak.size for leak in find_leaks(program.trace())] == [72]


def test_a_leak_is_likely_unless_most_of_what_is_allocated_stays() -> None:
    program = Program()
    churning(program, 3000, leak=72)
    assert [leak.confidence for leak in find_leaks(program.trace())] == ["likely"]
    building = Program()
    for _ in range(3000):
        building.free(building.malloc(20))
        building.malloc(72)
        building.malloc(48)
    assert {leak.confidence for leak in find_leaks(building.trace())} == {"inconclusive"}


def test_the_sentence_has_the_time_until_the_reserve_is_used_up() -> None:
    leak = Leak(72, "src/net.c:88", 75, 5400, 0.01, 0.72, 7200.0)
    assert leak_sentence([leak], "app", reserve=3600, need=1800) == (
        "A leak in app (likely), or a cache that still fills: 75 objects of 72 bytes from src/net.c:88 (5,400 bytes) "
        "are never freed, and their number rises in a straight line, 2 bytes a second; a reserve of 3,600 bytes is "
        "used up 15 min (2,500 calls) after the recording."
    )
    untimed = replace(leak, site="", bytes_per_hour=None, confidence="inconclusive")
    assert leak_sentence([untimed, untimed], "app") == (
        "A leak in app (inconclusive), or the program still builds up its data: most of what it allocates stays: 75 "
        "objects of 72 bytes, and 1 more size or site (10,800 bytes) are never freed, and their number rises in a "
        "straight line, 1.44 bytes a call."
    )
    assert leak_sentence([], "app") == ""


@pytest.mark.parametrize("stored", [None, [], {}, {"size": 1}])
def test_what_is_no_stored_leak_is_an_error(stored: object) -> None:
    with pytest.raises(ValueError, match="no leak"):
        Leak.of(stored)


def test_a_stored_leak_is_read_with_its_types() -> None:
    leak = Leak(72, "", 75, 5400, 0.01, 0.72, None)
    assert Leak.of(asdict(leak)) == leak
    for wrong in ({"objects": "75"}, {"bytes_per_call": 0.0}, {"site": 1}, {"confidence": "sure"}, {"bytes": 1.5}):
        with pytest.raises(ValueError, match="another type"):
            Leak.of(asdict(leak) | wrong)


BUILDING_UP = {"wee_dogfood", "jq_a", "jq_b", "mujs_b"}
"""Recordings that were cut, or end, while the program still builds up its data."""


def test_recordings_of_programs_that_do_not_leak_are_not_named(shared_data: Path) -> None:
    examples = [ROOT / "examples" / f"{name}.parquet" for name in ("mosquitto_broker", "lighttpd_server")]
    files = [*examples, *sorted((shared_data / "heap").glob("*.parquet")), *sorted((shared_data / "pairs").iterdir())]
    found = {file.stem: find_leaks(Trace.read(file)) for file in [*files, shared_data / "long" / "mosq_long.parquet"]}
    assert len(found) == 36
    assert {name for name, leaks in found.items() if leaks} == BUILDING_UP
    assert {leak.confidence for leaks in found.values() for leak in leaks} == {"inconclusive"}
