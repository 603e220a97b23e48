"""Replays with the index of long walks and without it: the same numbers for any recipe.

HEAPWRIGHT_INDEX says how many accesses are walked before the heap is indexed (docs/core.md); 0 indexes it from its
first call on, so that short traces exercise every way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from recipes_random import random_recipes
from run_length import EFFORT, brief
from sample_traces import trace_of
from traces_random import plain_trace, random_trace

from heapwright._native import ffi, lib
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import ContradictionError, Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay import engine
from heapwright._replay.arena_sizes import fit
from heapwright._replay.engine import run
from heapwright._replay.pictures import heap_map, metadata, timeline
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

OF_THE_INDEX = ("skipped", "walked", "margins")
METRICS = [name for name, _ in ffi.typeof("struct hw_metrics").fields if name not in OF_THE_INDEX]

SMALL_ARENA = 60_000
"""Bytes in which the random traces meet refusals."""

TRACES = (
    random_trace(random.Random(1), 2500, live=600),
    random_trace(random.Random(2), 1200, live=80),
    plain_trace(3, 1500),
)


def counted(trace: Trace, recipe: Recipe, arena: int | None) -> Any:
    """All that a replay counts, or why it cannot begin."""
    try:
        result, _ = run(trace, recipe, policy_struct(recipe), arena)
    except HeapwrightError as error:
        return str(error)
    return {name: getattr(result, name) for name in METRICS}


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Asserts that ask(trace, recipe, ...) is the same without the index, with it, and with one made on the way."""

    def compare(ask: Callable[..., Any], trace: Trace, recipe: Recipe, *more: Any) -> None:
        answers = []
        for patience in ("never", "0", "3000"):
            monkeypatch.setenv("HEAPWRIGHT_INDEX", patience)
            answers.append(ask(trace, recipe, *more))
        for answer in answers[1:]:
            assert answer == answers[0], recipe.to_toml()

    return compare


@pytest.mark.slow
def test_every_metric_of_random_recipes(both: Callable[..., None]) -> None:
    for recipe in random_recipes(brief(120, 250) * EFFORT, seed=13):
        for trace in TRACES:
            for arena in (None, SMALL_ARENA):
                both(counted, trace, recipe, arena)


def moves(recipe: Recipe) -> bool:
    return recipe.pools[0].kind == "compact"


def merges_on_the_way(recipe: Recipe) -> bool:
    return any(pool.kind == "general" and pool.coalesce in ("lazy", "sweep") for pool in recipe.pools)


def turns(recipe: Recipe) -> bool:
    return any(pool.kind == "quick" and pool.flush == "idle" and pool.up_to for pool in recipe.pools)


@pytest.mark.parametrize(("wanted", "drawn"), [(moves, 120), (merges_on_the_way, 60), (turns, 120)])
def test_every_metric_and_the_arena(both: Callable[..., None], wanted: Callable[[Recipe], bool], drawn: int) -> None:
    results = [item for item in random_recipes(brief(drawn, 4 * drawn) * EFFORT, seed=19) if wanted(item)]
    assert len(results) >= 5
    for recipe in results:
        for trace in TRACES[1:]:
            both(counted, trace, recipe, None)
            both(_marked, trace, recipe)
        both(_map, TRACES[1], recipe)


@pytest.mark.parametrize("name", zoo.names())
def test_every_metric_of_the_zoo(name: str, both: Callable[..., None]) -> None:
    recipe = zoo.load(name)
    for trace in TRACES:
        both(counted, trace, recipe, None)
    with suppress(ContradictionError):  # objects that move have no guard, and some least blocks no room for one
        both(counted, TRACES[2], Recipe.from_dict(recipe.to_dict() | {"checks": "full"}), None)


def test_an_index_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are kept for the next replay, which must not find there the block at the lowest address."""
    pool = {
        "kind": "general",
        "header": 8,
        "free_list": "single",
        "links_in": "header",
        "unit": 64,
        "coalesce": "never",
    }
    recipe = Recipe.model_validate({"align": 4, "link_bytes": 2, "pool": [pool]})
    trace = trace_of((MALLOC, 1, 60), (MALLOC, 2, 60), (FREE, 1, 0), (MALLOC, 3, 60), (FREE, 2, 0))
    monkeypatch.setenv("HEAPWRIGHT_INDEX", "0")
    assert counted(trace, recipe, None) == counted(trace, recipe, None)


def test_replays_that_are_given_up(both: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WATCHED_CALLS", 100)
    for recipe in random_recipes(20, seed=14):
        both(_watched, TRACES[0], recipe)


def test_timelines_maps_metadata_and_arenas(both: Callable[..., None]) -> None:
    trace = TRACES[1]
    for recipe in random_recipes(20, seed=15):
        both(_timeline, trace, recipe)
        both(_map, trace, recipe)
        both(_marked, trace, recipe)
    for recipe in random_recipes(6, seed=16):
        both(fit, trace, recipe)


def _watched(trace: Trace, recipe: Recipe) -> list[engine.ReplayProgress]:
    """What the first seven looks at a replay show, which is pruned then."""
    output: list[engine.ReplayProgress] = []

    def look(so_far: engine.ReplayProgress) -> bool:
        output.append(so_far)
        return len(output) < 7

    with pytest.raises(engine.GivenUpError):
        run(trace, recipe, policy_struct(recipe), None, watch=look)
    return output


def _timeline(trace: Trace, recipe: Recipe) -> Any:
    return {key: values.tolist() for key, values in timeline(trace, recipe).items()}


def _map(trace: Trace, recipe: Recipe) -> Any:
    return heap_map(trace, recipe, columns=20)["blocks"].tolist()


def _marked(trace: Trace, recipe: Recipe) -> Any:
    """Where metadata lies after the trace, and its bytes."""
    try:
        content, marks = metadata(trace, recipe, SMALL_ARENA)
    except HeapwrightError as error:
        return str(error)
    return marks.tobytes(), content[marks].tobytes()


@pytest.mark.parametrize("name", ["best-fit-slow-free", "freertos-heap2", "lwip-mem-large", "drr-proposed"])
def test_what_is_walked_is_short(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of some hundreds of blocks cost next to nothing compared with what the index answers."""
    recipe = zoo.load(name)
    monkeypatch.setenv("HEAPWRIGHT_INDEX", "0")
    result, _ = run(TRACES[0], recipe, policy_struct(recipe), None)
    assert result.skipped > result.reads / 2
    assert result.walked < (result.reads + result.writes) / 10


def test_level_full_has_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks into payloads, too, which nothing saves, but walks lists no further."""
    skipped = {}
    for checks in ("none", "full"):
        recipe = Recipe.from_dict(zoo.load("freertos-heap2").to_dict() | {"checks": checks})
        monkeypatch.setenv("HEAPWRIGHT_INDEX", "0")
        skipped[checks] = run(TRACES[0], recipe, policy_struct(recipe), None)[0].skipped
    assert skipped["full"] > skipped["none"] / 2


def test_objects_that_move_are_found_in_their_chain_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each malloc looks for the end of the chain, each free for the handle before its own."""
    trace = trace_of(
        *((MALLOC, number, 16) for number in range(1000)), *((FREE, number, 0) for number in range(999, -1, -1))
    )
    recipe = zoo.load("contiki-mmem")
    monkeypatch.setenv("HEAPWRIGHT_INDEX", "0")
    result, _ = run(trace, recipe, policy_struct(recipe), None)
    assert result.skipped > 950_000  # two walks of 500 handles on average, but for their ends
    assert result.walked == 0


def test_short_lists_are_not_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEAPWRIGHT_INDEX", raising=False)
    for name in ("tlsf", "victim-bins"):
        recipe = zoo.load(name)
        result, _ = run(TRACES[2], recipe, policy_struct(recipe), None, lib.HW_CHECK_NOTHING)
        assert result.skipped == 0
