"""What each option of a recipe that one zoo heap alone uses moves there: a key earns its place by more than 1 %.

    PYTHONPATH=bench .venv/bin/python research/options.py [--traces FOLDER] [--most CALLS]

Each is set back to its default in the heap that uses it, and both heaps are replayed on the shared traces, in turn. The
table has the largest change of each metric over the traces.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traces import DEFAULT_TRACES, cut, trace_files

import heapwright as hw

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

METRICS = ("footprint_bytes", "smallest_arena_bytes", "accesses")
TOLD = ("name", "year", "source", "about", "kind", "sizes", "size", "count", "counts")
"""What every heap has, or is a size of its own rather than a way to work."""

Option = tuple[str, Any]


def options(recipe: dict[str, Any]) -> Iterator[tuple[int, Option]]:
    """(pool, or -1 for the recipe itself; key and value)."""
    for at, part in enumerate((recipe, *recipe["pool"]), -1):
        for key, value in part.items():
            if key not in TOLD and key != "pool":
                yield at, (key, value if isinstance(value, str) else isinstance(value, bool) and value)


def single(recipes: dict[str, dict[str, Any]]) -> Iterator[tuple[str, int, Option]]:
    """Every key, and every word that a key may have, that one heap alone uses."""
    users: dict[str | Option, set[str]] = defaultdict(set)
    for name, recipe in recipes.items():
        for _, (key, value) in options(recipe):
            users[key].add(name)
            users[key, value].add(name)
    for name, recipe in recipes.items():
        for at, (key, value) in options(recipe):
            if users[key] == {name} or (isinstance(value, str) and users[key, value] == {name}):
                yield name, at, (key, value)


def without(recipe: dict[str, Any], at: int, key: str) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(recipe))
    del (changed if at < 0 else changed["pool"][at])[key]
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, default=DEFAULT_TRACES)
    parser.add_argument("--most", type=int, default=20_000, help="calls of a trace that are replayed")
    given = parser.parse_args()
    paths = [path for room in ("heap", "pairs", "synthetic") for path in trace_files(given.traces / room)]
    traces = [cut(hw.read_trace(path), given.most) for path in paths]
    recipes = {heap.name: tomllib.loads(heap.to_toml()) for heap in hw.zoo()}
    print(f"| key | zoo heap | {' | '.join(METRICS)} |\n| --- | --- | {'---: | ' * len(METRICS)}")
    for name, at, (key, value) in single(recipes):
        said = f"`{key}" + (f' = "{value}"`' if isinstance(value, str) else "`")
        try:
            other = hw.Recipe.from_dict(without(recipes[name], at, key))
        except hw.HeapwrightError as error:
            print(f"| {said} | {name} | {str(error)[:80]} |")
            continue
        largest = dict.fromkeys(METRICS, (0.0, ""))
        for path, trace in zip(paths, traces, strict=True):
            used, unused = (hw.replay(trace, heap, fit=True).metrics for heap in (name, other))
            for metric in METRICS:
                with_, left_out = used[metric], unused[metric]
                if with_ and left_out:
                    largest[metric] = max(largest[metric], (abs(left_out / with_ - 1), path.stem))
        cells = " | ".join(f"{share:.1%} {where}" for share, where in largest.values())
        print(f"| {said} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
