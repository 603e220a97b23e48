"""The smallest arenas of the zoo's heaps compared with their originals', on many traces.

    PYTHONPATH=tests/heaps:tests/helpers:bench python research/original_arenas.py TRACE... > table.md

Takes the first 10,000 calls of each trace, and the rows of tests/heaps/test_originals.py whose originals a package or
$HEAPWRIGHT_TREES has. What lies outside the original's arena, in front of the row's blocks, is subtracted, and
what its lists take less. The search for an arena misses smaller ones by chance: each heap is tried in the
other's, too.
Prints a table: the row, the traces that both serve in arenas that the row is for, and the least, mean and largest
difference in per cent.
"""

from __future__ import annotations

import sys
from importlib import import_module
from statistics import fmean
from typing import Any

from original_addresses import first_calls
from platform_builds import fetched

import heapwright as hw

ROWS: Any = import_module("test_originals")  # a test module, which has no types here
CALLS = 10_000


def difference(name: str, original: Any, theirs: str, trace: hw.Trace) -> float | None:
    """Per cent that the row needs more than its original; None where either serves no arena that the row is for."""
    whole = ROWS.moving(trace) if original.moves else trace
    row, its_heap = ROWS.row_heap(ROWS.zoo.load(name)), ROWS.built(theirs)
    mine = hw.fit(whole, name).smallest_arena_bytes
    if mine is None or not original.least < mine <= original.most:
        return None
    its = hw.fit(whole, theirs, word_size=32).smallest_arena_bytes
    if its is None:
        return None
    more = int(original.more + original.lists(mine))
    if its + more < mine and serves(whole, row, its + more):
        mine = its + more
    elif mine - more < its and serves(whole, its_heap, mine - more):
        its = mine - more
    return 100 * ((mine - more) / its - 1)


def serves(trace: hw.Trace, heap: Any, arena: int) -> bool:
    """Whether an arena of these bytes serves all calls."""
    return bool((ROWS.addresses(trace, heap, arena)[trace.op != ROWS.FREE] >= 0).all())


def main(paths: list[str]) -> None:
    """Print the table."""
    traces = [first_calls(hw.read_trace(path), CALLS) for path in paths]
    print("| row | traces | least | mean | largest |\n| --- | ---: | ---: | ---: | ---: |")
    for name in ROWS.at_hand():
        original = ROWS.ORIGINALS[name]
        theirs = f"{original.adapter}={fetched(original.sources)}"
        found = {trace.name: difference(name, original, theirs, trace) for trace in traces}
        known = {trace: value for trace, value in found.items() if value is not None}
        if known:
            least, largest = min(known.values()), max(known.values())
            print(f"| {name} | {len(known)} | {least:.2f} % | {fmean(known.values()):.2f} % | {largest:.2f} % |")
        far = {trace: f"{value:.2f}" for trace, value in known.items() if abs(value) > 0.5}
        print(name, far, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
