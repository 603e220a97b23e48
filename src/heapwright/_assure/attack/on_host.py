"""An attack on this machine: each run is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright._assure.attack.faults import FAULTS, OUTCOMES, PREFIX, arena_bytes, flags
from heapwright._generate.emit import generate
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, run_tool

if TYPE_CHECKING:
    from heapwright._recipes.recipe import Recipe

DRIVER = Path(__file__).with_name("on_host.c")


class Host:
    """This machine. Raises HeapwrightError where it has no C compiler."""

    def __init__(self) -> None:
        self._compiler = find_compiler("an attack")

    def commit(
        self, recipe: Recipe, records: NDArray[np.uint32], runs: int, seed: int, folder: Path
    ) -> dict[str, dict[str, int]]:
        """Commit every fault `runs` times; return for each by its name `runs` and how many came to each outcome.

        Everything is compiled in `folder`. Raises HeapwrightError where that, or the heap without a fault, fails.
        """
        arena = arena_bytes(recipe, records)
        generate(recipe, folder, PREFIX)
        records.tofile(folder / "calls")
        sources = [str(DRIVER), str(folder / f"{PREFIX}_heap.c")]
        command = [self._compiler, *flags(recipe), "-O1", f"-I{folder}", "-o", str(folder / "attack"), *sources]
        _told(command, "the attack does not compile")
        numbers = [str(number) for number in (arena, runs, seed)]
        info = _told([str(folder / "attack"), str(folder / "calls"), *numbers], "the attack failed")
        return {name: counts for name, counts, _ in outcomes(info)}


def outcomes(told: str) -> Iterator[tuple[str, dict[str, int], dict[int, int]]]:
    """What the driver printed: for each fault its name, what came of its runs, and how many each signal ended."""
    for line in told.splitlines():
        fault, runs, *counts = (int(number) for number in line.split())
        signals = counts[len(OUTCOMES) :]
        told_of = {"runs": runs, **dict(zip(OUTCOMES, counts, strict=False))}
        yield FAULTS[fault], told_of, dict(zip(signals[::2], signals[1::2], strict=True))


def _told(command: list[str], problem: str) -> str:
    done = run_tool(command, text=True)
    if done.returncode != 0:
        raise HeapwrightError(f"{problem}: {done.stderr.strip()[-500:]}")
    return str(done.stdout)
