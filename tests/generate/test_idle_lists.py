"""Lists that give back what waits idle, and lists for several sizes: blocks worked out by hand, and generated code.

Behaviour tables are as in tests/helpers/behaviour.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from behaviour import play
from foreign_builds import as_foreign, replayed
from metric_values import known
from pool_recipes import random_trace, recipe
from run_length import brief

import heapwright as hw
from heapwright._heaps.foreign.heap import addresses
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._replay.stress_test import StressEffort, run_stress_test
from heapwright._traces.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
BINS = {"kind": "general", "bins": "exact", "fit": "best"}
IDLE = {"kind": "quick", "up_to": 60, "lists_per_octave": 2, "flush": "idle", "idle_share": 1 / 64}
SHORT = StressEffort(calls=50_000, base=10_000, enough=50_000, objects=500, cramped=20_000)


def idle(**keys: Any) -> Recipe:
    return recipe(IDLE | keys, BINS, align=8)


# Five lists turn after 160 bytes of blocks past them. The first miss makes a turn; b, c and d leave 40 bytes, so e
# makes the second one: from now on a has waited since a turn. f, g and h leave 16, and the turn of i gives a back.
GIVEN_BACK = """
    malloc a 60     |0:64:a|
    malloc b 20     |0:64:a|64:24:b|
    free a          |0:64:~|64:24:b|
    malloc c 44     |0:64:~|64:24:b|88:48:c|
    malloc d 44     |0:64:~|64:24:b|88:48:c|136:48:d|
    malloc e 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|
    malloc f 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:f|
    malloc g 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:f|280:48:g|
    malloc h 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:f|280:48:g|328:48:h|
    free b          |0:64:~|64:24:~|88:48:c|136:48:d|184:48:e|232:48:f|280:48:g|328:48:h|
    malloc i 44     |0:48:i|48:16:.|64:24:~|88:48:c|136:48:d|184:48:e|232:48:f|280:48:g|328:48:h|
"""

# The same, but f requests what waits since the turn, and its block begins to wait again: the turn of j leaves it in
# place. k has no list, and empties them all before the heap grows.
TAKEN = """
    malloc a 60     |0:64:a|
    malloc b 20     |0:64:a|64:24:b|
    free a          |0:64:~|64:24:b|
    malloc c 44     |0:64:~|64:24:b|88:48:c|
    malloc d 44     |0:64:~|64:24:b|88:48:c|136:48:d|
    malloc e 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|
    malloc f 60     |0:64:f|64:24:b|88:48:c|136:48:d|184:48:e|
    free f          |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|
    malloc g 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:g|
    malloc h 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:g|280:48:h|
    malloc i 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:g|280:48:h|328:48:i|
    malloc j 44     |0:64:~|64:24:b|88:48:c|136:48:d|184:48:e|232:48:g|280:48:h|328:48:i|376:48:j|
    malloc k 90     |0:64:.|64:24:b|88:48:c|136:48:d|184:48:e|232:48:g|280:48:h|328:48:i|376:48:j|424:96:k|
"""

# Four lists to a power of two: above 64 bytes every 16. 66 bytes get a block of 80, which serves 76, too, but not 77;
# f has no list, and empties them all before the heap grows. e is cut to 88 bytes, which lie between two lists: it does
# not wait, as d does.
SHARED = """
    malloc a 66     |0:80:a|
    malloc b 20     |0:80:a|80:24:b|
    free a          |0:80:~|80:24:b|
    malloc c 76     |0:80:c|80:24:b|
    free c          |0:80:~|80:24:b|
    malloc d 77     |0:80:~|80:24:b|104:96:d|
    malloc e 100    |0:80:~|80:24:b|104:96:d|200:112:e|
    malloc f 125    |0:80:.|80:24:b|104:96:d|200:112:e|312:136:f|
    free f          |0:80:.|80:24:b|104:96:d|200:112:e|
    realloc e 80    |0:80:.|80:24:b|104:96:d|200:88:e|
    free e          |0:80:.|80:24:b|104:96:d|
    free d          |0:80:.|80:24:b|104:96:~|
"""


# A 64th of the heap is two blocks of 24 bytes and more. b misses and is served alone; c misses again, and gets the
# upper one of two blocks that are cut; d hits the lower one. e misses a third time: three blocks would be too much for
# that part of the heap, so it gets one of two. k has no list and empties them all: both blocks merge with the top.
REFILLED = """
    malloc a 4000   |0:4008:a|
    malloc b 20     |0:4008:a|4008:24:b|
    malloc c 20     |0:4008:a|4008:24:b|4032:24:~|4056:24:c|
    malloc d 20     |0:4008:a|4008:24:b|4032:24:d|4056:24:c|
    malloc e 20     |0:4008:a|4008:24:b|4032:24:d|4056:24:c|4080:24:~|4104:24:e|
    free e          |0:4008:a|4008:24:b|4032:24:d|4056:24:c|4080:24:~|4104:24:~|
    malloc k 90     |0:4008:a|4008:24:b|4032:24:d|4056:24:c|4080:96:k|
"""


@pytest.mark.parametrize(
    ("keys", "table"),
    [
        ({"refill": 8, "idle_share": 1 / 16, "release_most": 0}, REFILLED),
        ({}, GIVEN_BACK),
        ({"release_most": 0}, TAKEN),
        ({"up_to": 124, "lists_per_octave": 4, "release_most": 0}, SHARED),
    ],
    ids=["refilled", "given back", "taken", "shared"],
)
def test_blocks(script: Path, tmp_path: Path, keys: dict[str, Any], table: str) -> None:
    play(script, tmp_path, idle(**keys), table, 5000)


@pytest.mark.parametrize("name", ["lighttpd_server", "mosquitto_broker"])
def test_no_call_gives_back_many_blocks(name: str) -> None:
    trace = Trace.read(ROOT / "examples" / f"{name}.parquet")
    bins = BINS | {"search_most": 16}
    for heap in (recipe(IDLE, bins, align=8), recipe(IDLE | {"up_to": 132, "lists_per_octave": 0}, bins, align=8)):
        steps, metrics = worst_steps(heap), hw.replay(trace, heap).metrics
        most = max(int(metrics[f"accesses_{call}_max"] or 0) for call in ("malloc", "free"))
        assert most <= 400 and (steps.most is None or most <= steps.most)


def test_a_hit_costs_what_it_costs_in_lists_that_keep() -> None:
    op, id = np.tile([0, 1], 5000), np.repeat(np.arange(5000), 2)
    trace = Trace.from_columns(op=op * hw.FREE, id=id, size=np.full(10_000, 40), name="hits")
    ages, keeps = (
        int(hw.replay(trace, idle(flush=flush)).metrics["accesses"] or 0) for flush in ("idle", "before-refusing")
    )
    assert keeps < ages < keeps + 100  # what begins and ends, and the first turn


@pytest.mark.parametrize("per_octave", [2, 4, 8, 16, 32])
def test_each_list_is_at_most_one_step_too_large(per_octave: int) -> None:
    pool = policy(idle(up_to=2000, lists_per_octave=per_octave))["pools"][0]["quick"]
    ranks = np.array(pool["ranks"])
    assert pool["tabled"] and pool["count"] == ranks[-1] == ranks[-2] + 1
    blocks = 8 * np.array([np.flatnonzero(ranks == number + 1)[0] for number in range(pool["count"])])
    assert blocks[0] == 16 and blocks[-1] == pool["up_to"] >= 2004
    assert np.all(np.diff(blocks) <= np.maximum(8, blocks[:-1] / per_octave))


REFILLING = idle(up_to=516, lists_per_octave=8, idle_share=1 / 4, refill=16)

HEAPS = {
    "fast": zoo.load("fast"),
    "frees": zoo.load("fast").model_copy(update={"checks": "frees"}),
    "full": zoo.load("fast").model_copy(update={"checks": "full"}),
    "computed": idle(up_to=4000, lists_per_octave=4),
    "one list for each size": idle(up_to=900, lists_per_octave=0),
    "refilled": REFILLING,
    "refilled, frees": REFILLING.model_copy(update={"checks": "frees"}),
    "refilled, full": REFILLING.model_copy(update={"checks": "full"}),
}


@pytest.mark.parametrize("name", HEAPS)
def test_generated_code_does_call_by_call_what_the_replay_does(name: str, tmp_path: Path) -> None:
    generated = as_foreign(HEAPS[name], tmp_path)
    examples = [Trace.read(ROOT / "examples" / f"{name}.parquet") for name in ("lighttpd_server", "mosquitto_broker")]
    traces = [hw.cut(trace, first=brief(700, 1 << 30), close=False) for trace in examples]
    for trace in [*traces, *(random_trace(seed, calls=700) for seed in (1, 2, 3))]:
        mine, its = replayed(trace, HEAPS[name], 1 << 20), addresses(trace, generated, 1 << 20)
        assert np.count_nonzero(its >= 0) > 100
        assert np.array_equal(mine, its), trace.name


def test_it_grows_less_than_lists_that_keep() -> None:
    kept, aged = (
        run_stress_test(random_trace(1), idle(up_to=900, lists_per_octave=8, flush=flush), SHORT).growth
        for flush in ("before-refusing", "idle")
    )
    assert kept["shrink"] > 2 and aged["shrink"] < 1.2
    assert kept["aligned"] > 2 and aged["aligned"] < 1.2
    assert kept["refill"] > 1.1 and aged["refill"] < 1.05


@pytest.mark.parametrize(("checks", "most"), [("none", 0.8), ("frees", 0.8), ("full", 0.95)])
def test_a_list_that_misses_repeatedly_is_refilled_with_fewer_accesses(
    checks: Literal["none", "frees", "full"], most: float
) -> None:
    """Objects of one size that are all kept: 1 + 2 + 4 + 8 + 16 + 16 ... blocks a search."""
    count = 4000
    trace = Trace.from_columns(op=[0] * count, id=np.arange(count), size=[40] * count, name="kept")
    one, many = (
        replay(trace, idle(refill=refill).model_copy(update={"checks": checks}), check_invariants=True)
        for refill in (0, 16)
    )
    assert int(many["accesses"] or 0) < most * int(one["accesses"] or 0)
    assert int(many["footprint_bytes"] or 0) - int(one["footprint_bytes"] or 0) <= 15 * 48


def test_what_nobody_takes_of_a_refill_goes_back() -> None:
    """Four blocks are cut for the size that stops; then others turn the lists, and one takes the merged rest."""
    sizes = [20_000, *[40] * 6, *[300] * 40]
    trace = Trace.from_columns(op=[0] * len(sizes), id=np.arange(len(sizes)), size=sizes, name="stops")
    one, many = (
        replay(trace, idle(idle_share=1 / 32, refill=refill), check_invariants=True)["footprint_bytes"]
        for refill in (0, 4)
    )
    assert known(one) <= known(many) <= known(one) + 4 * 48
