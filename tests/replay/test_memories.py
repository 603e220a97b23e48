"""Where a heap in several memories puts each object, and that a freed one is in none."""

from __future__ import annotations

from heapwright._recipes.recipe import Recipe
from heapwright._replay.memories import replay_memories, route
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

TWO = Recipe.from_dict(
    {
        "memory": {"fast": 4000, "external": 4000},
        "pool": [
            {"kind": "fixed", "memory": "fast", "sizes": [64], "counts": [2]},
            {"kind": "general", "memory": "external"},
        ],
    }
)


def test_an_object_is_in_the_first_memory_with_room_and_in_none_once_it_is_freed() -> None:
    calls = [
        *((MALLOC, 0, 60), (MALLOC, 1, 60), (MALLOC, 2, 60), (MALLOC, 3, 9000)),
        *((FREE, 0, 0), (MALLOC, 4, 60), (REALLOC, 1, 500), (FREE, 4, 0), (FREE, 1, 0), (FREE, 2, 0)),
    ]
    op, id, size = zip(*calls, strict=True)
    routed = route(Trace.from_columns(op=op, id=id, size=size), TWO)
    assert routed.where.tolist() == [1, 1, 2, 0, 0, 1, 2, 0, 0, 0]
    assert routed.at[routed.where == 0].tolist() == [0] * 5
    assert routed.at[5] == routed.at[0] != routed.at[1], "the block that was freed"
    requested = {
        name: [*zip(item.op.tolist(), item.size.tolist(), strict=True)] for name, item in routed.traces.items()
    }
    passed_on, freed = [(MALLOC, 60), (FREE, 0)], (FREE, 0)
    assert requested["fast"] == [(MALLOC, 60)] * 2 + [*passed_on, freed, (MALLOC, 60), (REALLOC, 500), freed, freed]
    assert requested["external"] == [(MALLOC, 60), (MALLOC, 9000), freed, (MALLOC, 500), freed, freed]


def test_bytes_over_all_memories_are_the_sums_of_theirs() -> None:
    trace = Trace.from_columns(op=[MALLOC] * 3, id=[0, 1, 2], size=[60, 60, 500])
    whole, parts = replay_memories(trace, TWO)
    for key in ("allocated_peak_bytes", "footprint_bytes", "internal_bytes", "external_bytes", "header_bytes"):
        assert whole[key] == sum(part[key] or 0 for part in parts.values())
    assert (whole["footprint_bytes"] or 0) >= 60 + 60 + 500
