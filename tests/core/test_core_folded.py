"""One source, three heaps: a policy read at run time, the same policy as a constant, and the explorer's build."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from c_programs import compile_c
from recipes_random import random_recipes, sample
from run_length import brief, by_turns, some
from tool_requirements import compilers

from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo


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


WAYS = [(one, level) for turn, one in enumerate(compilers()) for level in by_turns(("-O2", "-Os"), turn)]
"""One build a compiler in the usual run: what the recipes do not change takes most of its time."""


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "level"), WAYS)
def test_same_addresses_and_bytes(tmp_path: Path, compiler: str, level: str) -> None:
    # by turns: each build folds its share of them, so that one of them folds each recipe
    whole = fitting(sample(zoo.recipes()) + random_recipes(brief(4, 12), seed=5))
    recipes = some(whole, len(WAYS), WAYS.index((compiler, level)))
    (tmp_path / "policies.h").write_text(policies_header(recipes))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    # replays test the explorer's build as it is optimised
    alone = [*flags, brief("-O0", level), "-c"]
    explored = compile_c(tmp_path / "explored.o", "same_explored.c", flags=alone, compiler=compiler)
    flags += [level, f"-I{tmp_path}"]
    program = compile_c(tmp_path / "same", "same_folded.c", explored, flags=flags, compiler=compiler)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) == len(recipes)
