"""One source, three heaps: a policy read at run time, the same policy as a constant, and the explorer's build."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_programs import compile_c
from effort import some
from needed import compilers
from recipes_random import random_recipes, sample

from heapwright.recipes.policy import policy
from heapwright.recipes.recipe import Recipe
from heapwright.recipes.zoo import catalogue as zoo


def initialiser(value: Any) -> str:
    """A C initialiser of nested dicts and lists; what is empty is left out and becomes zero."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f".{key} = {initialiser(item)}" for key, item in value.items() if item not in ({}, []))
            + "}"
        )
    if isinstance(value, list):
        return "{" + ", ".join(map(initialiser, value)) + "}"
    return f"{value}u"


def policies_header(recipes: list[Recipe]) -> str:
    constants = [
        f"static const struct hw_policy POLICY_{index} = {initialiser(policy(recipe))};\n"
        for index, recipe in enumerate(recipes)
    ]
    return (
        "".join(constants) + "#define EACH_POLICY(X) " + " ".join(f"X({index})" for index in range(len(recipes))) + "\n"
    )


def fitting(recipes: list[Recipe]) -> list[Recipe]:
    """Those whose control data and regions leave room in the program's arena of 40,000 bytes."""
    return [recipe for recipe in recipes if policy(recipe)["fixed_end"] < 30_000]


ALGORITHMS = ("kind", "checks", "free_list", "bins", "fit", "coalesce", "split")
"""Keys each of whose values the usual run folds once: compilers take long for a recipe."""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_same_addresses_and_bytes(tmp_path: Path, compiler: str, level: str) -> None:
    # by turns: each compiler folds a quarter of them at each level, so that one of the four folds each recipe
    turn = 2 * (compiler == "clang") + (level == "-Os")
    whole = fitting(zoo.recipes() + random_recipes(12, seed=5))
    recipes = some(sample(whole, keys=ALGORITHMS), 4, turn)
    (tmp_path / "policies.h").write_text(policies_header(recipes))
    flags = [f"-I{tmp_path}", "-std=c11", level, "-Wall", "-Wextra", "-Werror"]
    program = compile_c(tmp_path / "same", "same_folded.c", "same_explored.c", flags=flags, compiler=compiler)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) == len(recipes)
