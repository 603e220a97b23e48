"""Which faults a heap notices, and when: a fault a run, committed in a process of its own on the generated code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heapwright.errors import HeapwrightError, ParameterError
from heapwright.files.temporary import temporary_folder
from heapwright.files.tools import find_compiler, run_tool
from heapwright.recipes.recipe import CHECKS, ContradictionError

if TYPE_CHECKING:
    from heapwright.recipes.recipe import Recipe
    from heapwright.traces.trace import Trace

DRIVER = Path(__file__).with_name("attack.c")

OUTCOMES = ("at_once", "later", "harmless", "silent", "crashed")
"""What may come of a fault, in the order in which the driver counts."""

RUNS = 200
"""Runs of each fault, where nothing else is asked for: a share is right to 7 % then."""

SECRET = 0x5BD1E995
"""What masks links and guards, so that a seed gives the same counts wherever the arena lies."""

MOST_CALLS = 20_000
"""Calls of a trace that each run replays, from the first on."""


def attack(
    recipe: Recipe,
    trace: Trace | None = None,
    *,
    checks: Sequence[str] | None = None,
    runs: int = RUNS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Commit every fault `runs` times at each level of checks; return what `heapwright attack --json` prints.

    Args:
        recipe: the heap; its own level of checks does not matter.
        trace: the calls around the fault, at most the first 20,000; None for a random program of 1,500.
        checks: the levels; None for all.
        runs: of each fault.
        seed: of the faults, and of the random program.

    Raises ParameterError for a heap whose objects move, ContradictionError for a level that it cannot have,
    HeapwrightError where there is no compiler.
    """
    if recipe.pools[0].kind == "compact":
        raise ParameterError("objects of a compact pool move, and faults are committed at addresses", parameter="heap")
    for level in checks or ():
        if level not in CHECKS:
            raise ParameterError(f"{level!r} is no level of checks; valid: {', '.join(CHECKS)}", parameter="checks")
    records = program(trace, seed)
    compiler = find_compiler("an attack")
    found = []
    with temporary_folder("attack") as folder:
        records.tofile(folder / "calls")
        for checked in _levels(recipe, checks):
            faults = _run(compiler, folder, checked, _arena(checked, records), runs, seed)
            found.append({"heap": recipe.name or recipe.hash, "checks": checked.checks, "faults": faults})
    return found


def _levels(recipe: Recipe, checks: Sequence[str] | None) -> list[Recipe]:
    """The recipe at each level asked for, or at all that it can have."""
    if checks:
        return [_at_level(recipe, level) for level in checks]
    found = []
    for level in CHECKS:
        with suppress(ContradictionError):
            found.append(_at_level(recipe, level))
    return found


def _at_level(recipe: Recipe, level: str) -> Recipe:
    from heapwright.recipes.recipe import Recipe

    return Recipe.from_dict({**recipe.to_dict(), "checks": level}, recipe.name or recipe.hash)


def _run(compiler: str, folder: Path, recipe: Recipe, arena: int, runs: int, seed: int) -> dict[str, dict[str, int]]:
    from heapwright.generate.emit import align_unchecked, generate

    into = folder / recipe.checks
    generate(recipe, into, "attacked")
    flags = ["-std=c11", "-O1", "-w", f"-D{align_unchecked('attacked')}", f"-I{into}"]
    flags += [f"-DATTACKED_SECRET(heap)=((void)(heap), UINT32_C({SECRET}))"] if recipe.checks == "full" else []
    flags += ["-DCHECKED"] if recipe.checks != "none" else []
    sources = [str(DRIVER), str(into / "attacked_heap.c")]
    _told([compiler, *flags, "-o", str(into / "attack"), *sources], "the attack does not compile")
    told = _told([str(into / "attack"), str(folder / "calls"), str(arena), str(runs), str(seed)], "the attack failed")
    return {name: counts for name, counts, _ in outcomes(told)}


def program(trace: Trace | None, seed: int) -> NDArray[np.uint32]:
    """The calls around a fault, as the driver reads them."""
    records = _random_program(seed) if trace is None else trace.calls.records()[:MOST_CALLS]
    return records.astype(np.uint32)


def outcomes(told: str) -> Iterator[tuple[str, dict[str, int], dict[int, int]]]:
    """What the driver printed: for each fault its name, what came of its runs, and how many each signal ended."""
    for line in told.splitlines():
        name, runs, *numbers = line.split()
        counts = [int(number) for number in numbers]
        signals = counts[len(OUTCOMES) :]
        told_of = {"runs": int(runs), **dict(zip(OUTCOMES, counts, strict=False))}
        yield name, told_of, dict(zip(signals[::2], signals[1::2], strict=True))


def _told(command: list[str], problem: str) -> str:
    done = run_tool(command, text=True)
    if done.returncode != 0:
        raise HeapwrightError(f"{problem}: {done.stderr.strip()[-500:]}")
    return str(done.stdout)


def _arena(recipe: Recipe, records: NDArray[np.uint32]) -> int:
    """An arena with room for the calls, however they fragment it."""
    from heapwright.recipes.policy import policy

    values = policy(recipe)
    return int(min(values["fixed_end"] + ample(records), values["reach"]))


def ample(records: NDArray[np.uint32]) -> int:
    """Bytes with room for the calls, however they fragment them."""
    return min(4 * int(records[:, 1].astype(np.int64).sum()) + 65536, 1 << 24)


def _random_program(seed: int) -> NDArray[np.uint32]:
    """Calls on 64 objects: half of the slots are live as a rule, most objects small, one in eight up to 1,000 bytes."""
    rng = np.random.default_rng(seed)
    live = np.zeros(64, bool)
    records = np.zeros((1500, 3), np.uint32)
    for i in range(len(records)):
        slot = int(rng.integers(64))
        size = int(rng.integers(1, 1000 if rng.random() < 0.125 else 120))
        op = 0 if not live[slot] else 2 if rng.random() < 0.15 else 3
        live[slot] = op != 3
        records[i] = op << 30 | slot, size if op != 3 else 0, 0
    return records
