"""Which faults a heap notices, and when: a fault a run, committed on the generated code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from heapwright._assure.attack.faults import RUNS, program
from heapwright._assure.attack.on_host import Host
from heapwright._recipes.recipe import CHECKS, ContradictionError, Recipe
from heapwright._support.errors import ParameterError
from heapwright._support.temporary import temporary_folder

if TYPE_CHECKING:
    from heapwright._assure.attack.on_target import Target
    from heapwright._traces.trace import Trace


def attack(
    recipe: Recipe,
    trace: Trace | None = None,
    *,
    checks: Sequence[str] | None = None,
    runs: int = RUNS,
    seed: int = 0,
    cpu: str | None = None,
    compiler: str | None = None,
) -> list[dict[str, Any]]:
    """Commit every fault `runs` times at each level of checks; return what `heapwright attack --json` prints.

    Args:
        recipe: the heap; its own level of checks does not matter.
        trace: the calls around the fault, at most the first 20,000; None for a random program of 1,500.
        checks: the levels; None for all.
        runs: of each fault.
        seed: of the faults, and of the random program.
        cpu: the emulated processor that runs it, a key of `cpus.CPUS`; None for this machine.
        compiler: for that processor, "gcc" or "zig"; None for the first that is installed.

    Raises ParameterError for a heap whose objects move, ContradictionError for a level that it cannot have,
    HeapwrightError where there is no compiler or no emulator.
    """
    chosen = levels(recipe, checks)
    machine = _machine(cpu, compiler)
    records = program(trace, seed)
    results = []
    with temporary_folder("attack") as folder:
        for checked in chosen:
            faults = machine.commit(checked, records, runs, seed, folder / checked.checks)
            results.append({"heap": recipe.name or recipe.hash, "checks": checked.checks, "cpu": cpu, "faults": faults})
    return results


def _machine(cpu: str | None, compiler: str | None) -> Host | Target:
    if cpu is None:
        if compiler is not None:
            raise ParameterError("only an emulated processor has a choice of compilers; set cpu", parameter="compiler")
        return Host()
    from heapwright._assure.attack.on_target import Target

    return Target(cpu, compiler)


def levels(recipe: Recipe, checks: Sequence[str] | None) -> list[Recipe]:
    """The recipe at each level asked for, or at all that it can have. Raises as `attack` does."""
    if recipe.pools[0].moves_objects:
        raise ParameterError(
            f"objects of a {recipe.pools[0].kind} pool move, and faults are committed at addresses", parameter="heap"
        )
    for level in checks or ():
        if level not in CHECKS:
            raise ParameterError(f"{level!r} is no level of checks; valid: {', '.join(CHECKS)}", parameter="checks")
    if checks:
        return [_at_level(recipe, level) for level in checks]
    results = []
    for level in CHECKS:
        with suppress(ContradictionError):
            results.append(_at_level(recipe, level))
    return results


def _at_level(recipe: Recipe, level: str) -> Recipe:
    return Recipe.from_dict({**recipe.to_dict(), "checks": level}, recipe.name or recipe.hash)
