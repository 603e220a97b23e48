"""What a heap's level of checks costs on the target: measured on the heap itself, when it is generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe
    from heapwright._traces.trace import Trace

CALLS, SLOTS = 1500, 64


def cost_of_checks(recipe: Recipe) -> str:
    """A sentence on the instructions of calls with a recipe's checks and without, on a Cortex-M3 at -Os.

    The calls are random ones, of one seed: objects up to 120 bytes, one in eight up to 1,000. Empty for a recipe
    without checks, for objects that move, where a request was refused, and where no compiler or emulator is installed.
    """
    if recipe.checks == "none" or recipe.memory or recipe.pools[0].moves_objects:
        return ""
    from heapwright._measure.boards.measure import Session  # most heaps have no checks, and need no emulator

    bare = recipe.model_copy(update={"checks": "none", "threads": "none"})
    checked = recipe.model_copy(update={"threads": "none"})
    trace = _program()
    try:
        session = Session()
        with_checks, without = (session.instructions(item, [trace])[0] for item in (checked, bare))
    except HeapwrightError:
        return ""
    if not with_checks or not without:
        return ""
    pairs = CALLS // 2
    return (
        f'A malloc and its free with checks of "{recipe.checks}" take {with_checks / pairs:,.0f} instructions on a '
        f"Cortex-M3, {with_checks / without:.1f} times those without checks: measured on this heap, on "
        f"{CALLS:,} random calls."
    )


def _program() -> Trace:
    """Random calls: each slot is taken and freed in turn, and all are free in the end."""
    import numpy as np

    from heapwright._traces.trace import Trace
    from heapwright._traces.validation import FREE, MALLOC

    rng = np.random.default_rng(0)
    op: list[int] = []
    ids: list[int] = []
    sizes: list[int] = []
    live: dict[int, int] = {}
    for i in range(CALLS):
        slot = int(rng.integers(SLOTS)) if CALLS - i > len(live) else next(iter(live))
        if slot in live:
            op, ids, sizes = [*op, FREE], [*ids, live.pop(slot)], [*sizes, 0]
        else:
            live[slot] = i
            op, ids = [*op, MALLOC], [*ids, i]
            sizes = [*sizes, int(rng.integers(1, 1000 if rng.random() < 0.125 else 120))]
    return Trace.from_columns(op=op, id=ids, size=sizes, name="random calls")
