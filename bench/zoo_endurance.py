"""Whether the heaps of the zoo are stable in long runs: writes the table that `heapwright zoo` reads.

Each heap runs the loops of `heapwright stress` on the broker's trace, ten million calls where a call is bounded and one
million where it may walk. Some fifteen minutes.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import heapwright as hw
from heapwright import Recipe, worst_steps

ROOT = Path(__file__).resolve().parent.parent
TRACE = ROOT / "examples" / "mosquitto_broker.parquet"
BOUNDED, WALKING = 10_000_000, 1_000_000
OUTPUT = ROOT / "src" / "heapwright" / "_recipes" / "zoo" / "endurance.csv"


def main() -> None:
    """Try every heap, two at a time."""
    trace = hw.read_trace(TRACE)

    def row(recipe: Recipe) -> str:
        (result,) = hw.stress(trace, recipe, calls=BOUNDED if worst_steps(recipe).most else WALKING)
        print(recipe.name, result.growth_ratio, result.stable, result.worst, file=sys.stderr, flush=True)
        return f"{recipe.name},{recipe.hash},{result.growth_ratio:.3f},{int(result.stable)},{result.worst}"

    recipes = [recipe for recipe in hw.zoo() if not recipe.memory]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(row, recipes))
    head = (
        "# growth at constant live bytes from 100,000 calls on, some 2,000 objects, to 10,000,000 calls, "
        "1,000,000 where a call may walk, by bench/zoo_endurance.py"
    )
    OUTPUT.write_text("\n".join([head, "name,hash,growth_ratio,lasts,loop", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
