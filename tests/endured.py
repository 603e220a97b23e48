"""Whether heaps last that pages explore, as it was found once: the usual run looks it up, long ones try it again.

Trying takes two thirds of such an exploration. `tests/endured.csv` holds what comes of it, by trace, recipe and calls;
what it does not hold is tried, and all is where the sources are others than those that it was found with.

    python tests/endured.py    # tries what the pages explore, and writes it anew
"""

from __future__ import annotations

import csv
import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import doc_commands
import forked_commands

from heapwright.explore import endurance
from heapwright.files.engine import engine
from heapwright.recipes.recipe import Recipe
from heapwright.replay.endurance import Effort, endure
from heapwright.studies.records import TraceInfo
from heapwright.traces.trace import Trace

FILE = Path(__file__).with_suffix(".csv")
ASKED = "HEAPWRIGHT_TESTS_ENDURED"
"""In the environment of commands (`forked_commands`): LOOK_UP, or a file that takes what is tried."""
LOOK_UP = "look up"
PAGES = ("docs/choosing.md", "docs/tutorial.md")


class Found(NamedTuple):
    """What an exploration wants to know."""

    growth_ratio: float
    lasts: bool
    calls: int


@cache
def sources() -> str:
    """What stands for all that decides whether a heap lasts: the engine, recipes and replays."""
    package = Path(endurance.__file__).parents[1]
    paths = sorted(path for room in ("recipes", "replay") for path in (package / room).rglob("*.py"))
    return hashlib.sha256(engine().digest.encode() + b"".join(path.read_bytes() for path in paths)).hexdigest()


def swap(asked: str) -> None:
    """Explorations of this process look up what is known, or write down what they try."""
    known = _read() if asked == LOOK_UP else {}

    def found(trace: Trace, recipe: Recipe, effort: Effort, threads: int, progress: Callable[[str], None]) -> Any:
        key = digest(trace), recipe.hash, effort.calls
        if key in known:
            return known[key]
        tried = endure(trace, recipe, effort, threads=threads, progress=progress)
        if asked != LOOK_UP:
            with open(asked, "a", encoding="utf-8") as file:
                file.write(",".join(map(str, (*key, tried.growth_ratio, int(tried.lasts), tried.calls))) + "\n")
        return tried

    vars(endurance)["endure"] = found


@cache
def digest(trace: Trace) -> str:
    return TraceInfo.of(trace).digest


def _read() -> dict[tuple[str, str, int], Found]:
    with FILE.open(encoding="utf-8") as file:
        (found_with,), *rows = csv.reader(file)
    if found_with != sources():
        return {}
    return {(row[0], row[1], int(row[2])): Found(float(row[3]), row[4] == "1", int(row[5])) for row in rows}


def main() -> None:
    with tempfile.TemporaryDirectory() as name, forked_commands.forking():
        doc_commands.BINARIES.insert(0, Path(forked_commands.HEAPWRIGHT).parent)
        tried = Path(name) / "tried"
        os.environ[ASKED] = str(tried)
        for page in PAGES:
            (folder := Path(name) / Path(page).stem).mkdir()
            doc_commands.differences(doc_commands.ROOT / page, folder)
        lines = sorted(set(tried.read_text(encoding="utf-8").splitlines(keepends=True)))
    FILE.write_text("".join([f"{sources()}\n", *lines]), encoding="utf-8")


if __name__ == "__main__":
    main()
