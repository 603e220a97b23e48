"""Fixed pools with counts, compared with the heap behind them alone: memory, accesses, instructions.

    PYTHONPATH=bench .venv/bin/python research/counted_pools.py [DIR]

For each trace of examples/ and each DIR/*_a.parquet (`../shared/data/pairs` by default): 8 and 16 classes for the
sizes asked for most, each with as many blocks as are in use nine tenths of the time, before the general pool of
`small-lists` and before `fast`. Counts are learnt on the trace itself. A cell is the arena's bytes, accesses a call,
instructions of a malloc and a free together, and of the worst-case malloc, on a Cortex-M3 at -Os. The last row has
geometric means over `fast`, and the most instructions of any malloc.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from traces import DEFAULT_TRACES, EXAMPLES, cut

import heapwright as hw
from heapwright import FREE, Recipe, Trace

ALIGN = 8
LARGEST = 2048
SHARE = 0.9
BEFORE = ("small-lists", "fast")
CLASSES = (8, 16)
MOST_CALLS = 60_000

Cell = tuple[int, float, float, int]


def zoo(name: str) -> Recipe:
    result = hw.zoo(name)
    assert isinstance(result, Recipe)
    return result.at_alignment(ALIGN)


def blocks_in_use(trace: Trace) -> dict[int, int]:
    """Blocks of each size asked for up to LARGEST that suffice for SHARE of the calls, the most frequent size first."""
    number, _ = trace.objects()
    size_of: dict[int, int] = {}
    requested: Counter[int] = Counter()
    steps: dict[int, list[tuple[int, int]]] = {}
    for call, (op, of, size) in enumerate(zip(trace.op.tolist(), number.tolist(), trace.size.tolist(), strict=True)):
        if (remaining := size_of.pop(of, None)) is not None:
            steps[remaining].append((call, -1))
        if op != FREE:
            block = size_of[of] = max(ALIGN, -(-size // ALIGN) * ALIGN)
            steps.setdefault(block, []).append((call, 1))
            requested[block] += 1
    results = {}
    for block, _ in requested.most_common():
        if block <= LARGEST:
            calls, changes = np.array(steps[block]).T
            stretch = np.diff(np.append(calls, len(trace)))
            live = np.cumsum(changes)
            order = np.argsort(live)
            place = np.searchsorted(np.cumsum(stretch[order]), SHARE * stretch.sum())
            results[block] = int(live[order][min(place, len(order) - 1)])
    return results


def heaps(trace: Trace) -> dict[str, Recipe]:
    """The heaps by name."""
    results = {name: zoo(name) for name in BEFORE}
    blocks = blocks_in_use(trace)
    for before in BEFORE:
        behind = results[before].to_dict()["pool"]
        for classes in CLASSES:
            counts = dict(sorted((size, blocks[size]) for size in list(blocks)[:classes] if blocks[size] > 1))
            fixed = {"kind": "fixed", "sizes": list(counts), "counts": list(counts.values())}
            pools = [fixed, *(behind if before == "fast" else behind[-1:])]
            results[f"{classes} before {before}"] = Recipe.from_dict({"align": ALIGN, "pool": pools})
    return results


def cell(trace: Trace, recipe: Recipe) -> Cell:
    """The smallest arena, accesses a call, instructions of a malloc and a free, those of the worst-case malloc."""
    host = hw.replay(trace, recipe, fit=True).metrics
    calls = hw.measure(recipe, trace)["calls"]
    pair = sum(calls[kind]["instructions_mean"] for kind in ("malloc", "free"))
    arena, accesses = int(host["smallest_arena_bytes"] or 0), float(host["accesses"] or 0) / len(trace)
    return arena, accesses, pair, calls["malloc"]["instructions_max"]


def means(rows: list[dict[str, Cell]], name: str) -> str:
    """A cell of the last row."""
    over = np.array([[row[name][at] / row["fast"][at] for at in range(3)] for row in rows])
    longest = max(row[name][3] for row in rows)
    return "{:.3f}, {:.2f}, {:.2f}, {:,}".format(*np.exp(np.log(over).mean(axis=0)), longest)


def main() -> None:
    """Print a row a trace and the means."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_TRACES / "pairs"
    paths = [*EXAMPLES, *sorted(folder.glob("*_a.parquet"))]
    rows: list[dict[str, Cell]] = []
    for path in paths:
        trace = cut(hw.read_trace(path), MOST_CALLS)
        rows.append({name: cell(trace, recipe) for name, recipe in heaps(trace).items()})
        if len(rows) == 1:
            print(f"| trace | {' | '.join(rows[0])} |\n| --- |{' ---: |' * len(rows[0])}")
        cells = ["{:,}, {:.2f}, {:.1f}, {:,}".format(*row) for row in rows[-1].values()]
        print(f"| {path.stem.removesuffix('_a')} | {' | '.join(cells)} |", flush=True)
    print(f"| mean | {' | '.join(means(rows, name) for name in rows[0])} |")


if __name__ == "__main__":
    main()
