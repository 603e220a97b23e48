"""The largest free block that a heap states is the largest request that malloc serves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import LEVEL, compile_c
from run_length import brief

from heapwright._recipes.policy import policy, policy_struct, whole_bytes
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

ROOM = 40_000
NAMES = [name for name in zoo.names() if zoo.load(name).pools[0].kind != "compact"]
LOWER_BOUND = {"contiki-ng-heapmem"}
"""Rows whose search merges blocks that it does not look at."""


BOUNDED_SEARCH = {"all-round", "fast", "small-lists"}
"""Rows that may find a cached block in its bin too late: the statistics state the smallest block of the bin."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("largest") / "largest", "largest.c", flags=[LEVEL, "-w"])


def states(program: Path, recipe: Recipe, folder: Path, seed: int = 1) -> tuple[int, ...]:
    """Of all states: refused the stated size, served more; bytes that a flush adds; most more; sums of both sizes."""
    (folder / "policy").write_bytes(whole_bytes(policy_struct(recipe.canonical())))
    values = policy(recipe)
    arena = min(values["fixed_end"] + ROOM, values["reach"]) + 4095 & ~4095
    command = [str(program), str(folder / "policy"), str(arena), str(brief(2, 40)), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{recipe.name}: {done.returncode} {done.stderr}"
    count, *result = map(int, done.stdout.split())
    assert count == 12 * brief(2, 40)
    return tuple(result)


@pytest.mark.parametrize("name", NAMES)
def test_malloc_serves_the_stated_size_and_no_larger_one(name: str, program: Path, tmp_path: Path) -> None:
    refused, more, left_out, furthest, stated, served = states(program, zoo.load(name), tmp_path)
    assert refused == 0, "states whose largest_free malloc refused"
    if name in LOWER_BOUND:
        assert stated >= 0.9 * served
        return
    assert left_out <= 0.01 * stated if name in BOUNDED_SEARCH else left_out == 0, "bytes that a flush adds"
    assert (more, furthest) == (0, 0), f"malloc served up to {furthest} bytes more than stated"
    assert stated == served > 0


@pytest.mark.parametrize("level", ["neighbours", "full"])
@pytest.mark.parametrize("name", ["all-round", "tlsf", "threadx-byte-pool"])
def test_so_it_does_with_checks(name: str, level: str, program: Path, tmp_path: Path) -> None:
    recipe = Recipe.from_dict({**zoo.load(name).to_dict(), "checks": level}, name)
    refused, more, *_ = states(program, recipe, tmp_path)
    assert (refused, more) == (0, 0)
