"""What is known of a replay before it ends: the least footprint, and what it has come to so far."""

from __future__ import annotations

import dataclasses
import random
from functools import cache

import numpy as np
import pytest
from recipes_random import random_recipes
from traces_random import churning, plain_trace

from heapwright._native import lib
from heapwright._recipes.policy import BeyondReachError, policy_struct, structure_of, used_bytes
from heapwright._recipes.pools import Fixed, General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue
from heapwright._replay import engine
from heapwright._replay import lower_bounds as bounds
from heapwright._replay.engine import (
    GROWING,
    STRETCH,
    WATCHED_CALLS,
    GivenUpError,
    LevelWatch,
    PruningThresholds,
    ReplayProgress,
    control_bytes,
)
from heapwright._replay.lower_bounds import LeastAccesses, LeastFootprints, RemainingAccesses, in_all
from heapwright._replay.metrics import Value
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, REALLOC


@cache
def recipes() -> list[Recipe]:
    return [*catalogue.recipes(), *random_recipes(300, seed=13)]


def ends_no_lower(trace: Trace) -> int:
    """Check both bounds with every recipe that serves the whole trace; returns how many do."""
    least, accesses, served = LeastFootprints([trace]), LeastAccesses([trace]), 0
    for recipe in recipes():
        metrics = replay(trace, recipe)
        if metrics["failed"] == 0:
            served += 1
            assert least.of(recipe)[0] <= (metrics["footprint_bytes"] or 0), recipe.to_toml()
            assert in_all(accesses.of(recipe)[0], None) <= (metrics["accesses"] or 0), recipe.to_toml()
    return served


def resized(seed: int) -> Trace:
    """Mallocs, reallocs up and down, and frees."""
    generator = np.random.default_rng(seed)
    trace = plain_trace(seed, calls=1500)
    row = np.flatnonzero((trace.op != FREE) & (generator.random(len(trace)) < 0.4))
    at = row + 1  # at once after the malloc, and so before the free
    op, id, size = (np.insert(column, at, value) for column, value in (
        (trace.op, REALLOC), (trace.id, trace.id[row]), (trace.size, generator.integers(1, 900, len(row)))
    ))  # fmt: skip
    return Trace.from_columns(op=op, id=id, size=size, name="resized")


@pytest.mark.parametrize(
    "trace",
    [
        plain_trace(1, calls=1500),
        resized(2),
        churning(random.Random(3), 1500, (1, 7, 24, 100, 513), 0.47, "churning"),
    ],
    ids=lambda trace: trace.name,
)
def test_nothing_ends_below_the_least(trace: Trace) -> None:
    assert ends_no_lower(trace) > 100


def test_the_least_footprint_of_blocks_worked_out_by_hand() -> None:
    trace = Trace.from_columns(op=[0, 0, 0, 3, 0], id=[1, 2, 3, 2, 4], size=[1, 100, 20, 0, 50], name="few")
    least = LeastFootprints([trace])
    for recipe, blocks in (
        (Recipe(pools=(General(header=4, min_block=16),)), 16 + 104 + 24),
        (Recipe(pools=(Fixed(sizes=(24, 100), counts="grow", header=8),)), 32 + 112 + 32),
    ):
        assert least.of(recipe) == [control_bytes(policy_struct(recipe)) + blocks]


def test_neither_requests_nor_frees_take_fewer_accesses() -> None:
    """Of a heap that is filled, emptied and filled again; some heaps take no more for one of these."""
    generator = random.Random(8)
    count, tight = 60, set[int]()
    ids = [*range(count), *generator.sample(range(count), count), *range(count, 2 * count)]
    op = [0] * count + [FREE] * count + [0] * count
    drawn = generator.choices((1, 8, 24, 100, 300), k=count)
    size = drawn + [0] * count + generator.sample(drawn, count)
    for recipe in recipes():
        made = least = 0
        for part in range(3):
            end = (part + 1) * count
            trace = Trace.from_columns(op=op[:end], id=ids[:end], size=size[:end], name="filled")
            metrics, expected = replay(trace, recipe), in_all(LeastAccesses([trace]).of(recipe)[0], None)
            if metrics["failed"] != 0:
                break
            more = int(metrics["accesses"] or 0) - made
            assert more >= expected - least, recipe.to_toml()
            tight |= {part} if more == expected - least else set()
            made, least = made + more, expected
    assert tight == {0, 1, 2}


def least_of(trace: Trace, recipe: Recipe, calls: int = 0) -> int:
    """The least accesses after this number of calls."""
    return int(LeastAccesses([trace]).of(recipe)[0][-(-calls // STRETCH)])


def test_the_least_accesses_of_what_is_left_of_a_trace() -> None:
    trace = plain_trace(6, calls=3000)
    requests, recipe = int((trace.op != FREE).sum()), Recipe(pools=(General(),))
    assert least_of(trace, recipe) == 3 * len(trace) + 2 * requests
    flags = Recipe(pools=(Fixed(sizes=(24, 100), counts=(9, 9), find="first-fit"), General()))
    small = int(((trace.op != FREE) & (trace.size <= 100)).sum())
    assert least_of(trace, flags) == 5 * requests - 3 * small + (len(trace) - requests)
    (least,) = LeastAccesses([trace]).of(recipe)
    output = [int(least[-(-calls // STRETCH)]) for calls in range(len(trace) + 1)]
    remaining = np.append(np.cumsum(np.where(trace.op == FREE, 3, 5)[::-1])[::-1], 0)
    assert all(0 <= remaining[calls] - output[calls] < 5 * STRETCH for calls in range(len(trace) + 1))
    assert output[-1] == 0 and output == sorted(output, reverse=True)
    assert least_of(trace, recipe.model_copy(update={"threads": "cached"})) == 0
    resizing = resized(2)
    assert least_of(resizing, recipe) == int(np.select([resizing.op == REALLOC, resizing.op == FREE], [0, 3], 5).sum())


def test_what_no_list_holds_takes_the_accesses_of_the_pools_behind() -> None:
    """Lists of blocks of just these sizes, of all up to one, and those out of which idle blocks are taken."""
    sizes = [1, 16, 20, 24, 25, 60, 61, 200]
    trace = Trace.from_columns(op=[0] * 8, id=range(8), size=sizes, name="sizes")
    for quick, held in (
        (Quick(sizes=(24, 60)), {24, 25, 60}),
        (Quick(up_to=60), {1, 16, 20, 24, 25, 60}),
        (Quick(sizes=(24, 60), flush="idle"), {1, 16, 20, 24, 25, 60}),
    ):
        recipe = Recipe(pools=(quick, General(header=4, min_block=16)))
        assert least_of(trace, recipe) == sum(3 if size in held else 5 for size in sizes), quick
    aligned = Trace.from_columns(op=[0, 0], id=[1, 2], size=[24, 200], align=[0, 64], name="aligned")
    assert least_of(aligned, Recipe(pools=(Quick(sizes=(24,)), General()))) == 6, "what is aligned asks for more"
    least = LeastAccesses([aligned, trace])
    for quick, expected in ((Quick(sizes=(500,)), 10), (Quick(sizes=(60,)), 6)):
        output = least.of(Recipe(pools=(quick, General(header=4, min_block=16))))
        assert int(output[0][0]) == expected, "what the other trace requests counts, as it is not known how much more"


def looked_at(trace: Trace, recipe: Recipe) -> tuple[list[ReplayProgress], dict[str, Value]]:
    """What a watched replay shows on its way, and at its end."""
    output: list[ReplayProgress] = []

    def look(so_far: ReplayProgress) -> bool:
        output.append(so_far)
        return True

    return output, replay(trace, recipe, watch=look)


def test_no_threshold_changes_a_bound() -> None:
    """They report what recipes have in common whose thresholds differ."""
    sizes, differ = np.arange(1, 3000, 7), 0
    for recipe in (item for item in recipes() if not item.memory):
        try:
            own, common = policy_struct(recipe), structure_of(recipe).struct()
        except BeyondReachError:
            continue
        differ += bytes(used_bytes(own)) != bytes(used_bytes(common))
        np.testing.assert_array_equal(bounds._least_blocks(own, sizes), bounds._least_blocks(common, sizes))
        for mine, shared in zip(*(bounds._least_accesses(item, sizes) for item in (own, common)), strict=True):
            np.testing.assert_array_equal(mine, shared)
    assert differ > 50


def test_what_a_replay_has_come_to_never_falls() -> None:
    trace = plain_trace(4, calls=2 * WATCHED_CALLS)
    for recipe in recipes()[::8]:
        output, metrics = looked_at(trace, recipe)
        calls = [so_far.calls for so_far in output]
        begun = range(WATCHED_CALLS, len(trace), WATCHED_CALLS)
        assert calls[: len(begun)] == [*begun], recipe.to_toml()
        assert set(calls[len(begun) :]) <= {len(trace)}, "asked again for each arena that is tried for the footprint"
        rows = [list(dataclasses.asdict(so_far).values())[1:] for so_far in output]
        ends = [metrics[key.name] for key in dataclasses.fields(ReplayProgress)[1:]]
        assert (np.diff(np.array([*rows, ends], np.int64), axis=0) >= 0).all(), recipe.to_toml()
        if metrics["failed"] == 0:
            [to_come] = LeastAccesses([trace]).of(recipe)
            for so_far in output:
                assert in_all(to_come, so_far) <= (metrics["accesses"] or 0), recipe.to_toml()
        assert metrics == replay(trace, recipe)


def test_a_replay_that_is_not_worth_it_is_given_up() -> None:
    trace = plain_trace(4, calls=2 * WATCHED_CALLS)
    with pytest.raises(GivenUpError, match="after 4,096 calls") as given_up:
        replay(trace, Recipe(pools=(General(),)), watch=lambda so_far: False)
    assert given_up.value.so_far.calls == WATCHED_CALLS


def test_an_error_of_what_watches_is_raised() -> None:
    def fails(so_far: ReplayProgress) -> bool:
        raise RuntimeError("watched")

    with pytest.raises(RuntimeError, match="watched"):
        replay(plain_trace(4, calls=2 * WATCHED_CALLS), Recipe(pools=(General(),)), watch=fails)


class AtLevels(LevelWatch):
    """Watches a replay of a trace, with levels; it is never pruned."""

    def __init__(self, corners: list[dict[str, int]], to_come: RemainingAccesses | None = None) -> None:
        rows = [[corner.get(key, 0) for key in GROWING] for corner in corners]
        self.told, self._levels = list[ReplayProgress](), PruningThresholds(np.array(rows, np.int64), to_come)

    def __call__(self, so_far: ReplayProgress) -> bool:
        self.told.append(so_far)
        return True

    def levels(self) -> PruningThresholds:
        return self._levels


def test_the_engine_compares_as_many_levels_as_there_are() -> None:
    assert len(GROWING) == lib.HW_GROWING


@pytest.mark.parametrize("name", ["lea-2.7.2", "binary-buddy", "kingsley"])
@pytest.mark.parametrize("counted", [False, True])
def test_a_replay_with_levels_is_watched_from_the_first_stretch_on_that_reaches_a_corner(
    name: str, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, recipe = plain_trace(4, calls=3 * WATCHED_CALLS), catalogue.load(name)
    [to_come] = LeastAccesses([trace]).of(recipe)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "WATCHED_CALLS", STRETCH)
        output, metrics = looked_at(trace, recipe)
    rows = [dataclasses.asdict(so_far) for so_far in output]
    for row in rows:
        row["accesses"] += int(to_come[row["calls"] // STRETCH]) if counted else 0
    some, far = rows[len(rows) // 3], 1 << 40
    for keys in (("footprint_bytes",), ("accesses",), ("reads", "writes"), ("accesses_free_max", "footprint_bytes")):
        corner = {key: some[key] for key in keys}
        watch = AtLevels([{"reads": far}, corner, {"footprint_bytes": 1, "writes": far}], to_come if counted else None)
        assert metrics == replay(trace, recipe, watch=watch)
        reached = next(row["calls"] for row in rows if all(row[key] >= corner[key] for key in keys))
        requested = [so_far.calls for so_far in watch.told if so_far.calls < len(trace)]
        assert requested == [*range(reached, len(trace), WATCHED_CALLS)]
    seldom = AtLevels([{"reads": far}])
    assert metrics == replay(trace, recipe, watch=seldom)
    assert seldom.told[0].calls == 4 * WATCHED_CALLS
