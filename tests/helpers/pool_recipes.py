"""Recipes of pools in few words, and a trace for them."""

from __future__ import annotations

import random
from typing import Any

from heapwright._recipes.recipe import Recipe
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC


def recipe(*pools: dict[str, Any], **heap: Any) -> Recipe:
    return Recipe.from_dict({"align": 4, **heap, "pool": list(pools)})


GENERAL = {"kind": "general"}


def general(**keys: Any) -> Recipe:
    return recipe({**GENERAL, **keys})


def partitions(**keys: Any) -> Recipe:
    return recipe({"kind": "partition", "size": 64, **keys})


def buddy(**keys: Any) -> Recipe:
    return recipe({"kind": "buddy", **keys})


def random_trace(seed: int, calls: int = 3000, largest: int = 900) -> Trace:
    """Objects come, grow, shrink and go; about 100 live at a time."""
    rng = random.Random(seed)
    rows: list[tuple[int, int, int]] = []
    live: list[int] = []
    for i in range(calls):
        kind = rng.random()
        if live and kind < 0.1:
            rows.append((REALLOC, rng.choice(live), rng.randrange(largest)))
        elif live and (kind < 0.5 or len(live) > 100):
            rows.append((FREE, live.pop(rng.randrange(len(live))), 0))
        else:
            live.append(i)
            rows.append((MALLOC, i, rng.randrange(largest) if rng.random() < 0.5 else 40))
    op, id_, size = zip(*rows, strict=True)
    return Trace.from_columns(op=op, id=id_, size=size, name=f"random-{seed}")


def compact(align: int = 4, link_bytes: int = 4, **keys: Any) -> Recipe:
    return recipe({"kind": "compact", **keys}, align=align, link_bytes=link_bytes)


MMEM: dict[str, Any] = {"align": 1, "when": "eager", "header": 0}
"""Contiki's managed memory: bytes back to back, 12-byte handles with the caller, holes closed at once."""


KINDS_OF_HANDLES = [{"when": when, "header": header} for when in ("lazy", "eager") for header in (0, 4, 8)]
