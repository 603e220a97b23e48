"""Behaviour tables: scripts of calls and the blocks that an allocator leaves.

Each line is a call and the heap after it, as |offset:size:state| in order of address, headers included; offsets count
from the end of the control data and of regions with a size of their own. A state is the name of an object, "." free,
"~" cached in a quick list, "v" last remainder.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from c_programs import ASSERTED, SANITIZED, compile_c, write_heaps

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe


def build_script(folder: Path) -> Path:
    """The program that performs the calls of a table."""
    return compile_c(folder / "script", "script.c", flags=["-std=gnu11", *SANITIZED, ASSERTED])


def in_order(drawn: str) -> str:
    """Blocks by address: the walk goes pool by pool, and growing classes lie above the pools behind them."""
    words, _, blocks = drawn.partition("|")
    ordered = sorted(filter(None, blocks.split("|")), key=lambda block: int(block.split(":")[0]))
    return words + "|" + "".join(block + "|" for block in ordered)


def play(script: Path, folder: Path, recipe: Recipe, table: str, room: int) -> None:
    """Perform the table's calls in an arena with `room` bytes for blocks and compare the heap after each."""
    heap = write_heaps(folder / "heap", [(int(policy(recipe)["fixed_end"]) + room, recipe)])
    lines = [line.strip() for line in table.strip().splitlines() if line.strip()]
    calls = [line[: min(index for index in (line.find("|"), line.find("refused")) if index >= 0)] for line in lines]
    done = subprocess.run([script, heap], input="\n".join(calls) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = [f"{call}{in_order(drawn)}" for call, drawn in zip(calls, done.stdout.splitlines(), strict=True)]
    assert "\n".join(results) == "\n".join(lines)
