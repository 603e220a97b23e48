"""Generated heaps at their edges, under AddressSanitizer and UndefinedBehaviorSanitizer, with 32 and 64 bits.

`HEAPWRIGHT_FUZZ=100` plays a hundred times as many rounds, `HEAPWRIGHT_SEED=7` others.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from c_programs import ROOT, UNCHECKED
from object_cache import generated
from recipes_random import sample
from run_length import EFFORT, some
from tool_requirements import programs_of_32_bits

from heapwright._recipes.policy import policy
from heapwright._recipes.pools import Compact
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

ROUNDS = 20 * EFFORT
SEED = os.environ.get("HEAPWRIGHT_SEED", "1")
FLAGS = ("-std=gnu11", "-O0", "-g1", "-Wall", "-Wextra", "-Wshadow", "-Werror", UNCHECKED)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


HEAPS = [(recipe, bits) for at, recipe in enumerate(sample(zoo.recipes(), 1)) for bits in some((32, 64), 2, at % 2)]
"""By turns: a pointer's bits at a heap's edge mean something to its program alone."""


@pytest.mark.parametrize(("recipe", "bits"), HEAPS, ids=lambda item: getattr(item, "name", item))
def test_what_is_at_the_edge_or_beyond(recipe: Recipe, bits: int, tmp_path: Path) -> None:
    if bits == 32:
        programs_of_32_bits(*SANITIZERS, compiler="gcc")
    folder = generated(recipe, tmp_path)
    least = policy(recipe)["fixed_end"]
    rounds = ROUNDS if least < 65536 else ROUNDS // 5  # each begins with all of that
    pool = recipe.pools[0]
    words = [f"-DHANDLE_WORDS={pool.reference_words}"] if isinstance(pool, Compact) else []
    program = tmp_path / "edges"
    sources = [ROOT / "tests" / "c" / "edges.c", folder / "app_heap.c"]
    flags = [*FLAGS, *SANITIZERS, f"-m{bits}", f"-DLEAST={least}u", *words, f"-I{folder}"]
    done = subprocess.run(["gcc", *flags, *sources, "-o", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program, SEED, str(rounds)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    assert int(done.stdout.split()[1]) > rounds * 50
