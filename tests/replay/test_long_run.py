"""The need in the long run: what serving a future takes, and which heaps have no bounded need."""

from __future__ import annotations

from pathlib import Path

import pytest
from traces_random import steady

from heapwright._recipes.policy import policy_struct
from heapwright._recipes.pools import Fixed, General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay import long_run as module
from heapwright._replay.arena_sizes import server
from heapwright._replay.engine import GivenUpError
from heapwright._replay.long_run import CALLS, UNBOUNDED, long_run
from heapwright._replay.metrics import LONG_RUN_METRICS
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.made import futures_of

HOARDING = Recipe.unchecked((Quick(up_to=1024), General(coalesce="never")))
"""Freed blocks stay as large as they are."""


@pytest.fixture(scope="module")
def mixed() -> Trace:
    return steady(60_000)


@pytest.mark.parametrize("name", ["exact-bins", "tlsf", "freertos-heap4"])
def test_a_heap_that_merges_needs_what_a_replay_of_the_future_does(mixed: Trace, name: str) -> None:
    recipe = catalogue.load(name).at_alignment(8)
    result, metrics = long_run(mixed, recipe), replay(mixed, recipe)
    assert result.arena == result.footprint == metrics["footprint_bytes"]
    assert result.accesses == pytest.approx(float(metrics["accesses"] or 0) / len(mixed))
    assert (result.malloc_max, result.free_max) == (metrics["accesses_malloc_max"], metrics["accesses_free_max"])
    assert (result.calls, result.failed) == (len(mixed), 0)
    assert result.growth <= UNBOUNDED


@pytest.mark.parametrize("align", [4, 8])
def test_the_need_of_two_level_good_fit_serves_the_future_even_if_its_high_water_mark_does_not(align: int) -> None:
    broker = Trace.read(Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet")
    (future,), recipe = futures_of([broker], CALLS, 0), catalogue.load("tlsf").at_alignment(align)
    result, serves = long_run(future, recipe), server(future, recipe, policy_struct(recipe))
    assert (result.footprint, result.arena) == {4: (180_608, 180_792), 8: (179_548, 179_736)}[align]
    assert result.arena is not None and serves(result.arena) and not serves(result.footprint)


def test_a_heap_that_hoards_has_no_bounded_need(mixed: Trace) -> None:
    result = long_run(mixed, HOARDING)
    assert result.arena is None
    assert result.growth > 1.2
    assert result.footprint == replay(mixed, HOARDING)["footprint_bytes"]


def test_growth_that_best_fit_has_too_is_none_of_the_heap_itself() -> None:
    """Here what is live grows threefold, and so does every heap."""
    leaking = steady(60_000, kept=100)
    recipe = catalogue.load("tlsf").at_alignment(8)
    covered, *_ = module._covered(leaking, recipe, policy_struct(recipe))
    assert module._growth(covered) > 2
    result = long_run(leaking, recipe)
    assert result.growth <= 1.05 and result.arena == replay(leaking, recipe)["footprint_bytes"]


@pytest.mark.parametrize(
    ("grown", "best_fit", "growth", "bounded"),
    [(1.1, 1.0, 1.1, True), (1.101, 1.0, 1.101, False), (1.32, 1.2, 1.1, True), (1.1, 0.9, 1.1, True)],
)
def test_a_tenth_of_growth_beyond_best_fit_is_bounded_and_no_more(
    mixed: Trace, monkeypatch: pytest.MonkeyPatch, grown: float, best_fit: float, growth: float, bounded: bool
) -> None:
    monkeypatch.setattr(module, "_growth", lambda covered: grown)
    monkeypatch.setattr(module, "_best_fit_growth", lambda future: best_fit)
    result = long_run(mixed, catalogue.load("tlsf"))
    assert result.growth == pytest.approx(growth)
    assert (result.arena is not None) == bounded


def test_growth_is_measured_from_a_tenth_of_the_calls_to_the_end() -> None:
    assert module._growth({50: 10, 100: 20, 101: 30, 1000: 50}) == 2.5
    assert module._growth({200: 25, 1000: 50}) == 2, "where nothing is known so early: from what is known first"


def test_where_requests_fail_there_is_no_need(mixed: Trace) -> None:
    result = long_run(mixed, Recipe.unchecked((Fixed(sizes=(800,), counts=(40,)),)))
    assert result.failed > 0 and result.arena is None
    assert result.footprint > 0 and result.growth <= 1


def test_its_metrics_are_those_of_a_study(mixed: Trace) -> None:
    metrics = long_run(mixed, catalogue.load("exact-bins")).metrics()
    assert tuple(metrics) == LONG_RUN_METRICS
    assert long_run(mixed, HOARDING).metrics()["long_run_bytes"] is None


def test_a_replay_of_a_future_is_given_up_where_somebody_says_so(mixed: Trace) -> None:
    requested: list[int] = []

    def watch(so_far: object) -> bool:
        requested.append(1)
        return len(requested) < 3

    with pytest.raises(GivenUpError):
        long_run(mixed, catalogue.load("tlsf"), watch)
    assert len(requested) == 3
