"""The faults and what may come of them, the calls around each, and the heap that they are committed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

FAULTS = (
    *("double_free", "foreign_free", "interior_free", "changed_header", "underflow"),
    *("overflow_1", "overflow_4", "overflow_16", "use_after_free", "wild_write", "metadata_write"),
)
"""The faults, in the order of faults.h."""

OUTCOMES = ("at_once", "later", "harmless", "silent", "crashed")
"""What may come of a fault, in the order of faults.h."""

RUNS = 200
"""Default number of runs of each fault: a share is right to 7 % then."""

MOST_CALLS = 20_000
"""Calls of a trace that each run replays, from the first on."""

PREFIX = "attacked"
"""Of the generated code, as faults.h calls it."""


def flags(recipe: Recipe) -> list[str]:
    """Compiler options of the generated code and the faults, for any machine."""
    from heapwright._generate.emit import align_unchecked, replayed_secret

    results = ["-std=c11", "-w", f"-D{align_unchecked(PREFIX)}"]
    # A seed gives the same counts at any address of the arena.
    results += [f"-D{replayed_secret(PREFIX)}"] if recipe.checks != "none" else []
    return results + (["-DCHECKED"] if recipe.checks != "none" else [])


def program(trace: Trace | None, seed: int) -> NDArray[np.uint32]:
    """The calls around a fault, uint32[calls, 3] as faults.h reads them."""
    records = _random_program(seed) if trace is None else trace.calls.records()[:MOST_CALLS]
    return records.astype(np.uint32)


def arena_bytes(recipe: Recipe, records: NDArray[np.uint32]) -> int:
    """An arena with room for the calls, however they fragment it."""
    from heapwright._recipes.policy import policy

    values = policy(recipe)
    return int(min(values["fixed_end"] + ample(records), values["reach"]))


def mapped_bytes(arena: int) -> int:
    """Memory that there is from the arena's beginning on: whole stretches of 64 KiB, 16 bytes beyond the arena."""
    return (arena + 65536 + 16) & ~65535


def ample(records: NDArray[np.uint32]) -> int:
    """Bytes with room for the calls, however they fragment them."""
    return min(4 * int(records[:, 1].astype(np.int64).sum()) + 65536, 1 << 24)


def _random_program(seed: int) -> NDArray[np.uint32]:
    """Calls on 64 objects: half of the slots are live as a rule, most objects small, one in eight up to 1,000 bytes."""
    rng = np.random.default_rng(seed)
    live = np.zeros(64, bool)
    records = np.zeros((1500, 3), np.uint32)
    for i in range(len(records)):
        slot = int(rng.integers(64))
        size = int(rng.integers(1, 1000 if rng.random() < 0.125 else 120))
        op = 0 if not live[slot] else 2 if rng.random() < 0.15 else 3
        live[slot] = op != 3
        records[i] = op << 30 | slot, size if op != 3 else 0, 0
    return records
