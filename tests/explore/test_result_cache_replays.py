"""What is taken from a recipe that does the same is what a replay reports, for any recipe that has thresholds."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyword_explorations import explore
from recipes_random import random_recipe
from run_length import EFFORT, brief
from traces_random import plain_trace, random_trace

from heapwright._api import cut, workload
from heapwright._explore import evaluation
from heapwright._explore.result_cache import KEPT, ResultCache, form_of
from heapwright._explore.space import Space
from heapwright._recipes.policy import policy_struct
from heapwright._recipes.recipe import Recipe
from heapwright._replay import engine
from heapwright._replay.engine import Watch
from heapwright._replay.metrics import METRICS, Value
from heapwright._replay.replay import Replayed, replay, replay_with_margins
from heapwright._studies.analysis import Analysis
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

TRACES = (
    random_trace(random.Random(1), 1500, live=300),
    random_trace(random.Random(2), 800, live=60),
    plain_trace(3, 1000),
)

SPLITS = ("always", 17, 24, 32, 40, 48, 64, 100, 128, 200, 500, 1000, 3000, 60_000, "never")
MERGES = (0, 17, 24, 32, 40, 48, 64, 100, 128, 200, 500, 1000, 3000, 60_000)
VICTIMS = (1, 16, 30, 40, 64, 100, 200, 333, 500, 1500, 4000)


def with_thresholds(recipe: Recipe, count: int, rng: random.Random) -> Iterator[Recipe]:
    """Draws of the recipe with other thresholds in its last general pool, those that are valid."""
    heap = tomllib.loads(recipe.to_toml())
    general = [pool for pool in heap["pool"] if pool["kind"] == "general"][-1]
    for _ in range(count):
        general |= {"split": rng.choice(SPLITS), "coalesce_from": rng.choice(MERGES)}
        if "victim_up_to" in general:
            general["victim_up_to"] = rng.choice(VICTIMS)
        try:
            drawn = Recipe.from_dict(heap)
            policy_struct(drawn)
        except HeapwrightError:
            continue
        yield drawn


class Counted:
    """Replays recipes on a trace, and counts how often."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.cache, self.replays = trace, ResultCache(trace, 1 << 16), 0

    def metrics(self, recipe: Recipe, watch: Watch | None = None) -> dict[str, Value]:
        def replayed() -> Replayed:
            self.replays += 1
            return replay_with_margins(self.trace, recipe, watch=watch)

        return self.cache.metrics(recipe, watch, replayed)


def has_thresholds(recipe: Recipe) -> bool:
    """Whether it may be like others."""
    return form_of(recipe) is not None


@pytest.mark.parametrize("index", ["never", "0", "3000"])
@pytest.mark.parametrize("seed", range(3))
def test_thresholds_of_random_recipes(seed: int, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind of pool, on traces with reallocs and aligned requests, however its walks are answered."""
    monkeypatch.setenv("HEAPWRIGHT_INDEX", index)
    rng = random.Random(seed)
    trace = TRACES[seed]
    counted, requested, tried = Counted(trace), 0, 0
    while tried < brief(8, 30) * EFFORT:
        recipe = random_recipe(rng)
        if not has_thresholds(recipe):
            continue
        tried += 1
        for drawn in with_thresholds(recipe, 20, rng):
            requested += 1
            assert counted.metrics(drawn) == replay(trace, drawn), drawn.to_toml()
    assert counted.replays < 0.9 * requested


@pytest.mark.parametrize(
    ("trace", "most"),
    [
        (cut(Trace.read(EXAMPLES / "mosquitto_broker.parquet"), first=3000), 0.95),
        (cut(Trace.read(EXAMPLES / "lighttpd_server.parquet"), first=3000), 0.8),
        (cut(workload("drr", EXAMPLES / "tcp_transfers.parquet"), first=6000), 0.8),
    ],
    ids=["mosquitto", "lighttpd", "drr"],
)
def test_groups_of_the_default_space(trace: Trace, most: float) -> None:
    """All that differ in thresholds alone from some that are drawn."""
    groups = defaultdict(list)
    for recipe in Space.default([trace]).recipes():
        if form := form_of(recipe):
            groups[form.rest].append(recipe)
    drawn = random.Random(4).sample([group for group in groups.values() if len(group) > 5], brief(5, 15) * EFFORT)
    recipes = [recipe for group in drawn for recipe in group]
    random.Random(5).shuffle(recipes)
    counted = Counted(trace)
    for recipe in recipes:
        assert counted.metrics(recipe) == replay(trace, recipe), recipe.to_toml()
    assert counted.replays < most * len(recipes)


def test_the_index_hides_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins may be narrower where an index answers walks, which compares more; never wider."""
    rng, narrowed = random.Random(7), 0
    for _ in range(brief(30, 60) * EFFORT):
        recipe = random_recipe(rng)
        if not has_thresholds(recipe):
            continue
        for drawn in with_thresholds(recipe, 4, rng):
            output = []
            for index in ("never", "0"):
                monkeypatch.setenv("HEAPWRIGHT_INDEX", index)
                output.append(replay_with_margins(TRACES[0], drawn).margins)
            walked, indexed = output
            assert walked and indexed
            assert indexed.split_over == walked.split_over and indexed.split_up_to == walked.split_up_to
            assert indexed.merge_over >= walked.merge_over, drawn.to_toml()
            assert indexed.merge_up_to <= walked.merge_up_to, drawn.to_toml()
            narrowed += walked.merge_over > 0
    assert narrowed > 10


@pytest.mark.parametrize("tolerance", [None, 0])
def test_a_study_has_what_replays_of_all_would_tell(
    tolerance: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of every result, and the front, with two threads at a time."""
    monkeypatch.setattr(engine, "WATCHED_CALLS", 64)
    traces = [TRACES[2], cut(workload("drr", EXAMPLES / "tcp_transfers.parquet"), first=2000)]
    groups = defaultdict(list)
    for recipe in Space.default(traces).recipes():
        if form := form_of(recipe):
            groups[form.rest].append(recipe)
    drawn = random.Random(8).sample([group for group in groups.values() if len(group) > 10], 5)
    output, fronts = [], []
    for kept in (KEPT, 0):
        monkeypatch.setattr(evaluation, "KEPT", kept)
        space, path = Space(drawn, include_zoo=False), tmp_path / str(kept)
        requested = {"complete": True} if tolerance is None else {"tolerance": tolerance}
        fronts.append(explore(traces, space, study_path=path, copies=0, stress_test=False, jobs=2, **requested).front)
        with Analysis.open(path) as study:
            output.append({(id, name): metrics for id, name, metrics in study.measured_on("explored", tuple(METRICS))})
    assert fronts[0] == fronts[1]
    shared = output[0].keys() & output[1].keys()
    assert len(shared) == 2 * len(space) if tolerance is None else shared
    assert {key: output[0][key] for key in shared} == {key: output[1][key] for key in shared}
