"""Whether the zoo's heaps last: writes src/heapwright/zoo/endurance.csv, which `heapwright zoo` reads.

Each heap runs the loops of `heapwright endure` on the broker's trace, in the short form that explorations use; one that
does not last ends at the first loop that shows it. A minute.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import heapwright as hw
from heapwright.recipes.recipe import Recipe
from heapwright.replay.endurance import SHORT, endure

ROOT = Path(__file__).resolve().parent.parent
TRACE = ROOT / "examples" / "mosquitto_broker.parquet"
OUTPUT = ROOT / "src" / "heapwright" / "zoo" / "endurance.csv"


def main() -> None:
    """Try every heap, two at a time."""
    trace = hw.read_trace(TRACE)

    def row(recipe: Recipe) -> str:
        found = endure(trace, recipe, SHORT)
        print(recipe.name, found.growth_ratio, found.lasts, found.worst, file=sys.stderr, flush=True)
        return f"{recipe.name},{recipe.hash},{found.growth_ratio:.3f},{int(found.lasts)},{found.worst}"

    recipes = [recipe for recipe in hw.zoo() if not recipe.memory]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(row, recipes))
    head = "# growth at constant live bytes, 10,000 to 50,000 calls over 500 objects, by bench/zoo_endurance.py"
    OUTPUT.write_text("\n".join([head, "name,hash,growth_ratio,lasts,loop", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
