"""Pools at both ends of the arena, call by call: blocks worked out by hand, and generated code against the replay.

Behaviour tables are as in tests/helpers/behaviour.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from behaviour import play
from foreign_builds import as_foreign, replayed
from pool_recipes import random_trace, recipe
from run_length import brief

import heapwright as hw
from heapwright._heaps.foreign.heap import addresses
from heapwright._replay.arena_sizes import fit
from heapwright._traces.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
BINS = {"bins": "exact", "fit": "best"}


def general(**keys: Any) -> dict[str, Any]:
    return {"kind": "general", **keys}


FROM_BOTH_ENDS = """
    malloc a 40     |0:44:a|
    malloc b 100    |0:44:a|392:104:b|
    malloc c 100    |0:44:a|288:104:c|392:104:b|
    malloc d 120    |0:44:a|164:124:d|288:104:c|392:104:b|
    malloc e 60     |0:44:a|44:64:e|164:124:d|288:104:c|392:104:b|
    free c          |0:44:a|44:64:e|164:124:d|288:104:.|392:104:b|
    malloc f 99     |0:44:a|44:64:e|164:124:d|288:104:.|392:104:b|
    free d          |0:44:a|44:64:e|392:104:b|
"""
"""The end mark has the last 4 of 500 bytes. f is one of the small ones, which have 56 bytes left: it is refused. Once
d is free, it and the free block behind it belong to what lies between."""


def test_blocks_grow_toward_each_other(script: Path, tmp_path: Path) -> None:
    heap = recipe(general(place="ends", min_size=100, **BINS), general(max_size=99, **BINS))
    table = FROM_BOTH_ENDS.replace("malloc f 99     ", "malloc f 99     refused ")
    more = """
        malloc g 99     |0:44:a|44:64:e|108:104:g|392:104:b|
        malloc h 100    |0:44:a|44:64:e|108:104:g|288:104:h|392:104:b|
        free b          |0:44:a|44:64:e|108:104:g|288:104:h|392:104:.|
        realloc h 180   |0:44:a|44:64:e|108:104:g|288:184:h|472:24:.|
        realloc h 120   |0:44:a|44:64:e|108:104:g|288:124:h|412:84:.|
        free h          |0:44:a|44:64:e|108:104:g|
        malloc i 280    |0:44:a|44:64:e|108:104:g|212:284:i|
        malloc j 1      refused |0:44:a|44:64:e|108:104:g|212:284:i|
        free i          |0:44:a|44:64:e|108:104:g|
    """
    play(script, tmp_path, heap, table + more, room=500)


def test_a_victim_at_the_far_end_goes_with_the_block_ahead_of_it(script: Path, tmp_path: Path) -> None:
    heap = recipe(general(place="ends", min_size=20, victim_up_to=100, **BINS), general(max_size=19, **BINS))
    table = """
        malloc a 40     |452:44:a|
        malloc b 200    |248:204:b|452:44:a|
        malloc c 60     |184:64:c|248:204:b|452:44:a|
        free b          |184:64:c|248:204:.|452:44:a|
        malloc d 40     |184:64:c|248:44:d|292:160:v|452:44:a|
        malloc e 40     |184:64:c|248:44:d|292:44:e|336:116:v|452:44:a|
        free c          |248:44:d|292:44:e|336:116:v|452:44:a|
        free d          |292:44:e|336:116:v|452:44:a|
        free e          |452:44:a|
        free a          |
    """
    play(script, tmp_path, heap, table, room=500)


def test_what_one_side_refuses_another_pool_may_have(script: Path, tmp_path: Path) -> None:
    heap = recipe(general(place="ends", max_size=99, **BINS), general(**BINS))
    table = """
        malloc a 100    |0:104:a|
        malloc b 100    |0:104:a|104:104:b|
        malloc c 96     |0:104:a|104:104:b|396:100:c|
        free a          |0:104:.|104:104:b|396:100:c|
        malloc d 184    |0:104:.|104:104:b|208:188:d|396:100:c|
        malloc e 40     |0:44:e|44:60:.|104:104:b|208:188:d|396:100:c|
    """
    play(script, tmp_path, heap, table, room=500)


# ---- generated code ------------------------------------------------------------------------------------------------


HEAPS = {
    "bins": recipe(general(place="ends", min_size=65, **BINS), general(**BINS)),
    "tree": recipe(
        general(place="ends", max_size=64, free_list="tree", fit="best"),
        general(free_list="tree", fit="best"),
        checks="neighbours",
    ),
    "lists": recipe(
        {"kind": "quick", "up_to": 64, "flush": "before-growing"},
        general(place="ends", min_size=200, victim_up_to=400, **BINS),
        general(victim_up_to=100, **BINS),
        checks="full",
        counters=True,
    ),
}


@pytest.mark.parametrize("name", HEAPS)
def test_objects_lie_where_the_replay_puts_them_call_by_call(name: str, tmp_path: Path) -> None:
    """In an arena that just serves, a larger one, and one that refuses."""
    heap = HEAPS[name]
    generated = as_foreign(heap, tmp_path)
    examples = [Trace.read(ROOT / "examples" / f"{name}.parquet") for name in ("lighttpd_server", "mosquitto_broker")]
    traces = [hw.cut(trace, first=brief(700, 1 << 30), close=False) for trace in examples]
    for trace in [*traces, random_trace(3, calls=700)]:
        smallest = fit(trace, heap)
        assert smallest is not None
        for arena in (smallest, 2 * smallest // 16 * 16, 3 * smallest // 4):
            mine, its = replayed(trace, heap, arena), addresses(trace, generated, arena)
            served = its >= 0
            assert np.count_nonzero(served) > 100
            assert (mine[served] == its[served]).all(), (trace.name, arena)
            requested = trace.op < hw.REALLOC  # a block that a realloc leaves where it is has an address, too
            assert ((mine >= 0) == served)[requested].all(), (trace.name, arena)
        assert not served.all()
