"""Quick lists behind another pool do what they do where they stand first: what they give back, and when, is theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_builds import as_foreign, replayed
from pool_recipes import random_trace, recipe
from run_length import some

import heapwright as hw
from heapwright._heaps.foreign.heap import addresses
from heapwright._recipes.recipe import Recipe
from heapwright._traces.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("lighttpd_server", "mosquitto_broker")

BINS = {"kind": "general", "bins": "exact", "fit": "best", "search_most": 16}
LISTS: dict[str, dict[str, Any]] = {
    "idle": {"up_to": 1532, "lists_per_octave": 8, "flush": "idle"},
    "idle, one for each size": {"up_to": 132, "flush": "idle", "idle_share": 1 / 16},
    "before growing": {"up_to": 132, "flush": "before-growing"},
    "before growing, more lists": {"up_to": 512, "flush": "before-growing"},
    "idle, refilled": {"up_to": 512, "lists_per_octave": 8, "flush": "idle", "refill": 8},
    "before refusing": {"sizes": [16, 40, 64]},
}
MOST = 1.02
"""How far accesses may differ. They do not: what a pool admits is compared with numbers of the program."""
LOOKS = 4
"""Accesses of a request to see that a pool of counted blocks has none left."""


def alone(**keys: Any) -> Recipe:
    return recipe({"kind": "quick"} | keys, BINS, align=8)


def behind(first: dict[str, Any], **keys: Any) -> Recipe:
    return recipe({"kind": "fixed"} | first, {"kind": "quick"} | keys, BINS, align=8)


def measured(trace: Trace, heap: Recipe) -> dict[str, int]:
    metrics = hw.replay(trace, heap).metrics
    return {name: int(metrics[name] or 0) for name in ("accesses", "footprint_bytes")}


def wrong(trace: Trace) -> Iterator[str]:
    """What of a trace differs where a pool that serves nothing of it, or one that is soon full, stands first."""
    calls = int(np.count_nonzero(trace.op != hw.FREE))
    larger = int(trace.size.max()) + 1
    unused = {"sizes": [larger], "counts": [1], "min_size": larger}
    full = {"sizes": [16, 40], "counts": [1, 1], "max_size": 40}
    for name, keys in LISTS.items():
        first, second, third = (
            measured(trace, item) for item in (alone(**keys), behind(unused, **keys), behind(full, **keys))
        )
        if not first["accesses"] / MOST <= second["accesses"] <= first["accesses"] * MOST:
            yield f"{name} behind a pool without use: {second['accesses']} instead of {first['accesses']} accesses"
        if third["accesses"] > first["accesses"] * MOST + LOOKS * calls:
            yield f"{name} behind a full pool: {third['accesses']} instead of {first['accesses']} accesses"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pool_without_use_costs_lists_behind_it_nothing(name: str) -> None:
    assert not list(wrong(Trace.read(ROOT / "examples" / f"{name}.parquet")))


def test_on_traces_of_other_programs_too(shared_data: Path) -> None:
    paths = sorted([*(shared_data / "heap").glob("*.parquet"), *(shared_data / "pairs").glob("*.parquet")])
    assert paths
    results: dict[str, None] = {}
    for path in some(paths, 4):
        results |= {f"{path.stem}: {item}": None for item in wrong(Trace.read(path))}
    assert not list(results)


def test_generated_code_does_call_by_call_what_the_replay_does(tmp_path: Path) -> None:
    heap = behind({"sizes": [24, 40], "counts": [5, 20], "max_size": 40}, **LISTS["idle"])
    generated = as_foreign(heap, tmp_path)
    for seed in (1, 2, 3):
        trace = random_trace(seed, calls=900)
        mine, its = replayed(trace, heap, 1 << 20), addresses(trace, generated, 1 << 20)
        assert np.count_nonzero(its >= 0) > 100
        assert np.array_equal(mine, its), seed
