"""The stress test: what leaks in a loop that no trace has is found, and what stays flat passes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from forked_commands import HEAPWRIGHT
from metric_values import known
from recipes_random import random_recipes
from run_length import brief as briefly

import heapwright as hw
from heapwright._assure.stress_test import StressTestResult
from heapwright._cli import heapwright
from heapwright._explore import stress_test as exploring
from heapwright._explore.evaluation import SearchCandidate
from heapwright._explore.runner import Runner
from heapwright._explore.workers import Interrupt, Threads
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import stress_test
from heapwright._replay.arena_sizes import depends_on_arena
from heapwright._replay.engine import arena_holding
from heapwright._replay.replay import Replayed
from heapwright._replay.stress_test import (
    BESIDE,
    FEWEST,
    FULL,
    GUARD,
    LONG,
    LOOPS,
    PASSES,
    SHORT,
    StressEffort,
    best_fit_growth,
    drawn,
    points,
    repeated,
    run_stress_test,
)
from heapwright._studies.analysis import Analysis
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

pytestmark = pytest.mark.usefixtures("forks")

BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"

BRIEF = StressEffort(calls=300_000, base=100_000, enough=300_000, cramped=100_000)

HOARDING = Recipe.from_dict(
    {"align": 8, "pool": [{"kind": "quick", "up_to": 1024}, {"kind": "general", "coalesce": "never"}]}
)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return hw.read_trace(BROKER)


def test_a_heap_that_hoards_grows_without_end(trace: Trace) -> None:
    result = run_stress_test(trace, HOARDING, BRIEF)
    assert result.growth_ratio > 1.5
    assert not result.stable
    assert "grows by" in (result.why_not() or "")


def test_no_seed_turns_a_verdict(trace: Trace) -> None:
    """With one seed alone it grows by -3 to 9 % over the passes, beyond a bound of 5 % with two of ten."""
    coarse = {"kind": "general", "bins": "exact", "fit": "best", "victim_up_to": 4100, "min_block": 64}
    recipe = Recipe.from_dict({"align": 8, "pool": [coarse]})
    long = replace(BRIEF, calls=1_000_000, loops=(PASSES,), most=1.05)
    results = [run_stress_test(trace, recipe, long, seed=seed) for seed in (2, 9, 10)]
    assert [item.growing for item in results] == [[], [], []]
    assert results[1].best_fit[PASSES] != best_fit_growth(trace, PASSES, long, 9)  # averaged, as the heap's own is
    assert not any(
        run_stress_test(trace, HOARDING, replace(BRIEF, whole=False), seed=seed).stable for seed in (2, 9, 10)
    )


@pytest.mark.parametrize("name", ["exact-bins", "freertos-heap4"])
def test_heaps_that_merge_at_once_last(trace: Trace, name: str) -> None:
    result = run_stress_test(trace, hw.zoo(name), BRIEF)
    assert result.stable, (result.growth_ratio, result.worst, result.refused)
    assert list(result.footprint_bytes) == [*LOOPS, PASSES]


def test_passes_are_no_more_calls_than_loops_are(trace: Trace) -> None:
    """Else a bound for a threefold number of calls would be held against a tenfold one."""
    brief = replace(BRIEF, loops=(PASSES,))
    calls = max(run_stress_test(trace, hw.zoo("tlsf"), brief).footprint_bytes[PASSES])
    assert brief.calls <= calls < brief.calls + len(trace)
    long = replace(brief, calls=10 * BRIEF.base + 1, enough=10 * BRIEF.base + 1)
    assert 0 <= max(run_stress_test(trace, hw.zoo("tlsf"), long).footprint_bytes[PASSES]) - 10 * BRIEF.base < len(trace)


def test_only_the_loops_of_a_form_are_tried(trace: Trace) -> None:
    few = ("queue", "saw-tooth")
    assert tuple(run_stress_test(trace, hw.zoo("tlsf"), replace(SHORT, loops=few)).footprint_bytes) == few
    assert SHORT.loops == FULL.loops == (*LOOPS, PASSES)
    assert {*FULL.loops} - {*LONG.loops} == {"refill"}


@pytest.mark.parametrize("effort", [SHORT, LONG])
def test_a_short_form_leaves_out_calls_that_the_trace_never_makes(effort: StressEffort) -> None:
    """A program that never resizes, or never asks for an alignment, is not judged by how a heap does."""
    resizing, aligned = {"shrink", "grow", "resize"}, {"aligned"}
    op, id, size = [MALLOC, FREE] * 10, [at // 2 for at in range(20)], [24, 0] * 10
    plain = Trace.from_columns(op=op, id=id, size=size)
    resized = Trace.from_columns(op=[*op, MALLOC, REALLOC], id=[*id, 50, 50], size=[*size, 24, 40])
    asking = Trace.from_columns(op=op, id=id, size=size, align=[64, 0] * 10)
    every = {*effort.loops}
    assert {*stress_test._loops(plain, effort)} == every - resizing - aligned
    assert {*stress_test._loops(resized, effort)} == every - aligned
    assert {*stress_test._loops(asking, effort)} == every - resizing
    assert {*stress_test._loops(plain, FULL)} == {*FULL.loops}


def test_lists_that_are_flushed_as_the_heap_grows_stay_bounded(trace: Trace) -> None:
    """Unflushed lists of the same sizes cover several times as much in the loop where objects shrink."""
    (exact,) = hw.zoo("victim-bins").to_dict()["pool"]
    general = exact | {"close_bins": 1}
    kept = {"kind": "quick", "up_to": 256, "keep": "apart"}
    flushing = {"flush": "before-growing"}
    unflushed = Recipe.from_dict({"align": 8, "pool": [kept, general]})
    flushed = Recipe.from_dict({"align": 8, "pool": [kept | flushing, general]})
    last = [
        list(run_stress_test(trace, recipe, BRIEF).footprint_bytes["shrink"].values())[-1]
        for recipe in (flushed, unflushed)
    ]
    assert last[1] > 2 * last[0]


def test_the_same_seed_makes_the_same_calls(trace: Trace) -> None:
    brief = StressEffort(calls=20_000, base=10_000, enough=20_000, cramped=10_000)
    recipe = hw.zoo("tlsf")
    assert (
        run_stress_test(trace, recipe, brief)
        == run_stress_test(trace, recipe, brief)
        != run_stress_test(trace, recipe, brief, seed=2)
    )


def test_calls_that_are_written_down_tell_what_calls_that_are_made_do(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort = replace(SHORT, calls=5_000, enough=5_000, base=2_000, cramped=2_000)
    heaps = [*zoo.recipes()[::3], *random_recipes(12, 29)]
    written = [run_stress_test(trace, heap, effort) for heap in heaps]
    monkeypatch.setattr(stress_test, "_WRITTEN", 0)
    stress_test._covered_by_best_fit.cache_clear()
    made = [run_stress_test(trace, heap, effort) for heap in heaps]
    assert written == made
    assert any(item.refused for item in made), "none refuses: then the calls are not the written ones"


def test_all_passes_free_what_the_passes_before_left() -> None:
    op = [MALLOC, MALLOC, FREE, MALLOC, FREE]
    trace = Trace.from_columns(op=op, id=[1, 2, 1, 3, 3], size=[10, 20, 0, 30, 0])
    again = repeated(trace, 5000, 1)
    frees, mallocs = int((again.op == FREE).sum()), int((again.op == MALLOC).sum())
    assert mallocs >= 3000
    assert mallocs - frees <= 3  # what the last pass leaves: the trace's own, and those that outlive it
    assert again.peak_live_bytes <= 3 * trace.peak_live_bytes


def test_passes_of_a_short_trace_are_made_once_for_each_seed() -> None:
    """Heap after heap of an exploration asks for them."""
    count = 40
    op, id = [MALLOC] * count + [FREE] * count, [*range(count)] * 2
    trace = Trace.from_columns(op=op, id=id, size=[10] * count + [0] * count)
    seeds = range(1, stress_test.SEEDS + 1)
    before = stress_test._repeated_kept.cache_info().misses
    for _ in range(2):
        passes = [repeated(trace, 5000, seed) for seed in seeds]
    assert stress_test._repeated_kept.cache_info().misses - before == len(seeds)
    assert len({pass_.id.tobytes() for pass_ in passes}) == len(seeds)


def test_live_bytes_hold_many_objects(trace: Trace) -> None:
    sizes, live = drawn(trace, 2000)
    assert int(sizes.max()) * FEWEST <= live
    assert live == pytest.approx(2000 * (float(sizes.mean()) + BESIDE), rel=0.01)


@pytest.mark.parametrize(("size", "largest"), [(12_577, 12_577), (12_578, 1_592)])
def test_a_size_of_which_256_may_not_live_is_left_out(size: int, largest: int) -> None:
    """With one a thousand of it, the mean object counts for 1,610.985 bytes: 2,000 of them for 256 of 12,577 and 8."""
    uneven = Trace.from_columns(op=[MALLOC] * 1000, id=[*range(1000)], size=[1592] * 999 + [size])
    assert int(drawn(uneven, 2000)[0].max()) == largest


def test_objects_of_one_size_fill_what_may_live() -> None:
    few = Trace.from_columns(op=[MALLOC], id=[1], size=[16])
    queue = LOOPS.index("queue")
    _, output = stress_test._Loop(few, queue, replace(SHORT, calls=5_000, objects=100), 1).calls()
    assert np.cumsum(np.where(output["op"] == FREE, -1, 1)).max() == 100


@pytest.mark.parametrize("name", ["all-round", "exact-bins", "kingsley", "lea-2.7.2", "tlsf", "linux-pow2-page"])
def test_what_no_arena_changes_is_not_tried_in_a_smaller_one(
    trace: Trace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heap that takes fresh memory last refuses nothing in an arena of what it covered, and that is not tried."""
    tried: list[int] = []
    refuses_after = stress_test._Loop.refuses_after

    def counted(loop: Any, recipe: Recipe, struct: Any, arena: int) -> int | None:
        after = refuses_after(loop, recipe, struct, arena)
        tried.append(after or 0)
        return after

    monkeypatch.setattr(stress_test._Loop, "refuses_after", counted)
    brief = StressEffort(calls=20_000, base=2_000, enough=20_000, cramped=20_000)
    result = run_stress_test(trace, hw.zoo(name), brief)
    few = len(tried)
    monkeypatch.setattr(stress_test, "depends_on_arena", lambda recipe: True)
    assert run_stress_test(trace, hw.zoo(name), brief) == result
    assert (few == len(tried) - few) == depends_on_arena(hw.zoo(name))


@pytest.mark.parametrize(("name", "lasts"), [("exact-bins", True), ("tlsf", True), ("kingsley", False)])
def test_the_short_form_tells_what_the_long_form_does(trace: Trace, name: str, lasts: bool) -> None:
    assert (
        run_stress_test(trace, hw.zoo(name), SHORT).stable
        == lasts
        == run_stress_test(trace, hw.zoo(name), BRIEF).stable
    )


@pytest.mark.parametrize("name", ["exact-bins", "kingsley", "tlsf"])
def test_a_verdict_that_is_known_asks_neither_best_fit_nor_other_seeds(
    trace: Trace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = run_stress_test(trace, hw.zoo(name), BRIEF)
    requested: list[tuple[str, int]] = []

    def best_fit(of: Trace, loop: str, effort: StressEffort, seed: int) -> float:
        requested.append((loop, seed))
        return best_fit_growth(of, loop, effort, seed)

    monkeypatch.setattr(stress_test, "best_fit_growth", best_fit)
    brief = run_stress_test(trace, hw.zoo(name), replace(BRIEF, whole=False))
    assert brief.stable == whole.stable
    assert requested == [(loop, 1) for loop, growth in brief.growth.items() if growth > BRIEF.most]
    assert all(growth == whole.growth[loop] for loop, growth in brief.growth.items())


def test_the_forms_are_as_long_as_the_manual_says() -> None:
    assert (FULL.enough, FULL.calls, FULL.objects) == (1_000_000, 10_000_000, 2000)
    assert (LONG.calls, LONG.objects, LONG.whole) == (300_000, 2000, False)
    assert (SHORT.calls, SHORT.objects, SHORT.base, SHORT.whole) == (50_000, 500, 10_000, False)
    assert FULL.most == LONG.most == SHORT.most == GUARD == 1.15


def test_what_was_tried_briefly_does_not_count_as_tried_long(trace: Trace) -> None:
    assert run_stress_test(trace, hw.zoo("tlsf"), SHORT).calls == SHORT.calls < LONG.calls


def test_a_study_ships_nothing_that_fails_the_stress_test(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the front passes it briefly, what is recommended for longer; what was tested is not tested again."""
    long = replace(LONG, calls=60_000, base=10_000, enough=60_000, cramped=20_000, objects=500)
    monkeypatch.setattr(exploring, "SHORT", SHORT)  # as it ships: this is what it is for
    monkeypatch.setattr(exploring, "LONG", long)
    few, trace = briefly(20, 40), hw.cut(trace, first=briefly(4_000, 1 << 30))
    study = hw.explore(trace, tmp_path / "s.duckdb", limit=few, jobs=1)
    described = study.describe([*study.front(), study.pick()])
    assert {item["lasts"] for item in described} == {True}
    for item in described:
        assert (item["why_not"], item["metrics"]["lasts"]) == (None, 1)
        assert item["metrics"]["growth_ratio"] <= GUARD * 1.1
    for how in ("balanced", "smallest", "fastest"):
        pick = study.pick(how)
        assert pick.metrics["lasts"] == 1
        assert known(pick.metrics["endured_calls"]) >= long.calls > SHORT.calls
    tested = study.endured()
    again = hw.explore(trace, tmp_path / "s.duckdb", limit=few, jobs=1)
    assert again.endured() == tested


def test_what_failed_the_stress_test_is_not_shipped(trace: Trace, tmp_path: Path) -> None:
    few = hw.cut(trace, first=400)
    how: dict[str, Any] = {"strategy": "random", "limit": 2, "stress_test": False}
    path = hw.explore(few, tmp_path / "s.duckdb", **how).path
    with Analysis.open(path, write=True) as study:
        failing = study.pick("balanced").id
        study.set_endurance([(failing, few.name, {"growth_ratio": 1.6, "lasts": 0, "endured_calls": 50_000})])
        assert study.pick("balanced").id != failing and failing not in {item.id for item in study.front()}
    with pytest.raises(HeapwrightError, match="not shipped, because it grows by 60 % at constant live bytes"):
        hw.generate(hw.open_study(path)[failing], tmp_path / "c")


def test_what_fails_on_a_trace_is_not_tried_longer_on_the_next(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, other = hw.cut(trace, first=400), replace(hw.cut(trace, first=300), name="other")
    how: dict[str, Any] = {"strategy": "random", "limit": 2, "copies": 0, "stress_test": False}
    path = hw.explore([short, other], tmp_path / "s.duckdb", **how).path
    requested: list[tuple[str, int]] = []

    def told(effort: StressEffort, failing: str) -> Any:
        def tried(of: Trace, recipe: Recipe, watch: object) -> Replayed:
            requested.append((of.name, effort.calls))
            metrics = {"growth_ratio": 1.0, "lasts": int(of.name != failing), "endured_calls": effort.calls}
            return Replayed({**metrics, "failed": 0})

        return tried

    with Analysis.open(path, write=True) as study, Interrupt() as interrupt:
        runner, recipe = Runner(study, Threads(1), interrupt, None), study.candidate("tlsf")
        heap = SearchCandidate(recipe.id, study.recipe(recipe.id), "tlsf")
        for effort, failing in ((SHORT, "none"), (LONG, short.name)):
            monkeypatch.setattr(
                exploring, "StressTesting", lambda effort, threads, failing=failing: told(effort, failing)
            )
            exploring.stress_test_each(runner, [heap], [short, other], effort)
        assert requested == [(short.name, SHORT.calls), ("other", SHORT.calls), (short.name, LONG.calls)]
        assert study.robustness().stable(heap.id) is False
        new = study.candidate("lea-2.7.2")
        unknown = SearchCandidate(new.id, study.recipe(new.id), "lea-2.7.2")
        exploring.stress_test_each(runner, [unknown], [short, other], LONG)
        assert [name for name, _ in requested[3:]] == [short.name, "other"]  # nothing was known of it there


def test_a_heap_grows_where_it_does_by_more_than_it_may_or_best_fit_does() -> None:
    growth = {"queue": 1.25, "saw-tooth": 1.5}
    assert stress_test.StressTest({}, growth, most=1.25).growing == ["saw-tooth"]
    assert stress_test.StressTest({}, growth, {"saw-tooth": 1.2}, most=1.25).stable
    assert stress_test.StressTest({}, growth, {"saw-tooth": 1.25}, most=1.0).growing == ["queue", "saw-tooth"]


def test_points_are_four_to_a_decade() -> None:
    assert points(10_000) == [1000, 1778, 3162, 5623, 10_000]


def test_growth_is_the_last_value_over_that_at_the_base() -> None:
    covered = {1000: 2.0, 2000: 3.0, 4000: 6.0}
    assert [stress_test._growth(covered, base) for base in (500, 1000, 3999, 4000)] == [3, 3, 2, 1]


def test_a_heap_that_covered_more_is_tried_in_twice_what_its_blocks_take(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or in what it reaches; one that covered no more than that does the same there, and is not tried."""
    recipe, arenas = hw.zoo("kingsley"), list[int]()
    struct = policy_struct(recipe)
    cramped = arena_holding(struct, int(struct.fixed_end) + 2 * 3000)

    def tried(footprint: int, failed: int = 0) -> int | None:
        came = {1000: footprint // 2, 2000: footprint}, 1.5, SimpleNamespace(failed=failed, blocks=3000)
        monkeypatch.setattr(stress_test._Tried, "covered", lambda item, seed: came)
        return stress_test._Tried("aligned", trace, recipe, struct, BRIEF).whole(1)[2]

    def refusing(loop: Any, recipe: Recipe, struct: Any, arena: int) -> int:
        arenas.append(arena)
        return 500

    monkeypatch.setattr(stress_test._Loop, "refuses_after", refusing)
    monkeypatch.setattr(stress_test, "best_fit_refuses_after", lambda *_: None)
    assert tried(cramped) == 0 and arenas == []
    assert tried(cramped + 8) == 1 and arenas == [cramped]
    assert tried(cramped + 8, failed=2) is None
    for best, output in ((1001, 1), (1000, 0), (10, 0)):  # calls until best fit refuses one
        monkeypatch.setattr(stress_test, "best_fit_refuses_after", lambda *_, best=best: best)
        assert tried(cramped + 8) == output


def test_what_best_fit_refuses_as_early_is_no_leak() -> None:
    """Of the server's sizes the largest are of a size that, moved, finds no room in twice the live bytes."""
    server = hw.read_trace(BROKER.with_name("lighttpd_server.parquet"))
    effort = StressEffort(calls=500_000, base=100_000, enough=500_000, cramped=500_000)
    best = stress_test.best_fit_refuses_after(server, "resize", effort)
    assert best and best < 20_000 and stress_test.best_fit_refuses_after(server, "drift", effort) is None

    def refused(loop: str, name: str) -> int | None:
        recipe = hw.zoo(name)
        return stress_test._Tried(loop, server, recipe, policy_struct(recipe), effort).whole(1)[2]

    assert [refused("resize", name) for name in ("exact-bins", "tlsf", "small")] == [0, 0, 0]
    assert [refused("drift", name) for name in ("exact-bins", "tlsf", "small")] == [0, 0, 1]


def test_a_loop_has_a_number_for_each_object_that_lives() -> None:
    few = Trace.from_columns(op=[MALLOC], id=[1], size=[16])
    slots = [stress_test._Loop(few, 0, StressEffort(objects=count), 1)._calls.slots for count in (1000, 1 << 19)]
    assert slots == [4000, 1 << 20]


def test_the_command_tells_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "endurance.svg"
    command = [
        HEAPWRIGHT,
        "stress",
        str(BROKER),
        "--heap",
        "tlsf",
        "--heap",
        "kingsley",
        "--calls",
        "20000",
    ]
    done = subprocess.run([*command, "--json", "-o", str(picture)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert [item["heap"] for item in result] == ["tlsf", "kingsley"]
    assert set(result[0]) >= {"trace", "growth_ratio", "lasts", "refused", "footprint_bytes"}
    drawn_text = picture.read_text(encoding="utf-8")
    assert "kingsley" in drawn_text
    assert "saw-tooth" in drawn_text


@pytest.mark.parametrize(("grown", "lasts", "why"), [(1.16, True, True), (1.15, True, False), (1.16, False, False)])
def test_the_command_says_why_a_heap_is_stable_that_grows_as_best_fit_does(
    monkeypatch: pytest.MonkeyPatch, grown: float, lasts: bool, why: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    item = StressTestResult(
        "broker", "tlsf", grown, "shrink", {"shrink": 1.018}, lasts, (), 10_000, {"shrink": {10_000: 128_000}}
    )
    monkeypatch.setattr("heapwright._api.stress", lambda *_, **__: [item])
    output = CliRunner().invoke(heapwright, ["stress", str(BROKER), "--heap", "tlsf"]).stdout
    limit = "tlsf is stable: it may grow 15 % more than best fit, which grows 1.8% there.\n"
    assert (limit in output) == why


def test_what_cannot_be_tried_says_so(tmp_path: Path) -> None:
    wrong = subprocess.run(
        [HEAPWRIGHT, "stress", BROKER, "--heap", "lib:glibc"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 1
    assert "the stress test takes recipes" in wrong.stderr
    assert wrong.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["exact-bins", "kingsley", "tlsf"])
def test_several_threads_tell_what_one_tells(trace: Trace, name: str) -> None:
    for effort in (SHORT, replace(SHORT, whole=True)):
        alone = run_stress_test(trace, hw.zoo(name), effort)
        begun: list[str] = []
        assert run_stress_test(trace, hw.zoo(name), effort, threads=3, progress=begun.append) == alone
        output = list(alone.footprint_bytes)
        assert [loop for loop in begun if loop in output] == output
        requested = [*stress_test._loops(trace, effort)]
        assert begun == (requested if effort.whole else requested[: len(begun)])


def test_what_several_threads_have_not_begun_is_not_tried(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def note(item: Any, seed: int) -> None:
        tried.append(item.loop)

    def until_the_third(loop: str) -> None:
        if loop == LOOPS[2]:
            raise HeapwrightError("no time")

    monkeypatch.setattr(stress_test._Tried, "outcome", note)
    with pytest.raises(HeapwrightError, match="no time"):
        run_stress_test(trace, hw.zoo("tlsf"), SHORT, threads=2, progress=until_the_third)
    assert set(tried) <= {*LOOPS[:2]}


def test_idle_threads_help_with_what_is_tried_alone(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [Threads(5).threads_of_each(tasks) for tasks in (0, 1, 2, 4, 9)] == [5, 5, 2, 1, 1]
    requested: list[int] = []

    def note(effort: StressEffort, threads: int) -> Any:
        requested.append(threads)
        return lambda trace, recipe, watch: Replayed({"growth_ratio": 1.0, "lasts": 1, "endured_calls": 1, "failed": 0})

    monkeypatch.setattr(exploring, "StressTesting", note)
    few = hw.cut(trace, first=200)
    path = hw.explore(few, tmp_path / "s.duckdb", strategy="random", limit=2, copies=0, stress_test=False).path
    with Analysis.open(path, write=True) as study, Interrupt() as interrupt:
        runner = Runner(study, Threads(4), interrupt, None)
        heaps = [SearchCandidate(study.candidate(name).id, hw.zoo(name), name) for name in ("tlsf", "half-fit")]
        exploring.stress_test_each(runner, heaps[:1], [few])
        exploring.stress_test_each(runner, heaps[1:], [few])
        exploring.stress_test_each(runner, heaps, [few], LONG)
    assert requested == [4, 4, 2]


def test_the_former_name_of_stable_warns_and_answers() -> None:
    result = StressTestResult("broker", "tlsf", 1.0, "churn", {"churn": 1.0}, True, (), 10_000, {"churn": {10_000: 9}})
    with pytest.warns(DeprecationWarning, match="StressTestResult: this property is now `stable`"):
        assert result.lasts is result.stable is True
