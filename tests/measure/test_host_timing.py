"""Host time: the timed programs really do what the replay does. How long they take is no test's business."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT
from keyword_explorations import explore
from tool_requirements import machine
from traces_random import plain_trace, random_trace

from heapwright._explore.runner import Progress
from heapwright._explore.space import Space
from heapwright._heaps.heaps import RecipeHeap, replay_each
from heapwright._measure.host.calls import STDIN, calls_file
from heapwright._measure.host.timing import TICKS, Bench, TimedProgram, has_ticks, ns_per_event
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import General, Pool, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._studies.analysis import Analysis
from heapwright._studies.recommendations import EQUAL_WITHIN
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

PASSES = 2


@pytest.fixture(scope="module")
def broker() -> Trace:
    return Trace.read(ROOT / "examples" / "mosquitto_broker.parquet")


def told(program: TimedProgram, trace: Trace, arena: int) -> tuple[list[int], tuple[int, int]]:
    """Nanoseconds of each pass, and the heap's peak and refused requests after the last one."""
    words = [str(program.path), STDIN, str(PASSES), str(arena), *program.arguments[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=calls_file(trace))
    *times, last = done.stdout.splitlines()
    peak, refused = map(int, last.split())
    return [int(line) for line in times], (peak, refused)


@pytest.mark.parametrize("name", ["victim-bins", "wifi-special-pools"])
def test_timed_programs_do_what_the_replay_does(name: str, broker: Trace) -> None:
    recipe = zoo.load(name)
    with Bench() as bench:
        programs = [bench.generated(recipe, "-DTELL"), bench.with_policy(recipe, "-DTELL", "-DTOUCH")]
        for trace in (broker, random_trace(random.Random(name), 3000)):
            ample = 2 * int(replay(trace, recipe)["footprint_bytes"] or 0)
            for arena in (ample, policy(recipe)["fixed_end"] + 20_000):
                expected = replay(trace, recipe, arena=arena)
                for program in programs:
                    times, result = told(program, trace, arena)
                    assert result == (expected["footprint_bytes"], expected["failed"])
                    assert len(times) == PASSES
                    assert min(times) > 0
            assert expected["failed"], "the small arena must refuse something"


def test_time_is_given_for_every_heap_and_nothing_is_left_behind(broker: Trace) -> None:
    with Bench() as bench:
        recipe = zoo.load("tlsf")
        programs = {
            "generated": bench.generated(recipe),
            "library": bench.library(),
            "touched": bench.library(None, "-DTOUCH"),
        }
        result = bench.measure(programs, broker, rounds=2, passes=1)
        assert result.keys() == programs.keys()
        assert min(result.values()) > 0
        assert len({program.path for program in programs.values()}) == 3
        assert bench.generated(recipe) == programs["generated"], "compiled once"
    assert not bench.folder.exists()


def test_a_replay_gives_its_time_on_request_only(broker: Trace) -> None:
    recipe = zoo.load("exact-bins")
    heap = {"heap": RecipeHeap(recipe)}
    timed, untimed = (replay_each(broker, heap, time=time)["heap"].metrics for time in (True, False))
    assert isinstance(timed["ns_per_event"], float)
    assert timed["ns_per_event"] > 0
    assert untimed["ns_per_event"] is None
    assert {**timed, "ns_per_event": None} == untimed


def test_copies_are_timed_where_time_is_explored_for_and_the_fastest_goes_by_it(tmp_path: Path) -> None:
    pools: list[Pool] = [Quick(up_to=512), General(free_list="single", fit="best", coalesce="never")]
    space = Space([[Recipe.unchecked(tuple(pools[at:]), 8) for at in (0, 1)]], include_zoo=False)
    told: list[Progress] = []
    keys = ("ns_per_event", "footprint_bytes")
    explore(
        [plain_trace(1)], space, keys, tmp_path / "s.duckdb", jobs=1, copies=2, stress_test=False, progress=told.append
    )
    timing = [item for item in told if item.what == "timing"]
    assert timing[-1].finished == timing[-1].total == len(timing) - 3 + 3 * (len(timing) - 3)
    with Analysis.open(tmp_path / "s.duckdb") as study:
        tried = study.elsewhere["copy"]
        assert (tried.columns["ns_per_event"] > 0).all() and len(tried.ids)
        worst = {id: study.robustness().worst(id)["copy"].ratios["ns_per_event"] for id in tried.ids}
        assert min(worst.values()) >= 1
        here = dict(zip(study.combined.ids, study.combined.ratios("ns_per_event")[:, 0], strict=True))
        least = min(worst, key=lambda id: max(worst[id], here[id]))
        picked = study.pick("fastest").id
        assert max(worst[picked], here[picked]) <= EQUAL_WITHIN * max(worst[least], here[least])


def test_one_call_is_enough_of_a_trace() -> None:
    trace = Trace.from_columns(op=[0], id=[7], size=[100])
    assert ns_per_event(trace, zoo.load("st-memmgr")) > 0


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, broker: Trace) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(HeapwrightError, match="no-such-compiler"):
        ns_per_event(broker, zoo.load("tlsf"))
    with Bench("false") as bench, pytest.raises(HeapwrightError, match="false cannot compile"):
        bench.library()


def test_a_program_that_fails_is_named(broker: Trace) -> None:
    recipe = zoo.load("tlsf")
    with Bench() as bench:
        program = bench.generated(recipe)
        tiny = TimedProgram(program.path, (str(policy(recipe)["fixed_end"] - 1),))
        with pytest.raises(HeapwrightError, match="the arena is too small"):
            bench.measure({"tiny": tiny}, broker, rounds=1, passes=1)


@machine(has_ticks(), "only x86 has the time-stamp counter")
def test_ticks_are_given_for_every_call(broker: Trace) -> None:
    recipe = zoo.load("best-fit-slow-free")
    with Bench() as bench:
        result = bench.ticks({"heap": bench.generated(recipe, TICKS)}, broker, passes=3)["heap"]
    assert result.shape == (len(broker),)
    # The heap walks all blocks to allocate: the most expensive call takes far more than the median one.
    assert 0 < np.median(result) < result.max() / 3
