"""Looking at a heap takes accesses in proportion to its blocks, however long its quick lists are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_programs import LEVEL, compile_c

from heapwright._recipes.policy import policy_struct, whole_bytes
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

BLOCKS = 4_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("walks") / "walks", "walks.c", flags=[LEVEL, "-w", "-DHW_EXPLORE"])


@pytest.mark.parametrize("checks", ["none", "frees", "full"])
def test_statistics_and_a_walk_after_a_flush_are_linear(checks: str, program: Path, tmp_path: Path) -> None:
    recipe = Recipe.from_dict({**zoo.load("fast").to_dict(), "checks": checks}, "fast")
    (tmp_path / "policy").write_bytes(whole_bytes(policy_struct(recipe.canonical())))
    counts = []
    for blocks in (BLOCKS, 4 * BLOCKS):
        command = [str(program), str(tmp_path / "policy"), str(128 * blocks), str(blocks), "1"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        statistics, walk, used, cached = map(int, done.stdout.split())
        assert (used, cached) == (blocks // 2, 0)
        counts.append((statistics, walk))
    for few, many in zip(*counts, strict=True):
        assert many <= 4.1 * few, f"{many:,} accesses for four times the blocks, {few:,} before"
